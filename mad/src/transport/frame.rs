//! A datagram as the packet that carries it: local route header, global route header, base and datagram
//! extended transport headers (specification volume 1, chapters 7 to 9), in a record of link type 197 (ERF,
//! type 21). Link type 247, the bare packet, is registered too, but Wireshark 4.0 does not know it.
//!
//! The checksums at the end are left zero: the kernel hands up datagrams without them.

use std::time::Duration;

use zerocopy::big_endian::{U16, U32, U128};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned, little_endian};

use super::{Address, Datagram, GlobalRoute};
use crate::types::{Gid, PKey, QKey, Qpn, ServiceLevel};
use crate::wire::Mad;
use crate::wire::header::MAD_LEN;

const CHECKSUMS: usize = 6;
const RECORD_HEAD: usize = size_of::<Record>();
/// Record type: an InfiniBand packet.
const INFINIBAND: u8 = 21;
/// Record flags: interface 0, records of varying length.
const VARYING_LENGTH: u8 = 4;

/// Opcode of an unreliable datagram that is sent whole.
const UD_SEND_ONLY: u8 = 0x64;
/// Link next header: base transport header without and with a global route header before it.
const LNH_LOCAL: u8 = 2;
const LNH_GLOBAL: u8 = 3;
/// Next header of a global route header: base transport header.
const NEXT_BTH: u8 = 0x1b;

