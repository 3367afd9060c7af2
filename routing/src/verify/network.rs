//! The fabric as the verifier walks it: what lies behind every port of every switch, and who owns every LID.

use crate::fabric::{Destination, SwitchGraph, SwitchIndex};

/// What lies behind an exit port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Exit {
    /// An arc to another switch, by number.
    Arc(u32),
    /// An end port.
    End,
    /// No link that is up.
    Nothing,
}

const NOTHING: u32 = u32::MAX;
const END: u32 = u32::MAX - 1;

/// What lies behind a port in the form that hot loops read: the arc, or a code, and the switch behind it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub arc: u32,
    /// `u32::MAX` when there is no switch.
    pub to: SwitchIndex,
}

/// Flat tables made from a [`SwitchGraph`].
pub(super) struct Network<'a> {
    /// The graph.
    pub graph: &'a SwitchGraph,
    /// For each arc, the switch that it leaves.
    pub from: Vec<SwitchIndex>,
    /// The owner of each LID, as an index of the graph's destinations.
    owner: Vec<u32>,
    /// For each switch, the ports with hosts.
    pub host_ports: Vec<Vec<u8>>,
    ports: usize,
    exits: Vec<Step>,
}

impl<'a> Network<'a> {
    pub(super) fn new(graph: &'a SwitchGraph) -> Self {
        let count = graph.switch_count();
        let most = (0..count as u32).map(|s| usize::from(graph.num_ports(s))).max().unwrap_or(0);
        let ports = most + 1;
        let mut exits = vec![Step { arc: NOTHING, to: u32::MAX }; count * ports];
        let mut from = Vec::with_capacity(graph.all_arcs().len());
        for s in 0..count as u32 {
            for arc in graph.arcs(s) {
                let step = Step { arc: from.len() as u32, to: arc.to };
                exits[s as usize * ports + usize::from(arc.out_port)] = step;
                from.push(s);
            }
        }
        let mut owner = vec![NOTHING; usize::from(graph.top_lid()) + 1];
        let mut hosts = vec![0; count];
        graph.destinations().iter().filter(|d| d.host).for_each(|d| hosts[d.switch as usize] += 1);
        let mut host_ports: Vec<Vec<u8>> = hosts.into_iter().map(Vec::with_capacity).collect();
        for (index, d) in graph.destinations().iter().enumerate() {
            exits[d.switch as usize * ports + usize::from(d.port)] = Step { arc: END, to: u32::MAX };
            if d.host {
                host_ports[d.switch as usize].push(d.port);
            }
            for lid in d.lids() {
                if owner[usize::from(lid)] == NOTHING {
                    owner[usize::from(lid)] = index as u32;
                }
            }
        }
        Self { graph, from, owner, host_ports, ports, exits }
    }

