//! Judges tables that leave a switch several exits for a LID, whichever it takes at any moment: groups of adaptive routing
//! with the static entry beside them, or old and new tables while an update is under way.
//!
//! - Progress: with all exits as edges, the switches form no cycle for any LID, no exit leads nowhere or to somebody else,
//!   and every switch that a path joins with the owner has one; so every packet arrives whatever is chosen on its way, in a bounded number of hops.
//! - Credit loops: the channel dependency graph of all choices is free of cycles. This is the plain condition of Dally and
//!   Seitz (1987) on the whole. The weaker one of Duato (a connected escape without cycles) needs a packet that can take the
//!   escape at any time it waits; a switch that has put it into one exit's queue does not offer that, so nothing rests on it.
//! - Cost: for each LID one pass over its exits and their pairs; LIDs of one switch that share exits and SLs are judged
//!   once.

use rayon::prelude::*;
use serde::Serialize;

use super::credit_loop::{self, CreditLoop};
use super::dependencies::{Dependencies, Lanes};
use super::fault::{Fault, FaultKind};
use super::hop::Hop;
use super::network::{Exit, Network};
use crate::fabric::{Destination, SwitchGraph, SwitchIndex};
use crate::routes::{NO_PORT, Routes};

/// What switches may do with a LID.
pub trait Choices: Sync {
    /// Appends the exits that `switch` may take for `lid`; nothing for none. The same port may come twice.
    fn exits(&self, switch: SwitchIndex, lid: u16, ports: &mut Vec<u8>);

    /// Appends the SLs that packets which enter at `switch` for `lid` may have.
    fn sls(&self, switch: SwitchIndex, lid: u16, sls: &mut Vec<u8>);
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChoiceReport {
    /// Pairs of a switch and a host's LID, in all stages.
    pub pairs: u64,
    /// Exits of all pairs.
    pub exits: u64,
    /// LIDs of hosts for which some choice goes wrong, by kind: for [`FaultKind::Loop`] some sequence of choices comes back
    /// to a switch where it was.
    pub faults: Vec<(FaultKind, u64)>,
    /// The first, with the choices that lead to it.
    pub first_fault: Option<Fault>,
    /// Dependencies between channels.
    pub dependencies: u64,
    /// A credit loop of traffic between hosts.
    pub credit_loop: Option<CreditLoop>,
}

impl ChoiceReport {
    /// Whether every choice makes progress.
    pub fn always_arrives(&self) -> bool {
        self.faults.iter().all(|(_, lids)| *lids == 0)
    }

    /// Whether nothing is wrong.
    pub fn is_right(&self) -> bool {
        self.always_arrives() && self.credit_loop.is_none()
    }
}

/// Checks the choices for all LIDs of hosts, in each of `stages` by itself; packets of all of them may wait for one another.
/// Of `routes` only the SL-to-VL tables count, and which SLs occur.
pub fn check(graph: &SwitchGraph, routes: &Routes, stages: &[&dyn Choices]) -> ChoiceReport {
    check_between(graph, (routes, routes), stages)
}

/// The same while SL-to-VL tables are being written: those of either `old` or `new` may hold at any switch.
pub(super) fn check_between(
    graph: &SwitchGraph,
    (old, new): (&Routes, &Routes),
    stages: &[&dyn Choices],
) -> ChoiceReport {
    let network = Network::new(graph);
    let lanes = Lanes::either(&network, new, old);
    let hosts: Vec<&Destination> = graph.destinations().iter().filter(|d| d.host).collect();
    let share = hosts.len().div_ceil(rayon::current_num_threads() * 4).max(1);
    let mut tally = hosts
        .par_chunks(share)
        .map(|hosts| {
            let judged = stages.iter().map(|choices| {
                let mut judge = Judge::new(&network, &lanes, *choices);
                hosts.iter().for_each(|host| judge.host(host));
                judge.tally
            });
            judged.reduce(Tally::merge).unwrap_or_else(|| Tally::new(&network, &lanes))
        })
        .reduce_with(Tally::merge)
        .unwrap_or_else(|| Tally::new(&network, &lanes));
    ChoiceReport {
        pairs: tally.pairs,
        exits: tally.exits,
        faults: FaultKind::ALL.into_iter().map(|kind| (kind, tally.faults[kind as usize])).collect(),
        first_fault: tally.first.take(),
        dependencies: tally.dependencies.len(),
        credit_loop: credit_loop::credit_loop(&network, &lanes, &tally.dependencies),
    }
}

struct Tally {
    pairs: u64,
    exits: u64,
    faults: [u64; FaultKind::ALL.len()],
    first: Option<Fault>,
    dependencies: Dependencies,
}

impl Tally {
    fn new(network: &Network<'_>, lanes: &Lanes<'_>) -> Self {
        let dependencies = Dependencies::new(network.from.len(), lanes);
        Self { pairs: 0, exits: 0, faults: [0; FaultKind::ALL.len()], first: None, dependencies }
    }

