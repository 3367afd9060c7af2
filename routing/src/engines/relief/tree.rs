//! The ways that one LID takes through given tables, and the load of all.
//!
//! Cost: one step for each switch and LID.

use rayon::prelude::*;

use super::NONE;
use crate::fabric::{SwitchGraph, SwitchIndex};
use crate::routes::{LFT_BLOCK, LftMatrix, NO_PORT};

/// The ways of one LID.
#[derive(Default)]
pub(super) struct Tree {
    /// The arc on which each switch sends, [`NONE`] at the target and where there is none.
    pub(super) next: Vec<u32>,
    /// Hosts that send through each switch, its own included.
    pub(super) senders: Vec<u64>,
    /// Switches, each before the one that it sends to.
    order: Vec<SwitchIndex>,
    /// Switches that send to each, and are not in order yet.
    before: Vec<u32>,
}

impl Tree {
    pub(super) fn new(count: usize) -> Self {
        Self { next: vec![NONE; count], senders: vec![0; count], order: Vec::new(), before: vec![0; count] }
    }

    /// Follows the entries of one LID.
    pub(super) fn grow(
        &mut self,
        graph: &SwitchGraph,
        entry: impl Fn(SwitchIndex) -> u8,
        target: SwitchIndex,
        (hosts, by_port): (&[u64], &[[u32; 256]]),
    ) {
        let end = |arc: u32| graph.all_arcs()[arc as usize].to as usize;
        self.before.fill(0);
        for s in 0..self.next.len() as SwitchIndex {
            let arc = if s == target { NONE } else { by_port[s as usize][usize::from(entry(s))] };
            self.next[s as usize] = arc;
            if arc != NONE {
                self.before[end(arc)] += 1;
            }
        }
        self.senders.copy_from_slice(hosts);
        self.order.clear();
        self.order.extend((0..self.next.len() as SwitchIndex).filter(|s| self.before[*s as usize] == 0));
        let mut head = 0;
        while let Some(&s) = self.order.get(head) {
            head += 1;
            let arc = self.next[s as usize];
            if arc != NONE {
                let to = end(arc);
                self.senders[to] += self.senders[s as usize];
                self.before[to] -= 1;
                if self.before[to] == 0 {
                    self.order.push(to as SwitchIndex);
                }
            }
        }
    }

    /// A switch and all with hosts behind them that send through it.
    pub(super) fn through(&self, graph: &SwitchGraph, over: SwitchIndex) -> Vec<SwitchIndex> {
        let mut is_through = vec![false; self.next.len()];
        is_through[over as usize] = true;
        for s in self.order.iter().rev().filter(|s| self.next[**s as usize] != NONE) {
            let to = graph.all_arcs()[self.next[*s as usize] as usize].to;
            is_through[*s as usize] |= is_through[to as usize];
        }
        let sends = |s: &SwitchIndex| is_through[*s as usize] && self.senders[*s as usize] > 0;
        (0..self.next.len() as SwitchIndex).filter(sends).collect()
    }
}

/// Routes of hosts over each arc.
pub(super) fn loads(
    graph: &SwitchGraph,
    lfts: &LftMatrix,
    lids: &[(u16, SwitchIndex)],
    known: (&[u64], &[[u32; 256]]),
) -> Vec<u64> {
    let block = |lid: u16| usize::from(lid) / LFT_BLOCK;
    let blocks: Vec<&[(u16, SwitchIndex)]> = lids.chunk_by(|a, b| block(a.0) == block(b.0)).collect();
    let count = graph.switch_count();
    let none = || vec![0; graph.all_arcs().len()];
    let add = |(mut load, mut tree): (Vec<u64>, Tree), lids: &&[(u16, SwitchIndex)]| {
        // One block of all switches fits into a cache.
        let first = block(lids[0].0) * LFT_BLOCK;
        let part = |s| lfts.row(s).block(first / LFT_BLOCK).unwrap_or(&[NO_PORT; LFT_BLOCK]);
        let entries: Vec<u8> = (0..count as SwitchIndex).flat_map(part).copied().collect();
        for (lid, target) in *lids {
            let entry = |s: SwitchIndex| entries[s as usize * LFT_BLOCK + usize::from(*lid) - first];
            tree.grow(graph, entry, *target, known);
            for (arc, senders) in tree.next.iter().zip(&tree.senders).filter(|(arc, _)| **arc != NONE) {
                load[*arc as usize] += senders;
            }
        }
        (load, tree)
    };
    let sum = |mut sum: Vec<u64>, load: Vec<u64>| {
        sum.iter_mut().zip(load).for_each(|(sum, load)| *sum += load);
        sum
    };
    let found = blocks.par_iter().with_min_len(16).fold(|| (none(), Tree::new(count)), add);
    found.map(|(load, _)| load).reduce(none, sum)
}
