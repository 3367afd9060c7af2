//! NodeInfo (specification volume 1, 14.2.5.3): 40 bytes.

use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::types::{Guid, NodeType, PortNum};
use crate::wire::{Attribute, ids};

/// What a node says of itself and of the port by which it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct NodeInfo {
    /// Supported MAD base version.
    pub base_version: u8,
    /// Supported subnet management class version.
    pub class_version: u8,
    /// 1 channel adapter, 2 switch, 3 router.
    pub node_type: u8,
    /// Number of physical ports (port 0 of a switch not counted).
    pub num_ports: u8,
    /// GUID of the enclosing system, 0 for none.
    pub system_image_guid: U64,
    /// GUID of the node.
    pub node_guid: U64,
    /// GUID of the port asked (of port 0 for every port of a switch).
    pub port_guid: U64,
    /// Entries of each port's P_Key table.
    pub partition_cap: U16,
    /// Device ID, given by the vendor.
    pub device_id: U16,
    /// Device revision.
    pub revision: U32,
    /// LocalPortNum (upper 8 bits) and VendorID (lower 24).
    pub local_port_and_vendor: U32,
}
const _: () = assert!(size_of::<NodeInfo>() == 40);

impl Attribute for NodeInfo {
    const ID: u16 = ids::sm::NODE_INFO;
}

impl NodeInfo {
    /// The node's type; `None` for a value that is not defined.
    pub const fn node_type(&self) -> Option<NodeType> {
        NodeType::from_wire(self.node_type)
    }

    /// NodeGUID.
    pub fn node_guid(&self) -> Guid {
        Guid(self.node_guid.get())
    }

    /// PortGUID.
    pub fn port_guid(&self) -> Guid {
        Guid(self.port_guid.get())
    }

    /// SystemImageGUID.
    pub fn system_image_guid(&self) -> Guid {
        Guid(self.system_image_guid.get())
    }

    word_bits! {
        /// LocalPortNum as a number: the port by which the request came in.
        local_port_raw, set_local_port_raw: local_port_and_vendor as u32[31:24];
        /// The vendor's ID (IEEE OUI), 24 bits.
        vendor_id, set_vendor_id: local_port_and_vendor as u32[23:0];
    }

    /// The port by which the request came in.
    pub fn local_port_num(&self) -> PortNum {
        PortNum(self.local_port_raw() as u8)
    }

    /// Sets LocalPortNum.
    pub fn set_local_port_num(&mut self, port: PortNum) {
        self.set_local_port_raw(port.0.into());
    }
}
