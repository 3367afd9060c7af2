//! Data packets: what crosses the fabric that is no management datagram. Unicast ones follow the linear forwarding tables,
//! multicast ones are copied at each switch to the ports of its multicast forwarding table (specification volume 1, 18.2.4.3).
//!
//! The world does not look into them: the caller keeps the bytes and is told where they come to.
//! Cost: O(links crossed).

use mad::types::{Mtu, MulticastLid, PortNum};

use super::forward::Freight;
use super::{Drop, End, World};
use crate::device::Counter;

/// Links that the copies of one multicast packet may cross: no tree in a fabric of 49,151 LIDs has more. A loop in the tables
/// would go on for ever.
const MAX_CROSSINGS: usize = 1 << 16;

impl World {
    /// Carries a data packet of `bytes` (payload without headers) from an end port to the end ports that it reaches now. A
    /// multicast packet comes back to its sender first, for the other queue pairs there (10.5.2.1).
    pub fn carry(&mut self, from: End, dlid: u16, bytes: usize) -> Vec<End> {
        let mtu_needed = Mtu::ALL.into_iter().find(|mtu| mtu.bytes() as usize >= bytes);
        let Some(mtu) = mtu_needed else { return Vec::new() };
        let words = (bytes / 4 + 8) as u32;
        match MulticastLid::new(dlid) {
            None => match self.walk_to_lid(from, dlid, &Freight::unicast(words, mtu)) {
                Ok((end, _)) => vec![end],
                Err(reason) => {
                    self.stats.drop(reason);
                    Vec::new()
                }
            },
            Some(mlid) => {
                let mut reached = vec![from];
                reached.extend(self.walk_multicast(from, mlid, &Freight::multicast(words, mtu)));
                reached
            }
        }
    }

    /// Walks the copies of a multicast packet by the tables of the switches; the end ports that they come to, each as often as a
    /// copy does. What is lost on the way is counted.
    pub(super) fn walk_multicast(&mut self, from: End, mlid: MulticastLid, freight: &Freight) -> Vec<End> {
        let mut reached = Vec::new();
        // Where a copy is about to leave.
        let mut leaving = Vec::new();
        if self.device(from.node).is_switch() {
            self.copies(from, mlid, &mut leaving, &mut reached);
        } else {
            leaving.push(from);
        }
        let mut crossings = 0;
        while let Some(exit) = leaving.pop() {
            crossings += 1;
            if crossings > MAX_CROSSINGS {
                self.stats.drop(Drop::TooManyHops);
                break;
            }
            match self.cross(exit, freight) {
                Ok(at) if self.device(at.node).is_switch() => {
                    self.copies(at, mlid, &mut leaving, &mut reached);
                }
                Ok(at) => reached.push(at),
                Err(reason) => self.stats.drop(reason),
            }
        }
        reached
    }

    /// The ports by which a switch passes on what came in at `at`: those of its table, but for `at` itself. Port 0 is the
    /// switch's own.
    fn copies(&mut self, at: End, mlid: MulticastLid, leaving: &mut Vec<End>, reached: &mut Vec<End>) {
        let Some(tables) = &self.device(at.node).switch else { return };
        let masks = tables.multicast_ports(mlid);
        let ports = self.device(at.node).num_ports();
        let mut found = false;
        for number in (0..=ports).filter(|port| masks[usize::from(port / 16)] >> (port % 16) & 1 == 1) {
            found = true;
            if number == at.port.0 {
                continue;
            }
            let exit = End { node: at.node, port: PortNum(number) };
            if number == 0 { reached.push(exit) } else { leaving.push(exit) }
        }
        if !found {
            self.count(at, Counter::PortRcvSwitchRelayErrors);
            self.stats.drop(Drop::NoEntry);
        }
    }
}
