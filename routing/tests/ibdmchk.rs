//! ibdmchk (Debian package ibutils) and our verifier judge the same tables, written in opensm's formats. Where ibdmchk is not
//! installed the tests say so and check our own verdict only.
#![allow(clippy::print_stdout, reason = "tests say what they leave out")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::process::Command;

use mad::types::{Guid, Lid, LinkSpeed, LinkWidth, NodeType, PortNum, PortPhysState, PortState};
use routing::engines::{self, RoutingInput};
use routing::fabric::{Destination, Fabric, Node, NodeId, PortRef, SwitchGraph};
use routing::formats::{fdbs, lst, sl2vl};
use routing::routes::{PathSl, Routes, SlToVl};
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
    let [levels, lanes] = ["sl", "sl2vl"].map(|name| folder.path().join(name));
    let with_lanes = routes.sl != PathSl::Default || routes.sl_to_vl != SlToVl::Identity;
    let mut more: Vec<&std::ffi::OsStr> = Vec::new();
    if with_lanes {
        std::fs::write(&levels, path_levels(fabric, graph, routes)).unwrap();
        std::fs::write(&lanes, sl2vl::write(graph, &routes.sl_to_vl)).unwrap();
        more.extend(["-c".as_ref(), levels.as_os_str(), "-d".as_ref(), lanes.as_os_str()]);
    }
    let run = Command::new("stdbuf")
        .args(["-oL", "ibdmchk", "-s"])
        .arg(&topology)
        .arg("-f")
        .arg(&tables)
        .arg("-m")
        .arg(&multicast)
        .args(&more)
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

/// The SL of every pair of hosts, in the form that it takes.
fn path_levels(fabric: &Fabric, graph: &SwitchGraph, routes: &Routes) -> String {
    let hosts: Vec<_> = graph.destinations().iter().filter(|d| d.host).collect();
    let pairs = hosts.iter().flat_map(|from| hosts.iter().map(move |to| (from, to)));
    let line = |(from, to): (&&Destination, &&Destination)| {
        let sl = routes.path_sl(from.switch, to.lid);
        let guid = fabric.node(from.end.node).guid;
        format!("{guid} {} {}\n", to.lid.get(), if sl < 16 { sl } else { 0 })
    };
    pairs.map(line).collect()
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
        self.link_ports(a, b);
    }

    fn link_ports(&mut self, a: PortRef, b: PortRef) {
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
    fat_tree_of(18, 6)
}

/// Leaves with as many hosts as there are spines above them.
fn fat_tree_of(leaves: u8, hosts: u8) -> Fabric {
    let mut builder = Builder { fabric: Fabric::new(), lid: 0 };
    let spines: Vec<NodeId> = (0..hosts).map(|_| builder.node(NodeType::Switch, leaves)).collect();
    for _ in 0..leaves {
        let leaf = builder.node(NodeType::Switch, 2 * hosts);
        (0..hosts).for_each(|_| builder.host(leaf));
        spines.iter().for_each(|spine| builder.link(leaf, *spine));
    }
    builder.fabric
}

/// 5 × 4 with two hosts on each switch; ports 1 and 2 lead along the first dimension, 3 and 4 along the second.
fn torus() -> Fabric {
    let mut builder = Builder { fabric: Fabric::new(), lid: 0 };
    let switches: Vec<NodeId> = (0..20).map(|_| builder.node(NodeType::Switch, 6)).collect();
    for y in 0..4 {
        for x in 0..5 {
            let end =
                |x: usize, y: usize, port| PortRef { node: switches[y % 4 * 5 + x % 5], port: PortNum(port) };
            builder.link_ports(end(x, y, 1), end(x + 1, y, 2));
            builder.link_ports(end(x, y, 3), end(x, y + 1, 4));
        }
    }
    switches.iter().for_each(|s| (0..2).for_each(|_| builder.host(*s)));
    builder.fabric
}

