//! Brings the best first arcs of a block up to date after links were lost, where that made few ways longer.
//!
//! A switch is *cut off* from a target when all of its best arcs are gone or lead to switches that are cut off; these are found
//! backwards from the lost links, everybody else keeps his distance. Who is cut off gets the best way over those that are
//! not, nearest first (Dijkstra 1959, by phase and hops). In the end it is checked that nobody would gain by the new ways:
//! then the distances are those that a search finds, since only one set of them fits together.
//!
//! Cost: for each pair of a target and a switch that is cut off, the links of that switch and the ways of its neighbours.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::{Block, Numbers, Rule};
use crate::fabric::{SwitchGraph, SwitchIndex};

/// Pairs of switch and target above which a search of the block costs less.
const MOST_PAIRS: u32 = 2048;

/// Masks that may stand in a list beside those of the last search; with more a search pays.
const MOST_LATER: usize = 8192;

/// What of a block differs from before: switches, with the targets for which their best arcs do.
pub(super) type Changes = FxHashMap<SwitchIndex, u64>;

/// Phase, then hops.
type Key = u32;

const UNKNOWN: Key = Key::MAX;
const CUT_OFF: Key = Key::MAX - 1;
const NO_WAY: Key = Key::MAX - 2;

/// The block `old`, whose targets begin with switch `first`, on `graph`, with the arcs numbered by `numbers`. `lost` names switches with
/// the targets to which they have lost their last best arc. `None` when it has to be searched.
pub(super) fn patch(
    old: &Block,
    first: SwitchIndex,
    (graph, rule, numbers): (&SwitchGraph, &Rule, &Numbers),
    lost: &[(SwitchIndex, u64)],
) -> Option<(Block, Changes)> {
    if rule.weights.is_some() || rule.phases.iter().any(|phase| phase.once) {
        return None;
    }
    let mut patch = Patch {
        graph,
        rule,
        numbers: numbers.as_deref(),
        first,
        masks: &old.masks,
        later: old.later.iter().copied().collect(),
        illegal: old.illegal.to_vec(),
        cut_off: Changes::default(),
        changed: Changes::default(),
        keys: vec![UNKNOWN; graph.switch_count()],
        known: Vec::new(),
    };
    patch.find_cut_off(lost)?;
    let mut targets = patch.cut_off.values().fold(0, |all, bits| all | bits);
    while targets != 0 {
        patch.target(targets.trailing_zeros())?;
        targets &= targets - 1;
    }
    if patch.later.len() > MOST_LATER {
        return None;
    }
    let mut later: Vec<(u32, u64)> = patch.later.into_iter().collect();
    later.sort_unstable();
    let illegal = if patch.illegal == *old.illegal { old.illegal.clone() } else { patch.illegal.into() };
    let block = Block { masks: old.masks.clone(), illegal, numbers: numbers.clone(), later: later.into() };
    Some((block, patch.changed))
}

struct Patch<'a> {
    graph: &'a SwitchGraph,
    rule: &'a Rule,
    numbers: Option<&'a [u32]>,
    first: SwitchIndex,
    masks: &'a [u64],
    /// In place of `masks`, by number.
    later: FxHashMap<u32, u64>,
    illegal: Vec<u64>,
    cut_off: Changes,
    changed: Changes,
    /// For one target, of each switch.
    keys: Vec<Key>,
    /// Whose keys are not [`UNKNOWN`].
    known: Vec<SwitchIndex>,
}

