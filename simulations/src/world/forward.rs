//! How packets cross links, and find their way by linear forwarding tables (specification volume 1, 18.2.4).

use mad::types::{Mtu, PortNum, PortState};
use rand::RngExt;
use routing::routes::NO_PORT;

use super::partition::Way;
use super::route::LocalRoute;
use super::{Drop, End, PortEvent, World};
use crate::device::Counter;

/// Hops after which a LID-routed packet is taken to go round in circles. No minimal route is longer.
pub(super) const HOP_LIMIT: u32 = 256;

/// Where a packet arrives, and after how many hops.
pub(super) type Walked = Result<(End, u32), Drop>;

impl World {
    /// The other end of a port's cable.
    pub fn peer(&self, end: End) -> Option<End> {
        self.peers.get(self.slot(end)).copied().flatten()
    }

    /// A port's place in `peers`; beyond all for a port that its device doesn't have.
    pub(super) fn slot(&self, end: End) -> usize {
        match (self.base.get(end.node as usize), self.devices.get(end.node as usize)) {
            (Some(base), Some(device)) if end.port.index() < device.ports.len() => {
                *base as usize + end.port.index()
            }
            _ => usize::MAX,
        }
    }

    /// Lets a packet leave by a port; the port at which it comes in.
    pub(super) fn cross(&mut self, from: End, route: &LocalRoute) -> Result<End, Drop> {
        let to = self.peer(from).ok_or(Drop::LinkDown)?;
        let (here, there) = (&self.devices[from.node as usize], &self.devices[to.node as usize]);
        if here.dead || there.dead {
            return Err(Drop::Dead);
        }
        let (out, into) = (here.ports[from.port.index()].state(), there.ports[to.port.index()].state());
        let open = if route.vl15 {
            out.is_up() && into.is_up()
        } else {
            out == PortState::Active && matches!(into, PortState::Armed | PortState::Active)
        };
        if !open {
            return Err(Drop::LinkDown);
        }
        let mtu = here.ports[from.port.index()].info.neighbor_mtu();
        if route.mtu > Mtu::M256 && mtu.is_none_or(|mtu| route.mtu > mtu) {
            self.count(from, Counter::PortXmitDiscards);
            return Err(Drop::TooLong);
        }
        self.enforce(from, route, Way::Out)?;
        let loss = self.config.loss + self.devices[to.node as usize].ports[to.port.index()].loss;
        if loss > 0.0 && self.rng.random_bool(loss.min(1.0)) {
            return Err(Drop::Lost);
        }
        if into == PortState::Armed && !route.vl15 {
            // The first data packet makes an armed port active (7.2.7).
            let port = &mut self.devices[to.node as usize].ports[to.port.index()];
            port.info.set_port_state_raw(PortState::Active.to_wire());
            self.tell_agents(to, PortEvent::Changed);
        }
        let multicast = route.multicast().is_some();
        self.devices[from.node as usize].ports[from.port.index()].counters.sent(route.words, multicast);
        self.devices[to.node as usize].ports[to.port.index()].counters.received(route.words, multicast);
        self.enforce(to, route, Way::In)?;
        Ok(to)
    }

    /// Lets a packet leave by a port as the port's hardware does: what the link does not take is counted there.
    pub(super) fn leave(&mut self, exit: End, route: &LocalRoute) -> Result<End, Drop> {
        let crossed = self.cross(exit, route);
        if crossed == Err(Drop::LinkDown) {
            self.count(exit, Counter::PortXmitDiscards);
        }
        crossed
    }

    pub(super) fn count(&mut self, at: End, counter: Counter) {
        self.devices[at.node as usize].ports[at.port.index()].counters.add(counter, 1);
    }

    /// The port that a switch with adaptive routing chooses for a data packet; `None` where it keeps to the static one. The
    /// choice is drawn by lot: queues are not simulated.
    fn adaptive_exit(&mut self, at: End, route: &LocalRoute) -> Option<u8> {
        let device = &self.devices[at.node as usize];
        let tables = device.switch.as_ref().filter(|tables| tables.adaptive.is_some() && !route.vl15)?;
        let exits = tables.adaptive_exits(route.dlid, |port| {
            device.port(port).is_some_and(|port| port.state() == PortState::Active)
        });
        let last = exits.len().checked_sub(1)?;
        Some(exits[self.rng.random_range(0..=last)].0)
    }

    /// Walks a LID-routed packet by the tables of the switches on its way.
    pub(super) fn walk_by_lid(&mut self, from: End, route: &LocalRoute) -> Walked {
        let mut at = from;
        let mut hops = 0;
        loop {
            let device = &self.devices[at.node as usize];
            let exit = match &device.switch {
                Some(tables) => {
                    let exit = tables.exit(route.dlid);
                    if exit == 0 {
                        let own = device.ports[0].has_lid(route.dlid);
                        return if own { Ok((at, hops)) } else { Err(Drop::WrongLid) };
                    }
                    if exit == NO_PORT || usize::from(exit) >= device.ports.len() {
                        self.count(at, Counter::PortRcvSwitchRelayErrors);
                        return Err(Drop::NoEntry);
                    }
                    self.adaptive_exit(at, route).unwrap_or(exit)
                }
                None => {
                    let own = device.ports[at.port.index()].has_lid(route.dlid);
                    if own || hops > 0 {
                        return if own { Ok((at, hops)) } else { Err(Drop::WrongLid) };
                    }
                    at.port.0
                }
            };
            if hops == HOP_LIMIT {
                return Err(Drop::TooManyHops);
            }
            at = self.leave(End { node: at.node, port: PortNum(exit) }, route)?;
            hops += 1;
        }
    }
}
