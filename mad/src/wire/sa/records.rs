//! Records that wrap an attribute of subnet management: a record ID, then the attribute as the node said it
//! (specification volume 1, 15.2.5.2 to 15.2.5.13).

use zerocopy::big_endian::{U16, U32, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::component::{Component, Record, bits_of, components};
use super::port_info_components::PORT_INFO_RECORD;
use crate::types::{Gid, Lid, PortNum};
use crate::wire::smp::{GuidInfo, InformInfo, NodeDescription, NodeInfo, PortInfo, SmInfo, SwitchInfo};
use crate::wire::{Attribute, ids};

/// NodeRecord: NodeInfo and NodeDescription, one for each port's LID (one for a whole switch).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct NodeRecord {
    /// LID of the port (of port 0 for a switch).
    pub lid: U16,
    reserved: U16,
    /// NodeInfo.
    pub node_info: NodeInfo,
    /// NodeDescription.
    pub node_description: NodeDescription,
}
const _: () = assert!(size_of::<NodeRecord>() == 108);

impl Attribute for NodeRecord {
    const ID: u16 = ids::sa::NODE_RECORD;
}

impl Record for NodeRecord {
    const COMPONENTS: &'static [Component] = &const {
        components([
            ("LID", 16),
            ("", 16),
            ("BaseVersion", 8),
            ("ClassVersion", 8),
            ("NodeType", 8),
            ("NumPorts", 8),
            ("SystemImageGUID", 64),
            ("NodeGUID", 64),
            ("PortGUID", 64),
            ("PartitionCap", 16),
            ("DeviceID", 16),
            ("Revision", 32),
            ("LocalPortNum", 8),
            ("VendorID", 24),
            ("NodeDescription", 512),
        ])
    };
}
const _: () = assert!(bits_of(NodeRecord::COMPONENTS) == 8 * size_of::<NodeRecord>());

impl NodeRecord {
    /// A record.
    pub fn new(lid: Lid, node_info: NodeInfo, node_description: NodeDescription) -> Self {
        Self { lid: U16::new(lid.get()), reserved: U16::ZERO, node_info, node_description }
    }

    /// The LID; `None` when it is no unicast LID.
    pub fn lid(&self) -> Option<Lid> {
        Lid::new(self.lid.get())
    }
}

/// PortInfoRecord: PortInfo of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct PortInfoRecord {
    /// LID of the port (of port 0 for a switch's port).
    pub lid: U16,
    /// PortNum.
    pub port_num: u8,
    /// Options.
    pub options: u8,
    /// PortInfo.
    pub port_info: PortInfo,
}
const _: () = assert!(size_of::<PortInfoRecord>() == 68);

impl Attribute for PortInfoRecord {
    const ID: u16 = ids::sa::PORT_INFO_RECORD;
}

impl Record for PortInfoRecord {
    const COMPONENTS: &'static [Component] = &PORT_INFO_RECORD;
}
const _: () = assert!(bits_of(PortInfoRecord::COMPONENTS) == 8 * size_of::<PortInfoRecord>());

impl PortInfoRecord {
    /// A record.
    pub fn new(lid: Lid, port: PortNum, port_info: PortInfo) -> Self {
        Self { lid: U16::new(lid.get()), port_num: port.0, options: 0, port_info }
    }

    /// The LID; `None` when it is no unicast LID.
    pub fn lid(&self) -> Option<Lid> {
        Lid::new(self.lid.get())
    }

    /// PortNum.
    pub const fn port_num(&self) -> PortNum {
        PortNum(self.port_num)
    }
}

/// SwitchInfoRecord: SwitchInfo of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct SwitchInfoRecord {
    /// LID of the switch.
    pub lid: U16,
    reserved: U16,
    /// SwitchInfo.
    pub switch_info: SwitchInfo,
}
const _: () = assert!(size_of::<SwitchInfoRecord>() == 24);

impl Attribute for SwitchInfoRecord {
    const ID: u16 = ids::sa::SWITCH_INFO_RECORD;
}

impl Record for SwitchInfoRecord {
    const COMPONENTS: &'static [Component] = &const {
        components([
            ("LID", 16),
            ("", 16),
            ("LinearFDBCap", 16),
            ("RandomFDBCap", 16),
            ("MulticastFDBCap", 16),
            ("LinearFDBTop", 16),
            ("DefaultPort", 8),
            ("DefaultMulticastPrimaryPort", 8),
            ("DefaultMulticastNotPrimaryPort", 8),
            ("LifeTimeValue", 5),
            ("PortStateChange", 1),
            ("OptimizedSLtoVLMappingProgramming", 2),
            ("LIDsPerPort", 16),
            ("PartitionEnforcementCap", 16),
            ("InboundEnforcementCap", 1),
            ("OutboundEnforcementCap", 1),
            ("FilterRawInboundCap", 1),
            ("FilterRawOutboundCap", 1),
            ("EnhancedPort0", 1),
            ("", 3),
            ("", 8),
            ("MulticastFDBTop", 16),
        ])
    };
}
const _: () = assert!(bits_of(SwitchInfoRecord::COMPONENTS) == 8 * size_of::<SwitchInfoRecord>());

impl SwitchInfoRecord {
    /// A record.
    pub fn new(lid: Lid, switch_info: SwitchInfo) -> Self {
        Self { lid: U16::new(lid.get()), reserved: U16::ZERO, switch_info }
    }

    /// The LID; `None` when it is no unicast LID.
    pub fn lid(&self) -> Option<Lid> {
        Lid::new(self.lid.get())
    }
}

