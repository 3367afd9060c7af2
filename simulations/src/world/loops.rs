//! Forwarding loops, found at the moment that a table or a link makes one.
//!
//! Only links that data may cross (both ends armed or active) count. Before a change no loop was there; so a new one goes through
//! the switch that changed, and for each LID whose entry changed one walk from that switch finds it or reaches an end. Cost: hops
//! of the route for each entry that changed; what lies behind a port is looked up once for each change. Of a link that comes up all
//! entries over it have changed: with [`LoopWatch::Batches`] such links are looked at together ([`super::loops_at_once`]).

use mad::types::{PortNum, PortState, Timestamp};
use routing::routes::{LFT_BLOCK, NO_PORT};

use super::{End, LoopWatch, World};

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
    behind: Behind,
    /// Links came up that were not looked at yet.
    pub(super) new_links: bool,
}

/// The switches behind ports, as looked up since the last change. A bring-up walks hundreds of millions of times over the same
/// few links.
#[derive(Default)]
struct Behind {
    /// The number of the change.
    change: u32,
    /// For each port ([`World::slot`]): when it was looked up, and the switch ([`NO_SWITCH`]: data ends there).
    ports: Vec<(u32, u32)>,
}

/// Nodes have numbers far below.
const NO_SWITCH: u32 = u32::MAX;

impl Behind {
    fn begin(&mut self, ports: usize) {
        self.change = self.change.wrapping_add(1);
        if self.ports.len() != ports || self.change == 0 {
            self.ports = vec![(0, NO_SWITCH); ports];
            self.change = 1;
        }
    }
}

impl World {
    /// The first loops that the tables held at any moment (none in a right run), and how many there were.
    pub fn loops(&self) -> (&[ForwardingLoop], u64) {
        (&self.watch.found, self.watch.count)
    }

    /// A block of a linear table was written; `old` is what it held.
    pub(super) fn check_block(&mut self, node: u32, first: u16, old: &[u8; LFT_BLOCK]) {
        let Some(tables) = &self.devices[node as usize].switch else { return };
        let changed = |(offset, was): (usize, &u8)| {
            let lid = first + offset as u16;
            (tables.exit(lid) != *was).then_some(lid)
        };
        self.check_lids(node, &old.iter().enumerate().filter_map(changed).collect::<Vec<_>>());
    }

    /// LinearFDBTop was raised from `from`: entries above came into force.
    pub(super) fn check_top(&mut self, node: u32, from: u16) {
        let Some(tables) = &self.devices[node as usize].switch else { return };
        let last = tables.info.linear_fdb_top.get().min(tables.lft.len().saturating_sub(1) as u16);
        self.check_lids(node, &(from.saturating_add(1)..=last).collect::<Vec<_>>());
    }

    /// A port was armed: when its peer is too, entries that lead over the link in either direction are in force now.
    pub(super) fn check_link(&mut self, end: End) {
        let Some(peer) = self.peer(end).filter(|_| self.config.watch_loops != LoopWatch::Off) else { return };
        if !self.passes_data(end) || !self.passes_data(peer) {
            return;
        }
        if self.config.watch_loops == LoopWatch::Batches {
            self.watch.new_links = true;
            return;
        }
        for end in [end, peer] {
            let Some(tables) = &self.devices[end.node as usize].switch else { continue };
            let lids: Vec<u16> = tables.lids_by(end.port.0).collect();
            self.check_lids(end.node, &lids);
        }
    }

    /// Whether data may come in by a port.
    fn passes_data(&self, end: End) -> bool {
        let port = &self.devices[end.node as usize].ports[end.port.index()];
        matches!(port.state(), PortState::Armed | PortState::Active)
    }

    /// Walks from a switch for each LID; notes a loop when a walk comes back to it.
    fn check_lids(&mut self, start: u32, lids: &[u16]) {
        if self.config.watch_loops == LoopWatch::Off {
            return;
        }
        let mut behind = std::mem::take(&mut self.watch.behind);
        behind.begin(self.peers.len());
        for lid in lids {
            if self.comes_back(start, *lid, &mut behind) {
                self.note_loop(start, *lid);
            }
        }
        self.watch.behind = behind;
    }

    fn comes_back(&self, start: u32, lid: u16, behind: &mut Behind) -> bool {
        let mut at = start;
        // A walk that runs into an older loop never comes back; that loop has been noted.
        for _ in 0..self.devices.len() {
            match self.next_by(at, lid, behind) {
                Some(next) if next == start => return true,
                Some(next) => at = next,
                None => return false,
            }
        }
        false
    }

    /// [`World::next_switch`], with what was looked up since the last change.
    fn next_by(&self, at: u32, lid: u16, behind: &mut Behind) -> Option<u32> {
        let exit = self.exit_for(at, lid)?;
        let slot = self.slot(exit);
        let (looked_up, next) = behind.ports[slot];
        if looked_up == behind.change {
            return (next != NO_SWITCH).then_some(next);
        }
        let next = self.switch_behind(exit);
        behind.ports[slot] = (behind.change, next.unwrap_or(NO_SWITCH));
        next
    }

    pub(super) fn note_loop(&mut self, start: u32, lid: u16) {
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
    fn next_switch(&self, at: u32, lid: u16) -> Option<u32> {
        self.switch_behind(self.exit_for(at, lid)?)
    }

    /// The port by which a switch sends a LID on; `None` where the way ends, or there is no such port.
    fn exit_for(&self, at: u32, lid: u16) -> Option<End> {
        let device = &self.devices[at as usize];
        let exit = device.switch.as_ref()?.exit(lid);
        let leads_on = exit != 0 && exit != NO_PORT && usize::from(exit) < device.ports.len();
        leads_on.then_some(End { node: at, port: PortNum(exit) })
    }

    /// The switch at the other end of a cable that data may cross.
    pub(super) fn switch_behind(&self, end: End) -> Option<u32> {
        // The nearer port first: while tables are filled at a bring-up it passes nothing, and the peer need not be fetched.
        if !self.passes_data(end) {
            return None;
        }
        let peer = self.peer(end).filter(|peer| self.devices[peer.node as usize].is_switch())?;
        self.passes_data(peer).then_some(peer.node)
    }
}
