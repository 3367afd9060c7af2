//! Sets that are refused, lost or half kept, and what ports are told.

use std::time::Duration;

use mad::types::{Guid, Lid, PortNum, PortState};
use mad::wire::Method;
use simulations::device::{Misbehaviour, Quirk};
use simulations::world::{Config, World};
use sm_core::plan::lids::{LidMemory, LidRange};
use sm_core::settings::SmSettings;
use sm_core::sm::Event;
use sm_core::store::Restored;

use crate::rig::*;

fn set_quirk(what: Misbehaviour) -> Quirk {
    Quirk::always(what).on(Method::SET, PORT_INFO)
}

fn give(world: &mut World, name: &str, lid: u16) {
    let node = world.find_name(name).unwrap();
    world.device_mut(node).ports[1].info.base_lid.set(lid);
}

fn guid(world: &World, name: &str) -> Guid {
    Guid(world.device(world.find_name(name).unwrap()).ports[1].guid)
}

fn range(lid: u16) -> LidRange {
    LidRange::new(Lid::new(lid).unwrap(), 0).unwrap()
}

/// A rig whose manager remembers LIDs of hosts.
fn remembering(memory: &[(&str, u16)], prepare: impl FnOnce(&mut World)) -> Rig {
    let mut world = World::new(&two_switches(), Config::default());
    prepare(&mut world);
    let lids: LidMemory = memory.iter().map(|(name, lid)| (guid(&world, name), range(*lid))).collect();
    let sm = attach(&mut world, "H0", SmSettings::default(), Restored { lids, ..Restored::default() });
    Rig { world, sm }
}

#[test]
fn b15_a_lid_is_not_handed_on_while_its_holder_refuses_to_let_go() {
    let silent = set_quirk(Misbehaviour::Silence);
    let mut rig = remembering(&[("H1", 7), ("H2", 9)], |world| {
        give(world, "H2", 7);
        let node = world.find_name("H2").unwrap();
        world.device_mut(node).quirks.push(silent);
    });
    rig.run(Duration::from_secs(120));
    let report = rig.settle();
    assert_eq!(rig.lid("H2", 1), 7, "it keeps what it holds");
    assert_ne!(rig.lid("H1", 1), 7);
    assert_ne!(rig.lid("H1", 1), 0, "the newcomer gets a free one");
    assert!(report.failures.iter().any(|f| f.contains("\"H2\"")), "{:?}", report.failures);
    assert!(!report.failures.iter().any(|f| f.contains("\"H3\"")), "nobody else is blamed (B26)");
    for host in ["H1", "H3"] {
        assert_eq!(rig.state(host, 1), Some(PortState::Active));
    }
}

#[test]
fn b15_ports_that_swapped_lids_get_their_own_back_without_ever_sharing_one() {
    let mut rig = remembering(&[("H1", 20), ("H2", 21)], |world| {
        give(world, "H1", 21);
        give(world, "H2", 20);
    });
    for _ in 0..5000 {
        assert_ne!(rig.lid("H1", 1), rig.lid("H2", 1), "at {}", rig.world.now());
        if !rig.world.step() || rig.world.now().0 > 5_000_000_000 {
            break;
        }
    }
    rig.run(Duration::from_secs(30));
    assert!(rig.settle().is_complete(), "{:?}", rig.last().failures);
    assert_eq!((rig.lid("H1", 1), rig.lid("H2", 1)), (20, 21));
    rig.assert_right();
    rig.assert_quiet();
}

#[test]
fn b16_values_that_are_no_lids_count_as_none() {
    let mut rig = Rig::with(&two_switches(), Config::default(), SmSettings::default(), |world| {
        give(world, "H1", 0xffff);
        give(world, "H2", 0xc001);
        give(world, "H3", 0);
    });
    assert!(rig.settle().is_complete(), "{:?}", rig.last().failures);
    rig.assert_right();
    for host in ["H1", "H2", "H3"] {
        assert!(Lid::new(rig.lid(host, 1)).is_some(), "{host}");
    }
}

