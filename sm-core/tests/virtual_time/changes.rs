//! What changes after bring-up: only that is read and written, and what comes out is what a walk from nothing gives.

use std::time::Duration;

use mad::types::{Guid, PortState};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use simulations::world::{Config, End};
use sm_core::settings::SmSettings;

use crate::rig::*;

/// Long enough for traps, a look and what follows.
const A_WHILE: Duration = Duration::from_secs(15);

#[test]
fn a_lost_link_between_switches_moves_only_its_routes() {
    let mut rig = Rig::new(&tree(6, 3, 4));
    rig.settle();
    rig.world.reset_stats();
    let end = rig.end("L0", 5);
    rig.world.unlink(end);
    rig.run(A_WHILE);
    rig.settle();
    rig.assert_right();
    assert_eq!(rig.sets(PORT_INFO), 0, "no port is touched");
    assert_eq!(rig.sets(SWITCH_INFO), 2, "PortStateChange of the two ends is cleared");
    let blocks = rig.sets(LFT);
    assert!((1..=9).contains(&blocks), "{blocks} blocks; every table has one");
    assert_eq!(rig.gets(NODE_INFO), 0, "nobody is asked who he is");
    let (read, ends, raised) = (rig.gets(PORT_INFO), 8 + 7, 4);
    assert!(
        (ends + raised..=ends + raised + 5).contains(&read),
        "{read}: the ports of the two ends, the hosts of the leaf whose links were raised since the last look, our own in each and before the plan is applied"
    );
    rig.world.reset_stats();

    rig.world.relink(end);
    rig.run(A_WHILE);
    rig.settle();
    rig.assert_right();
    assert_eq!(rig.sets(PORT_INFO), 4, "ARMED and ACTIVE at both ends");
    assert!(rig.gets(NODE_INFO) <= 2);
    rig.assert_quiet();
}

/// The routes to other switches led over what went; none of them is waited for.
#[test]
fn a_look_does_not_wait_for_answers_over_links_that_went() {
    let one_try = SmSettings::default().transactions.timeout.as_secs_f64();
    let mut rig = Rig::new(&tree(6, 3, 4));
    rig.settle();
    let (uplink, spine) = (rig.end("L0", 5), rig.node("T1"));
    for whole_spine in [false, true] {
        let before = rig.reports().len();
        if whole_spine {
            rig.world.power_off(spine);
        } else {
            rig.world.unlink(uplink);
        }
        rig.run(A_WHILE);
        rig.settle();
        rig.assert_right();
        let mended = rig.reports()[before..].iter().filter(|r| r.sets.contains_key("LinearForwardingTable"));
        let sweeps: Vec<f64> = mended.map(|r| r.seconds.sweep).collect();
        assert!(!sweeps.is_empty() && sweeps.iter().all(|s| *s < one_try), "{sweeps:?} of virtual time");
    }
}

#[test]
fn the_change_is_seen_without_any_trap() {
    let config = Config { traps: false, ..Config::default() };
    let mut rig = Rig::with(&tree(4, 2, 2), config, SmSettings::default(), |_| ());
    rig.settle();
    let end = rig.end("L1", 3);
    rig.world.unlink(end);
    rig.run(Duration::from_secs(11));
    rig.settle();
    rig.assert_right();
    assert_eq!(rig.last().links, 4 * 2 + 8 - 1);
}

#[test]
fn a_spine_that_loses_power_comes_back_with_empty_tables() {
    let mut rig = Rig::new(&tree(4, 2, 2));
    rig.settle();
    let spine = rig.node("T1");
    rig.world.power_off(spine);
    rig.run(A_WHILE);
    rig.settle();
    rig.assert_right();
    assert_eq!(rig.last().switches, 5);
    rig.world.power_on(spine);
    rig.run(A_WHILE);
    assert!(rig.settle().is_complete(), "{:?}", rig.last().failures);
    rig.assert_right();
    assert_eq!(rig.last().switches, 6);
    rig.assert_quiet();
}

