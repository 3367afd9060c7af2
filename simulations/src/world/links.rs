//! Cables and what becomes of the ports at their ends (link state machine, specification volume 1, 7.2).

use mad::types::{LinkSpeed, LinkSpeedSet, LinkWidth, PortNum, PortPhysState, PortState};

use super::queue::Event;
use super::{End, PortEvent, World};
use crate::device::{Counter, DevicePort};

const WIDEST_FIRST: [LinkWidth; 5] =
    [LinkWidth::X12, LinkWidth::X8, LinkWidth::X4, LinkWidth::X2, LinkWidth::X1];

impl World {
    /// Lays a cable between two free ports and lets the link train. False, and nothing done, when a port is taken, is not
    /// there or is a port 0.
    pub fn connect(&mut self, a: End, b: End) -> bool {
        let free = |end: End| end.port.0 != 0 && self.peers.get(self.slot(end)).is_some_and(Option::is_none);
        if a == b || !free(a) || !free(b) {
            return false;
        }
        for (end, other) in [(a, b), (b, a)] {
            let slot = self.slot(end);
            self.peers[slot] = Some(other);
            self.home[slot] = Some(other);
        }
        self.start_training(a);
        true
    }

    /// Pulls the cable of a port; returns where the other end was.
    pub fn unlink(&mut self, end: End) -> Option<End> {
        let peer = self.peer(end)?;
        self.check_new_links();
        for one in [end, peer] {
            let slot = self.slot(one);
            self.peers[slot] = None;
            self.go_down(one, PortPhysState::Polling, Cause::Lost);
        }
        Some(peer)
    }

    /// Plugs the cable that a port had last in again. False when it is plugged in, or its other end has another one now.
    pub fn relink(&mut self, end: End) -> bool {
        let Some(peer) = self.home.get(self.slot(end)).copied().flatten() else { return false };
        self.connect(end, peer)
    }

    /// Pulls all cables of a device.
    pub fn unlink_node(&mut self, node: u32) {
        for port in 1..=self.device(node).num_ports() {
            self.unlink(End::new(node, port));
        }
    }

    /// Plugs all cables of a device in again.
    pub fn relink_node(&mut self, node: u32) {
        for port in 1..=self.device(node).num_ports() {
            self.relink(End::new(node, port));
        }
    }

    /// Takes the power of a device away: it forgets everything that was set, and its links go down.
    pub fn power_off(&mut self, node: u32) {
        for port in 1..=self.device(node).num_ports() {
            let end = End::new(node, port);
            self.go_down(end, PortPhysState::Polling, Cause::Lost);
            if let Some(peer) = self.peer(end) {
                self.go_down(peer, PortPhysState::Polling, Cause::Lost);
            }
        }
        let device = self.device_mut(node);
        device.reset();
        device.dead = true;
        self.pending.retain(|trap| trap.node != node);
    }

    /// Gives a device its power back; its links train, and the programs on it, which ran on, show themselves again.
    pub fn power_on(&mut self, node: u32) {
        self.device_mut(node).dead = false;
        self.restore_is_sm(node);
        for port in 1..=self.device(node).num_ports() {
            self.start_training(End::new(node, port));
        }
    }

    /// A port whose link is to come up: trains at once, or after the time that training takes.
    pub(super) fn start_training(&mut self, end: End) {
        if self.config.training.is_zero() {
            self.train(end);
        } else {
            let when = self.now + self.config.training;
            self.queue.push(when, Event::Train(end));
        }
    }

