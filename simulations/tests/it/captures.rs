//! Files of real fabrics: each loads, is written out again, loads to the same fabric, and comes up in virtual time under
//! one subnet manager in each connected part.
//!
//! The folder of captures is `RSM_CAPTURES`, or `shared/captures` of a folder above; where there is none the test says so,
//! and takes files of our own. A plain run leaves out fabrics of more than [`MOST_NODES`] nodes, which take minutes without
//! optimisation; `RSM_CAPTURES_ALL=1` plays them too.
#![allow(clippy::print_stdout, reason = "tests say what they leave out")]

#[path = "../../../testdata/captures.rs"]
mod files;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mad::types::PortNum;
use routing::fabric::{Fabric, Port, PortRef};
use routing::formats::{self, ibnetdiscover, json};
use simulated_manager::Manager;
use simulations::world::{Agent, AgentId, Config, End, World};
use sm_core::settings::SmSettings;

/// The largest fabric of a plain run.
const MOST_NODES: usize = 800;

/// What a file tells of a fabric, whatever the order: nodes by GUID, cables by their ends.
#[derive(Debug, PartialEq)]
struct Content {
    nodes: BTreeMap<u64, String>,
    cables: BTreeSet<[(u64, u8); 2]>,
}

/// `unlinked`: whether nodes without a way to the first port count, which ibnetdiscover does not print.
fn content(fabric: &Fabric) -> Content {
    let printable = |text: &str| {
        text.bytes().map(|b| if (0x20..0x7f).contains(&b) { char::from(b) } else { ' ' }).collect::<String>()
    };
    let port = |(number, p): (PortNum, &Port)| {
        format!("{number}: {:?} {} {:?} {:?}", p.lid, p.lmc, p.width, p.speed)
    };
    let nodes = fabric
        .nodes()
        .map(|(_, node)| {
            let ports: Vec<String> =
                node.end_ports().filter(|(n, p)| n.0 == 0 || p.width.is_some()).map(port).collect();
            let text =
                format!("{:?} {} {} {ports:?}", node.kind, node.num_ports, printable(&node.description));
            (node.guid.0, text)
        })
        .collect();
    let end = |end: PortRef| (fabric.node(end.node).guid.0, end.port.0);
    let cables = fabric.links().map(|link| {
        let mut ends = [end(link.a), end(link.b)];
        ends.sort_unstable();
        ends
    });
    Content { nodes, cables: cables.collect() }
}

/// Writes it as JSON and as text, and reads both back.
fn survives(name: &str, fabric: &Fabric, from: Option<PortRef>) {
    let read = |text: &str| {
        formats::parse(name, text).unwrap_or_else(|error| panic!("written again: {error}")).fabric
    };
    assert_eq!(content(&read(&json::write(fabric, from))), content(fabric), "{name} as JSON");
    // The text holds what is reached from one port: it is compared from there.
    let Some(from) = from.or_else(|| first_linked(fabric)) else { return };
    let from = if fabric.node(from.node).is_switch() { PortRef { port: PortNum(0), ..from } } else { from };
    let options = ibnetdiscover::WriteOptions { from, generated: "again", full: false };
    let once = ibnetdiscover::write(fabric, &options);
    let again = read(&once);
    let back = again.find(fabric.node(from.node).guid).expect("the first node");
    let options = ibnetdiscover::WriteOptions { from: PortRef { node: back, ..from }, ..options };
    assert_eq!(ibnetdiscover::write(&again, &options), once, "{name} as text");
    let (whole, reached) = (content(fabric), content(&again));
    assert!(reached.cables.is_subset(&whole.cables), "{name} as text");
    assert!(reached.nodes.iter().all(|(guid, node)| whole.nodes.get(guid) == Some(node)), "{name} as text");
}

fn first_linked(fabric: &Fabric) -> Option<PortRef> {
    fabric.links().next().map(|link| link.a)
}

/// One manager in each part, on its first adapter, else on its first switch.
fn managers(world: &mut World) -> Vec<AgentId> {
    let mut chosen: BTreeMap<u32, End> = BTreeMap::new();
    let parts = world.parts();
    for adapters in [true, false] {
        for (node, part) in parts.iter().enumerate() {
            let device = world.device(node as u32);
            let up =
                |port: &u8| if device.is_switch() { true } else { device.ports[usize::from(*port)].is_up() };
            let port = device.end_ports().find(up).filter(|_| device.is_switch() != adapters);
            if let Some(port) = port {
                chosen.entry(*part).or_insert_with(|| End::new(node as u32, port));
            }
        }
    }
    chosen
        .into_values()
        .map(|end| world.attach(end, Box::new(Manager::new(SmSettings::default()))).expect("an end port"))
        .collect()
}

#[test]
fn every_capture_survives_its_own_output_and_comes_up() {
    let all = std::env::var_os("RSM_CAPTURES_ALL").is_some();
    let files = files::files();
    assert!(files.len() >= 2);
    for path in files {
        let name = path.display().to_string();
        let loaded = formats::load(&path).unwrap_or_else(|error| panic!("{error}"));
        survives(&name, &loaded.fabric, loaded.from);
        let nodes = loaded.fabric.node_count();
        if nodes > MOST_NODES && !all {
            println!("{name}: not played, {nodes} nodes");
            continue;
        }
        let mut world = World::new(&loaded.fabric, Config::default());
        world.run_until(world.now() + Duration::from_secs(1));
        let managers = managers(&mut world);
        let settled = world.run_while(world.now() + Duration::from_secs(300), |world| {
            managers.iter().all(|id| {
                world
                    .agent::<Manager>(*id)
                    .is_some_and(|m| !m.reports().is_empty() && m.is_settled() && m.is_master())
            })
        });
        assert!(settled, "{name}: not settled");
        let verdict = world.check();
        assert!(verdict.is_right(false), "{name}:\n{verdict}");
    }
}
