//! Wire formats: one type per attribute, named as the InfiniBand Architecture Specification names it.
//!
//! Two layers, after the manner of smoltcp:
//! - the *raw* struct is the layout itself (`zerocopy`, big-endian, size asserted at compile time). Decoding is a length
//!   check and a cast, so it never panics and never trusts a length in the data; every bit pattern decodes, encoding
//!   gives the same bytes back, and reserved bits are kept as they came where a Set follows a Get;
//! - *typed accessors* beside the fields (`port_state()`, `lid()`, `node_type()`) return `Option` where the wire allows
//!   values that the type doesn't.
//!
//! Fields that share a byte (or a word) are read and written by accessors made with the `bits!` (`word_bits!`) macro; a
//! setter leaves the other bits as they were.

/// Accessors for bits `hi..=lo` of one byte; the setter leaves the byte's other bits as they came and drops bits of the
/// value that don't fit. One block a type: in tests it also lists the fields, which [`packed`] then checks one by one
/// (a type that is missing there shows as an unused constant).
macro_rules! bits {
    // With MTU, rate and packet life time of a record of subnet administration, each with its selector.
    (bounded_by_selectors; $($others:tt)*) => {
        bits! {
            /// MTU selector as on the wire.
            mtu_selector_raw, set_mtu_selector_raw: mtu_byte[7:6];
            /// MTU as on the wire.
            mtu_raw, set_mtu_raw: mtu_byte[5:0];
            /// Rate selector as on the wire.
            rate_selector_raw, set_rate_selector_raw: rate_byte[7:6];
            /// Rate as on the wire.
            rate_raw, set_rate_raw: rate_byte[5:0];
            /// Packet life time selector as on the wire.
            packet_life_time_selector_raw, set_packet_life_time_selector_raw: packet_life_time_byte[7:6];
            /// PacketLifeTime: 4.096 µs · 2^n.
            packet_life_time, set_packet_life_time: packet_life_time_byte[5:0];
            $($others)*
        }
        bounded_by_selectors!();
    };
    ($($(#[$doc:meta])* $get:ident, $set:ident: $byte:ident[$hi:literal:$lo:literal];)*) => {
        $(
            $(#[$doc])*
            pub const fn $get(&self) -> u8 {
                (self.$byte >> $lo) & (0xff >> (7 - $hi + $lo))
            }
            #[doc = concat!("Sets what [`", stringify!($get), "`](Self::", stringify!($get), ") reads.")]
            pub const fn $set(&mut self, value: u8) {
                const MASK: u8 = (0xff >> (7 - $hi + $lo)) << $lo;
                self.$byte = (self.$byte & !MASK) | ((value << $lo) & MASK);
            }
        )*
        #[cfg(test)]
        pub(in crate::wire) const BYTE_FIELDS: &'static [crate::wire::packed::PackedField<Self>] = &[$(
            crate::wire::packed::PackedField {
                name: stringify!($get),
                get: |it| u64::from(it.$get()),
                set: |it, value| it.$set(value as u8),
                start: std::mem::offset_of!(Self, $byte) * 8 + 7 - $hi,
                width: $hi - $lo + 1,
            },
        )*];
    };
}

/// MTU, rate and packet life time of a record of subnet administration, each with its selector, from the fields that `bits!`
/// reads.
macro_rules! bounded_by_selectors {
    () => {
        /// How the MTU is meant in a query.
        pub const fn mtu_selector(&self) -> crate::wire::sa::Selector {
            crate::wire::sa::Selector::from_wire(self.mtu_selector_raw())
        }

        /// MTU; `None` for an undefined value.
        pub const fn mtu(&self) -> Option<crate::types::Mtu> {
            crate::types::Mtu::from_wire(self.mtu_raw())
        }

        /// Sets MTU and its selector.
        pub const fn set_mtu(&mut self, selector: crate::wire::sa::Selector, mtu: crate::types::Mtu) {
            self.set_mtu_selector_raw(selector.to_wire());
            self.set_mtu_raw(mtu.to_wire());
        }

        /// How the rate is meant in a query.
        pub const fn rate_selector(&self) -> crate::wire::sa::Selector {
            crate::wire::sa::Selector::from_wire(self.rate_selector_raw())
        }

        /// Rate; `None` for an undefined value.
        pub fn rate(&self) -> Option<crate::types::Rate> {
            crate::types::Rate::from_wire(self.rate_raw())
        }

        /// Sets rate and its selector.
        pub const fn set_rate(&mut self, selector: crate::wire::sa::Selector, rate: crate::types::Rate) {
            self.set_rate_selector_raw(selector.to_wire());
            self.set_rate_raw(rate.to_wire());
        }

        /// How the packet life time is meant in a query.
        pub const fn packet_life_time_selector(&self) -> crate::wire::sa::Selector {
            crate::wire::sa::Selector::from_wire(self.packet_life_time_selector_raw())
        }
    };
}

/// As `bits!` for a field of a big-endian word (`U16`, `U32`, `U64`): bits `hi..=lo` of its value.
macro_rules! word_bits {
    ($($(#[$doc:meta])* $get:ident, $set:ident: $word:ident as $int:ident[$hi:literal:$lo:literal];)*) => {
        $(
            $(#[$doc])*
            pub const fn $get(&self) -> $int {
                (self.$word.get() >> $lo) & ($int::MAX >> ($int::BITS - 1 - $hi + $lo))
            }
            #[doc = concat!("Sets what [`", stringify!($get), "`](Self::", stringify!($get), ") reads.")]
            pub fn $set(&mut self, value: $int) {
                const MASK: $int = ($int::MAX >> ($int::BITS - 1 - $hi + $lo)) << $lo;
                self.$word.set((self.$word.get() & !MASK) | ((value << $lo) & MASK));
            }
        )*
        #[cfg(test)]
        pub(in crate::wire) const WORD_FIELDS: &'static [crate::wire::packed::PackedField<Self>] = &[$(
            crate::wire::packed::PackedField {
                name: stringify!($get),
                get: |it| u64::from(it.$get()),
                set: |it, value| it.$set(value as $int),
                start: std::mem::offset_of!(Self, $word) * 8 + ($int::BITS as usize) - 1 - $hi,
                width: $hi - $lo + 1,
            },
        )*];
    };
}

/// The common functions of an attribute: its ID, and decoding and encoding as a prefix of a MAD's data.
pub trait Attribute:
    zerocopy::FromBytes
    + zerocopy::IntoBytes
    + zerocopy::KnownLayout
    + zerocopy::Immutable
    + zerocopy::Unaligned
    + Copy
{
    /// The attribute ID in the MAD header.
    const ID: u16;

    /// All bytes zero.
    fn zeroed() -> Self {
        Self::new_zeroed()
    }

    /// The attribute at the head of a MAD's data; `None` when fewer bytes came than it has.
    fn decode(data: &[u8]) -> Option<Self> {
        Self::read_from_prefix(data).ok().map(|(value, _)| value)
    }

    /// Writes the attribute to the head of a MAD's data; false, and nothing written, when there is no room.
    #[must_use]
    fn encode(&self, data: &mut [u8]) -> bool {
        self.write_to_prefix(data).is_ok()
    }
}

pub mod class_port_info;
pub mod header;
pub mod ids;
pub mod perf;
pub mod rmpp;
pub mod sa;
pub mod smp;
pub mod vendor;

#[cfg(test)]
mod golden;
#[cfg(test)]
mod packed;

pub use class_port_info::ClassPortInfo;
pub use header::{Mad, MadHeader, Method, MgmtClass, Status};
