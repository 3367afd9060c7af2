//! SLtoVLMappingTable and VLArbitrationTable (specification volume 1, 14.2.5.8 and 14.2.5.9).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::types::{PortNum, ServiceLevel, VirtualLane};
use crate::wire::{Attribute, ids};

/// Which virtual lane each service level takes, for one pair of input and output port. 8 bytes, a nibble each, the even
/// service level in the upper half.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct SlToVlMappingTable {
    /// The nibbles.
    pub raw: [u8; 8],
}
const _: () = assert!(size_of::<SlToVlMappingTable>() == 8);

impl Attribute for SlToVlMappingTable {
    const ID: u16 = ids::sm::SL_TO_VL_MAPPING_TABLE;
}

impl SlToVlMappingTable {
    /// Service levels of the table.
    pub const LEN: usize = 16;
    /// Attribute modifier of the optimised form (SwitchInfo.OptimizedSLtoVLMappingProgramming): one Set for every input
    /// port and, with this bit, every output port too.
    pub const MODIFIER_ALL_OUTPUT_PORTS: u32 = 1 << 16;
    /// Attribute modifier of the optimised form: for every input port.
    pub const MODIFIER_ALL_INPUT_PORTS: u32 = 1 << 17;

    /// The attribute modifier of a switch; 0 is used for a channel adapter.
    pub fn modifier(input: PortNum, output: PortNum) -> u32 {
        u32::from(input.0) << 8 | u32::from(output.0)
    }

    /// Input and output port of an attribute modifier.
    pub fn split_modifier(modifier: u32) -> (PortNum, PortNum) {
        (PortNum((modifier >> 8) as u8), PortNum(modifier as u8))
    }

    /// The lane of a service level (of its lower 4 bits).
    pub const fn vl(&self, sl: ServiceLevel) -> VirtualLane {
        let byte = self.raw[(sl.0 as usize & 0xf) / 2];
        VirtualLane(if sl.0.is_multiple_of(2) { byte >> 4 } else { byte & 0xf })
    }

    /// Sets the lane of a service level; only the lower 4 bits of each count.
    pub const fn set_vl(&mut self, sl: ServiceLevel, vl: VirtualLane) {
        let byte = &mut self.raw[(sl.0 as usize & 0xf) / 2];
        *byte = if sl.0.is_multiple_of(2) { *byte & 0x0f | vl.0 << 4 } else { *byte & 0xf0 | vl.0 & 0xf };
    }

    /// From the lanes of the 16 service levels.
    pub fn from_lanes(lanes: &[u8; 16]) -> Self {
        let mut table = Self { raw: [0; 8] };
        for (sl, vl) in (0..).zip(lanes) {
            table.set_vl(ServiceLevel(sl), VirtualLane(*vl));
        }
        table
    }

    /// The lanes of the 16 service levels.
    pub fn lanes(&self) -> [u8; 16] {
        std::array::from_fn(|sl| self.vl(ServiceLevel(sl as u8)).0)
    }
}

/// One entry of a VL arbitration table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct VlArbitrationElement {
    vl: u8,
    /// Weight, in units of 64 bytes; 0 for an entry that is skipped.
    pub weight: u8,
}

impl VlArbitrationElement {
    /// An entry.
    pub const fn new(vl: VirtualLane, weight: u8) -> Self {
        Self { vl: vl.0 & 0xf, weight }
    }

    /// The lane.
    pub const fn vl(&self) -> VirtualLane {
        VirtualLane(self.vl & 0xf)
    }
}

/// A block of 32 entries of a port's VL arbitration tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct VlArbitrationTable {
    /// The entries.
    pub elements: [VlArbitrationElement; 32],
}
const _: () = assert!(size_of::<VlArbitrationTable>() == 64);

impl Attribute for VlArbitrationTable {
    const ID: u16 = ids::sm::VL_ARBITRATION_TABLE;
}

/// Which block of the arbitration tables; the number is the upper half of the attribute modifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum VlArbitrationTableKind {
    /// Lower 32 entries of the low-priority table (1).
    LowLower,
    /// Upper 32 entries of the low-priority table (2).
    LowUpper,
    /// Lower 32 entries of the high-priority table (3).
    HighLower,
    /// Upper 32 entries of the high-priority table (4).
    HighUpper,
}

impl VlArbitrationTableKind {
    /// All blocks, by number.
    pub const ALL: [Self; 4] = [Self::LowLower, Self::LowUpper, Self::HighLower, Self::HighUpper];

    /// The wire's number, 1 to 4.
    pub const fn to_wire(self) -> u8 {
        match self {
            Self::LowLower => 1,
            Self::LowUpper => 2,
            Self::HighLower => 3,
            Self::HighUpper => 4,
        }
    }

    /// From the wire's number; `None` outside 1 to 4.
    pub const fn from_wire(raw: u8) -> Option<Self> {
        match raw {
            1 => Some(Self::LowLower),
            2 => Some(Self::LowUpper),
            3 => Some(Self::HighLower),
            4 => Some(Self::HighUpper),
            _ => None,
        }
    }
}

impl VlArbitrationTable {
    /// Entries of a block.
    pub const PER_BLOCK: usize = 32;

    /// The attribute modifier.
    pub fn modifier(kind: VlArbitrationTableKind, port: PortNum) -> u32 {
        u32::from(kind.to_wire()) << 16 | u32::from(port.0)
    }

    /// Block and port of an attribute modifier; `None` for an undefined block or a port beyond 255.
    pub fn split_modifier(modifier: u32) -> Option<(VlArbitrationTableKind, PortNum)> {
        let kind = VlArbitrationTableKind::from_wire(u8::try_from(modifier >> 16).ok()?)?;
        let port = u8::try_from(modifier & 0xffff).ok()?;
        Some((kind, PortNum(port)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A nibble is changed, and no other; by hand from the nibble's place.
    #[test]
    fn sl_to_vl_setter_changes_one_nibble() {
        for sl in 0..16_u8 {
            for vl in 0..=255_u8 {
                for background in [0x00, 0xff, 0xa5] {
                    let mut table = SlToVlMappingTable { raw: [background; 8] };
                    table.set_vl(ServiceLevel(sl), VirtualLane(vl));
                    let mut nibbles: Vec<u8> =
                        [background; 8].iter().flat_map(|b| [b >> 4, b & 0xf]).collect();
                    nibbles[usize::from(sl)] = vl & 0xf;
                    assert_eq!(table.lanes().to_vec(), nibbles);
                    assert_eq!(table.vl(ServiceLevel(sl)), VirtualLane(vl & 0xf));
                    assert_eq!(SlToVlMappingTable::from_lanes(&table.lanes()), table);
                }
            }
        }
    }

    #[test]
    fn modifiers_split_into_what_they_were_made_of() {
        assert_eq!(SlToVlMappingTable::modifier(PortNum(3), PortNum(36)), 0x0324);
        assert_eq!(SlToVlMappingTable::split_modifier(0x0324), (PortNum(3), PortNum(36)));
        for kind in VlArbitrationTableKind::ALL {
            let modifier = VlArbitrationTable::modifier(kind, PortNum(7));
            assert_eq!(VlArbitrationTable::split_modifier(modifier), Some((kind, PortNum(7))));
        }
        for wrong in [0x0000_0001, 0x0005_0001, 0x0001_0100, 0x0101_0001] {
            assert_eq!(VlArbitrationTable::split_modifier(wrong), None, "{wrong:#x}");
        }
    }
}
