//! `dor`: shortest paths, dimension by dimension.
//!
//! - Input: a mesh or hypercube whose switches use the same ports for the same directions; an order of ports may be given
//!   for each switch.
//! - Guarantees: minimal hop counts; on meshes and hypercubes no credit loop on one VL, as every packet finishes one
//!   dimension before the next. On tori the wrap-around links still close loops: `torus-2qos`, `nue` or `dfsssp` are for
//!   these.
//! - Of the neighbours that lie on shortest paths, the one behind the first port in order is taken; parallel cables to it
//!   share the LIDs, and the LIDs of one port take different cables.
//! - VLs: 1. Cost: as `minhop`.
//! - Source: dimension-order routing (Sullivan, Bashkow 1977).

use super::fill::fill_narrowed;
use super::next_hops::NextHops;
use super::targets::Targets;
use super::{RoutingEngine, RoutingError, RoutingInput};
use crate::fabric::{SwitchGraph, SwitchIndex};
use crate::routes::Routes;

/// The engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dor;

impl RoutingEngine for Dor {
    fn name(&self) -> &'static str {
        "dor"
    }

    fn route(&self, graph: &SwitchGraph, input: &RoutingInput) -> Result<Routes, RoutingError> {
        let targets = Targets::new(graph, input);
        let hops = NextHops::shortest(graph, input.arc_weights(graph), None);
        let mut routes = Routes::empty(self.name(), graph);
        fill_narrowed(graph, &targets, &hops, &mut routes.lfts, &|s: SwitchIndex, ports: &mut Vec<u8>| {
            let place = |port: u8| {
                let order = input.port_order.get(&graph.guid(s));
                let listed = order.and_then(|o| o.iter().position(|p| p.0 == port)).unwrap_or(usize::MAX);
                (listed, port)
            };
            let neighbour = |port: u8| graph.arcs(s).iter().find(|a| a.out_port == port).map(|a| a.to);
            let first = ports.iter().copied().min_by_key(|p| place(*p)).and_then(neighbour);
            ports.retain(|port| neighbour(*port) == first);
        });
        Ok(routes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::testing::check_all;
    use crate::fabric::testing;

    /// A torus with the wrap-around links cut.
    fn mesh(dims: &[usize]) -> crate::fabric::Fabric {
        let mut fabric = testing::torus(dims, 2, 1);
        let switches: Vec<_> = fabric.switches().map(|(id, _)| id).collect();
        let mut step = 1;
        for (axis, size) in dims.iter().enumerate() {
            for (s, node) in switches.iter().enumerate() {
                if s / step % size == size - 1 && *size > 2 {
                    let port = mad::types::PortNum(2 * axis as u8 + 1);
                    fabric.disconnect(crate::fabric::PortRef { node: *node, port });
                }
            }
            step *= size;
        }
        fabric
    }

    #[test]
    fn meshes_are_free_of_credit_loops_and_paths_are_shortest() {
        for dims in [vec![4, 4], vec![3, 4, 3], vec![2, 2, 2, 2], vec![6]] {
            let graph = SwitchGraph::new(&mesh(&dims));
            let report = check_all(&Dor, &graph, &RoutingInput::default());
            assert!(report.management_credit_loop.is_none(), "{report}");
            assert_eq!(report.hops.detours, 0);
        }
    }

    #[test]
    fn the_order_of_ports_is_the_operators() {
        let graph = SwitchGraph::new(&mesh(&[3, 3]));
        let corner = graph.destinations().iter().find(|d| d.host && d.switch == 8).unwrap();
        let first = |input: &RoutingInput| Dor.route(&graph, input).unwrap().lfts.port(0, corner.lid);
        assert_eq!(first(&RoutingInput::default()), 1);
        let mut input = RoutingInput::default();
        input.port_order.insert(graph.guid(0), vec![mad::types::PortNum(3)]);
        assert_eq!(first(&input), 3);
    }
}
