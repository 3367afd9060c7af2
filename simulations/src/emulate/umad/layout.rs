//! Between umad's bytes and typed datagrams, and the classes' data offsets (specification volume 1, 13.6.3 and the
//! classes' chapters).

use mad::transport::{Address, Datagram, GlobalRoute};
use mad::types::{Gid, QKey, Qpn, ServiceLevel};
use mad::wire::{Mad, MadHeader, MgmtClass};
use rsm_preload_protocol::umad::{HEADER_LEN, Header, MAD_LEN, OLD_HEADER_LEN};
use rsm_preload_protocol::{Frame, FrameKind};
use zerocopy::IntoBytes;

/// Which of the two header lengths a descriptor uses.
pub(super) const fn header_len(pkey_index: bool) -> usize {
    if pkey_index { HEADER_LEN } else { OLD_HEADER_LEN }
}

/// Where the class's data begin: what lies before is repeated in every RMPP segment.
pub(super) const fn data_offset(class: MgmtClass) -> usize {
    match class.0 {
        0x03 => 56,
        0x06 | 0x10 | 0x12 => 64,
        0x30..=0x4f => 40,
        _ => 24,
    }
}

/// Whether messages of the class can be longer than one datagram.
pub(super) const fn is_rmpp_class(class: MgmtClass) -> bool {
    data_offset(class) != 24
}

/// Whether the class is of the vendor range that an OUI divides.
pub(super) const fn has_oui(class: u8) -> bool {
    matches!(class, 0x30..=0x4f)
}

/// Whether this answers something (and so is routed by its transaction ID).
pub(super) fn is_response(header: &MadHeader) -> bool {
    const BOARD_MANAGEMENT: u8 = 0x05;
    header.method().is_response()
        || (header.mgmt_class == BOARD_MANAGEMENT && header.attribute_modifier.get() & 1 != 0)
}

/// The address that a written header asks for.
pub(super) fn address_of(header: &Header) -> Address {
    Address {
        lid: header.lid.get(),
        qpn: Qpn(header.qpn.get() & 0x00ff_ffff),
        qkey: QKey(header.qkey.get()),
        sl: ServiceLevel(header.sl & 0xf),
        path_bits: header.path_bits,
        pkey_index: header.pkey_index.get(),
        grh: (header.grh_present != 0).then(|| GlobalRoute {
            gid: Gid(u128::from_be_bytes(header.gid)),
            gid_index: header.gid_index,
            hop_limit: header.hop_limit,
            traffic_class: header.traffic_class,
            flow_label: header.flow_label.get(),
        }),
    }
}

/// The header of a received message of `mad_len` bytes.
fn received_header(address: &Address, agent: u32, header_len: usize, mad_len: usize) -> Header {
    let mut header = Header::zeroed();
    header.id.set(agent);
    header.length.set((header_len + mad_len) as u32);
    header.qpn.set(address.qpn.0);
    header.lid.set(address.lid);
    header.sl = address.sl.0;
    header.path_bits = address.path_bits;
    header.pkey_index.set(address.pkey_index);
    if let Some(grh) = &address.grh {
        header.grh_present = 1;
        header.gid = grh.gid.0.to_be_bytes();
        header.gid_index = grh.gid_index;
        header.hop_limit = grh.hop_limit;
        header.traffic_class = grh.traffic_class;
        header.flow_label.set(grh.flow_label);
    }
    header
}

/// A packet for the client: frame prefix, umad header, data.
pub(super) fn packet(header: &Header, header_len: usize, data: &[u8]) -> Vec<u8> {
    let length = header_len + data.len();
    let mut packet = Vec::with_capacity(Frame::LEN + length);
    packet.extend_from_slice(&Frame { kind: FrameKind::Whole, length: length as u32 }.encode());
    packet.extend_from_slice(&header.as_bytes()[..header_len]);
    packet.extend_from_slice(data);
    packet
}

/// The packet of a received message.
pub(super) fn received(address: &Address, agent: u32, header_len: usize, message: &[u8]) -> Vec<u8> {
    packet(&received_header(address, agent, header_len, message.len()), header_len, message)
}

/// The datagram of up to 256 written bytes; what is missing is zero.
pub(super) fn datagram(address: Address, data: &[u8]) -> Datagram {
    let mut mad = Mad::zeroed();
    let length = data.len().min(MAD_LEN);
    mad.as_mut_bytes()[..length].copy_from_slice(&data[..length]);
    Datagram { address, mad }
}
