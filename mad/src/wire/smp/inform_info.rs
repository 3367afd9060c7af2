//! InformInfo (specification volume 1, 13.4.8.3): 36 bytes; a subscription to notices.

use zerocopy::big_endian::{U16, U32, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::types::Gid;
use crate::wire::{Attribute, ids};

/// What to report to whom. The generic and the vendor form differ in the meaning of three fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct InformInfo {
    /// Reports about this GID only; 0 to select by LID range.
    pub gid: U128,
    /// LIDRangeBegin; 0xFFFF for all LIDs.
    pub lid_range_begin: U16,
    /// LIDRangeEnd.
    pub lid_range_end: U16,
    reserved: U16,
    /// 1 for the generic form, 0 for a vendor's.
    pub is_generic: u8,
    /// 1 subscribes, 0 ends the subscription.
    pub subscribe: u8,
    /// Type of notice; 0xFFFF for all.
    pub notice_type: U16,
    /// TrapNumber (generic; 0xFFFF for all) or DeviceID (vendor).
    pub trap_number_or_device_id: U16,
    qpn_and_resp_time: U32,
    producer_type_or_vendor: U32,
}
const _: () = assert!(size_of::<InformInfo>() == 36);

impl Attribute for InformInfo {
    const ID: u16 = ids::common::INFORM_INFO;
}

impl InformInfo {
    /// Matches every LID, type, trap number or (as 24 bits) producer.
    pub const ALL: u16 = 0xffff;
    /// Matches every producer.
    pub const ALL_PRODUCERS: u32 = 0x00ff_ffff;

    word_bits! {
        /// QPN of a subscription that is ended.
        qpn, set_qpn: qpn_and_resp_time as u32[31:8];
        /// RespTimeValue: the subscriber answers within 4.096 µs · 2^n.
        resp_time_value, set_resp_time_value: qpn_and_resp_time as u32[4:0];
        /// ProducerType (generic) or VendorID (vendor); 0xFFFFFF for all.
        producer_type_or_vendor_id, set_producer_type_or_vendor_id: producer_type_or_vendor as u32[23:0];
    }

    /// The GID, if the subscription is by GID.
    pub const fn gid(&self) -> Option<Gid> {
        match self.gid.get() {
            0 => None,
            gid => Some(Gid(gid)),
        }
    }
}
