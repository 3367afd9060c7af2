//! Forwarding tables: what is known of them, in which order they change, and what an unconfirmed one costs.

use std::time::Duration;

use mad::types::PortState;
use mad::wire::Method;
use simulations::device::{Misbehaviour, Quirk};
use simulations::world::{Config, World};
use sm_core::settings::SmSettings;
use sm_core::sm::Event;
use sm_core::store::Restored;

use crate::rig::*;

fn table<'a>(world: &'a mut World, name: &str) -> &'a mut Vec<u8> {
    let node = world.find_name(name).unwrap();
    &mut world.device_mut(node).switch.as_mut().unwrap().lft
}

/// B20: a new manager reads what another one wrote, corrects what is wrong, clears what nobody has, and touches no more.
#[test]
fn b20_strange_entries_of_another_manager_are_found_and_cleared() {
    let mut rig = Rig::new(&tree(4, 2, 2));
    rig.settle();
    rig.world.detach(rig.sm);
    let wrong = usize::from(rig.lid("H7", 1));
    table(&mut rig.world, "L0")[wrong] = 1; // to host H0
    let junk = table(&mut rig.world, "T0");
    junk.resize(64, 255);
    junk[60] = 2; // a LID that nobody has
    let node = rig.node("T0");
    rig.world.device_mut(node).switch.as_mut().unwrap().info.linear_fdb_top.set(63);
    rig.world.reset_stats();
    rig.sm = attach(&mut rig.world, "H0", SmSettings::default(), Restored::default());
    let report = rig.settle();
    assert!(report.is_complete(), "{:?}", report.failures);
    rig.assert_right();
    assert_eq!(rig.world.stats().sets(), 2, "{:?}", report.sets);
    assert_eq!(table(&mut rig.world, "T0")[60], 255);
    rig.assert_quiet();
}

/// B04: a leaf restarts after its table was written and before its links are raised.
#[test]
fn b04_a_switch_that_restarts_in_the_middle_is_configured_from_scratch() {
    for after_us in (0..2500).step_by(125) {
        let mut rig = Rig::with(&tree(4, 2, 2), Config::default(), SmSettings::default(), |world| {
            let leaf = world.find_name("L2").unwrap();
            world.at(mad::types::Timestamp(after_us * 1000), move |world| {
                world.power_off(leaf);
                world.power_on(leaf);
            });
        });
        rig.run(Duration::from_secs(60));
        assert!(rig.settle().is_complete(), "after {after_us} us: {:?}", rig.last().failures);
        rig.assert_right();
        rig.assert_quiet();
    }
}

#[test]
fn b04_no_link_is_raised_on_a_switch_whose_table_was_not_confirmed() {
    let fault = Quirk::always(Misbehaviour::Silence).on(Method::SET, LFT);
    let mut rig = Rig::with(&tree(4, 2, 2), Config::default(), SmSettings::default(), |world| {
        let leaf = world.find_name("L2").unwrap();
        world.device_mut(leaf).quirks.push(fault);
    });
    let report = rig.settle();
    assert!(report.failures.iter().any(|f| f.contains("\"L2\"") && f.contains("LinearForwardingTable")));
    for (node, port) in [("L2", 1), ("L2", 3), ("T0", 3), ("H4", 1)] {
        assert_ne!(rig.state(node, port), Some(PortState::Active), "{node} {port}");
    }
    for (node, port) in [("L0", 1), ("L0", 3), ("T0", 1), ("H6", 1)] {
        assert_eq!(rig.state(node, port), Some(PortState::Active), "{node} {port}");
    }
    let leaf = rig.node("L2");
    rig.world.device_mut(leaf).quirks.clear();
    rig.run(Duration::from_secs(60));
    assert!(rig.settle().is_complete(), "{:?}", rig.last().failures);
    rig.assert_right();
}

