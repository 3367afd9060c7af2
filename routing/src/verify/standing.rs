//! Checks tables by what differs from tables that were checked before, after links between switches were lost or came back.
//!
//! A LID is walked anew (once over the old tables, to take its sums away, and once over the new) when an entry for it
//! changed, when it is sent over a link that is gone, or when the fewest hops to its owner changed. Dependencies of
//! channels are only added: a set too large that is proved free of cycles proves the smaller one. The proof is a height
//! for each channel ([`super::cycle`]); where a new dependency does not go upwards, all is checked from nothing, so the
//! verdict is always that of [`super::check`]. A loop of management traffic, which most trees have between their roots, is
//! named again while each of its steps is in the tables. Only [`Report::dependencies`] can be larger, and another loop of
//! management traffic can be named.
//!
//! Cost: two walks of the LIDs that changed, a breadth-first search for each neighbour of the ends of the links, and a
//! pass over the dependencies.

use std::sync::Arc;

use rayon::prelude::*;

use super::cycle::{self, Order, Vertex};
use super::dependencies::{Dependencies, Lanes};
use super::network::Network;
use super::report::{self, Report};
use super::walk::Tally;
use super::{Options, orders, walk_all};
use crate::fabric::{LinkChange, SwitchGraph, SwitchIndex};
use crate::routes::{LFT_BLOCK, LftMatrix, PathSl, Routes, SlToVl};

/// Switches that may have lost or gained links; with more, a check from nothing is as fast.
const MOST_TOUCHED: usize = 8;
/// Searches for a loop of management traffic before all is checked.
const MOST_SEARCHES: usize = 4;

/// Tables that were checked, with the sums.
#[derive(Clone, Debug)]
pub struct Standing {
    graph: Arc<SwitchGraph>,
    routes: Arc<Routes>,
    options: Options,
    tally: Tally,
    hosts: Order,
    all: Order,
}

/// Checks `routes` on `graph` like [`super::check`], going from what stands where that is possible.
pub fn check_from(
    graph: &Arc<SwitchGraph>,
    routes: &Arc<Routes>,
    options: Options,
    standing: Option<&Standing>,
) -> (Report, Standing) {
    let network = Network::new(graph);
    let lanes = Lanes::new(&network, routes, options.data_vls);
    let from_standing = standing.and_then(|old| old.step(&network, routes, &lanes, options));
    let (tally, hosts, all) = from_standing.unwrap_or_else(|| {
        let blocks = usize::from(graph.top_lid()) / LFT_BLOCK + 1;
        let tally = walk_all(&network, routes, &lanes, &vec![u64::MAX; blocks]);
        let (hosts, all) = orders(&network, &lanes, &tally);
        (tally, hosts, all)
    });
    let report = report::make(&network, routes, &lanes, &tally, (&hosts, &all), options);
    let (graph, routes) = (Arc::clone(graph), Arc::clone(routes));
    (report, Standing { graph, routes, options, tally, hosts, all })
}

/// Whether all packets are on VL 0, whatever their SL.
fn on_one_vl(routes: &Routes) -> bool {
    routes.sl == PathSl::Default && routes.sl_to_vl == SlToVl::Identity
}

impl Standing {
    /// The sums and proofs for the new tables; `None` when all has to be checked.
    fn step(
        &self,
        network: &Network<'_>,
        routes: &Routes,
        lanes: &Lanes<'_>,
        options: Options,
    ) -> Option<(Tally, Order, Order)> {
        let links = LinkChange::between(&self.graph, network.graph)?;
        let Order::Heights(hosts) = &self.hosts else { return None };
        let comparable = self.options == options
            && on_one_vl(routes)
            && on_one_vl(&self.routes)
            && self.routes.lfts.stride() == routes.lfts.stride()
            && self.tally.faults.iter().all(|count| *count == 0);
        if !comparable {
            return None;
        }
        let old_network = Network::new(&self.graph);
        let mut changed = changed_lids(&self.routes.lfts, &routes.lfts);
        mark_used(&self.graph, &links, &self.routes.lfts, &mut changed);
        mark_distances(&old_network, network, &links, &mut changed)?;

        let old_lanes = Lanes::new(&old_network, &self.routes, options.data_vls);
        if old_lanes.words != lanes.words {
            return None;
        }
        let (minus, plus) = rayon::join(
            || walk_all(&old_network, &self.routes, &old_lanes, &changed),
            || walk_all(network, routes, lanes, &changed),
        );
        let mut left = self.tally.clone();
        left.subtract(&minus);
        let mut load = vec![0; network.from.len()];
        links.copy_arcs(&left.load, &mut load);
        left.load = load;
        left.hosts = moved(&left.hosts, &old_network, network, lanes, &links);
        left.all = moved(&left.all, &old_network, network, lanes, &links);
        let hosts = raised(hosts, &links, network, &plus.hosts, &left.hosts)?;
        let all = match &self.all {
            Order::Heights(all) => Some(Order::Heights(raised(all, &links, network, &plus.all, &left.all)?)),
            Order::Cycle(channels) => still_there(channels, &links, network, routes),
        };
        let mut tally = left.merge(plus);
        let all = match all {
            Some(all) => all,
            None => search(&mut tally.all, network, routes, lanes)?,
        };
        Some((tally, Order::Heights(hosts), all))
    }
}