/// A switch that restarts so fast that no look falls in between has lost its tables nevertheless (B04).
#[test]
fn b04_a_fast_restart_of_a_switch_is_noticed() {
    for name in ["T0", "L2"] {
        let mut rig = Rig::new(&tree(4, 2, 2));
        rig.settle();
        let switch = rig.node(name);
        rig.world.power_off(switch);
        rig.world.power_on(switch);
        rig.run(A_WHILE);
        assert!(rig.settle().is_complete(), "{name}: {:?}", rig.last().failures);
        rig.assert_right();
        rig.assert_quiet();
    }
}

#[test]
fn a_leaf_that_leaves_takes_its_hosts_and_brings_them_back_with_their_lids() {
    let mut rig = Rig::new(&tree(4, 2, 2));
    rig.settle();
    let before = (rig.lid("H4", 1), rig.lid("H5", 1));
    let leaf = rig.node("L2");
    rig.world.unlink_node(leaf);
    rig.run(A_WHILE);
    rig.settle();
    assert_eq!((rig.last().nodes, rig.last().switches), (14 - 3, 5));
    rig.world.relink_node(leaf);
    rig.run(A_WHILE);
    assert!(rig.settle().is_complete());
    rig.assert_right();
    assert_eq!((rig.lid("H4", 1), rig.lid("H5", 1)), before);
    rig.assert_quiet();
}

#[test]
fn a_host_that_restarts_or_moves_keeps_its_lid() {
    let mut rig = Rig::new(&two_switches());
    rig.settle();
    let lid = rig.lid("H3", 1);
    let host = rig.node("H3");
    rig.world.power_off(host);
    rig.run(A_WHILE);
    rig.world.power_on(host);
    rig.run(A_WHILE);
    rig.settle();
    rig.assert_right();
    assert_eq!(rig.lid("H3", 1), lid);
    let (from, to) = (rig.end("S1", 2), rig.end("S0", 4));
    assert!(rig.world.move_cable(from, to));
    rig.run(A_WHILE);
    rig.settle();
    rig.assert_right();
    assert_eq!(rig.lid("H3", 1), lid);
    assert_eq!(rig.state("S0", 4), Some(PortState::Active));
}

#[test]
fn two_cables_that_are_swapped_are_told_apart() {
    let mut rig = Rig::new(&tree(4, 2, 2));
    rig.settle();
    let (a, b) = (rig.end("L0", 2), rig.end("L3", 2)); // hosts H1 and H7
    assert!(rig.world.swap_cables(a, b));
    rig.run(A_WHILE);
    assert!(rig.settle().is_complete(), "{:?}", rig.last().failures);
    rig.assert_right();
    rig.assert_quiet();
}

#[test]
fn our_own_link_may_go_and_come() {
    let mut rig = Rig::new(&two_switches());
    rig.settle();
    let own = rig.end("H0", 1);
    rig.world.unlink(own);
    rig.run(Duration::from_secs(60));
    assert!(!rig.last().is_complete());
    rig.world.relink(own);
    rig.run(Duration::from_secs(60));
    assert!(rig.settle().is_complete(), "{:?}", rig.last().failures);
    rig.assert_right();
}

#[test]
fn a_second_port_of_a_host_that_is_plugged_in_later_gets_its_own_lid() {
    let mut plan = Plan::default();
    let (h0, h1, s) = (plan.host("H0", 1), plan.host("H1", 2), plan.switch("S0", 4));
    plan.cable(h0, 1, s, 1);
    plan.cable(h1, 1, s, 2);
    let mut rig = Rig::new(&plan.fabric);
    rig.settle();
    let (a, b) = (rig.end("H1", 2), rig.end("S0", 3));
    assert!(rig.world.connect(a, b));
    rig.run(A_WHILE);
    assert!(rig.settle().is_complete(), "{:?}", rig.last().failures);
    rig.assert_right();
    assert!(rig.lid("H1", 2) != 0 && rig.lid("H1", 2) != rig.lid("H1", 1));
    rig.assert_quiet();
}

