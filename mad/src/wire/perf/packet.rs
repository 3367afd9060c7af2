//! The performance management datagram (specification volume 1, 16.1.1): 40 reserved bytes, then 192 of attribute.

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::wire::header::{Mad, MadHeader, Method, MgmtClass};

/// A performance management datagram as it lies on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct PerfMad {
    /// The common header.
    pub header: MadHeader,
    /// Reserved.
    pub reserved: [u8; 40],
    /// The attribute.
    pub data: [u8; 192],
}
const _: () = assert!(size_of::<PerfMad>() == 256);

impl PerfMad {
    /// A request with no data.
    pub fn request(method: Method, attribute_id: u16) -> Self {
        let mut mad = Self::new_zeroed();
        mad.header.base_version = 1;
        mad.header.mgmt_class = MgmtClass::PERF.0;
        mad.header.class_version = 1;
        mad.header.method = method.0;
        mad.header.attribute_id.set(attribute_id);
        mad
    }

    /// The same 256 bytes as a general datagram.
    pub fn into_mad(self) -> Mad {
        zerocopy::transmute!(self)
    }

    /// The same 256 bytes as a performance datagram; whether they are one is said by the class.
    pub fn from_mad(mad: Mad) -> Self {
        zerocopy::transmute!(mad)
    }
}