    /// Brings a link up to Init, at the widest width and highest speed that both ends enable and the cable allows.
    pub(super) fn train(&mut self, end: End) {
        let Some(peer) = self.peer(end) else { return };
        let port = |end: End| &self.devices[end.node as usize].ports[end.port.index()];
        let dead = |end: End| self.devices[end.node as usize].dead;
        if dead(end) || dead(peer) || port(end).is_disabled() || port(peer).is_disabled() || port(end).is_up()
        {
            return;
        }
        let (a, b) = (port(end), port(peer));
        let (cable_width, cable_speed) = (a.cable.0.min(b.cable.0), a.cable.1.min(b.cable.1));
        let widths = a.info.link_width_enabled & b.info.link_width_enabled;
        let width = WIDEST_FIRST.into_iter().find(|w| widths & w.to_wire() != 0 && *w <= cable_width);
        let width = width.unwrap_or(LinkWidth::X1);
        let common = enabled_speeds(a).0 & enabled_speeds(b).0;
        let speed =
            LinkSpeed::ALL.into_iter().rev().find(|s| *s <= cable_speed && LinkSpeedSet(common).contains(*s));
        let speed = speed.unwrap_or(LinkSpeed::Sdr);
        for one in [end, peer] {
            let port = &mut self.devices[one.node as usize].ports[one.port.index()];
            let info = &mut port.info;
            info.link_width_active = width.to_wire();
            let (base, ext, ext2) = speed.to_active();
            info.set_link_speed_active(base);
            info.set_link_speed_ext_active(ext);
            info.set_link_speed_ext2(ext2, info.link_speed_ext2_supported(), info.link_speed_ext2_enabled());
            port.fdr10 = speed == LinkSpeed::Fdr10;
            port.set_state(PortState::Init, PortPhysState::LinkUp);
            self.port_changed(one);
        }
    }

    /// A Set took the port down: the link trains again, both ends fall back to Init.
    pub(super) fn retrain(&mut self, end: End) {
        self.go_down(end, PortPhysState::Polling, Cause::Ordered);
        if let Some(peer) = self.peer(end) {
            // A disabled peer stays so.
            let disabled = self.devices[peer.node as usize].ports[peer.port.index()].is_disabled();
            if !disabled {
                self.go_down(peer, PortPhysState::Polling, Cause::Lost);
            }
        }
        self.start_training(end);
    }

    /// A Set disabled the port.
    pub(super) fn disable(&mut self, end: End) {
        self.go_down(end, PortPhysState::Disabled, Cause::Ordered);
        if let Some(peer) = self.peer(end)
            && !self.devices[peer.node as usize].ports[peer.port.index()].is_disabled()
        {
            self.go_down(peer, PortPhysState::Polling, Cause::Lost);
        }
    }

    /// LinkDownedCounter counts links that error recovery could not save (specification volume 1, 16.1.3.5): not those that
    /// the port itself was told to take down.
    fn go_down(&mut self, end: End, phys: PortPhysState, cause: Cause) {
        self.check_new_links();
        let port = &mut self.devices[end.node as usize].ports[end.port.index()];
        let was_up = port.is_up();
        port.set_state(PortState::Down, phys);
        if was_up {
            if cause == Cause::Lost {
                port.counters.add(Counter::LinkDownedCounter, 1);
            }
            self.port_changed(end);
        }
    }

    /// A port's link state changed by itself: a switch notes and tells it.
    fn port_changed(&mut self, end: End) {
        self.tell_agents(end, PortEvent::Changed);
        let Some(tables) = &mut self.devices[end.node as usize].switch else { return };
        tables.info.set_port_state_change(1);
        self.raise_link_trap(end.node);
    }

    /// All cables as they are plugged now, each once.
    pub fn cables(&self) -> impl Iterator<Item = (End, End)> + '_ {
        self.devices.iter().enumerate().flat_map(move |(node, device)| {
            (1..=device.num_ports()).filter_map(move |number| {
                let end = End { node: node as u32, port: PortNum(number) };
                self.peer(end).filter(|peer| end < *peer).map(|peer| (end, peer))
            })
        })
    }
}

/// Why a port goes down.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// A Set of its own PortInfo.
    Ordered,
    /// There is no signal any more.
    Lost,
}

/// The speeds that a port enables, over all its fields.
fn enabled_speeds(port: &DevicePort) -> LinkSpeedSet {
    let info = &port.info;
    let supported = (info.link_speed_ext_supported(), info.link_speed_ext2_supported());
    let ext = match info.link_speed_ext_enabled() {
        30 => 0,
        31 => supported.0,
        some => some & supported.0,
    };
    let ext2 = if info.link_speed_ext2_enabled() == 7 {
        supported.1
    } else {
        info.link_speed_ext2_enabled() & supported.1
    };
    // FDR10 is a matter of QDR ports whose vendor attribute says so.
    let fdr10 = port.fdr10_supported && port.fdr10_enabled && info.link_speed_enabled() & 4 != 0;
    LinkSpeedSet::from_fields(info.link_speed_enabled(), ext, ext2, fdr10)
}
