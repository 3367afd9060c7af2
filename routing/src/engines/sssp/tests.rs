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
        assert!(report.vls <= 6, "{name}: {report}");
        let whole_tree = name.starts_with("tree") && !name.contains("less");
        assert!(!whole_tree || report.vls == 1, "{name}: {report}");
    }
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
