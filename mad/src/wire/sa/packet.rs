//! The subnet administration datagram (specification volume 1, 15.2.1): header, RMPP header, SA header, 200 bytes of data.

use zerocopy::big_endian::{U16, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::wire::header::{Mad, MadHeader, Method, MgmtClass, Status};
use crate::wire::rmpp::RmppHeader;

/// Bytes of attribute in each datagram.
pub const SA_DATA_LEN: usize = 200;
/// Bytes of SA header (SM_Key, AttributeOffset, ComponentMask) that each RMPP segment repeats.
pub const SA_HEADER_LEN: usize = 20;

/// A subnet administration datagram as it lies on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct SaMad {
    /// The common header.
    pub header: MadHeader,
    /// The RMPP header; all zero for a datagram that stands alone.
    pub rmpp: RmppHeader,
    /// SM_Key.
    pub sm_key: U64,
    /// AttributeOffset: distance between records of a table, in units of 8 bytes.
    pub attribute_offset: U16,
    /// Reserved.
    pub reserved: U16,
    /// ComponentMask.
    pub component_mask: U64,
    /// The attribute, or a part of the table.
    pub data: [u8; SA_DATA_LEN],
}
const _: () = assert!(size_of::<SaMad>() == 256);

impl SaMad {
    /// The SA's class version.
    pub const CLASS_VERSION: u8 = 2;

    /// A request with no data.
    pub fn request(method: Method, attribute_id: u16, component_mask: u64) -> Self {
        let mut mad = Self::new_zeroed();
        mad.header.base_version = 1;
        mad.header.mgmt_class = MgmtClass::SUBN_ADM.0;
        mad.header.class_version = Self::CLASS_VERSION;
        mad.header.method = method.0;
        mad.header.attribute_id.set(attribute_id);
        mad.component_mask.set(component_mask);
        mad
    }

    /// The answer to a request, with its headers and no data.
    pub fn response_to(request: &Self, status: Status) -> Self {
        let mut mad = *request;
        mad.header.method = request.header.method().response().0;
        mad.header.status.set(status.0);
        mad.rmpp = RmppHeader::new_zeroed();
        mad.data = [0; SA_DATA_LEN];
        mad
    }

    /// The same 256 bytes as a general datagram.
    pub fn into_mad(self) -> Mad {
        zerocopy::transmute!(self)
    }

    /// The same 256 bytes as an SA datagram; whether they are one is said by the class.
    pub fn from_mad(mad: Mad) -> Self {
        zerocopy::transmute!(mad)
    }
}
