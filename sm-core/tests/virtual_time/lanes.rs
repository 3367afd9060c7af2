//! SL-to-VL tables of engines that keep paths apart by virtual lanes: what the simulated switches hold, together with the
//! service levels that clients are told, is free of credit loops.

use std::time::Duration;

use mad::types::PortNum;
use mad::wire::smp::{SlToVlMappingTable, VlArbitrationTable};
use mad::wire::{Attribute, Method};
use routing::fabric::SwitchGraph;
use routing::routes::{PathSl, SlToVl};
use routing::verify::{self, Options};
use simulations::device::{Misbehaviour, Quirk};
use simulations::world::{Config, End};
use sm_core::settings::SmSettings;
use sm_core::sm::Event;
use sm_core::store::Restored;

use crate::rig::*;

const SL_TO_VL: u16 = SlToVlMappingTable::ID;
const VL_ARBITRATION: u16 = VlArbitrationTable::ID;

/// A ring of switches with a host each.
fn ring(size: usize) -> routing::fabric::Fabric {
    let mut plan = Plan::default();
    let hosts: Vec<_> = (0..size).map(|i| plan.host(&format!("H{i}"), 1)).collect();
    let switches: Vec<_> = (0..size).map(|i| plan.switch(&format!("R{i}"), 4)).collect();
    for i in 0..size {
        plan.cable(hosts[i], 1, switches[i], 1);
        plan.cable(switches[i], 2, switches[(i + 1) % size], 3);
    }
    plan.fabric
}

fn settings(engine: &str) -> SmSettings {
    let mut settings = SmSettings::default();
    settings.plan.engines = vec![engine.to_owned(), "no_fallback".to_owned()];
    settings
}

/// The verifier's word on the tables in the devices with the service levels of the published snapshot (B25).
fn judge(rig: &Rig) -> verify::Report {
    let fabric = rig.world.fabric();
    let graph = SwitchGraph::new(&fabric);
    let mut routes = rig.world.routes(&fabric, &graph);
    assert!(matches!(routes.sl_to_vl, SlToVl::PerSwitch(_)), "tables were written");
    let snapshot = rig.inline().sm.snapshot().unwrap();
    routes.sl.clone_from(&snapshot.routes.sl);
    let found = verify::check(&graph, &routes, Options { data_vls: 8, ..Options::default() });
    // On one service level the ring closes a credit loop: it is the lanes that keep it open.
    if !matches!(snapshot.routes.sl, PathSl::Default) {
        routes.sl = PathSl::Default;
        let alone = verify::check(&graph, &routes, Options::default());
        assert!(alone.credit_loop.is_some(), "{alone}");
    }
    found
}

#[test]
fn b25_what_switches_hold_and_clients_are_told_is_free_of_credit_loops() {
    for engine in ["dfsssp", "lash", "torus-2qos"] {
        let mut rig = Rig::with(&ring(6), Config::default(), settings(engine), |_| ());
        let report = rig.settle();
        assert!(report.is_complete(), "{engine}: {:?}", report.failures);
        rig.assert_right();
        assert!(rig.sets(SL_TO_VL) > 0, "{engine}");
        let found = judge(&rig);
        assert!(found.is_right(), "{engine}: {found}");
        rig.assert_quiet();
        // A manager that comes new to the fabric reads the tables and finds them right.
        rig.world.detach(rig.sm);
        rig.world.reset_stats();
        rig.sm = attach(&mut rig.world, "H0", settings(engine), Restored::default());
        assert!(rig.settle().is_complete());
        assert_eq!((rig.sets(SL_TO_VL), rig.sets(VL_ARBITRATION)), (0, 0), "{engine}");
        assert!(rig.gets(SL_TO_VL) > 0 && rig.gets(VL_ARBITRATION) > 0, "{engine}");
    }
}

#[test]
fn engines_of_one_lane_touch_no_sl_to_vl_table() {
    let mut rig = Rig::with(&ring(6), Config::default(), settings("updn"), |_| ());
    assert!(rig.settle().is_complete());
    assert_eq!((rig.sets(SL_TO_VL), rig.gets(SL_TO_VL)), (0, 0));
    assert_eq!((rig.sets(VL_ARBITRATION), rig.gets(VL_ARBITRATION)), (0, 0));
}

