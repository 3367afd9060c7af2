//! Takes routes off the links that carry far too many, on trees that lack many of their links.
//!
//! Dealing LIDs without counters ([`super::fill`]) is even as long as a tree is nearly what it was meant to be. Where more
//! than one of [`MISSING`] of its links are gone, some links are left with twice the routes of their like. So on such a
//! fabric, link after link, the fullest first, single entries go over another best first arc: at the switch that sends over
//! the link or at any that sends through it, as long as all links of the new way stay below the load of the one that is
//! relieved. Any best arc may be taken at any switch, so the paths stay as short, and as legal, as they were. Links with no more
//! than [`ENOUGH`] of the mean of their like (the links between the same two levels, one direction) are left alone.
//!
//! The result depends on the fabric alone (B24). A tree with fewer gaps is left as it was dealt, and a lost link there moves only
//! what went over it; on one with more the links that are relieved next may be others. Cost: a walk of every host's LID from every
//! switch for the loads, then for each full link the trees of the LIDs over it, up to [`WORK`] steps in all.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashSet;

use super::next_hops::{NextHops, TARGETS};
use super::targets::{Targets, is_flat, levels_from_hosts};
use crate::fabric::{SwitchGraph, SwitchIndex};
use crate::routes::LftMatrix;
use tree::{Tree, loads};

/// One link of so many has to be missing.
const MISSING: u32 = 16;
/// Parts of the mean load, a quarter each, that are not too many.
const ENOUGH: u64 = 5;
/// Steps along links after which what is done has to do.
const WORK: u64 = 10_000_000;
/// No arc.
const NONE: u32 = u32::MAX;

/// Moves entries of `lfts`, dealt by `targets` over the arcs of `hops`, where the fabric has gaps enough.
pub(super) fn relieve(graph: &SwitchGraph, targets: &Targets, hops: &NextHops, lfts: &mut LftMatrix) {
    let (linked, all) = targets.slots.linked();
    let dealt = targets.scatter.is_none() && targets.port_order.is_empty();
    if dealt && (all - linked).saturating_mul(MISSING) > all && graph.lids_are_unique() {
        Relief::new(graph, hops, lfts).run();
    }
}

/// Whether routes to a target may take some dependencies of channels; they have them then.
pub(super) type Takes<'a> = &'a mut dyn FnMut(SwitchIndex, &[(u32, u32)]) -> bool;

/// Moves entries of shortest paths however few links are missing, on fabrics some of whose switches have no hosts; the routes of
/// hosts over each arc. `None` where every switch has hosts (moving single routes of tori costs lanes), or ports have several LIDs.
/// What `takes` refuses stays as it is.
pub(super) fn relieve_shortest(
    graph: &SwitchGraph,
    lfts: &mut LftMatrix,
    takes: Option<Takes<'_>>,
) -> Option<Vec<u64>> {
    if is_flat(&levels_from_hosts(graph))
        || graph.destinations().iter().any(|d| d.lmc > 0)
        || !graph.lids_are_unique()
    {
        return None;
    }
    let hops = NextHops::shortest(graph, None, None);
    let mut relief = Relief { takes, ..Relief::new(graph, &hops, lfts) };
    relief.run();
    Some(relief.load)
}

/// Routes that could go another way: those of all hosts that send to a LID through a switch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Move {
    /// Load of the fullest link of the best way then.
    most: u64,
    senders: Reverse<u64>,
    lid: u16,
    target: SwitchIndex,
    at: SwitchIndex,
}

struct Relief<'a, 't> {
    graph: &'a SwitchGraph,
    hops: &'a NextHops,
    lfts: &'a mut LftMatrix,
    /// LIDs of hosts with their switches.
    lids: Vec<(u16, SwitchIndex)>,
    /// Hosts of each switch.
    hosts: Vec<u64>,
    by_port: Vec<[u32; 256]>,
    /// The switch that each arc leaves.
    from: Vec<SwitchIndex>,
    /// Routes of hosts over each arc.
    load: Vec<u64>,
    tree: Tree,
    /// The arcs of two ways.
    ways: [Vec<u32>; 2],
    work: u64,
    takes: Option<Takes<'t>>,
}

