//! `lash`: shortest paths, layered by pairs of switches.
//!
//! - Input: any graph.
//! - Guarantees: minimal hop counts; no credit loop: each pair of switches (both directions) belongs to the first virtual
//!   lane on which its paths close no cycle of channels. The SL goes by (source switch, LID): 0 is VL 0, 15 VL 1, 14 VL 2 and so
//!   on. Parallel cables count as one
//!   channel and share the LIDs.
//! - LMC: the LIDs of one port take different neighbours where several are on shortest paths, and then different cables; when
//!   that needs more VLs than there are, different cables only.
//! - After lost links: trees over one are mended with as few entries as minimal paths allow, and pairs of switches whose path changed
//!   keep their SL where they can, both directions one ([`repair`](mod@repair), [`super::base`]).
//! - Refuses: when the links have fewer VLs than it needs (says how many).
//! - Multicast: the first lane keeps room for a tree of all switches ([`super::escape`]); where the VLs do not suffice even so,
//!   a tree is grown in the last lane that has room when all pairs have theirs, if one has, and that lane is the first then.
//!   SLs that no path has take the first lane; groups of one that paths have, other than 0, take their chance.
//! - Balance: equal neighbours are taken in dimension order (the one behind the first port), by both ends, and if neither is even by the
//!   load so far; of these the one goes whose fullest link has the fewest routes.
//! - VLs: 1 on trees, few elsewhere. Where the most even choice needs more than there are, the next one is tried.
//! - Cost: pairs of switches · hops, each with a short repair of a topological order ([`super::acyclic`]) in place of a new
//!   search for cycles. Memory: dependencies for each lane, and two bytes for each pair of switches and each of up to 16
//!   LIDs of a port: less than the tables. No limit on the number of switches.
//! - Source: Skeie, Lysne, Theiss, LASH (IPDPS 2002).

use std::sync::Arc;

use rayon::prelude::*;

use super::acyclic::Acyclic;
use super::base::Kept;
use super::escape;
use super::layers::swapped;
use super::room::{Taken, dependency_starts};
use super::sssp::price;
use super::targets::Targets;
use super::{RoutingEngine, RoutingError, RoutingInput};
use crate::fabric::{SwitchGraph, SwitchIndex};
use crate::routes::{LftMatrix, PathSl, Routes, SlToVl, sl_of_lane};

/// The engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lash;

impl RoutingEngine for Lash {
    fn name(&self) -> &'static str {
        "lash"
    }

    fn route(&self, graph: &SwitchGraph, input: &RoutingInput) -> Result<Routes, RoutingError> {
        layered(graph, input).map(|(routes, ..)| routes)
    }
}

fn layered(graph: &SwitchGraph, input: &RoutingInput) -> Result<(Routes, Paths, Layers), RoutingError> {
    let available = input.vls();
    let targets = Targets::new(graph, input);
    let mut needed = u8::MAX;
    let ways = usize::from(1_u8 << graph.destinations().iter().map(|d| d.lmc).max().unwrap_or(0).min(4));
    let parents = escape::parents(graph);
    let turns = escape::turns(graph, &parents);
    for ways in [ways, 1].into_iter().skip(usize::from(ways == 1)) {
        for paths in candidates(graph, &targets, ways) {
            // Room for multicast, if there are VLs enough.
            for reserved in [&turns[..], &[]] {
                let mut layers = Layers::assign(graph, &paths, reserved);
                needed = needed.min(layers.count());
                if layers.count() <= available {
                    let spanning = match reserved {
                        [] => layers.make_room(graph, &paths, &parents),
                        _ => Some(Arc::clone(&parents)),
                    };
                    let mut routes = tables(graph, &targets, &paths, &layers);
                    routes.spanning = spanning.into_iter().collect();
                    if routes.vls > 1 {
                        routes.sl_to_vl = SlToVl::first_for_most(available);
                    }
                    return Ok((routes, paths, layers));
                }
            }
        }
    }
    Err(RoutingError::NotEnoughVls { engine: "lash", needed, available })
}

