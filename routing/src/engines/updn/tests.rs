use super::*;
use crate::engines::ranks::find_roots;
use crate::engines::testing::{check_all, random_fabrics};
use crate::fabric::testing;
use crate::verify::Options;
use mad::types::Guid;

/// B23: `tree(6,3,4)`: six leaves, three spines, with every cable there and with each one missing in turn.
#[test]
fn b23_roots_found_are_the_spines_whatever_cable_is_missing() {
    let whole = testing::fat_tree(&[4, 6], &[1, 3], 0);
    let cables: Vec<_> = whole
        .links()
        .filter(|l| whole.node(l.a.node).is_switch() && whole.node(l.b.node).is_switch())
        .copied()
        .collect();
    assert_eq!(cables.len(), 18);
    for missing in std::iter::once(None).chain(cables.into_iter().map(Some)) {
        let mut fabric = whole.clone();
        if let Some(link) = missing {
            fabric.disconnect(link.a);
        }
        let graph = SwitchGraph::new(&fabric);
        assert_eq!(find_roots(&graph, &RoutingInput::default()), [6, 7, 8]);
        let report = check_all(&UpDown, &graph, &RoutingInput::default());
        assert_eq!(report.hops.longest, 2 + u16::from(missing.is_some()), "{report}");
    }
}

#[test]
fn legal_paths_leave_no_credit_loop_on_any_fabric() {
    for (name, fabric) in random_fabrics() {
        let graph = SwitchGraph::new(&fabric);
        let report = check_all(&UpDown, &graph, &RoutingInput::default());
        assert!(report.is_right(), "{name}: {report}");
        match DownUp.route(&graph, &RoutingInput::default()) {
            Ok(routes) => {
                let report = crate::verify::check(&graph, &routes, Options::default());
                assert!(report.is_right(), "{name}: {report}");
            }
            Err(error) => {
                assert!(error.to_string().contains("no legal path leads between switches"), "{error}")
            }
        }
    }
}

#[test]
fn given_roots_rule_and_unknown_ones_are_refused() {
    let fabric = testing::torus(&[4, 4], 1, 0);
    let graph = SwitchGraph::new(&fabric);
    let mut input = RoutingInput { root_guids: vec![graph.guid(9)], ..RoutingInput::default() };
    check_all(&UpDown, &graph, &input);
    // Everything that leaves the root's row or column passes the root: it carries more than any other.
    input.root_guids = vec![Guid(1)];
    let error = UpDown.route(&graph, &input).unwrap_err();
    assert_eq!(error.to_string(), "updn: none of the 1 root GUIDs is a switch of this fabric");
}

/// Leaves with a spur: a chain of switches without hosts behind a spine does not become the root.
#[test]
fn spurs_are_no_roots() {
    let whole = testing::fat_tree(&[2, 3], &[1, 2], 0);
    let mut fabric = whole.clone();
    let spine = fabric.switches().map(|(id, _)| id).nth(3).unwrap();
    let mut at = spine;
    for i in 0..2 {
        let node = crate::fabric::Node::new(mad::types::NodeType::Switch, Guid(0xffff_0000 + i), "spur", 4);
        let id = fabric.add_node(node).unwrap();
        let port = |fabric: &crate::fabric::Fabric, node| {
            let free = fabric.node(node).numbered_ports().map(|(n, _)| n).filter(|n| n.0 > 0);
            free.map(|port| crate::fabric::PortRef { node, port })
                .find(|e| fabric.peer(*e).is_none())
                .unwrap()
        };
        let (a, b) = (port(&fabric, at), port(&fabric, id));
        fabric.connect(a, b).unwrap();
        for end in [a, b] {
            fabric.node_mut(end.node).port_mut(end.port).unwrap().state = mad::types::PortState::Active;
        }
        at = id;
    }
    let graph = SwitchGraph::new(&fabric);
    let names: Vec<&str> =
        find_roots(&graph, &RoutingInput::default()).into_iter().map(|s| graph.name(s)).collect();
    assert_eq!(names, ["S4", "S5"]);
    assert!(check_all(&UpDown, &graph, &RoutingInput::default()).is_right());
}
