//! Faults that a walk over the fabric meets.

use std::time::Duration;

use mad::types::PortState;
use mad::wire::Method;
use routing::fabric::NodeId;
use simulations::device::{Device, ExtendedSpeeds, Misbehaviour, Quirk};
use simulations::world::{Config, World};
use sm_core::settings::SmSettings;

use crate::rig::*;

fn with_faults(fabric: &routing::fabric::Fabric, prepare: impl FnOnce(&mut World)) -> Rig {
    Rig::with(fabric, Config::default(), SmSettings::default(), prepare)
}

fn quirk(world: &mut World, name: &str, quirk: Quirk) {
    let node = world.find_name(name).unwrap();
    world.device_mut(node).quirks.push(quirk);
}

fn named(texts: &[String], what: &[&str]) -> bool {
    texts.iter().any(|text| what.iter().all(|w| text.contains(w)))
}

#[test]
fn b01_two_hosts_with_one_guid_are_both_named_and_the_rest_is_served() {
    let mut rig = with_faults(&two_switches(), |world| {
        let (h1, h3) = (world.find_name("H1").unwrap(), world.find_name("H3").unwrap());
        let twin: Device = world.device(h1).clone();
        *world.device_mut(h3) = twin;
        world.device_mut(h3).set_name("twin");
        let own = simulations::world::End::new(h3, 1);
        world.unlink(own);
        world.relink(own);
    });
    let report = rig.settle();
    let guid = rig.world.device(rig.node("H1")).guid().to_string();
    assert!(named(&report.findings, &[&guid, "there twice", "0,1,2", "0,1,7,2"]), "{:?}", report.findings);
    assert!(!report.is_complete(), "one of the two can't be served");
    for host in ["H0", "H2"] {
        assert_eq!(rig.state(host, 1), Some(PortState::Active));
    }
    // No hot loop: the place is asked again with pauses, not all the time.
    rig.world.reset_stats();
    rig.run(Duration::from_secs(300));
    assert!(rig.gets(NODE_INFO) < 100, "{}", rig.gets(NODE_INFO));
    assert!(rig.gets(SWITCH_INFO) < 200, "{}", rig.gets(SWITCH_INFO));
}

#[test]
fn b01_a_cable_moved_while_we_walk_is_no_duplicate() {
    for after_us in (0..400).step_by(10) {
        let mut rig = with_faults(&two_switches(), |world| {
            let (from, to) = (world.find_name("S0").unwrap(), world.find_name("S1").unwrap());
            let ends = (simulations::world::End::new(from, 2), simulations::world::End::new(to, 6));
            world.at(mad::types::Timestamp(after_us * 1000), move |world| {
                world.move_cable(ends.0, ends.1);
            });
        });
        rig.run(Duration::from_secs(60));
        let report = rig.settle();
        assert!(report.is_complete(), "moved after {after_us} us: {:?}", report.failures);
        rig.assert_right();
        assert_eq!(rig.state("S1", 6), Some(PortState::Active));
    }
}

#[test]
fn b02_a_cable_back_to_the_same_switch_is_a_link_that_nobody_routes_over() {
    let mut plan = Plan { fabric: two_switches() };
    let s0 = plan.fabric.nodes().find(|(_, n)| n.description == "S0").map(|(id, _)| id).unwrap();
    plan.cable(s0, 5, s0, 6);
    let mut rig = Rig::new(&plan.fabric);
    let report = rig.settle();
    assert!(report.is_complete() && report.findings.is_empty(), "{:?}", report.findings);
    assert_eq!(report.links, plan.fabric.link_count());
    assert_eq!((rig.state("S0", 5), rig.state("S0", 6)), (Some(PortState::Active), Some(PortState::Active)));
    rig.assert_right();
    rig.assert_quiet();
}

#[test]
fn b02_two_ports_of_one_host_back_to_back() {
    let mut plan = Plan::default();
    let host = plan.host("H0", 2);
    plan.cable(host, 1, host, 2);
    let mut rig = Rig::new(&plan.fabric);
    let report = rig.settle();
    assert!(report.is_complete() && report.findings.is_empty(), "{report:?}");
    assert_eq!((rig.state("H0", 1), rig.state("H0", 2)), (Some(PortState::Active), Some(PortState::Active)));
    assert_ne!(rig.lid("H0", 1), rig.lid("H0", 2));
}

#[test]
fn two_hosts_back_to_back_need_no_switch() {
    let mut plan = Plan::default();
    let (a, b) = (plan.host("H0", 1), plan.host("H1", 1));
    plan.cable(a, 1, b, 1);
    let mut rig = Rig::new(&plan.fabric);
    assert!(rig.settle().is_complete(), "{:?}", rig.last().failures);
    assert_eq!(rig.state("H1", 1), Some(PortState::Active));
    rig.assert_quiet();
}

