//! `updn` and `dnup`: shortest paths that never turn from down to up (or, for `dnup`, from up to down), spread evenly.
//!
//! - Input: any graph. `updn`: root switches given by the operator or found ([`super::ranks`]); a switch's rank is its
//!   distance from the nearest root; between switches of one rank an id (the GUID, or as given) decides, so that "up" is a
//!   total order. Where that leaves two hosts without a legal path (several roots that no common switch hangs below, after
//!   failures), as few switches between these are raised as can be, or where that is not enough the order is changed as a whole. `dnup`: ranks are distances from the switches with hosts, which count as the upper ones: for fabrics
//!   where some hosts hang nearer to the middle.
//! - Guarantees: no credit loop on one VL between hosts. Every host from every host; a switch for which no legal path to
//!   another switch exists (two spines of a tree) sends over a neighbour that has one, which concerns management traffic
//!   of these switches only. Hop counts are minimal among legal paths, except where a switch has a way down that is longer
//!   than one over its parents: it takes the way down, so that those who come down through it arrive.
//! - Refuses: GUIDs of roots of which none is in the fabric; `dnup` where no legal path joins two switches with hosts.
//! - VLs: 1. Cost: as `minhop`.
//! - Source: Schroeder et al., Autonet (1991).

use super::fill::Basis;
use super::next_hops::{Earlier, NextHops, Turn};
use super::ranks::{Ranks, legal_hops, roots};
use super::targets::{Targets, check_hosts, levels_from_hosts};
use super::{RoutingEngine, RoutingError, RoutingInput};
use crate::fabric::{SwitchGraph, SwitchIndex};
use crate::routes::Routes;

/// The engine `updn`.
#[derive(Clone, Copy, Debug, Default)]
pub struct UpDown;

impl RoutingEngine for UpDown {
    fn name(&self) -> &'static str {
        "updn"
    }

    fn route(&self, graph: &SwitchGraph, input: &RoutingInput) -> Result<Routes, RoutingError> {
        Ok(basis(graph, input, None)?.routes(self.name(), graph))
    }
}

/// What the tables of `updn` are filled from.
pub(super) fn basis(
    graph: &SwitchGraph,
    input: &RoutingInput,
    earlier: Option<Earlier<'_>>,
) -> Result<Basis, RoutingError> {
    let mut roots = roots(graph, input).ok_or_else(|| RoutingError::Unsuitable {
        engine: "updn",
        reason: format!("none of the {} root GUIDs is a switch of this fabric", input.root_guids.len()),
    })?;
    let mut ranks = Ranks::new(graph, &mut roots, &input.ids);
    let (hops, targets) = legal_hops(graph, &mut ranks, input, earlier);
    Ok(Basis { hops, targets, order: Some(ranks.order()) })
}

/// The engine `dnup`.
#[derive(Clone, Copy, Debug, Default)]
pub struct DownUp;

impl RoutingEngine for DownUp {
    fn name(&self) -> &'static str {
        "dnup"
    }

    fn route(&self, graph: &SwitchGraph, input: &RoutingInput) -> Result<Routes, RoutingError> {
        Ok(basis_from_hosts(graph, input, None)?.routes(self.name(), graph))
    }
}

/// What the tables of `dnup` are filled from.
pub(super) fn basis_from_hosts(
    graph: &SwitchGraph,
    input: &RoutingInput,
    earlier: Option<Earlier<'_>>,
) -> Result<Basis, RoutingError> {
    let level = levels_from_hosts(graph);
    let mut leaves: Vec<SwitchIndex> =
        (0..graph.switch_count() as u32).filter(|s| level[*s as usize] == 0).collect();
    if leaves.is_empty() {
        let reason = "no switch has a host".into();
        return Err(RoutingError::Unsuitable { engine: "dnup", reason });
    }
    let ranks = Ranks::new(graph, &mut leaves, &input.ids);
    // Away from the hosts comes first here: what `ranks` calls down.
    let turned = |arc| match ranks.turn(graph, arc) {
        Turn::Down => Turn::Up,
        _ => Turn::Down,
    };
    let hops = || NextHops::up_down(graph, &turned, earlier);
    let (hops, targets) = rayon::join(hops, || Targets::new(graph, input));
    check_hosts("dnup", "no legal path leads between switches", graph, &hops)?;
    Ok(Basis { hops, targets, order: Some(ranks.order_reversed()) })
}

#[cfg(test)]
mod tests;
