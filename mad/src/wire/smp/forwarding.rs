//! LinearForwardingTable and MulticastForwardingTable (specification volume 1, 14.2.5.10 and 14.2.5.12): a block each.

use zerocopy::big_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::types::{Lid, MulticastLid, PortNum};
use crate::wire::{Attribute, ids};

/// Output ports of LIDs 64·n to 64·n+63; the attribute modifier is the block n. 255 drops the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct LinearForwardingTable {
    /// The ports.
    pub ports: [u8; 64],
}
const _: () = assert!(size_of::<LinearForwardingTable>() == 64);

impl Attribute for LinearForwardingTable {
    const ID: u16 = ids::sm::LINEAR_FORWARDING_TABLE;
}

impl LinearForwardingTable {
    /// LIDs of a block.
    pub const PER_BLOCK: usize = 64;
    /// A block that drops every packet.
    pub const DROP_ALL: Self = Self { ports: [PortNum::NONE.0; 64] };

    /// The block that holds a LID.
    pub const fn block_of(lid: Lid) -> u16 {
        lid.get() / 64
    }

    /// A LID's place in its block.
    pub const fn index_of(lid: Lid) -> usize {
        lid.get() as usize % 64
    }
}

/// Port masks of 32 multicast LIDs for 16 ports: bit p of an entry is port 16·position + p.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct MulticastForwardingTable {
    /// The masks.
    pub port_masks: [U16; 32],
}
const _: () = assert!(size_of::<MulticastForwardingTable>() == 64);

impl Attribute for MulticastForwardingTable {
    const ID: u16 = ids::sm::MULTICAST_FORWARDING_TABLE;
}

impl MulticastForwardingTable {
    /// Multicast LIDs of a block.
    pub const PER_BLOCK: usize = 32;
    /// Ports of a mask.
    pub const PORTS_PER_MASK: usize = 16;

    /// The attribute modifier: position (16 ports each, 0 to 15) and block (32 multicast LIDs each, 9 bits).
    pub const fn modifier(position: u8, block: u16) -> u32 {
        ((position & 0xf) as u32) << 28 | (block & 0x1ff) as u32
    }

    /// Position and block of an attribute modifier; the reserved bits between them are not looked at.
    pub const fn split_modifier(modifier: u32) -> (u8, u16) {
        ((modifier >> 28) as u8, (modifier & 0x1ff) as u16)
    }

    /// The block that holds a multicast LID.
    pub const fn block_of(mlid: MulticastLid) -> u16 {
        (mlid.index() / 32) as u16
    }

    /// A multicast LID's place in its block.
    pub const fn index_of(mlid: MulticastLid) -> usize {
        mlid.index() % 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multicast_modifier_splits_into_what_it_was_made_of() {
        assert_eq!(MulticastForwardingTable::modifier(2, 0x1ff), 0x2000_01ff);
        for position in 0..16 {
            for block in [0, 1, 31, 511] {
                let modifier = MulticastForwardingTable::modifier(position, block);
                assert_eq!(MulticastForwardingTable::split_modifier(modifier), (position, block));
            }
        }
    }

    #[test]
    fn a_lid_lies_in_one_place_of_one_block() {
        let lid = Lid::new(130).unwrap();
        assert_eq!((LinearForwardingTable::block_of(lid), LinearForwardingTable::index_of(lid)), (2, 2));
        let mlid = MulticastLid::new(0xc021).unwrap();
        assert_eq!(
            (MulticastForwardingTable::block_of(mlid), MulticastForwardingTable::index_of(mlid)),
            (1, 1)
        );
    }
}
