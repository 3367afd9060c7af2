//! Between the module's messages and what the fabric knows.
//!
//! A directed-route SMP from the kernel has taken the sender's own step already (its hop pointer counts the first hop, specification
//! volume 1, 14.2.2), which the simulated fabric takes itself; so it is taken back here.

use mad::transport::{Address, Datagram, GlobalRoute};
use mad::types::{Gid, LinkSpeed, LinkWidth, PKey, QKey, Qpn, ServiceLevel};
use mad::wire::smp::Smp;
use mad::wire::{Mad, MgmtClass};
use zerocopy::big_endian::U64;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::super::backend::{DataHeader, DeviceFacts, Endpoint, PortFacts};
use super::message::{Create, GIDS_MAX, Header, Kind, P_KEYS_MAX, PORTS_MAX, PortState};
use crate::world::Packet;

/// Bytes of a MAD.
const MAD_LEN: usize = size_of::<Mad>();
/// NextHdr of a global route header: a base transport header follows.
const IBA_TRANSPORT: u8 = 0x1b;

/// A data packet: the kernel's message as it is, and what the fabric needs to carry it.
#[derive(Clone, Debug)]
pub(in super::super) struct Parcel {
    /// Where it leaves.
    pub(in super::super) from: Endpoint,
    /// What the fabric looks at.
    pub(in super::super) header: DataHeader,
    /// The message.
    pub(super) message: Vec<u8>,
}

/// What the kernel is told of a node when its adapter is made. `None` for what the module cannot be.
pub(super) fn create(facts: &DeviceFacts, ports: &[PortFacts]) -> Option<Create> {
    let first = ports.first()?;
    if ports.len() > PORTS_MAX {
        return None;
    }
    let mut description = [0; 64];
    let text = facts.description.as_bytes();
    let len = text.len().min(64);
    description[..len].copy_from_slice(&text[..len]);
    Some(Create {
        node_guid: U64::new(facts.node_guid.0),
        system_image_guid: U64::new(facts.system_image_guid.0),
        vendor_id: facts.vendor_id,
        device_id: facts.device_id.into(),
        revision: facts.revision,
        ports: ports.len() as u8,
        gids: first.gids.len().min(GIDS_MAX) as u8,
        p_keys: first.p_keys.len().min(P_KEYS_MAX) as u16,
        description,
    })
}

/// What the kernel is told of a port.
pub(super) fn port_state(facts: &PortFacts) -> PortState {
    let info = &facts.info;
    let mut state = PortState {
        capability_mask: info.capability_mask.get(),
        lid: info.base_lid.get(),
        sm_lid: info.master_sm_lid.get(),
        state: info.port_state_raw(),
        phys_state: info.port_phys_state_raw(),
        lmc: info.lmc(),
        sm_sl: info.master_sm_sl(),
        mtu_cap: info.mtu_cap_raw(),
        mtu: info.neighbor_mtu_raw(),
        width: info.link_width().unwrap_or(LinkWidth::X1).to_wire(),
        vl_cap: info.vl_cap(),
        subnet_timeout: info.subnet_timeout(),
        speed: speed(info.link_speed(false).unwrap_or(LinkSpeed::Sdr)),
        q_key_violations: info.q_key_violations.get().into(),
        p_key_violations: info.p_key_violations.get().into(),
        gid_prefix: info.gid_prefix,
        ..PortState::new_zeroed()
    };
    for (slot, gid) in state.guids.iter_mut().zip(&facts.gids) {
        slot.set(gid.guid().0);
    }
    for (slot, key) in state.p_keys.iter_mut().zip(&facts.p_keys) {
        *slot = key.0;
    }
    state
}

/// The kernel's `enum ib_port_speed`.
const fn speed(speed: LinkSpeed) -> u16 {
    match speed {
        LinkSpeed::Sdr => 1,
        LinkSpeed::Ddr => 2,
        LinkSpeed::Qdr => 4,
        LinkSpeed::Fdr10 => 8,
        LinkSpeed::Fdr => 16,
        LinkSpeed::Edr => 32,
        LinkSpeed::Hdr => 64,
        // XDR is younger than the kernel that this is for.
        LinkSpeed::Ndr | LinkSpeed::Xdr => 128,
    }
}

