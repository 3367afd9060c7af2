//! `ftree`: fat trees, whole or damaged.
//!
//! - Input: switches in levels, every link between neighbouring ones; roots given, or found as the highest level. Trees may
//!   be blocking, have parallel links, miss links, switches and hosts.
//! - Guarantees: no credit loop on one VL between hosts; shortest paths up and down. On a whole tree with hosts numbered
//!   along the leaves every shift permutation is free of contention (D-mod-K); on a damaged one only what used the lost
//!   link moves, spread over what is left, and every pair of hosts that a way up and down joins keeps one.
//! - The unit of spreading is the end port (B22): hosts with ports on one leaf or on two are routed port by port.
//! - Refuses, with the switches named: links between switches of one level, fabrics without a level above the hosts,
//!   switches that no root reaches.
//! - VLs: 1. Cost: as `minhop`.
//! - Source: Zahavi, "Fat-tree routing and node ordering providing contention free traffic" (JPDC 2012); for damaged trees
//!   in the manner of Gliksberg et al., Dmodc (IEEE Micro 40(1), 2020).

use super::fill::Basis;
use super::next_hops::Earlier;
use super::ranks::{Ranks, legal_hops, roots};
use super::targets::tree_levels;
use super::{RoutingEngine, RoutingError, RoutingInput};
use crate::fabric::{SwitchGraph, SwitchIndex};
use crate::routes::Routes;

/// The engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct FatTree;

fn unsuitable(reason: String) -> RoutingError {
    RoutingError::Unsuitable { engine: "ftree", reason }
}

impl RoutingEngine for FatTree {
    fn name(&self) -> &'static str {
        "ftree"
    }

    fn route(&self, graph: &SwitchGraph, input: &RoutingInput) -> Result<Routes, RoutingError> {
        Ok(basis(graph, input, None)?.routes(self.name(), graph))
    }
}

/// What the tables are filled from.
pub(super) fn basis(
    graph: &SwitchGraph,
    input: &RoutingInput,
    earlier: Option<Earlier<'_>>,
) -> Result<Basis, RoutingError> {
    let mut roots = roots(graph, input).ok_or_else(|| {
        let count = input.root_guids.len();
        unsuitable(format!("none of the {count} root GUIDs is a switch of this fabric"))
    })?;
    if roots.is_empty() && !graph.destinations().iter().any(|d| input.counts_levels(d)) {
        let text = match input.compute_guids.len() {
            0 => "no host of this fabric is a compute node".to_owned(),
            count => format!("none of the {count} compute GUIDs is a host of this fabric"),
        };
        return Err(unsuitable(text));
    }
    if roots.is_empty() {
        return Err(unsuitable(format!(
            "no level of switches lies above those with hosts{}",
            beside(graph, input)
        )));
    }
    let given = roots.len();
    let mut ranks = Ranks::new(graph, &mut roots, &input.ids);
    if let Some(added) = roots.get(given) {
        let name = graph.describe(*added);
        return Err(unsuitable(format!("switch {name} has no way to any root")));
    }
    check_levels(graph, &ranks)?;
    let (hops, targets) = legal_hops(graph, &mut ranks, input, earlier);
    Ok(Basis { hops, targets, order: Some(ranks.order()) })
}

/// What makes a fabric without any level above the hosts no tree: two switches with hosts that are linked.
fn beside(graph: &SwitchGraph, input: &RoutingInput) -> String {
    let level = tree_levels(graph, input);
    let ground = |s: SwitchIndex| level[s as usize] == 0;
    let pair = (0..graph.switch_count() as SwitchIndex)
        .filter(|s| ground(*s))
        .find_map(|s| graph.arcs(s).iter().find(|arc| ground(arc.to)).map(|arc| (s, arc.to)));
    pair.map_or_else(String::new, |(a, b)| {
        format!(": switches {} and {} both have hosts and are linked", graph.describe(a), graph.describe(b))
    })
}

/// Every link must join neighbouring levels.
fn check_levels(graph: &SwitchGraph, ranks: &Ranks) -> Result<(), RoutingError> {
    for s in 0..graph.switch_count() as u32 {
        let level =
            |graph_same: &&crate::fabric::Arc| ranks.rank[graph_same.to as usize] == ranks.rank[s as usize];
        if let Some(arc) = graph.arcs(s).iter().find(level) {
            return Err(unsuitable(format!(
                "switches {} and {} are linked and both {} below the roots; a tree has links between levels only",
                graph.describe(s),
                graph.describe(arc.to),
                ranks.rank[s as usize]
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
