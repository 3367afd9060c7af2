//! Roots and ranks for engines that know "up" and "down".

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use mad::types::Guid;

use super::RoutingInput;
use super::next_hops::{Earlier, NextHops, Turn};
use super::targets::{Targets, tree_levels, with_hosts};
use crate::fabric::{SwitchGraph, SwitchIndex};

/// The root switches: those given that are in the fabric, else those found. `None` when GUIDs are given and none is there.
pub(crate) fn roots(graph: &SwitchGraph, input: &RoutingInput) -> Option<Vec<SwitchIndex>> {
    let given = &input.root_guids;
    if given.is_empty() {
        return Some(find_roots(graph, input));
    }
    let found: Vec<SwitchIndex> =
        (0..graph.switch_count() as u32).filter(|s| given.contains(&graph.guid(*s))).collect();
    (!found.is_empty()).then_some(found)
}

/// Finds roots: switches without hosts that no neighbour is farther from the hosts than. Left out of account are switches at the
/// end of a spur, with neither hosts nor a second neighbour, and those farther out than other roots that no shortest path between
/// hosts goes through: a leaf without hosts that hangs on roots does not stand above them. B23: only what is
/// linked now is looked at, so a missing cable neither hides a root nor makes one.
pub(crate) fn find_roots(graph: &SwitchGraph, input: &RoutingInput) -> Vec<SwitchIndex> {
    let level = tree_levels(graph, input);
    let mut aside = spurs(graph, &level);
    let mut paths = HostPaths::new(graph, &level);
    let mut first: Option<Vec<SwitchIndex>> = None;
    loop {
        let highest = |s: &SwitchIndex| {
            let here = level[*s as usize];
            let above = |to: SwitchIndex| !aside[to as usize] && level[to as usize] > here;
            here != u16::MAX && here > 0 && !aside[*s as usize] && !graph.arcs(*s).iter().any(|a| above(a.to))
        };
        let found: Vec<SwitchIndex> = (0..graph.switch_count() as u32).filter(highest).collect();
        // Of the lowest ones the first speaks for all: on a tree they are alike.
        let lowest = found.iter().copied().min_by_key(|s| level[*s as usize]);
        let all = lowest.is_some_and(|s| !paths.go_through(s));
        let least = lowest.map_or(0, |s| level[s as usize]);
        let mut beyond = found.clone();
        beyond.retain(|s| (all || level[*s as usize] > least) && !paths.go_through(*s));
        if found.is_empty() || beyond.is_empty() {
            // Where no shortest path goes through any of them, all are as good as roots.
            return first.filter(|_| found.is_empty()).unwrap_or(found);
        }
        beyond.into_iter().for_each(|s| aside[s as usize] = true);
        first.get_or_insert(found);
    }
}

/// Distances from the switches with hosts, found as they are asked for. Cost: a search for each.
struct HostPaths<'g> {
    graph: &'g SwitchGraph,
    leaves: Vec<SwitchIndex>,
    from_leaf: Vec<Option<Vec<u16>>>,
}

impl<'g> HostPaths<'g> {
    fn new(graph: &'g SwitchGraph, level: &[u16]) -> Self {
        let leaves: Vec<SwitchIndex> = (0..level.len() as u32).filter(|s| level[*s as usize] == 0).collect();
        Self { graph, from_leaf: vec![None; leaves.len()], leaves }
    }

    /// Whether a shortest path between two switches with hosts goes through `s`.
    fn go_through(&mut self, s: SwitchIndex) -> bool {
        let (graph, leaves) = (self.graph, &self.leaves);
        let to = distances(graph, s);
        // Near ones first, as on a tree these have a path through `s`.
        let mut order: Vec<usize> = (0..leaves.len()).collect();
        order.sort_by_key(|a| to[leaves[*a] as usize]);
        order.into_iter().any(|a| {
            let start = to[leaves[a] as usize];
            let from = self.from_leaf[a].get_or_insert_with(|| distances(graph, leaves[a]));
            start != u16::MAX
                && leaves.iter().any(|b| {
                    let end = to[*b as usize];
                    end != u16::MAX && *b != leaves[a] && start + end == from[*b as usize]
                })
        })
    }
}

/// Hops from a switch, `u16::MAX` where there is no way.
fn distances(graph: &SwitchGraph, from: SwitchIndex) -> Vec<u16> {
    let mut distance = vec![u16::MAX; graph.switch_count()];
    spread(graph, &[from], &mut distance);
    distance
}

fn spurs(graph: &SwitchGraph, level: &[u16]) -> Vec<bool> {
    let mut spur = vec![false; level.len()];
    let mut queue: Vec<SwitchIndex> = (0..level.len() as u32).collect();
    while let Some(s) = queue.pop() {
        if spur[s as usize] || level[s as usize] == 0 {
            continue;
        }
        let mut neighbours: Vec<SwitchIndex> =
            graph.arcs(s).iter().map(|a| a.to).filter(|to| !spur[*to as usize]).collect();
        neighbours.dedup();
        if neighbours.len() <= 1 {
            spur[s as usize] = true;
            queue.extend(neighbours);
        }
    }
    spur
}

