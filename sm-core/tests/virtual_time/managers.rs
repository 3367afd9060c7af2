//! Several subnet managers on one fabric: the basics.

use std::time::Duration;

use simulations::world::{AgentId, World};
use sm_core::settings::SmSettings;
use sm_core::sm::Role;

use crate::rig::*;

fn priority(priority: u8) -> SmSettings {
    SmSettings { priority, ..SmSettings::default() }
}

fn role(world: &World, id: AgentId) -> Role {
    world.agent::<SmAgent>(id).unwrap().0.sm.role()
}

fn two(first: u8, second: u8) -> (Rig, AgentId) {
    let mut rig = Rig::with(&two_switches(), Default::default(), priority(first), |_| ());
    rig.settle();
    let other = attach(&mut rig.world, "H3", priority(second), Default::default());
    rig.run(Duration::from_secs(30));
    (rig, other)
}

/// Managers that start together ask each other before either has seen the fabric: each knows its own name already.
#[test]
fn managers_that_start_together_say_who_they_are() {
    let mut rig = Rig::with(&tree(3, 2, 4), Default::default(), priority(5), |_| ());
    let other = attach(&mut rig.world, "H9", priority(3), Default::default());
    rig.run(Duration::from_secs(30));
    let reports = [rig.sm, other].map(|id| rig.world.agent::<SmAgent>(id).unwrap().0.reports.clone());
    let said = reports.iter().flatten().flat_map(|report| report.findings.iter().chain(&report.failures));
    let names: Vec<&String> = said.filter(|text| text.contains("calls itself")).collect();
    assert!(names.is_empty(), "{names:?}");
    assert_eq!((rig.role(), role(&rig.world, other)), (Role::Master, Role::Standby));
}

#[test]
fn the_second_one_stands_by_and_sends_no_set() {
    let (mut rig, other) = two(5, 3);
    assert_eq!((rig.role(), role(&rig.world, other)), (Role::Master, Role::Standby));
    rig.world.reset_stats();
    rig.run(Duration::from_secs(30));
    assert_eq!(rig.world.stats().sets(), 0);
    rig.assert_right();
}

#[test]
fn when_the_master_dies_the_standby_takes_over_and_changes_only_who_is_master() {
    let (mut rig, other) = two(5, 3);
    let lids: Vec<u16> = (0..4).map(|i| rig.lid(&format!("H{i}"), 1)).collect();
    rig.world.detach(rig.sm);
    rig.world.reset_stats();
    rig.run(Duration::from_secs(30));
    assert_eq!(role(&rig.world, other), Role::Master);
    rig.assert_right();
    assert_eq!(lids, (0..4).map(|i| rig.lid(&format!("H{i}"), 1)).collect::<Vec<_>>());
    assert_eq!(rig.sets(LFT), 0, "the tables are right as they are");
    assert_eq!(rig.sets(PORT_INFO), 6, "each end port learns the new SM LID");
    assert_eq!(rig.port_info("H1", 1).master_sm_lid.get(), rig.lid("H3", 1));
    assert_eq!(rig.world.stats().client_reregisters, 4 + 2, "and is told to register there");
}

#[test]
fn a_better_one_becomes_master_by_handover() {
    let (rig, other) = two(3, 5);
    assert_eq!((rig.role(), role(&rig.world, other)), (Role::Standby, Role::Master));
    rig.assert_right();
    assert_eq!(rig.port_info("H1", 1).master_sm_lid.get(), rig.lid("H3", 1));
}

/// B58: two fabrics with a master each are joined.
#[test]
fn b58_two_masters_that_meet_become_one() {
    let mut plan = Plan { fabric: two_switches() };
    let cables: Vec<_> =
        plan.fabric.links().filter(|l| l.a.port.0 >= 7 && l.b.port.0 >= 7).copied().collect();
    for cable in &cables {
        plan.fabric.disconnect(cable.a);
    }
    let mut rig = Rig::with(&plan.fabric, Default::default(), priority(3), |_| ());
    let other = attach(&mut rig.world, "H3", priority(4), Default::default());
    rig.run(Duration::from_secs(20));
    assert_eq!((rig.role(), role(&rig.world, other)), (Role::Master, Role::Master));
    let (a, b) = (rig.end("S0", 7), rig.end("S1", 7));
    assert!(rig.world.connect(a, b));
    rig.run(Duration::from_secs(60));
    assert_eq!((rig.role(), role(&rig.world, other)), (Role::Standby, Role::Master));
    rig.assert_right();
}
