//! `torus-2qos`: tori and meshes, dimension by dimension, with datelines.
//!
//! - Input: a torus or mesh of one to three dimensions. Its coordinates are found from the wiring: switches that use the
//!   same two ports for the same direction everywhere, as tori are cabled; the port pairs name the directions.
//! - Guarantees: no credit loop between hosts on two VLs; shortest paths within every ring; with one link missing in a ring
//!   its packets go the other way round. SL bit d says that the path crosses the dateline of dimension d; the
//!   switches put a packet on VL 0 or 1 by the SL bit of the dimension that the exit leads along. SLs depend on source and
//!   destination only.
//! - Refuses: other fabrics (says which switch does not fit), rings broken in two places, missing switches: `nue` routes
//!   these.
//! - VLs: 2 where a ring of more than two switches is closed, else 1; SLs: 8. Cost: LIDs · switches.
//! - Source: dateline routing on tori (Dally, Seitz 1987); service levels as torus-2QoS of OpenSM uses them.

mod coordinates;

use coordinates::Torus;
use rayon::prelude::*;

use super::targets::Targets;
use super::{RoutingEngine, RoutingError, RoutingInput};
use crate::fabric::{SwitchGraph, SwitchIndex};
use crate::routes::{LftMatrix, PathSl, Routes, SlToVl};

/// The engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct TorusTwoQos;

const NAME: &str = "torus-2qos";

impl RoutingEngine for TorusTwoQos {
    fn name(&self) -> &'static str {
        NAME
    }

    fn route(&self, graph: &SwitchGraph, input: &RoutingInput) -> Result<Routes, RoutingError> {
        let torus = Torus::find(graph).map_err(|reason| RoutingError::Unsuitable { engine: NAME, reason })?;
        let available = input.data_vls.max(1);
        let needed = if torus.has_closed_rings() { 2 } else { 1 };
        if needed > available {
            return Err(RoutingError::NotEnoughVls { engine: NAME, needed, available });
        }
        let targets = Targets::new(graph, input);
        let mut routes = Routes::empty(NAME, graph);
        let mut sl = LftMatrix::new(graph.switch_count(), graph.top_lid());
        let rows = routes.lfts.par_rows_mut().zip(sl.par_rows_mut());
        rows.enumerate().for_each(|(s, (lfts, sls))| {
            for target in 0..graph.switch_count() as u32 {
                fill(&torus, &targets, s as u32, target, lfts, sls);
            }
        });
        routes.vls = needed;
        if needed > 1 {
            routes.sl = PathSl::BySourceSwitch(sl);
            let tables = (0..graph.switch_count() as u32).map(|s| lanes(&torus, graph, s)).collect();
            routes.sl_to_vl = SlToVl::PerSwitch(tables);
        }
        Ok(routes)
    }
}

fn fill(
    torus: &Torus,
    targets: &Targets,
    s: SwitchIndex,
    target: SwitchIndex,
    lfts: &mut [u8],
    sls: &mut [u8],
) {
    let step = torus.step(s, target);
    let sl = torus.datelines(s, target);
    for end in targets.of(target) {
        for (offset, lid) in (end.lid..end.lid + end.lids).enumerate() {
            let port = match step {
                Some((axis, forward)) => {
                    let cables = torus.cables(s, axis, forward);
                    cables.get((end.rank as usize + offset) % cables.len().max(1)).copied()
                }
                None => Some(end.port),
            };
            lfts[usize::from(lid)] = port.unwrap_or(crate::routes::NO_PORT);
            sls[usize::from(lid)] = sl;
        }
    }
}

/// VL by SL for every entry and exit: bit d of the SL for an exit along dimension d, 0 towards hosts.
fn lanes(torus: &Torus, graph: &SwitchGraph, s: SwitchIndex) -> Vec<[u8; 16]> {
    let ports = usize::from(graph.num_ports(s)) + 1;
    let mut tables = vec![[0; 16]; ports * ports];
    for axis in 0..torus.dimensions() {
        for output in [true, false].into_iter().flat_map(|forward| torus.cables(s, axis, forward)) {
            let by_sl: [u8; 16] = std::array::from_fn(|sl| (sl >> axis & 1) as u8);
            for input in 0..ports {
                tables[input * ports + usize::from(*output)] = by_sl;
            }
        }
    }
    tables
}

#[cfg(test)]
mod tests;
