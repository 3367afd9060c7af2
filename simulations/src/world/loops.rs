//! Forwarding loops, found at the moment that a table or a link makes one.
//!
//! Only links that data may cross (both ends armed or active) count. Before a change no loop was there; so a new one goes through the switch that changed, and for each LID whose entry
//! changed one walk from that switch finds it or reaches an end. Cost: hops of the route for each entry that changed.

use mad::types::{PortNum, PortState, Timestamp};
use routing::routes::{LFT_BLOCK, NO_PORT};

use super::{End, World};

/// A loop that the tables held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardingLoop {
    /// When it came into being.
    pub when: Timestamp,
    /// The destination LID.
    pub lid: u16,
    /// The switches that it goes through, in order.
    pub switches: Vec<u32>,
}

/// Loops kept for a report; more are only counted.
const KEPT: usize = 16;

/// What was found so far.
#[derive(Default)]
pub(super) struct Watch {
    found: Vec<ForwardingLoop>,
    count: u64,
}

impl World {
    /// The first loops that the tables held at any moment (none in a right run), and how many there were.
    pub fn loops(&self) -> (&[ForwardingLoop], u64) {
        (&self.watch.found, self.watch.count)
    }

    /// A block of a linear table was written; `old` is what it held.
    pub(super) fn check_block(&mut self, node: u32, first: u16, old: &[u8; LFT_BLOCK]) {
        if !self.config.watch_loops {
            return;
        }
        for (offset, was) in old.iter().enumerate() {
            let lid = first + offset as u16;
            let Some(tables) = &self.devices[node as usize].switch else { return };
            if tables.exit(lid) != *was {
                self.check_lid(node, lid);
            }
        }
    }

    /// LinearFDBTop was raised from `from`: entries above came into force.
    pub(super) fn check_top(&mut self, node: u32, from: u16) {
        let Some(tables) = &self.devices[node as usize].switch else { return };
        let last = tables.info.linear_fdb_top.get().min(tables.lft.len().saturating_sub(1) as u16);
        if self.config.watch_loops {
            (from.saturating_add(1)..=last).for_each(|lid| self.check_lid(node, lid));
        }
    }

    /// A port was armed: when its peer is too, entries that lead over the link in either direction are in force now.
    pub(super) fn check_link(&mut self, end: End) {
        let Some(peer) = self.peer(end).filter(|_| self.config.watch_loops) else { return };
        if !self.passes_data(end) || !self.passes_data(peer) {
            return;
        }
        for end in [end, peer] {
            let Some(tables) = &self.devices[end.node as usize].switch else { continue };
            let lids: Vec<u16> =
                (0..tables.lft.len() as u16).filter(|lid| tables.exit(*lid) == end.port.0).collect();
            lids.into_iter().for_each(|lid| self.check_lid(end.node, lid));
        }
    }

    /// Whether data may come in by a port.
    fn passes_data(&self, end: End) -> bool {
        let port = &self.devices[end.node as usize].ports[end.port.index()];
        matches!(port.state(), PortState::Armed | PortState::Active)
    }

    /// Walks from a switch for a LID; notes a loop when the walk comes back to it.
    fn check_lid(&mut self, start: u32, lid: u16) {
        let mut at = start;
        let mut steps = 0;
        while let Some(next) = self.next_switch(at, lid) {
            at = next;
            steps += 1;
            // A walk that runs into an older loop never comes back; that loop has been noted.
            if at == start || steps > self.devices.len() {
                break;
            }
        }
        if steps == 0 || at != start {
            return;
        }
        self.watch.count += 1;
        if self.watch.found.len() < KEPT {
            let mut switches = vec![start];
            while let Some(next) =
                self.next_switch(switches[switches.len() - 1], lid).filter(|next| *next != start)
            {
                switches.push(next);
            }
            self.watch.found.push(ForwardingLoop { when: self.now, lid, switches });
        }
    }

    /// The switch that a packet for `lid` goes to next; `None` where it ends, or is lost.
    pub(super) fn next_switch(&self, at: u32, lid: u16) -> Option<u32> {
        let device = &self.devices[at as usize];
        let exit = device.switch.as_ref()?.exit(lid);
        if exit == 0 || exit == NO_PORT || usize::from(exit) >= device.ports.len() {
            return None;
        }
        let end = End { node: at, port: PortNum(exit) };
        // Most walks end at a host, whose ports need not be looked at.
        let peer = self.peer(end).filter(|peer| self.devices[peer.node as usize].is_switch())?;
        (self.passes_data(end) && self.passes_data(peer)).then_some(peer.node)
    }
}
