//! The paths of `lash`: for each switch the neighbour on the way to each other switch, on shortest paths.
//!
//! Parallel cables count as one channel. Cost: a search of all links for each switch, and one byte for each pair of switches and way.

use rayon::prelude::*;

use super::by_load::ByLoad;
use super::parallel;
use crate::engines::targets::Targets;
use crate::fabric::{SwitchGraph, SwitchIndex};

/// Which of the neighbours on shortest paths is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Choice {
    /// The one behind the first port: on regular cabling that keeps to dimensions.
    FirstPort,
    /// By the target, as its ranks would be, and by the switch, as one that has hosts gets all of its traffic so.
    BothEnds,
    /// The one whose way has the least load by all targets before, and once more by all others.
    Load,
}

/// Neighbours of switches, parallel cables joined, and the neighbour on the way to each switch.
pub(super) struct Paths {
    /// Where the neighbours of each switch begin.
    pub(super) offsets: Vec<u32>,
    pub(super) neighbours: Vec<SwitchIndex>,
    /// For each (way, target, switch), which of the switch's channels is taken; [`NO_CHANNEL`] for none.
    pub(super) next: Vec<u8>,
    /// Ways to each target: LIDs of one port go different ones.
    pub(super) ways: usize,
    pub(super) count: usize,
}

/// No channel; no switch has as many neighbours.
const NO_CHANNEL: u8 = u8::MAX;

impl Paths {
    pub(super) fn new(graph: &SwitchGraph, targets: &Targets, choice: Choice, ways: usize) -> Self {
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
        let by_ends = (choice == Choice::BothEnds).then_some(targets);
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
                    None => paths.choose(target, by_ends, &queue, &distance),
                }
            }
        }
        paths
    }

    pub(super) fn channels(&self, s: SwitchIndex) -> std::ops::Range<u32> {
        self.offsets[s as usize]..self.offsets[s as usize + 1]
    }

    /// The channel from a switch to a neighbour.
    pub(super) fn channel(&self, from: SwitchIndex, to: SwitchIndex) -> Option<u32> {
        self.channels(from).find(|channel| self.neighbours[*channel as usize] == to)
    }

    /// Turns, pairs of arcs, as pairs of channels.
    pub(super) fn turns(&self, graph: &SwitchGraph, turns: &[(u32, u32)]) -> Vec<(u32, u32)> {
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
    pub(super) fn nearer(&self, s: SwitchIndex, distance: &[u16]) -> impl Iterator<Item = u32> {
        let leads =
            move |c: &u32| distance[self.neighbours[*c as usize] as usize] + 1 == distance[s as usize];
        self.channels(s).filter(leads)
    }

    /// Takes neighbours by both ends, whose ranks `by_ends` has, or the first.
    fn choose(
        &mut self,
        target: SwitchIndex,
        by_ends: Option<&Targets>,
        queue: &[SwitchIndex],
        distance: &[u16],
    ) {
        for s in &queue[1..] {
            let equal: Vec<u32> = self.nearer(*s, distance).collect();
            let first = by_ends.map_or(0, |targets| {
                let digit = |of: SwitchIndex| {
                    targets.of(of).first().map_or(of, |own| own.rank) / targets.divider[*s as usize]
                };
                digit(target).wrapping_add(digit(*s)) as usize % equal.len().max(1)
            });
            self.take(target, *s, &equal, first);
        }
    }

    /// Gives the ways to a target the channels of a switch in turn, from one on.
    pub(super) fn take(&mut self, target: SwitchIndex, s: SwitchIndex, equal: &[u32], first: usize) {
        for way in 0..self.ways {
            let channel = equal.get((first + way) % equal.len().max(1));
            let cell = self.cell(way, target, s);
            self.next[cell] = channel.map_or(NO_CHANNEL, |c| (c - self.offsets[s as usize]) as u8);
        }
    }

    pub(super) fn cell(&self, way: usize, target: SwitchIndex, s: SwitchIndex) -> usize {
        (way * self.count + target as usize) * self.count + s as usize
    }

    /// The channel that `s` takes to `target`.
    pub(super) fn next(&self, way: usize, target: SwitchIndex, s: SwitchIndex) -> Option<u32> {
        let channel = self.next[self.cell(way, target, s)];
        (channel != NO_CHANNEL).then(|| self.offsets[s as usize] + u32::from(channel))
    }

    /// Routes of hosts over each arc, parallel cables alike.
    pub(super) fn load(&self, graph: &SwitchGraph) -> Vec<u64> {
        let hosts = graph.hosts();
        // Its hosts' LIDs, by way.
        let mut lids = vec![0_u64; self.ways * self.count];
        for d in graph.destinations().iter().filter(|d| d.host) {
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
                let cables = parallel(graph, s, arc.to).len() as u64;
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
    pub(super) fn dependencies(
        &self,
        way: usize,
        from: SwitchIndex,
        to: SwitchIndex,
        out: &mut Vec<(u32, u32)>,
    ) {
        let mut last = None;
        self.walk(way, from, to, |channel| out.extend(last.replace(channel).map(|last| (last, channel))));
    }
}
