//! `adaptive-minhop`: `minhop` that follows a measured load, for switches without adaptive routing.
//!
//! - Input: the tables in force (else those of `minhop`), and the load that was measured on them.
//! - Guarantees: minimal hop counts; at most a twentieth of the entries moves at a time, and none without a clear gain, see
//!   [`super::rebalance`]. Without a load, the tables in force or those of `minhop`. Free of credit loops on trees only.
//! - Refuses: tables in force that do not fit the fabric, as `file` does; tables that are not free of detours, for those of
//!   other engines keep other rules than shortest paths.
//! - VLs: 1. Cost: as `minhop`, and that of a step.

use super::{Damping, Settings, step};
use crate::engines::{FromFile, MinHop, RoutingEngine, RoutingError, RoutingInput};
use crate::fabric::SwitchGraph;
use crate::routes::Routes;
use crate::verify::{self, Options};

/// The engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct AdaptiveMinHop;

impl RoutingEngine for AdaptiveMinHop {
    fn name(&self) -> &'static str {
        "adaptive-minhop"
    }

    fn route(&self, graph: &SwitchGraph, input: &RoutingInput) -> Result<Routes, RoutingError> {
        let refuse = |reason| RoutingError::Unsuitable { engine: self.name(), reason };
        let mut routes = if input.tables.is_some() {
            let routes = FromFile.route(graph, input).map_err(|error| refuse(error.to_string()))?;
            let report = verify::check(graph, &routes, Options::default());
            if !report.reaches_all() || report.hops.detours > 0 {
                let detours = report.hops.detours;
                return Err(refuse(format!(
                    "the tables in force are not of shortest paths: {detours} detours, or not all is reached"
                )));
            }
            routes
        } else {
            MinHop.route(graph, input)?
        };
        if let Some(load) = &input.load {
            let moved = step(graph, &routes.lfts, load, Settings::default(), &mut Damping::default());
            routes.lfts = moved.lfts;
        }
        routes.engine = self.name().into();
        Ok(routes)
    }
}