/// Entries of a port's block (1 and 2: low priority, 3 and 4: high) with some weight, as (VL, weight).
fn arbitration(rig: &Rig, name: &str, port: u8, block: usize) -> Vec<(u8, u8)> {
    let port = rig.world.device(rig.node(name)).port(PortNum(port)).unwrap();
    let pairs = port.vl_arbitration.iter().flat_map(|stored| stored[block - 1].chunks_exact(2));
    pairs.filter(|pair| pair[1] > 0).map(|pair| (pair[0], pair[1])).collect()
}

/// After a reset a lane may get nothing: where routes use several, each port is told to serve all of them alike.
#[test]
fn lanes_of_the_routes_share_every_link_evenly() {
    let mut rig = Rig::with(&ring(6), Config::default(), settings("dfsssp"), |_| ());
    assert!(rig.settle().is_complete(), "{:?}", rig.last().failures);
    let evenly: Vec<(u8, u8)> = (0..8).map(|vl| (vl, 4)).collect();
    for (name, port) in [("R0", 1), ("R0", 2), ("R5", 3), ("H3", 1)] {
        assert_eq!(arbitration(&rig, name, port, 1), evenly, "{name} port {port}");
        assert!(arbitration(&rig, name, port, 3).is_empty(), "{name} port {port}");
    }
    assert!(
        rig.world.device(rig.node("R0")).port(PortNum(4)).unwrap().vl_arbitration.is_none(),
        "it is down"
    );
    rig.assert_quiet();
}

/// B56: what the operator says for all ports and for a kind of them is what these hold; a reload changes what it changes.
#[test]
fn b56_the_operators_lists_are_programmed_by_kind_and_by_difference() {
    let load = |text: &str| {
        let config = sm_core::config::Config::parse(text, std::path::Path::new("rsm.toml")).unwrap();
        SmSettings { plan: SmSettings::load(&config).unwrap().plan, ..settings("updn") }
    };
    let one = "0,1,0,1,0,1,0,1,0,1,0,1,0,1,0,1";
    let text = format!(
        "[routing]\nengines = [\"updn\"]\n[qos]\nenabled = true\nhigh_limit = 3\nsl2vl = \"{one}\"\n\
         vlarb_low = \"0:1,1:2,9:7\"\nca_vlarb_high = \"1:200\"\nca_high_limit = 0\n"
    );
    let mut rig = Rig::with(&ring(4), Config::default(), load(&text), |_| ());
    assert!(rig.settle().is_complete(), "{:?}", rig.last().failures);
    for (name, port) in [("R1", 2), ("H2", 1)] {
        assert_eq!(arbitration(&rig, name, port, 1), [(0, 1), (1, 2)], "{name}: no link has lane 9");
    }
    assert_eq!(
        (arbitration(&rig, "R1", 2, 3), arbitration(&rig, "H2", 1, 3)),
        (vec![(0, 4)], vec![(1, 200)])
    );
    assert_eq!((rig.port_info("R1", 2).vl_high_limit, rig.port_info("H2", 1).vl_high_limit), (3, 0));
    let lanes = |rig: &Rig, name: &str, port, entry| {
        let port = rig.world.device(rig.node(name)).port(PortNum(port)).unwrap();
        SlToVlMappingTable { raw: port.sl_to_vl(PortNum(entry)) }.lanes()
    };
    let alternating: [u8; 16] = std::array::from_fn(|sl| sl as u8 % 2);
    assert_eq!((lanes(&rig, "R1", 2, 3), lanes(&rig, "H2", 1, 0)), (alternating, alternating));
    rig.assert_quiet();
    rig.world.reset_stats();
    rig.tell(Event::Settings(Box::new(load(&text.replace("1:200", "1:100")))));
    assert!(rig.settle().is_complete(), "{:?}", rig.last().failures);
    assert_eq!((rig.sets(VL_ARBITRATION), rig.sets(SL_TO_VL)), (4, 0), "one for each adapter");
    assert_eq!(arbitration(&rig, "H2", 1, 3), [(1, 100)]);
}

