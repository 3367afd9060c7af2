//! Records that wrap a block of a port's or switch's table (specification volume 1, 15.2.5.4 to 15.2.5.11).

use zerocopy::big_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::component::{Component, Record, bits_of, components};
use crate::types::{Lid, PortNum};
use crate::wire::smp::{
    LinearForwardingTable, MulticastForwardingTable, PKeyTable, SlToVlMappingTable, VlArbitrationTable,
    VlArbitrationTableKind,
};
use crate::wire::{Attribute, ids};

/// SLtoVLMappingTableRecord: the mapping of one pair of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct SlToVlMappingTableRecord {
    /// LID of the port (of port 0 for a switch).
    pub lid: U16,
    /// InputPortNum; 0 for a channel adapter.
    pub input_port_num: u8,
    /// OutputPortNum; 0 for a channel adapter.
    pub output_port_num: u8,
    reserved: U32,
    /// SLtoVLMappingTable.
    pub table: SlToVlMappingTable,
}
const _: () = assert!(size_of::<SlToVlMappingTableRecord>() == 16);

impl Attribute for SlToVlMappingTableRecord {
    const ID: u16 = ids::sa::SL_TO_VL_MAPPING_TABLE_RECORD;
}

impl Record for SlToVlMappingTableRecord {
    const COMPONENTS: &'static [Component] = &const {
        components([
            ("LID", 16),
            ("InputPortNum", 8),
            ("OutputPortNum", 8),
            ("", 32),
            ("SLtoVLMappingTable", 64),
        ])
    };
}
const _: () =
    assert!(bits_of(SlToVlMappingTableRecord::COMPONENTS) == 8 * size_of::<SlToVlMappingTableRecord>());

impl SlToVlMappingTableRecord {
    /// A record.
    pub fn new(lid: Lid, input: PortNum, output: PortNum, table: SlToVlMappingTable) -> Self {
        let lid = U16::new(lid.get());
        Self { lid, input_port_num: input.0, output_port_num: output.0, reserved: U32::ZERO, table }
    }
}

/// LinearForwardingTableRecord: a block of a switch's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct LinearForwardingTableRecord {
    /// LID of the switch.
    pub lid: U16,
    /// BlockNum.
    pub block_num: U16,
    reserved: U32,
    /// LinearForwardingTable.
    pub table: LinearForwardingTable,
}
const _: () = assert!(size_of::<LinearForwardingTableRecord>() == 72);

impl Attribute for LinearForwardingTableRecord {
    const ID: u16 = ids::sa::LINEAR_FORWARDING_TABLE_RECORD;
}

impl Record for LinearForwardingTableRecord {
    const COMPONENTS: &'static [Component] =
        &const { components([("LID", 16), ("BlockNum", 16), ("", 32), ("LinearForwardingTable", 512)]) };
}
const _: () =
    assert!(bits_of(LinearForwardingTableRecord::COMPONENTS) == 8 * size_of::<LinearForwardingTableRecord>());

impl LinearForwardingTableRecord {
    /// A record.
    pub fn new(lid: Lid, block: u16, table: LinearForwardingTable) -> Self {
        Self { lid: U16::new(lid.get()), block_num: U16::new(block), reserved: U32::ZERO, table }
    }
}

/// MulticastForwardingTableRecord: a block of a switch's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct MulticastForwardingTableRecord {
    /// LID of the switch.
    pub lid: U16,
    position_and_block: U16,
    reserved: U32,
    /// MulticastForwardingTable.
    pub table: MulticastForwardingTable,
}
const _: () = assert!(size_of::<MulticastForwardingTableRecord>() == 72);

impl Attribute for MulticastForwardingTableRecord {
    const ID: u16 = ids::sa::MULTICAST_FORWARDING_TABLE_RECORD;
}

impl Record for MulticastForwardingTableRecord {
    const COMPONENTS: &'static [Component] = &const {
        components([
            ("LID", 16),
            ("Position", 4),
            ("", 3),
            ("BlockNum", 9),
            ("", 32),
            ("MulticastForwardingTable", 512),
        ])
    };
}
const _: () = assert!(
    bits_of(MulticastForwardingTableRecord::COMPONENTS) == 8 * size_of::<MulticastForwardingTableRecord>()
);

impl MulticastForwardingTableRecord {
    word_bits! {
        /// Position: 16 ports each.
        position, set_position: position_and_block as u16[15:12];
        /// BlockNum: 32 multicast LIDs each.
        block_num, set_block_num: position_and_block as u16[8:0];
    }

    /// A record.
    pub fn new(lid: Lid, position: u8, block: u16, table: MulticastForwardingTable) -> Self {
        let lid = U16::new(lid.get());
        let mut record = Self { lid, position_and_block: U16::ZERO, reserved: U32::ZERO, table };
        record.set_position(position.into());
        record.set_block_num(block);
        record
    }
}

/// VLArbitrationTableRecord: a block of a port's arbitration tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct VlArbitrationTableRecord {
    /// LID of the port (of port 0 for a switch).
    pub lid: U16,
    /// OutputPortNum; 0 for a channel adapter.
    pub output_port_num: u8,
    /// BlockNum: 1 to 4.
    pub block_num: u8,
    reserved: U32,
    /// VLArbitrationTable.
    pub table: VlArbitrationTable,
}
const _: () = assert!(size_of::<VlArbitrationTableRecord>() == 72);

impl Attribute for VlArbitrationTableRecord {
    const ID: u16 = ids::sa::VL_ARBITRATION_TABLE_RECORD;
}

impl Record for VlArbitrationTableRecord {
    const COMPONENTS: &'static [Component] = &const {
        components([
            ("LID", 16),
            ("OutputPortNum", 8),
            ("BlockNum", 8),
            ("", 32),
            ("VLArbitrationTable", 512),
        ])
    };
}
const _: () =
    assert!(bits_of(VlArbitrationTableRecord::COMPONENTS) == 8 * size_of::<VlArbitrationTableRecord>());

impl VlArbitrationTableRecord {
    /// A record.
    pub fn new(lid: Lid, port: PortNum, kind: VlArbitrationTableKind, table: VlArbitrationTable) -> Self {
        let lid = U16::new(lid.get());
        Self { lid, output_port_num: port.0, block_num: kind.to_wire(), reserved: U32::ZERO, table }
    }
}

/// P_KeyTableRecord: a block of a port's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct PKeyTableRecord {
    /// LID of the port (of port 0 for a switch).
    pub lid: U16,
    /// BlockNum.
    pub block_num: U16,
    /// PortNum of a switch; 0 for a channel adapter.
    pub port_num: u8,
    reserved: [u8; 3],
    /// P_KeyTable.
    pub table: PKeyTable,
}
const _: () = assert!(size_of::<PKeyTableRecord>() == 72);

impl Attribute for PKeyTableRecord {
    const ID: u16 = ids::sa::PKEY_TABLE_RECORD;
}

impl Record for PKeyTableRecord {
    const COMPONENTS: &'static [Component] =
        &const { components([("LID", 16), ("BlockNum", 16), ("PortNum", 8), ("", 24), ("P_KeyTable", 512)]) };
}
const _: () = assert!(bits_of(PKeyTableRecord::COMPONENTS) == 8 * size_of::<PKeyTableRecord>());

impl PKeyTableRecord {
    /// A record.
    pub fn new(lid: Lid, port: PortNum, block: u16, table: PKeyTable) -> Self {
        Self {
            lid: U16::new(lid.get()),
            block_num: U16::new(block),
            port_num: port.0,
            reserved: [0; 3],
            table,
        }
    }
}
