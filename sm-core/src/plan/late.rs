//! Links that are raised only when the new tables are in force.
//!
//! A cable that leads elsewhere than before makes old entries lead elsewhere, and these can close a circle over it. While the
//! link is down the packets are lost, which is the lesser evil; so such a link waits until no old entry is left (B01, B29).
//!
//! The same holds for a cable from a switch to itself: no new entry leads over it, but old ones may (B02).
//!
//! Cost: none where no link between switches is to be raised; else a walk for each old entry that leads over one.

use std::collections::BTreeSet;

use mad::types::{PortNum, PortState};
use mad::wire::smp::PortInfo;
use routing::fabric::{PortRef, SwitchGraph, SwitchIndex};
use routing::routes::LftMatrix;

use super::ports::{PortPlan, PortRole};
use crate::observed::Observed;

/// Both ends of each link that is not in service yet and over which the entries of `old` go round.
pub(super) fn late_links(observed: &Observed, graph: &SwitchGraph, old: &LftMatrix) -> BTreeSet<PortRef> {
    let waits = |end: PortRef| {
        observed.port_info(end).and_then(PortInfo::port_state).is_some_and(|s| s < PortState::Armed)
    };
    let mut late = BTreeSet::new();
    for switch in 0..graph.switch_count() as SwitchIndex {
        for arc in graph.arcs(switch) {
            let end = PortRef { node: graph.node(switch), port: PortNum(arc.out_port) };
            let Some(peer) = observed.fabric.peer(end).filter(|peer| waits(end) || waits(*peer)) else {
                continue;
            };
            let row = old.row(switch).iter().enumerate();
            let mut over = row.filter(|(_, exit)| **exit == arc.out_port);
            if over.any(|(lid, _)| comes_back(graph, old, (switch, arc.to), lid)) {
                late.extend([end, peer]);
            }
        }
    }
    late
}

/// Ends of cables from a switch to itself that are to be raised.
pub(super) fn loopbacks<'a>(
    observed: &'a Observed,
    ports: &'a [PortPlan],
) -> impl Iterator<Item = PortRef> + 'a {
    let rises = |plan: &&PortPlan| {
        let waits = plan.desired.port_state().is_some_and(|state| state < PortState::Armed);
        plan.role == PortRole::BetweenSwitches && plan.activate && waits
    };
    let to_itself = |end: &PortRef| observed.fabric.peer(*end).is_some_and(|peer| peer.node == end.node);
    ports.iter().filter(rises).map(|plan| plan.end).filter(to_itself)
}

/// Whether what goes from one switch to the next for a LID comes back.
fn comes_back(
    graph: &SwitchGraph,
    old: &LftMatrix,
    (from, to): (SwitchIndex, SwitchIndex),
    lid: usize,
) -> bool {
    let mut at = to;
    for _ in 0..graph.switch_count() {
        if at == from {
            return true;
        }
        let exit = old.row(at).get(lid);
        let Some(arc) = graph.arcs(at).iter().find(|arc| Some(arc.out_port) == exit) else { return false };
        at = arc.to;
    }
    false
}