/// Paths chosen one way and another, those whose fullest link has the fewest routes first.
fn candidates(graph: &SwitchGraph, targets: &Targets, ways: usize) -> impl Iterator<Item = Paths> {
    let drawn = move |choice| Paths::new(graph, targets, choice, ways);
    // The most routes over a link, whether all links in use have about as many, and the paths.
    let judged = |choice| {
        let paths = drawn(choice);
        let load = paths.load(graph);
        let used = load.iter().filter(|load| **load > 0);
        let mean = used.clone().sum::<u64>() / used.count().max(1) as u64;
        let most = load.into_iter().max().unwrap_or(0);
        (most, 10 * most <= 11 * mean, paths)
    };
    let mut found = vec![judged(Choice::BothEnds)];
    let even_tree = !targets.is_flat() && found[0].1;
    if !even_tree {
        found.insert(0, judged(Choice::FirstPort));
        // Choosing by load takes the longest, and breaks the rules that keep to few lanes: only where that can help.
        if found.iter().all(|(_, even, _)| !even) {
            found.push(judged(Choice::Load));
        }
        found.sort_by_key(|(most, ..)| *most);
    }
    let later = even_tree.then_some(Choice::FirstPort);
    found.into_iter().map(|(.., paths)| paths).chain(later.into_iter().map(drawn))
}

/// Which of the neighbours on shortest paths is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Choice {
    /// The one behind the first port: on regular cabling that keeps to dimensions.
    FirstPort,
    /// By the target, as its ranks would be, and by the switch, as one that has hosts gets all of its traffic so.
    BothEnds,
    /// The one whose way has the least load by all targets before, and once more by all others.
    Load,
}

pub(super) fn from_nothing(
    graph: &SwitchGraph,
    input: &RoutingInput,
) -> Result<(Routes, Kept), RoutingError> {
    let (routes, paths, layers) = layered(graph, input)?;
    let load = paths.load(graph);
    let taken = Taken::new(graph, layers.taken(graph, &paths), routes.vls);
    Ok((routes, Kept { load, taken: Some(taken), ways: paths.ways }))
}

/// Neighbours of switches, parallel cables joined, and the neighbour on the way to each switch.
struct Paths {
    /// Where the neighbours of each switch begin.
    offsets: Vec<u32>,
    neighbours: Vec<SwitchIndex>,
    /// For each (way, target, switch), which of the switch's channels is taken; [`NO_CHANNEL`] for none.
    next: Vec<u8>,
    /// Ways to each target: LIDs of one port go different ones.
    ways: usize,
    count: usize,
}

/// No channel; no switch has as many neighbours.
const NO_CHANNEL: u8 = u8::MAX;

impl Paths {
    fn new(graph: &SwitchGraph, targets: &Targets, choice: Choice, ways: usize) -> Self {
        let count = graph.switch_count();
        let mut offsets = vec![0];
        let mut neighbours: Vec<SwitchIndex> = Vec::new();
        for s in 0..count as u32 {
            let first = neighbours.len();
            let mut by_port: Vec<_> = graph.arcs(s).iter().map(|a| (a.out_port, a.to)).collect();
            by_port.sort_unstable();
            for (_, to) in by_port {
                if !neighbours[first..].contains(&to) {
                    neighbours.push(to);
                }
            }
            offsets.push(neighbours.len() as u32);
        }
        let next = vec![NO_CHANNEL; ways * count * count];
        let mut paths = Self { offsets, neighbours, next, ways, count };
        let mut distance = vec![u16::MAX; count];
        let mut queue = Vec::with_capacity(count);
        let mut by_load = (choice == Choice::Load).then(|| ByLoad::new(graph, &paths));
        let rounds = if by_load.is_some() { 2 } else { 1 };
        for round in 0..rounds {
            for target in 0..count as u32 {
                paths.search(target, &mut distance, &mut queue);
                match &mut by_load {
                    Some(by_load) => {
                        if round > 0 {
                            by_load.count(&paths, target, &queue, false);
                        }
                        by_load.choose(&mut paths, target, &queue, &distance);
                        by_load.count(&paths, target, &queue, true);
                    }
                    None => paths.choose(target, targets, choice, &queue, &distance),
                }
            }
        }
        paths
    }

    fn channels(&self, s: SwitchIndex) -> std::ops::Range<u32> {
        self.offsets[s as usize]..self.offsets[s as usize + 1]
    }

    /// The channel from a switch to a neighbour.
    fn channel(&self, from: SwitchIndex, to: SwitchIndex) -> Option<u32> {
        self.channels(from).find(|channel| self.neighbours[*channel as usize] == to)
    }

