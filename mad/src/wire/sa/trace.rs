//! TraceRecord (specification volume 1, 15.2.5.19): 46 bytes; one hop of a path, in answers to GetTraceTable.

use zerocopy::big_endian::{U16, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::component::{Component, Record, bits_of, components};
use crate::wire::{Attribute, ids};

/// A hop of a path. Its GUID fields are what the specification calls IDs: GUIDs changed by IDGeneration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct TraceRecord {
    /// GIDPrefix.
    pub gid_prefix: U64,
    /// IDGeneration.
    pub id_generation: U16,
    reserved: u8,
    /// NodeType.
    pub node_type: u8,
    /// NodeID.
    pub node_id: U64,
    /// ChassisID.
    pub chassis_id: U64,
    /// EntryPortID.
    pub entry_port_id: U64,
    /// ExitPortID.
    pub exit_port_id: U64,
    /// EntryPort.
    pub entry_port: u8,
    /// ExitPort.
    pub exit_port: u8,
}
const _: () = assert!(size_of::<TraceRecord>() == 46);

impl Attribute for TraceRecord {
    const ID: u16 = ids::sa::TRACE_RECORD;
}

static COMPONENTS: [Component; 10] = components([
    ("GIDPrefix", 64),
    ("IDGeneration", 16),
    ("", 8),
    ("NodeType", 8),
    ("NodeID", 64),
    ("ChassisID", 64),
    ("EntryPortID", 64),
    ("ExitPortID", 64),
    ("EntryPort", 8),
    ("ExitPort", 8),
]);
const _: () = assert!(bits_of(&COMPONENTS) == 8 * size_of::<TraceRecord>());

impl Record for TraceRecord {
    const COMPONENTS: &'static [Component] = &COMPONENTS;
}
