//! One step of moving routes away from loaded links: few entries, only where it clearly helps, and never back and forth.
//!
//! An entry may move to another exit on a shortest path. With d the traffic that the switch sends to the LID, a move takes d
//! from the links that only the old path uses and adds it to those that only the new one uses; it is made when that lowers
//! the sum of squared loads by more than the hysteresis. Loads being what they are measured to be, the sum falls with each
//! move, so moves end. Where the traffic of a LID is only estimated (from counters) a prediction can be wrong; therefore
//! each move of an entry doubles the gain that its next one must bring, until [`Damping::ease`] halves it again: under a
//! constant load an entry moves a few times at most, whatever was estimated, and nothing oscillates.
//!
//! - The most loaded link is served first; no more entries move than the given share.
//! - Paths get no longer. Free of loops when the tables lead closer with each hop, as those of `minhop` do: then every mix
//!   of old and new entries does too. Credit loops are as for `minhop`.
//! - Cost: hosts · switches to lay the load out; for each move the heaviest routes of one link times its alternatives.
//! - Source: routes by measured load and few changes at a time after Domke, Hoefler (SC 2016) and Zahid et al. (J.
//!   Supercomputing 2016); hysteresis is ours.

use std::collections::{BTreeMap, BinaryHeap};

use mad::types::{Guid, Lid};

use super::load::{Load, Next, Through};
use crate::engines::widen;
use crate::fabric::{Destination, SwitchGraph, SwitchIndex};
use crate::routes::{LftMatrix, NO_PORT};

/// Routes of one link that are looked at, the heaviest.
const HEAVIEST: usize = 64;

/// How far a step goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The most that moves in one step, as a share of all entries for hosts' LIDs, 0 to 1. One entry may always move.
    pub share: f64,
    /// What a move must gain at least: part of the squared load that it takes off the old links, 0 to 1.
    pub hysteresis: f64,
}

impl Default for Settings {
    /// A twentieth of the entries; a gain of a tenth.
    fn default() -> Self {
        Self { share: 0.05, hysteresis: 0.1 }
    }
}

/// How often entries moved lately, by (NodeGUID of the switch, LID); what keeps them from moving back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damping {
    moves: BTreeMap<(Guid, u16), u8>,
}

impl Damping {
    /// The gain that a move of this entry must bring.
    fn threshold(&self, switch: Guid, lid: u16, hysteresis: f64) -> f64 {
        let moves = self.moves.get(&(switch, lid)).copied().unwrap_or(0);
        hysteresis * f64::from(1_u32 << moves.min(20))
    }

    fn moved(&mut self, switch: Guid, lid: u16) {
        *self.moves.entry((switch, lid)).or_default() += 1;
    }

    /// Forgets one move of each entry; for when the load has changed, or time has passed.
    pub fn ease(&mut self) {
        self.moves.retain(|_, moves| {
            *moves -= 1;
            *moves > 0
        });
    }
}

/// What a step came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The tables.
    pub lfts: LftMatrix,
    /// Entries that moved.
    pub moved: usize,
    /// Load of the most loaded link between switches before, and as it is expected afterwards.
    pub worst: (u64, u64),
}

/// Moves routes of `tables`, whose rows are in the order of the graph's switches, by what was measured on them.
pub fn step(
    graph: &SwitchGraph,
    tables: &LftMatrix,
    load: &Load,
    settings: Settings,
    damping: &mut Damping,
) -> Step {
    let mut mover = Mover::new(graph, tables, load, settings);
    let before = mover.through.arcs.iter().copied().max().unwrap_or(0);
    let entries = mover.hosts.len() * graph.switch_count();
    let budget = ((entries as f64 * settings.share.clamp(0.0, 1.0)) as usize).max(1);
    let moved = mover.run(budget, damping);
    let after = mover.through.arcs.iter().copied().max().unwrap_or(0);
    Step { lfts: mover.lfts, moved, worst: (before, after) }
}

