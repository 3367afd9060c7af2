//! Directed routes (specification volume 1, 14.2.2): a LID-routed part, a part hop by hop, a LID-routed part, of which each
//! may be empty. The returning packet goes the same way back.

use mad::types::{Lid, MAX_HOPS, PortNum};
use mad::wire::smp::Smp;

use super::forward::Walked;
use super::route::LocalRoute;
use super::{Drop, End, Packet, World};

impl World {
    /// Walks a directed-route SMP, in either direction, keeping hop pointer and return path as every node on the way does,
    /// and the packet's LIDs as they are at its arrival.
    pub(super) fn walk_directed(&mut self, from: End, packet: &mut Packet) -> Walked {
        let mut smp = Smp::from_mad(packet.mad);
        let count = usize::from(smp.header.hop_count);
        if count > MAX_HOPS {
            return Err(Drop::BadRoute);
        }
        let (before, after) = match smp.is_returning() {
            false => (smp.dr_slid.get(), smp.dr_dlid.get()),
            true => (smp.dr_dlid.get(), smp.dr_slid.get()),
        };
        let (start, first_hops) = if before == Lid::PERMISSIVE {
            (from, 0)
        } else {
            self.walk_by_lid(from, &LocalRoute::smp(packet.slid, packet.dlid))?
        };
        let middle = if smp.is_returning() {
            self.walk_back(start, &mut smp, count)?
        } else {
            self.walk_out(start, &mut smp, count)?
        };
        packet.mad = smp.into_mad();
        let (mut at, mut last_hops) = (middle, 0);
        packet.slid = Lid::PERMISSIVE;
        packet.dlid = after;
        if after != Lid::PERMISSIVE {
            packet.slid = self.lid_at(middle);
            (at, last_hops) = self.walk_by_lid(middle, &LocalRoute::smp(packet.slid, after))?;
        }
        Ok((at, first_hops + count as u32 + last_hops))
    }

    /// The LID of the end port that a packet at this port is for; 0 where it has none.
    fn lid_at(&self, at: End) -> u16 {
        let device = &self.devices[at.node as usize];
        device.ports[device.end_port(at.port).index()].info.base_lid.get()
    }

    /// The port by which a node sends by directed route: any of a switch, of an adapter only the one that the packet is at.
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

    fn walk_out(&mut self, from: End, smp: &mut Smp, count: usize) -> Result<End, Drop> {
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
            at = self.cross(exit, &LocalRoute::DIRECTED)?;
            smp.return_path[hop] = at.port.0;
        }
        smp.header.hop_pointer = count as u8 + 1;
        Ok(at)
    }

    fn walk_back(&mut self, from: End, smp: &mut Smp, count: usize) -> Result<End, Drop> {
        if usize::from(smp.header.hop_pointer) != count + 1 {
            return Err(Drop::BadRoute);
        }
        let mut at = from;
        for hop in (1..=count).rev() {
            if hop < count && !self.devices[at.node as usize].is_switch() {
                return Err(Drop::BadRoute);
            }
            let exit = self.exit(at, smp.return_path[hop])?;
            at = self.cross(exit, &LocalRoute::DIRECTED)?;
        }
        smp.header.hop_pointer = 0;
        Ok(at)
    }
}
