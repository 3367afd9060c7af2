//! Judges choices that depend on the port by which a packet came in, as switches with a private table for each kind of entry
//! offer them ([`super::choices`] judges those that don't).
//!
//! A packet is followed by the links that it is on: for each LID the links, with the VLs on them, form no cycle and every way
//! ends at the owner, so each packet arrives whatever is chosen; and the channel dependency graph of all LIDs together is
//! free of cycles (Dally, Seitz 1987). Cost: for each LID one pass over links, VLs and their exits.

use rayon::prelude::*;

use super::choices::ChoiceReport;
use super::credit_loop;
use super::dependencies::{Dependencies, Lanes};
use super::fault::{Fault, FaultKind};
use super::hop::Hop;
use super::network::{Exit, Network};
use crate::fabric::{Destination, SwitchGraph, SwitchIndex};
use crate::routes::Routes;

/// What switches may do with a LID.
pub trait EntryChoices: Sync {
    /// Appends the exits that `switch` may take for `lid` when the packet came in by port `entry`; `None` when it comes from
    /// one of the switch's hosts.
    fn exits(&self, switch: SwitchIndex, entry: Option<u8>, lid: u16, ports: &mut Vec<u8>);
}

/// Checks the choices for all LIDs of hosts, from all hosts, with the service levels and SL-to-VL tables of `routes`.
pub fn check(graph: &SwitchGraph, routes: &Routes, choices: &dyn EntryChoices) -> ChoiceReport {
    let network = Network::new(graph);
    let lanes = Lanes::new(&network, routes, 0);
    let hosts: Vec<&Destination> = graph.destinations().iter().filter(|d| d.host).collect();
    let share = hosts.len().div_ceil(rayon::current_num_threads() * 4).max(1);
    let walked: Vec<Walker<'_>> = hosts
        .par_chunks(share)
        .map(|hosts| {
            let mut walker = Walker::new(&network, &lanes, choices);
            for host in hosts {
                host.lids().for_each(|lid| walker.lid(lid, host));
            }
            walker
        })
        .collect();
    let mut dependencies = Dependencies::new(network.from.len(), &lanes);
    let mut report = ChoiceReport::default();
    let mut faults = [0; FaultKind::ALL.len()];
    for walker in walked {
        dependencies.merge(&walker.dependencies);
        report.pairs += walker.pairs;
        report.exits += walker.exits;
        faults.iter_mut().zip(walker.faults).for_each(|(sum, found)| *sum += found);
        report.first_fault = report.first_fault.or(walker.first);
    }
    report.faults = FaultKind::ALL.into_iter().map(|kind| (kind, faults[kind as usize])).collect();
    report.dependencies = dependencies.len();
    report.credit_loop = credit_loop::credit_loop(&network, &lanes, &dependencies);
    report
}

/// A link and the VL that the packet has on it.
type Held = (u32, usize);

struct Walker<'a> {
    network: &'a Network<'a>,
    lanes: &'a Lanes<'a>,
    choices: &'a dyn EntryChoices,
    dependencies: Dependencies,
    pairs: u64,
    exits: u64,
    faults: [u64; FaultKind::ALL.len()],
    first: Option<Fault>,
    /// By link and VL.
    colour: Vec<u8>,
    ports: Vec<u8>,
}

const ON_PATH: u8 = 1;
const DONE: u8 = 2;

impl<'a> Walker<'a> {
    fn new(network: &'a Network<'a>, lanes: &'a Lanes<'a>, choices: &'a dyn EntryChoices) -> Self {
        Self {
            network,
            lanes,
            choices,
            dependencies: Dependencies::new(network.from.len(), lanes),
            pairs: 0,
            exits: 0,
            faults: [0; FaultKind::ALL.len()],
            first: None,
            colour: vec![0; network.from.len() * lanes.vls],
            ports: Vec::new(),
        }
    }

    /// Follows packets of one LID from all switches with hosts; the first fault ends it.
    fn lid(&mut self, lid: u16, owner: &Destination) {
        for sl in 0..16 {
            let of_sl = |s: &u32| {
                !self.network.host_ports[*s as usize].is_empty() && self.lanes.sl(*s, usize::from(lid)) == sl
            };
            let sources: Vec<SwitchIndex> = (0..self.network.host_ports.len() as u32)
                .filter(|s| *s != owner.switch)
                .filter(of_sl)
                .collect();
            if sources.is_empty() {
                continue;
            }
            self.colour.fill(0);
            for source in sources {
                self.pairs += 1;
                if let Err((kind, path)) = self.from(source, lid, sl, owner) {
                    self.fault(kind, lid, &path);
                    return;
                }
            }
        }
    }

