//! Tables that are repaired after lost links, for engines in whose result every LID depends on those before it (`sssp`,
//! `dfsssp`, `nue`), or whose lanes do (`lash`).
//!
//! What these engines compute from nothing for a fabric less one cable has little in common with what they computed before:
//! one other choice changes the load that all later LIDs see, or the dependencies that are left to them. So it can't be
//! the measure for the tables after a failure, as it is for the engines of [`super::standing`]: entries would move all over
//! the fabric, and packets be lost and reordered that have nothing to do with the cable. What B24 wants is that the tables depend on
//! the picture of the fabric, and not on how the manager came to it. They do, by a *base*: a graph and its tables from nothing.
//! While the fabric is the base less some links, its tables are a function of base and fabric alone. Links may be lost in any
//! order, at once or one by one, and some come back: the same links gone give the same bytes, and none gone those from nothing.
//! Nothing of one repair goes into the next, so that nothing adds up either.
//!
//! Anything else is computed from nothing and is the base from then on: links, switches or LIDs that the base does not know, LIDs (but
//! those of hosts that are away, [`super::absent`]) or switches that are gone, another engine or other settings, more links lost than [`SHARE`] allows, and what an engine can't
//! repair (`dfsssp` and `lash`, where lanes are scarce; then it matters for the next failure which tables these were, until all links are back).
//! A manager that takes over has no base: it computes from nothing, as after a start.
//!
//! Memory: the routes (shared while they are in force), the load, and for engines with lanes two bytes for each pair of links in a
//! row, and the place of each link in an order for each lane.

use std::sync::Arc;

use super::room::Taken;
use super::{RoutingEngine, RoutingError, RoutingInput, lash, nue, sssp};
use crate::fabric::{LinkChange, SwitchGraph};
use crate::routes::Routes;

/// Repaired is what has lost no more than this share of its links.
const SHARE: usize = 16;
/// Ends of links that may be lost however few there are.
const ALWAYS: usize = 8;

/// A graph and what was computed for it from nothing.
#[derive(Debug)]
pub(super) struct Base {
    engine: &'static str,
    pub(super) input: RoutingInput,
    pub(super) graph: Arc<SwitchGraph>,
    pub(super) routes: Routes,
    pub(super) kept: Kept,
}

/// What a repair needs beside the routes.
#[derive(Debug)]
pub(super) struct Kept {
    /// Routes of hosts over each arc.
    pub(super) load: Vec<u64>,
    /// What lanes have taken, for engines with lanes.
    pub(super) taken: Option<Taken>,
    /// Ways over which the LIDs of one port are dealt, for `lash`.
    pub(super) ways: usize,
}

type FromNothing = fn(&SwitchGraph, &RoutingInput) -> Result<(Routes, Kept), RoutingError>;

/// How an engine goes on from a base.
pub(super) struct Repairs {
    from_nothing: FromNothing,
    repair: fn(&Base, &SwitchGraph, &LinkChange) -> Option<Routes>,
}

/// How the engine called `name` does, if it does.
pub(super) fn repairs(name: &str) -> Option<Repairs> {
    match name {
        "sssp" => Some(Repairs { from_nothing: sssp::from_nothing, repair: sssp::repair }),
        "dfsssp" => Some(Repairs { from_nothing: sssp::layered_from_nothing, repair: sssp::repair_layered }),
        "lash" => Some(Repairs { from_nothing: lash::from_nothing, repair: lash::repair }),
        "nue" => Some(Repairs { from_nothing: nue::from_nothing, repair: nue::repair }),
        _ => None,
    }
}

impl Repairs {
    /// Tables for `graph` and the base of the next ones, `None` where these can't have one.
    pub(super) fn route(
        &self,
        engine: &'static dyn RoutingEngine,
        (graph, input): (&Arc<SwitchGraph>, &RoutingInput),
        base: Option<&Arc<Base>>,
    ) -> Result<(Routes, Option<Arc<Base>>), RoutingError> {
        let same = base.filter(|base| base.engine == engine.name() && base.input == *input);
        let repaired = same.and_then(|base| Some((self.repair(base, graph)?, Some(Arc::clone(base)))));
        if let Some(repaired) = repaired {
            return Ok(repaired);
        }
        if !graph.lids_are_unique() {
            return Ok((engine.route(graph, input)?, None));
        }
        let (routes, kept) = (self.from_nothing)(graph, input)?;
        let base = Base {
            engine: engine.name(),
            input: input.clone(),
            graph: Arc::clone(graph),
            routes: routes.clone(),
            kept,
        };
        Ok((routes, Some(Arc::new(base))))
    }

    fn repair(&self, base: &Base, graph: &SwitchGraph) -> Option<Routes> {
        let links = LinkChange::between(&base.graph, graph)?;
        if links.is_empty() {
            return Some(base.routes.clone());
        }
        let most = ALWAYS.max(base.graph.all_arcs().len() / SHARE);
        if !links.added.is_empty() || links.lost.len() > most {
            return None;
        }
        (self.repair)(base, graph, &links)
    }
}

impl Base {
    /// The load by the arcs of a graph that is left.
    pub(super) fn load(&self, graph: &SwitchGraph, links: &LinkChange) -> Vec<u64> {
        let mut load = vec![0; graph.all_arcs().len()];
        links.copy_arcs(&self.kept.load, &mut load);
        load
    }
}

#[cfg(test)]
mod tests;
