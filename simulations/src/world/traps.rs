//! Traps of devices: sent to the subnet manager that the port knows, and again until it is repressed (specification volume
//! 1, 13.4.8 and 14.2.5.1).

use std::time::Duration;

use mad::transport::Address;
use mad::types::{PKey, PortNum, Timestamp};
use mad::wire::smp::{BadKeyData, LocalChangesData, Notice, PortInfo, Smp};
use mad::wire::{Attribute, Method};
use zerocopy::FromZeros;

use super::queue::Event;
use super::{End, LocalRoute, Packet, World};
use crate::device::Counter;
use crate::device::notices::{self, Issuer};

/// The shortest time between two sendings of one trap.
const SHORTEST_PERIOD: Duration = Duration::from_millis(10);

/// A trap that was not repressed yet.
pub(super) struct Pending {
    id: u32,
    pub(super) node: u32,
    port: PortNum,
    trap: Notice,
}

impl World {
    /// Sends a trap from an end port (port 0 of a switch), and again until it is repressed. None is sent where traps are
    /// switched off, or the port knows no subnet manager. In the port's queue of notices, if it has one, it stands in any case.
    pub fn raise_trap(&mut self, end: End, trap: Notice) {
        let Some(port) = self.devices.get_mut(end.node as usize).and_then(|d| d.port_mut(end.port)) else {
            return;
        };
        port.log_notice(trap);
        if !self.config.traps || port.sm_lid().is_none() || port.info.lid().is_none() {
            return;
        }
        let known = self
            .pending
            .iter()
            .find(|p| p.node == end.node && notices::is_same(&p.trap, &trap))
            .map(|p| p.id);
        let id = known.unwrap_or_else(|| {
            let id = self.next_trap_tid;
            self.next_trap_tid = self.next_trap_tid.wrapping_add(1).max(1);
            self.pending.push(Pending { id, node: end.node, port: end.port, trap });
            let when = self.now + self.trap_period(end);
            self.queue.push(when, Event::RepeatTrap { id });
            id
        });
        self.send_trap(end, id, &trap);
    }

    /// The time between two sendings: the subnet's timeout as the port was told it.
    fn trap_period(&self, end: End) -> Duration {
        let exponent = self.devices[end.node as usize].ports[end.port.index()].info.subnet_timeout();
        Duration::from_nanos(4096_u64 << exponent).max(SHORTEST_PERIOD)
    }

    fn send_trap(&mut self, end: End, id: u32, trap: &Notice) {
        let info = &self.devices[end.node as usize].ports[end.port.index()].info;
        let mut to = Address::smp(info.master_sm_lid.get());
        to.sl = info.sm_sl();
        let mut smp = Smp::lid_routed(Method::TRAP, Notice::ID, 0);
        smp.header.transaction_id.set(u64::from(id));
        // A notice has the size of an SMP's data.
        let fits = trap.encode(&mut smp.data);
        debug_assert!(fits, "a notice is 64 bytes");
        self.stats.traps += 1;
        let packet = self.packet(end, &to, smp.into_mad());
        self.emit(end, packet, Duration::ZERO);
    }

    pub(super) fn repeat_trap(&mut self, id: u32) {
        let Some(index) = self.pending.iter().position(|p| p.id == id) else { return };
        let (end, trap) = (
            End { node: self.pending[index].node, port: self.pending[index].port },
            self.pending[index].trap,
        );
        let port = &self.devices[end.node as usize].ports[end.port.index()];
        if port.sm_lid().is_none() || self.devices[end.node as usize].dead {
            self.pending.swap_remove(index);
            return;
        }
        self.send_trap(end, id, &trap);
        let when = self.now + self.trap_period(end);
        self.queue.push(when, Event::RepeatTrap { id });
    }

    pub(super) fn repress(&mut self, node: u32, trap: &Notice) {
        self.pending.retain(|p| p.node != node || !notices::is_same(&p.trap, trap));
    }

    /// Number of traps that wait for their TrapRepress.
    pub fn pending_traps(&self) -> usize {
        self.pending.len()
    }

    fn issuer(&self, end: End) -> Issuer {
        Issuer::of(&self.devices[end.node as usize], end.port)
    }

    /// 128: link state of a switch.
    pub(super) fn raise_link_trap(&mut self, node: u32) {
        let end = End::new(node, 0);
        self.raise_trap(end, self.issuer(end).link_state());
    }

