//! How multicast packets find their ways: switches copy them to the ports that their multicast forwarding tables say, but
//! never back to where they came from (specification volume 1, 18.2.4.3).

use mad::types::{MulticastLid, PortNum};

use super::forward::HOP_LIMIT;
use super::route::LocalRoute;
use super::{Drop, End, World};
use crate::device::Counter;

impl World {
    /// Copies a multicast packet along the tables of the switches, and gives the ports at which copies arrive with their
    /// hops: those of adapters and routers, and of switches whose own port 0 is a member. A copy that is lost is counted.
    /// Cost: the links of the tree. A loop in the tables ends after [`HOP_LIMIT`] hops, and after as many copies as a tree
    /// over the whole fabric has.
    pub(super) fn replicate(&mut self, from: End, route: &LocalRoute, mlid: MulticastLid) -> Vec<(End, u32)> {
        let mut arrivals = Vec::new();
        let mut budget = self.peers.len();
        let mut copies = vec![(from, 0)];
        while let Some((at, hops)) = copies.pop() {
            let device = &self.devices[at.node as usize];
            let Some(tables) = &device.switch else {
                if hops > 0 {
                    arrivals.push((at, hops));
                } else {
                    self.copy(at, hops, route, &mut copies);
                }
                continue;
            };
            let exits = tables.multicast_exits(mlid, at.port);
            if exits == [0; 16] {
                self.count(at, Counter::PortRcvSwitchRelayErrors);
                self.stats.drop(Drop::NoEntry);
                continue;
            }
            for port in ports(exits).filter(|port| *port != at.port) {
                if port == PortNum::MANAGEMENT {
                    arrivals.push((End { node: at.node, port }, hops));
                    continue;
                }
                if hops == HOP_LIMIT || budget == 0 {
                    self.stats.drop(Drop::TooManyHops);
                    return arrivals;
                }
                budget -= 1;
                self.copy(End { node: at.node, port }, hops, route, &mut copies);
            }
        }
        arrivals
    }

    /// Sends a copy out by a port.
    fn copy(&mut self, exit: End, hops: u32, route: &LocalRoute, copies: &mut Vec<(End, u32)>) {
        match self.leave(exit, route) {
            Ok(next) => copies.push((next, hops + 1)),
            Err(reason) => self.stats.drop(reason),
        }
    }
}

/// The ports whose bits are set.
fn ports(masks: [u16; 16]) -> impl Iterator<Item = PortNum> {
    (0..=255_u8).filter(move |port| masks[usize::from(port / 16)] >> (port % 16) & 1 != 0).map(PortNum)
}