/// A Set whose answer is lost leaves the block unknown: it is written again, whatever it holds (B07).
#[test]
fn a_table_block_whose_set_was_not_answered_is_written_again() {
    let fault = Quirk { times: Some(4), ..Quirk::always(Misbehaviour::Silence).on(Method::SET, LFT) };
    let mut rig = Rig::with(&two_switches(), Config::default(), SmSettings::default(), |world| {
        let switch = world.find_name("S1").unwrap();
        world.device_mut(switch).quirks.push(fault);
    });
    assert!(rig.settle().is_complete(), "{:?}", rig.last().failures);
    assert!(rig.reports().len() > 1, "the first round failed");
    rig.assert_right();
}

/// B29: with another engine every table changes; at no moment do they hold a loop.
#[test]
fn b29_a_change_of_engine_holds_no_loop_at_any_moment() {
    let mut rig = Rig::new(&tree(6, 3, 4));
    rig.settle();
    for engines in [vec!["updn".to_owned()], vec!["minhop".to_owned()]] {
        let mut settings = SmSettings::default();
        settings.plan.engines = engines;
        rig.tell(Event::Settings(Box::new(settings)));
        assert!(rig.settle().is_complete(), "{:?}", rig.last().failures);
        rig.assert_right();
    }
    assert_eq!(rig.world.check().loops, 0);
}

/// What a lost cable moves is told, beside what had to move and what tables from nothing would: as many entries as differ in the
/// switches afterwards.
#[test]
fn entries_that_a_lost_cable_moves_are_told() {
    let mut rig = Rig::new(&tree(6, 3, 4));
    rig.settle();
    assert!(rig.reports().iter().all(|report| report.moved.is_none()), "nothing was known before");
    let names = ["L0", "L1", "L2", "L3", "L4", "L5", "T0", "T1", "T2"];
    let tables = |rig: &mut Rig| names.map(|name| table(&mut rig.world, name).clone());
    let before = tables(&mut rig);
    let end = rig.end("T1", 3);
    rig.world.unlink(end);
    rig.run(Duration::from_secs(15));
    rig.settle();
    rig.assert_right();
    let moved = rig.reports().iter().rev().find_map(|report| report.moved).expect("a plan");
    let after = tables(&mut rig);
    let differing = |(a, b): (&Vec<u8>, &Vec<u8>)| a.iter().zip(b).filter(|(a, b)| a != b).count();
    let by_switch: Vec<usize> = before.iter().zip(&after).map(differing).collect();
    assert_eq!(moved.entries, by_switch.iter().sum::<usize>());
    assert_eq!(moved.switches, by_switch.iter().filter(|count| **count > 0).count());
    // The spine's way to the leaf, its four hosts and itself; the leaf's share of 20 hosts and the spine.
    assert!((5 + 6..=5 + 12).contains(&moved.had_to) && moved.had_to <= moved.entries, "{moved:?}");
    assert_eq!((moved.from_nothing, moved.of), (Some(moved.entries), 33 * 9));
    assert!(moved.entries * 4 < moved.of, "{moved:?}");
}

/// The blocks of 64 entries in which two tables differ.
fn differing_blocks(before: &[u8], after: &[u8]) -> u64 {
    let entry = |table: &[u8], lid: usize| table.get(lid).copied().unwrap_or(255);
    let differs =
        |block: &usize| (64 * block..64 * block + 64).any(|lid| entry(before, lid) != entry(after, lid));
    (0..before.len().max(after.len()).div_ceil(64)).filter(differs).count() as u64
}

