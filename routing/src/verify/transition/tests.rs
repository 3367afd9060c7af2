use rand::RngExt;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::engines::{MinHop, RoutingEngine, RoutingInput};
use crate::fabric::testing;
use crate::routes::Routes;
use crate::verify::{self, FaultKind, Options};

fn minhop(graph: &SwitchGraph) -> LftMatrix {
    MinHop.route(graph, &RoutingInput::default()).unwrap().lfts
}

fn loops(graph: &SwitchGraph, lfts: &LftMatrix) -> u64 {
    let routes = Routes { lfts: lfts.clone(), ..Routes::empty("test", graph) };
    verify::check(graph, &routes, Options::default()).faults[FaultKind::Loop as usize].1
}

fn holes(graph: &SwitchGraph, lfts: &LftMatrix) -> u64 {
    let routes = Routes { lfts: lfts.clone(), ..Routes::empty("test", graph) };
    verify::check(graph, &routes, Options::default()).faults.iter().map(|(_, count)| count).sum()
}

/// Plays the steps, each in a random order, with `watch` after every single write; returns the writes.
fn play(
    old: &LftMatrix,
    new: &LftMatrix,
    steps: &[Step],
    random: &mut Pcg64Mcg,
    mut watch: impl FnMut(&LftMatrix),
) -> usize {
    let mut now = old.clone();
    let mut count = 0;
    for step in steps {
        let mut writes = step.writes.clone();
        writes.shuffle(random);
        for write in writes {
            let first = usize::from(write.block) * LFT_BLOCK;
            now.row_mut(write.switch)
                .update(|row| row[first..first + LFT_BLOCK].copy_from_slice(&write.content(old, new)));
            count += 1;
            watch(&now);
        }
    }
    assert!(now == *new);
    count
}

/// B29: every state between two Sets is walked; on tori the two tables differ widely and their mixes do hold loops.
#[test]
fn b29_no_moment_of_a_planned_change_holds_a_loop_or_cuts_a_path() {
    let mut random = testing::seeded(29);
    let mut unordered_loops = 0;
    for (dims, lmc) in [(vec![4, 4], 0), (vec![3, 3, 3], 0), (vec![9], 1), (vec![5, 2], 0)] {
        let graph = SwitchGraph::new(&testing::torus(&dims, 2, lmc));
        let old = minhop(&graph);
        let mut input = RoutingInput::default();
        for s in 0..graph.switch_count() as u32 {
            for arc in graph.arcs(s) {
                let weight = random.random_range(1..=5);
                input.hop_weights.insert((graph.guid(s), mad::types::PortNum(arc.out_port)), weight);
            }
        }
        let new = MinHop.route(&graph, &input).unwrap().lfts;
        let change = check(&graph, &old, &new);
        unordered_loops += change.loops.len();
        let steps = plan(&graph, &old, &new);
        let writes = play(&old, &new, &steps, &mut random, |now| {
            assert_eq!(holes(&graph, now), 0);
        });
        assert!(writes >= change.blocks);
    }
    assert!(unordered_loops > 0, "the cases were too tame");
}

#[test]
fn blocks_that_contradict_each_other_are_written_in_rounds() {
    // On a ring of four with one host each: everything turns around for two LIDs in opposite directions.
    let graph = SwitchGraph::new(&testing::torus(&[6], 1, 0));
    let right = |s: u32| (s + 1) % 6;
    let port = |s: u32, to: u32| graph.arcs(s).iter().find(|a| a.to == to).unwrap().out_port;
    let (mut old, mut new) = (minhop(&graph), minhop(&graph));
    let hosts: Vec<_> = graph.destinations().iter().filter(|d| d.host).collect();
    for (turn, host) in [hosts[0], hosts[3]].into_iter().enumerate() {
        for s in (0..6).filter(|s| *s != host.switch) {
            let (clockwise, back) = (port(s, right(s)), port(s, (s + 5) % 6));
            let (a, b) = if turn == 0 { (clockwise, back) } else { (back, clockwise) };
            old.row_mut(s)[host.lid.index()] = a;
            new.row_mut(s)[host.lid.index()] = b;
        }
    }
    assert_eq!(loops(&graph, &old) + loops(&graph, &new), 0);
    assert_eq!(check(&graph, &old, &new).loops.len(), 2);
    let steps = plan(&graph, &old, &new);
    let mut random = Pcg64Mcg::new(1);
    let writes = play(&old, &new, &steps, &mut random, |now| assert_eq!(holes(&graph, now), 0));
    assert!(writes > check(&graph, &old, &new).blocks, "{steps:?}");
}

#[test]
fn from_empty_tables_one_step_is_enough_and_nothing_is_written_twice() {
    let graph = SwitchGraph::new(&testing::fat_tree(&[3, 3], &[1, 3], 0));
    let new = minhop(&graph);
    let old = LftMatrix::new(graph.switch_count(), graph.top_lid());
    let change = check(&graph, &old, &new);
    assert!(change.loops.is_empty());
    let steps = plan(&graph, &old, &new);
    assert_eq!(steps.len(), 1);
    assert_eq!((steps[0].writes.len(), change.blocks, change.switches), (6, 6, 6));
    assert!(plan(&graph, &new, &new).is_empty());
    assert_eq!(check(&graph, &new, &new), Change::default());
}

#[test]
fn a_loop_in_the_new_tables_does_not_keep_the_plan_from_ending() {
    let graph = SwitchGraph::new(&testing::torus(&[4], 1, 0));
    let old = minhop(&graph);
    let mut new = old.clone();
    let host = graph.destinations().iter().find(|d| d.host && d.switch == 0).unwrap();
    let port = |s: u32, to: u32| graph.arcs(s).iter().find(|a| a.to == to).unwrap().out_port;
    new.row_mut(1)[host.lid.index()] = port(1, 2);
    new.row_mut(2)[host.lid.index()] = port(2, 1);
    let steps = plan(&graph, &old, &new);
    play(&old, &new, &steps, &mut Pcg64Mcg::new(2), |_| ());
    assert_eq!(check(&graph, &old, &new).loops, [host.lid.get()]);
}
