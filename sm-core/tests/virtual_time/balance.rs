//! `adaptive-minhop`: what ports between switches have sent is read from them, and routes follow the load a little at a time.

use std::time::Duration;

use mad::wire::smp::LinearForwardingTable;
use mad::wire::{Attribute, MgmtClass};
use routing::fabric::{Destination, SwitchGraph};
use simulations::device::Counter;
use simulations::world::Config;
use sm_core::settings::SmSettings;

use crate::rig::*;

const INTERVAL: Duration = Duration::from_secs(10);

fn settings(engine: &str) -> SmSettings {
    let mut settings = SmSettings { balance_interval: INTERVAL, ..SmSettings::default() };
    settings.plan.engines = vec![engine.to_owned(), "no_fallback".to_owned()];
    settings
}

/// Packets of 1,000 words each over the tables that the switches hold, hop by hop, counted by the ports that they leave by.
/// The most that a link between switches carried.
fn send(rig: &mut Rig, pairs: &[(&str, &str, u64)]) -> u64 {
    let fabric = rig.world.fabric();
    let graph = SwitchGraph::new(&fabric);
    let routes = rig.world.routes(&fabric, &graph);
    let host = |name: &str| -> Destination {
        let node = fabric.nodes().find(|(_, node)| node.description == name).unwrap().0;
        *graph.destinations().iter().find(|d| d.end.node == node).unwrap()
    };
    let mut carried = std::collections::BTreeMap::new();
    for (from, to, packets) in pairs {
        let (from, to) = (host(from), host(to));
        let mut at = from.switch;
        while at != to.switch {
            let port = routes.lfts.port(at, to.lid);
            *carried.entry((at, port)).or_insert(0) += packets * 1000;
            at = graph.arcs(at).iter().find(|arc| arc.out_port == port).unwrap().to;
        }
    }
    for ((s, port), words) in &carried {
        let node = rig.node(graph.name(*s));
        let port = rig.world.device_mut(node).ports.get_mut(usize::from(*port)).unwrap();
        port.counters.add(Counter::PortXmitData, *words);
    }
    carried.into_values().max().unwrap_or(0)
}

const LFT_SETS: u16 = LinearForwardingTable::ID;

/// Heavy flows that the tables send over one spine part, within few intervals; then nothing moves any more, however long the
/// load lasts.
#[test]
fn routes_part_where_the_load_is_and_then_stay() {
    let mut rig = Rig::with(&tree(3, 4, 4), Config::default(), settings("adaptive-minhop"), |_| ());
    assert!(rig.settle().is_complete(), "{:?}", rig.last().failures);
    let graph = SwitchGraph::new(&rig.world.fabric());
    let routes = rig.world.routes(&rig.world.fabric(), &graph);
    // Hosts that leaf L0 reaches over one spine.
    let from = graph.destinations().iter().find(|d| d.host).unwrap().switch;
    let others = graph.destinations().iter().filter(|d| d.host && d.switch != from);
    let names = |port: u8| -> Vec<String> {
        let over = others.clone().filter(|d| routes.lfts.port(from, d.lid) == port);
        over.map(|d| rig.world.fabric().node(d.end.node).description.clone()).collect()
    };
    let victims = graph.arcs(from).iter().map(|arc| names(arc.out_port)).max_by_key(Vec::len).unwrap();
    assert!(victims.len() >= 2, "{victims:?}");
    let pairs: Vec<(&str, &str, u64)> = victims.iter().map(|name| ("H0", name.as_str(), 50)).collect();
    let mut worst = Vec::new();
    let mut sets = Vec::new();
    for _ in 0..12 {
        rig.world.reset_stats();
        worst.push(send(&mut rig, &pairs));
        rig.run(INTERVAL);
        sets.push(rig.sets(LFT_SETS));
    }
    rig.assert_right();
    assert_eq!(worst[0], 50_000 * victims.len() as u64, "{worst:?}");
    assert_eq!(*worst.last().unwrap(), 50_000, "each flow has a way of its own: {worst:?}");
    assert!(sets[8..].iter().all(|sets| *sets == 0), "{sets:?}");
    let moved =
        |report: &sm_core::sm::Report| report.findings.iter().any(|f| f.starts_with("adaptive-minhop moved"));
    assert!(rig.reports().iter().any(moved), "{:?}", rig.last().findings);
}

/// Flows from the operator's file in place of counters, and nothing is asked of anybody.
#[test]
fn flows_of_a_file_count_in_place_of_counters() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("flows");
    std::fs::write(&file, "H0 H4 10\nH0 H5 10\nH0 H6 10\nH0 H7 10\nH1 H4 10\nH1 H8 10\nH1 H9 10\n").unwrap();
    let text = format!(
        "[routing]\nengines = [\"adaptive-minhop\"]\nbalance_interval_s = 10\nload_file = {file:?}\n"
    );
    let config = sm_core::config::Config::parse(&text, std::path::Path::new("rsm.toml")).unwrap();
    let mut rig = Rig::with(&tree(3, 2, 4), Config::default(), SmSettings::load(&config).unwrap(), |_| ());
    assert!(rig.settle().is_complete(), "{:?}", rig.last().failures);
    rig.run(8 * INTERVAL);
    rig.world.reset_stats();
    rig.run(4 * INTERVAL);
    assert_eq!((rig.sets(LFT_SETS), rig.world.stats().sent_of(MgmtClass::PERF)), (0, 0));
    rig.assert_right();
    std::fs::write(&file, "H0 nobody 10\n").unwrap();
    let reloaded = SmSettings::load(&config).unwrap();
    rig.tell(sm_core::sm::Event::Settings(Box::new(reloaded)));
    rig.run(3 * INTERVAL);
    let named = |report: &sm_core::sm::Report| {
        report.findings.iter().any(|f| f.contains("flows:1:4: found `nobody`"))
    };
    assert!(rig.reports().iter().any(named), "{:?}", rig.last().findings);
}

#[test]
fn nothing_is_read_where_another_engine_routes() {
    let mut rig = Rig::with(&tree(3, 2, 2), Config::default(), settings("minhop"), |_| ());
    assert!(rig.settle().is_complete());
    rig.run(5 * INTERVAL);
    assert_eq!(rig.world.stats().sent_of(MgmtClass::PERF), 0);
    let mut rig = Rig::with(&tree(3, 2, 2), Config::default(), settings("adaptive-minhop"), |_| ());
    assert!(rig.settle().is_complete());
    rig.run(2 * INTERVAL);
    assert!(
        rig.world.stats().sent_of(MgmtClass::PERF) >= 2 * 12,
        "each of 12 ports between switches is asked"
    );
}