struct Mover<'a> {
    graph: &'a SwitchGraph,
    settings: Settings,
    lfts: LftMatrix,
    /// A LID of a host each: several of one port move by themselves.
    hosts: Vec<(u16, &'a Destination)>,
    next: Next,
    through: Through,
    /// Hosts whose routes lead over each arc.
    over: Vec<Vec<u32>>,
    /// Where each arc begins.
    from: Vec<SwitchIndex>,
    /// Hops between switches, target by target.
    distance: Vec<u16>,
}

/// A move of one entry.
struct Move {
    host: usize,
    arc: u32,
    gain: f64,
    old: Vec<(SwitchIndex, u32)>,
    new: Vec<(SwitchIndex, u32)>,
}

impl<'a> Mover<'a> {
    fn new(graph: &'a SwitchGraph, tables: &LftMatrix, load: &Load, settings: Settings) -> Self {
        let mut hosts: Vec<(u16, &Destination)> = Vec::new();
        let mut host_of = vec![u32::MAX; graph.destinations().len()];
        for (of, d) in host_of.iter_mut().zip(graph.destinations()).filter(|(_, d)| d.host) {
            // Measured traffic goes to the base LID, which comes first.
            *of = hosts.len() as u32;
            hosts.extend(d.lids().map(|lid| (lid, d)));
        }
        let next = next_arcs(graph, tables, &hosts);
        let through = Through::new(graph, &host_of, &next, load);
        let mut over = vec![Vec::new(); graph.all_arcs().len()];
        for (cell, arc) in next.arcs.iter().enumerate().filter(|(_, arc)| **arc != u32::MAX) {
            over[*arc as usize].push((cell % hosts.len()) as u32);
        }
        let from = graph.sources();
        let distance = distances(graph);
        Self { graph, settings, lfts: tables.clone(), hosts, next, through, over, from, distance }
    }

    fn distance(&self, from: SwitchIndex, to: SwitchIndex) -> u16 {
        self.distance[to as usize * self.graph.switch_count() + from as usize]
    }

    /// Serves the most loaded arc again and again; one that no move relieves is left for this step.
    fn run(&mut self, budget: usize, damping: &mut Damping) -> usize {
        let loads = self.through.arcs.iter().copied();
        let mut heap: BinaryHeap<(u64, u32)> = loads.zip(0..).filter(|(load, _)| *load > 0).collect();
        let mut moved = 0;
        while let Some((load, arc)) = heap.pop() {
            if load != self.through.arcs[arc as usize] {
                continue;
            }
            let Some(best) = self.best(arc, damping) else { continue };
            if moved == budget {
                break;
            }
            moved += 1;
            damping.moved(self.graph.guid(self.from[arc as usize]), self.hosts[best.host].0);
            for changed in self.apply(arc, &best) {
                heap.push((self.through.arcs[changed as usize], changed));
            }
        }
        moved
    }

    /// The move that gains most, of the heaviest routes over `arc`.
    fn best(&self, arc: u32, damping: &Damping) -> Option<Move> {
        let s = self.from[arc as usize];
        let mut routes: Vec<(u64, u32)> = self.over[arc as usize]
            .iter()
            .map(|host| (self.through.sent(s, *host as usize), *host))
            .filter(|(sent, _)| *sent > 0)
            .collect();
        routes.sort_unstable_by(|a, b| b.cmp(a));
        let mut best: Option<Move> = None;
        for (sent, host) in routes.into_iter().take(HEAVIEST) {
            let host = host as usize;
            let threshold =
                damping.threshold(self.graph.guid(s), self.hosts[host].0, self.settings.hysteresis);
            for number in self.graph.arc_range(s) {
                let found = self.consider(s, host, arc, number, sent as f64, threshold);
                if let Some(found) = found.filter(|f| best.as_ref().is_none_or(|b| f.gain > b.gain)) {
                    best = Some(found);
                }
            }
        }
        best
    }

