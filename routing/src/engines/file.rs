//! `file`: tables that were made elsewhere, read from a dump by [`crate::formats::tables`].
//!
//! - Input: tables for every switch of the fabric, found by NodeGUID.
//! - Guarantees: what the tables hold, unchanged; LIDs that have an owner now and no entry stay without. Nothing of it is
//!   proved: that is the verifier's part.
//! - Refuses: no tables given; a switch without one; an exit port that the switch does not have (B27).
//! - VLs: as the tables say. Cost: a copy.

use rustc_hash::FxHashMap;

use super::{RoutingEngine, RoutingError, RoutingInput};
use crate::fabric::SwitchGraph;
use crate::routes::{NO_PORT, PathSl, Routes, SlToVl};

/// The engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct FromFile;

fn unsuitable(reason: String) -> RoutingError {
    RoutingError::Unsuitable { engine: "file", reason }
}

impl RoutingEngine for FromFile {
    fn name(&self) -> &'static str {
        "file"
    }

    fn route(&self, graph: &SwitchGraph, input: &RoutingInput) -> Result<Routes, RoutingError> {
        let tables = input.tables.as_ref().ok_or_else(|| unsuitable("no file of tables is given".into()))?;
        let rows: FxHashMap<_, _> = tables.switches.iter().zip(0_u32..).collect();
        let mut routes = Routes::empty(self.name(), graph);
        let length = routes.lfts.stride().min(tables.lfts.stride());
        for s in 0..graph.switch_count() as u32 {
            let guid = graph.guid(s);
            let name = graph.name(s);
            let row = rows.get(&guid).map(|row| tables.lfts.row(*row).iter().take(length));
            let row = row.filter(|row| row.clone().any(|port| *port != NO_PORT));
            let row = row
                .ok_or_else(|| unsuitable(format!("switch \"{name}\" ({guid}) has no table in the file")))?;
            let wrong = |(_, port): &(usize, &u8)| **port != NO_PORT && **port > graph.num_ports(s);
            if let Some((lid, port)) = row.clone().enumerate().find(wrong) {
                let most = graph.num_ports(s);
                return Err(unsuitable(format!(
                    "switch \"{name}\" ({guid}) has {most} ports, its table sends LID {lid} to port {port}"
                )));
            }
            routes
                .lfts
                .row_mut(s)
                .update(|into| into.iter_mut().zip(row).for_each(|(into, port)| *into = *port));
        }
        if tables.switches == routes.switches {
            (routes.sl, routes.sl_to_vl) = (tables.sl.clone(), tables.sl_to_vl.clone());
        } else if tables.sl != PathSl::Default || tables.sl_to_vl != SlToVl::Identity {
            return Err(unsuitable("the tables carry service levels and are for other switches".into()));
        }
        routes.vls = tables.vls.max(1);
        Ok(routes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::{MinHop, route_chain};
    use crate::fabric::testing;

    /// B27, and B21: the chain says why it did not take the file.
    #[test]
    fn b27_tables_are_taken_as_they_are_or_refused_with_the_switch() {
        let graph = SwitchGraph::new(&testing::torus(&[3, 3], 2, 0));
        let made = MinHop.route(&graph, &RoutingInput::default()).unwrap();
        let mut input = RoutingInput { tables: Some(made.clone()), ..RoutingInput::default() };
        let routes = FromFile.route(&graph, &input).unwrap();
        assert!(routes.lfts == made.lfts && routes.engine == "file");

        let mut broken = made;
        broken.lfts.row_mut(1)[3] = 99;
        input.tables = Some(broken);
        let (routes, refused) = route_chain(&["file"], &graph, &input).unwrap();
        assert_eq!(routes.engine, "minhop");
        assert_eq!(
            refused[0].to_string(),
            "file: switch \"S2\" (0x0002c90200000002) has 6 ports, its table sends LID 3 to port 99"
        );
        input.tables = None;
        let refused = route_chain(&["file", "no_fallback"], &graph, &input).unwrap_err();
        assert_eq!(refused[0].to_string(), "file: no file of tables is given");
    }
}
