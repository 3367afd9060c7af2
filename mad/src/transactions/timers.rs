//! Deadlines of the tries in flight: a heap from which entries of tries that ended are taken lazily.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::types::Timestamp;

/// Stale entries that are tolerated beside as many as there are live ones.
const SLACK: usize = 1024;

/// (deadline, slot, transaction ID), earliest first. Kept so that the first entry is a live one.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Timestamp, u32, u32)>>,
}

impl Timers {
    pub(super) fn set(&mut self, deadline: Timestamp, slot: u32, tid: u32) {
        self.heap.push(Reverse((deadline, slot, tid)));
    }

    /// Takes out the earliest, if its time has come; it may be stale.
    pub(super) fn pop_due(&mut self, now: Timestamp) -> Option<(Timestamp, u32, u32)> {
        let Reverse(first) = *self.heap.peek()?;
        if first.0 > now {
            return None;
        }
        self.heap.pop();
        Some(first)
    }

    pub(super) fn next(&self) -> Option<Timestamp> {
        self.heap.peek().map(|Reverse((deadline, ..))| *deadline)
    }

    /// Drops stale entries: those in front at once, the others when they are more than the live ones and the
    /// slack, which is O(1) for each that became stale.
    pub(super) fn trim(&mut self, live: usize, is_current: impl Fn(Timestamp, u32, u32) -> bool) {
        while let Some(Reverse((deadline, slot, tid))) = self.heap.peek()
            && !is_current(*deadline, *slot, *tid)
        {
            self.heap.pop();
        }
        if self.heap.len() > 2 * live + SLACK {
            self.heap.retain(|Reverse((deadline, slot, tid))| is_current(*deadline, *slot, *tid));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_entries_never_pile_up_nor_hide_the_next_deadline() {
        let mut timers = Timers::default();
        timers.set(Timestamp(5), 1, 1);
        for n in 0..10_000 {
            timers.set(Timestamp(10 + n), 0, n as u32);
            timers.trim(2, |at, _, _| at == Timestamp(10 + n) || at == Timestamp(5));
            assert!(timers.heap.len() <= SLACK + 4);
            assert_eq!(timers.next(), Some(Timestamp(5)));
        }
        timers.trim(1, |at, _, _| at == Timestamp(9_999));
        assert_eq!(timers.next(), Some(Timestamp(9_999)));
        assert_eq!(timers.pop_due(Timestamp(9_998)), None);
        assert_eq!(timers.pop_due(Timestamp(9_999)), Some((Timestamp(9_999), 0, 9_989)));
    }
}
