//! Constant load: every step keeps to its share, and the moves end. Seeds are printed.

use rand::RngExt;
use rand::seq::IndexedRandom;
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::engines::{MinHop, RoutingEngine, RoutingInput};
use crate::fabric::testing;
use crate::routes::Routes;
use crate::study::traffic::{self, Flow, Pattern};
use crate::verify::{self, Options};

fn random() -> Pcg64Mcg {
    testing::seeded(11)
}

/// A fabric with `minhop`'s tables, and few heavy flows among many light ones.
fn loaded(fabric: &crate::fabric::Fabric, random: &mut Pcg64Mcg) -> (SwitchGraph, Routes, Vec<Flow>) {
    let graph = SwitchGraph::new(fabric);
    let routes = MinHop.route(&graph, &RoutingInput::default()).unwrap();
    let hosts: Vec<u32> =
        (0..graph.destinations().len() as u32).filter(|i| graph.destinations()[*i as usize].host).collect();
    let flow = |random: &mut Pcg64Mcg, weight| loop {
        let (source, destination) = (*hosts.choose(random).unwrap(), *hosts.choose(random).unwrap());
        if source != destination {
            return Flow { source, destination, weight };
        }
    };
    let flows = (0..hosts.len() * 4).map(|i| {
        let weight = if i % 8 == 0 { random.random_range(50..200) } else { random.random_range(1..10) };
        flow(random, weight)
    });
    let flows = flows.collect();
    (graph, routes, flows)
}

fn fabrics(random: &mut Pcg64Mcg) -> Vec<crate::fabric::Fabric> {
    vec![
        testing::fat_tree(&[6, 6], &[1, 6], 0),
        testing::fat_tree(&[3, 4, 3], &[1, 3, 4], 0),
        testing::torus(&[4, 4], 2, 0),
        testing::random(16, 5, 3, random),
    ]
}

fn worst_and_squares(links: &[u64]) -> (u64, u128) {
    (links.iter().copied().max().unwrap_or(0), links.iter().map(|l| u128::from(*l).pow(2)).sum())
}

#[test]
fn flows_that_stay_are_spread_in_bounded_steps_that_end() {
    let mut random = random();
    for fabric in fabrics(&mut random) {
        let (graph, mut routes, flows) = loaded(&fabric, &mut random);
        let settings = Settings { share: 0.01, hysteresis: 0.1 };
        let hosts = graph.destinations().iter().filter(|d| d.host).count();
        let bound = (hosts * graph.switch_count() / 100).max(1);
        let (load, pattern) = (Load::Flows(flows.clone()), Pattern::Flows(flows));
        let mut damping = Damping::default();
        let first = worst_and_squares(&traffic::run(&graph, &routes.lfts, &pattern).links);
        let mut last = first;
        let mut steps = 0;
        loop {
            let done = step(&graph, &routes.lfts, &load, settings, &mut damping);
            let changed = verify::transition::check(&graph, &routes.lfts, &done.lfts);
            assert!(done.moved <= bound && changed.entries <= done.moved, "{} {changed:?}", done.moved);
            assert!(changed.loops.is_empty());
            let now = worst_and_squares(&traffic::run(&graph, &done.lfts, &pattern).links);
            assert_eq!(done.worst, (last.0, now.0), "what was expected comes true");
            if done.moved == 0 {
                break;
            }
            assert!(now.1 < last.1, "each step lowers the sum of squares");
            (routes.lfts, last) = (done.lfts, now);
            steps += 1;
            assert!(steps < 500);
        }
        assert!(steps > 1 && last.0 < first.0, "{steps} steps, worst load {} to {}", first.0, last.0);
        let report = verify::check(&graph, &routes, Options::default());
        assert!(report.reaches_all() && report.hops.detours == 0, "{report}");
        assert_eq!(step(&graph, &routes.lfts, &load, settings, &mut damping).moved, 0, "it stays at rest");
    }
}

