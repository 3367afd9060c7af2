//! Subnet management packets (specification volume 1, chapter 14): the packet itself and its attributes.

mod forwarding;
mod guid_info;
mod inform_info;
mod led_info;
mod node_description;
mod node_info;
mod notice;
mod packet;
mod pkey_table;
mod port_info;
mod port_info_extended;
mod port_states;
mod qos;
mod sm_info;
mod switch_info;
mod trap_data;

pub use forwarding::{LinearForwardingTable, MulticastForwardingTable};
pub use guid_info::GuidInfo;
pub use inform_info::InformInfo;
pub use led_info::LedInfo;
pub use node_description::NodeDescription;
pub use node_info::NodeInfo;
pub use notice::{Notice, NoticeType};
pub use packet::Smp;
pub use pkey_table::PKeyTable;
pub use port_info::PortInfo;
pub use port_info_extended::PortInfoExtended;
pub use port_states::SwitchPortStateTable;
pub use qos::{SlToVlMappingTable, VlArbitrationElement, VlArbitrationTable, VlArbitrationTableKind};
pub use sm_info::{SmControl, SmInfo, SmState};
pub use switch_info::SwitchInfo;
pub use trap_data::{
    BadKeyData, BadMKeyData, BadSwitchPKeyData, GidData, LinkStateData, LocalChangesData, PortThresholdData,
    SystemImageGuidData, TrapData, TrapDetails,
};