impl<'a> Relief<'a, '_> {
    fn new(graph: &'a SwitchGraph, hops: &'a NextHops, lfts: &'a mut LftMatrix) -> Self {
        let hosts = graph.hosts();
        let by_port: Vec<_> =
            (0..graph.switch_count() as SwitchIndex).map(|s| graph.arcs_by_port(s)).collect();
        let of_hosts = graph.destinations().iter().filter(|d| d.host);
        let lids: Vec<_> = of_hosts.flat_map(|d| d.lids().map(|lid| (lid, d.switch))).collect();
        let load = loads(graph, lfts, &lids, (&hosts, &by_port));
        let from = graph.sources();
        let tree = Tree::new(graph.switch_count());
        let (ways, work, takes) = (Default::default(), 0, None);
        Self { graph, hops, lfts, lids, hosts, by_port, from, load, tree, ways, work, takes }
    }

    fn run(&mut self) {
        let enough = self.enough();
        let is_full = |load: &[u64], arc: u32| load[arc as usize] > enough[arc as usize];
        let arcs = 0..self.load.len() as u32;
        let mut heap: BinaryHeap<(u64, Reverse<u32>)> =
            arcs.map(|arc| (self.load[arc as usize], Reverse(arc))).collect();
        while let Some((load, Reverse(arc))) = heap.pop() {
            let now = self.load[arc as usize];
            if !is_full(&self.load, arc) || now != load || self.work > WORK {
                continue;
            }
            let changed = self.unload(arc, enough[arc as usize]);
            heap.extend(changed.into_iter().map(|arc| (self.load[arc as usize], Reverse(arc))));
        }
    }

    /// For each arc the load that is not too much.
    fn enough(&self) -> Vec<u64> {
        let level = levels_from_hosts(self.graph);
        let top = level.iter().copied().filter(|level| *level != u16::MAX).max().map_or(0, usize::from);
        let kind = |arc: usize| {
            let ends = [self.from[arc], self.graph.all_arcs()[arc].to].map(|s| level[s as usize]);
            // Levels of neighbours differ by one at most.
            ends.iter()
                .all(|level| *level != u16::MAX)
                .then(|| 3 * usize::from(ends[0]) + usize::from(ends[1] + 1 - ends[0]))
        };
        let mut sums = vec![(0, 0_u64); 3 * (top + 1)];
        for (arc, load) in self.load.iter().enumerate() {
            if let Some(kind) = kind(arc) {
                sums[kind] = (sums[kind].0 + load, sums[kind].1 + 1);
            }
        }
        let enough = |arc| kind(arc).map_or(u64::MAX, |kind| sums[kind].0 * ENOUGH / (4 * sums[kind].1));
        (0..self.load.len()).map(enough).collect()
    }

    /// Takes routes off an arc until it has `enough`; all arcs whose load is another now.
    fn unload(&mut self, arc: u32, enough: u64) -> FxHashSet<u32> {
        let from = self.from[arc as usize];
        let port = self.graph.all_arcs()[arc as usize].out_port;
        let row = self.lfts.row(from);
        let over = |(lid, target): &&(u16, SwitchIndex)| *target != from && row[usize::from(*lid)] == port;
        let over: Vec<_> = self.lids.iter().filter(over).copied().collect();
        let mut over = over.into_iter();
        let mut arcs = FxHashSet::default();
        while self.load[arc as usize] > enough {
            // Twice as many as are too many, to choose from.
            let wanted = 2 * (self.load[arc as usize] - enough);
            let moves = self.moves(arc, &mut over, wanted);
            if moves.is_empty() {
                break;
            }
            self.make(&moves, arc, enough, &mut arcs);
        }
        arcs
    }

    /// Makes moves as long as more than `enough` goes over an arc.
    fn make(&mut self, moves: &[Move], arc: u32, enough: u64, arcs: &mut FxHashSet<u32>) {
        // Switches through which the routes of a LID have changed: the senders that were counted there are not those of now.
        let mut changed = FxHashSet::default();
        for Move { senders: Reverse(senders), lid, target, at, .. } in moves {
            if self.load[arc as usize] <= enough {
                break;
            }
            if changed.contains(&(*lid, *at)) {
                continue;
            }
            // Once more, as the loads are others by now.
            let Some((_, other)) = self.best(*at, arc, (*lid, *target), *senders) else { continue };
            self.take_ways((*lid, *target), *at, other);
            if !self.may_take(*at, (*lid, *target), other) {
                continue;
            }
            let [old, new] = &self.ways;
            old.iter().for_each(|arc| self.load[*arc as usize] -= senders);
            new.iter().for_each(|arc| self.load[*arc as usize] += senders);
            self.lfts.row_mut(*at)[usize::from(*lid)] = self.graph.all_arcs()[other as usize].out_port;
            changed.extend(old.iter().chain(new).map(|arc| (*lid, self.from[*arc as usize])));
            arcs.extend(old.iter().chain(new));
        }
    }

    /// Takes the dependencies of the new way in [`Relief::ways`], where there is room for them.
    fn may_take(&mut self, at: SwitchIndex, (lid, target): (u16, SwitchIndex), other: u32) -> bool {
        let (graph, lfts, by_port) = (self.graph, &*self.lfts, &self.by_port);
        let Some(takes) = &mut self.takes else { return true };
        let sends_here = |back: &u32| {
            let before = self.from[*back as usize];
            by_port[before as usize][usize::from(lfts.row(before)[usize::from(lid)])] == *back
        };
        let comes_by = graph.arcs(at).iter().filter_map(|arc| graph.back(at, arc)).filter(sends_here);
        let along = self.ways[1].windows(2).map(|pair| (pair[0], pair[1]));
        let pairs: Vec<(u32, u32)> = comes_by.map(|back| (back, other)).chain(along).collect();
        takes(target, &pairs)
    }

    /// Routes over an arc that could go another way with less load, the best first: all those of the next LIDs, until they are
    /// as many as wanted.
    fn moves(
        &mut self,
        arc: u32,
        over: &mut impl Iterator<Item = (u16, SwitchIndex)>,
        mut wanted: u64,
    ) -> Vec<Move> {
        let mut moves = Vec::new();
        while wanted > 0
            && let Some((lid, target)) = over.next()
        {
            let mut tree = std::mem::take(&mut self.tree);
            let entry = |s: SwitchIndex| self.lfts.row(s)[usize::from(lid)];
            tree.grow(self.graph, entry, target, (&self.hosts, &self.by_port));
            self.work += tree.next.len() as u64;
            for at in tree.through(self.graph, self.from[arc as usize]) {
                let senders = tree.senders[at as usize];
                if let Some((most, _)) = self.best(at, arc, (lid, target), senders) {
                    moves.push(Move { most, senders: Reverse(senders), lid, target, at });
                    wanted = wanted.saturating_sub(senders);
                }
            }
            self.tree = tree;
        }
        moves.sort_unstable();
        moves
    }

    /// The best other arc of a switch for a LID whose way leads over `arc`, with the load of the fullest link of the new way:
    /// less than that of `arc` now.
    fn best(
        &mut self,
        at: SwitchIndex,
        arc: u32,
        (lid, target): (u16, SwitchIndex),
        senders: u64,
    ) -> Option<(u64, u32)> {
        let (block, bit) = (target as usize / TARGETS, target as usize % TARGETS);
        let mut best = None;
        let mut most = self.load[arc as usize];
        for other in self.graph.arc_range(at) {
            let is_best = self.hops.mask(block, other as usize) >> bit & 1 == 1;
            if !is_best || self.load[other as usize] + senders >= most {
                continue;
            }
            self.take_ways((lid, target), at, other);
            let [old, new] = &self.ways;
            if new.len() > old.len() {
                continue;
            }
            let only_new = new.iter().filter(|arc| !old.contains(arc));
            let fullest = only_new.map(|arc| self.load[*arc as usize] + senders).max();
            if let Some(fullest) =
                fullest.filter(|fullest| *fullest < most && old.contains(&arc) && !new.contains(&arc))
            {
                (best, most) = (Some((fullest, other)), fullest);
            }
        }
        best
    }

    /// Writes down the way that a LID takes from a switch, and the one that begins with another arc: nothing where that comes
    /// back, as where somebody on it goes by a longer way than he must.
    fn take_ways(&mut self, (lid, target): (u16, SwitchIndex), at: SwitchIndex, other: u32) {
        let next = |s: SwitchIndex| match s == target {
            true => NONE,
            false => self.by_port[s as usize][usize::from(self.lfts.row(s)[usize::from(lid)])],
        };
        for (way, first) in self.ways.iter_mut().zip([next(at), other]) {
            way.clear();
            let mut arc = first;
            while arc != NONE {
                way.push(arc);
                let to = self.graph.all_arcs()[arc as usize].to;
                if to == at {
                    way.clear();
                    break;
                }
                arc = next(to);
            }
            self.work += way.len() as u64;
        }
    }
}

mod tree;

#[cfg(test)]
mod tests;