/// NodeInfo with values that can't be. LocalPortNum lies at byte 36, NumPorts at 3, NodeType at 2, GUIDs at 12 and 20.
#[test]
fn b03_impossible_node_info_is_refused_by_name_and_touches_nobody_else() {
    let zeros = vec![0; 8];
    for (offset, bytes, word) in [
        (36, vec![2], "LocalPortNum"),
        (36, vec![0], "LocalPortNum"),
        (3, vec![0], "NumPorts"),
        (3, vec![255], "NumPorts"),
        (2, vec![0], "NodeType"),
        (2, vec![9], "NodeType"),
        (12, zeros.clone(), "NodeGUID"),
        (20, zeros, "PortGUID"),
    ] {
        let what = Misbehaviour::Overwrite { offset, bytes };
        let fault = Quirk::always(what).on(Method::GET, NODE_INFO);
        let mut rig = with_faults(&two_switches(), |world| quirk(world, "H2", fault));
        let report = rig.settle();
        assert!(named(&report.findings, &["\"S1\"", word]), "{word}: {:?}", report.findings);
        assert!(named(&report.failures, &["port 1 of \"S1\""]), "{:?}", report.failures);
        assert_eq!(rig.state("H3", 1), Some(PortState::Active));
        assert_eq!(rig.state("S1", 1), Some(PortState::Init), "watched, not raised");
        // Good once it answers well.
        let host = rig.node("H2");
        rig.world.device_mut(host).quirks.clear();
        rig.run(Duration::from_secs(700));
        assert!(rig.settle().is_complete(), "{:?}", rig.last().failures);
        rig.assert_right();
    }
}

#[test]
fn b05_a_silent_host_is_named_not_raised_and_asked_with_growing_pauses() {
    let silent = Quirk::always(Misbehaviour::Silence);
    let mut rig = with_faults(&two_switches(), |world| quirk(world, "H2", silent));
    let report = rig.settle();
    assert!(named(&report.findings, &["port 1 of \"S1\"", "nothing answers"]), "{:?}", report.findings);
    assert_eq!(rig.state("S1", 1), Some(PortState::Init));
    assert_eq!(rig.state("H3", 1), Some(PortState::Active));
    rig.world.reset_stats();
    rig.run(Duration::from_secs(3600));
    let (asked, full) = (rig.gets(NODE_INFO), rig.gets(NODE_DESCRIPTION));
    assert!(asked > 0 && asked < 16 * 8, "{asked} NodeInfo in an hour");
    assert_eq!(full, 0, "no full sweeps");
    let host = rig.node("H2");
    rig.world.device_mut(host).quirks.clear();
    rig.run(Duration::from_secs(700));
    assert!(rig.settle().is_complete());
    rig.assert_right();
}

#[test]
fn b05_a_switch_silent_on_one_of_two_cables_is_used_over_the_other() {
    let deaf = Quirk { in_port: Some(8), ..Quirk::always(Misbehaviour::Silence) };
    let mut rig = with_faults(&two_switches(), |world| quirk(world, "S1", deaf));
    let report = rig.settle();
    assert_eq!((report.nodes, report.switches), (6, 2));
    for host in ["H0", "H1", "H2", "H3"] {
        assert_eq!(rig.state(host, 1), Some(PortState::Active), "{host}");
    }
}

#[test]
fn a_host_that_stops_answering_half_way_is_named_and_the_others_come_up() {
    let fault = Quirk::always(Misbehaviour::Silence).on(Method::GET, PORT_INFO);
    let mut rig = with_faults(&two_switches(), |world| quirk(world, "H2", fault));
    let report = rig.settle();
    assert!(named(&report.failures, &["\"H2\"", "PortInfo"]), "{:?}", report.failures);
    for host in ["H0", "H1", "H3"] {
        assert_eq!(rig.state(host, 1), Some(PortState::Active), "{host}");
    }
    assert_eq!(rig.state("S1", 1), Some(PortState::Init));
}

/// A switch's port of which nothing was read may lead to anybody: it is named, and read again.
#[test]
fn a_switch_port_that_was_not_read_is_asked_again_and_named_until_it_answers() {
    for times in [Some(8), Some(16), None] {
        let fault = Quirk {
            modifier: Some(2),
            times,
            ..Quirk::always(Misbehaviour::Silence).on(Method::GET, PORT_INFO)
        };
        let mut rig = with_faults(&two_switches(), |world| quirk(world, "S1", fault));
        let report = rig.settle();
        assert_eq!(report.is_complete(), times.is_some(), "{:?}", report.failures);
        if times.is_some() {
            assert_eq!(report.nodes, 6);
            rig.assert_right();
        } else {
            assert!(named(&report.failures, &["port 2 of \"S1\"", "PortInfo"]), "{:?}", report.failures);
        }
    }
}

