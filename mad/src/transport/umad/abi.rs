//! The kernel's user MAD interface, version 5: structures and ioctl numbers (Linux
//! `include/uapi/rdma/ib_user_mad.h` and `rdma_user_ioctl.h`; the facts, measured, are what the tests below
//! fix).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, big_endian};

use crate::transport::{Address, Datagram, GlobalRoute};
use crate::types::{Gid, QKey, Qpn, ServiceLevel};
use crate::wire::header::MAD_LEN;
use crate::wire::rmpp::{RmppHeader, RmppType};
use crate::wire::sa::SA_HEADER_LEN;
use crate::wire::{Mad, MgmtClass};

/// Registers an agent: [`RegisterAgent`].
pub(super) const REGISTER_AGENT: u32 = 0xc01c_1b01;
/// Takes an agent away: its number.
pub(super) const UNREGISTER_AGENT: u32 = 0x4004_1b02;
/// Switches the file to headers with a P_Key index.
pub(super) const ENABLE_PKEY: u32 = 0x0000_1b03;
/// Registers an agent with flags: [`RegisterAgent2`].
pub(super) const REGISTER_AGENT2: u32 = 0xc028_1b04;

/// Flag of [`RegisterAgent2`]: the kernel leaves RMPP to us.
pub(super) const USER_RMPP: u32 = 1;

/// Bytes of the header with and without P_Key index.
pub(super) const HEADER_LEN: usize = 64;
pub(super) const SHORT_HEADER_LEN: usize = 56;

/// Argument of the older registration.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub(super) struct RegisterAgent {
    pub(super) id: u32,
    pub(super) method_mask: [u32; 4],
    pub(super) qpn: u8,
    pub(super) mgmt_class: u8,
    pub(super) mgmt_class_version: u8,
    pub(super) oui: [u8; 3],
    /// 0: no RMPP by the kernel.
    pub(super) rmpp_version: u8,
    /// What C pads.
    pub(super) padding: u8,
}
const _: () = assert!(size_of::<RegisterAgent>() == 28);

/// Argument of the newer registration.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub(super) struct RegisterAgent2 {
    pub(super) id: u32,
    pub(super) qpn: u32,
    pub(super) mgmt_class: u8,
    pub(super) mgmt_class_version: u8,
    pub(super) reserved: u16,
    pub(super) flags: u32,
    pub(super) method_mask: [u64; 2],
    pub(super) oui: u32,
    pub(super) rmpp_version: u8,
    pub(super) reserved2: [u8; 3],
}
const _: () = assert!(size_of::<RegisterAgent2>() == 40);

/// What precedes each datagram. Numbers that are not of a `big_endian` type are in the host's order.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub(super) struct Header {
    pub(super) agent_id: u32,
    /// 0, or the error number with which a request comes back.
    pub(super) status: u32,
    /// How long the kernel holds a request for its answer; 0 for a datagram without one.
    pub(super) timeout_ms: u32,
    pub(super) retries: u32,
    /// Bytes, those of this header included.
    pub(super) length: u32,
    pub(super) qpn: big_endian::U32,
    pub(super) qkey: big_endian::U32,
    pub(super) lid: big_endian::U16,
    pub(super) sl: u8,
    pub(super) path_bits: u8,
    pub(super) grh_present: u8,
    pub(super) gid_index: u8,
    pub(super) hop_limit: u8,
    pub(super) traffic_class: u8,
    pub(super) gid: [u8; 16],
    pub(super) flow_label: big_endian::U32,
    /// From here on only in the longer header.
    pub(super) pkey_index: u16,
    pub(super) reserved: [u8; 6],
}
const _: () = assert!(size_of::<Header>() == HEADER_LEN);
const _: () = assert!(std::mem::offset_of!(Header, pkey_index) == SHORT_HEADER_LEN);

