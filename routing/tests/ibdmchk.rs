//! ibdmchk (Debian package ibutils) and our verifier judge the same tables, written in opensm's formats. Where ibdmchk is not
//! installed the tests say so and check our own verdict only.
#![allow(clippy::print_stdout, reason = "tests say what they leave out")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::process::Command;

use mad::types::{Guid, Lid, LinkSpeed, LinkWidth, NodeType, PortNum, PortPhysState, PortState};
use routing::engines::{self, RoutingInput};
use routing::fabric::{Fabric, Node, NodeId, PortRef, SwitchGraph};
use routing::formats::{fdbs, lst};
use routing::routes::Routes;
use routing::verify::{self, Options, Report};

/// What ibdmchk said.
#[derive(Debug, PartialEq, Eq)]
struct Verdict {
    all_paths: bool,
    credit_loop: bool,
}

/// Runs ibdmchk; it ends with a crash after its verdict, so its lines count, not its status.
fn ibdmchk(fabric: &Fabric, graph: &SwitchGraph, routes: &Routes) -> Option<Verdict> {
    let folder = tempfile::tempdir().unwrap();
    let [topology, tables, multicast] =
        ["opensm-subnet.lst", "opensm.fdbs", "opensm.mcfdbs"].map(|name| folder.path().join(name));
    std::fs::write(&topology, lst::write(fabric, None)).unwrap();
    std::fs::write(&tables, fdbs::write(graph, routes)).unwrap();
    std::fs::write(&multicast, "").unwrap();
    let run = Command::new("stdbuf")
        .args(["-oL", "ibdmchk", "-s"])
        .arg(&topology)
        .arg("-f")
        .arg(&tables)
        .arg("-m")
        .arg(&multicast)
        .current_dir(folder.path())
        .output();
    let output = match run {
        Ok(output) if output.status.code() != Some(127) => output,
        _ => {
            println!("ibdmchk is not installed: only our own verdict is checked");
            return None;
        }
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let all_paths = text.contains("CA to CA paths") && !text.contains("missing paths");
    let judged = text.contains("no credit loops found") || text.contains("credit loops in routing");
    assert!(judged || !all_paths, "no verdict: {text}");
    Some(Verdict { all_paths, credit_loop: text.contains("credit loops in routing") })
}

fn agree(name: &str, fabric: &Fabric, graph: &SwitchGraph, routes: &Routes) -> Report {
    let report = verify::check(graph, routes, Options::default());
    if let Some(theirs) = ibdmchk(fabric, graph, routes) {
        assert_eq!(theirs.all_paths, report.reaches_all(), "{name}: {report}");
        // It stops before the search for credit loops when paths are missing.
        assert!(!theirs.all_paths || theirs.credit_loop == report.credit_loop.is_some(), "{name}: {report}");
    }
    report
}

struct Builder {
    fabric: Fabric,
    lid: u16,
}

impl Builder {
    fn node(&mut self, kind: NodeType, ports: u8) -> NodeId {
        let base = if kind == NodeType::Switch { 0x0002_c902_0000_0000 } else { 0x0002_c901_0000_0000 };
        self.lid += 1;
        let guid = Guid(base + u64::from(self.lid) * 16);
        let mut node = Node::new(kind, guid, format!("N{}", self.lid), ports);
        let own = PortNum(u8::from(kind == NodeType::Ca));
        node.port_mut(own).unwrap().lid = Lid::new(self.lid);
        self.fabric.add_node(node).unwrap()
    }

    fn link(&mut self, a: NodeId, b: NodeId) {
        let [a, b] = [a, b].map(|node| {
            let numbers = self.fabric.node(node).numbered_ports().map(|(n, _)| n).filter(|n| n.0 > 0);
            numbers.map(|port| PortRef { node, port }).find(|end| self.fabric.peer(*end).is_none()).unwrap()
        });
        self.fabric.connect(a, b).unwrap();
        for end in [a, b] {
            let port = self.fabric.node_mut(end.node).port_mut(end.port).unwrap();
            (port.state, port.phys_state) = (PortState::Active, PortPhysState::LinkUp);
            (port.width, port.speed) = (Some(LinkWidth::X4), Some(LinkSpeed::Edr));
        }
    }

    fn host(&mut self, switch: NodeId) {
        let host = self.node(NodeType::Ca, 1);
        self.link(host, switch);
    }
}

/// 18 leaves with 6 hosts each under 6 spines.
fn fat_tree() -> Fabric {
    let mut builder = Builder { fabric: Fabric::new(), lid: 0 };
    let spines: Vec<NodeId> = (0..6).map(|_| builder.node(NodeType::Switch, 18)).collect();
    for _ in 0..18 {
        let leaf = builder.node(NodeType::Switch, 12);
        (0..6).for_each(|_| builder.host(leaf));
        spines.iter().for_each(|spine| builder.link(leaf, *spine));
    }
    builder.fabric
}

/// 5 × 4 with two hosts on each switch.
fn torus() -> Fabric {
    let mut builder = Builder { fabric: Fabric::new(), lid: 0 };
    let switches: Vec<NodeId> = (0..20).map(|_| builder.node(NodeType::Switch, 6)).collect();
    for y in 0..4 {
        for x in 0..5 {
            builder.link(switches[y * 5 + x], switches[y * 5 + (x + 1) % 5]);
            builder.link(switches[y * 5 + x], switches[(y + 1) % 4 * 5 + x]);
        }
    }
    switches.iter().for_each(|s| (0..2).for_each(|_| builder.host(*s)));
    builder.fabric
}

#[test]
fn both_find_a_fat_tree_right_under_every_engine_with_one_lane() {
    let fabric = fat_tree();
    let graph = SwitchGraph::new(&fabric);
    let input = RoutingInput { data_vls: 1, ..RoutingInput::default() };
    for name in ["minhop", "updn", "ftree", "sssp", "dfsssp", "lash", "nue"] {
        let routes = engines::by_name(name).unwrap().route(&graph, &input).unwrap();
        let report = agree(name, &fabric, &graph, &routes);
        assert!(report.is_right(), "{name}: {report}");
    }
}

#[test]
fn both_find_the_credit_loop_of_shortest_paths_on_a_torus_and_none_of_legal_ones() {
    let fabric = torus();
    let graph = SwitchGraph::new(&fabric);
    let input = RoutingInput { data_vls: 1, ..RoutingInput::default() };
    for (name, looped) in [("minhop", true), ("sssp", true), ("updn", false), ("nue", false)] {
        let routes = engines::by_name(name).unwrap().route(&graph, &input).unwrap();
        let report = agree(name, &fabric, &graph, &routes);
        assert_eq!(report.credit_loop.is_some(), looped, "{name}: {report}");
    }
}

#[test]
fn both_find_a_missing_entry() {
    let fabric = fat_tree();
    let graph = SwitchGraph::new(&fabric);
    let input = RoutingInput::default();
    let mut routes = engines::by_name("minhop").unwrap().route(&graph, &input).unwrap();
    let host = graph.destinations().iter().find(|d| d.host).unwrap();
    let leaf =
        (0..graph.switch_count() as u32).find(|s| *s != host.switch && graph.num_ports(*s) == 12).unwrap();
    routes.lfts.row_mut(leaf)[host.lid.index()] = 255;
    let report = agree("hole", &fabric, &graph, &routes);
    assert!(!report.reaches_all());
}