/// LinkRecord: a link, one record for each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct LinkRecord {
    /// FromLID.
    pub from_lid: U16,
    /// FromPort.
    pub from_port: u8,
    /// ToPort.
    pub to_port: u8,
    /// ToLID.
    pub to_lid: U16,
}
const _: () = assert!(size_of::<LinkRecord>() == 6);

impl Attribute for LinkRecord {
    const ID: u16 = ids::sa::LINK_RECORD;
}

impl Record for LinkRecord {
    const COMPONENTS: &'static [Component] =
        &const { components([("FromLID", 16), ("FromPort", 8), ("ToPort", 8), ("ToLID", 16)]) };
}
const _: () = assert!(bits_of(LinkRecord::COMPONENTS) == 8 * size_of::<LinkRecord>());

/// SMInfoRecord: SMInfo of a subnet manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct SmInfoRecord {
    /// LID of the manager's port.
    pub lid: U16,
    reserved: U16,
    /// SMInfo.
    pub sm_info: SmInfo,
}
const _: () = assert!(size_of::<SmInfoRecord>() == 25);

impl Attribute for SmInfoRecord {
    const ID: u16 = ids::sa::SM_INFO_RECORD;
}

impl Record for SmInfoRecord {
    const COMPONENTS: &'static [Component] = &const {
        components([
            ("LID", 16),
            ("", 16),
            ("GUID", 64),
            ("SM_Key", 64),
            ("ActCount", 32),
            ("Priority", 4),
            ("SMState", 4),
        ])
    };
}
const _: () = assert!(bits_of(SmInfoRecord::COMPONENTS) == 8 * size_of::<SmInfoRecord>());

impl SmInfoRecord {
    /// A record.
    pub fn new(lid: Lid, sm_info: SmInfo) -> Self {
        Self { lid: U16::new(lid.get()), reserved: U16::ZERO, sm_info }
    }

    /// The LID; `None` when it is no unicast LID.
    pub fn lid(&self) -> Option<Lid> {
        Lid::new(self.lid.get())
    }
}

/// GUIDInfoRecord: a block of a port's GUIDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct GuidInfoRecord {
    /// LID of the port (of port 0 for a switch).
    pub lid: U16,
    /// BlockNum.
    pub block_num: u8,
    reserved: u8,
    reserved2: U32,
    /// GUIDInfo.
    pub guid_info: GuidInfo,
}
const _: () = assert!(size_of::<GuidInfoRecord>() == 72);

impl Attribute for GuidInfoRecord {
    const ID: u16 = ids::sa::GUID_INFO_RECORD;
}

impl Record for GuidInfoRecord {
    const COMPONENTS: &'static [Component] = &const {
        components([
            ("LID", 16),
            ("BlockNum", 8),
            ("", 8),
            ("", 32),
            ("GUID0", 64),
            ("GUID1", 64),
            ("GUID2", 64),
            ("GUID3", 64),
            ("GUID4", 64),
            ("GUID5", 64),
            ("GUID6", 64),
            ("GUID7", 64),
        ])
    };
}
const _: () = assert!(bits_of(GuidInfoRecord::COMPONENTS) == 8 * size_of::<GuidInfoRecord>());

impl GuidInfoRecord {
    /// Component: LID.
    pub const LID: u64 = 1 << 0;
    /// Component: BlockNum.
    pub const BLOCK_NUM: u64 = 1 << 1;
    /// Component: GUID0; the other GUIDs follow, a bit each.
    pub const GUID_0: u64 = 1 << 4;

    /// A record.
    pub fn new(lid: Lid, block_num: u8, guid_info: GuidInfo) -> Self {
        Self { lid: U16::new(lid.get()), block_num, reserved: 0, reserved2: U32::ZERO, guid_info }
    }

    /// The LID; `None` when it is no unicast LID.
    pub fn lid(&self) -> Option<Lid> {
        Lid::new(self.lid.get())
    }
}

/// InformInfoRecord: a subscription to notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct InformInfoRecord {
    /// SubscriberGID.
    pub subscriber_gid: U128,
    /// Enum: tells the subscriptions of one subscriber apart.
    pub subscriber_enum: U16,
    reserved: [u8; 6],
    /// InformInfo.
    pub inform_info: InformInfo,
}
const _: () = assert!(size_of::<InformInfoRecord>() == 60);

impl Attribute for InformInfoRecord {
    const ID: u16 = ids::sa::INFORM_INFO_RECORD;
}

impl Record for InformInfoRecord {
    const COMPONENTS: &'static [Component] = &const {
        components([
            ("SubscriberGID", 128),
            ("Enum", 16),
            ("", 48),
            ("GID", 128),
            ("LIDRangeBegin", 16),
            ("LIDRangeEnd", 16),
            ("", 16),
            ("IsGeneric", 8),
            ("Subscribe", 8),
            ("Type", 16),
            ("TrapNumber/DeviceID", 16),
            ("QPN", 24),
            ("", 3),
            ("RespTimeValue", 5),
            ("", 8),
            ("ProducerType/VendorID", 24),
        ])
    };
}
const _: () = assert!(bits_of(InformInfoRecord::COMPONENTS) == 8 * size_of::<InformInfoRecord>());

impl InformInfoRecord {
    /// A record.
    pub fn new(subscriber: Gid, subscriber_enum: u16, inform_info: InformInfo) -> Self {
        Self {
            subscriber_gid: U128::new(subscriber.0),
            subscriber_enum: U16::new(subscriber_enum),
            reserved: [0; 6],
            inform_info,
        }
    }

    /// SubscriberGID.
    pub const fn subscriber_gid(&self) -> Gid {
        Gid(self.subscriber_gid.get())
    }
}
