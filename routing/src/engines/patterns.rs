//! Places of all LIDs among the slots, computed once for the many rows of a tree that deal them alike: the switches of one
//! level share divider and number of slots. Memory: one byte for each LID and kind of row.

use rustc_hash::FxHashMap;

use super::deal::places;
use super::targets::Targets;
use crate::fabric::{SwitchGraph, SwitchIndex};

/// Rows of one kind that make a pattern worth its while.
const WORTH: usize = 4;

/// Divider, shift and number of slots.
type Kind = (u32, u32, usize);

/// Places by LID, for each kind of row.
#[derive(Debug, Default)]
pub(crate) struct Patterns {
    by_kind: FxHashMap<Kind, Vec<u8>>,
}

impl Patterns {
    /// For all kinds of which there are some rows.
    pub(crate) fn new(graph: &SwitchGraph, targets: &Targets) -> Self {
        let mut count: FxHashMap<Kind, usize> = FxHashMap::default();
        for s in 0..graph.switch_count() as SwitchIndex {
            if let Some(kind) = kind(targets, s) {
                *count.entry(kind).or_default() += 1;
            }
        }
        count.retain(|_, rows| *rows >= WORTH);
        let pattern = |(divider, shift, slots): Kind| {
            let mut pattern = vec![0; usize::from(graph.top_lid()) + 1];
            for s in 0..graph.switch_count() as SwitchIndex {
                places(targets.of(s), (divider, shift), slots, |lid, _, place| {
                    pattern[usize::from(lid)] = place as u8;
                });
            }
            pattern
        };
        Self { by_kind: count.into_keys().map(|kind| (kind, pattern(kind))).collect() }
    }

    /// The pattern of a row.
    pub(crate) fn of(&self, targets: &Targets, s: SwitchIndex) -> Option<&[u8]> {
        self.by_kind.get(&kind(targets, s)?).map(Vec::as_slice)
    }
}

fn kind(targets: &Targets, s: SwitchIndex) -> Option<Kind> {
    let slots = targets.slots.of(s).len();
    (1..=256).contains(&slots).then(|| (targets.divider[s as usize], targets.shift(s), slots))
}
