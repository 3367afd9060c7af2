//! Fills the forwarding tables from the best first arcs, spreading the LIDs of every target over them.
//!
//! Of the n choices at switch s for a LID of rank r and LMC offset o, number (⌊r / Π[s]⌋ + o) mod n is taken: no counters,
//! so every entry depends on its own switch and target only, rows are independent. Where all choices are up-links of a
//! regular tree, the number is taken modulo the slots of the tree as it was meant ([`super::slots`]), and only LIDs whose
//! slot is not among the choices are spread by a hash: one failed link changes few entries. Cost: one step an entry.

use rayon::prelude::*;

use super::next_hops::{NextHops, RowChoices, TARGETS};
use super::targets::{Target, Targets};
use crate::fabric::{SwitchGraph, SwitchIndex};
use crate::routes::{LftMatrix, NO_PORT};

/// Fills all rows of `lfts`; entries for which there is no path are left as they are.
pub(crate) fn fill(graph: &SwitchGraph, targets: &Targets, hops: &NextHops, lfts: &mut LftMatrix) {
    fill_narrowed(graph, targets, hops, lfts, &|_, _| ());
}

/// The same with a rule that takes choices away: it is given the switch and its exit ports for some targets.
pub(crate) fn fill_narrowed(
    graph: &SwitchGraph,
    targets: &Targets,
    hops: &NextHops,
    lfts: &mut LftMatrix,
    narrow: &(dyn Fn(SwitchIndex, &mut Vec<u8>) + Sync),
) {
    let stride = lfts.stride();
    lfts.entries_mut().par_chunks_mut(stride).enumerate().for_each(|(s, row)| {
        let mut choices = RowChoices::new(graph, hops, s as u32);
        let digit = (targets.divider[s], targets.shift(s as u32));
        let slots = targets.slots.of(s as u32);
        let (mut ports, mut slot_ports): (Vec<u8>, Vec<u8>) = (Vec::new(), Vec::new());
        let mut last = [0_u64; 4];
        for block in 0..hops.blocks() {
            choices.load(block);
            for bit in 0..TARGETS.min(graph.switch_count() - block * TARGETS) {
                let target = (block * TARGETS + bit) as u32;
                let set = choices.set(bit);
                if set != last {
                    choices.ports_of(&set, &mut ports);
                    narrow(s as u32, &mut ports);
                    usable_slots(slots, &ports, &mut slot_ports);
                    last = set;
                }
                if slot_ports.is_empty() {
                    spread(targets.of(target), digit, &ports, &ports, row);
                } else {
                    spread(targets.of(target), digit, &slot_ports, &ports, row);
                }
            }
        }
        for own in targets.of(s as u32) {
            let first = usize::from(own.lid);
            row[first..first + usize::from(own.lids)].fill(own.port);
        }
    });
}

/// The slots with those taken out that are no choice; empty when a choice has no slot.
fn usable_slots(slots: &[u8], choices: &[u8], usable: &mut Vec<u8>) {
    usable.clear();
    usable.extend(slots.iter().map(|port| if choices.contains(port) { *port } else { NO_PORT }));
    if usable.iter().filter(|port| **port != NO_PORT).count() != choices.len() {
        usable.clear();
    }
}

/// Gives each LID of `targets` one of `slots`, or one of `ports` where the slot is empty.
fn spread(targets: &[Target], (divider, shift): (u32, u32), slots: &[u8], ports: &[u8], row: &mut [u8]) {
    let count = slots.len() as u32;
    if ports.is_empty() {
        return;
    }
    // Ranks on one leaf follow one another, so that division is needed for the first only; no rank follows the first value.
    let (mut rank, mut rest, mut index) = (u32::MAX - 1, 0, 0);
    for target in targets {
        if target.rank == rank.wrapping_add(1) {
            rest += 1;
            if rest == divider {
                rest = 0;
                index = if index + 1 == count { 0 } else { index + 1 };
            }
        } else {
            rest = target.rank % divider;
            index = (target.rank / divider).wrapping_add(shift) % count;
        }
        rank = target.rank;
        let mut slot = index as usize;
        for lid in target.lid..target.lid + target.lids {
            let port = slots[slot];
            row[usize::from(lid)] = if port == NO_PORT { ports[hash(rank, lid) % ports.len()] } else { port };
            slot = if slot + 1 == slots.len() { 0 } else { slot + 1 };
        }
    }
}

/// Spreads what has lost its slot, the same way on every switch.
fn hash(rank: u32, lid: u16) -> usize {
    let mixed = (u64::from(rank) << 16 | u64::from(lid)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 40) as usize
}