/// LIDs of which some entry differs, 64 a word.
fn changed_lids(old: &LftMatrix, new: &LftMatrix) -> Vec<u64> {
    let blocks = new.stride() / LFT_BLOCK;
    let differing: Vec<SwitchIndex> =
        (0..new.switch_count() as SwitchIndex).filter(|s| !new.shares_row(*s, old)).collect();
    differing
        .par_iter()
        .fold(
            || vec![0_u64; blocks],
            |mut changed, s| {
                let pairs = old.row(*s).chunks_exact(LFT_BLOCK).zip(new.row(*s).chunks_exact(LFT_BLOCK));
                for (bits, (old, new)) in changed.iter_mut().zip(pairs).filter(|(_, (old, new))| old != new) {
                    for (i, (a, b)) in old.iter().zip(new).enumerate() {
                        *bits |= u64::from(a != b) << i;
                    }
                }
                changed
            },
        )
        .reduce_with(|mut a, b| {
            a.iter_mut().zip(b).for_each(|(a, b)| *a |= b);
            a
        })
        .unwrap_or_else(|| vec![0; blocks])
}

/// Adds the LIDs that were sent over a link that is gone.
fn mark_used(graph: &SwitchGraph, links: &LinkChange, lfts: &LftMatrix, changed: &mut [u64]) {
    for (s, arc) in &links.lost {
        let port = graph.all_arcs()[*arc as usize].out_port;
        for (lid, _) in lfts.row(*s).iter().enumerate().filter(|(_, entry)| **entry == port) {
            changed[lid / LFT_BLOCK] |= 1 << (lid % LFT_BLOCK);
        }
    }
}

/// Adds the LIDs to whose owners the fewest hops changed; `None` when too much has changed to look.
///
/// Old distances to a target hold in the new graph when they fit together (each is one more than the least of the
/// neighbours) at the switches whose neighbours changed; at all others they do anyway.
fn mark_distances(
    old: &Network<'_>,
    new: &Network<'_>,
    links: &LinkChange,
    changed: &mut [u64],
) -> Option<()> {
    let mut touched: Vec<SwitchIndex> = links.lost.iter().chain(&links.added).map(|(s, _)| *s).collect();
    touched.sort_unstable();
    touched.dedup();
    if touched.len() > MOST_TOUCHED {
        return None;
    }
    let distances = |from: SwitchIndex| {
        let (mut distance, mut queue) = (Vec::new(), Vec::new());
        old.distances(from, &mut distance, &mut queue);
        distance
    };
    let mut differs = vec![false; new.graph.switch_count()];
    for s in touched {
        let mut neighbours: Vec<SwitchIndex> = new.graph.arcs(s).iter().map(|arc| arc.to).collect();
        neighbours.dedup();
        let nearest = neighbours.par_iter().map(|n| distances(*n)).reduce_with(|mut a, b| {
            a.iter_mut().zip(b).for_each(|(a, b)| *a = (*a).min(b));
            a
        });
        let nearest = nearest.unwrap_or_else(|| vec![u16::MAX; differs.len()]);
        for (t, (before, nearest)) in distances(s).into_iter().zip(nearest).enumerate() {
            differs[t] |= t != s as usize && nearest.saturating_add(1) != before;
        }
    }
    for d in new.graph.destinations().iter().filter(|d| differs[d.switch as usize]) {
        d.lids().for_each(|lid| changed[usize::from(lid) / LFT_BLOCK] |= 1 << (lid % LFT_BLOCK as u16));
    }
    Some(())
}

