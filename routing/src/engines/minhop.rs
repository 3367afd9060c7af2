//! `minhop`: shortest paths, spread evenly.
//!
//! - Input: any graph; hop weights where the operator gives them.
//! - Guarantees: minimal hop counts (sums of weights), every LID of a connected fabric from every switch. Free of credit
//!   loops on trees only: with cycles between switches it is not.
//! - Balance: every switch deals the LIDs of each leaf evenly to its equal ports (see [`super::fill`]); on a fat tree
//!   the choice is that of D-mod-K. The 2^LMC LIDs of a port take different neighbours first, then parallel cables.
//! - VLs: 1. Cost: see [`super::next_hops`] and [`super::fill`].
//! - Source: shortest paths by breadth-first search; spreading after Zahavi (2012) and Gliksberg et al. (2020).

use super::fill::Basis;
use super::next_hops::{Earlier, NextHops};
use super::targets::Targets;
use super::{RoutingEngine, RoutingError, RoutingInput};
use crate::fabric::SwitchGraph;
use crate::routes::Routes;

/// The engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct MinHop;

impl RoutingEngine for MinHop {
    fn name(&self) -> &'static str {
        "minhop"
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
    let hops = || NextHops::shortest(graph, input.arc_weights(graph), earlier);
    let (hops, targets) = rayon::join(hops, || Targets::new(graph, input));
    Ok(Basis { hops, targets, order: None })
}

#[cfg(test)]
mod tests;