impl Header {
    /// The header for a datagram to send.
    pub(super) fn new(agent_id: u32, timeout_ms: u32, address: &Address) -> Self {
        let mut header = Self {
            agent_id,
            timeout_ms,
            qpn: address.qpn.0.into(),
            qkey: address.qkey.0.into(),
            lid: address.lid.into(),
            sl: address.sl.0,
            path_bits: address.path_bits,
            pkey_index: address.pkey_index,
            ..Self::default()
        };
        if let Some(grh) = address.grh {
            header.grh_present = 1;
            header.gid_index = grh.gid_index;
            header.hop_limit = grh.hop_limit;
            header.traffic_class = grh.traffic_class;
            header.gid = grh.gid.0.to_be_bytes();
            header.flow_label = grh.flow_label.into();
        }
        header
    }

    /// Where a received datagram came from. The kernel does not say with which Q_Key; `qkey` is what an answer
    /// needs.
    fn address(&self, qkey: QKey) -> Address {
        Address {
            lid: self.lid.get(),
            qpn: Qpn(self.qpn.get()),
            qkey,
            sl: ServiceLevel(self.sl),
            path_bits: self.path_bits,
            pkey_index: self.pkey_index,
            grh: (self.grh_present != 0).then(|| GlobalRoute {
                gid: Gid(u128::from_be_bytes(self.gid)),
                gid_index: self.gid_index,
                hop_limit: self.hop_limit,
                traffic_class: self.traffic_class,
                flow_label: self.flow_label.get() & 0x000f_ffff,
            }),
        }
    }
}

/// Bytes of a datagram that say something. The last segment of a table is cut where its data end: the kernel fills it up
/// on the wire, but a simulator's preload library, which knows no RMPP, hands it on as it is, and its clients count
/// records by the length that they get.
fn meaningful_len(mad: &Mad) -> usize {
    const BEFORE_PAYLOAD: usize = 24 + size_of::<RmppHeader>();
    let Ok((rmpp, _)) = RmppHeader::read_from_prefix(&mad.body) else { return MAD_LEN };
    let is_segment = mad.header.mgmt_class() == MgmtClass::SUBN_ADM && rmpp.is_active();
    if is_segment && rmpp.rmpp_type() == Some(RmppType::Data) && rmpp.is_last() {
        let payload = usize::try_from(rmpp.payload_length()).unwrap_or(MAD_LEN).max(SA_HEADER_LEN);
        return BEFORE_PAYLOAD.saturating_add(payload).min(MAD_LEN);
    }
    MAD_LEN
}

/// Header and datagram as written to the file.
pub(super) fn encode(header: &Header, header_len: usize, mad: &Mad) -> ([u8; HEADER_LEN + MAD_LEN], usize) {
    let mut buffer = [0; HEADER_LEN + MAD_LEN];
    let length = header_len + meaningful_len(mad);
    let header = Header { length: length as u32, ..*header };
    buffer[..header_len].copy_from_slice(&header.as_bytes()[..header_len]);
    buffer[header_len..length].copy_from_slice(&mad.bytes()[..length - header_len]);
    (buffer, length)
}