#[test]
fn b07_a_refused_switch_info_leaves_the_switch_out_and_the_reason_is_told() {
    let what = Misbehaviour::Refuse { status: 0x000c, garbage: true };
    let fault = Quirk::always(what).on(Method::GET, SWITCH_INFO);
    let mut rig = with_faults(&two_switches(), |world| quirk(world, "S1", fault));
    let report = rig.settle();
    assert!(named(&report.findings, &["\"S1\"", "0x000c", "left out"]), "{:?}", report.findings);
    assert_eq!((report.nodes, report.switches), (3, 1));
    for host in ["H0", "H1"] {
        assert_eq!(rig.state(host, 1), Some(PortState::Active), "{host}");
    }
}

/// B10: fields of extended speeds that are told only when asked for, beside a device that refuses the question.
#[test]
fn b10_extended_speeds_are_asked_for_where_they_exist_only() {
    let mut rig = with_faults(&two_switches(), |world| {
        for (name, speeds) in [
            ("S0", ExtendedSpeeds::WhenAsked),
            ("H1", ExtendedSpeeds::WhenAsked),
            ("H2", ExtendedSpeeds::Refused),
        ] {
            let node = world.find_name(name).unwrap();
            world.device_mut(node).extended_speeds = speeds;
        }
    });
    let before = rig.world.device(rig.node("S0")).ports[1].info.link_speed_enabled();
    let report = rig.settle();
    assert!(report.is_complete(), "{:?}", report.failures);
    rig.assert_right();
    let snapshot = rig.inline().sm.snapshot().unwrap().clone();
    for (name, port) in [("S0", 1), ("H1", 1)] {
        let id: NodeId = snapshot.observed.fabric.nodes().find(|(_, n)| n.description == name).unwrap().0;
        let info = snapshot.observed.nodes[&id].port_info(mad::types::PortNum(port)).unwrap();
        assert_ne!(info.link_speed_ext_supported(), 0, "{name}");
    }
    assert_eq!(rig.port_info("S0", 1).link_speed_enabled(), before, "never lowered");
    rig.assert_quiet();
}

/// B06: the down port's wretched capabilities lower nothing, and neither do operational values.
#[test]
fn b06_minima_come_from_capabilities_of_ports_that_are_up() {
    let mut rig = with_faults(&two_switches(), |world| {
        let s0 = world.find_name("S0").unwrap();
        let down = world.device_mut(s0).port_mut(mad::types::PortNum(5)).unwrap();
        down.info.set_vl_cap(1);
        down.info.set_mtu_cap_raw(1);
        for port in [7, 8] {
            world.device_mut(s0).port_mut(mad::types::PortNum(port)).unwrap().info.set_operational_vls(1);
        }
        let h1 = world.find_name("H1").unwrap();
        world.device_mut(h1).ports[1].info.set_mtu_cap_raw(3);
    });
    assert!(rig.settle().is_complete(), "{:?}", rig.last().failures);
    rig.assert_right();
    let info = rig.port_info("S0", 7);
    assert_eq!((info.operational_vls(), info.neighbor_mtu_raw()), (4, 5));
    assert_eq!(rig.port_info("S0", 2).neighbor_mtu_raw(), 3, "the smaller of both ends");
    assert_eq!(rig.port_info("H1", 1).neighbor_mtu_raw(), 3);
}

#[test]
fn a_chain_of_seventy_switches_ends_at_63_hops_and_says_so() {
    let mut plan = Plan::default();
    let host = plan.host("H0", 1);
    let switches: Vec<NodeId> = (0..70).map(|i| plan.switch(&format!("C{i}"), 2)).collect();
    plan.cable(host, 1, switches[0], 1);
    for pair in switches.windows(2) {
        plan.cable(pair[0], 2, pair[1], 1);
    }
    let mut rig = Rig::new(&plan.fabric);
    let report = rig.settle();
    assert_eq!(report.switches, 63);
    assert!(named(&report.findings, &["\"C62\"", "63 hops"]), "{:?}", report.findings);
    assert_eq!(rig.state("C61", 2), Some(PortState::Active));
    rig.run(Duration::from_secs(60));
    assert!(rig.last().round < 40, "no hot loop");
}
