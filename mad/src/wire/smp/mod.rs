//! Subnet management packets (specification volume 1, chapter 14): the packet itself and its attributes.

mod node_info;
mod packet;
mod port_info;
mod switch_info;

pub use node_info::NodeInfo;
pub use packet::Smp;
pub use port_info::PortInfo;
pub use switch_info::SwitchInfo;
