//! Joins the orphans of a tree again, nearest first, over dependencies for which their lane has room.
//!
//! An orphan keeps its arc where the way over that gets no longer than it was, or is as short as any other: so it waits, as long as that may
//! come. Else it takes the way with the fewest hops and, of these, the least load by the routes of all.
//!
//! Cost: for each orphan its links, each with a walk to the target, whenever one of its neighbours has a way again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::growth::price_of;
use super::lane::Room;
use super::network::NONE;
use super::repair::Mender;
use crate::fabric::SwitchIndex;

impl Mender<'_> {
    /// Joins the orphans of the tree at hand. False, and no dependency more than before, where one that could have a way finds no room
    /// for any.
    pub(super) fn join(&mut self) -> bool {
        let lane = self.growth.lane;
        self.growth.lanes[lane].begin();
        self.join_nearest_first();
        let done = !self.is_stuck();
        if !done {
            self.growth.lanes[lane].give_up();
        }
        self.tree.orphans.iter().for_each(|s| self.hops[*s as usize] = NONE);
        done
    }

    /// Whether an orphan without a way has a neighbour with one.
    fn is_stuck(&mut self) -> bool {
        let graph = self.cut.graph;
        let orphans = 0..self.tree.orphans.len();
        orphans.into_iter().any(|number| {
            let s = self.tree.orphans[number];
            self.tree.next[s as usize] == NONE && graph.arcs(s).iter().any(|arc| self.tree.is_joined(arc.to))
        })
    }

    fn join_nearest_first(&mut self) {
        let graph = self.cut.graph;
        let mut heap = BinaryHeap::new();
        for number in 0..self.tree.orphans.len() {
            let s = self.tree.orphans[number];
            let earliest = if self.tree.old_arc(s) == NONE { 0 } else { self.tree.old_hops(s) };
            self.earliest[s as usize] = earliest;
            let mut last = NONE;
            for arc in graph.arcs(s) {
                let hops = if self.tree.is_orphan(arc.to) { NONE } else { self.tree.kept_hops(arc.to) };
                if hops != NONE && hops != last {
                    heap.push(Reverse((earliest.max(hops + 1), s)));
                    last = hops;
                }
            }
        }
        while let Some(Reverse((most, s))) = heap.pop() {
            if self.hops[s as usize] != NONE {
                continue;
            }
            let Some(hops) = self.attach(s, most) else { continue };
            self.hops[s as usize] = hops;
            for arc in graph.arcs(s) {
                if self.tree.is_orphan(arc.to) && self.hops[arc.to as usize] == NONE {
                    heap.push(Reverse((self.earliest[arc.to as usize].max(hops + 1), arc.to)));
                }
            }
        }
    }

    /// Gives an orphan a way of at most so many hops; how many it has.
    fn attach(&mut self, s: SwitchIndex, most: u32) -> Option<u32> {
        let graph = self.cut.graph;
        let old = self.tree.old_arc(s);
        if let Some(ends) = graph.all_arcs().get(old as usize) {
            let hops = self.hops_of(ends.to);
            if hops < most && self.take(s, old) {
                return Some(hops + 1);
            }
        }
        let apart = !self.growth.siblings.is_empty();
        if apart {
            self.growth.siblings.look_from(Some(s));
        }
        let mut ways = Vec::new();
        for (arc, ends) in (graph.offsets()[s as usize]..).zip(graph.arcs(s)) {
            let behind = self.hops_of(ends.to);
            if behind >= most || arc == old {
                continue;
            }
            let load = &self.growth.load;
            let mut cost = price_of(load[arc as usize]);
            self.tree.way(ends.to, |arc| cost = cost.saturating_add(price_of(load[arc as usize])));
            let shared = if apart { self.growth.siblings.shared(arc, &self.tree.next) } else { 0 };
            ways.push((behind + 1, shared, cost, arc));
        }
        ways.sort_unstable();
        ways.into_iter().find(|(.., arc)| self.take(s, *arc)).map(|(hops, ..)| hops)
    }

    /// Hops from a switch that has a way, else [`NONE`].
    fn hops_of(&mut self, s: SwitchIndex) -> u32 {
        if self.tree.is_orphan(s) { self.hops[s as usize] } else { self.tree.kept_hops(s) }
    }

    /// Sends an orphan over `arc` if the lane has room for that.
    fn take(&mut self, s: SwitchIndex, arc: u32) -> bool {
        let on = self.tree.next(self.cut.graph.all_arcs()[arc as usize].to);
        // No dependency at the target itself.
        let taken = on == NONE || self.growth.lanes[self.growth.lane].take(arc, on);
        if taken {
            self.tree.next[s as usize] = arc;
        }
        taken
    }
}
