//! What is counted: datagrams by class, method and attribute, and packets lost by reason.

use std::collections::BTreeMap;

use mad::wire::{MadHeader, Method, MgmtClass};
use rustc_hash::FxHashMap;

/// Why a packet went no farther.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Drop {
    /// A device without power.
    Dead,
    /// No cable, or the link is down (or not Active, for anything but an SMP).
    LinkDown,
    /// Drawn by lot.
    Lost,
    /// A directed route that is not legal: through an adapter, by a port that is not there, with a wrong hop pointer.
    BadRoute,
    /// A switch has no entry for the LID, or one that leads to a port that is not there.
    NoEntry,
    /// The packet reached an end port that does not have its LID.
    WrongLid,
    /// More hops than any right route has: a forwarding loop.
    TooManyHops,
    /// Longer than the MTU of a link on its way.
    TooLong,
    /// No common P_Key, at the receiver or at a switch that enforces partitions.
    PKey,
    /// The wrong Q_Key.
    QKey,
    /// A raw packet at a port that filters them.
    Raw,
    /// Nobody at the port takes it.
    NoAgent,
    /// The agent has been frozen for too long.
    Backlog,
}

/// Class, method, attribute.
pub type Kind = (u8, u8, u16);

/// Counters since the world began or they were reset.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    sent: FxHashMap<Kind, u64>,
    answered: FxHashMap<Kind, u64>,
    dropped: BTreeMap<Drop, u64>,
    /// Sets of ClientReregister.
    pub client_reregisters: u64,
    /// How often an agent had nothing to do and yet a deadline in the past: a machine that would keep its thread spinning.
    pub idle_wakes: u64,
    /// Traps that devices sent, repetitions included.
    pub traps: u64,
}

impl Stats {
    pub(super) fn count_sent(&mut self, header: &MadHeader) {
        *self.sent.entry(kind(header)).or_default() += 1;
    }

    pub(super) fn count_answered(&mut self, header: &MadHeader) {
        *self.answered.entry(kind(header)).or_default() += 1;
    }

    pub(super) fn drop(&mut self, reason: Drop) {
        *self.dropped.entry(reason).or_default() += 1;
    }

    /// Datagrams that agents sent, by kind.
    pub fn sent(&self) -> impl Iterator<Item = (Kind, u64)> + '_ {
        self.sent.iter().map(|(kind, count)| (*kind, *count))
    }

    /// Datagrams that agents sent with this method and attribute in the subnet management classes.
    pub fn sent_smps(&self, method: Method, attribute: u16) -> u64 {
        let smp = |class| class == MgmtClass::SUBN_DR.0 || class == MgmtClass::SUBN_LID.0;
        self.sent
            .iter()
            .filter(|((c, m, a), _)| smp(*c) && *m == method.0 && *a == attribute)
            .map(|(_, n)| n)
            .sum()
    }

    /// Datagrams that agents sent in a management class.
    pub fn sent_of(&self, class: MgmtClass) -> u64 {
        self.sent.iter().filter(|((of, ..), _)| *of == class.0).map(|(_, n)| n).sum()
    }

    /// Set SMPs that agents sent.
    pub fn sets(&self) -> u64 {
        let smp = |class| class == MgmtClass::SUBN_DR.0 || class == MgmtClass::SUBN_LID.0;
        self.sent.iter().filter(|((c, m, _), _)| smp(*c) && *m == Method::SET.0).map(|(_, n)| n).sum()
    }

    /// Datagrams that agents sent, of all kinds.
    pub fn total_sent(&self) -> u64 {
        self.sent.values().sum()
    }

    /// Requests that devices took, of all kinds.
    pub fn total_answered(&self) -> u64 {
        self.answered.values().sum()
    }

    /// Packets lost for a reason.
    pub fn dropped(&self, reason: Drop) -> u64 {
        self.dropped.get(&reason).copied().unwrap_or(0)
    }
}

fn kind(header: &MadHeader) -> Kind {
    (header.mgmt_class, header.method, header.attribute_id.get())
}
