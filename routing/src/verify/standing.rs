//! Checks tables by what differs from tables that were checked before, after links between switches were lost or came back.
//!
//! What the changes do to the sums is found by [`super::rewalk`], which follows only the walks that changed, from where they
//! change on. Dependencies of channels are only added: a set too large that is proved free of cycles proves the smaller one. The proof is a height
//! for each channel ([`super::cycle`]); where a new dependency does not go upwards, all is checked from nothing, so the
//! verdict is always that of [`super::check`], which alone names the first detour. A loop of management traffic, which most trees have between their roots, is
//! named again while each of its steps is in the tables. Only [`Report::dependencies`] can be larger, and another loop of
//! management traffic can be named.
//!
//! Cost: that of the rewalk, and a pass over the dependencies.

use std::sync::Arc;

use super::cycle::{self, Order, Vertex};
use super::dependencies::{Dependencies, Lanes};
use super::network::Network;
use super::report::{self, Report};
use super::walk::Tally;
use super::{Options, orders, rewalk, walk_all};
use crate::fabric::{LinkChange, SwitchGraph, SwitchIndex};
use crate::routes::{LFT_BLOCK, PathSl, Routes, SlToVl};

/// Links that may have gone or come; with more, a check from nothing is as fast.
const MOST_LINKS: usize = 8;
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
    let (network, old_network) =
        rayon::join(|| Network::new(graph), || standing.map(|old| (old, Network::new(&old.graph))));
    let lanes = Lanes::new(&network, routes, options.data_vls);
    let from_standing = old_network
        .and_then(|(old, old_network)| old.step((&old_network, &network), routes, &lanes, options));
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
    /// Dependencies and verdict of traffic between hosts, where they are those of `routes` and have the form of `lanes`.
    pub(super) fn of_hosts(
        &self,
        network: &Network<'_>,
        routes: &Routes,
        lanes: &Lanes<'_>,
    ) -> Option<(Dependencies, Order)> {
        let same = std::ptr::eq(Arc::as_ptr(&self.routes), routes) || *self.routes == *routes;
        if !same || self.graph.all_arcs() != network.graph.all_arcs() {
            return None;
        }
        let old = Network::new(&self.graph);
        let old_lanes = Lanes::new(&old, &self.routes, self.options.data_vls);
        let alike = (old_lanes.vls, old_lanes.words) == (lanes.vls, lanes.words);
        alike.then(|| (self.tally.hosts.clone(), self.hosts.clone()))
    }

    /// The sums and proofs for the new tables; `None` when all has to be checked.
    fn step(
        &self,
        (old_network, network): (&Network<'_>, &Network<'_>),
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
        let old_lanes = Lanes::new(old_network, &self.routes, options.data_vls);
        let ends = links.lost.len() + links.added.len();
        if old_lanes.words != lanes.words || ends > 2 * MOST_LINKS {
            return None;
        }
        let difference = rewalk::difference(rewalk::Pair {
            old: old_network,
            new: network,
            old_lfts: &self.routes.lfts,
            new_lfts: &routes.lfts,
            links: &links,
            dependencies: &self.tally.all,
        })?;
        let mut load = vec![0; network.from.len()];
        links.copy_arcs(&self.tally.load, &mut load);
        let moved = |from| moved(from, old_network, network, lanes, &links);
        let (of_hosts, of_all) = rayon::join(|| moved(&self.tally.hosts), || moved(&self.tally.all));
        let mut tally = self.tally.with_arcs(load, of_hosts, of_all);
        let (new_hosts, new_all) = (difference.new_hosts(&tally.hosts), difference.new_all(&tally.all));
        let hosts = raised(hosts, &links, network, &new_hosts)?;
        let all = match &self.all {
            Order::Heights(all) => Some(Order::Heights(raised(all, &links, network, &new_all)?)),
            Order::Cycle(channels) => still_there(channels, &links, network, routes),
        };
        difference.apply(&mut tally);
        new_hosts.iter().for_each(|(arc, place)| tally.hosts.add(0, *arc, *place as usize));
        new_all.iter().for_each(|(arc, place)| tally.all.add(0, *arc, *place as usize));
        let all = match all {
            Some(all) => all,
            None => search(&mut tally.all, network, routes, lanes)?,
        };
        Some((tally, Order::Heights(hosts), all))
    }
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
    moved.copy_all(from, links);
    // Behind the arcs that lead to a switch with other links, the places of the next ones are others.
    let mut touched: Vec<SwitchIndex> = links.lost.iter().chain(&links.added).map(|(s, _)| *s).collect();
    touched.sort_unstable();
    touched.dedup();
    for s in touched {
        let kept = links.old_arc[links.arcs_of(s)].iter().zip(0..);
        let places: Vec<(usize, usize)> = kept
            .filter(|(old_arc, _)| **old_arc != u32::MAX)
            .map(|(old_arc, place)| ((old_arc - old.graph.offsets()[s as usize]) as usize, place))
            .collect();
        for back in new.graph.arcs(s) {
            let Some(step) = new.step(back.to, back.in_port) else { continue };
            let old_arc = links.old_arc[step.arc as usize];
            moved.clear(0, step.arc);
            if old_arc != u32::MAX {
                let there = places.iter().filter(|(place, _)| from.contains(0, old_arc, *place));
                there.for_each(|(_, place)| moved.add(0, step.arc, *place));
            }
        }
    }
    moved
}

/// Whether packets for some LID go from one arc on to another.
fn is_taken(routes: &Routes, network: &Network<'_>, arc: u32, next: u32) -> bool {
    let arcs = network.graph.all_arcs();
    let (from, to) = (network.from[arc as usize], network.from[next as usize]);
    let (exit, next_exit) = (arcs[arc as usize].out_port, arcs[next as usize].out_port);
    let mut pairs = routes.lfts.row(from).iter().zip(routes.lfts.row(to).iter());
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

/// Heights for the new arcs, if every dependency of `plus` goes upwards by them, which is sorted and holds those of arcs that
/// came.
fn raised(
    heights: &[u32],
    links: &LinkChange,
    network: &Network<'_>,
    plus: &[(u32, u32)],
) -> Option<Vec<u32>> {
    let mut new = vec![u32::MAX; network.from.len()];
    links.copy_arcs(heights, &mut new);
    let next_arc =
        |(arc, place): (u32, u32)| (network.graph.offsets()[network.to(arc) as usize] + place) as usize;
    // An arc that came is put between those that lead to it and those it leads to.
    for (s, added) in &links.added {
        let place = *added - network.graph.offsets()[*s as usize];
        let into = network.graph.arcs(*s).iter().filter_map(|back| {
            let arc = network.step(back.to, back.in_port)?.arc;
            plus.binary_search(&(arc, place)).is_ok().then_some(new[arc as usize])
        });
        let below = into.max().unwrap_or(0);
        let first = plus.partition_point(|(arc, _)| arc < added);
        let after = plus[first..].iter().take_while(|(arc, _)| arc == added);
        let above = after.map(|pair| new[next_arc(*pair)]).min().unwrap_or(u32::MAX - 1);
        if below == u32::MAX || above == u32::MAX || above.saturating_sub(below) < 2 {
            return None;
        }
        new[*added as usize] = below + (above - below).min(1 << 11) / 2;
    }
    plus.iter().all(|pair| new[pair.0 as usize] < new[next_arc(*pair)]).then_some(new)
}

#[cfg(test)]
mod tests;
