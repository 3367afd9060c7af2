//! How many table entries a plan changes, beside how many it had to, and how many tables from nothing would.
//!
//! Cost: a comparison of the rows that are not shared with those in force.

use rayon::prelude::*;
use routing::fabric::{SwitchGraph, SwitchIndex};
use routing::routes::{LftMatrix, NO_PORT, Routes};
use serde::Serialize;

use super::balance;

/// What is to be written to forwarding tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Moved {
    /// Entries that differ from those that the switches hold.
    pub entries: usize,
    /// Of these, entries whose exit is gone: they have to change, whatever the engine.
    pub had_to: usize,
    /// Entries that would differ if nothing were known but the fabric; `None` where the engine goes from the tables in force and
    /// nobody has computed others. The tables of all other engines depend on nothing but the fabric (B24), so that this is
    /// the number of entries, with less to be computed.
    pub from_nothing: Option<usize>,
    /// Entries that a fabric of this size has: LIDs times switches.
    pub of: usize,
    /// Blocks of 64 entries to be written.
    pub blocks: usize,
    /// Switches to be written to.
    pub switches: usize,
}

impl Moved {
    fn with(self, other: Self) -> Self {
        Self {
            entries: self.entries + other.entries,
            had_to: self.had_to + other.had_to,
            blocks: self.blocks + other.blocks,
            switches: self.switches + other.switches,
            ..self
        }
    }
}

/// Counts what differs between tables of the same form.
pub(super) fn count(graph: &SwitchGraph, old: &LftMatrix, routes: &Routes) -> Moved {
    let new = &routes.lfts;
    let mut ends = vec![[0_u64; 4]; graph.switch_count()];
    for d in graph.destinations() {
        ends[d.switch as usize][usize::from(d.port) / 64] |= 1 << (d.port % 64);
    }
    let of_switch = |s: SwitchIndex| {
        let mut live = ends[s as usize];
        let arcs = graph.arcs(s).iter().map(|arc| arc.out_port);
        arcs.chain([NO_PORT]).for_each(|port| live[usize::from(port) / 64] |= 1 << (port % 64));
        let is_live = |port: u8| live[usize::from(port) / 64] >> (port % 64) & 1 == 1;
        let mut found = Moved::default();
        for block in new.differing_blocks(s, old) {
            let [before, after] = [old, new].map(|tables| tables.row(s).block(block).into_iter().flatten());
            let pairs = before.zip(after);
            for (before, _) in pairs.filter(|(before, after)| before != after) {
                found.entries += 1;
                found.had_to += usize::from(!is_live(*before));
            }
            found.blocks += 1;
        }
        found.switches = usize::from(found.blocks > 0);
        found
    };
    let switches = (0..graph.switch_count() as SwitchIndex).into_par_iter();
    let moved = switches.map(of_switch).reduce(Moved::default, Moved::with);
    let lids: usize = graph.destinations().iter().map(|d| d.lids().count()).sum();
    let follows = routes.engine == balance::ENGINE;
    Moved { from_nothing: (!follows).then_some(moved.entries), of: lids * graph.switch_count(), ..moved }
}
