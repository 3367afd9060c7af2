//! That no moment holds a forwarding loop, whatever is late, unread, stale or moved while tables are written.

use std::collections::BTreeMap;
use std::time::Duration;

use mad::wire::Method;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use routing::fabric::Fabric;
use simulations::device::{Misbehaviour, Quirk};
use simulations::scenario::FabricSpec;
use simulations::world::{Config, End, Finding, World};
use sm_core::settings::SmSettings;
use sm_core::store::Restored;

use crate::rig::*;

/// Ten switches with three cables to each other and two hosts each: old and new tables close circles easily.
fn random_regular(seed: u64) -> Fabric {
    FabricSpec::RandomRegular { switches: 10, degree: 3, hosts: 2 }.fabric(seed).unwrap()
}

/// Cables between switches.
fn cables(world: &World) -> Vec<(End, End)> {
    let is_switch = |end: &End| world.device(end.node).is_switch();
    world.cables().filter(|(a, b)| is_switch(a) && is_switch(b)).collect()
}

/// The tables of a manager with a mind of its own: for each LID a tree that is drawn by lot. They are as good as any, and changing
/// them to others takes a second Set of many a block.
fn draw_tables(world: &mut World, seed: u64) {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let links: Vec<(End, End)> = cables(world).into_iter().flat_map(|(a, b)| [(a, b), (b, a)]).collect();
    for node in 0..world.device_count() as u32 {
        let device = world.device(node);
        let Some(lid) = device.ports[usize::from(*device.end_ports().start())].info.lid() else { continue };
        let end = if device.is_switch() { End::new(node, 0) } else { world.peer(End::new(node, 1)).unwrap() };
        let mut exits = BTreeMap::from([(end.node, end.port.0)]);
        loop {
            let next =
                links.iter().filter(|(a, b)| exits.contains_key(&a.node) && !exits.contains_key(&b.node));
            let next: Vec<End> = next.map(|(_, b)| *b).collect();
            if next.is_empty() {
                break;
            }
            let grown = next[rng.random_range(0..next.len())];
            exits.insert(grown.node, grown.port.0);
        }
        for (switch, exit) in exits {
            let tables = world.device_mut(switch).switch.as_mut().unwrap();
            tables.lft[usize::from(lid.get())] = exit;
        }
    }
}

/// A fabric in service with drawn tables, and no manager.
fn left_behind(seed: u64) -> Rig {
    let mut rig =
        Rig::with(&random_regular(seed), Config { seed, ..Config::default() }, SmSettings::default(), |_| ());
    rig.settle();
    rig.world.detach(rig.sm);
    draw_tables(&mut rig.world, seed);
    rig.world.reset_stats();
    rig
}

#[track_caller]
fn assert_no_loop(world: &World, seed: u64) {
    let (loops, count) = world.loops();
    assert_eq!(count, 0, "seed {seed}: {loops:?}");
}

/// Packets are held up for up to 300 ms, longer than a request waits, while a manager takes over: Sets are repeated, and copies of
/// them arrive after later ones of the same block. What a late copy puts back would stay for ever.
#[test]
fn b29_copies_of_sets_that_arrive_late_undo_nothing() {
    for seed in 1..=20 {
        let mut rig = left_behind(seed);
        rig.world.config_mut().jitter = Duration::from_millis(300);
        rig.sm = attach(&mut rig.world, "H0", SmSettings::default(), Restored::default());
        rig.run(Duration::from_secs(60));
        rig.world.config_mut().jitter = Duration::ZERO;
        rig.run(Duration::from_secs(60));
        rig.settle();
        assert_no_loop(&rig.world, seed);
        rig.assert_right();
        assert!(rig.sets(LFT) > 10, "seed {seed}: some block was to be written twice");
    }
}

/// A manager takes over a fabric in service, in which two cables were exchanged, and can't read the table of one switch, each in turn:
/// what that holds makes no circle with what the others hold or get, over the links that are raised or elsewhere.
#[test]
fn b29_a_table_that_can_not_be_read_makes_no_loop() {
    for seed in 1..=4 {
        for unread in 0..10 {
            let mut rig = left_behind(seed);
            let switch = rig.node(&format!("S{unread}"));
            let hidden =
                Quirk { times: Some(8), ..Quirk::always(Misbehaviour::Silence).on(Method::GET, LFT) };
            rig.world.device_mut(switch).quirks.push(hidden);
            let cables = cables(&rig.world);
            rig.world.swap_cables(cables[seed as usize].0, cables[seed as usize + 6].0);
            rig.sm = attach(&mut rig.world, "H0", SmSettings::default(), Restored::default());
            rig.run(Duration::from_secs(60));
            rig.settle();
            assert_no_loop(&rig.world, seed);
            rig.assert_right();
        }
    }
}

/// All cables were pulled and plugged in again while there was no manager: nothing is in service, and the tables are those of another
/// one. They are written before the links come up, and no old entry comes back afterwards.
#[test]
fn b29_tables_of_a_fabric_that_fell_idle_are_replaced_once() {
    for seed in 1..=20 {
        let mut rig = left_behind(seed);
        for node in 0..rig.world.device_count() as u32 {
            if rig.world.device(node).is_switch() {
                rig.world.unlink_node(node);
            }
        }
        for node in 0..rig.world.device_count() as u32 {
            rig.world.relink_node(node);
        }
        rig.sm = attach(&mut rig.world, "H0", SmSettings::default(), Restored::default());
        rig.settle();
        assert_no_loop(&rig.world, seed);
        rig.assert_right();
        assert!(rig.sets(LFT) <= 10, "seed {seed}: {} Sets of ten blocks", rig.sets(LFT));
    }
}

/// A manager that looks at the fabric for long has nothing to set but ports, and two cables are exchanged meanwhile: a Set by the old
/// routes would give a switch or a host the LID of another.
#[test]
fn b01_a_set_of_a_port_does_not_follow_a_cable_that_was_moved_in_a_long_sweep() {
    for seed in 1..=4 {
        for after_ms in (100..1600).step_by(300) {
            let slow = Config { seed, response_time: Duration::from_millis(20), ..Config::default() };
            let mut rig = Rig::with(&random_regular(seed), slow, SmSettings::default(), |_| ());
            rig.settle();
            rig.world.detach(rig.sm);
            let mut settings = SmSettings::default();
            settings.plan.subnet_timeout = 17; // so that every port is to be set
            rig.sm = attach(&mut rig.world, "H0", settings, Restored::default());
            let cables = cables(&rig.world);
            rig.run(Duration::from_millis(after_ms));
            let (a, b) = (cables[seed as usize].0, cables[seed as usize + 5].0);
            rig.world.swap_cables(a, b);
            for _ in 0..1_000 {
                rig.run(Duration::from_millis(10));
                let shared =
                    rig.world.check_ports().into_iter().find(|f| matches!(f, Finding::SharedLid(..)));
                assert_eq!(shared, None, "seed {seed}, exchanged after {after_ms} ms");
            }
            rig.run(Duration::from_secs(20));
            rig.settle();
            assert_no_loop(&rig.world, seed);
            rig.assert_right();
        }
    }
}
