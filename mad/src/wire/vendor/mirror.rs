//! The datagrams by which rsm's managers tell each other their state: a class of the vendor range that has RMPP and is
//! divided by OUI (specification volume 1, 13.4.4 table 110 and 16.5).
//!
//! After the common header and the RMPP header come a reserved byte and the OUI, then 216 bytes of data.

use zerocopy::FromZeros;

use crate::wire::{Mad, Method, MgmtClass};

/// The class.
pub const CLASS: MgmtClass = MgmtClass(0x4b);
/// A locally administered OUI ("RSM" with the local bit): nobody else has it on their devices.
pub const OUI: [u8; 3] = [0x52, 0x53, 0x4d];
/// The only attribute.
pub const MIRROR_STATE: u16 = 0x0010;
/// Bytes before the data, from the end of the common header on: RMPP header, a reserved byte, OUI.
const HEAD: usize = 16;

/// A request with this transaction ID; data beyond 216 bytes are left out.
pub fn request(tid: u64, data: &[u8]) -> Mad {
    let mut mad = Mad::new_zeroed();
    mad.header.base_version = 1;
    mad.header.mgmt_class = CLASS.0;
    mad.header.class_version = 1;
    mad.header.method = Method::GET.0;
    mad.header.transaction_id.set(tid);
    mad.header.attribute_id.set(MIRROR_STATE);
    mad.body[HEAD - OUI.len()..HEAD].copy_from_slice(&OUI);
    let length = data.len().min(mad.body.len() - HEAD);
    mad.body[HEAD..HEAD + length].copy_from_slice(&data[..length]);
    mad
}

/// Whether a datagram asks for something: acknowledgements of RMPP have the same method.
pub fn is_request(mad: &Mad) -> bool {
    const RMPP_TYPE: usize = 1;
    mad.header.method == Method::GET.0 && mad.body[RMPP_TYPE] == 0
}

/// The data of a datagram of the class.
pub fn data(mad: &Mad) -> &[u8] {
    &mad.body[HEAD..]
}
