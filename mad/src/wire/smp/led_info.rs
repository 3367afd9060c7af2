//! LedInfo (specification volume 1, 14.2.5.15): 4 bytes; the port's locator light. The modifier is the port.

use zerocopy::big_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::wire::{Attribute, ids};

/// Whether the port's light is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct LedInfo {
    word: U32,
}
const _: () = assert!(size_of::<LedInfo>() == 4);

impl Attribute for LedInfo {
    const ID: u16 = ids::sm::LED_INFO;
}

impl LedInfo {
    word_bits! {
        /// LedMask: 1 for on.
        led_mask, set_led_mask: word as u32[31:31];
    }
}