    /// Turns, pairs of arcs, as pairs of channels.
    fn turns(&self, graph: &SwitchGraph, turns: &[(u32, u32)]) -> Vec<(u32, u32)> {
        let channels = |(into, out): &(u32, u32)| {
            let [middle, end] = [into, out].map(|arc| graph.all_arcs()[*arc as usize].to);
            let back = graph.all_arcs()[*into as usize].in_port;
            let start = graph.arcs(middle).iter().find(|arc| arc.out_port == back)?.to;
            self.channel(start, middle).zip(self.channel(middle, end))
        };
        turns.iter().filter_map(channels).collect()
    }

    /// Hops to a target, and the switches in order of these.
    fn search(&self, target: SwitchIndex, distance: &mut [u16], queue: &mut Vec<SwitchIndex>) {
        distance.fill(u16::MAX);
        distance[target as usize] = 0;
        queue.clear();
        queue.push(target);
        let mut head = 0;
        while let Some(&at) = queue.get(head) {
            head += 1;
            for channel in self.channels(at) {
                let to = self.neighbours[channel as usize] as usize;
                if distance[to] == u16::MAX {
                    distance[to] = distance[at as usize] + 1;
                    queue.push(to as u32);
                }
            }
        }
    }

    /// The channels of a switch that lead nearer.
    fn nearer(&self, s: SwitchIndex, distance: &[u16]) -> impl Iterator<Item = u32> {
        let leads =
            move |c: &u32| distance[self.neighbours[*c as usize] as usize] + 1 == distance[s as usize];
        self.channels(s).filter(leads)
    }

    fn choose(
        &mut self,
        target: SwitchIndex,
        targets: &Targets,
        choice: Choice,
        queue: &[SwitchIndex],
        distance: &[u16],
    ) {
        for s in &queue[1..] {
            let equal: Vec<u32> = self.nearer(*s, distance).collect();
            let digit = |of: SwitchIndex| {
                targets.of(of).first().map_or(of, |own| own.rank) / targets.divider[*s as usize]
            };
            let first = match choice {
                Choice::BothEnds => digit(target).wrapping_add(digit(*s)) as usize % equal.len().max(1),
                Choice::FirstPort | Choice::Load => 0,
            };
            self.take(target, *s, &equal, first);
        }
    }

    /// Gives the ways to a target the channels of a switch in turn, from one on.
    fn take(&mut self, target: SwitchIndex, s: SwitchIndex, equal: &[u32], first: usize) {
        for way in 0..self.ways {
            let channel = equal.get((first + way) % equal.len().max(1));
            let cell = self.cell(way, target, s);
            self.next[cell] = channel.map_or(NO_CHANNEL, |c| (c - self.offsets[s as usize]) as u8);
        }
    }

    fn cell(&self, way: usize, target: SwitchIndex, s: SwitchIndex) -> usize {
        (way * self.count + target as usize) * self.count + s as usize
    }

    /// The channel that `s` takes to `target`.
    fn next(&self, way: usize, target: SwitchIndex, s: SwitchIndex) -> Option<u32> {
        let channel = self.next[self.cell(way, target, s)];
        (channel != NO_CHANNEL).then(|| self.offsets[s as usize] + u32::from(channel))
    }

    /// Routes of hosts over each arc, parallel cables alike.
    fn load(&self, graph: &SwitchGraph) -> Vec<u64> {
        let mut hosts = vec![0_u64; self.count];
        // Its hosts' LIDs, by way.
        let mut lids = vec![0_u64; self.ways * self.count];
        for d in graph.destinations().iter().filter(|d| d.host) {
            hosts[d.switch as usize] += 1;
            for (offset, _) in d.lids().enumerate() {
                lids[offset % self.ways * self.count + d.switch as usize] += 1;
            }
        }
        let over_channels = lids.par_iter().enumerate().fold(
            || vec![0_u64; self.neighbours.len()],
            |mut load, (tree, lids)| {
                let (way, target) = (tree / self.count, (tree % self.count) as u32);
                for s in (0..self.count as u32).filter(|s| *lids > 0 && hosts[*s as usize] > 0) {
                    self.walk(way, s, target, |channel| load[channel as usize] += hosts[s as usize] * lids);
                }
                load
            },
        );
        let over_channels = over_channels.reduce(Vec::new, |a, b| match a[..] {
            [] => b,
            _ => a.iter().zip(&b).map(|(a, b)| a + b).collect(),
        });
        let mut load = Vec::with_capacity(graph.all_arcs().len());
        for s in 0..self.count as u32 {
            let arcs = graph.arcs(s);
            load.extend(arcs.iter().map(|arc| {
                let cables = arcs.iter().filter(|other| other.to == arc.to).count() as u64;
                self.channel(s, arc.to).map_or(0, |channel| over_channels[channel as usize] / cables)
            }));
        }
        load
    }