    /// Whether sending `host`'s traffic by arc `other` of `s` in place of `arc` gains enough.
    fn consider(
        &self,
        s: SwitchIndex,
        host: usize,
        arc: u32,
        other: u32,
        sent: f64,
        threshold: f64,
    ) -> Option<Move> {
        let target = self.hosts[host].1.switch;
        let to = self.graph.all_arcs()[other as usize].to;
        if other == arc || self.distance(to, target).checked_add(1) != Some(self.distance(s, target)) {
            return None;
        }
        let (mut old, mut new) = (self.path(s, host, arc)?, self.path(s, host, other)?);
        while old.last() == new.last() {
            old.pop();
            new.pop();
        }
        let load = |arc: u32| self.through.arcs[arc as usize] as f64;
        let relief: f64 = old.iter().map(|(_, arc)| sent * (2.0 * load(*arc) - sent)).sum();
        let burden: f64 = new.iter().map(|(_, arc)| sent * (2.0 * load(*arc) + sent)).sum();
        let gain = relief - burden;
        (gain > threshold * relief).then_some(Move { host, arc: other, gain, old, new })
    }

    /// The arcs from `s` to the host's switch when the first is `arc`; `None` when they come back to `s` or do not lead there.
    fn path(&self, s: SwitchIndex, host: usize, arc: u32) -> Option<Vec<(SwitchIndex, u32)>> {
        let target = self.hosts[host].1.switch;
        let mut path = vec![(s, arc)];
        let mut at = self.graph.all_arcs()[arc as usize].to;
        while at != target {
            let next = self.next.of(at, host);
            if next == u32::MAX || at == s || path.len() > self.graph.switch_count() {
                return None;
            }
            path.push((at, next));
            at = self.graph.all_arcs()[next as usize].to;
        }
        Some(path)
    }

    /// Makes a move; the arcs whose load it changed.
    fn apply(&mut self, arc: u32, made: &Move) -> Vec<u32> {
        let s = self.from[arc as usize];
        let host = made.host;
        let sent = self.through.sent(s, host);
        made.old.iter().for_each(|(at, arc)| self.through.shift(*at, host, *arc, sent, true));
        made.new.iter().for_each(|(at, arc)| self.through.shift(*at, host, *arc, sent, false));
        self.over[arc as usize].retain(|h| *h as usize != host);
        self.over[made.arc as usize].push(host as u32);
        self.next.arcs[s as usize * self.hosts.len() + host] = made.arc;
        let lid = usize::from(self.hosts[host].0);
        self.lfts.row_mut(s)[lid] = self.graph.all_arcs()[made.arc as usize].out_port;
        made.old.iter().chain(&made.new).map(|(_, arc)| *arc).collect()
    }
}

fn next_arcs(graph: &SwitchGraph, tables: &LftMatrix, hosts: &[(u16, &Destination)]) -> Next {
    let mut arcs = Vec::with_capacity(graph.switch_count() * hosts.len());
    for s in 0..graph.switch_count() as u32 {
        let by_port = graph.arcs_by_port(s);
        let known = (s as usize) < tables.switch_count();
        let port = |lid: u16| match Lid::new(lid) {
            Some(lid) if known => tables.port(s, lid),
            _ => NO_PORT,
        };
        arcs.extend(hosts.iter().map(|(lid, _)| by_port[usize::from(port(*lid))]));
    }
    Next { hosts: hosts.len(), arcs }
}

/// Hops from every switch to every other, by target; `u16::MAX` where there is no path.
fn distances(graph: &SwitchGraph) -> Vec<u16> {
    let count = graph.switch_count();
    let mut all = vec![u16::MAX; count * count];
    let mut queue: Vec<SwitchIndex> = Vec::with_capacity(count);
    for (target, row) in (0..).zip(all.chunks_mut(count.max(1))) {
        queue.clear();
        queue.push(target);
        row[target as usize] = 0;
        widen(graph, &mut queue, row);
    }
    all
}

#[cfg(test)]
mod tests;
