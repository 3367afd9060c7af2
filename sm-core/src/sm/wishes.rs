//! What events ask for while something else is under way.
//!
//! A wish carries the number of the event that made it. A round remembers the number at which it began and clears only
//! wishes that are not younger (B60): what came later gets a round of its own. However many events come, there is one mark
//! of each kind (B65), and a round that has begun is brought to its end (B11).

use std::collections::BTreeSet;

use mad::types::Lid;

/// More named LIDs than these at once are as good as a full sweep.
const MAX_LIDS: usize = 4096;

/// When a wish was made; later ones are greater.
pub(super) type Generation = u64;

/// The marks.
#[derive(Debug, Default)]
pub(super) struct Wishes {
    now: Generation,
    full: Option<Generation>,
    look: Option<Generation>,
    replan: Option<Generation>,
    /// Ports whose NodeDescription has changed, by LID (B12).
    renamed: BTreeSet<Lid>,
    /// Ports whose capabilities may have changed, by LID.
    doubtful: BTreeSet<Lid>,
}

impl Wishes {
    /// A new number; everything asked for so far is older.
    pub(super) const fn begin(&mut self) -> Generation {
        let began = self.now;
        self.now += 1;
        began
    }

    pub(super) const fn full(&mut self) {
        self.full = Some(self.now);
    }

    pub(super) const fn look(&mut self) {
        self.look = Some(self.now);
    }

    pub(super) const fn replan(&mut self) {
        self.replan = Some(self.now);
    }

    pub(super) fn renamed(&mut self, lid: Lid) {
        if self.renamed.len() < MAX_LIDS {
            self.renamed.insert(lid);
        }
    }

    pub(super) fn doubtful(&mut self, lid: Lid) {
        if self.doubtful.len() < MAX_LIDS {
            self.doubtful.insert(lid);
            self.look();
        } else {
            self.full();
        }
    }

    pub(super) const fn wants_full(&self) -> bool {
        self.full.is_some()
    }

    pub(super) const fn wants_look(&self) -> bool {
        self.look.is_some()
    }

    pub(super) const fn wants_replan(&self) -> bool {
        self.replan.is_some()
    }

    /// A full sweep that began at `began` is over: it answers everything that was asked for before.
    pub(super) fn full_done(&mut self, began: Generation) {
        self.full = self.full.filter(|wish| *wish > began);
        self.look_done(began);
    }

    /// The same for a look.
    pub(super) fn look_done(&mut self, began: Generation) {
        self.look = self.look.filter(|wish| *wish > began);
    }

    /// The same for a plan.
    pub(super) fn plan_done(&mut self, began: Generation) {
        self.replan = self.replan.filter(|wish| *wish > began);
    }

    pub(super) fn take_renamed(&mut self) -> BTreeSet<Lid> {
        std::mem::take(&mut self.renamed)
    }

    pub(super) fn take_doubtful(&mut self) -> BTreeSet<Lid> {
        std::mem::take(&mut self.doubtful)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b60_a_round_clears_only_what_was_wished_before_it_began() {
        let mut wishes = Wishes::default();
        wishes.full();
        let began = wishes.begin();
        wishes.full();
        wishes.full_done(began);
        assert!(wishes.wants_full(), "made during the round");
        let began = wishes.begin();
        wishes.full_done(began);
        assert!(!wishes.wants_full());
    }

    #[test]
    fn b65_marks_are_bounded_whatever_comes() {
        let mut wishes = Wishes::default();
        for raw in 1..=0xbfff {
            let lid = Lid::new(raw).unwrap();
            wishes.renamed(lid);
            wishes.doubtful(lid);
        }
        assert!(wishes.take_renamed().len() <= MAX_LIDS && wishes.take_doubtful().len() <= MAX_LIDS);
        assert!(wishes.wants_full(), "what could not be marked is found by a full sweep");
    }
}