    /// Calls `visit` with each channel of the way from `from` to `to`.
    fn walk(&self, way: usize, from: SwitchIndex, to: SwitchIndex, mut visit: impl FnMut(u32)) {
        let mut next = self.next(way, to, from);
        while let Some(channel) = next {
            visit(channel);
            next = self.next(way, to, self.neighbours[channel as usize]);
        }
    }

    /// Appends every dependency on the way from `from` to `to`.
    fn dependencies(&self, way: usize, from: SwitchIndex, to: SwitchIndex, out: &mut Vec<(u32, u32)>) {
        let mut last = None;
        self.walk(way, from, to, |channel| out.extend(last.replace(channel).map(|last| (last, channel))));
    }
}

/// Chooses by the load so far.
struct ByLoad {
    /// Hosts of each switch.
    hosts: Vec<u64>,
    /// Cables of each channel.
    cables: Vec<u64>,
    /// Routes over each channel.
    load: Vec<u64>,
    /// What the first way from each switch costs.
    cost: Vec<u64>,
    /// Hosts that send through each switch.
    senders: Vec<u64>,
}

impl ByLoad {
    fn new(graph: &SwitchGraph, paths: &Paths) -> Self {
        let mut hosts = vec![0; paths.count];
        graph.destinations().iter().filter(|d| d.host).for_each(|d| hosts[d.switch as usize] += 1);
        let cables_to =
            |s: u32, to: SwitchIndex| graph.arcs(s).iter().filter(|arc| arc.to == to).count() as u64;
        let of = |s: u32| paths.channels(s).map(move |c| cables_to(s, paths.neighbours[c as usize]));
        Self {
            cables: (0..paths.count as u32).flat_map(of).collect(),
            load: vec![0; paths.neighbours.len()],
            cost: vec![0; paths.count],
            senders: vec![0; paths.count],
            hosts,
        }
    }

    fn choose(&mut self, paths: &mut Paths, target: SwitchIndex, queue: &[SwitchIndex], distance: &[u16]) {
        self.cost[target as usize] = 0;
        for s in &queue[1..] {
            let equal: Vec<u32> = paths.nearer(*s, distance).collect();
            let cost = |c: &u32| {
                let beyond = self.cost[paths.neighbours[*c as usize] as usize];
                beyond.saturating_add(price(self.load[*c as usize] / self.cables[*c as usize]))
            };
            let best = (0..equal.len()).min_by_key(|place| cost(&equal[*place])).unwrap_or(0);
            self.cost[*s as usize] = equal.get(best).map_or(0, cost);
            paths.take(target, *s, &equal, best);
        }
    }

    /// Puts the routes of hosts to a target on the channels of its ways, or takes them off.
    fn count(&mut self, paths: &Paths, target: SwitchIndex, queue: &[SwitchIndex], on: bool) {
        let to = self.hosts[target as usize];
        for way in (0..paths.ways).filter(|_| to > 0) {
            self.senders.copy_from_slice(&self.hosts);
            for s in queue[1..].iter().rev() {
                let Some(channel) = paths.next(way, target, *s) else { continue };
                let routes = to * self.senders[*s as usize];
                let load = &mut self.load[channel as usize];
                *load = if on { *load + routes } else { *load - routes };
                self.senders[paths.neighbours[channel as usize] as usize] += self.senders[*s as usize];
            }
        }
    }
}

/// The lane of each pair of switches.
struct Layers {
    lanes: Vec<Acyclic>,
    /// By the cells of [`Paths`]: way, target, source.
    of_pair: Vec<u8>,
}

