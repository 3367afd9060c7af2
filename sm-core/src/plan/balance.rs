//! `adaptive-minhop` in the daemon: the tables in force, with a bounded share of the routes moved by what was measured.
//!
//! As long as the switches, links and LIDs are what they were, the tables of the plan before stand; a measured load moves at most a
//! twentieth of the entries, and what moved lately has to gain more to move again, from plan to plan
//! ([`routing::adaptive`]). On a fabric that changed the engine begins anew from `minhop`. Cost: that of a step.

use std::sync::Arc;

use routing::adaptive::{Damping, Load, Settings, step};
use routing::engines::RoutingInput;
use routing::fabric::{Fabric, SwitchGraph};
use routing::formats::{counters, flows};
use routing::routes::Routes;

use super::Plan;

/// The engine.
pub const ENGINE: &str = "adaptive-minhop";

/// What the load is taken from.
#[derive(Clone, Debug)]
pub enum Measured {
    /// Read over the fabric.
    Load(Arc<Load>),
    /// The operator's file.
    File,
}

/// A file with flows or counters, as `rsm route --load` takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadFile {
    /// What errors call it.
    pub name: String,
    /// Its text.
    pub text: Arc<str>,
}

impl LoadFile {
    fn read(&self, fabric: &Fabric, graph: &SwitchGraph) -> Result<Load, String> {
        let load = if counters::are_in(&self.text) {
            counters::read(&self.name, &self.text, graph).map(Load::Counters)
        } else {
            flows::read(&self.name, &self.text, fabric, graph).map(Load::Flows)
        };
        load.map_err(|error| error.to_string())
    }
}

/// Hands the engine the tables in force, where they are of the same fabric.
pub(super) fn stand_on(input: &mut RoutingInput, graph: &SwitchGraph, previous: Option<&Plan>) {
    let standing = previous.filter(|plan| plan.routes.engine == ENGINE && is_same(graph, &plan.graph));
    input.tables = standing.map(|plan| Routes::clone(&plan.routes));
}

fn is_same(a: &SwitchGraph, b: &SwitchGraph) -> bool {
    let guids =
        |graph: &SwitchGraph| (0..graph.switch_count() as u32).map(|s| graph.guid(s)).collect::<Vec<_>>();
    a.offsets() == b.offsets()
        && a.all_arcs() == b.all_arcs()
        && a.destinations() == b.destinations()
        && guids(a) == guids(b)
}

/// Moves routes by what was measured. What the operator should know of it, in a line.
pub(super) fn follow(
    routes: &mut Routes,
    damping: &mut Damping,
    (fabric, graph): (&Fabric, &SwitchGraph),
    (measured, file): (&Measured, Option<&LoadFile>),
) -> Option<String> {
    let load = match (measured, file) {
        (Measured::Load(load), _) => Arc::clone(load),
        (Measured::File, Some(file)) => match file.read(fabric, graph) {
            Ok(load) => Arc::new(load),
            Err(error) => return Some(format!("{ENGINE}: {error}")),
        },
        (Measured::File, None) => return None,
    };
    let moved = step(graph, &routes.lfts, &load, Settings::default(), damping);
    if moved.moved == 0 {
        damping.ease();
        return None;
    }
    routes.lfts = moved.lfts;
    let (before, after) = moved.worst;
    Some(format!(
        "{ENGINE} moved {} entries: {before} on the most loaded link between switches, {after} as expected now",
        moved.moved
    ))
}
