//! Data packets: what crosses the fabric that is no management datagram. Unicast ones follow the linear forwarding tables,
//! multicast ones the multicast forwarding tables.
//!
//! The world does not look into them: the caller keeps the bytes and is told where they come to.
//! Cost: O(links crossed).

use mad::types::{Mtu, PKey};

use super::{End, LocalRoute, World};

impl World {
    /// Carries a data packet of `bytes` (payload without headers), with the sender's first P_Key, from an end port to the end
    /// ports that it reaches now. A multicast packet comes back to its sender first, for the other queue
    /// pairs there (10.5.2.1).
    pub fn carry(&mut self, from: End, dlid: u16, bytes: usize) -> Vec<End> {
        let p_key = self.devices[from.node as usize].ports[from.port.index()].p_key(0);
        self.carry_data(from, dlid, p_key, bytes)
    }

    /// Carries a data packet as [`World::carry`] does, with any P_Key.
    pub fn carry_data(&mut self, from: End, dlid: u16, p_key: PKey, bytes: usize) -> Vec<End> {
        let mtu_needed = Mtu::ALL.into_iter().find(|mtu| mtu.bytes() as usize >= bytes);
        let Some(mtu) = mtu_needed else { return Vec::new() };
        let port = &self.devices[from.node as usize].ports[from.port.index()];
        let route = LocalRoute {
            slid: port.info.base_lid.get(),
            dlid,
            vl15: false,
            p_key: Some(p_key),
            words: (bytes / 4 + 8) as u32,
            mtu,
        };
        self.carry_packet(from, &route)
    }

    /// Carries a packet of any kind as [`World::carry`] does. What is lost on the way is counted in [`World::stats`].
    pub fn carry_packet(&mut self, from: End, route: &LocalRoute) -> Vec<End> {
        if let Some(mlid) = route.multicast() {
            let mut reached = vec![from];
            reached.extend(self.replicate(from, route, mlid).into_iter().map(|(end, _)| end));
            return reached;
        }
        match self.walk_by_lid(from, route) {
            Ok((end, _)) => vec![end],
            Err(reason) => {
                self.stats.drop(reason);
                Vec::new()
            }
        }
    }
}
