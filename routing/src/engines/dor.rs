//! `dor`: shortest paths, dimension by dimension.
//!
//! - Input: a mesh or hypercube whose switches use the same ports for the same directions; an order of ports may be given
//!   for each switch.
//! - Guarantees: minimal hop counts; on meshes and hypercubes no credit loop on one VL, as every packet finishes one
//!   dimension before the next. On tori the wrap-around links still close loops: `torus-2qos`, `nue` or `dfsssp` are for
//!   these.
//! - Of the neighbours that lie on shortest paths, the one behind the first port in order is taken; parallel cables to it
//!   share the LIDs, and the LIDs of one port take different cables. Where there are two VLs, the upper half of the 2^LMC LIDs
//!   of a port takes the dimensions in reverse order, on SL and VL 1: it shares no link with the lower half unless one
//!   dimension is all that lies between. On one VL the two orders would close credit loops, so there all LIDs go by one order.
//! - VLs: 1; 2 with an LMC, if the links have them. Cost: as `minhop`, twice that with an LMC.
//! - Source: dimension-order routing (Sullivan, Bashkow 1977).

use super::fill::fill_narrowed;
use super::next_hops::NextHops;
use super::targets::Targets;
use super::{RoutingEngine, RoutingError, RoutingInput};
use crate::fabric::{Destination, SwitchGraph, SwitchIndex};
use crate::routes::{LftMatrix, PathSl, Routes};

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
        let fill = |reverse: bool, lfts: &mut LftMatrix| {
            fill_narrowed(graph, &targets, &hops, lfts, &|s, ports| {
                to_one_neighbour(graph, input, s, ports, reverse);
            });
        };
        let mut routes = Routes::empty(self.name(), graph);
        fill(false, &mut routes.lfts);
        let upper: Vec<usize> = graph.destinations().iter().flat_map(upper_half).collect();
        if !upper.is_empty() && input.vls() > 1 {
            let mut reversed = LftMatrix::new(graph.switch_count(), graph.top_lid());
            fill(true, &mut reversed);
            for s in 0..graph.switch_count() as SwitchIndex {
                let mut row = routes.lfts.row_mut(s);
                upper.iter().for_each(|lid| row[*lid] = reversed.row(s)[*lid]);
            }
            let mut sls = vec![0; routes.lfts.stride()];
            upper.iter().for_each(|lid| sls[*lid] = 1);
            routes.sl = PathSl::ByDestination(sls);
            routes.vls = 2;
        }
        Ok(routes)
    }
}

/// Leaves the ports to the neighbour behind the first of them in order, or the last.
fn to_one_neighbour(
    graph: &SwitchGraph,
    input: &RoutingInput,
    s: SwitchIndex,
    ports: &mut Vec<u8>,
    reverse: bool,
) {
    let order = input.port_order.get(&graph.guid(s));
    let place = |port: &u8| {
        let listed = order.and_then(|o| o.iter().position(|p| p.0 == *port)).unwrap_or(usize::MAX);
        (listed, *port)
    };
    let neighbour = |port: u8| graph.arcs(s).iter().find(|a| a.out_port == port).map(|a| a.to);
    let chosen =
        if reverse { ports.iter().max_by_key(|p| place(p)) } else { ports.iter().min_by_key(|p| place(p)) };
    let chosen = chosen.copied().and_then(neighbour);
    ports.retain(|port| neighbour(*port) == chosen);
}

/// The upper half of a port's LIDs, where it has several.
fn upper_half(d: &Destination) -> impl Iterator<Item = usize> + use<> {
    let lids = if d.lmc > 0 { 1 << d.lmc } else { 0 };
    d.lids().map(usize::from).take(lids).skip(lids / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::testing::check_all;
    use crate::fabric::testing;

    /// A torus with the wrap-around links cut.
    fn mesh(dims: &[usize], lmc: u8) -> crate::fabric::Fabric {
        let mut fabric = testing::torus(dims, 2, lmc);
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
            let graph = SwitchGraph::new(&mesh(&dims, 1));
            let report = check_all(&Dor, &graph, &RoutingInput::default());
            assert!(report.management_credit_loop.is_none(), "{report}");
            assert_eq!(report.hops.detours, 0);
        }
    }

    /// Of the LIDs of a port the halves share no link with one another wherever two dimensions or more lie between, and no more
    /// than the cables of one dimension demand elsewhere; neither VL holds a credit loop. On one VL there is one order.
    #[test]
    fn halves_of_the_lids_of_a_port_take_the_dimensions_in_reverse_order() {
        for dims in [vec![4, 4], vec![3, 4, 3], vec![2, 2, 2, 2]] {
            let graph = SwitchGraph::new(&mesh(&dims, 2));
            let input = |data_vls| RoutingInput { data_vls, ..RoutingInput::default() };
            let report = check_all(&Dor, &graph, &input(2));
            assert!(report.management_credit_loop.is_none(), "{report}");
            assert_eq!((report.hops.detours, report.vls), (0, 2));
            let routes = Dor.route(&graph, &input(2)).unwrap();
            let mut apart = 0;
            for to in graph.destinations().iter().filter(|d| d.host) {
                for from in (0..graph.switch_count() as u32).filter(|s| *s != to.switch) {
                    let way = |lid: u16| {
                        let (mut at, mut way) = (from, Vec::new());
                        while at != to.switch {
                            let port = routes.lfts.port(at, mad::types::Lid::new(lid).unwrap());
                            way.push((at, port));
                            at = graph.arcs(at).iter().find(|arc| arc.out_port == port).unwrap().to;
                        }
                        way
                    };
                    let ways: Vec<_> = to.lids().map(way).collect();
                    assert!(ways[0] == ways[1] && ways[2] == ways[3], "one cable between neighbours");
                    // Places are counted along the dimensions.
                    let mut left = (from as usize, to.switch as usize);
                    let between = dims.iter().filter(|size| {
                        let differs = left.0 % **size != left.1 % **size;
                        left = (left.0 / **size, left.1 / **size);
                        differs
                    });
                    let many = between.count() > 1;
                    let shared = ways[0].iter().any(|hop| ways[2].contains(hop));
                    assert_eq!(shared, !many, "{dims:?}: from {from} to {}", to.switch);
                    apart += usize::from(many);
                }
            }
            assert!(apart > 50, "{dims:?}: {apart}");
            let one = check_all(&Dor, &graph, &input(1));
            assert_eq!(one.vls, 1);
        }
    }

    #[test]
    fn the_order_of_ports_is_the_operators() {
        let graph = SwitchGraph::new(&mesh(&[3, 3], 1));
        let corner = graph.destinations().iter().find(|d| d.host && d.switch == 8).unwrap();
        let first = |input: &RoutingInput| Dor.route(&graph, input).unwrap().lfts.port(0, corner.lid);
        assert_eq!(first(&RoutingInput::default()), 1);
        let mut input = RoutingInput::default();
        input.port_order.insert(graph.guid(0), vec![mad::types::PortNum(3)]);
        assert_eq!(first(&input), 3);
    }
}
