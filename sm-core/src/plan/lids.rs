//! LIDs: one allocator that knows memory, wire and wish at once (B17).
//!
//! A port keeps the LID that is remembered for it; else the valid one that it holds; else it gets the lowest free range.
//! What is remembered wins over what is merely held, except by a port that was seen to refuse any other. A range is handed on only when its last holder has confirmed
//! another or is gone: until then its new owner waits, or takes a free one where waiting would be for ever (B15).
//! Values that are no LIDs count as none (B16). Every port has its own LMC (B19).
//!
//! Cost: O((ports + 49,151) · 2^LMC).

use std::collections::BTreeMap;

use mad::types::{Guid, Lid};

/// 2^lmc LIDs from an aligned base on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LidRange {
    /// The base LID, a multiple of 2^lmc.
    pub base: Lid,
    /// 0 to 7.
    pub lmc: u8,
}

impl LidRange {
    /// A range; `None` when the base is not a multiple of 2^lmc, the LMC above 7, or the end beyond 0xBFFF.
    pub const fn new(base: Lid, lmc: u8) -> Option<Self> {
        if lmc > 7 || base.get() & ((1 << lmc) - 1) != 0 {
            return None;
        }
        // An aligned base up to 0xBFFF leaves room: 0xC000 is a multiple of 128.
        Some(Self { base, lmc })
    }

    /// Number of LIDs.
    pub const fn len(self) -> u16 {
        1 << self.lmc
    }

    /// Never.
    pub const fn is_empty(self) -> bool {
        false
    }

    /// The last LID of the range, as a number.
    pub const fn last(self) -> u16 {
        self.base.get() + (self.len() - 1)
    }

    /// All its LIDs, as indices.
    pub const fn indices(self) -> std::ops::RangeInclusive<usize> {
        self.base.get() as usize..=self.last() as usize
    }

    /// Whether two ranges share a LID.
    pub const fn overlaps(self, other: Self) -> bool {
        self.base.get() <= other.last() && other.base.get() <= self.last()
    }
}

/// A port that needs LIDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applicant {
    /// PortGUID.
    pub guid: Guid,
    /// What it holds; `None` for none or for what is no LID.
    pub held: Option<Lid>,
    /// The LMC that it holds it with.
    pub held_lmc: u8,
    /// The LMC that it shall have.
    pub lmc: u8,
    /// Whether it was seen to refuse a LID, so that waiting for it would be for ever.
    pub stuck: bool,
}

impl Applicant {
    /// The LIDs that packets reach it by now.
    fn held_range(&self) -> Option<LidRange> {
        let base = Lid::new(self.held?.get() & !((1 << self.held_lmc.min(7)) - 1));
        LidRange::new(base.or(self.held)?, if base.is_some() { self.held_lmc.min(7) } else { 0 })
    }

    /// What it holds, where it may keep it.
    fn keepable(&self) -> Option<LidRange> {
        LidRange::new(self.held?, self.lmc)
    }
}

/// GUID to LIDs: what is remembered over restarts.
pub type LidMemory = BTreeMap<Guid, LidRange>;

/// Who gets what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LidPlan {
    /// Ranges to be set now: disjoint, aligned, within 1 to the ceiling.
    pub given: LidMemory,
    /// Ports that wait until another one has let go: after the next round they can be served.
    pub waiting: Vec<Guid>,
    /// Ports for which there is no free range at all.
    pub without: Vec<Guid>,
    /// What is to be remembered from now on.
    pub memory: LidMemory,
    /// Remembered ranges of absent ports that were given up: a living port holds them, or space ran out.
    pub given_up: Vec<Guid>,
}

/// Assigns LIDs up to `ceiling`. The result depends on the set of applicants only, not on their order.
pub fn assign(applicants: &[Applicant], memory: &LidMemory, ceiling: Lid) -> LidPlan {
    let mut applicants: Vec<Applicant> = applicants.to_vec();
    applicants.sort_by_key(|a| a.guid);
    applicants.dedup_by_key(|a| a.guid);
    let mut book = Book::new(ceiling, &applicants, memory);
    book.take_held(|applicant| applicant.stuck);
    book.take_remembered();
    book.take_held(|_| true);
    book.take_free();
    book.hand_over()
}

const FREE: u32 = u32::MAX;

struct Book<'a> {
    ceiling: Lid,
    applicants: &'a [Applicant],
    memory: &'a LidMemory,
    /// What each applicant shall have in the end.
    wish: Vec<Option<LidRange>>,
    /// By LID: which applicant's wish it is.
    wanted: Vec<u32>,
    /// By LID: whether it is remembered for an absent port.
    absent: Vec<bool>,
    /// By LID: how many applicants hold it now, and one of them.
    holders: Vec<(u32, u32)>,
}

impl<'a> Book<'a> {
    fn new(ceiling: Lid, applicants: &'a [Applicant], memory: &'a LidMemory) -> Self {
        let size = Lid::MAX.index() + 1;
        let mut book = Self {
            ceiling,
            applicants,
            memory,
            wish: vec![None; applicants.len()],
            wanted: vec![FREE; size],
            absent: vec![false; size],
            holders: vec![(0, FREE); size],
        };
        for (i, applicant) in applicants.iter().enumerate() {
            for lid in applicant.held_range().into_iter().flat_map(LidRange::indices) {
                book.holders[lid] = (book.holders[lid].0 + 1, i as u32);
            }
        }
        let present = |guid: &Guid| applicants.binary_search_by_key(guid, |a| a.guid).is_ok();
        for (_, range) in memory.iter().filter(|(guid, _)| !present(guid)) {
            range.indices().for_each(|lid| book.absent[lid] = true);
        }
        book
    }