/// How many paths are made legal one by one before the whole order is changed.
const MOST_RAISED: usize = 8;

/// Ranks below roots, and which way every arc points.
#[derive(Clone)]
pub(crate) struct Ranks {
    /// Hops from the nearest root.
    pub rank: Vec<u16>,
    /// Place in the order of all switches, the uppermost first.
    place: Vec<u32>,
    from: Vec<SwitchIndex>,
}

impl Ranks {
    /// Ranks from `roots`. A part of the fabric without any root gets its middle as one, which is added to `roots`.
    /// `ids` decides between switches of one rank: the larger is upper.
    pub(crate) fn new(graph: &SwitchGraph, roots: &mut Vec<SwitchIndex>, ids: &BTreeMap<Guid, u64>) -> Self {
        let count = graph.switch_count();
        let mut rank = vec![u16::MAX; count];
        spread(graph, roots, &mut rank);
        for s in 0..count as u32 {
            if rank[s as usize] == u16::MAX {
                let middle = middle(graph, s);
                roots.push(middle);
                spread(graph, &[middle], &mut rank);
            }
        }
        let id = |s: SwitchIndex| ids.get(&graph.guid(s)).copied().unwrap_or_else(|| graph.guid(s).0);
        let mut order: Vec<SwitchIndex> = (0..count as u32).collect();
        order.sort_by_key(|s| (rank[*s as usize], Reverse(id(*s))));
        Self { rank, place: places(&order), from: graph.sources() }
    }

    /// Reorders such that every switch but one has an upper neighbour, as far as the fabric hangs together: then a legal path
    /// joins every two switches. The order is grown from the uppermost switch, always by the one of the highest rank that
    /// touches what is ordered already, so that most stay where they were.
    pub(crate) fn join(&mut self, graph: &SwitchGraph) {
        let mut order: Vec<SwitchIndex> = Vec::with_capacity(self.place.len());
        let mut known = vec![false; self.place.len()];
        let mut heap = BinaryHeap::new();
        let mut starts: Vec<SwitchIndex> = (0..self.place.len() as u32).collect();
        starts.sort_by_key(|s| self.place[*s as usize]);
        for start in starts {
            if !std::mem::replace(&mut known[start as usize], true) {
                heap.push(Reverse((0, 0, start)));
            }
            while let Some(Reverse((.., s))) = heap.pop() {
                order.push(s);
                for arc in graph.arcs(s) {
                    let to = arc.to as usize;
                    if !std::mem::replace(&mut known[to], true) {
                        heap.push(Reverse((self.rank[to], self.place[to], arc.to)));
                    }
                }
            }
        }
        self.place = places(&order);
    }

    /// Makes a shortest path between two switches go up and down, with as few switches raised as can be, each to just above the one
    /// that it has to be above. So most other paths stay as they are.
    fn raise_between(&mut self, graph: &SwitchGraph, from: SwitchIndex, to: SwitchIndex) {
        let distance = distances(graph, to);
        let mut path = vec![from];
        let mut at = from;
        while let Some(next) =
            graph.arcs(at).iter().find(|arc| distance[arc.to as usize] < distance[at as usize])
        {
            at = next.to;
            path.push(at);
        }
        let is_above = |a: SwitchIndex, b: SwitchIndex| self.place[a as usize] < self.place[b as usize];
        let against = |top: &usize| {
            let before = path[..=*top].windows(2).filter(|ends| is_above(ends[0], ends[1])).count();
            before + path[*top..].windows(2).filter(|ends| is_above(ends[1], ends[0])).count()
        };
        let top = (0..path.len()).min_by_key(against).unwrap_or(0);
        let behind: Vec<SwitchIndex> = path[top..].iter().rev().copied().collect();
        for side in [&path[..=top], &behind] {
            for ends in side.windows(2) {
                self.raise(ends[1], ends[0]);
            }
        }
    }

    /// Puts a switch just above another, if it is below.
    fn raise(&mut self, s: SwitchIndex, above: SwitchIndex) {
        let (from, to) = (self.place[s as usize], self.place[above as usize]);
        if from > to {
            self.place.iter_mut().filter(|place| (to..from).contains(&**place)).for_each(|place| *place += 1);
            self.place[s as usize] = to;
        }
    }

    /// The place of each switch in the order, the uppermost 0.
    pub(crate) fn order(&self) -> Arc<[u32]> {
        self.place.clone().into()
    }

    /// The order upside down.
    pub(crate) fn order_reversed(&self) -> Arc<[u32]> {
        let last = self.place.len().saturating_sub(1) as u32;
        self.place.iter().map(|place| last - place).collect()
    }