/// Head of an ERF record.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Record {
    /// Seconds since the Unix epoch, in 2^-32; the one little-endian field.
    time: little_endian::U64,
    kind: u8,
    flags: u8,
    /// Bytes with this head.
    record_length: U16,
    lost: U16,
    /// Bytes of the packet.
    wire_length: U16,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct LocalRoute {
    vl_and_version: u8,
    sl_and_next: u8,
    dlid: U16,
    /// Words of 4 bytes from here to the invariant checksum, inclusive.
    length: U16,
    slid: U16,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct GlobalRouteHeader {
    version_class_flow: U32,
    payload_length: U16,
    next_header: u8,
    hop_limit: u8,
    sgid: U128,
    dgid: U128,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Transport {
    opcode: u8,
    flags: u8,
    pkey: U16,
    destination_qp: U32,
    sequence: U32,
    qkey: U32,
    source_qp: U32,
}
const _: () = assert!(size_of::<LocalRoute>() == 8 && size_of::<GlobalRouteHeader>() == 40);
const _: () = assert!(size_of::<Transport>() == 20 && RECORD_HEAD == 16);

/// Which way a packet went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To us.
    Inbound,
    /// From us.
    Outbound,
}

/// A record with the packet; `time` is since the Unix epoch. `local_lid` is our own LID, which a directed route
/// does not need.
pub(super) fn encode(datagram: &Datagram, direction: Direction, local_lid: u16, time: Duration) -> Vec<u8> {
    let Address { lid, qpn, qkey, sl, path_bits, grh, .. } = datagram.address;
    let subnet_management = qpn.0 == 0;
    let own = if lid == 0xffff { lid } else { local_lid | u16::from(path_bits) };
    let words = |bytes: usize| (bytes / 4) as u16;
    let after_routes = size_of::<Transport>() + MAD_LEN + 4;
    let whole = 8 + after_routes + if grh.is_some() { 40 } else { 0 };
    let wire_length = whole + 2;
    let mut packet = Vec::with_capacity(RECORD_HEAD + wire_length);
    let record = Record {
        time: ((time.as_secs() << 32) | ((u64::from(time.subsec_nanos()) << 32) / 1_000_000_000)).into(),
        kind: INFINIBAND,
        flags: VARYING_LENGTH,
        record_length: ((RECORD_HEAD + wire_length) as u16).into(),
        lost: U16::ZERO,
        wire_length: (wire_length as u16).into(),
    };
    packet.extend_from_slice(record.as_bytes());
    let (slid, dlid) = if direction == Direction::Outbound { (own, lid) } else { (lid, own) };
    let local = LocalRoute {
        vl_and_version: if subnet_management { 15 << 4 } else { 0 },
        sl_and_next: sl.0 << 4 | if grh.is_some() { LNH_GLOBAL } else { LNH_LOCAL },
        dlid: dlid.into(),
        length: words(whole).into(),
        slid: slid.into(),
    };
    packet.extend_from_slice(local.as_bytes());
    if let Some(route) = grh {
        // Our own GID is not known here.
        let (sgid, dgid) =
            if direction == Direction::Outbound { (Gid(0), route.gid) } else { (route.gid, Gid(0)) };
        let global = GlobalRouteHeader {
            version_class_flow: (6 << 28
                | u32::from(route.traffic_class) << 20
                | route.flow_label & 0xf_ffff)
                .into(),
            payload_length: (after_routes as u16).into(),
            next_header: NEXT_BTH,
            hop_limit: route.hop_limit,
            sgid: sgid.0.into(),
            dgid: dgid.0.into(),
        };
        packet.extend_from_slice(global.as_bytes());
    }
    // Both ends of management datagrams use the same well-known queue pair, but for what a program of its own
    // receives.
    let own_qp = if subnet_management { 0 } else { 1 };
    let (source_qp, destination_qp) =
        if direction == Direction::Outbound { (own_qp, qpn.0) } else { (qpn.0, own_qp) };
    let transport = Transport {
        opcode: UD_SEND_ONLY,
        flags: 0,
        pkey: PKey::DEFAULT_FULL.0.into(),
        destination_qp: destination_qp.into(),
        sequence: U32::ZERO,
        qkey: qkey.0.into(),
        source_qp: source_qp.into(),
    };
    packet.extend_from_slice(transport.as_bytes());
    packet.extend_from_slice(datagram.mad.bytes());
    packet.extend_from_slice(&[0; CHECKSUMS]);
    packet
}

/// The datagram in a record, with the address of the other end; `None` when it is no whole management datagram.
pub(super) fn decode(record: &[u8], direction: Direction) -> Option<Datagram> {
    let (head, packet) = Record::read_from_prefix(record).ok()?;
    if head.kind != INFINIBAND {
        return None;
    }
    let (local, rest) = LocalRoute::read_from_prefix(packet).ok()?;
    let (global, rest) = match local.sl_and_next & 3 {
        LNH_LOCAL => (GlobalRouteHeader::new_zeroed(), rest),
        LNH_GLOBAL => GlobalRouteHeader::read_from_prefix(rest).ok()?,
        _ => return None,
    };
    let (transport, rest) = Transport::read_from_prefix(rest).ok()?;
    if transport.opcode != UD_SEND_ONLY {
        return None;
    }
    let mad = Mad::decode(rest)?;
    let outbound = direction == Direction::Outbound;
    let first = global.version_class_flow.get();
    let grh = (local.sl_and_next & 3 == LNH_GLOBAL).then(|| GlobalRoute {
        gid: Gid(if outbound { global.dgid } else { global.sgid }.get()),
        gid_index: 0,
        hop_limit: global.hop_limit,
        traffic_class: (first >> 20) as u8,
        flow_label: first & 0xf_ffff,
    });
    let qpn = if outbound { transport.destination_qp } else { transport.source_qp };
    let address = Address {
        lid: if outbound { local.dlid } else { local.slid }.get(),
        qpn: Qpn(qpn.get() & 0x00ff_ffff),
        qkey: QKey(transport.qkey.get()),
        sl: ServiceLevel(local.sl_and_next >> 4),
        path_bits: 0,
        pkey_index: 0,
        grh,
    };
    Some(Datagram { address, mad })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn address() -> impl Strategy<Value = Address> {
        let grh = (any::<u128>(), any::<u8>(), any::<u8>(), 0..1_u32 << 20).prop_map(
            |(gid, hop_limit, traffic_class, flow_label)| GlobalRoute {
                gid: Gid(gid),
                gid_index: 0,
                hop_limit,
                traffic_class,
                flow_label,
            },
        );
        (any::<u16>(), 0..1_u32 << 24, any::<u32>(), 0..16_u8, prop::option::of(grh)).prop_map(
            |(lid, qpn, qkey, sl, grh)| Address {
                lid,
                qpn: Qpn(qpn),
                qkey: QKey(qkey),
                sl: ServiceLevel(sl),
                path_bits: 0,
                pkey_index: 0,
                grh,
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_encoded_decodes(address in address(), bytes in prop::collection::vec(any::<u8>(), MAD_LEN)) {
            let datagram = Datagram { address, mad: Mad::decode(&bytes).unwrap() };
            for direction in [Direction::Inbound, Direction::Outbound] {
                let record = encode(&datagram, direction, 7, Duration::from_millis(1500));
                let words = usize::from(u16::from_be_bytes([record[20], record[21]]));
                prop_assert_eq!(words * 4 + 2 + RECORD_HEAD, record.len());
                prop_assert_eq!(&record[..8], &[0, 0, 0, 0x80, 1, 0, 0, 0]);
                prop_assert_eq!(decode(&record, direction), Some(datagram));
            }
        }

        #[test]
        fn anything_decodes_or_is_refused(
            mut packet in prop::collection::vec(any::<u8>(), 0..400),
            plausible in any::<bool>(),
        ) {
            if plausible && packet.len() > 24 {
                packet[8] = INFINIBAND;
                packet[24] = UD_SEND_ONLY;
            }
            for direction in [Direction::Inbound, Direction::Outbound] {
                if let Some(datagram) = decode(&packet, direction) {
                    prop_assert!(packet.len() >= RECORD_HEAD + 8 + 20 + MAD_LEN);
                    prop_assert!(packet.windows(MAD_LEN).any(|window| window == datagram.mad.bytes()));
                }
            }
        }
    }
}