impl Layers {
    /// Only pairs of switches with hosts are paths of traffic. The first lane keeps room for the turns `reserved`, pairs of arcs.
    fn assign(graph: &SwitchGraph, paths: &Paths, reserved: &[(u32, u32)]) -> Self {
        let count = graph.switch_count();
        let mut with_hosts = vec![false; count];
        graph.destinations().iter().filter(|d| d.host).for_each(|d| with_hosts[d.switch as usize] = true);
        let ends: Vec<SwitchIndex> = (0..count as u32).filter(|s| with_hosts[*s as usize]).collect();
        let mut layers =
            Self { lanes: vec![Acyclic::new(paths.neighbours.len())], of_pair: vec![0; paths.next.len()] };
        for (before, after) in paths.turns(graph, reserved) {
            // Turns of a tree close no cycle by themselves.
            layers.lanes[0].insert(before, after);
        }
        let mut dependencies = Vec::new();
        for way in 0..paths.ways {
            for (i, a) in ends.iter().enumerate() {
                for b in &ends[i + 1..] {
                    dependencies.clear();
                    paths.dependencies(way, *a, *b, &mut dependencies);
                    paths.dependencies(way, *b, *a, &mut dependencies);
                    let lane = layers.place(&dependencies, paths.neighbours.len());
                    layers.of_pair[paths.cell(way, *b, *a)] = lane;
                    layers.of_pair[paths.cell(way, *a, *b)] = lane;
                }
            }
        }
        layers
    }

    fn place(&mut self, dependencies: &[(u32, u32)], channels: usize) -> u8 {
        if let Some(number) = self.lanes.iter_mut().position(|lane| lane.insert_all(dependencies)) {
            return number as u8;
        }
        if self.lanes.len() >= usize::from(u8::MAX) {
            return u8::MAX - 1;
        }
        let mut lane = Acyclic::new(channels);
        // A single shortest path and its way back close no cycle: neither meets a channel twice.
        lane.insert_all(dependencies);
        self.lanes.push(lane);
        self.lanes.len() as u8 - 1
    }

    /// Grows a tree of all switches in the last lane that has room for one; that lane and the first change their numbers. `None`
    /// where no lane has room.
    fn make_room(&mut self, graph: &SwitchGraph, paths: &Paths, parents: &[u32]) -> Option<Arc<[u32]>> {
        let lanes = (0..self.count()).rev().map(|number| (number, self.lanes[usize::from(number)].clone()));
        let fits = |lane: &mut Acyclic, turns: &[(u32, u32)]| lane.insert_all(&paths.turns(graph, turns));
        let (roomy, tree) = escape::find_room(graph, parents, lanes, fits)?;
        fits(&mut self.lanes[usize::from(roomy)], &escape::turns(graph, &tree));
        self.lanes.swap(0, usize::from(roomy));
        self.of_pair.iter_mut().for_each(|lane| *lane = swapped(*lane, roomy));
        Some(tree)
    }

    /// The lanes that have each pair of arcs in a row, as [`Taken::new`] numbers them: those whose channels have it.
    fn taken(&self, graph: &SwitchGraph, paths: &Paths) -> Vec<u16> {
        let starts = dependency_starts(graph);
        let mut taken = vec![0; starts[graph.all_arcs().len()] as usize];
        for s in 0..paths.count as u32 {
            for (arc, ends) in (graph.offsets()[s as usize]..).zip(graph.arcs(s)) {
                let Some(channel) = paths.channel(s, ends.to) else { continue };
                let first = starts[arc as usize] as usize;
                for (number, lane) in self.lanes.iter().enumerate() {
                    for on in lane.following(channel) {
                        let to = paths.neighbours[*on as usize];
                        let cables = parallel(graph, ends.to, to);
                        taken[first + cables.start..first + cables.end]
                            .iter_mut()
                            .for_each(|lanes| *lanes |= 1 << number);
                    }
                }
            }
        }
        taken
    }

    fn count(&self) -> u8 {
        self.lanes.len() as u8
    }
}

/// The places among the arcs of `from` of those that lead to `to`.
fn parallel(graph: &SwitchGraph, from: SwitchIndex, to: SwitchIndex) -> std::ops::Range<usize> {
    let arcs = graph.arcs(from);
    arcs.partition_point(|arc| arc.to < to)..arcs.partition_point(|arc| arc.to <= to)
}

