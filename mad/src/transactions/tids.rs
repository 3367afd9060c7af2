//! Transaction IDs: given out in order, never 0, never one that is in use (B09); and a memory of those that
//! ended, which tells late answers from repeated ones.

use rustc_hash::FxHashMap;

/// How many ended IDs are remembered; a power of two. Being consecutive they fill the table evenly.
const REMEMBERED: usize = 1 << 16;

/// How a transaction ended, as far as further answers are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// By an answer.
    Answered,
    /// Otherwise.
    Unanswered,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    /// In use, at this slot.
    Live(u32),
    Ended(Ended),
    Unknown,
}

#[derive(Debug)]
pub(super) struct Tids {
    next: u32,
    live: FxHashMap<u32, u32>,
    /// At the place that an ID's lower bits name: the ID times two, plus 1 for answered.
    ended: Vec<u64>,
}

impl Tids {
    pub(super) fn new(first: u32) -> Self {
        Self { next: first, live: FxHashMap::default(), ended: vec![0; REMEMBERED] }
    }

    /// The next free ID, from now on that of `slot`.
    pub(super) fn assign(&mut self, slot: u32) -> u32 {
        loop {
            let tid = self.next;
            self.next = self.next.wrapping_add(1);
            if tid != 0
                && let std::collections::hash_map::Entry::Vacant(place) = self.live.entry(tid)
            {
                place.insert(slot);
                return tid;
            }
        }
    }

    pub(super) fn end(&mut self, tid: u32, ended: Ended) {
        self.live.remove(&tid);
        self.ended[tid as usize % REMEMBERED] = u64::from(tid) << 1 | u64::from(ended == Ended::Answered);
    }

    pub(super) fn look_up(&self, tid: u32) -> Lookup {
        if let Some(slot) = self.live.get(&tid) {
            return Lookup::Live(*slot);
        }
        let remembered = self.ended[tid as usize % REMEMBERED];
        if tid == 0 || remembered >> 1 != u64::from(tid) {
            Lookup::Unknown
        } else if remembered & 1 == 1 {
            Lookup::Ended(Ended::Answered)
        } else {
            Lookup::Ended(Ended::Unanswered)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B09: the wrap is invisible, 0 is left out, an ID in use is left out.
    #[test]
    fn b09_ids_wrap_past_zero_and_past_those_in_use() {
        let mut tids = Tids::new(0x7fff_fffe);
        assert_eq!([tids.assign(0), tids.assign(1), tids.assign(2)], [0x7fff_fffe, 0x7fff_ffff, 0x8000_0000]);

        let mut tids = Tids::new(1);
        assert_eq!([tids.assign(0), tids.assign(1)], [1, 2]);
        tids.next = 0xffff_fffe;
        assert_eq!([tids.assign(2), tids.assign(3), tids.assign(4)], [0xffff_fffe, 0xffff_ffff, 3]);
        assert_eq!(tids.look_up(1), Lookup::Live(0));
        assert_eq!(tids.look_up(0), Lookup::Unknown);
        assert_eq!(Tids::new(0).assign(0), 1);
    }

    #[test]
    fn ended_ids_are_told_apart_until_forgotten() {
        let mut tids = Tids::new(5);
        let (a, b) = (tids.assign(0), tids.assign(1));
        tids.end(a, Ended::Answered);
        tids.end(b, Ended::Unanswered);
        assert_eq!(tids.look_up(a), Lookup::Ended(Ended::Answered));
        assert_eq!(tids.look_up(b), Lookup::Ended(Ended::Unanswered));
        assert_eq!(tids.look_up(a + REMEMBERED as u32), Lookup::Unknown);
    }
}
