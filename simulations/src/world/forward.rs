//! How packets find their way: directed routes (specification volume 1, 14.2.2) and linear forwarding tables (18.2.4).

use mad::types::{Lid, MAX_HOPS, Mtu, PortNum, PortState};
use mad::wire::smp::Smp;
use rand::RngExt;
use routing::routes::NO_PORT;

use super::{Drop, End, Packet, World};
use crate::device::Counter;

/// Hops after which a LID-routed packet is taken to go round in circles. No minimal route is longer.
const HOP_LIMIT: u32 = 256;

/// Where a packet arrives, and after how many hops.
pub(super) type Walked = Result<(End, u32), Drop>;

/// What a link needs to know of a packet that crosses it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Freight {
    /// Virtual lane 15: crosses links that are not Active.
    smp: bool,
    multicast: bool,
    /// Length in words of 4 bytes, headers included.
    words: u32,
    /// The smallest MTU that it fits.
    mtu: Mtu,
}

impl Freight {
    /// A management datagram: 256 bytes and 32 of headers.
    const fn mad(smp: bool) -> Self {
        Self { smp, multicast: false, words: 72, mtu: Mtu::M256 }
    }

    /// A data packet to one port.
    pub(super) const fn unicast(words: u32, mtu: Mtu) -> Self {
        Self { smp: false, multicast: false, words, mtu }
    }

    /// A data packet to a group.
    pub(super) const fn multicast(words: u32, mtu: Mtu) -> Self {
        Self { smp: false, multicast: true, words, mtu }
    }
}

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
    pub(super) fn cross(&mut self, from: End, freight: &Freight) -> Result<End, Drop> {
        let to = self.peer(from).ok_or(Drop::LinkDown)?;
        let (here, there) = (&self.devices[from.node as usize], &self.devices[to.node as usize]);
        if here.dead || there.dead {
            return Err(Drop::Dead);
        }
        let (out, into) = (here.ports[from.port.index()].state(), there.ports[to.port.index()].state());
        let open = if freight.smp {
            out.is_up() && into.is_up()
        } else {
            out == PortState::Active && matches!(into, PortState::Armed | PortState::Active)
        };
        if !open {
            return Err(Drop::LinkDown);
        }
        let mtu = here.ports[from.port.index()].info.neighbor_mtu();
        if freight.mtu > Mtu::M256 && mtu.is_none_or(|mtu| freight.mtu > mtu) {
            self.count(from, Counter::PortXmitDiscards);
            return Err(Drop::TooLong);
        }
        let loss = self.config.loss + there.ports[to.port.index()].loss;
        if loss > 0.0 && self.rng.random_bool(loss.min(1.0)) {
            return Err(Drop::Lost);
        }
        if into == PortState::Armed && !freight.smp {
            // The first data packet makes an armed port active (7.2.7).
            let port = &mut self.devices[to.node as usize].ports[to.port.index()];
            port.info.set_port_state_raw(PortState::Active.to_wire());
        }
        self.devices[from.node as usize].ports[from.port.index()]
            .counters
            .sent(freight.words, freight.multicast);
        self.devices[to.node as usize].ports[to.port.index()]
            .counters
            .received(freight.words, freight.multicast);
        Ok(to)
    }

    /// The port by which a node sends by directed route: any of a switch, of an adapter only the sender's own.
    fn exit(&self, at: End, port: u8) -> Result<End, Drop> {
        let device = &self.devices[at.node as usize];
        let exit = End { node: at.node, port: PortNum(port) };
        let own = device.is_switch() || port == at.port.0;
        if own && port != 0 && usize::from(port) < device.ports.len() {
            Ok(exit)
        } else {
            Err(Drop::BadRoute)
        }
    }

    /// Walks a directed-route SMP, in either direction, keeping hop pointer and return path as every node on the way does.
    /// Routes with a LID-routed part are refused.
    pub(super) fn walk_directed(&mut self, from: End, packet: &mut Packet) -> Walked {
        let mut smp = Smp::from_mad(packet.mad);
        let count = usize::from(smp.header.hop_count);
        if count > MAX_HOPS || smp.dr_slid.get() != Lid::PERMISSIVE || smp.dr_dlid.get() != Lid::PERMISSIVE {
            return Err(Drop::BadRoute);
        }
        let walked = if smp.is_returning() {
            self.walk_back(from, &mut smp, count)
        } else {
            self.walk_out(from, &mut smp, count)
        };
        packet.mad = smp.into_mad();
        walked
    }

    fn walk_out(&mut self, from: End, smp: &mut Smp, count: usize) -> Walked {
        if smp.header.hop_pointer != 0 {
            return Err(Drop::BadRoute);
        }
        let mut at = from;
        for hop in 1..=count {
            // Beyond the first node only switches pass a packet on.
            if hop > 1 && !self.devices[at.node as usize].is_switch() {
                return Err(Drop::BadRoute);
            }
            let exit = self.exit(at, smp.initial_path[hop])?;
            at = self.cross(exit, &Freight::mad(true))?;
            smp.return_path[hop] = at.port.0;
        }
        smp.header.hop_pointer = count as u8 + 1;
        Ok((at, count as u32))
    }

    fn walk_back(&mut self, from: End, smp: &mut Smp, count: usize) -> Walked {
        if usize::from(smp.header.hop_pointer) != count + 1 {
            return Err(Drop::BadRoute);
        }
        let mut at = from;
        for hop in (1..=count).rev() {
            if hop < count && !self.devices[at.node as usize].is_switch() {
                return Err(Drop::BadRoute);
            }
            let exit = self.exit(at, smp.return_path[hop])?;
            at = self.cross(exit, &Freight::mad(true))?;
        }
        smp.header.hop_pointer = 0;
        Ok((at, count as u32))
    }

    pub(super) fn count(&mut self, at: End, counter: Counter) {
        self.devices[at.node as usize].ports[at.port.index()].counters.add(counter, 1);
    }

    /// Walks a LID-routed packet by the tables of the switches on its way.
    pub(super) fn walk_by_lid(&mut self, from: End, packet: &Packet) -> Walked {
        self.walk_to_lid(from, packet.dlid, &Freight::mad(packet.is_smp()))
    }

    /// Walks to a unicast LID by the tables of the switches on the way.
    pub(super) fn walk_to_lid(&mut self, from: End, dlid: u16, freight: &Freight) -> Walked {
        let mut at = from;
        let mut hops = 0;
        loop {
            let device = &self.devices[at.node as usize];
            let exit = match &device.switch {
                Some(tables) => {
                    let exit = tables.exit(dlid);
                    if exit == 0 {
                        let own = device.ports[0].has_lid(dlid);
                        return if own { Ok((at, hops)) } else { Err(Drop::WrongLid) };
                    }
                    if exit == NO_PORT || usize::from(exit) >= device.ports.len() {
                        self.count(at, Counter::PortRcvSwitchRelayErrors);
                        return Err(Drop::NoEntry);
                    }
                    exit
                }
                None => {
                    let own = device.ports[at.port.index()].has_lid(dlid);
                    if own || hops > 0 {
                        return if own { Ok((at, hops)) } else { Err(Drop::WrongLid) };
                    }
                    at.port.0
                }
            };
            if hops == HOP_LIMIT {
                return Err(Drop::TooManyHops);
            }
            let exit = End { node: at.node, port: PortNum(exit) };
            at = match self.cross(exit, freight) {
                Ok(next) => next,
                Err(reason) => {
                    if reason == Drop::LinkDown {
                        self.count(exit, Counter::PortXmitDiscards);
                    }
                    return Err(reason);
                }
            };
            hops += 1;
        }
    }
}
