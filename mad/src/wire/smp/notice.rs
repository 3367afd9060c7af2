//! Notice (specification volume 1, 13.4.8.2): what a trap says. 64 bytes in a subnet management packet; the SA's Report
//! adds the issuer's GID ([`crate::wire::sa::Report`]).

use zerocopy::big_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::trap_data::{TrapData, TrapDetails};
use crate::types::{Lid, NodeType};
use crate::wire::{Attribute, ids};

/// A notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Notice {
    generic_and_type: u8,
    producer_type_high: u8,
    producer_type_low: U16,
    /// TrapNumber (generic) or DeviceID (vendor).
    pub trap_number_or_device_id: U16,
    /// LID of the issuer.
    pub issuer_lid: U16,
    toggle_and_count: U16,
    /// Data details; see [`Notice::details`].
    pub data: [u8; 54],
}
const _: () = assert!(size_of::<Notice>() == 64);

impl Attribute for Notice {
    const ID: u16 = ids::common::NOTICE;
}

/// Type of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoticeType {
    /// Fatal.
    Fatal,
    /// Urgent.
    Urgent,
    /// Security.
    Security,
    /// Subnet management.
    SubnetManagement,
    /// Informational.
    Informational,
    /// An empty notice.
    Empty,
}

impl NoticeType {
    /// From the wire; `None` for an undefined value.
    pub const fn from_wire(raw: u8) -> Option<Self> {
        match raw {
            0 => Some(Self::Fatal),
            1 => Some(Self::Urgent),
            2 => Some(Self::Security),
            3 => Some(Self::SubnetManagement),
            4 => Some(Self::Informational),
            0x7f => Some(Self::Empty),
            _ => None,
        }
    }

    /// The wire's value.
    pub const fn to_wire(self) -> u8 {
        match self {
            Self::Fatal => 0,
            Self::Urgent => 1,
            Self::Security => 2,
            Self::SubnetManagement => 3,
            Self::Informational => 4,
            Self::Empty => 0x7f,
        }
    }
}

impl Notice {
    /// ProducerType of a class manager (the SM itself); 1 to 3 are [`NodeType`]'s values.
    pub const PRODUCER_CLASS_MANAGER: u32 = 4;

    bits! {
        /// IsGeneric: 1 for a trap of the specification, 0 for a vendor's.
        is_generic_bit, set_is_generic_bit: generic_and_type[7:7];
        /// Type as on the wire.
        notice_type_raw, set_notice_type_raw: generic_and_type[6:0];
    }

    word_bits! {
        /// NoticeToggle: alternates while the same notice is kept in the agent's queue.
        notice_toggle, set_notice_toggle: toggle_and_count as u16[15:15];
        /// NoticeCount.
        notice_count, set_notice_count: toggle_and_count as u16[14:0];
    }

    /// A generic notice.
    pub fn generic(kind: NoticeType, producer: u32, trap_number: u16, issuer: Option<Lid>) -> Self {
        let mut notice = Self::zeroed();
        notice.set_is_generic_bit(1);
        notice.set_notice_type_raw(kind.to_wire());
        notice.set_producer_type_or_vendor_id(producer);
        notice.trap_number_or_device_id.set(trap_number);
        notice.issuer_lid.set(issuer.map_or(0, Lid::get));
        notice
    }

    /// The same notice with these details at the head of its data.
    pub fn with_data<T: TrapData>(mut self, data: &T) -> Self {
        self.data[..size_of::<T>()].copy_from_slice(data.as_bytes());
        self
    }

    /// Whether this is a trap of the specification.
    pub const fn is_generic(&self) -> bool {
        self.is_generic_bit() == 1
    }

    /// Type; `None` for an undefined value.
    pub const fn notice_type(&self) -> Option<NoticeType> {
        NoticeType::from_wire(self.notice_type_raw())
    }

    /// ProducerType (generic) or VendorID (vendor), 24 bits.
    pub fn producer_type_or_vendor_id(&self) -> u32 {
        u32::from(self.producer_type_high) << 16 | u32::from(self.producer_type_low.get())
    }

    /// Sets ProducerType or VendorID, of which 24 bits count.
    pub fn set_producer_type_or_vendor_id(&mut self, value: u32) {
        let [_, high, mid, low] = value.to_be_bytes();
        self.producer_type_high = high;
        self.producer_type_low = U16::from_bytes([mid, low]);
    }

    /// The kind of node that issued a generic notice; `None` for a class manager, other values and vendors' notices.
    pub fn producer(&self) -> Option<NodeType> {
        let raw = u8::try_from(self.producer_type_or_vendor_id()).ok()?;
        if self.is_generic() { NodeType::from_wire(raw) } else { None }
    }

    /// TrapNumber; `None` for a vendor's notice.
    pub fn trap_number(&self) -> Option<u16> {
        self.is_generic().then(|| self.trap_number_or_device_id.get())
    }

    /// The issuer's LID; `None` when it has none.
    pub fn issuer_lid(&self) -> Option<Lid> {
        Lid::new(self.issuer_lid.get())
    }

    /// The details, by trap number.
    pub fn details(&self) -> TrapDetails {
        TrapDetails::decode(self)
    }
}
