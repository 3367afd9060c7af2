//! SL-to-VL tables of engines that keep paths apart by virtual lanes: what the simulated switches hold, together with the
//! service levels that clients are told, is free of credit loops.

use std::time::Duration;

use mad::wire::smp::SlToVlMappingTable;
use mad::wire::{Attribute, Method};
use routing::fabric::SwitchGraph;
use routing::routes::{PathSl, SlToVl};
use routing::verify::{self, Options};
use simulations::device::{Misbehaviour, Quirk};
use simulations::world::Config;
use sm_core::settings::SmSettings;
use sm_core::store::Restored;

use crate::rig::*;

const SL_TO_VL: u16 = SlToVlMappingTable::ID;

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
        assert_eq!(rig.sets(SL_TO_VL), 0, "{engine}");
        assert!(rig.gets(SL_TO_VL) > 0, "{engine}");
    }
}

#[test]
fn engines_of_one_lane_touch_no_sl_to_vl_table() {
    let mut rig = Rig::with(&ring(6), Config::default(), settings("updn"), |_| ());
    assert!(rig.settle().is_complete());
    assert_eq!((rig.sets(SL_TO_VL), rig.gets(SL_TO_VL)), (0, 0));
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