/// B30: the number of hosts changes and a spine goes, then comes back as another goes, all found by one sweep. Each switch is written
/// what it shall hold less what it is known to hold, those that were there before as those that came, and one that refused the
/// last time gets what it still lacks.
#[test]
fn b30_hosts_and_a_spine_that_change_in_one_sweep_cost_the_blocks_that_differ() {
    let mut settings = SmSettings::default();
    settings.plan.engines = vec!["ftree".to_owned(), "no_fallback".to_owned()];
    let config = Config { traps: false, ..Config::default() };
    let mut rig = Rig::with(&tree(8, 4, 12), config, settings.clone(), |world| {
        for host in ["H5", "H30", "H31", "H95"] {
            world.power_off(world.find_name(host).unwrap());
        }
    });
    assert!(rig.settle().is_complete(), "{:?}", rig.last().failures);
    let names: Vec<String> = (0..8).map(|i| format!("L{i}")).chain((0..4).map(|i| format!("T{i}"))).collect();
    let changes: [(&[&str], &[&str], Option<&str>); 3] = [
        (&["T1", "H40"], &["H5", "H30"], None),
        (&["T2", "H41", "H42"], &["T1", "H31"], None),
        (&["T3", "H6"], &["T2", "H95"], Some("L2")),
    ];
    for (gone, come, refuses) in changes {
        let tables =
            |rig: &mut Rig| names.iter().map(|name| table(&mut rig.world, name).clone()).collect::<Vec<_>>();
        for name in gone {
            let node = rig.node(name);
            rig.world.power_off(node);
        }
        for name in come {
            let node = rig.node(name);
            rig.world.power_on(node);
        }
        if let Some(name) = refuses {
            let fault = Misbehaviour::Refuse { status: 0x1c, garbage: false };
            let fault = Quirk { times: Some(2), ..Quirk::always(fault).on(Method::SET, LFT) };
            let node = rig.node(name);
            rig.world.device_mut(node).quirks.push(fault);
        }
        let before = tables(&mut rig);
        rig.world.reset_stats();
        let rounds = rig.reports().len();
        rig.tell(Event::SweepRequested);
        rig.settle();
        let report = &rig.reports()[rounds];
        assert_eq!(report.failures.is_empty(), refuses.is_none(), "{:?}", report.failures);
        rig.run(Duration::from_secs(60));
        assert!(rig.settle().is_complete(), "{:?}", rig.last().failures);
        rig.assert_right();
        let after = tables(&mut rig);
        let by_switch =
            names.iter().zip(before.iter().zip(&after)).filter(|(name, _)| !gone.contains(&&name[..]));
        let blocks: u64 = by_switch.map(|(_, (before, after))| differing_blocks(before, after)).sum();
        // What was refused was asked for once more; of what a switch holds that came nothing is confirmed, so it is emptied before it
        // joins the others.
        let again = if refuses.is_some() { 2 } else { 0 };
        let emptied: u64 = come.iter().filter(|name| name.starts_with('T')).count() as u64 * 2;
        assert_eq!(rig.sets(LFT), blocks + again + emptied, "{gone:?} went, {come:?} came");
    }
    // Hosts that are away keep their place with a manager that knows them. When all are back nothing depends on what was there before:
    // who reads it all anew finds it as he would have it.
    for name in ["T3", "H6", "H40", "H41", "H42"] {
        let node = rig.node(name);
        rig.world.power_on(node);
    }
    rig.tell(Event::SweepRequested);
    assert!(rig.settle().is_complete(), "{:?}", rig.last().failures);
    rig.run(Duration::from_secs(60));
    rig.world.detach(rig.sm);
    rig.world.reset_stats();
    rig.sm = attach(&mut rig.world, "H0", settings, Restored::default());
    assert!(rig.settle().is_complete(), "{:?}", rig.last().failures);
    assert_eq!(rig.sets(LFT), 0);
}

/// Like a change of engine, on tori, where a wrong order does make loops, while links come and go.
#[test]
fn b29_links_of_a_ring_come_and_go_without_a_loop() {
    let mut plan = Plan::default();
    let hosts: Vec<_> = (0..8).map(|i| plan.host(&format!("H{i}"), 1)).collect();
    let switches: Vec<_> = (0..8).map(|i| plan.switch(&format!("R{i}"), 4)).collect();
    for i in 0..8 {
        plan.cable(hosts[i], 1, switches[i], 1);
        plan.cable(switches[i], 2, switches[(i + 1) % 8], 3);
    }
    let mut rig = Rig::new(&plan.fabric);
    rig.settle();
    for i in 0..8 {
        let end = rig.end(&format!("R{i}"), 2);
        rig.world.unlink(end);
        rig.run(Duration::from_secs(15));
        rig.settle();
        rig.assert_right();
        rig.world.relink(end);
        rig.run(Duration::from_secs(15));
        assert!(rig.settle().is_complete());
        rig.assert_right();
    }
}