fn tables(graph: &SwitchGraph, targets: &Targets, paths: &Paths, layers: &Layers) -> Routes {
    let mut routes = Routes::empty("lash", graph);
    let mut sl = LftMatrix::new(graph.switch_count(), graph.top_lid());
    let rows = routes.lfts.par_rows_mut().zip(sl.par_rows_mut()).enumerate();
    rows.for_each(|(s, (row, sls))| {
        let s = s as u32;
        // The cables of each channel.
        let cables: Vec<Vec<u8>> = paths
            .channels(s)
            .map(|channel| {
                let there = graph.arcs(s).iter().filter(|a| a.to == paths.neighbours[channel as usize]);
                there.map(|arc| arc.out_port).collect()
            })
            .collect();
        for target in 0..graph.switch_count() as u32 {
            if s != target && paths.next(0, target, s).is_none() {
                continue;
            }
            for end in targets.of(target) {
                for (offset, lid) in (end.lid..end.lid + end.lids).enumerate() {
                    let way = offset % paths.ways;
                    let channel = paths.next(way, target, s);
                    row[usize::from(lid)] = channel.map_or(end.port, |channel| {
                        let cables = &cables[(channel - paths.offsets[s as usize]) as usize];
                        cables[(end.rank as usize + offset) % cables.len()]
                    });
                    sls[usize::from(lid)] = sl_of_lane(layers.of_pair[paths.cell(way, target, s)]);
                }
            }
        }
    });
    routes.vls = layers.count();
    if routes.vls > 1 {
        routes.sl = PathSl::BySourceSwitch(sl);
    }
    routes
}

mod repair;
pub(super) use repair::repair;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::testing::{check_all, random_fabrics};

    #[test]
    fn every_fabric_is_free_of_credit_loops_with_shortest_paths() {
        let input = RoutingInput { data_vls: 15, ..RoutingInput::default() };
        for (name, fabric) in random_fabrics() {
            let graph = SwitchGraph::new(&fabric);
            let report = check_all(&Lash, &graph, &input);
            assert_eq!(report.hops.detours, 0, "{name}");
            assert!(report.vls <= 8, "{name}: {report}");
            assert!(
                !name.starts_with("tree of two levels") || name.contains("less") || report.vls == 1,
                "{report}"
            );
        }
    }

    #[test]
    fn too_few_lanes_are_refused_with_the_number() {
        let graph = SwitchGraph::new(&crate::fabric::testing::torus(&[5, 5], 1, 0));
        let error = Lash.route(&graph, &RoutingInput { data_vls: 1, ..RoutingInput::default() }).unwrap_err();
        let RoutingError::NotEnoughVls { needed, available: 1, .. } = error else { panic!("{error}") };
        check_all(&Lash, &graph, &RoutingInput { data_vls: needed, ..RoutingInput::default() });
    }

    /// Dimension order is even on odd rings, the load so far elsewhere.
    #[test]
    fn no_link_of_a_torus_is_much_fuller_than_its_like() {
        let input = RoutingInput { data_vls: 8, ..RoutingInput::default() };
        for (radices, hosts, most) in [
            (&[3, 3][..], 3, 1.0),
            (&[5, 5], 3, 1.0),
            (&[3, 3, 3], 2, 1.0),
            (&[4, 4], 3, 1.3),
            (&[4, 4, 3], 2, 1.3),
        ] {
            let graph = SwitchGraph::new(&crate::fabric::testing::torus(radices, hosts, 0));
            let report = check_all(&Lash, &graph, &input);
            let (fullest, mean) = (f64::from(report.balance.max), report.balance.mean);
            assert_eq!(report.hops.detours, 0, "{radices:?}");
            assert!(fullest <= most * mean + 0.5, "{radices:?}: {fullest}, mean {mean}");
        }
    }

    /// Leaves take different spines although they have the same number of hosts, as many as there are uplinks or a multiple.
    #[test]
    fn switches_of_a_tree_are_spread_over_its_roots() {
        for (m, w) in [(&[6, 18][..], &[1, 6][..]), (&[4, 6, 5], &[1, 2, 3]), (&[4, 4, 4], &[1, 4, 4])] {
            let graph = SwitchGraph::new(&crate::fabric::testing::fat_tree(m, w, 0));
            let report = check_all(&Lash, &graph, &RoutingInput { data_vls: 1, ..RoutingInput::default() });
            let (most, mean) = (f64::from(report.balance.max), report.balance.mean);
            assert!(most <= 1.5 * mean, "{m:?}: {most} on the fullest link, {mean} in the mean");
        }
    }
}
