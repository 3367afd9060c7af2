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

use super::base::Kept;
use super::escape;
use super::room::Taken;
use super::targets::Targets;
use super::{RoutingEngine, RoutingError, RoutingInput};
use crate::fabric::{SwitchGraph, SwitchIndex};
use crate::routes::{LftMatrix, PathSl, Routes, SlToVl, sl_of_lane};
use pairs::Layers;
use paths::{Choice, Paths};

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

fn layered(graph: &SwitchGraph, input: &RoutingInput) -> Result<(Routes, Drawn, Layers), RoutingError> {
    let available = input.vls();
    let targets = Targets::new(graph, input);
    let mut needed = u8::MAX;
    let ways = usize::from(1_u8 << graph.destinations().iter().map(|d| d.lmc).max().unwrap_or(0).min(4));
    let parents = escape::parents(graph);
    let turns = escape::turns(graph, &parents);
    for ways in [ways, 1].into_iter().skip(usize::from(ways == 1)) {
        for drawn in candidates(graph, &targets, ways) {
            let paths = &drawn.paths;
            // Room for multicast, if there are VLs enough.
            for reserved in [&turns[..], &[]] {
                let mut layers = Layers::assign(graph, paths, reserved);
                needed = needed.min(layers.count());
                if layers.count() <= available {
                    let spanning = match reserved {
                        [] => layers.make_room(graph, paths, &parents),
                        _ => Some(Arc::clone(&parents)),
                    };
                    let mut routes = tables(graph, &targets, paths, &layers);
                    routes.spanning = spanning.into_iter().collect();
                    if routes.vls > 1 {
                        routes.sl_to_vl = SlToVl::first_for_most(available);
                    }
                    return Ok((routes, drawn, layers));
                }
            }
        }
    }
    Err(RoutingError::NotEnoughVls { engine: "lash", needed, available })
}

/// Paths, and the routes of hosts over each arc.
struct Drawn {
    paths: Paths,
    load: Vec<u64>,
}

impl Drawn {
    fn new(graph: &SwitchGraph, targets: &Targets, choice: Choice, ways: usize) -> Self {
        let paths = Paths::new(graph, targets, choice, ways);
        Self { load: paths.load(graph), paths }
    }

    /// Routes over the fullest link.
    fn most(&self) -> u64 {
        self.load.iter().copied().max().unwrap_or(0)
    }

    /// Whether all links in use have about as many.
    fn is_even(&self) -> bool {
        let used = self.load.iter().filter(|load| **load > 0);
        let mean = used.clone().sum::<u64>() / used.count().max(1) as u64;
        10 * self.most() <= 11 * mean
    }
}

/// Paths chosen one way and another, those whose fullest link has the fewest routes first.
fn candidates(graph: &SwitchGraph, targets: &Targets, ways: usize) -> impl Iterator<Item = Drawn> {
    let draw = move |choice| Drawn::new(graph, targets, choice, ways);
    let mut drawn = vec![draw(Choice::BothEnds)];
    let even_tree = !targets.is_flat() && drawn[0].is_even();
    if !even_tree {
        drawn.insert(0, draw(Choice::FirstPort));
        // Choosing by load takes the longest, and breaks the rules that keep to few lanes: only where that can help.
        if !drawn.iter().any(Drawn::is_even) {
            drawn.push(draw(Choice::Load));
        }
        drawn.sort_by_key(Drawn::most);
    }
    let later = even_tree.then_some(Choice::FirstPort);
    drawn.into_iter().chain(later.into_iter().map(draw))
}

pub(super) fn from_nothing(
    graph: &SwitchGraph,
    input: &RoutingInput,
) -> Result<(Routes, Kept), RoutingError> {
    let (routes, Drawn { paths, load }, layers) = layered(graph, input)?;
    let taken = Taken::new(graph, layers.taken(graph, &paths), routes.vls);
    Ok((routes, Kept { load, taken: Some(taken), ways: paths.ways }))
}

/// The places among the arcs of `from` of those that lead to `to`.
fn parallel(graph: &SwitchGraph, from: SwitchIndex, to: SwitchIndex) -> std::ops::Range<usize> {
    let arcs = graph.arcs(from);
    arcs.partition_point(|arc| arc.to < to)..arcs.partition_point(|arc| arc.to <= to)
}

fn tables(graph: &SwitchGraph, targets: &Targets, paths: &Paths, layers: &Layers) -> Routes {
    let mut routes = Routes::empty("lash", graph);
    let mut sl = LftMatrix::new(graph.switch_count(), graph.top_lid());
    routes.lfts.par_rows_mut_with(&mut sl, |s, row, sls| {
        // The cables of each channel.
        let cables: Vec<Vec<u8>> = paths
            .channels(s)
            .map(|channel| {
                let there = &graph.arcs(s)[parallel(graph, s, paths.neighbours[channel as usize])];
                there.iter().map(|arc| arc.out_port).collect()
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

mod by_load;
mod pairs;
mod paths;
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