/// Engines that keep paths apart by lanes keep these to themselves, and what starves a lane of theirs is named.
#[test]
fn lists_that_do_not_go_with_the_engine_are_named() {
    let text = "[qos]\nsl2vl = \"0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0\"\nswe_vlarb_low = \"0:4\"\n";
    let config = sm_core::config::Config::parse(text, std::path::Path::new("rsm.toml")).unwrap();
    let mut settings = settings("torus-2qos");
    settings.plan.qos = SmSettings::load(&config).unwrap().plan.qos;
    let mut rig = Rig::with(&ring(6), Config::default(), settings, |_| ());
    let report = rig.settle();
    assert!(report.is_complete(), "{:?}", report.failures);
    let named = |part: &str| report.findings.iter().any(|finding| finding.contains(part));
    assert!(named("torus-2qos keeps paths apart by lanes: sl2vl"), "{:?}", report.findings);
    assert!(named("of ports of kind swe gives nothing to VL 1, which routes use"), "{:?}", report.findings);
    assert!(judge(&rig).is_right());
}

/// B57: a switch with the optimised form that takes its time gets one Set and is waited for; nothing goes to ports that are
/// down, and a link that comes up gets what it needs and no more.
#[test]
fn b57_a_slow_switch_gets_one_set_and_a_new_link_just_its_own() {
    let mut plan = Plan::default();
    let switches: Vec<_> = (0..5).map(|i| plan.switch(&format!("R{i}"), 36)).collect();
    for (i, switch) in switches.iter().enumerate() {
        let host = plan.host(&format!("H{i}"), 1);
        plan.cable(host, 1, *switch, 1);
        plan.cable(*switch, 2, switches[(i + 1) % 5], 3);
    }
    let late = plan.host("H9", 1);
    plan.cable(late, 1, switches[0], 20);
    let slow = Quirk::always(Misbehaviour::Late(Duration::from_millis(600))).on(Method::SET, SL_TO_VL);
    let mut rig = Rig::with(&plan.fabric, Config::default(), settings("dfsssp"), |world| {
        for i in 0..5 {
            let node = world.find_name(&format!("R{i}")).unwrap();
            let device = world.device_mut(node);
            device.switch.as_mut().unwrap().info.set_optimized_sl_to_vl(1);
            device.quirks.push(slow.clone());
        }
        let end = End::new(world.find_name("H9").unwrap(), 1);
        world.unlink(end);
    });
    assert!(rig.settle().is_complete(), "{:?}", rig.last().failures);
    assert_eq!(rig.sets(SL_TO_VL), 5 + 5, "one for each switch and each host");
    assert_eq!(rig.sets(VL_ARBITRATION), 2 * (5 * 3 + 5), "both tables of each port that is up");
    assert!(judge(&rig).is_right());
    rig.assert_quiet();
    rig.world.reset_stats();
    let end = rig.end("H9", 1);
    rig.world.relink(end);
    rig.run(Duration::from_secs(30));
    assert!(rig.settle().is_complete(), "{:?}", rig.last().failures);
    let sets = (rig.sets(SL_TO_VL), rig.sets(VL_ARBITRATION));
    // The switch's port is read first: its high-priority table was all zero, as it shall be.
    assert_eq!(sets, (1, 3), "the host's SL-to-VL table and its two tables, one of the switch's port");
    rig.assert_quiet();
}

#[test]
fn a_switch_that_knows_the_optimised_form_costs_one_set() {
    let mut rig = Rig::with(&ring(6), Config::default(), settings("dfsssp"), |world| {
        for i in 0..6 {
            let node = world.find_name(&format!("R{i}")).unwrap();
            world.device_mut(node).switch.as_mut().unwrap().info.set_optimized_sl_to_vl(1);
        }
    });
    assert!(rig.settle().is_complete(), "{:?}", rig.last().failures);
    assert_eq!(rig.sets(SL_TO_VL), 6 + 6, "one for each switch and each host");
    let found = judge(&rig);
    assert!(found.is_right(), "{found}");
    rig.assert_quiet();
}

#[test]
fn a_table_that_is_not_taken_is_named_and_tried_again() {
    let fault = Quirk::always(Misbehaviour::Silence).on(Method::SET, SL_TO_VL);
    let mut rig = Rig::with(&ring(6), Config::default(), settings("dfsssp"), |world| {
        let node = world.find_name("R2").unwrap();
        world.device_mut(node).quirks.push(fault);
    });
    let first = rig.settle();
    assert!(
        first.failures.iter().any(|f| f.contains("\"R2\"") && f.contains("SLtoVLMappingTable from port")),
        "{:?}",
        first.failures
    );
    let node = rig.node("R2");
    rig.world.device_mut(node).quirks.clear();
    rig.run(Duration::from_secs(60));
    assert!(rig.settle().is_complete(), "{:?}", rig.last().failures);
    let found = judge(&rig);
    assert!(found.is_right(), "{found}");
}