#[test]
fn valid_lids_found_on_the_fabric_are_honoured_and_conflicts_go_to_who_is_remembered() {
    let mut rig = remembering(&[("H3", 300)], |world| {
        give(world, "H1", 77);
        give(world, "H2", 300);
        give(world, "H3", 300);
    });
    rig.run(Duration::from_secs(30));
    assert!(rig.settle().is_complete());
    rig.assert_right();
    assert_eq!((rig.lid("H1", 1), rig.lid("H3", 1)), (77, 300));
    assert_ne!(rig.lid("H2", 1), 300);
}

#[test]
fn b19_lmc_goes_to_hosts_and_not_to_base_port_0() {
    let mut settings = SmSettings::default();
    settings.plan.lmc = 2;
    let mut rig = Rig::with(&two_switches(), Config::default(), settings, |_| ());
    assert!(rig.settle().is_complete(), "{:?}", rig.last().failures);
    rig.assert_right();
    for host in ["H0", "H1", "H2", "H3"] {
        assert_eq!((rig.port_info(host, 1).lmc(), rig.lid(host, 1) % 4), (2, 0), "{host}");
    }
    assert_eq!(rig.port_info("S0", 0).lmc(), 0);
    rig.assert_quiet();
}

#[test]
fn b07_garbage_in_a_refusal_does_not_enter_the_picture() {
    let what = Misbehaviour::Refuse { status: 0x001c, garbage: true };
    let mut rig = Rig::with(&two_switches(), Config::default(), SmSettings::default(), |world| {
        let node = world.find_name("H2").unwrap();
        world.device_mut(node).quirks.push(set_quirk(what));
    });
    let report = rig.settle();
    assert!(
        report.failures.iter().any(|f| f.contains("\"H2\"") && f.contains("0x001c")),
        "{:?}",
        report.failures
    );
    let snapshot = rig.inline().sm.snapshot().unwrap().clone();
    let host = snapshot.observed.fabric.nodes().find(|(_, n)| n.description == "H2").unwrap().0;
    let seen = snapshot.observed.nodes[&host].port_info(PortNum(1)).unwrap();
    assert_eq!((seen.base_lid.get(), seen.port_state()), (0, Some(PortState::Init)));
    assert!(snapshot.end_port(Lid::new(0xa5a5).unwrap()).is_none());
    for host in ["H0", "H1", "H3"] {
        assert_eq!(rig.state(host, 1), Some(PortState::Active));
    }
}

#[test]
fn b26_one_refusing_switch_port_costs_its_link_and_no_more() {
    let mut rig = Rig::with(&two_switches(), Config::default(), SmSettings::default(), |world| {
        let node = world.find_name("S0").unwrap();
        let quirk = Quirk { modifier: Some(2), ..set_quirk(Misbehaviour::Silence) };
        world.device_mut(node).quirks.push(quirk);
    });
    let report = rig.settle();
    assert!(
        report.failures.iter().all(|f| f.contains("port 2 of") || f.contains("port 2")),
        "{:?}",
        report.failures
    );
    assert_ne!(rig.state("S0", 2), Some(PortState::Active));
    for (node, port) in [("S0", 1), ("S0", 7), ("S0", 8), ("S1", 1), ("H0", 1), ("H2", 1)] {
        assert_eq!(rig.state(node, port), Some(PortState::Active), "{node} {port}");
    }
}

/// A Set that is answered as done and not kept: named once, and not asked for again.
#[test]
fn a_field_that_a_port_does_not_keep_is_named_once() {
    // SubnetTimeOut shares byte 51 with ClientReregister; answers always say 31.
    let forced = Misbehaviour::Overwrite { offset: 51, bytes: vec![31] };
    let mut rig = Rig::with(&two_switches(), Config::default(), SmSettings::default(), |world| {
        let node = world.find_name("H1").unwrap();
        for method in [Method::GET, Method::SET] {
            world.device_mut(node).quirks.push(Quirk::always(forced.clone()).on(method, PORT_INFO));
        }
    });
    let report = rig.settle();
    assert!(report.is_complete());
    assert_eq!(report.not_kept.get("SubnetTimeOut"), Some(&1), "{:?}", report.not_kept);
    rig.assert_quiet();
    assert!(rig.last().not_kept.is_empty());
}