/// B24: whatever the sequence of changes, what incremental looks end with is what a walk from nothing ends with, so that a
/// full sweep afterwards finds nothing to set; and no mix of tables on the way held a loop.
#[test]
fn b24_looks_end_where_a_walk_from_nothing_ends() {
    let seeds = std::env::var("SEED").ok().and_then(|s| s.parse().ok()).map_or(1..=12, |s: u64| s..=s);
    for seed in seeds {
        println!("SEED={seed}");
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let config = Config { seed, training: Duration::from_millis(50), ..Config::default() };
        let mut rig = Rig::with(&tree(5, 3, 2), config, SmSettings::default(), |_| ());
        rig.settle();
        let own = rig.end("H0", 1);
        let cables: Vec<(End, End)> = rig.world.cables().filter(|(a, b)| *a != own && *b != own).collect();
        for _ in 0..6 {
            for _ in 0..rng.random_range(1..4) {
                let (end, far) = cables[rng.random_range(0..cables.len())];
                match rng.random_range(0..4) {
                    0 => {
                        rig.world.unlink(end);
                    }
                    1 => {
                        rig.world.relink(end);
                    }
                    2 => {
                        rig.world.unlink(end);
                        rig.run(Duration::from_millis(rng.random_range(0..80)));
                        rig.world.relink(end);
                    }
                    _ => {
                        let node = far.node;
                        if rig.world.device(node).guid() != Guid(0x5000) && node != own.node {
                            rig.world.power_off(node);
                            rig.run(Duration::from_millis(rng.random_range(0..200)));
                            rig.world.power_on(node);
                        }
                    }
                }
                rig.run(Duration::from_millis(rng.random_range(0..400)));
            }
            rig.run(Duration::from_secs(40));
            rig.settle();
            let verdict = rig.world.check();
            assert!(verdict.loops == 0, "seed {seed}: {verdict}");
            rig.assert_quiet();
        }
        for (end, _) in &cables {
            rig.world.relink(*end);
        }
        rig.run(Duration::from_secs(60));
        assert!(rig.settle().is_complete(), "seed {seed}: {:?}", rig.last().failures);
        rig.assert_right();
    }
}

/// Losses, duplicates and reordering while the fabric changes; when they end, everything comes right.
#[test]
fn a_bad_hour_leaves_nothing_behind() {
    let seeds = std::env::var("SEED").ok().and_then(|s| s.parse().ok()).map_or(1..=8, |s: u64| s..=s);
    for seed in seeds {
        println!("SEED={seed}");
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let config = Config {
            seed,
            loss: 0.03,
            duplication: 0.02,
            jitter: Duration::from_micros(200),
            training: Duration::from_millis(20),
            ..Config::default()
        };
        let mut rig = Rig::with(&tree(5, 3, 2), config, SmSettings::default(), |_| ());
        let own = rig.end("H0", 1);
        let cables: Vec<(End, End)> = rig.world.cables().filter(|(a, b)| *a != own && *b != own).collect();
        for _ in 0..20 {
            let (end, far) = cables[rng.random_range(0..cables.len())];
            match rng.random_range(0..3) {
                0 => {
                    rig.world.unlink(end);
                }
                1 => {
                    rig.world.relink(end);
                }
                _ => {
                    rig.world.power_off(far.node);
                    rig.run(Duration::from_millis(rng.random_range(0..3000)));
                    rig.world.power_on(far.node);
                }
            }
            rig.run(Duration::from_millis(rng.random_range(0..4000)));
        }
        let config = rig.world.config_mut();
        (config.loss, config.duplication, config.jitter) = (0.0, 0.0, Duration::ZERO);
        for (end, _) in &cables {
            rig.world.relink(*end);
        }
        rig.run(Duration::from_secs(900));
        assert!(rig.settle().is_complete(), "seed {seed}: {:?}", rig.last().failures);
        let verdict = rig.world.check();
        assert!(verdict.findings.is_empty() && verdict.routes.reaches_all(), "seed {seed}: {verdict}");
        rig.assert_quiet();
    }
}
