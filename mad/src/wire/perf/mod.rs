//! Performance management (specification volume 1, chapter 16): the packet and the port counters.

mod counters;
mod counters_extended;
mod packet;

pub use crate::wire::ClassPortInfo;
pub use counters::PortCounters;
pub use counters_extended::PortCountersExtended;
pub use packet::PerfMad;

/// PortSelect: all ports of the node together, where ClassPortInfo says that the agent can.
pub const ALL_PORTS: u8 = 255;