/// 5 groups of 4 switches with 2 hosts each, all linked within a group, one link between every two groups.
fn dragonfly() -> Fabric {
    let mut builder = Builder { fabric: Fabric::new(), lid: 0 };
    let groups: Vec<Vec<NodeId>> =
        (0..5).map(|_| (0..4).map(|_| builder.node(NodeType::Switch, 8)).collect()).collect();
    for group in &groups {
        for (i, switch) in group.iter().enumerate() {
            group[i + 1..].iter().for_each(|other| builder.link(*switch, *other));
            (0..2).for_each(|_| builder.host(*switch));
        }
    }
    join_groups(&mut builder, &groups);
    builder.fabric
}

/// 3 groups of 2 leaves with 4 hosts each under 2 spines, one link between every two groups.
fn dragonfly_plus() -> Fabric {
    let mut builder = Builder { fabric: Fabric::new(), lid: 0 };
    let mut spines: Vec<Vec<NodeId>> = Vec::new();
    for _ in 0..3 {
        let group: Vec<NodeId> = (0..2).map(|_| builder.node(NodeType::Switch, 8)).collect();
        for _ in 0..2 {
            let leaf = builder.node(NodeType::Switch, 8);
            (0..4).for_each(|_| builder.host(leaf));
            group.iter().for_each(|spine| builder.link(leaf, *spine));
        }
        spines.push(group);
    }
    join_groups(&mut builder, &spines);
    builder.fabric
}

/// Links every two groups once; the switches of a group take turns.
fn join_groups(builder: &mut Builder, groups: &[Vec<NodeId>]) {
    let mut used = vec![0; groups.len()];
    for i in 0..groups.len() {
        for j in i + 1..groups.len() {
            let [a, b] = [i, j].map(|group| {
                used[group] += 1;
                groups[group][(used[group] - 1) % groups[group].len()]
            });
            builder.link(a, b);
        }
    }
}

/// Every engine on a fabric that it is for: with service levels and SL-to-VL tables where it has them, and with all on one
/// lane, which most of these need more of.
#[test]
fn both_agree_on_every_engine_with_its_lanes_and_without() {
    let fabrics = [
        ("tree", fat_tree()),
        ("torus", torus()),
        ("dragonfly", dragonfly()),
        ("dragonfly+", dragonfly_plus()),
    ];
    let mut judged = std::collections::BTreeMap::new();
    for (shape, fabric) in &fabrics {
        let graph = SwitchGraph::new(fabric);
        let mut input = RoutingInput { data_vls: 8, ..RoutingInput::default() };
        input.tables = engines::by_name("minhop").unwrap().route(&graph, &input).ok();
        for engine in engines::names() {
            let Ok(routes) = engines::by_name(engine).unwrap().route(&graph, &input) else { continue };
            let report = agree(&format!("{engine} on a {shape}"), fabric, &graph, &routes);
            assert!(report.reaches_all(), "{engine} on a {shape}: {report}");
            // Those that keep to an order or to lanes given beforehand may go longer ways.
            if !["updn", "dnup", "nue"].contains(&engine) {
                assert_eq!(report.hops.detours, 0, "{engine} on a {shape}: {report}");
            }
            let merged = Routes { sl: PathSl::Default, sl_to_vl: SlToVl::Identity, ..routes.clone() };
            let with_lanes = routes.vls > 1;
            if with_lanes {
                agree(&format!("{engine} on a {shape}, one lane"), fabric, &graph, &merged);
            }
            *judged.entry(engine).or_insert(0) += 1;
        }
    }
    let all: Vec<&str> = engines::names().filter(|engine| !judged.contains_key(engine)).collect();
    assert!(all.is_empty() || all == ["adaptive-minhop"], "engines that no fabric was for: {all:?}");
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

/// The same with 648 hosts, the most of a tree of two levels of 36-port switches.
#[test]
fn both_find_648_hosts_right_under_every_engine_with_one_lane() {
    let fabric = fat_tree_of(36, 18);
    let graph = SwitchGraph::new(&fabric);
    let input = RoutingInput { data_vls: 1, ..RoutingInput::default() };
    for name in ["minhop", "updn", "dnup", "ftree", "dor", "sssp", "dfsssp", "lash", "nue"] {
        let routes = engines::by_name(name).unwrap().route(&graph, &input).unwrap();
        let report = agree(name, &fabric, &graph, &routes);
        assert!(report.is_right() && report.hops.detours == 0, "{name}: {report}");
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
