//! All forwarding loops that there are, found by one walk over the whole of the tables.
//!
//! For each LID the switches with their exits are a graph in which every node has one successor at most. It is walked from each
//! switch until the walk ends, meets a switch of an earlier walk, or one of its own: that is a loop. So each entry is stepped
//! over once. Blocks of 64 LIDs are independent of each other and shared among all threads; a block of all switches
//! fits the cache. Cost: one step for each entry in force.

use rayon::prelude::*;
use routing::routes::{LFT_BLOCK, NO_PORT};

use super::{End, World};
use crate::device::SwitchTables;

/// No switch is behind a port, or data ends there.
const NO_SWITCH: u32 = u32::MAX;

/// What is behind each port of each switch, by numbers of switches in their order.
struct Links<'a> {
    /// Index of the device of each switch, and its tables.
    nodes: Vec<(u32, &'a SwitchTables)>,
    /// Where the ports of each begin in `behind`, and where those of the last one end.
    base: Vec<u32>,
    behind: Vec<u32>,
}

impl<'a> Links<'a> {
    fn of(world: &'a World) -> Self {
        let mut number = vec![NO_SWITCH; world.devices.len()];
        let mut links = Self { nodes: Vec::new(), base: vec![0], behind: Vec::new() };
        for (node, (device, slot)) in world.devices.iter().zip(&mut number).enumerate() {
            if let Some(tables) = &device.switch {
                *slot = links.nodes.len() as u32;
                links.nodes.push((node as u32, tables));
            }
        }
        for (node, _) in &links.nodes {
            for port in 0..=world.device(*node).num_ports() {
                let next = if port == 0 { None } else { world.switch_behind(End::new(*node, port)) };
                links.behind.push(next.map_or(NO_SWITCH, |next| number[next as usize]));
            }
            links.base.push(links.behind.len() as u32);
        }
        links
    }

    fn next(&self, switch: u32, exit: u8) -> u32 {
        let (from, to) = (self.base[switch as usize], self.base[switch as usize + 1]);
        if exit == NO_PORT || u32::from(exit) >= to - from {
            return NO_SWITCH;
        }
        self.behind[(from + u32::from(exit)) as usize]
    }

    /// Loops for the LIDs of a block: a switch of each, and the LID.
    fn loops(&self, block: usize) -> Vec<(u32, u16)> {
        let mut exits = vec![[NO_PORT; LFT_BLOCK]; self.nodes.len()];
        for (row, (_, tables)) in exits.iter_mut().zip(&self.nodes) {
            let first = block * LFT_BLOCK;
            let top = usize::from(tables.info.linear_fdb_top.get());
            let end = tables.lft.len().min(top + 1).min(first + LFT_BLOCK);
            if let Some(there) = tables.lft.get(first..end) {
                row[..there.len()].copy_from_slice(there);
            }
        }
        let mut found = Vec::new();
        // Which walk passed a switch; walks are numbered through all LIDs of the block.
        let mut passed_by = vec![0; self.nodes.len()];
        let mut walk = 0_u32;
        for (offset, lid) in ((block * LFT_BLOCK) as u16..).enumerate().take(LFT_BLOCK) {
            let first_walk = walk + 1;
            for start in 0..self.nodes.len() as u32 {
                walk += 1;
                let mut at = start;
                while at != NO_SWITCH && passed_by[at as usize] < first_walk {
                    passed_by[at as usize] = walk;
                    at = self.next(at, exits[at as usize][offset]);
                }
                if at != NO_SWITCH && passed_by[at as usize] == walk {
                    found.push((self.nodes[at as usize].0, lid));
                }
            }
        }
        found
    }
}

impl World {
    /// Looks at the links that came up since the last look.
    pub(super) fn check_new_links(&mut self) {
        if std::mem::take(&mut self.watch.new_links) {
            for (node, lid) in self.all_loops() {
                self.note_loop(node, lid);
            }
        }
    }

    /// Loops over links that came up since the last look.
    pub(super) fn new_loops(&self) -> u64 {
        if self.watch.new_links { self.all_loops().len() as u64 } else { 0 }
    }

    /// All loops: of each a switch and the LID.
    fn all_loops(&self) -> Vec<(u32, u16)> {
        let links = Links::of(self);
        let longest = links.nodes.iter().map(|(_, tables)| tables.lft.len()).max();
        let blocks = longest.unwrap_or(0).div_ceil(LFT_BLOCK);
        (0..blocks).into_par_iter().flat_map_iter(|block| links.loops(block)).collect()
    }
}
