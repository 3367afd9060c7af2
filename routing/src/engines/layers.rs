//! Spreads the paths of given tables over virtual lanes such that no lane holds a credit loop.
//!
//! All paths between hosts begin on lane 0. While the channel dependency graph of a lane has cycles, the weakest dependency
//! of some of them (the one with the fewest paths) is forbidden, and the paths over it move to the next lane (Domke, Hoefler,
//! Nagel 2011). The number of lanes is a heuristic's; the smallest is NP-hard to find. Paths are never listed: those that
//! cross a forbidden dependency are found in one pass over each LID's tree, so memory is that of the tables. Cost: some
//! passes of LIDs · switches for every lane.

use std::cmp::Reverse;
use std::sync::Arc;

use rayon::prelude::*;

use super::acyclic::Acyclic;
use super::escape;
use super::orphans::Cut;
use super::room::{Lane, dependency_starts};
use crate::fabric::{SwitchGraph, SwitchIndex};
use crate::routes::{LFT_BLOCK, LftMatrix, NO_PORT};

/// Lanes that an SL can name.
const MOST: u8 = 16;

/// The lane of each path, by (source switch, LID), and how many lanes there are (16 when even 15 were not enough). The first lane
/// keeps room for the turns `reserved`: pairs of arcs that close no cycle by themselves.
pub(super) fn layers(graph: &SwitchGraph, lfts: &LftMatrix, reserved: &[(u32, u32)]) -> (LftMatrix, u8) {
    let top = lfts.stride() - 1;
    let mut lanes = LftMatrix::filled(graph.switch_count(), top as u16, 0);
    let paths = Paths::new(graph, lfts);
    for lane in 0..MOST - 1 {
        loop {
            let mut counts = paths.count(&lanes, lane);
            if lane == 0 {
                // Never the weakest of a cycle.
                reserved.iter().for_each(|(into, out)| counts[paths.dependency(*into, *out)] = u32::MAX);
            }
            let Some(forbidden) = paths.weakest(&counts) else { break };
            paths.move_on(&forbidden, &mut lanes, lane);
        }
        if !paths.any(&lanes, lane + 1) {
            return (lanes, lane + 1);
        }
    }
    (lanes, MOST)
}

/// Grows a tree of all switches in the last of the `used` lanes that has room for one; that lane and the first change their
/// numbers. `None` where no lane has room; `parents` as for [`escape::find_room`].
pub(super) fn make_room(
    graph: &SwitchGraph,
    lfts: &LftMatrix,
    (lanes, used): (&mut LftMatrix, u8),
    parents: &[u32],
) -> Option<Arc<[u32]>> {
    let paths = Paths::new(graph, lfts);
    let free = (0..used).rev().map(|number| (number, paths.dependencies(&paths.count(lanes, number))));
    let (roomy, tree) = escape::find_room(graph, parents, free, Acyclic::insert_all)?;
    lanes.par_rows_mut(|_, row| {
        let owned = row.iter_mut().zip(&paths.owner).filter(|(_, owner)| **owner != NONE);
        owned.for_each(|(lane, _)| *lane = swapped(*lane, roomy));
    });
    Some(tree)
}

/// The number of a lane after the first one and another have changed theirs.
pub(super) const fn swapped(lane: u8, other: u8) -> u8 {
    match lane {
        0 => other,
        _ if lane == other => 0,
        _ => lane,
    }
}

/// Deals the paths of the fullest lanes over those between `used` and `available`; the lanes in use then. A part of paths
/// without a cycle has none either, and what the first lane keeps room for goes with each part of it: these get the first numbers.
pub(super) fn use_spare(graph: &SwitchGraph, lanes: &mut LftMatrix, used: u8, available: u8) -> u8 {
    let hosts = graph.hosts();
    let mut lids: Vec<u16> = graph.destinations().iter().filter(|d| d.host).flat_map(|d| d.lids()).collect();
    // Two ports may hold one LID, whose paths are dealt once.
    lids.sort_unstable();
    lids.dedup();
    let mut paths = vec![0_u64; usize::from(used)];
    for (s, senders) in (0..).zip(&hosts).filter(|(_, senders)| **senders > 0) {
        let row = lanes.row(s);
        lids.iter().for_each(|lid| paths[usize::from(row[usize::from(*lid)])] += senders);
    }
    // The lanes that each lane's paths are dealt to, itself the first.
    let mut parts: Vec<Vec<u8>> = (0..used).map(|lane| vec![lane]).collect();
    for spare in used..available {
        let share = |lane: &usize| (paths[*lane] / parts[*lane].len() as u64, Reverse(*lane));
        let Some(fullest) = (0..parts.len()).max_by_key(share).filter(|lane| share(lane).0 > 1) else {
            break;
        };
        parts[fullest].push(spare);
    }
    parts.iter_mut().flatten().zip(0..).for_each(|(part, number)| *part = number);
    let dealt = parts.iter().map(Vec::len).sum::<usize>() as u8;
    if dealt > used {
        lanes.par_rows_mut(|s, row| {
            let mut numbers = (0..).zip(&lids).peekable();
            for (lid, lane) in row.iter_mut().enumerate() {
                let parts = &parts[usize::from(*lane)];
                // Paths to others than hosts go with the first part of their lane.
                let number = numbers.next_if(|(_, of_host)| usize::from(**of_host) == lid);
                *lane = number.map_or(parts[0], |(number, _)| parts[(s as usize + number) % parts.len()]);
            }
        });
    }
    dealt
}

