//! GUIDInfo (specification volume 1, 14.2.5.5): a block of 8 GUIDs of a port.

use zerocopy::big_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::types::Guid;
use crate::wire::{Attribute, ids};

/// GUIDs 8·n to 8·n+7 of a port, n the attribute modifier. GUID 0 of block 0 is the port's own and read-only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct GuidInfo {
    /// The GUIDs; 0 for none.
    pub guids: [U64; 8],
}
const _: () = assert!(size_of::<GuidInfo>() == 64);

impl Attribute for GuidInfo {
    const ID: u16 = ids::sm::GUID_INFO;
}

impl GuidInfo {
    /// GUIDs of a block.
    pub const PER_BLOCK: usize = 8;

    /// The GUID at a place of the block; `None` beyond 7.
    pub fn guid(&self, index: usize) -> Option<Guid> {
        self.guids.get(index).map(|g| Guid(g.get()))
    }
}
