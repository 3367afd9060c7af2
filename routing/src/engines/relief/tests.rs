use rand::seq::IndexedRandom;

use super::*;
use crate::engines::standing::maker;
use crate::engines::testing::check_all;
use crate::engines::{RoutingInput, by_name};
use crate::fabric::{Fabric, testing};
use crate::verify::{self, Options};

/// A tree less every so many-th of its cables.
fn with_gaps(m: &[usize], w: &[usize], lost: usize, seed: u128) -> Fabric {
    let whole = testing::fat_tree(m, w, 0);
    let mut random = testing::seeded(seed);
    let links = testing::between_switches(&whole);
    testing::without(&whole, links.sample(&mut random, links.len() / lost))
}

/// Tables stay right, as short as they were, and the fullest link has much less than dealing without counters gives it.
#[test]
fn trees_with_many_gaps_have_no_link_twice_as_full_as_it_must_be() {
    let input = RoutingInput::default();
    let (mut before, mut after) = (0, 0);
    for (number, (m, w)) in [(&[6, 12][..], &[1, 6][..]), (&[4, 6, 5], &[1, 4, 3]), (&[4, 4, 4], &[1, 4, 4])]
        .into_iter()
        .cycle()
        .take(12)
        .enumerate()
    {
        let fabric = with_gaps(m, w, 5 + number % 4, number as u128);
        let graph = SwitchGraph::new(&fabric);
        for engine in ["minhop", "updn"] {
            let basis = maker(engine).unwrap()(&graph, &input, None).unwrap();
            let dealt = verify::check(&graph, &basis.dealt(engine, &graph), Options::default());
            // Shortest paths may close a loop on such a tree.
            let relieved = match engine {
                "minhop" => verify::check(&graph, &basis.routes(engine, &graph), Options::default()),
                _ => check_all(by_name(engine).unwrap(), &graph, &input),
            };
            assert_eq!(relieved.faults, dealt.faults, "{engine}, {m:?}, seed {number}");
            println!("{engine}, {m:?}, seed {number}: {} then {}", dealt.balance.max, relieved.balance.max);
            assert!(relieved.balance.max <= dealt.balance.max, "{engine}, {m:?}, seed {number}");
            assert_eq!(relieved.hops.detours, dealt.hops.detours, "{engine}, {m:?}, seed {number}");
            (before, after) = (before + dealt.balance.max, after + relieved.balance.max);
        }
    }
    assert!(4 * after <= 3 * before, "{before} without, {after} with relief");
}

/// With a few gaps nothing moves but what was dealt.
#[test]
fn trees_with_few_gaps_are_left_as_they_were_dealt() {
    let input = RoutingInput::default();
    let graph = SwitchGraph::new(&with_gaps(&[6, 12], &[1, 6], 30, 1));
    for engine in ["minhop", "updn", "dnup", "ftree"] {
        let basis = maker(engine).unwrap()(&graph, &input, None).unwrap();
        assert!(basis.dealt(engine, &graph) == basis.routes(engine, &graph), "{engine}");
    }
}
