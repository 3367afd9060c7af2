//! Traps: repressed at once, merged, and never obeyed blindly.

use std::time::Duration;

use mad::types::{Lid, PortNum};
use mad::wire::smp::{LocalChangesData, Notice, NoticeType, PortThresholdData};
use mad::wire::{Method, ids};

use simulations::world::{Config, End};
use sm_core::settings::SmSettings;
use sm_core::sm::Report;

use crate::rig::*;

fn local_changes(lid: u16, capabilities: u32, flags: u16) -> Notice {
    let data = LocalChangesData::new(Lid::new(lid).unwrap(), capabilities, flags);
    Notice::generic(NoticeType::Informational, 1, 144, Lid::new(lid)).with_data(&data)
}

#[test]
fn b12_new_names_cost_one_get_each_and_no_sweep() {
    let mut rig = Rig::new(&tree(6, 3, 4));
    rig.settle();
    rig.run(Duration::from_secs(1));
    rig.world.reset_stats();
    for i in 1..24 {
        let node = rig.node(&format!("H{i}"));
        rig.world.rename(node, &format!("renamed {i}"));
    }
    rig.run(Duration::from_secs(2));
    assert_eq!(rig.gets(NODE_DESCRIPTION), 23);
    assert_eq!((rig.gets(SWITCH_INFO), rig.gets(NODE_INFO), rig.world.stats().sets()), (0, 0, 0));
    let snapshot = rig.inline().sm.snapshot().unwrap();
    let named = |name: &str| snapshot.observed.fabric.nodes().any(|(_, n)| n.description == name);
    assert!((1..24).all(|i| named(&format!("renamed {i}"))) && !named("H5"), "visible to whoever asks");
}

#[test]
fn b12_a_changed_capability_is_read_and_stored() {
    let mut rig = Rig::new(&two_switches());
    rig.settle();
    rig.run(Duration::from_secs(1));
    rig.world.reset_stats();
    let (node, end) = (rig.node("H2"), rig.end("H2", 1));
    let mask = rig.port_info("H2", 1).capability_mask.get() | 1 << 19;
    rig.world.device_mut(node).ports[1].info.capability_mask.set(mask);
    rig.world.raise_trap(end, local_changes(rig.lid("H2", 1), mask, 0));
    rig.run(Duration::from_secs(2));
    let snapshot = rig.inline().sm.snapshot().unwrap();
    let port = snapshot.end_port(Lid::new(rig.lid("H2", 1)).unwrap()).unwrap();
    assert_eq!(snapshot.observed.port_info(port).unwrap().capability_mask.get(), mask);
    assert!(rig.gets(NODE_INFO) == 0 && rig.world.stats().sets() == 0);
}

/// An adapter that can have virtual ports is named in each round from then on, and so is one that can since it said so; nothing else
/// comes of it.
#[test]
fn b74_ports_that_can_have_virtual_ports_are_named() {
    let fabric = two_switches();
    let mut rig = Rig::with(&fabric, Config::default(), SmSettings::default(), |world| {
        let host = world.find_name("H1").unwrap();
        world.let_have_virtual_ports(End::new(host, 1));
    });
    let named = |report: &Report| -> Vec<String> {
        report.virtual_ports.iter().map(|line| line.split('"').nth(1).unwrap().to_owned()).collect()
    };
    let report = rig.settle();
    assert!(report.is_complete() && report.findings.is_empty(), "{report:?}");
    assert_eq!(named(&report), ["H1"]);
    assert!(report.virtual_ports[0].contains("stay DOWN"), "{}", report.virtual_ports[0]);
    rig.world.reset_stats();
    let end = rig.end("H3", 1);
    rig.world.let_have_virtual_ports(end);
    rig.run(Duration::from_secs(2));
    let report = rig.settle();
    assert_eq!(named(&report), ["H1", "H3"]);
    assert!(report.is_complete() && rig.world.stats().sets() == 0, "{report:?}");
    rig.assert_right();
}

/// A port with a key that nobody knows tells something: it refuses the TrapRepress, and tells that too. Neither is answered for ever.
#[test]
fn b65_a_port_that_refuses_every_answer_makes_no_endless_talk() {
    for protect in 0..=3 {
        let mut rig = Rig::new(&two_switches());
        rig.settle();
        rig.run(Duration::from_secs(1));
        let end = rig.end("H2", 1);
        let info = &mut rig.world.device_mut(end.node).ports[1].info;
        info.m_key.set(0x77);
        info.set_m_key_protect_bits(protect);
        rig.world.reset_stats();
        rig.world.tell_all_ports(end.node, 1);
        let answers = |rig: &Rig| rig.world.stats().sent_smps(Method::TRAP_REPRESS, ids::sm::NOTICE);
        for _ in 0..10_000 {
            rig.run(Duration::from_millis(1));
            assert!(answers(&rig) <= 100, "{} at protection level {protect}", answers(&rig));
        }
        assert!(answers(&rig) >= 1, "protection level {protect}");
    }
}

