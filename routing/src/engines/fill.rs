//! Fills the forwarding tables from the best first arcs, spreading the LIDs of every target over them.
//!
//! Of the n choices at switch s for a LID of rank r and LMC offset o, number (⌊r / Π[s]⌋ + o) mod n is taken: no counters,
//! so every entry depends on its own switch and target only, rows are independent, and one failed link changes few.
//! Cost: one step for each entry.

use rayon::prelude::*;

use super::next_hops::{NextHops, RowChoices, TARGETS};
use super::targets::{Target, Targets};
use crate::fabric::SwitchGraph;
use crate::routes::LftMatrix;

/// Fills all rows of `lfts`; entries for which there is no path are left as they are.
pub(crate) fn fill(graph: &SwitchGraph, targets: &Targets, hops: &NextHops, lfts: &mut LftMatrix) {
    let stride = lfts.stride();
    lfts.entries_mut().par_chunks_mut(stride).enumerate().for_each(|(s, row)| {
        let mut choices = RowChoices::new(graph, hops, s as u32);
        let divider = targets.divider[s];
        let mut ports: Vec<u8> = Vec::new();
        let mut last = [0_u64; 4];
        for block in 0..hops.blocks() {
            choices.load(block);
            for bit in 0..TARGETS.min(graph.switch_count() - block * TARGETS) {
                let target = (block * TARGETS + bit) as u32;
                let set = choices.set(bit);
                if set != last {
                    choices.ports_of(&set, &mut ports);
                    last = set;
                }
                spread(targets.of(target), divider, &ports, row);
            }
        }
        for own in targets.of(s as u32) {
            let first = usize::from(own.lid);
            row[first..first + usize::from(own.lids)].fill(own.port);
        }
    });
}

/// Gives each LID of `targets` one of `ports`.
fn spread(targets: &[Target], divider: u32, ports: &[u8], row: &mut [u8]) {
    let count = ports.len() as u32;
    if count == 0 {
        return;
    }
    // Ranks on one leaf follow one another, so that division is needed for the first only.
    let (mut rank, mut rest, mut index) = (u32::MAX, 0, 0);
    for target in targets {
        if target.rank == rank.wrapping_add(1) {
            rest += 1;
            if rest == divider {
                rest = 0;
                index = if index + 1 == count { 0 } else { index + 1 };
            }
        } else {
            rest = target.rank % divider;
            index = target.rank / divider % count;
        }
        rank = target.rank;
        let mut port = index as usize;
        for lid in target.lid..target.lid + target.lids {
            row[usize::from(lid)] = ports[port];
            port = if port + 1 == ports.len() { 0 } else { port + 1 };
        }
    }
}
