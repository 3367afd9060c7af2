//! An etcd of the scenario, and what is wrong with it when. Managers are only told of it: they bring what plays it.

use serde::{Deserialize, Serialize};

/// The etcd that managers share: all that name one have the same, that of the first of them.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EtcdSpec {
    /// How long an answer takes, in microseconds.
    pub answer_us: u64,
    /// What goes wrong.
    pub trouble: Vec<EtcdTrouble>,
}

/// Something that is wrong with it. Times in milliseconds, the end is the first moment of being well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "kebab-case", deny_unknown_fields)]
pub enum EtcdTrouble {
    /// Nobody listens.
    Refusing {
        /// From when.
        at_ms: u64,
        /// Until when.
        until_ms: u64,
    },
    /// It takes connections and answers nothing.
    Silent {
        /// From when.
        at_ms: u64,
        /// Until when.
        until_ms: u64,
    },
    /// It answers late: beyond a second it does what is asked, and whoever asked has given up.
    Late {
        /// From when.
        at_ms: u64,
        /// Until when.
        until_ms: u64,
        /// How late.
        by_ms: u64,
    },
    /// Its data is lost.
    Wiped {
        /// When.
        at_ms: u64,
    },
}

impl EtcdTrouble {
    /// When it begins.
    pub const fn at_ms(&self) -> u64 {
        match self {
            Self::Refusing { at_ms, .. }
            | Self::Silent { at_ms, .. }
            | Self::Late { at_ms, .. }
            | Self::Wiped { at_ms } => *at_ms,
        }
    }

    /// Whether it lasts at a time; a loss of data does not.
    pub const fn lasts_at(&self, ms: u64) -> bool {
        match self {
            Self::Refusing { at_ms, until_ms }
            | Self::Silent { at_ms, until_ms }
            | Self::Late { at_ms, until_ms, .. } => *at_ms <= ms && ms < *until_ms,
            Self::Wiped { .. } => false,
        }
    }
}
