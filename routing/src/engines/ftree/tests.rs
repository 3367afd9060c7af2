use super::*;
use crate::engines::MinHop;
use crate::engines::testing::{check_all, random_fabrics};
use crate::fabric::{Fabric, PortRef, testing};
use crate::verify::transition;
use mad::types::PortNum;

/// Flows over the busiest link when every host sends to the one `shift` places on.
fn busiest(graph: &SwitchGraph, routes: &Routes, shift: usize) -> usize {
    let mut hosts: Vec<_> = graph.destinations().iter().filter(|d| d.host).collect();
    hosts.sort_by_key(|d| (d.switch, d.port));
    let mut load = std::collections::HashMap::new();
    for (i, from) in hosts.iter().enumerate() {
        let to = hosts[(i + shift) % hosts.len()];
        let mut at = from.switch;
        while at != to.switch {
            let port = routes.lfts.port(at, to.lid);
            *load.entry((at, port)).or_insert(0) += 1;
            at = graph.arcs(at).iter().find(|a| a.out_port == port).unwrap().to;
        }
    }
    load.values().copied().max().unwrap_or(0)
}

#[test]
fn every_shift_permutation_of_a_whole_tree_is_free_of_contention() {
    for (m, w) in [(vec![4, 4], vec![1, 4]), (vec![3, 3, 3], vec![1, 3, 3]), (vec![4, 4, 4], vec![1, 4, 4])] {
        let graph = SwitchGraph::new(&testing::fat_tree(&m, &w, 0));
        let routes = FatTree.route(&graph, &RoutingInput::default()).unwrap();
        let hosts = graph.destinations().iter().filter(|d| d.host).count();
        for shift in 1..hosts {
            assert_eq!(busiest(&graph, &routes, shift), 1, "{m:?}, shift {shift}");
        }
    }
}

#[test]
fn what_is_no_tree_is_refused_with_the_reason() {
    let graph = SwitchGraph::new(&testing::torus(&[4, 4], 1, 0));
    let error = FatTree.route(&graph, &RoutingInput::default()).unwrap_err().to_string();
    assert_eq!(
        error,
        "ftree: no level of switches lies above those with hosts: switches \"S1\" (0x0002c90200000001) and \"S2\" \
         (0x0002c90200000002) both have hosts and are linked"
    );
    let mut fabric = testing::fat_tree(&[2, 3], &[1, 2], 0);
    connect(&mut fabric, "S1", "S2");
    let graph = SwitchGraph::new(&fabric);
    let error = FatTree.route(&graph, &RoutingInput::default()).unwrap_err().to_string();
    let expected = "ftree: switches \"S1\" (0x0002c90200000001) and \"S2\" (0x0002c90200000002) are linked and both 1 \
                    below the roots; a tree has links between levels only";
    assert_eq!(error, expected);
}

fn connect(fabric: &mut Fabric, a: &str, b: &str) {
    let end = |fabric: &Fabric, name: &str| {
        let (node, found) = fabric.nodes().find(|(_, n)| n.description == name).unwrap();
        let free = found.numbered_ports().map(|(n, _)| n).filter(|n| n.0 > 0);
        free.map(|port| PortRef { node, port }).find(|e| fabric.peer(*e).is_none()).unwrap()
    };
    let (a, b) = (end(fabric, a), end(fabric, b));
    fabric.connect(a, b).unwrap();
    for end in [a, b] {
        fabric.node_mut(end.node).port_mut(end.port).unwrap().state = mad::types::PortState::Active;
    }
}

#[test]
fn damaged_trees_keep_every_pair_and_change_little() {
    let whole = testing::fat_tree(&[4, 4, 4], &[1, 4, 4], 0);
    let graph = SwitchGraph::new(&whole);
    let routes = FatTree.route(&graph, &RoutingInput::default()).unwrap();
    let cables = testing::between_switches(&whole);
    for link in cables.iter().step_by(7) {
        let graph = SwitchGraph::new(&testing::without(&whole, [link]));
        check_all(&FatTree, &graph, &RoutingInput::default());
        let again = FatTree.route(&graph, &RoutingInput::default()).unwrap();
        let change = transition::check(&graph, &routes.lfts, &again.lfts);
        // A quarter of the LIDs on the switch that lost its link, and on the others those that came down over it.
        assert!(change.entries < 2 * 64 + 16 * 4, "{change:?}");
    }
    for (name, fabric) in random_fabrics().into_iter().filter(|(name, _)| name.starts_with("tree")) {
        let graph = SwitchGraph::new(&fabric);
        let report = check_all(&FatTree, &graph, &RoutingInput::default());
        assert!(report.is_right(), "{name}");
    }
}

/// B22: hosts with two ports, both on one leaf or on two: every port is a target of its own, and the links stay even.
#[test]
fn b22_ports_are_counted_not_hosts() {
    let mut builder = testing::Builder::new(8);
    let leaves = [builder.switch(), builder.switch()];
    let spines = [builder.switch(), builder.switch()];
    for leaf in leaves {
        spines.iter().for_each(|spine| builder.link(leaf, *spine));
    }
    let both = builder.two_port_host(leaves[0], leaves[0]);
    let split = builder.two_port_host(leaves[0], leaves[1]);
    builder.host(leaves[1]);
    let mut fabric = builder.finish(0);
    for (lid, host) in [(100, both), (101, split)] {
        let port = fabric.node_mut(host).port_mut(PortNum(2)).unwrap();
        port.lid = mad::types::Lid::new(lid);
    }
    let graph = SwitchGraph::new(&fabric);
    assert_eq!(graph.destinations().iter().filter(|d| d.host).count(), 5);
    let report = check_all(&FatTree, &graph, &RoutingInput::default());
    assert!(report.balance.max - report.balance.min <= 3, "{report}");
    assert_eq!(report.hosts.walks, 5 * 4);
}

#[test]
fn the_tables_are_those_of_minhop_on_a_whole_tree() {
    let graph = SwitchGraph::new(&testing::fat_tree(&[3, 3, 3], &[1, 3, 3], 1));
    let ours = FatTree.route(&graph, &RoutingInput::default()).unwrap();
    let minhop = MinHop.route(&graph, &RoutingInput::default()).unwrap();
    for s in 0..graph.switch_count() as u32 {
        for d in graph.destinations().iter().filter(|d| d.host) {
            assert_eq!(ours.lfts.port(s, d.lid), minhop.lfts.port(s, d.lid));
        }
    }
}