/// Counters do not say for whom the traffic was, so predictions are wrong; still nothing goes back and forth for ever.
#[test]
fn counters_of_a_constant_load_lead_to_rest() {
    let mut random = random();
    for fabric in fabrics(&mut random) {
        let (graph, mut routes, flows) = loaded(&fabric, &mut random);
        let pattern = Pattern::Flows(flows);
        let settings = Settings { share: 0.01, hysteresis: 0.1 };
        let mut damping = Damping::default();
        let mut moves: BTreeMap<(u32, usize), u32> = BTreeMap::new();
        let mut steps = 0;
        loop {
            let links = traffic::run(&graph, &routes.lfts, &pattern).links;
            let switches = 0..graph.switch_count() as u32;
            let arcs = switches.flat_map(|s| graph.arcs(s).iter().map(move |arc| (s, arc.out_port)));
            let counters =
                arcs.zip(&links).map(|((s, port), load)| ((graph.guid(s), mad::types::PortNum(port)), *load));
            let load = Load::Counters(counters.collect());
            let done = step(&graph, &routes.lfts, &load, settings, &mut damping);
            if done.moved == 0 {
                break;
            }
            for s in 0..graph.switch_count() as u32 {
                let differs = |lid: &usize| routes.lfts.row(s)[*lid] != done.lfts.row(s)[*lid];
                (0..routes.lfts.stride())
                    .filter(differs)
                    .for_each(|lid| *moves.entry((s, lid)).or_default() += 1);
            }
            routes.lfts = done.lfts;
            steps += 1;
            assert!(steps < 2000, "no rest after {steps} steps");
        }
        // Gains of 0.1, 0.2, 0.4 and 0.8 of what is taken away; more there is not.
        assert!(moves.values().all(|count| *count <= 4), "{moves:?}");
        assert!(!moves.is_empty());
    }
}

/// Three hosts on each of two leaves, two spines; the first leaf sends to the LIDs 4, 5 and 6 of the other.
#[test]
fn a_gain_within_the_hysteresis_moves_nothing() {
    let graph = SwitchGraph::new(&testing::fat_tree(&[3, 2], &[1, 2], 0));
    let mut tables = MinHop.route(&graph, &RoutingInput::default()).unwrap().lfts;
    let up: Vec<u8> = graph.arcs(0).iter().map(|arc| arc.out_port).collect();
    tables.row_mut(0).update(|row| row[4..7].copy_from_slice(&[up[0], up[0], up[1]]));
    let step_with = |weights: [u32; 3]| {
        let flows = (0..3).map(|i| Flow { source: i, destination: i + 3, weight: weights[i as usize] });
        step(&graph, &tables, &Load::Flows(flows.collect()), Settings::default(), &mut Damping::default())
    };
    // 12 and 9: moving 2 takes 44 from the squares of one link and adds 40 to the other, a gain of 0.09.
    let rest = step_with([2, 10, 9]);
    assert_eq!((rest.moved, rest.worst, &rest.lfts), (0, (12, 12), &tables));
    // 12 and 8: 44 and 36.
    let done = step_with([2, 10, 8]);
    assert_eq!((done.moved, done.worst, done.lfts.row(0)[4]), (1, (12, 10), up[1]));
}

#[test]
fn damping_is_forgotten_a_move_at_a_time() {
    let mut damping = Damping::default();
    let (switch, lid) = (Guid(1), 5);
    assert!((damping.threshold(switch, lid, 0.1) - 0.1).abs() < 1e-12);
    damping.moved(switch, lid);
    damping.moved(switch, lid);
    assert!((damping.threshold(switch, lid, 0.1) - 0.4).abs() < 1e-12);
    damping.ease();
    assert!((damping.threshold(switch, lid, 0.1) - 0.2).abs() < 1e-12);
    damping.ease();
    assert_eq!(damping, Damping::default());
}
