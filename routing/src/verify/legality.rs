//! Up*/down* legality: where an order of all switches is claimed, packets between hosts never turn from down to up.
//!
//! An order makes one of the two ends of every link the upper one; paths that go up first and down after that close no
//! cycle (Schroeder et al., Autonet, 1991). The order comes with the tables from the engine that claims it
//! ([`Routes::order`]), or from roots that the operator names: then ranks are hops from the nearest root, and between
//! switches of one rank the larger id (the GUID, unless given) is the upper one, as opensm has it.
//!
//! Turns are read off the dependencies between channels that the walks left behind. Cost: linear in these; where a turn is
//! wrong, a look for the LIDs that take it.

use std::collections::BTreeMap;
use std::fmt;

use mad::types::Guid;
use serde::Serialize;

use super::dependencies::{Dependencies, Lanes};
use super::hop::{Hop, hop};
use super::network::Network;
use crate::fabric::{SwitchGraph, SwitchIndex};
use crate::routes::Routes;

/// A path that goes up again after it went down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IllegalTurn {
    /// The LID.
    pub lid: u16,
    /// The switches from the one where the path begins to the owner's.
    pub path: Vec<Hop>,
    /// Which of them the path comes down to and leaves upwards, from 0.
    pub turn: usize,
}

impl fmt::Display for IllegalTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LID {}:", self.lid)?;
        for (place, hop) in self.path.iter().enumerate() {
            write!(f, " {hop}{}", if place == self.turn { " (down, then up)" } else { "" })?;
        }
        Ok(())
    }
}

/// What was found of turns from down to up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Legality {
    /// Pairs of links, the first down and the second up, that packets between hosts take one after the other.
    pub turns: u64,
    /// The first of them, with a path that takes it.
    pub first: Option<IllegalTurn>,
}

/// The place of each switch in the order that `roots` make, the uppermost 0: by hops from the nearest root, then the larger id
/// first. Switches that no root reaches come last. `None` when none of the roots is in the graph.
pub fn order_from_roots(
    graph: &SwitchGraph,
    roots: &[Guid],
    ids: &BTreeMap<Guid, u64>,
) -> Option<std::sync::Arc<[u32]>> {
    let found: Vec<SwitchIndex> = roots.iter().filter_map(|guid| graph.find(*guid)).collect();
    if found.is_empty() {
        return None;
    }
    let rank = Network::new(graph).hops_from(&found);
    let id = |s: SwitchIndex| ids.get(&graph.guid(s)).copied().unwrap_or_else(|| graph.guid(s).0);
    let mut sorted: Vec<SwitchIndex> = (0..rank.len() as SwitchIndex).collect();
    sorted.sort_by_key(|s| (rank[*s as usize], std::cmp::Reverse(id(*s))));
    let mut place = vec![0; rank.len()];
    (0..).zip(sorted).for_each(|(number, s)| place[s as usize] = number);
    Some(place.into())
}

/// Looks for turns from down to up; `None` when no order is claimed for these switches.
pub(super) fn check(
    network: &Network<'_>,
    routes: &Routes,
    lanes: &Lanes<'_>,
    hosts: &Dependencies,
) -> Option<Legality> {
    let order = routes.order.as_ref().filter(|order| order.len() == network.graph.switch_count())?;
    let mut legality = Legality::default();
    let words = lanes.words;
    // For each switch, its arcs to upper switches, in the form of the sets of dependencies.
    let mut upwards = vec![0_u64; network.graph.switch_count() * words];
    for (at, upwards) in (0..).zip(upwards.chunks_exact_mut(words)) {
        for (place, next) in network.graph.arcs(at).iter().enumerate() {
            upwards[place / 64] |= u64::from(order[next.to as usize] < order[at as usize]) << (place % 64);
        }
    }
    for arc in 0..network.from.len() as u32 {
        let (from, at) = (network.from[arc as usize], network.to(arc));
        if order[at as usize] < order[from as usize] {
            continue;
        }
        let base = network.graph.offsets()[at as usize] as usize;
        for (word, up) in upwards[at as usize * words..][..words].iter().enumerate() {
            let mut turns = up & (0..lanes.count()).fold(0, |all, lane| all | hosts.set(lane, arc)[word]);
            while turns != 0 {
                let place = word * 64 + turns.trailing_zeros() as usize;
                turns &= turns - 1;
                // The sets may hold what was true of earlier tables only.
                let Some(found) = taken(network, routes, arc, (base + place) as u32) else { continue };
                legality.turns += 1;
                legality.first.get_or_insert(found);
            }
        }
    }
    Some(legality)
}

/// The lowest LID of a host that some host's packets reach by `arc` and then `next`.
fn taken(network: &Network<'_>, routes: &Routes, arc: u32, next: u32) -> Option<IllegalTurn> {
    let arcs = network.graph.all_arcs();
    let (from, at) = (network.from[arc as usize], network.to(arc));
    let entries = routes.lfts.row(from).iter().zip(routes.lfts.row(at).iter()).enumerate();
    let takes = |(_, (a, b)): &(usize, (&u8, &u8))| {
        **a == arcs[arc as usize].out_port && **b == arcs[next as usize].out_port
    };
    let to_hosts = |lid: &usize| network.owner(*lid).is_some_and(|owner| owner.host);
    entries.filter(takes).map(|(lid, _)| lid).filter(to_hosts).find_map(|lid| {
        let source = source(network, routes, lid, from)?;
        let path = path(network, routes, lid, source);
        let turn = path.iter().position(|hop| hop.guid == network.graph.guid(at))?;
        Some(IllegalTurn { lid: lid as u16, path, turn })
    })
}

/// A switch with hosts whose packets for a LID come through `through`: the nearest, and of these the first.
fn source(network: &Network<'_>, routes: &Routes, lid: usize, through: SwitchIndex) -> Option<SwitchIndex> {
    let mut seen = vec![false; network.graph.switch_count()];
    seen[through as usize] = true;
    let mut queue = vec![through];
    let mut head = 0;
    while let Some(&at) = queue.get(head) {
        head += 1;
        if !network.host_ports[at as usize].is_empty() {
            return Some(at);
        }
        for back in network.graph.arcs(at) {
            let leads_here = || {
                let port = routes.lfts.row(back.to).get(lid);
                port.and_then(|port| network.step(back.to, port)).is_some_and(|step| step.to == at)
            };
            if !seen[back.to as usize] && leads_here() {
                seen[back.to as usize] = true;
                queue.push(back.to);
            }
        }
    }
    None
}

fn path(network: &Network<'_>, routes: &Routes, lid: usize, source: SwitchIndex) -> Vec<Hop> {
    let mut path = Vec::new();
    let mut at = source;
    while path.len() <= network.graph.switch_count() {
        let port = routes.lfts.row(at).get(lid).unwrap_or(crate::routes::NO_PORT);
        path.push(hop(network, at, port));
        match network.step(at, port) {
            Some(step) => at = step.to,
            None => break,
        }
    }
    path
}

#[cfg(test)]
mod tests;
