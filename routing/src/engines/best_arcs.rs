//! Tables together with all arcs that they could have been chosen from: what adaptive routing offers to the switches.

use super::next_hops::NextHops;
use super::standing::maker;
use super::{RoutingError, RoutingInput, by_name, dragonfly};
use crate::fabric::SwitchGraph;
use crate::routes::Routes;

/// Routes by the engine called `name`, and gives its best first arcs.
///
/// # Errors
/// The engine refuses, or chooses by more than best first arcs and so has no adaptive form.
pub(crate) fn with_best_arcs(
    name: &str,
    graph: &SwitchGraph,
    input: &RoutingInput,
) -> Result<(Routes, NextHops), RoutingError> {
    let engine = by_name(name)?.name();
    let basis = match (maker(engine), engine) {
        (Some(make), _) => make(graph, input, None)?,
        (None, "dragonfly-plus") => dragonfly::basis_plus(graph, input)?,
        (None, engine) => {
            let reason = "it has no adaptive form; minhop, updn, dnup, ftree and dragonfly-plus have".into();
            return Err(RoutingError::Unsuitable { engine, reason });
        }
    };
    Ok((basis.routes(engine, graph), basis.hops))
}
