//! Tables together with all arcs that they could have been chosen from: what adaptive routing offers to the switches.

use super::dragonfly::up_global_down;
use super::next_hops::{NextHops, Turn};
use super::ranks::{Ranks, roots};
use super::targets::levels_from_hosts;
use super::{RoutingError, RoutingInput, by_name};
use crate::fabric::{SwitchGraph, SwitchIndex};
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
    let engine = by_name(name)?;
    let routes = engine.route(graph, input)?;
    let hops = match engine.name() {
        "minhop" => NextHops::shortest(graph, input.arc_weights(graph), None),
        "updn" | "ftree" => {
            let roots = roots(graph, input).unwrap_or_default();
            legal(graph, input, roots, |turn| turn)
        }
        "dnup" => {
            let level = levels_from_hosts(graph);
            let leaves = (0..graph.switch_count() as u32).filter(|s| level[*s as usize] == 0).collect();
            // Away from the hosts comes first here: what ranks call down.
            legal(graph, input, leaves, |turn| if turn == Turn::Down { Turn::Up } else { Turn::Down })
        }
        "dragonfly-plus" => up_global_down(graph)?,
        engine => {
            let reason = "it has no adaptive form; minhop, updn, dnup, ftree and dragonfly-plus have".into();
            return Err(RoutingError::Unsuitable { engine, reason });
        }
    };
    Ok((routes, hops))
}

/// The best arcs up and down below `roots`, in the order of switches that the engine comes to: the one by rank, or where
/// that leaves two hosts without a path the joined one.
fn legal(
    graph: &SwitchGraph,
    input: &RoutingInput,
    mut roots: Vec<SwitchIndex>,
    turned: impl Fn(Turn) -> Turn + Sync,
) -> NextHops {
    let mut ranks = Ranks::new(graph, &mut roots, &input.ids);
    let hops = NextHops::up_down(graph, &|arc| turned(ranks.turn(graph, arc)), None);
    let mut with_hosts = vec![false; graph.switch_count()];
    graph.destinations().iter().filter(|d| d.host).for_each(|d| with_hosts[d.switch as usize] = true);
    if hops.first_detour(&with_hosts).is_none() {
        return hops;
    }
    ranks.join(graph);
    NextHops::up_down(graph, &|arc| turned(ranks.turn(graph, arc)), None)
}