/// What was read from the file: the header and the datagram, of which a returned request may bring the first 24
/// bytes only (the rest is zero then). `None` when it is shorter than that.
pub(super) fn decode(bytes: &[u8], header_len: usize) -> Option<(Header, Datagram)> {
    let (head, data) = bytes.split_at_checked(header_len)?;
    let mut header = Header::default();
    header.as_mut_bytes()[..header_len].copy_from_slice(head);
    if data.len() < 24 {
        return None;
    }
    let mut mad = Mad::zeroed();
    let count = data.len().min(MAD_LEN);
    mad.as_mut_bytes()[..count].copy_from_slice(&data[..count]);
    let qkey = if mad.header.mgmt_class & 0x7f == 1 { QKey(0) } else { QKey::GSI };
    Some((header, Datagram { address: header.address(qkey), mad }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::rmpp::RmppStatus;

    /// The size field of each ioctl number is that of its argument, else the kernel would read or write beyond it.
    #[test]
    fn ioctl_numbers_carry_the_size_of_their_arguments() {
        for (number, size, direction) in [
            (REGISTER_AGENT, size_of::<RegisterAgent>(), 3),
            (REGISTER_AGENT2, size_of::<RegisterAgent2>(), 3),
            (UNREGISTER_AGENT, size_of::<u32>(), 1),
            (ENABLE_PKEY, 0, 0),
        ] {
            assert_eq!((number >> 16 & 0x3fff) as usize, size);
            assert_eq!(number >> 30, direction);
            assert_eq!(number >> 8 & 0xff, 0x1b);
        }
    }

    fn address() -> Address {
        Address {
            lid: 0x1234,
            qpn: Qpn(1),
            qkey: QKey::GSI,
            sl: ServiceLevel(3),
            path_bits: 2,
            pkey_index: 0x0506,
            grh: Some(GlobalRoute {
                gid: Gid(0xfe80_0000_0000_0000_0002_c903_0012_ab01),
                gid_index: 7,
                hop_limit: 64,
                traffic_class: 9,
                flow_label: 0xabcde,
            }),
        }
    }

    #[test]
    fn fields_lie_where_the_kernel_has_them() {
        let mut mad = Mad::zeroed();
        mad.header.mgmt_class = 0x03;
        let header = Header::new(5, 200, &address());
        let (bytes, length) = encode(&header, HEADER_LEN, &mad);
        assert_eq!(length, 320);
        assert_eq!(bytes[0..4], 5_u32.to_ne_bytes());
        assert_eq!(bytes[8..12], 200_u32.to_ne_bytes());
        assert_eq!(bytes[16..20], 320_u32.to_ne_bytes());
        assert_eq!(bytes[20..32], [0, 0, 0, 1, 0x80, 1, 0, 0, 0x12, 0x34, 3, 2]);
        assert_eq!(bytes[32..36], [1, 7, 64, 9]);
        assert_eq!(bytes[36..44], [0xfe, 0x80, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[52..56], [0, 0x0a, 0xbc, 0xde]);
        assert_eq!(bytes[56..58], 0x0506_u16.to_ne_bytes());
        assert_eq!(bytes[64 + 1], 0x03);
    }

    #[test]
    fn what_is_encoded_decodes_with_either_header() {
        let mut mad = Mad::zeroed();
        mad.header.mgmt_class = 0x03;
        mad.body[231] = 0xee;
        for header_len in [HEADER_LEN, SHORT_HEADER_LEN] {
            let (bytes, length) = encode(&Header::new(1, 0, &address()), header_len, &mad);
            let (header, datagram) = decode(&bytes[..length], header_len).unwrap();
            let pkey_index = if header_len == HEADER_LEN { 0x0506 } else { 0 };
            assert_eq!(datagram, Datagram { address: Address { pkey_index, ..address() }, mad });
            assert_eq!(header.length as usize, length);
        }
    }

    /// The last segment of a table ends with its data, everything else is whole.
    #[test]
    fn last_segments_are_cut_to_their_data() {
        let mut mad = Mad::zeroed();
        mad.header.mgmt_class = MgmtClass::SUBN_ADM.0;
        let (first, last) = (RmppHeader::FLAG_FIRST, RmppHeader::FLAG_LAST);
        for (kind, flags, payload, expected) in [
            (RmppType::Data, first | last, 20 + 56, 36 + 20 + 56),
            (RmppType::Data, first | last, 20, 56),
            (RmppType::Data, first | last, 0, 56),
            (RmppType::Data, last, 220, 256),
            (RmppType::Data, last, u32::MAX, 256),
            (RmppType::Data, first, 5000, 256),
            (RmppType::Ack, last, 20, 256),
        ] {
            let header = RmppHeader::new(kind, flags, RmppStatus::OK, 1, payload);
            mad.body[..12].copy_from_slice(header.as_bytes());
            let (_, length) = encode(&Header::new(1, 0, &address()), HEADER_LEN, &mad);
            assert_eq!(length - HEADER_LEN, expected, "{kind:?} {flags} {payload}");
        }
    }

    /// The kernel gives back the first 24 bytes of a request that got no answer.
    #[test]
    fn short_reads_are_padded_or_refused() {
        let mad = Mad::zeroed();
        let (bytes, _) = encode(&Header::new(1, 0, &Address::DIRECTED), HEADER_LEN, &mad);
        assert!(decode(&bytes[..HEADER_LEN + 24], HEADER_LEN).is_some());
        for length in [0, 55, 63, 64, HEADER_LEN + 23] {
            assert!(decode(&bytes[..length], HEADER_LEN).is_none());
        }
    }
}
