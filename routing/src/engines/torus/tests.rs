use super::*;
use crate::engines::testing::check_all;
use crate::fabric::{PortRef, testing};
use mad::types::PortNum;

fn input(data_vls: u8) -> RoutingInput {
    RoutingInput { data_vls, ..RoutingInput::default() }
}

#[test]
fn whole_tori_take_shortest_paths_on_two_lanes() {
    for dims in [vec![5], vec![4, 4], vec![5, 3], vec![3, 4, 5], vec![6, 2]] {
        let graph = SwitchGraph::new(&testing::torus(&dims, 2, 1));
        let report = check_all(&TorusTwoQos, &graph, &input(2));
        assert_eq!((report.hops.detours, report.vls), (0, 2), "{dims:?}: {report}");
        assert!(report.management_credit_loop.is_none(), "{report}");
    }
}

/// The way round a broken ring is longer; every ring of every dimension in turn loses one cable.
#[test]
fn one_cable_less_in_a_ring_is_gone_around() {
    let whole = testing::torus(&[4, 3, 3], 1, 0);
    let nodes: Vec<_> = whole.switches().map(|(id, _)| id).collect();
    for (node, port) in [(0, 1), (3, 1), (7, 3), (20, 5), (35, 5)] {
        let mut fabric = whole.clone();
        fabric.disconnect(PortRef { node: nodes[node], port: PortNum(port) }).unwrap();
        let graph = SwitchGraph::new(&fabric);
        let report = check_all(&TorusTwoQos, &graph, &input(2));
        assert!(report.is_right(), "{report}");
    }
}

#[test]
fn service_levels_mark_the_datelines_that_a_pair_crosses() {
    let whole = testing::torus(&[5, 4], 1, 0);
    let sls = |fabric: &crate::fabric::Fabric| {
        let graph = SwitchGraph::new(fabric);
        let routes = TorusTwoQos.route(&graph, &input(2)).unwrap();
        let hosts: Vec<_> = graph.destinations().iter().filter(|d| d.host).copied().collect();
        hosts
            .iter()
            .flat_map(|a| hosts.iter().map(|b| routes.path_sl(a.switch, b.lid)).collect::<Vec<_>>())
            .collect::<Vec<u8>>()
    };
    let before = sls(&whole);
    assert!(before.iter().all(|sl| *sl < 4) && before.contains(&3));
}

#[test]
fn other_fabrics_and_too_few_lanes_are_refused_with_the_reason() {
    let refuse = |fabric: &crate::fabric::Fabric, vls| {
        TorusTwoQos.route(&SwitchGraph::new(fabric), &input(vls)).unwrap_err().to_string()
    };
    let torus = testing::torus(&[4, 4], 1, 0);
    assert_eq!(refuse(&torus, 1), "torus-2qos: needs 2 virtual lanes, the links have 1");
    let tree = refuse(&testing::fat_tree(&[2, 4], &[1, 4], 0), 8);
    assert!(tree.starts_with("torus-2qos: "), "{tree}");
    let nodes: Vec<_> = torus.switches().map(|(id, _)| id).collect();
    let mut twice = torus.clone();
    for node in [0, 2] {
        twice.disconnect(PortRef { node: nodes[node], port: PortNum(1) }).unwrap();
    }
    let reason = refuse(&twice, 2);
    assert!(reason.contains("broken in more than one place"), "{reason}");
    let mut hole = torus;
    hole.remove_node(nodes[5]);
    let reason = refuse(&hole, 2);
    assert!(reason.contains("15 switches are no torus of 4 x 4 switches"), "{reason}");
}
