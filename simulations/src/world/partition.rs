//! Partitions: what switches keep out at their external ports (specification volume 1, 10.9.4 and 14.2.5.6), and what end
//! ports refuse (10.9.3).

use mad::types::{PKey, QKey, Qpn};

use super::route::LocalRoute;
use super::{Drop, End, Packet, World};
use crate::device::{Counter, Device};

/// Which way a packet passes a switch's external port.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    In,
    Out,
}

impl World {
    /// Lets a packet pass a port, or not: an external port of a switch drops what the partition enforcement or the raw packet
    /// filter of that way catches.
    pub(super) fn enforce(&mut self, end: End, route: &LocalRoute, way: Way) -> Result<(), Drop> {
        if route.vl15 || is_let_through(&self.devices[end.node as usize], end, route, way) {
            return Ok(());
        }
        self.count(
            end,
            match way {
                Way::In => Counter::PortRcvConstraintErrors,
                Way::Out => Counter::PortXmitConstraintErrors,
            },
        );
        let Some(p_key) = route.p_key else { return Err(Drop::Raw) };
        self.raise_switch_p_key_trap(end, route, p_key);
        Err(Drop::PKey)
    }

    /// The P_Key index under which an end port takes a packet for a queue pair; `None` where it refuses it, which is counted
    /// and told by trap 257 (P_Key) or 258 (Q_Key).
    pub(super) fn admit(&mut self, at: End, packet: &Packet) -> Option<u16> {
        let end = End { node: at.node, port: self.devices[at.node as usize].end_port(at.port) };
        let port = &self.devices[end.node as usize].ports[end.port.index()];
        let index = port.p_keys.iter().position(|own| own.matches(packet.p_key));
        if index.is_none() {
            self.refuse_p_key(end, packet);
        } else if packet.dest_qpn == Qpn(1) && packet.qkey != QKey::GSI {
            self.refuse_q_key(end, packet);
            return None;
        }
        index.map(|index| index as u16)
    }

    /// A packet whose P_Key an end port does not have, or the queue pair there does not: counted, dropped, told by trap 257.
    pub fn refuse_p_key(&mut self, end: End, packet: &Packet) {
        let info = &mut self.devices[end.node as usize].ports[end.port.index()].info;
        info.p_key_violations.set(info.p_key_violations.get().saturating_add(1));
        self.stats.drop(Drop::PKey);
        self.raise_p_key_trap(end, packet);
    }

    /// A packet with another Q_Key than its queue pair has: counted, dropped, told by trap 258.
    pub fn refuse_q_key(&mut self, end: End, packet: &Packet) {
        let info = &mut self.devices[end.node as usize].ports[end.port.index()].info;
        info.q_key_violations.set(info.q_key_violations.get().saturating_add(1));
        self.stats.drop(Drop::QKey);
        self.raise_q_key_trap(end, packet);
    }
}

/// Whether a switch's external port lets a packet through; any other port does.
fn is_let_through(device: &Device, end: End, route: &LocalRoute, way: Way) -> bool {
    if !device.is_switch() {
        return true;
    }
    let port = &device.ports[end.port.index()];
    let info = &port.info;
    let (enforces, filters_raw) = match way {
        Way::In => (info.partition_enforcement_inbound(), info.filter_raw_inbound()),
        Way::Out => (info.partition_enforcement_outbound(), info.filter_raw_outbound()),
    };
    match route.p_key {
        None => filters_raw == 0,
        // The table is that of the neighbour, limited memberships included: only the 15 bits of the key are compared.
        Some(key) => enforces == 0 || port.p_keys.iter().any(|own| is_same_partition(*own, key)),
    }
}

fn is_same_partition(own: PKey, key: PKey) -> bool {
    own.is_valid() && own.base() == key.base()
}
