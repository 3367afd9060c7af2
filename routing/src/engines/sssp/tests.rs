use super::*;
use crate::engines::MinHop;
use crate::engines::testing::{check_all, random_fabrics};
use crate::fabric::testing;
use crate::verify::{self, Options};

#[test]
fn dfsssp_is_free_of_credit_loops_with_shortest_paths_everywhere() {
    let input = RoutingInput { data_vls: 15, ..RoutingInput::default() };
    for (name, fabric) in random_fabrics() {
        let graph = SwitchGraph::new(&fabric);
        let report = check_all(&DfSssp, &graph, &input);
        assert_eq!(report.hops.detours, 0, "{name}");
        let needed = match DfSssp.route(&graph, &RoutingInput { data_vls: 1, ..input.clone() }) {
            Ok(_) => 1,
            Err(RoutingError::NotEnoughVls { needed, .. }) => needed,
            Err(error) => panic!("{name}: {error}"),
        };
        assert!(needed <= 6, "{name}: {needed}");
        let whole_tree = name.starts_with("tree") && !name.contains("less");
        assert!(!whole_tree || needed == 1, "{name}: {needed}");
        let just = check_all(&DfSssp, &graph, &RoutingInput { data_vls: needed, ..input.clone() });
        assert_eq!((just.vls, report.vls), (needed.into(), 8), "{name}");
    }
}

/// Lanes that are not needed take their share: none of them carries much more than the others.
#[test]
fn spare_lanes_take_their_share_of_the_paths() {
    let graph = SwitchGraph::new(&testing::torus(&[4, 5], 2, 0));
    let routes = DfSssp.route(&graph, &RoutingInput { data_vls: 8, ..RoutingInput::default() }).unwrap();
    let mut paths = [0_usize; 8];
    let hosts: Vec<_> = graph.destinations().iter().filter(|d| d.host).collect();
    for (from, to) in hosts.iter().flat_map(|from| hosts.iter().map(move |to| (from, to))) {
        let sl = usize::from(routes.path_sl(from.switch, to.lid));
        paths[usize::from(routes.sl_to_vl.vl(0, 0, (0, 0), sl))] += 1;
    }
    let (most, all) = (paths.iter().max().unwrap(), paths.iter().sum::<usize>());
    assert!(routes.vls == 8 && most * 8 < all * 2, "{paths:?}");
}

#[test]
fn the_busiest_link_is_about_that_of_minhop_or_better() {
    for (name, fabric) in random_fabrics() {
        let graph = SwitchGraph::new(&fabric);
        let most = |engine: &dyn RoutingEngine| {
            let routes = engine.route(&graph, &RoutingInput::default()).unwrap();
            verify::check(&graph, &routes, Options::default()).balance.max
        };
        let (ours, minhop) = (most(&Sssp), most(&MinHop));
        assert!(f64::from(ours) <= f64::from(minhop) * 1.25 + 1.0, "{name}: {ours} against {minhop}");
    }
}

#[test]
fn too_few_lanes_are_refused_with_the_number() {
    let graph = SwitchGraph::new(&testing::torus(&[5, 5], 1, 0));
    let error = DfSssp.route(&graph, &RoutingInput { data_vls: 1, ..RoutingInput::default() }).unwrap_err();
    let RoutingError::NotEnoughVls { needed, available: 1, .. } = error else { panic!("{error}") };
    check_all(&DfSssp, &graph, &RoutingInput { data_vls: needed, ..RoutingInput::default() });
}

#[test]
fn lids_of_one_port_part_where_they_can() {
    let graph = SwitchGraph::new(&testing::fat_tree(&[2, 3], &[1, 4], 2));
    let routes = Sssp.route(&graph, &RoutingInput::default()).unwrap();
    for d in graph.destinations().iter().filter(|d| d.host) {
        for s in (0..3).filter(|s| *s != d.switch) {
            let mut ports: Vec<u8> = d.lids().map(|lid| routes.lfts.row(s)[usize::from(lid)]).collect();
            ports.sort_unstable();
            ports.dedup();
            assert_eq!(ports.len(), 4);
        }
    }
}