    fn is_free(&self, range: LidRange) -> bool {
        range.last() <= self.ceiling.get() && range.indices().all(|lid| self.wanted[lid] == FREE)
    }

    fn claim(&mut self, i: usize, range: LidRange) {
        range.indices().for_each(|lid| self.wanted[lid] = i as u32);
        self.wish[i] = Some(range);
    }

    fn take_remembered(&mut self) {
        for (i, applicant) in self.applicants.iter().enumerate() {
            let remembered = self.memory.get(&applicant.guid);
            let range = remembered.and_then(|r| LidRange::new(r.base, applicant.lmc));
            if let Some(range) = range.filter(|r| self.wish[i].is_none() && self.is_free(*r)) {
                self.claim(i, range);
            }
        }
    }

    fn take_held(&mut self, who: impl Fn(&Applicant) -> bool) {
        for (i, applicant) in self.applicants.iter().enumerate().filter(|(_, a)| who(a)) {
            if let Some(range) = applicant.keepable().filter(|r| self.wish[i].is_none() && self.is_free(*r)) {
                self.claim(i, range);
            }
        }
    }

    /// The rest gets the lowest ranges that nobody holds, wants or is remembered with; if there is none, what absent
    /// ports are remembered with.
    fn take_free(&mut self) {
        let mut next = [1_u16; 8];
        for i in 0..self.applicants.len() {
            if self.wish[i].is_none()
                && let Some(range) =
                    self.find(i, &mut next, false).or_else(|| self.find(i, &mut [1; 8], true))
            {
                self.claim(i, range);
            }
        }
    }

    fn find(&self, i: usize, next: &mut [u16; 8], reclaim: bool) -> Option<LidRange> {
        let lmc = self.applicants[i].lmc.min(7);
        let step = 1_u16 << lmc;
        let mut base = next[usize::from(lmc)].next_multiple_of(step);
        while base <= self.ceiling.get() {
            let range = LidRange::new(Lid::new(base)?, lmc)?;
            let open = |lid: usize| (reclaim || !self.absent[lid]) && !self.held_by_other(lid, i);
            if self.is_free(range) && range.indices().all(open) {
                next[usize::from(lmc)] = base;
                return Some(range);
            }
            base += step;
        }
        next[usize::from(lmc)] = base;
        None
    }

    fn held_by_other(&self, lid: usize, i: usize) -> bool {
        let (count, who) = self.holders[lid];
        count > 1 || (count == 1 && who != i as u32)
    }

    /// Ports that hold a LID of `range` and shall not keep it.
    fn blockers(&self, i: usize, range: LidRange) -> Vec<usize> {
        let blocks = |(j, other): &(usize, &Applicant)| {
            *j != i && other.held_range().is_some_and(|held| held.overlaps(range))
        };
        if !range.indices().any(|lid| self.held_by_other(lid, i)) {
            return Vec::new();
        }
        self.applicants.iter().enumerate().filter(blocks).map(|(j, _)| j).collect()
    }

    fn hand_over(mut self) -> LidPlan {
        let mut plan = LidPlan::default();
        let mut late = Vec::new();
        for (i, applicant) in self.applicants.iter().enumerate() {
            let Some(range) = self.wish[i] else {
                plan.without.push(applicant.guid);
                continue;
            };
            let blockers = self.blockers(i, range);
            if blockers.is_empty() || applicant.keepable() == Some(range) {
                plan.given.insert(applicant.guid, range);
            } else {
                late.push((i, blockers.iter().any(|j| self.applicants[*j].stuck)));
            }
        }
        for (i, for_ever) in late {
            self.serve_blocked(&mut plan, i, for_ever);
        }
        plan.memory = self.remember(&mut plan.given_up);
        plan
    }

    /// A port whose range somebody still holds. It waits; but where its holder is stuck, or where it holds itself what
    /// another one is to have, it takes a free range: else all would wait for each other, or two ports would share a LID
    /// meanwhile, one of which may be ours.
    fn serve_blocked(&mut self, plan: &mut LidPlan, i: usize, for_ever: bool) {
        let applicant = self.applicants[i];
        let of_another = |lid: usize| ![FREE, i as u32].contains(&self.wanted[lid]);
        let in_the_way = applicant.held_range().is_some_and(|held| held.indices().any(of_another));
        if for_ever || in_the_way {
            let found = self.find(i, &mut [1; 8], false);
            let Some(range) = found else {
                plan.without.push(applicant.guid);
                return;
            };
            if for_ever {
                self.release(i);
            } else {
                plan.waiting.push(applicant.guid);
            }
            let remembered = self.wish[i];
            self.claim(i, range);
            if !for_ever {
                self.wish[i] = remembered;
            }
            plan.given.insert(applicant.guid, range);
        } else {
            plan.waiting.push(applicant.guid);
        }
    }

    fn release(&mut self, i: usize) {
        if let Some(range) = self.wish[i].take() {
            range.indices().for_each(|lid| self.wanted[lid] = FREE);
        }
    }

    fn remember(&self, given_up: &mut Vec<Guid>) -> LidMemory {
        let mut memory: LidMemory = self
            .applicants
            .iter()
            .zip(&self.wish)
            .filter_map(|(applicant, wish)| Some((applicant.guid, (*wish)?)))
            .collect();
        let present = |guid: &Guid| self.applicants.binary_search_by_key(guid, |a| a.guid).is_ok();
        for (guid, range) in self.memory.iter().filter(|(guid, _)| !present(guid)) {
            if range.indices().all(|lid| self.wanted[lid] == FREE) {
                memory.insert(*guid, *range);
            } else {
                given_up.push(*guid);
            }
        }
        memory
    }
}