/// Whether a packet from the kernel is a MAD; anything else is data.
pub(super) const fn is_mad(header: &Header) -> bool {
    header.source_qpn <= 1 && header.dest_qpn == header.source_qpn && header.len as usize == MAD_LEN
}

/// A MAD from the kernel, as the fabric takes it; `None` for a data packet.
pub(super) fn datagram(header: &Header, payload: &[u8], port: &PortFacts) -> Option<Datagram> {
    if !is_mad(header) {
        return None;
    }
    let mut mad = Mad::read_from_bytes(payload).ok()?;
    take_back_first_step(&mut mad);
    let p_key_index = port.p_keys.iter().position(|key| key.0 == header.p_key).unwrap_or(0);
    let address = Address {
        lid: header.dlid,
        qpn: Qpn(header.dest_qpn),
        qkey: QKey(header.q_key),
        sl: ServiceLevel(header.sl),
        path_bits: (header.slid & ((1 << port.info.lmc()) - 1)) as u8,
        pkey_index: p_key_index as u16,
        grh: (header.has_grh != 0).then(|| route(&header.grh, port)),
    };
    Some(Datagram { address, mad })
}

fn take_back_first_step(mad: &mut Mad) {
    if mad.header.mgmt_class() != MgmtClass::SUBN_DR || mad.header.hop_count == 0 {
        return;
    }
    let step = if Smp::from_mad(*mad).is_returning() { 1 } else { u8::MAX };
    mad.header.hop_pointer = mad.header.hop_pointer.wrapping_add(step);
}

/// The route of a header that the kernel wrote.
fn route(grh: &[u8; 40], port: &PortFacts) -> GlobalRoute {
    let first = u32::from_be_bytes([grh[0], grh[1], grh[2], grh[3]]);
    let gid = |at: usize| {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&grh[at..at + 16]);
        Gid(u128::from_be_bytes(bytes))
    };
    GlobalRoute {
        gid: gid(24),
        gid_index: port.gids.iter().position(|own| *own == gid(8)).unwrap_or(0) as u8,
        hop_limit: grh[7],
        traffic_class: (first >> 20 & 0xff) as u8,
        flow_label: first & 0xf_ffff,
    }
}

/// A MAD that has come to a port, as the message for the kernel.
pub(super) fn packet(port_number: u8, datagram: &Datagram, port: &PortFacts) -> Vec<u8> {
    let address = &datagram.address;
    let class = datagram.mad.header.mgmt_class();
    let smp = class == MgmtClass::SUBN_DR || class == MgmtClass::SUBN_LID;
    let mut header = Header {
        len: MAD_LEN as u32,
        source_qpn: address.qpn.0,
        dest_qpn: u32::from(!smp),
        q_key: address.qkey.0,
        slid: address.lid,
        dlid: port.info.base_lid.get() | u16::from(address.path_bits),
        p_key: port.p_keys.get(usize::from(address.pkey_index)).map_or(0, |key| key.0),
        sl: address.sl.0,
        ..Header::new(Kind::Packet, port_number)
    };
    if let Some(route) = &address.grh {
        header.has_grh = 1;
        let first = 6 << 28 | u32::from(route.traffic_class) << 20 | route.flow_label;
        header.grh[..4].copy_from_slice(&first.to_be_bytes());
        header.grh[4..6].copy_from_slice(&(MAD_LEN as u16 + 24).to_be_bytes());
        header.grh[6] = IBA_TRANSPORT;
        header.grh[7] = route.hop_limit;
        header.grh[8..24].copy_from_slice(&route.gid.0.to_be_bytes());
        let own = port.gids.get(usize::from(route.gid_index)).or_else(|| port.gids.first());
        header.grh[24..].copy_from_slice(&own.copied().unwrap_or_default().0.to_be_bytes());
    }
    [header.as_bytes(), datagram.mad.as_bytes()].concat()
}

/// The headers of a packet of which the kernel tells that a queue pair refused it.
pub(super) fn refused(header: &Header) -> Packet {
    Packet {
        mad: Mad::zeroed(),
        slid: header.slid,
        dlid: header.dlid,
        sl: ServiceLevel(header.sl),
        p_key: PKey(header.p_key),
        source_qpn: Qpn(header.source_qpn),
        dest_qpn: Qpn(header.dest_qpn),
        qkey: QKey(header.q_key),
        grh: None,
    }
}