    fn merge(mut self, other: Self) -> Self {
        self.pairs += other.pairs;
        self.exits += other.exits;
        self.faults.iter_mut().zip(other.faults).for_each(|(mine, theirs)| *mine += theirs);
        self.first = match (self.first, other.first) {
            (Some(a), Some(b)) => Some(if a.lid <= b.lid { a } else { b }),
            (a, b) => a.or(b),
        };
        self.dependencies.merge(&other.dependencies);
        self
    }
}

/// The exits of all switches for one LID.
#[derive(Default, PartialEq, Eq)]
struct Exits {
    /// Where each switch's arcs begin; one entry more than there are switches.
    offsets: Vec<u32>,
    arcs: Vec<u32>,
    /// SLs of packets that enter at each switch, as a set.
    sls: Vec<u16>,
}

impl Exits {
    fn of(&self, s: SwitchIndex) -> &[u32] {
        &self.arcs[self.offsets[s as usize] as usize..self.offsets[s as usize + 1] as usize]
    }
}

/// Judges one LID after the other.
struct Judge<'a> {
    network: &'a Network<'a>,
    lanes: &'a Lanes<'a>,
    choices: &'a dyn Choices,
    tally: Tally,
    exits: Exits,
    /// What was judged last, and for which switch.
    last: Exits,
    last_switch: SwitchIndex,
    colour: Vec<u8>,
    /// Sets of VLs by SL for each arc.
    lanes_of: Vec<[u16; 16]>,
    queue: Vec<u32>,
    ports: Vec<u8>,
    sls: Vec<u8>,
    distance: Vec<u16>,
    distance_of: SwitchIndex,
}

impl<'a> Judge<'a> {
    fn new(network: &'a Network<'a>, lanes: &'a Lanes<'a>, choices: &'a dyn Choices) -> Self {
        Self {
            network,
            lanes,
            choices,
            tally: Tally::new(network, lanes),
            exits: Exits::default(),
            last: Exits::default(),
            last_switch: SwitchIndex::MAX,
            colour: vec![0; network.graph.switch_count()],
            lanes_of: vec![[0; 16]; network.from.len()],
            queue: Vec::new(),
            ports: Vec::new(),
            sls: Vec::new(),
            distance: Vec::new(),
            distance_of: SwitchIndex::MAX,
        }
    }

    fn host(&mut self, host: &Destination) {
        if std::mem::replace(&mut self.distance_of, host.switch) != host.switch {
            self.network.distances(host.switch, &mut self.distance, &mut self.queue);
        }
        for lid in host.lids() {
            if let Some((at, port, kind)) = self.gather(lid, host) {
                self.fault(kind, lid, vec![(at, port)]);
            }
            self.tally.pairs += self.colour.len() as u64;
            self.tally.exits += self.exits.arcs.len() as u64;
            if self.last_switch == host.switch && self.last == self.exits {
                continue;
            }
            if let Some(cycle) = self.cycle() {
                self.fault(FaultKind::Loop, lid, cycle);
            }
            self.add_dependencies();
            std::mem::swap(&mut self.last, &mut self.exits);
            self.last_switch = host.switch;
        }
    }

    fn fault(&mut self, kind: FaultKind, lid: u16, path: Vec<(SwitchIndex, u8)>) {
        self.tally.faults[kind as usize] += 1;
        if self.tally.first.as_ref().is_none_or(|first| lid < first.lid) {
            let graph = self.network.graph;
            let hop =
                |(s, port): (SwitchIndex, u8)| Hop { guid: graph.guid(s), name: graph.name(s).into(), port };
            self.tally.first = Some(Fault { kind, lid, path: path.into_iter().map(hop).collect() });
        }
    }

    /// Writes down the exits for a LID; the first that leads nowhere or to somebody else, with its switch.
    fn gather(&mut self, lid: u16, owner: &Destination) -> Option<(SwitchIndex, u8, FaultKind)> {
        let mut fault = None;
        let Exits { offsets, arcs, sls } = &mut self.exits;
        offsets.clear();
        arcs.clear();
        sls.clear();
        for s in 0..self.colour.len() as u32 {
            offsets.push(arcs.len() as u32);
            self.sls.clear();
            if !self.network.host_ports[s as usize].is_empty() {
                self.choices.sls(s, lid, &mut self.sls);
            }
            sls.push(self.sls.iter().fold(0, |set, sl| set | 1 << (sl & 15)));
            self.ports.clear();
            self.choices.exits(s, lid, &mut self.ports);
            self.ports.sort_unstable();
            self.ports.dedup();
            self.ports.retain(|port| *port != NO_PORT);
            if self.ports.is_empty() && self.distance[s as usize] != u16::MAX {
                fault = fault.or(Some((s, NO_PORT, FaultKind::Hole)));
            }
            for port in &self.ports {
                if s == owner.switch && *port == owner.port {
                    continue;
                }
                match self.network.exit(s, *port) {
                    Exit::Arc(arc) => arcs.push(arc),
                    Exit::End => fault = fault.or(Some((s, *port, FaultKind::WrongEnd))),
                    Exit::Nothing => fault = fault.or(Some((s, *port, FaultKind::DeadPort))),
                }
            }
        }
        offsets.push(arcs.len() as u32);
        fault
    }

