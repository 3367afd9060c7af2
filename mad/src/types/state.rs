//! Node type and port states as PortInfo and NodeInfo carry them (specification volume 1, 14.2.5.3 and 14.2.5.6).

use serde::{Deserialize, Serialize};

/// What kind of node answered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeType {
    /// Channel adapter (host or target).
    Ca,
    /// Switch.
    Switch,
    /// Router.
    Router,
}

impl NodeType {
    /// From NodeInfo.NodeType; `None` for a value that the specification doesn't define.
    pub const fn from_wire(raw: u8) -> Option<Self> {
        match raw {
            1 => Some(Self::Ca),
            2 => Some(Self::Switch),
            3 => Some(Self::Router),
            _ => None,
        }
    }

    /// NodeInfo.NodeType.
    pub const fn to_wire(self) -> u8 {
        match self {
            Self::Ca => 1,
            Self::Switch => 2,
            Self::Router => 3,
        }
    }
}

/// PortInfo.PortState.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PortState {
    /// The physical link is not up.
    Down,
    /// Up; only SMPs pass.
    Init,
    /// Up and configured; data packets are received, not sent.
    Armed,
    /// In full use.
    Active,
}

impl PortState {
    /// From PortInfo; `None` for 0 ("no change") and undefined values.
    pub const fn from_wire(raw: u8) -> Option<Self> {
        match raw {
            1 => Some(Self::Down),
            2 => Some(Self::Init),
            3 => Some(Self::Armed),
            4 => Some(Self::Active),
            _ => None,
        }
    }

    /// PortInfo.PortState.
    pub const fn to_wire(self) -> u8 {
        match self {
            Self::Down => 1,
            Self::Init => 2,
            Self::Armed => 3,
            Self::Active => 4,
        }
    }

    /// Whether the link is there at all (Init or better).
    pub const fn is_up(self) -> bool {
        !matches!(self, Self::Down)
    }
}

/// PortInfo.PortPhysicalState.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PortPhysState {
    /// 1.
    Sleep,
    /// 2: looking for a peer.
    Polling,
    /// 3.
    Disabled,
    /// 4.
    PortConfigurationTraining,
    /// 5.
    LinkUp,
    /// 6.
    LinkErrorRecovery,
    /// 7.
    PhyTest,
}

impl PortPhysState {
    /// From PortInfo; `None` for 0 ("no change") and undefined values.
    pub const fn from_wire(raw: u8) -> Option<Self> {
        match raw {
            1 => Some(Self::Sleep),
            2 => Some(Self::Polling),
            3 => Some(Self::Disabled),
            4 => Some(Self::PortConfigurationTraining),
            5 => Some(Self::LinkUp),
            6 => Some(Self::LinkErrorRecovery),
            7 => Some(Self::PhyTest),
            _ => None,
        }
    }

    /// PortInfo.PortPhysicalState.
    pub const fn to_wire(self) -> u8 {
        match self {
            Self::Sleep => 1,
            Self::Polling => 2,
            Self::Disabled => 3,
            Self::PortConfigurationTraining => 4,
            Self::LinkUp => 5,
            Self::LinkErrorRecovery => 6,
            Self::PhyTest => 7,
        }
    }
}
