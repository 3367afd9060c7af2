use super::*;
use crate::engines::ranks::find_roots;
use crate::engines::testing::{check_all, random_fabrics};
use crate::fabric::{Fabric, Node, NodeId, PortRef, testing};
use crate::verify::Options;
use mad::types::{Guid, NodeType, PortNum, PortState};

/// B23: `tree(6,3,4)`: six leaves, three spines, with every cable there and with each one missing in turn.
#[test]
fn b23_roots_found_are_the_spines_whatever_cable_is_missing() {
    let whole = testing::fat_tree(&[4, 6], &[1, 3], 0);
    let cables = testing::between_switches(&whole);
    assert_eq!(cables.len(), 18);
    for missing in std::iter::once(None).chain(cables.into_iter().map(Some)) {
        let graph = SwitchGraph::new(&testing::without(&whole, &missing));
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

/// Adds a switch without hosts, linked to others.
fn attach(fabric: &mut Fabric, guid: u64, to: &[NodeId]) -> NodeId {
    let id = fabric.add_node(Node::new(NodeType::Switch, Guid(guid), "without hosts", 8)).unwrap();
    for other in to {
        let [a, b] = [*other, id].map(|node| {
            let free = fabric.node(node).numbered_ports().map(|(n, _)| n).filter(|n| n.0 > 0);
            free.map(|port| PortRef { node, port }).find(|end| fabric.peer(*end).is_none()).unwrap()
        });
        fabric.connect(a, b).unwrap();
        for end in [a, b] {
            fabric.node_mut(end.node).port_mut(end.port).unwrap().state = PortState::Active;
        }
    }
    id
}

fn root_names(graph: &SwitchGraph) -> Vec<&str> {
    find_roots(graph, &RoutingInput::default()).into_iter().map(|s| graph.name(s)).collect()
}

/// Leaves with a spur: a chain of switches without hosts behind a spine does not become the root.
#[test]
fn spurs_are_no_roots() {
    let mut fabric = testing::fat_tree(&[2, 3], &[1, 2], 0);
    let spine = fabric.switches().map(|(id, _)| id).nth(3).unwrap();
    let near = attach(&mut fabric, 0xffff_0000, &[spine]);
    attach(&mut fabric, 0xffff_0001, &[near]);
    let graph = SwitchGraph::new(&fabric);
    assert_eq!(root_names(&graph), ["S4", "S5"]);
    assert!(check_all(&UpDown, &graph, &RoutingInput::default()).is_right());
}

/// A leaf that has lost its hosts, or has not got them yet, hangs on several spines and stands above none: no path gets longer
/// by it. A second one hangs on the first.
#[test]
fn leaves_without_hosts_do_not_stand_above_the_spines() {
    for (whole, spines, links) in [
        (testing::fat_tree(&[4, 6], &[1, 3], 0), 6..9, 2),
        (testing::fat_tree(&[2, 3, 4], &[1, 2, 3], 0), 20..26, 4),
        (testing::fat_tree(&[2, 3, 4], &[1, 2, 3], 0), 20..26, 6),
    ] {
        let before = SwitchGraph::new(&whole);
        let names: Vec<String> = root_names(&before).into_iter().map(str::to_owned).collect();
        let roots: Vec<NodeId> = find_roots(&before, &RoutingInput::default())
            .into_iter()
            .inspect(|s| assert!(spines.contains(&(*s as usize))))
            .map(|s| before.node(s))
            .collect();
        let mut fabric = whole;
        let bare = attach(&mut fabric, 0xffff_0000, &roots[..links]);
        attach(&mut fabric, 0xffff_0001, &[bare, bare]);
        for node in fabric.node_ids().collect::<Vec<_>>() {
            if let Some(port) = fabric.node_mut(node).port_mut(PortNum(0)).filter(|port| port.lid.is_none()) {
                port.lid = mad::types::Lid::new(0x100 + node.index() as u16);
            }
        }
        let graph = SwitchGraph::new(&fabric);
        assert_eq!(root_names(&graph), names);
        for engine in ["updn", "ftree"] {
            let engine = crate::engines::by_name(engine).unwrap();
            let report = check_all(engine, &graph, &RoutingInput::default());
            assert_eq!(report.hops.detours, 0, "{}: {report}", engine.name());
        }
    }
}

/// Two planes; one leaf hangs on the first only, and one on the second: no root is above both. With a leaf without hosts below
/// the roots of both planes and without it, all paths stay the shortest.
#[test]
fn two_hosts_without_a_common_root_make_no_path_longer() {
    for bridged in [true, false] {
        let mut builder = testing::Builder::new(12);
        let roots: Vec<NodeId> = (0..4).map(|_| builder.switch()).collect();
        let mut pods = Vec::new();
        for _ in 0..2 {
            let middle = [&roots[..2], &roots[2..]].map(|plane| {
                let middle = builder.switch();
                plane.iter().for_each(|root| builder.link(middle, *root));
                middle
            });
            for _ in 0..3 {
                let leaf = builder.switch();
                middle.iter().for_each(|middle| builder.link(leaf, *middle));
                for _ in 0..2 {
                    builder.host(leaf);
                }
            }
            pods.push(middle);
        }
        for middle in pods[1] {
            let leaf = builder.switch();
            builder.link(leaf, middle);
            builder.host(leaf);
        }
        if bridged {
            let bare = builder.switch();
            roots.iter().for_each(|root| builder.link(bare, *root));
        }
        let graph = SwitchGraph::new(&builder.finish(0));
        for engine in ["updn", "ftree"] {
            let engine = crate::engines::by_name(engine).unwrap();
            let report = check_all(engine, &graph, &RoutingInput::default());
            assert!(report.reaches_all(), "{report}");
            let routes = engine.route(&graph, &RoutingInput::default()).unwrap();
            let mut longer = 0;
            for to in graph.destinations().iter().filter(|d| d.host) {
                let mut distance = vec![u16::MAX; graph.switch_count()];
                distance[to.switch as usize] = 0;
                crate::engines::widen(&graph, &mut vec![to.switch], &mut distance);
                let leaves: std::collections::BTreeSet<u32> =
                    graph.destinations().iter().filter(|d| d.host).map(|d| d.switch).collect();
                for from in leaves {
                    let (mut at, mut hops) = (from, 0);
                    while at != to.switch {
                        let port = routes.lfts.port(at, to.lid);
                        at = graph.arcs(at).iter().find(|arc| arc.out_port == port).unwrap().to;
                        hops += 1;
                    }
                    longer += usize::from(hops > distance[from as usize]);
                }
            }
            assert_eq!(longer, 0, "{}", engine.name());
        }
    }
}
