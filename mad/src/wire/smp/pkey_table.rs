//! P_KeyTable (specification volume 1, 14.2.5.7): a block of 32 P_Keys of a port.

use zerocopy::big_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::types::{PKey, PortNum};
use crate::wire::{Attribute, ids};

/// P_Keys 32·n to 32·n+31 of a port, n the block in the attribute modifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct PKeyTable {
    /// The keys; 0 for an empty entry.
    pub pkeys: [U16; 32],
}
const _: () = assert!(size_of::<PKeyTable>() == 64);

impl Attribute for PKeyTable {
    const ID: u16 = ids::sm::PKEY_TABLE;
}

impl PKeyTable {
    /// P_Keys of a block.
    pub const PER_BLOCK: usize = 32;

    /// The attribute modifier: block (lower half) and port (upper half; a switch's port, 0 for a channel adapter).
    pub fn modifier(port: PortNum, block: u16) -> u32 {
        u32::from(port.0) << 16 | u32::from(block)
    }

    /// Port and block of an attribute modifier; `None` when the port is beyond 255.
    pub fn split_modifier(modifier: u32) -> Option<(PortNum, u16)> {
        let port = u8::try_from(modifier >> 16).ok()?;
        Some((PortNum(port), modifier as u16))
    }

    /// From up to 32 keys; the rest stays empty.
    pub fn from_keys(keys: &[PKey]) -> Self {
        let mut pkeys = [U16::ZERO; Self::PER_BLOCK];
        for (slot, key) in pkeys.iter_mut().zip(keys) {
            slot.set(key.0);
        }
        Self { pkeys }
    }

    /// The keys, empty entries included.
    pub fn keys(&self) -> [PKey; 32] {
        self.pkeys.map(|k| PKey(k.get()))
    }
}