    /// Which way arc number `arc` points.
    pub(crate) fn turn(&self, graph: &SwitchGraph, arc: usize) -> Turn {
        let (from, to) = (self.from[arc] as usize, graph.all_arcs()[arc].to as usize);
        if self.place[to] < self.place[from] { Turn::Up } else { Turn::Down }
    }

    /// Levels as distances from the lowest rank.
    pub(crate) fn levels(&self) -> Vec<u16> {
        let lowest = self.rank.iter().copied().max().unwrap_or(0);
        self.rank.iter().map(|rank| lowest - rank).collect()
    }
}

/// The best first arcs by the order of `ranks`; where no legal path joins two switches with hosts, that order is changed: the
/// switches between such two are raised, pair by pair, and if pairs are left after a few, [`Ranks::join`]. With them what is
/// spread over them by the levels of that order.
pub(super) fn legal_hops(
    graph: &SwitchGraph,
    ranks: &mut Ranks,
    input: &RoutingInput,
    earlier: Option<Earlier<'_>>,
) -> (NextHops, Targets) {
    let search = |ranks: &Ranks| NextHops::up_down(graph, &|arc| ranks.turn(graph, arc), earlier);
    let targets = |ranks: &Ranks| Targets::with_levels(graph, &ranks.levels(), input);
    let ends = with_hosts(graph);
    // The first order is the last one nearly always.
    let (hops, spread) = rayon::join(|| search(ranks), || targets(ranks));
    let Some((from, to)) = hops.first_detour(&ends) else { return (hops, spread) };
    let whole = ranks.clone();
    ranks.raise_between(graph, from, to);
    for _ in 0..MOST_RAISED {
        let hops = search(ranks);
        match hops.first_detour(&ends) {
            Some((from, to)) => ranks.raise_between(graph, from, to),
            None => return (hops, targets(ranks)),
        }
    }
    *ranks = whole;
    ranks.join(graph);
    rayon::join(|| search(ranks), || targets(ranks))
}

/// An order in which every switch but one has an upper neighbour, as far as the fabric hangs together: the place of each
/// switch, the uppermost 0. In it a tree's switches mostly stand by their levels.
pub(crate) fn joined_order(graph: &SwitchGraph) -> Arc<[u32]> {
    let mut roots = find_roots(graph, &RoutingInput::default());
    let mut ranks = Ranks::new(graph, &mut roots, &BTreeMap::new());
    ranks.join(graph);
    ranks.order()
}

/// The first arc of each switch to its uppermost neighbour, `u32::MAX` where no neighbour is above it.
pub(crate) fn upper_arcs(graph: &SwitchGraph, order: &[u32]) -> Vec<u32> {
    let place = |s: SwitchIndex| order[s as usize];
    let of = |s: SwitchIndex| {
        let arcs = (graph.offsets()[s as usize]..).zip(graph.arcs(s));
        let upper = arcs.filter(|(_, arc)| place(arc.to) < place(s));
        upper.min_by_key(|(number, arc)| (place(arc.to), *number)).map_or(u32::MAX, |(number, _)| number)
    };
    (0..order.len() as SwitchIndex).map(of).collect()
}

fn places(order: &[SwitchIndex]) -> Vec<u32> {
    let mut place = vec![0; order.len()];
    for (number, s) in order.iter().enumerate() {
        place[*s as usize] = number as u32;
    }
    place
}

fn spread(graph: &SwitchGraph, from: &[SwitchIndex], rank: &mut [u16]) {
    let mut queue: Vec<SwitchIndex> = from.to_vec();
    for s in from {
        rank[*s as usize] = 0;
    }
    let mut head = 0;
    while let Some(&at) = queue.get(head) {
        head += 1;
        for arc in graph.arcs(at) {
            if rank[arc.to as usize] == u16::MAX {
                rank[arc.to as usize] = rank[at as usize] + 1;
                queue.push(arc.to);
            }
        }
    }
}

/// The middle of a long shortest path in the part that `start` belongs to: two sweeps find its ends.
fn middle(graph: &SwitchGraph, start: SwitchIndex) -> SwitchIndex {
    let farthest = |distance: &[u16]| {
        let reached = (0..distance.len()).filter(|s| distance[*s] != u16::MAX);
        reached.max_by_key(|s| (distance[*s], Reverse(*s))).unwrap_or(0) as u32
    };
    let one = farthest(&distances(graph, start));
    let from_one = distances(graph, one);
    let other = farthest(&from_one);
    let from_other = distances(graph, other);
    let length = from_one[other as usize];
    let on_path = |s: &usize| from_one[*s] != u16::MAX && from_one[*s] + from_other[*s] == length;
    let half = |s: &usize| from_one[*s] == length / 2;
    (0..graph.switch_count()).find(|s| on_path(s) && half(s)).map_or(start, |s| s as u32)
}
