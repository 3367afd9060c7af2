//! M_Keys: what lets a manager change a port.

use std::fmt;

use zerocopy::big_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// An M_Key; 0 is none. Whoever knows it commands the port, so it is never printed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MKey(pub u64);

impl MKey {
    /// No key: whoever asks is obeyed.
    pub const NONE: Self = Self(0);

    /// Whether it is one.
    pub const fn is_some(self) -> bool {
        self.0 != 0
    }
}

impl fmt::Debug for MKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_some() { "MKey" } else { "MKey::NONE" })
    }
}

/// An M_Key on the wire: eight bytes, of which `Debug` tells only whether they are a key.
#[derive(Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct WireKey(U64);

impl WireKey {
    /// The number.
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// Another number.
    pub fn set(&mut self, key: u64) {
        self.0.set(key);
    }

    /// As a key.
    pub const fn key(self) -> MKey {
        MKey(self.get())
    }
}

impl fmt::Debug for WireKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use zerocopy::FromZeros;

    use crate::wire::smp::{PortInfo, Smp};

    #[test]
    fn b64_no_key_is_printed_with_what_holds_it() {
        let mut smp = Smp::new_zeroed();
        smp.m_key.set(0x0123_4567_89ab_cdef);
        let mut info = PortInfo::new_zeroed();
        info.m_key.set(0x0123_4567_89ab_cdef);
        for text in [format!("{smp:x?}"), format!("{info:x?}"), format!("{:?}", smp.m_key.key())] {
            assert!(text.contains("MKey") && !text.contains("123456789abcdef"), "{text}");
        }
    }
}
