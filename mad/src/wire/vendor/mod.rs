//! Mellanox/NVIDIA attributes of the subnet management classes: IDs 0xFFxx, 64 bytes each, with the M_Key of the port.
//!
//! Not part of the InfiniBand specification. The layouts follow the public headers of opensm and rdma-core; only fields
//! that those describe are named, everything else is kept as it came. Whether a node has an attribute is asked with
//! [`GeneralInfo`], never guessed from the vendor's ID.

mod adaptive_routing;
mod extended_info;
mod extended_port_info;
mod general_info;
mod hash_forwarding;
pub mod mirror;
mod private_lft;
mod routing_notification;

pub use adaptive_routing::{
    AdaptiveRoutingEntry, AdaptiveRoutingGroupTable, AdaptiveRoutingGroupTableCopy, AdaptiveRoutingInfo,
    AdaptiveRoutingLinearForwardingTable, LidState,
};
pub use extended_info::{ExtendedNodeInfo, ExtendedSwitchInfo};
pub use extended_port_info::MlnxExtendedPortInfo;
pub use general_info::{Capability, GeneralInfo};
pub use hash_forwarding::{HbfConfig, SubGroupWeights, WhbfConfig};
pub use private_lft::{
    PortSlToPrivateLftMap, PrivateLftDef, PrivateLftInfo, PrivateLftMap, PrivateLftMode, PrivateLftPlace,
};
pub use routing_notification::{
    PfrnConfig, RnGenBySubGroupPriority, RnGenStringTable, RnRcvDecision, RnRcvString,
    RnSubGroupDirectionTable, RnXmitPortMask,
};
