//! A spanning tree whose turns stand on the first lane before any path: whatever is sent along it there closes no credit loop
//! with the paths, which multicast lives on ([`Routes::spanning`](crate::routes::Routes::spanning)).
//!
//! Every switch hangs below its uppermost neighbour in [`joined_order`], as on the escape tree of `nue`; so on a tree the turns
//! are those of shortest paths or go with them. Cost: the square of the tree's degrees.

use std::sync::Arc;

use super::ranks::{joined_order, upper_arcs};
use crate::fabric::{SwitchGraph, SwitchIndex};

/// The tree: for each switch the arc to its parent, `u32::MAX` for a root.
pub(super) fn parents(graph: &SwitchGraph) -> Arc<[u32]> {
    upper_arcs(graph, &joined_order(graph)).into()
}

/// The turns of a tree: arcs in pairs, one after the other.
pub(super) fn turns(graph: &SwitchGraph, parents: &[u32]) -> Vec<(u32, u32)> {
    // For each switch its arcs on the tree, in and out.
    let mut ends: Vec<Vec<(u32, u32)>> = vec![Vec::new(); graph.switch_count()];
    for (s, arc) in (0..graph.switch_count() as SwitchIndex).zip(parents) {
        let Some(to) = graph.all_arcs().get(*arc as usize) else { continue };
        let key = (s, to.in_port);
        let place = graph.arcs(to.to).binary_search_by_key(&key, |back| (back.to, back.out_port));
        let Ok(place) = place else { continue };
        let back = graph.offsets()[to.to as usize] + place as u32;
        ends[s as usize].push((back, *arc));
        ends[to.to as usize].push((*arc, back));
    }
    let mut turns = Vec::new();
    for ends in ends {
        for (number, (into, _)) in ends.iter().enumerate() {
            let others = ends.iter().enumerate().filter(|(other, _)| *other != number);
            turns.extend(others.map(|(_, (_, out))| (*into, *out)));
        }
    }
    turns
}