    /// Follows every choice from one switch, depth first.
    fn from(
        &mut self,
        source: SwitchIndex,
        lid: u16,
        sl: usize,
        owner: &Destination,
    ) -> Result<(), (FaultKind, Vec<Held>)> {
        let entries = self.network.host_ports[source as usize].clone();
        for entry in entries {
            let begin = self.after(source, None, entry, lid, sl, owner).map_err(|kind| (kind, Vec::new()))?;
            let mut path: Vec<(Held, Vec<Held>)> = Vec::new();
            for held in begin {
                if self.colour[self.cell(held)] == DONE {
                    continue;
                }
                self.enter(held, &mut path, lid, sl, owner)?;
                while let Some((held, next)) = path.last_mut() {
                    let held = *held;
                    let Some(to) = next.pop() else {
                        let cell = self.cell(held);
                        self.colour[cell] = DONE;
                        path.pop();
                        continue;
                    };
                    match self.colour[self.cell(to)] {
                        ON_PATH => {
                            let trail = path.iter().map(|(held, _)| *held).chain([to]).collect();
                            return Err((FaultKind::Loop, trail));
                        }
                        DONE => {}
                        _ => self.enter(to, &mut path, lid, sl, owner)?,
                    }
                }
            }
        }
        Ok(())
    }

    /// Goes onto a link, and looks at what may follow.
    fn enter(
        &mut self,
        held: Held,
        path: &mut Vec<(Held, Vec<Held>)>,
        lid: u16,
        sl: usize,
        owner: &Destination,
    ) -> Result<(), (FaultKind, Vec<Held>)> {
        let cell = self.cell(held);
        self.colour[cell] = ON_PATH;
        let ends = self.network.graph.all_arcs()[held.0 as usize];
        let next = self.after(ends.to, Some(ends.in_port), ends.in_port, lid, sl, owner);
        let next = next.map_err(|kind| (kind, path.iter().map(|(held, _)| *held).chain([held]).collect()))?;
        let base = self.network.graph.offsets()[ends.to as usize];
        for (arc, vl) in &next {
            let lane = if self.lanes.constant() { held.1 } else { held.1 * self.lanes.vls + vl };
            self.dependencies.add(lane, held.0, (arc - base) as usize);
        }
        path.push((held, next));
        Ok(())
    }

    /// The links that a packet at `s` may go on by; none at the owner.
    fn after(
        &mut self,
        s: SwitchIndex,
        entry: Option<u8>,
        port_in: u8,
        lid: u16,
        sl: usize,
        owner: &Destination,
    ) -> Result<Vec<Held>, FaultKind> {
        self.ports.clear();
        self.choices.exits(s, entry, lid, &mut self.ports);
        self.ports.sort_unstable();
        self.ports.dedup();
        self.exits += self.ports.len() as u64;
        if self.ports.is_empty() {
            return Err(FaultKind::Hole);
        }
        let ports = usize::from(self.network.graph.num_ports(s));
        let mut next = Vec::with_capacity(self.ports.len());
        for port in &self.ports {
            match self.network.exit(s, *port) {
                _ if s == owner.switch && *port == owner.port => {}
                Exit::Arc(arc) => {
                    let vl = self.lanes.vl(s, ports, port_in, *port, sl);
                    next.extend((vl < self.lanes.vls).then_some((arc, vl)));
                }
                Exit::End => return Err(FaultKind::WrongEnd),
                Exit::Nothing => return Err(FaultKind::DeadPort),
            }
        }
        Ok(next)
    }

    fn cell(&self, (arc, vl): Held) -> usize {
        arc as usize * self.lanes.vls + vl
    }

    fn fault(&mut self, kind: FaultKind, lid: u16, path: &[Held]) {
        self.faults[kind as usize] += 1;
        let graph = self.network.graph;
        let hop = |(arc, _): &Held| {
            let s = self.network.from[*arc as usize];
            let port = graph.all_arcs()[*arc as usize].out_port;
            Hop { guid: graph.guid(s), name: graph.name(s).into(), port }
        };
        self.first.get_or_insert_with(|| Fault { kind, lid, path: path.iter().map(hop).collect() });
    }
}