    /// Who owns a LID.
    pub(super) fn owner(&self, lid: usize) -> Option<&'a Destination> {
        self.graph.destinations().get(*self.owner.get(lid)? as usize)
    }

    /// What lies behind `port` of `switch`.
    pub(super) fn exit(&self, switch: SwitchIndex, port: u8) -> Exit {
        if usize::from(port) >= self.ports {
            return Exit::Nothing;
        }
        match self.exits[switch as usize * self.ports + usize::from(port)].arc {
            NOTHING => Exit::Nothing,
            END => Exit::End,
            arc => Exit::Arc(arc),
        }
    }

    /// The arc and switch behind `port` of `switch`, if there is one.
    #[inline]
    pub(super) fn step(&self, switch: SwitchIndex, port: u8) -> Option<Step> {
        if usize::from(port) >= self.ports {
            return None;
        }
        let step = self.exits[switch as usize * self.ports + usize::from(port)];
        (step.to != u32::MAX).then_some(step)
    }

    /// The switch that an arc leads to.
    pub(super) fn to(&self, arc: u32) -> SwitchIndex {
        self.graph.all_arcs()[arc as usize].to
    }

    /// Hops from the nearest of `sources` to every switch, `u16::MAX` where there is no path.
    pub(super) fn hops_from(&self, sources: &[SwitchIndex]) -> Vec<u16> {
        let mut hops = vec![u16::MAX; self.graph.switch_count()];
        let mut queue = sources.to_vec();
        queue.iter().for_each(|s| hops[*s as usize] = 0);
        self.widen(&mut hops, &mut queue);
        hops
    }

    /// Hops between up to 64 switches and all others, for all of them at once.
    pub(super) fn hops_from_many(&self, sources: &[SwitchIndex]) -> ManyHops {
        let all = u64::MAX >> (64 - sources.len().clamp(1, 64));
        let mut seen = vec![0; self.graph.switch_count()];
        for (bit, s) in sources.iter().take(64).enumerate() {
            seen[*s as usize] |= 1 << bit;
        }
        let mut levels = vec![seen.clone()];
        while let Some(last) = levels.last() {
            let mut next = vec![0; seen.len()];
            let mut any = false;
            for (s, next) in (0..).zip(&mut next).filter(|(s, _)| seen[*s as usize] != all) {
                let arcs = self.graph.arcs(s);
                *next = arcs.iter().fold(0, |found, arc| found | last[arc.to as usize]) & !seen[s as usize];
                any |= *next != 0;
            }
            if !any {
                break;
            }
            seen.iter_mut().zip(&next).for_each(|(seen, next)| *seen |= next);
            levels.push(next);
        }
        ManyHops { levels, whole: seen.iter().all(|seen| *seen == all) }
    }

    /// Hops from every switch to `target`, `u16::MAX` where there is no path, and in `queue` the switches that have one in
    /// order of rising hops. Links are taken to work both ways.
    pub(super) fn distances(&self, target: SwitchIndex, distance: &mut Vec<u16>, queue: &mut Vec<u32>) {
        distance.clear();
        distance.resize(self.graph.switch_count(), u16::MAX);
        distance[target as usize] = 0;
        queue.clear();
        queue.push(target);
        self.widen(distance, queue);
    }

    /// Goes on from the switches in `queue`, whose hops are known and the same, to all others: from those that were reached last to
    /// their neighbours, or where that is less, from those that are left to whom of their neighbours was reached.
    fn widen(&self, hops: &mut [u16], queue: &mut Vec<SwitchIndex>) {
        let offsets = self.graph.offsets();
        let degree = |s: SwitchIndex| (offsets[s as usize + 1] - offsets[s as usize]) as usize;
        let half = self.from.len() / hops.len().max(1) / 2;
        let mut left: Option<Vec<SwitchIndex>> = None;
        let mut begin = 0;
        while begin < queue.len() && queue.len() < hops.len() {
            let end = queue.len();
            let here = hops[queue[begin] as usize];
            let arcs: usize = queue[begin..].iter().map(|s| degree(*s)).sum();
            if arcs > (hops.len() - end) * half {
                let left = left.get_or_insert_with(|| (0..hops.len() as SwitchIndex).collect());
                left.retain(|s| {
                    if hops[*s as usize] != u16::MAX {
                        return false;
                    }
                    let reached = self.graph.arcs(*s).iter().any(|arc| hops[arc.to as usize] == here);
                    if reached {
                        hops[*s as usize] = here + 1;
                        queue.push(*s);
                    }
                    !reached
                });
            } else {
                for i in begin..end {
                    for arc in self.graph.arcs(queue[i]) {
                        let there = &mut hops[arc.to as usize];
                        if *there == u16::MAX {
                            *there = here + 1;
                            queue.push(arc.to);
                        }
                    }
                }
            }
            begin = end;
        }
    }
}

/// What [`Network::hops_from_many`] found.
pub(super) struct ManyHops {
    /// By hops and switch the sources, as bits of their places, from which it is as many hops.
    levels: Vec<Vec<u64>>,
    /// Whether each source reaches all switches.
    pub whole: bool,
}

impl ManyHops {
    /// Hops between a switch and the source at a place; `u16::MAX` where there is no path.
    pub(super) fn hops(&self, source: usize, s: SwitchIndex) -> u16 {
        let level = self.levels.iter().position(|level| level[s as usize] >> source & 1 == 1);
        level.map_or(u16::MAX, |hops| hops as u16)
    }

    /// The sources, as bits of their places, from which a switch is not as far as in `other`.
    pub(super) fn differing(&self, other: &Self, s: SwitchIndex) -> u64 {
        let level = |all: &Self, hops: usize| all.levels.get(hops).map_or(0, |level| level[s as usize]);
        let most = self.levels.len().max(other.levels.len());
        (0..most).fold(0, |bits, hops| bits | (level(self, hops) ^ level(other, hops)))
    }
}