    /// A cycle of choices, as switches with the exits taken; its first switch stands at the end again.
    fn cycle(&mut self) -> Option<Vec<(SwitchIndex, u8)>> {
        const ON_PATH: u8 = 1;
        const DONE: u8 = 2;
        self.colour.fill(0);
        let exits = &self.exits;
        let mut path: Vec<(SwitchIndex, usize)> = Vec::new();
        let out_port = |arc: u32| self.network.graph.all_arcs()[arc as usize].out_port;
        for start in 0..self.colour.len() as u32 {
            if self.colour[start as usize] == 0 {
                path.push((start, 0));
                self.colour[start as usize] = ON_PATH;
            }
            while let Some((s, tried)) = path.last_mut() {
                let Some(arc) = exits.of(*s).get(*tried) else {
                    self.colour[*s as usize] = DONE;
                    path.pop();
                    continue;
                };
                *tried += 1;
                let to = self.network.to(*arc);
                match self.colour[to as usize] {
                    0 => {
                        self.colour[to as usize] = ON_PATH;
                        path.push((to, 0));
                    }
                    ON_PATH => {
                        let begin = path.iter().position(|(s, _)| *s == to).unwrap_or(0);
                        let taken =
                            |(s, tried): &(SwitchIndex, usize)| (*s, out_port(exits.of(*s)[tried - 1]));
                        let mut cycle: Vec<_> = path[begin..].iter().map(taken).collect();
                        cycle.push(cycle[0]);
                        return Some(cycle);
                    }
                    _ => {}
                }
            }
        }
        None
    }

    /// Hands sets of VLs on from exit to exit until nothing new comes, and adds who asks for whom.
    fn add_dependencies(&mut self) {
        let network = self.network;
        self.queue.clear();
        for arc in &self.exits.arcs {
            self.lanes_of[*arc as usize] = [0; 16];
        }
        for s in 0..self.colour.len() as u32 {
            let mut sls = self.exits.sls[s as usize];
            while sls != 0 {
                let sl = sls.trailing_zeros() as usize;
                sls &= sls - 1;
                for place in self.exits.offsets[s as usize]..self.exits.offsets[s as usize + 1] {
                    let arc = self.exits.arcs[place as usize];
                    for input in &network.host_ports[s as usize] {
                        self.lanes_of[arc as usize][sl] |= self.vls(s, *input, arc, sl);
                    }
                    self.queue.push(arc);
                }
            }
        }
        self.queue.dedup();
        while let Some(arc) = self.queue.pop() {
            let ends = network.graph.all_arcs()[arc as usize];
            let base = network.graph.offsets()[ends.to as usize];
            for place in self.exits.offsets[ends.to as usize]..self.exits.offsets[ends.to as usize + 1] {
                let next = self.exits.arcs[place as usize];
                let mut fresh = false;
                for sl in 0..16 {
                    let mut vls = self.lanes_of[arc as usize][sl];
                    if vls == 0 {
                        continue;
                    }
                    let outs = self.vls(ends.to, ends.in_port, next, sl);
                    let there = &mut self.lanes_of[next as usize][sl];
                    fresh |= outs & !*there != 0;
                    *there |= outs;
                    while vls != 0 {
                        let vl = vls.trailing_zeros() as usize;
                        vls &= vls - 1;
                        for out in (0..self.lanes.vls).filter(|out| outs >> out & 1 == 1) {
                            let lane = if self.lanes.constant() { vl } else { vl * self.lanes.vls + out };
                            self.tally.dependencies.add(lane, arc, (next - base) as usize);
                        }
                    }
                }
                if fresh {
                    self.queue.push(next);
                }
            }
        }
    }

    /// The VLs, as a set, that packets of `sl` may have on `arc`, which leaves `s`, when they came in by `input`; empty when they
    /// are dropped.
    fn vls(&self, s: SwitchIndex, input: u8, arc: u32, sl: usize) -> u16 {
        let output = self.network.graph.all_arcs()[arc as usize].out_port;
        let vls = self.lanes.all_vls(s, self.network.graph.num_ports(s), (input, output), sl);
        vls.filter(|vl| *vl < self.lanes.vls).fold(0, |set, vl| set | 1 << vl)
    }
}

#[cfg(test)]
mod tests;