/// B65: ten thousand traps; each is repressed, and the work that they cause does not grow with their number.
#[test]
fn b65_a_flood_of_traps_is_merged() {
    let mut rig = Rig::new(&tree(6, 3, 4));
    rig.settle();
    rig.run(Duration::from_secs(1));
    rig.world.reset_stats();
    for i in 0..10_000_u32 {
        let host = i % 23 + 1;
        let (name, mask) = (format!("H{host}"), if i % 2 == 0 { 0 } else { i });
        let (end, lid) = (rig.end(&name, 1), rig.lid(&name, 1));
        let at = rig.world.now() + Duration::from_micros(u64::from(i) * 100);
        rig.world.at(at, move |world| world.raise_trap(end, local_changes(lid, mask, 0)));
    }
    let traps = rig.inline().sm.traps();
    rig.run(Duration::from_secs(3));
    assert!(rig.inline().sm.traps() - traps >= 1000, "{}", rig.inline().sm.traps() - traps);
    let other = rig.world.stats().total_sent() - (rig.inline().sm.traps() - traps);
    assert!(other < 2000 && rig.world.stats().sets() == 0, "{other}");
    assert!(rig.settle().is_complete());
}

#[test]
fn b65_our_own_traps_cause_nothing() {
    let mut rig = Rig::new(&two_switches());
    rig.settle();
    rig.run(Duration::from_secs(1));
    rig.world.reset_stats();
    let (end, lid) = (rig.end("H0", 1), rig.lid("H0", 1));
    rig.world.raise_trap(end, local_changes(lid, 0xffff_ffff, 0));
    rig.run(Duration::from_secs(2));
    assert_eq!((rig.gets(SWITCH_INFO), rig.gets(PORT_INFO)), (0, 0));
}

/// B66: what a trap says is a claim; numbers beyond anything are no index, and nothing is disabled.
#[test]
fn b66_impossible_numbers_in_traps_are_harmless() {
    let mut rig = Rig::new(&two_switches());
    rig.settle();
    let end = rig.end("S1", 0);
    for (lid, port) in [(1, 0), (1, 37), (1, 255), (0xbfff, 1), (40, 200)] {
        let data = PortThresholdData::new(Lid::new(lid).unwrap(), PortNum(port));
        let trap = Notice::generic(NoticeType::Urgent, 2, 131, Lid::new(lid)).with_data(&data);
        for _ in 0..300 {
            rig.world.raise_trap(end, trap);
            rig.run(Duration::from_millis(1));
        }
    }
    for number in [0, 128, 144, 145, 256, 257, 258, 259, 1000, 0xffff] {
        let mut trap = Notice::generic(NoticeType::Urgent, 2, number, None);
        trap.data = [0xff; 54];
        rig.world.raise_trap(end, trap);
        rig.run(Duration::from_millis(1));
    }
    rig.run(Duration::from_secs(20));
    assert!(rig.settle().is_complete());
    rig.assert_right();
}

/// B11: a link that flaps without end does not keep the rest from being served, and new settings are taken up meanwhile.
#[test]
fn b11_a_flapping_link_does_not_keep_settings_from_being_taken_up() {
    let mut rig = Rig::new(&tree(4, 2, 2));
    rig.settle();
    let end = rig.end("L1", 4);
    for flap in 0..300_u64 {
        let at = rig.world.now() + Duration::from_millis(flap * 200);
        rig.world.at(at, move |world| {
            let pull = flap % 2 == 0;
            if pull && world.unlink(end).is_none() || !pull && !world.relink(end) {
                panic!("the link is where the flap before left it");
            }
        });
    }
    rig.run(Duration::from_secs(5));
    let mut settings = SmSettings::default();
    settings.plan.subnet_timeout = 16;
    rig.tell(sm_core::sm::Event::Settings(Box::new(settings)));
    rig.run(Duration::from_secs(10));
    assert_eq!(rig.port_info("H7", 1).subnet_timeout(), 16, "though the link still flaps");
    let moved = (rig.end("L3", 1), rig.node("H6"));
    rig.world.unlink(moved.0);
    rig.run(Duration::from_secs(10));
    assert!(rig.inline().sm.snapshot().unwrap().observed.fabric.nodes().all(|(_, n)| n.description != "H6"));
    rig.world.relink(moved.0);
    rig.run(Duration::from_secs(60));
    assert!(rig.settle().is_complete(), "{:?}", rig.last().failures);
    rig.assert_right();
}
