//! Shortest paths after lost links: the trees that used one are mended, all others stay.
//!
//! Below a lost link a switch keeps its arc whenever that still leads nearer; else it takes, nearest first, the arc whose way
//! has the least load by the routes of all, those with it that the orphans before it will put there: else all would go one way. So
//! as few entries move as minimal paths allow. Ports are taken in the order in which they were routed at first, and the load begins
//! as that of the tables from before, less what the port at hand had lost.
//!
//! `lash` joins its trees so too.
//!
//! Cost: for each LID over a lost link the links of the switches below it, each with a walk to the target.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::price;
use crate::engines::RoutingInput;
use crate::engines::apart::Siblings;
use crate::engines::orphans::{Cut, NONE, Tree};
use crate::engines::targets::one_by_one;
use crate::fabric::SwitchIndex;
use crate::routes::LftMatrix;

/// Mends `lfts`, the tables from before; `load` by the arcs of the graph that is left. The LIDs over a lost link, each with the
/// switches whose ways to it are others now.
pub(super) fn regrow(
    cut: &Cut<'_>,
    input: &RoutingInput,
    lfts: &mut LftMatrix,
    load: &mut [u64],
) -> Vec<(u16, Vec<SwitchIndex>)> {
    let mut changed = Vec::new();
    let mut tree = Tree::new(cut);
    let mut siblings = Siblings::new(cut.graph);
    let mut hops = vec![NONE; cut.graph.switch_count()];
    for d in one_by_one(cut.graph, input) {
        let lids = cut.lids_of(d);
        if lids.is_empty() {
            continue;
        }
        if d.host {
            for lid in &lids {
                tree.begin(d, *lid);
                cut.take_back(*lid, &tree.orphans, load);
            }
        }
        tree.begin_siblings(d, |lid| !cut.is_cut(lid), &mut siblings);
        for lid in lids {
            tree.begin(d, lid);
            if d.lmc > 0 {
                tree.fill();
            }
            join(cut, &mut tree, &mut siblings, (&mut hops, load));
            if d.host {
                tree.add_load(load);
            }
            if d.lmc > 0 {
                siblings.push(&tree.next);
            }
            tree.entries().for_each(|(s, port)| lfts.row_mut(s)[usize::from(lid)] = port);
            changed.push((lid, tree.orphans.clone()));
        }
    }
    changed
}

/// Joins the orphans of a tree, nearest first; `hops` is [`NONE`] everywhere before and after.
pub(in crate::engines) fn join(
    cut: &Cut<'_>,
    tree: &mut Tree<'_>,
    siblings: &mut Siblings,
    (hops, load): (&mut [u32], &mut [u64]),
) {
    let graph = cut.graph;
    let order = measure(cut, tree, hops);
    let mut counted = Vec::new();
    for s in &order {
        let nearer = hops[*s as usize] - 1;
        let leads_nearer = |tree: &mut Tree<'_>, arc: u32| {
            let to = graph.all_arcs()[arc as usize].to;
            nearer == if tree.is_orphan(to) { hops[to as usize] } else { tree.kept_hops(to) }
        };
        let old = tree.old_arc(*s);
        if old != NONE && leads_nearer(tree, old) {
            tree.next[*s as usize] = old;
            continue;
        }
        let alone = siblings.is_empty();
        if !alone {
            siblings.look_from(Some(*s));
        }
        let mut best = (u64::MAX, u64::MAX, NONE);
        for arc in graph.arc_range(*s) {
            if leads_nearer(tree, arc) {
                let mut cost = price(load[arc as usize]);
                tree.way(graph.all_arcs()[arc as usize].to, |arc| {
                    cost = cost.saturating_add(price(load[arc as usize]));
                });
                let shared = if alone { 0 } else { siblings.shared(arc, &tree.next) };
                best = best.min((shared, cost, arc));
            }
        }
        tree.next[*s as usize] = best.2;
        let senders = tree.senders(*s);
        tree.way(*s, |arc| {
            load[arc as usize] += senders;
            counted.push((arc, senders));
        });
    }
    counted.into_iter().for_each(|(arc, senders)| load[arc as usize] -= senders);
    order.iter().for_each(|s| hops[*s as usize] = NONE);
}

/// The orphans that can be joined in order of their hops, which are written down.
fn measure(cut: &Cut<'_>, tree: &mut Tree<'_>, hops: &mut [u32]) -> Vec<SwitchIndex> {
    let mut heap = BinaryHeap::new();
    for number in 0..tree.orphans.len() {
        let s = tree.orphans[number];
        for arc in cut.graph.arcs(s) {
            if !tree.is_orphan(arc.to) && tree.is_joined(arc.to) {
                heap.push(Reverse((tree.kept_hops(arc.to) + 1, s)));
            }
        }
    }
    let mut order = Vec::with_capacity(tree.orphans.len());
    while let Some(Reverse((far, s))) = heap.pop() {
        if hops[s as usize] != NONE {
            continue;
        }
        hops[s as usize] = far;
        order.push(s);
        for arc in cut.graph.arcs(s) {
            if tree.is_orphan(arc.to) && hops[arc.to as usize] == NONE {
                heap.push(Reverse((far + 1, arc.to)));
            }
        }
    }
    order
}