impl Patch<'_> {
    fn number(&self, arc: usize) -> u32 {
        self.numbers.map_or(arc as u32, |numbers| numbers[arc])
    }

    /// The targets for which an arc is a best one.
    fn mask(&self, arc: usize) -> u64 {
        let number = self.number(arc);
        self.later.get(&number).copied().unwrap_or_else(|| self.masks[number as usize])
    }

    fn change(&mut self, arc: usize, mask: u64) {
        let number = self.number(arc);
        self.later.insert(number, mask);
    }

    /// Takes arcs that lead to who is cut off from the best arcs of its neighbours, until nobody else is cut off thereby.
    fn find_cut_off(&mut self, lost: &[(SwitchIndex, u64)]) -> Option<()> {
        let mut queue = lost.to_vec();
        let mut pairs = 0;
        while let Some((s, targets)) = queue.pop() {
            *self.cut_off.entry(s).or_default() |= targets;
            *self.changed.entry(s).or_default() |= targets;
            pairs += targets.count_ones();
            if pairs > MOST_PAIRS {
                return None;
            }
            for place in 0..self.graph.arcs(s).len() {
                let arc = self.graph.arcs(s)[place];
                let back = self.graph.back(s, &arc)? as usize;
                let taken = self.mask(back) & targets;
                if taken == 0 {
                    continue;
                }
                self.change(back, self.mask(back) & !taken);
                *self.changed.entry(arc.to).or_default() |= taken;
                let left =
                    self.graph.arc_range(arc.to).fold(0, |left, number| left | self.mask(number as usize));
                if taken & !left != 0 {
                    queue.push((arc.to, taken & !left));
                }
            }
        }
        Some(())
    }

    /// Finds the ways of all that are cut off from one target; `None` when others would gain by them.
    fn target(&mut self, bit: u32) -> Option<()> {
        let of_target = |(s, bits): (&SwitchIndex, &u64)| (bits >> bit & 1 == 1).then_some(*s);
        let members: Vec<SwitchIndex> = self.cut_off.iter().filter_map(of_target).collect();
        for s in self.known.drain(..) {
            self.keys[s as usize] = UNKNOWN;
        }
        self.learn(self.first + bit, 0);
        members.iter().for_each(|s| self.learn(*s, CUT_OFF));
        let mut heap = BinaryHeap::new();
        for s in &members {
            for (number, arc) in (self.graph.offsets()[*s as usize] as usize..).zip(self.graph.arcs(*s)) {
                let there = self.key(arc.to, bit);
                heap.extend(self.offer(there, number).map(|key| Reverse((key, *s))));
            }
        }
        let mut settled = Vec::new();
        while let Some(Reverse((key, s))) = heap.pop() {
            if self.keys[s as usize] != CUT_OFF {
                continue;
            }
            self.keys[s as usize] = key;
            settled.push(s);
            for arc in self.graph.arcs(s).iter().filter(|arc| self.keys[arc.to as usize] == CUT_OFF) {
                heap.extend(
                    self.offer(key, self.graph.back(s, arc)? as usize).map(|key| Reverse((key, arc.to))),
                );
            }
        }
        for s in members {
            self.take_best(s, bit);
        }
        settled.into_iter().try_for_each(|s| self.nobody_gains(s, bit))
    }

    fn learn(&mut self, s: SwitchIndex, key: Key) {
        self.keys[s as usize] = key;
        self.known.push(s);
    }

    /// The key that a switch has by arc number `arc` to one with key `there`.
    fn offer(&self, there: Key, arc: usize) -> Option<Key> {
        if there >= NO_WAY {
            return None;
        }
        let phases = &self.rule.phases;
        let (phase, hops) = ((there >> 16) as usize, there & 0xffff);
        let fits = |phase: &usize| phases.get(*phase).is_none_or(|p| p.kinds & self.rule.turns[arc] != 0);
        // Behind the phases all arcs will do, unless there is only one phase.
        let last = phases.len() - usize::from(phases.len() == 1);
        let phase = (phase..=last).find(fits)?;
        Some((phase as u32) << 16 | (hops + 1))
    }

    /// The key of a switch that is not cut off, by its best arcs, which lead to such ones only.
    fn key(&mut self, s: SwitchIndex, bit: u32) -> Key {
        let mut way: Vec<(SwitchIndex, usize)> = Vec::new();
        let mut at = s;
        while self.keys[at as usize] == UNKNOWN {
            let best = self.graph.arc_range(at).find(|number| self.mask(*number as usize) >> bit & 1 == 1);
            let Some(best) = best else {
                self.learn(at, NO_WAY);
                break;
            };
            way.push((at, best as usize));
            at = self.graph.all_arcs()[best as usize].to;
        }
        for (s, arc) in way.into_iter().rev() {
            let key = self.offer(self.keys[at as usize], arc).unwrap_or(NO_WAY);
            self.learn(s, key);
            at = s;
        }
        self.keys[s as usize]
    }

    /// Marks the best arcs of a switch that was cut off.
    fn take_best(&mut self, s: SwitchIndex, bit: u32) {
        let key = self.keys[s as usize];
        for place in 0..self.graph.arcs(s).len() {
            let number = self.graph.offsets()[s as usize] as usize + place;
            let there = self.keys[self.graph.arcs(s)[place].to as usize];
            if key < NO_WAY && self.offer(there, number) == Some(key) {
                self.change(number, self.mask(number) | 1 << bit);
            }
        }
        let illegal =
            key < NO_WAY && self.rule.phases.len() > 1 && (key >> 16) as usize == self.rule.phases.len();
        let bits = &mut self.illegal[s as usize];
        *bits = *bits & !(1 << bit) | u64::from(illegal) << bit;
    }

    /// Whether no neighbour of a switch that was cut off has a better way over it now. An equal one joins its best arcs.
    fn nobody_gains(&mut self, s: SwitchIndex, bit: u32) -> Option<()> {
        for place in 0..self.graph.arcs(s).len() {
            let arc = self.graph.arcs(s)[place];
            let back = self.graph.back(s, &arc)? as usize;
            let Some(offer) = self.offer(self.keys[s as usize], back) else { continue };
            let key = self.key(arc.to, bit);
            if offer < key {
                return None;
            }
            if offer == key {
                self.change(back, self.mask(back) | 1 << bit);
                *self.changed.entry(arc.to).or_default() |= 1 << bit;
            }
        }
        Some(())
    }
}