/// The lanes on which paths take each dependency: one bit for each lane. The first has the turns `reserved` besides.
pub(super) fn taken(
    graph: &SwitchGraph,
    lfts: &LftMatrix,
    lanes: &LftMatrix,
    reserved: &[(u32, u32)],
) -> Vec<u16> {
    let paths = Paths::new(graph, lfts);
    let mut taken = paths.taken(lanes);
    reserved.iter().for_each(|(into, out)| taken[paths.dependency(*into, *out)] |= 1);
    taken
}

/// Gives lanes to paths that changed, by LID and the switches where they begin: each keeps its own while it closes no cycle there,
/// else it takes the first where it closes none, so that few hosts have to learn another SL. The highest lane taken; `None`
/// where some path has none.
pub(super) fn place(
    cut: &Cut<'_>,
    lfts: &LftMatrix,
    changed: &[(u16, Vec<SwitchIndex>)],
    of_path: &mut LftMatrix,
    lanes: &mut [Lane<'_>],
) -> Option<u8> {
    let arcs = cut.graph.all_arcs();
    let (mut highest, mut pairs, mut added) = (0, Vec::new(), Vec::new());
    for (lid, from) in changed {
        let next = |s: SwitchIndex| cut.arc(s, lfts.row(s)[usize::from(*lid)]);
        for s in from.iter().filter(|s| cut.hosts[**s as usize] > 0) {
            pairs.clear();
            let mut arc = next(*s);
            while let Some(ends) = arcs.get(arc as usize) {
                let on = next(ends.to);
                pairs.extend((on != NONE).then_some((arc, on)));
                arc = on;
            }
            added.clear();
            let own = of_path.row(*s)[usize::from(*lid)];
            let others = (0..lanes.len() as u8).filter(|lane| *lane != own);
            let lane = std::iter::once(own)
                .chain(others)
                .find(|lane| lanes[usize::from(*lane)].take_all(&pairs, &mut added))?;
            if lane != own {
                of_path.row_mut(*s)[usize::from(*lid)] = lane;
            }
            highest = highest.max(lane);
        }
    }
    Some(highest)
}

struct Paths<'a> {
    graph: &'a SwitchGraph,
    lfts: &'a LftMatrix,
    hosts: Vec<u32>,
    /// Arc by (switch, port).
    arcs: Vec<u32>,
    /// Owner of each LID.
    owner: Vec<u32>,
    /// Where the dependencies of each arc begin.
    base: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl<'a> Paths<'a> {
    fn new(graph: &'a SwitchGraph, lfts: &'a LftMatrix) -> Self {
        let count = graph.switch_count();
        let mut hosts = vec![0; count];
        let mut owner = vec![NONE; lfts.stride()];
        for (index, d) in graph.destinations().iter().enumerate() {
            hosts[d.switch as usize] += u32::from(d.host);
            d.lids().for_each(|lid| owner[usize::from(lid)] = index as u32);
        }
        let mut arcs = vec![NONE; count << 8];
        for s in 0..count {
            for (i, arc) in graph.arcs(s as u32).iter().enumerate() {
                arcs[s << 8 | usize::from(arc.out_port)] = graph.offsets()[s] + i as u32;
            }
        }
        Self { graph, lfts, hosts, arcs, owner, base: dependency_starts(graph) }
    }

    fn to(&self, arc: u32) -> SwitchIndex {
        self.graph.all_arcs()[arc as usize].to
    }

    /// The dependency of packets that come over `arc` and go on over `next`.
    fn dependency(&self, arc: u32, next: u32) -> usize {
        (self.base[arc as usize] + next - self.graph.offsets()[self.to(arc) as usize]) as usize
    }

    /// Calls `visit` for each LID of hosts and switches with its tree.
    fn for_each_tree(&self, block: usize, scratch: &mut Scratch, mut visit: impl FnMut(usize, &mut Scratch)) {
        for lid in block * LFT_BLOCK..(block + 1) * LFT_BLOCK {
            if self.owner[lid] != NONE {
                self.tree(lid, scratch);
                visit(lid, scratch);
            }
        }
    }

    /// The arcs of a LID's tree, and the switches nearest first.
    fn tree(&self, lid: usize, scratch: &mut Scratch) {
        let target = self.graph.destinations()[self.owner[lid] as usize].switch;
        let count = self.graph.switch_count();
        for s in 0..count {
            let port = self.lfts.row(s as u32)[lid];
            scratch.next[s] = if port == NO_PORT { NONE } else { self.arcs[s << 8 | usize::from(port)] };
            scratch.depth[s] = NONE;
        }
        scratch.next[target as usize] = NONE;
        scratch.depth[target as usize] = 0;
        scratch.order.clear();
        for start in 0..count as u32 {
            let mut at = start;
            scratch.stack.clear();
            while scratch.depth[at as usize] == NONE && scratch.next[at as usize] != NONE {
                scratch.stack.push(at);
                at = self.to(scratch.next[at as usize]);
                if scratch.stack.len() > count {
                    break;
                }
            }
            if scratch.depth[at as usize] != NONE {
                while let Some(s) = scratch.stack.pop() {
                    scratch.depth[s as usize] = scratch.depth[at as usize] + 1;
                    scratch.order.push(s);
                    at = s;
                }
            }
        }
        let depth = &scratch.depth;
        scratch.order.sort_unstable_by_key(|s| depth[*s as usize]);
    }

    fn blocks(&self) -> usize {
        self.lfts.stride() / LFT_BLOCK
    }

    /// Paths of hosts on `lane` over every dependency.
    fn count(&self, lanes: &LftMatrix, lane: u8) -> Vec<u32> {
        let paths = |s: usize, lid| if lanes.row(s as u32)[lid] == lane { self.hosts[s] } else { 0 };
        self.along_trees(paths, |all, more| *all += more)
    }

    /// One bit for each lane on which some path takes a dependency.
    fn taken(&self, lanes: &LftMatrix) -> Vec<u16> {
        let set = |s: usize, lid| if self.hosts[s] > 0 { 1_u32 << lanes.row(s as u32)[lid] } else { 0 };
        self.along_trees(set, |all, more| *all |= more).into_iter().map(|set| set as u16).collect()
    }

    /// Joins over every dependency what the paths along it have: `of_path` by the switch where a path begins and LID, `join` in any
    /// order.
    fn along_trees(
        &self,
        of_path: impl Fn(usize, usize) -> u32 + Sync,
        join: impl Fn(&mut u32, u32) + Sync,
    ) -> Vec<u32> {
        let total = self.base[self.base.len() - 1] as usize;
        let share = self.blocks().div_ceil(rayon::current_num_threads()).max(1);
        let of_blocks = |blocks: &[usize]| {
            let mut found = vec![0; total];
            let mut scratch = Scratch::new(self.graph.switch_count());
            for block in blocks {
                self.for_each_tree(*block, &mut scratch, |lid, scratch| {
                    for (s, paths) in scratch.paths.iter_mut().enumerate() {
                        *paths = of_path(s, lid);
                    }
                    for s in scratch.order.iter().rev() {
                        let arc = scratch.next[*s as usize];
                        let (to, paths) = (self.to(arc) as usize, scratch.paths[*s as usize]);
                        join(&mut scratch.paths[to], paths);
                        if scratch.next[to] != NONE {
                            join(&mut found[self.dependency(arc, scratch.next[to])], paths);
                        }
                    }
                });
            }
            found
        };
        let joined = |mut all: Vec<u32>, part: Vec<u32>| {
            all.iter_mut().zip(part).for_each(|(a, b)| join(a, b));
            all
        };
        let blocks: Vec<usize> = (0..self.blocks()).collect();
        blocks.par_chunks(share).map(of_blocks).reduce_with(joined).unwrap_or_default()
    }

    /// The dependencies of a lane without a cycle.
    fn dependencies(&self, counts: &[u32]) -> Acyclic {
        let mut lane = Acyclic::new(self.graph.all_arcs().len());
        for arc in 0..self.graph.all_arcs().len() {
            let next = self.graph.offsets()[self.to(arc as u32) as usize]..;
            let there = &counts[self.base[arc] as usize..self.base[arc + 1] as usize];
            for (next, _) in next.zip(there).filter(|(_, count)| **count > 0) {
                lane.insert_new(arc as u32, next);
            }
        }
        lane
    }

    fn any(&self, lanes: &LftMatrix, lane: u8) -> bool {
        (0..self.graph.switch_count() as u32).any(|s| lanes.row(s).iter().any(|of| *of == lane))
    }

    /// Moves the paths of `lane` over a forbidden dependency to the next lane.
    fn move_on(&self, forbidden: &[bool], lanes: &mut LftMatrix, lane: u8) {
        // A path is found from its end: it crosses when the rest of it does, or its first dependency is forbidden.
        let moves: Vec<Vec<(SwitchIndex, u16)>> = (0..self.blocks())
            .into_par_iter()
            .map_init(
                || Scratch::new(self.graph.switch_count()),
                |scratch, block| {
                    let mut moves = Vec::new();
                    self.for_each_tree(block, scratch, |lid, scratch| {
                        scratch.paths.fill(0);
                        for s in &scratch.order {
                            let arc = scratch.next[*s as usize];
                            let to = self.to(arc) as usize;
                            let next = scratch.next[to];
                            let crosses = scratch.paths[to] == 1
                                || (next != NONE && forbidden[self.dependency(arc, next)]);
                            scratch.paths[*s as usize] = u32::from(crosses);
                            if crosses && lanes.row(*s)[lid] == lane && self.hosts[*s as usize] > 0 {
                                moves.push((*s, lid as u16));
                            }
                        }
                    });
                    moves
                },
            )
            .collect();
        for (s, lid) in moves.into_iter().flatten() {
            lanes.row_mut(s)[usize::from(lid)] = lane + 1;
        }
    }

    /// The weakest dependencies of some cycles, `None` when there is no cycle.
    fn weakest(&self, counts: &[u32]) -> Option<Vec<bool>> {
        let mut search = Cycles { paths: self, counts, forbidden: vec![false; counts.len()], found: 0 };
        search.run();
        (search.found > 0).then_some(search.forbidden)
    }
}

struct Scratch {
    next: Vec<u32>,
    depth: Vec<u32>,
    order: Vec<SwitchIndex>,
    stack: Vec<SwitchIndex>,
    paths: Vec<u32>,
}

impl Scratch {
    fn new(count: usize) -> Self {
        Self {
            next: vec![NONE; count],
            depth: vec![NONE; count],
            order: Vec::with_capacity(count),
            stack: Vec::new(),
            paths: vec![0; count],
        }
    }
}

/// A search through the dependency graph that forbids the weakest edge of every cycle it meets.
struct Cycles<'p, 'a> {
    paths: &'p Paths<'a>,
    counts: &'p [u32],
    forbidden: Vec<bool>,
    found: usize,
}

/// Cycles broken before the paths are counted again: moving paths often breaks others too.
const CYCLES_AT_ONCE: usize = 64;

impl Cycles<'_, '_> {
    fn degree(&self, arc: u32) -> u32 {
        self.paths.base[arc as usize + 1] - self.paths.base[arc as usize]
    }

    fn run(&mut self) {
        const NEW: u8 = 0;
        const OPEN: u8 = 1;
        const DONE: u8 = 2;
        let arcs = self.paths.graph.all_arcs().len();
        let mut state = vec![NEW; arcs];
        // The arcs along the search, each with the number of the dependency tried last.
        let mut trail: Vec<(u32, u32)> = Vec::new();
        for start in 0..arcs as u32 {
            if state[start as usize] != NEW {
                continue;
            }
            state[start as usize] = OPEN;
            trail.push((start, 0));
            while let Some((arc, tried)) = trail.last_mut() {
                if *tried == self.degree(*arc) {
                    state[*arc as usize] = DONE;
                    trail.pop();
                    continue;
                }
                let (at, number) = (*arc, *tried);
                *tried += 1;
                let dependency = (self.paths.base[at as usize] + number) as usize;
                if self.counts[dependency] == 0 || self.forbidden[dependency] {
                    continue;
                }
                let next = self.paths.graph.offsets()[self.paths.to(at) as usize] + number;
                match state[next as usize] {
                    NEW => {
                        state[next as usize] = OPEN;
                        trail.push((next, 0));
                    }
                    OPEN => {
                        let first = trail.iter().rposition(|(a, _)| *a == next).unwrap_or(0);
                        let weakest = self.forbid(&trail[first..]);
                        self.found += 1;
                        if self.found == CYCLES_AT_ONCE {
                            return;
                        }
                        // Go back to where the edge was taken from; what lies behind is searched again if need be.
                        for (a, _) in trail.drain(first + weakest + 1..) {
                            state[a as usize] = NEW;
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// Forbids the weakest dependency along a cycle; returns its place.
    fn forbid(&mut self, cycle: &[(u32, u32)]) -> usize {
        let dependency = |(arc, tried): &(u32, u32)| (self.paths.base[*arc as usize] + tried - 1) as usize;
        let key = |i: &usize| (self.counts[dependency(&cycle[*i])], *i);
        let weakest = (0..cycle.len()).min_by_key(key).unwrap_or(0);
        let at = dependency(&cycle[weakest]);
        self.forbidden[at] = true;
        weakest
    }
}
