//! What a port can have registered with subnet administration, as both ends of it know it.

use std::fmt;

use mad::types::{Gid, Guid};
use mad::wire::sa::JoinState;

/// A registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Registration {
    /// A port's part in a multicast group.
    Member {
        /// MGID of the group.
        mgid: Gid,
        /// PortGUID.
        port: Guid,
        /// JoinState: kinds of membership, as bits.
        how: u8,
    },
    /// A service that a port offers.
    Service {
        /// ServiceID.
        id: u64,
        /// PortGUID.
        port: Guid,
    },
    /// A subscription to notices.
    Subscription {
        /// Number of the trap.
        trap: u16,
        /// PortGUID.
        port: Guid,
    },
}

impl Registration {
    /// A membership of a kind.
    pub const fn member(mgid: Gid, port: Guid, how: JoinState) -> Self {
        Self::Member { mgid, port, how: how.0 }
    }
}

impl fmt::Display for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Member { mgid, port, how } => {
                write!(f, "membership of port {port} in {mgid} (JoinState {how})")
            }
            Self::Service { id, port } => write!(f, "service 0x{id:x} of port {port}"),
            Self::Subscription { trap, port } => write!(f, "subscription of port {port} to trap {trap}"),
        }
    }
}