/// B72, B73, B37: reregistration goes out with ACTIVE, and again when the prefix changes; not when nothing changes.
#[test]
fn b72_b73_clients_are_told_to_register_with_active_and_when_the_prefix_changes() {
    let mut rig = Rig::new(&two_switches());
    rig.settle();
    let told = |rig: &Rig| -> Vec<u32> {
        (0..4).map(|i| rig.world.device(rig.node(&format!("H{i}"))).ports[1].client_reregisters).collect()
    };
    assert_eq!(told(&rig), [1; 4]);
    assert_eq!(rig.sets(PORT_INFO), 2 + 2 * 12, "no Set of its own");
    let mut settings = SmSettings::default();
    settings.plan.subnet_prefix = 0xfec0_0000_0000_0006;
    rig.tell(Event::Settings(Box::new(settings)));
    assert!(rig.settle().is_complete());
    assert_eq!(told(&rig), [2; 4]);
    assert_eq!(rig.port_info("H2", 1).gid_prefix.get(), 0xfec0_0000_0000_0006);
    rig.assert_quiet();
}

/// B37: a host that answered nothing for one sweep was dropped, and with it what it had registered, though its port stayed
/// ACTIVE; back again, it is told.
#[test]
fn b37_a_host_that_was_away_without_noticing_is_told_to_register_anew() {
    let mut rig = Rig::new(&two_switches());
    rig.settle();
    let node = rig.node("H2");
    rig.world.device_mut(node).quirks.push(Quirk::always(Misbehaviour::Silence));
    rig.tell(Event::SweepRequested);
    rig.settle();
    assert_eq!(rig.state("H2", 1), Some(PortState::Active));
    rig.world.device_mut(node).quirks.clear();
    let before = rig.world.device(node).ports[1].client_reregisters;
    rig.run(Duration::from_secs(60));
    assert!(rig.settle().is_complete(), "{:?}", rig.last().failures);
    rig.run(Duration::from_secs(1));
    assert_eq!(rig.world.device(node).ports[1].client_reregisters, before + 1);
    assert_eq!(rig.world.device(rig.node("H1")).ports[1].client_reregisters, 1, "nobody else is");
    rig.assert_quiet();
}

/// B72: where many ports in service have to be told, they are told over time, each once, and all of them.
#[test]
fn b72_many_reregistrations_are_spread_over_time() {
    let mut rig = Rig::new(&tree(20, 2, 20));
    rig.settle();
    rig.run(Duration::from_secs(1));
    rig.world.reset_stats();
    let mut settings = SmSettings::default();
    settings.plan.subnet_prefix = 0xfec0_0000_0000_0007;
    rig.tell(Event::Settings(Box::new(settings)));
    assert!(rig.settle().is_complete());
    assert!(rig.world.stats().client_reregisters < 40, "{}", rig.world.stats().client_reregisters);
    rig.run(Duration::from_millis(100));
    let soon = rig.world.stats().client_reregisters;
    assert!((100..300).contains(&soon), "2,000 a second: {soon}");
    rig.run(Duration::from_secs(2));
    assert_eq!(rig.world.stats().client_reregisters, 400 + 22, "hosts and switches, each once");
    rig.assert_quiet();
}

#[test]
fn a_port_that_went_to_active_by_itself_is_no_failure() {
    let mut rig = Rig::new(&two_switches());
    rig.settle();
    // The host restarts; while it is ARMED a packet arrives and takes it to ACTIVE, so that our Set is refused.
    let node = rig.node("H1");
    let refused =
        Quirk { times: Some(1), ..set_quirk(Misbehaviour::Refuse { status: 0x1c, garbage: false }) };
    rig.world.power_off(node);
    rig.world.power_on(node);
    rig.run(Duration::from_micros(100));
    rig.world.device_mut(node).quirks.push(refused);
    rig.run(Duration::from_secs(60));
    assert!(rig.settle().is_complete(), "{:?}", rig.last().failures);
    assert_eq!(rig.world.device(node).port(PortNum(1)).unwrap().state(), PortState::Active);
    rig.assert_right();
}