/// Dependencies by the new numbers of arcs; those of arcs that are gone are left out.
fn moved(
    from: &Dependencies,
    old: &Network<'_>,
    new: &Network<'_>,
    lanes: &Lanes<'_>,
    links: &LinkChange,
) -> Dependencies {
    let mut moved = Dependencies::new(new.from.len(), lanes);
    let mut new_arc = vec![u32::MAX; old.from.len()];
    for (arc, old_arc) in links.old_arc.iter().enumerate().filter(|(_, old_arc)| **old_arc != u32::MAX) {
        new_arc[*old_arc as usize] = arc as u32;
    }
    let mut touched = vec![false; new.graph.switch_count()];
    links.lost.iter().chain(&links.added).for_each(|(s, _)| touched[*s as usize] = true);
    for (arc, old_arc) in links.old_arc.iter().enumerate().filter(|(_, old_arc)| **old_arc != u32::MAX) {
        let to = new.to(arc as u32) as usize;
        if touched[to] {
            for place in from.of(0, *old_arc) {
                let next = new_arc[old.graph.offsets()[to] as usize + place];
                if next != u32::MAX {
                    moved.add(0, arc as u32, (next - new.graph.offsets()[to]) as usize);
                }
            }
        } else {
            moved.copy_of(arc as u32, from, *old_arc);
        }
    }
    moved
}

/// Whether packets for some LID go from one arc on to another.
fn is_taken(routes: &Routes, network: &Network<'_>, arc: u32, next: u32) -> bool {
    let arcs = network.graph.all_arcs();
    let (from, to) = (network.from[arc as usize], network.from[next as usize]);
    let (exit, next_exit) = (arcs[arc as usize].out_port, arcs[next as usize].out_port);
    let mut pairs = routes.lfts.row(from).iter().zip(routes.lfts.row(to));
    pairs.any(|(a, b)| *a == exit && *b == next_exit)
}

/// Pairs of channels that follow one another along a cycle.
fn steps(cycle: &[Vertex]) -> impl Iterator<Item = (u32, u32)> + '_ {
    let next = cycle.iter().cycle().skip(1);
    cycle.iter().zip(next).map(|((arc, _), (next, _))| (*arc, *next))
}

/// A cycle by the new numbers of its arcs, if packets still take each step of it.
fn still_there(
    cycle: &[Vertex],
    links: &LinkChange,
    network: &Network<'_>,
    routes: &Routes,
) -> Option<Order> {
    let new =
        |(arc, vl): &Vertex| Some((links.old_arc.iter().position(|old_arc| old_arc == arc)? as u32, *vl));
    let cycle: Vec<Vertex> = cycle.iter().map(new).collect::<Option<_>>()?;
    let stands = steps(&cycle).all(|(arc, next)| is_taken(routes, network, arc, next));
    stands.then_some(Order::Cycle(cycle))
}

/// Looks for a cycle of steps that are in the tables; those that were in older tables only are taken out on the way. `None`
/// when there are too many of these.
fn search(
    all: &mut Dependencies,
    network: &Network<'_>,
    routes: &Routes,
    lanes: &Lanes<'_>,
) -> Option<Order> {
    for _ in 0..MOST_SEARCHES {
        let cycle = match cycle::find(network, lanes, all) {
            Order::Cycle(cycle) => cycle,
            proof @ Order::Heights(_) => return Some(proof),
        };
        let gone: Vec<(u32, u32)> =
            steps(&cycle).filter(|(arc, next)| !is_taken(routes, network, *arc, *next)).collect();
        if gone.is_empty() {
            return Some(Order::Cycle(cycle));
        }
        for (arc, next) in gone {
            let first = network.graph.offsets()[network.to(arc) as usize];
            all.remove(0, arc, (next - first) as usize);
        }
    }
    None
}

/// Heights for the new arcs, if every dependency of `plus` goes upwards by them; those that `known` holds do already.
fn raised(
    heights: &[u32],
    links: &LinkChange,
    network: &Network<'_>,
    plus: &Dependencies,
    known: &Dependencies,
) -> Option<Vec<u32>> {
    let mut new = vec![u32::MAX; network.from.len()];
    links.copy_arcs(heights, &mut new);
    let next_arc =
        |arc: u32, place: usize| network.graph.offsets()[network.to(arc) as usize] as usize + place;
    // An arc that came is put between those that lead to it and those it leads to.
    for (s, added) in &links.added {
        let place = *added as usize - network.graph.offsets()[*s as usize] as usize;
        let into = network.graph.arcs(*s).iter().filter_map(|back| {
            let arc = network.step(back.to, back.in_port)?.arc;
            plus.contains(0, arc, place).then_some(new[arc as usize])
        });
        let below = into.max().unwrap_or(0);
        let above = plus.of(0, *added).map(|p| new[next_arc(*added, p)]).min().unwrap_or(u32::MAX - 1);
        if below == u32::MAX || above == u32::MAX || above.saturating_sub(below) < 2 {
            return None;
        }
        new[*added as usize] = below + (above - below).min(1 << 11) / 2;
    }
    let rises = |arc: u32| {
        plus.of(0, arc)
            .filter(|place| !known.contains(0, arc, *place))
            .all(|place| new[arc as usize] < new[next_arc(arc, place)])
    };
    (0..network.from.len() as u32).into_par_iter().all(rises).then_some(new)
}

#[cfg(test)]
mod tests;
