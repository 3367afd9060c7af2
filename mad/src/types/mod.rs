//! Newtypes for the quantities of the InfiniBand Architecture Specification, so that a LID can't be passed for a
//! port number. All are plain integers in host byte order; the wire's byte order is the business of [`crate::wire`].

mod address;
mod key;
mod link;
mod path;
mod rate;
mod state;
mod timestamp;

pub use address::{
    Gid, Guid, Lid, MulticastLid, PKey, PortNum, QKey, Qpn, ServiceLevel, TypeError, VirtualLane,
};
pub use key::{MKey, WireKey};
pub use link::{LinkSpeed, LinkSpeedSet, LinkWidth, LinkWidthSet};
pub use path::{DirectedPath, MAX_HOPS, PathTooLong};
pub use rate::{Mtu, Rate};
pub use state::{NodeType, PortPhysState, PortState};
pub use timestamp::Timestamp;
