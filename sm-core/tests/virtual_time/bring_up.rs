//! From nothing to everything ACTIVE, and what it costs.

use std::time::Duration;

use mad::types::PortState;
use simulations::world::Config;
use sm_core::settings::SmSettings;
use sm_core::sm::Role;

use crate::rig::*;

#[test]
fn a_fabric_comes_up_and_stays_quiet() {
    for fabric in [two_switches(), tree(4, 2, 2), tree(6, 3, 4)] {
        let mut rig = Rig::new(&fabric);
        let report = rig.settle();
        assert!(report.is_complete(), "{:?}", report.failures);
        assert_eq!((report.round, report.role), (1, Role::Master), "one round is enough");
        assert_eq!((report.nodes, report.links), (fabric.node_count(), fabric.link_count()));
        assert_eq!(report.lids_new, fabric.node_count());
        rig.assert_right();
        rig.assert_quiet();
    }
}

#[test]
fn every_question_is_asked_once() {
    let fabric = tree(6, 3, 4);
    let mut rig = Rig::new(&fabric);
    rig.settle();
    let (nodes, links) = (fabric.node_count() as u64, fabric.link_count() as u64);
    let switches = fabric.switches().count() as u64;
    let switch_ports: u64 = fabric.switches().map(|(_, n)| u64::from(n.num_ports)).sum();
    let hosts = nodes - switches;
    assert_eq!(rig.gets(NODE_INFO), links + 1, "once a link, and ourselves");
    assert_eq!(rig.gets(NODE_DESCRIPTION), nodes);
    assert_eq!(rig.gets(SWITCH_INFO), switches);
    assert_eq!(rig.gets(PORT_INFO), switches + switch_ports + hosts);
    assert_eq!(rig.gets(LFT), 0, "a table that is not in use is not read");
    assert_eq!(rig.sets(SWITCH_INFO), switches);
    assert_eq!(rig.sets(LFT), switches, "one block each");
    assert_eq!(rig.sets(PORT_INFO), switches + 4 * links, "each end twice, port 0 once");
}

#[test]
fn a_restart_with_nothing_changed_sends_no_set() {
    let fabric = tree(4, 2, 2);
    let mut rig = Rig::new(&fabric);
    rig.settle();
    let lids: Vec<u16> = (0..8).map(|i| rig.lid(&format!("H{i}"), 1)).collect();
    rig.world.detach(rig.sm);
    rig.world.reset_stats();
    rig.sm = attach(&mut rig.world, "H0", SmSettings::default(), Default::default());
    let report = rig.settle();
    assert!(report.is_complete(), "{:?}", report.failures);
    assert_eq!((report.lids_new, report.lids_kept), (0, fabric.node_count()));
    assert_eq!(rig.world.stats().sets(), 0, "{:?}", report.sets);
    assert!(rig.gets(LFT) > 0, "known only since it was read (B20)");
    assert_eq!(lids, (0..8).map(|i| rig.lid(&format!("H{i}"), 1)).collect::<Vec<_>>());
}

#[test]
fn a_lossy_fabric_comes_up_all_the_same() {
    for seed in 1..=5 {
        println!("seed {seed}");
        let config = Config { loss: 0.05, seed, ..Config::default() };
        let mut rig = Rig::with(&tree(4, 2, 2), config, SmSettings::default(), |_| ());
        let report = rig.settle();
        assert!(report.is_complete(), "seed {seed}: {:?}", report.failures);
        rig.assert_right();
    }
}

#[test]
fn b08_a_sweep_ends_when_everything_is_lost_for_a_while() {
    let mut rig = Rig::new(&two_switches());
    rig.settle();
    rig.world.config_mut().loss = 1.0;
    rig.tell(sm_core::sm::Event::SweepRequested);
    rig.run(Duration::from_secs(30));
    rig.world.config_mut().loss = 0.0;
    rig.run(Duration::from_secs(60));
    assert!(rig.settle().is_complete());
    rig.assert_right();
}

#[test]
fn idle_looks_cost_one_get_for_each_switch_and_our_own_port() {
    let mut rig = Rig::new(&tree(4, 2, 2));
    rig.settle();
    rig.world.reset_stats();
    rig.run(Duration::from_secs(95));
    assert_eq!(rig.world.stats().total_sent(), 9 * (6 + 1));
    assert_eq!(rig.world.stats().sets(), 0);
}

#[test]
fn all_ports_are_active_and_unlinked_ones_untouched() {
    let mut rig = Rig::new(&two_switches());
    rig.settle();
    for (node, port) in [("H0", 1), ("H3", 1), ("S0", 1), ("S0", 7), ("S1", 8)] {
        assert_eq!(rig.state(node, port), Some(PortState::Active), "{node} {port}");
    }
    assert_eq!(rig.state("S0", 5), Some(PortState::Down));
}

/// The manager sits on port 0 of a switch, base or enhanced.
#[test]
fn a_manager_on_a_switch_brings_up_the_fabric_too() {
    for enhanced in [false, true] {
        let mut fabric = two_switches();
        let switch = fabric.nodes().find(|(_, n)| n.description == "S0").map(|(id, _)| id).unwrap();
        fabric.node_mut(switch).switch.as_mut().unwrap().enhanced_port_0 = enhanced;
        let mut settings = SmSettings::default();
        settings.plan.lmc = 1;
        let mut rig = Rig::on(&fabric, "S0", 0, settings);
        let report = rig.settle();
        assert!(report.is_complete(), "{:?}", report.failures);
        assert_eq!(report.sm_lid.map(|l| l.get()), Some(rig.lid("S0", 0)));
        assert_eq!(rig.port_info("H2", 1).master_sm_lid.get(), rig.lid("S0", 0));
        assert_eq!(rig.port_info("S0", 0).lmc(), u8::from(enhanced), "base port 0 has no LMC (B19)");
        rig.assert_right();
        rig.assert_quiet();
        let end = rig.end("S0", 8);
        rig.world.unlink(end);
        rig.run(Duration::from_secs(15));
        assert!(rig.settle().is_complete());
        rig.assert_right();
    }
}