    /// 144: the capabilities of an end port, or with `flags` something else of it.
    pub(super) fn raise_capability_trap(&mut self, end: End, flags: u16) {
        let info = &self.devices[end.node as usize].ports[end.port.index()].info;
        let (mask, mask2) = (info.capability_mask.get(), info.capability_mask2.get());
        self.raise_trap(end, self.issuer(end).local_changes(mask, mask2, flags));
    }

    /// 256: an SMP with a wrong M_Key.
    pub(super) fn raise_m_key_trap(&mut self, end: End, packet: &Packet) {
        let trap = self.issuer(end).bad_m_key(&Smp::from_mad(packet.mad), packet.is_directed());
        self.raise_trap(end, trap);
    }

    /// 257: a packet with a P_Key that the port doesn't have.
    pub(super) fn raise_p_key_trap(&mut self, end: End, packet: &Packet) {
        self.raise_trap(end, self.issuer(end).bad_key(257, &bad_key(packet, packet.p_key.0.into())));
    }

    /// 258: a packet with a Q_Key that the queue pair doesn't have.
    pub(super) fn raise_q_key_trap(&mut self, end: End, packet: &Packet) {
        self.raise_trap(end, self.issuer(end).bad_key(258, &bad_key(packet, packet.qkey.0)));
    }

    /// 259: a packet that the external port of a switch keeps out of a partition.
    pub(super) fn raise_switch_p_key_trap(&mut self, port: End, route: &LocalRoute, key: PKey) {
        let end = End::new(port.node, 0);
        self.raise_trap(end, self.issuer(end).bad_switch_p_key(port.port, route.slid, route.dlid, key));
    }

    /// Counts an error at a port; local link integrity and buffer overrun errors count how often their threshold was
    /// reached, and each time is told by trap 129 or 130.
    pub fn count_error(&mut self, port: End, counter: Counter) {
        self.count(port, counter);
        match counter {
            Counter::LocalLinkIntegrityErrors => self.raise_threshold_trap(129, port),
            Counter::ExcessiveBufferOverrunErrors => self.raise_threshold_trap(130, port),
            _ => {}
        }
    }

    /// The flow control update watchdog of a port expires: trap 131.
    pub fn expire_flow_control(&mut self, port: End) {
        self.raise_threshold_trap(131, port);
    }

    fn raise_threshold_trap(&mut self, number: u16, port: End) {
        let end = End { node: port.node, port: self.device(port.node).end_port(port.port) };
        self.raise_trap(end, self.issuer(end).threshold(number, port.port));
    }

    /// Sets and clears bits of an end port's CapabilityMask; a change is told by trap 144.
    pub fn set_capabilities(&mut self, end: End, set: u32, clear: u32) {
        let Some(port) = self.devices[end.node as usize].port_mut(end.port) else { return };
        let old = port.info.capability_mask.get();
        let new = (old | set) & !clear;
        if new != old {
            port.info.capability_mask.set(new);
            self.raise_capability_trap(end, 0);
        }
    }

    /// Changes a NodeDescription as an administrator does on the host, and tells it by trap 144.
    pub fn rename(&mut self, node: u32, name: &str) {
        self.device_mut(node).set_name(name);
        self.tell_all_ports(node, 1);
    }

    /// Firmware lets a port of an adapter have virtual ports from now on, and says so (trap 144, B74).
    pub fn let_have_virtual_ports(&mut self, end: End) {
        let info = &mut self.device_mut(end.node).ports[end.port.index()].info;
        info.capability_mask.set(info.capability_mask.get() | PortInfo::CAP_CAPABILITY_MASK2);
        info.capability_mask2.set(info.capability_mask2.get() | PortInfo::CAP2_VIRTUALIZATION);
        self.raise_capability_trap(end, LocalChangesData::CAPABILITY_MASK2);
    }

    /// Tells by trap 144 from every end port of a device that something changed; `flags` as in
    /// [`Issuer::local_changes`].
    pub fn tell_all_ports(&mut self, node: u32, flags: u16) {
        for port in self.device(node).end_ports() {
            self.raise_capability_trap(End::new(node, port), flags);
        }
    }

    /// A moment by which an end port has sent every trap that still waits once more.
    pub fn after_trap_period(&self, end: End) -> Timestamp {
        self.now + self.trap_period(end)
    }
}

/// What traps 257 and 258 tell of a packet.
fn bad_key(packet: &Packet, key: u32) -> BadKeyData {
    let mut data = BadKeyData::new_zeroed();
    data.lid1.set(packet.slid);
    data.lid2.set(packet.dlid);
    data.key.set(key);
    data.set_sl(packet.sl.0.into());
    data.set_qp1_raw(packet.source_qpn.0);
    data.set_qp2_raw(packet.dest_qpn.0);
    data
}
