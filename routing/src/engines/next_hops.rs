//! For every switch and target switch, the arcs that begin a best permitted path: the part of the work that depends on
//! pairs of switches only. What is permitted is a sequence of phases, searched from the target outwards.
//!
//! A breadth-first search from 64 target switches at once, one bit each ("multi-source BFS", Then et al., VLDB 2014),
//! over the reversed arcs. Cost: levels · arcs · switches / 64 word operations; memory: one bit for each (arc, target).
//! After links were lost blocks are taken over from an earlier search, changed where few ways are longer ([`longer`]).

mod longer;

use std::sync::Arc;

use rayon::prelude::*;

use crate::fabric::{LinkChange, SwitchGraph, SwitchIndex};
use longer::Changes;

/// Target switches that are searched together.
pub(crate) const TARGETS: usize = 64;

/// What an arc is, for engines that allow only some sequences.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Turn {
    /// Of no kind.
    Free = 1,
    /// Away from the roots.
    Down = 2,
    /// Towards the roots.
    Up = 4,
    /// Between switches of one group.
    Local = 8,
    /// Between groups.
    Global = 16,
}

/// A part of a path, seen from its end: arcs of one kind, any number of them or one at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Phase {
    kinds: u8,
    once: bool,
}

impl Phase {
    const fn many(kind: Turn) -> Self {
        Self { kinds: kind as u8, once: false }
    }

    const fn once(kind: Turn) -> Self {
        Self { kinds: kind as u8, once: true }
    }
}

/// The best first arcs.
#[derive(Clone, Debug)]
pub(crate) struct NextHops {
    blocks: Vec<Block>,
    rule: Rule,
    /// Blocks that were searched, the others being those of an earlier search, changed by `changes`.
    searched: Vec<usize>,
    /// Switches, each with a block and those of its targets for which the best arcs are others than in the earlier search; sorted.
    changes: Vec<(SwitchIndex, u32, u64)>,
}

/// What was found for 64 targets; a later search that finds the same shares it.
#[derive(Clone, Debug)]
struct Block {
    /// Targets by arc.
    masks: Arc<[u64]>,
    /// For each switch, the targets to which no legal path leads.
    illegal: Arc<[u64]>,
    /// The number that each arc has in `masks`, where links were lost since; a number then stands for the same link still.
    numbers: Numbers,
    /// What stands in place of `masks` since links were lost, sorted by number: a small part, not worth a copy of all.
    later: Arc<[(u32, u64)]>,
}

/// A number for each arc; `None` where it is its own.
type Numbers = Option<Arc<[u32]>>;

fn is_same(a: &Numbers, b: &Numbers) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        (a, b) => a.is_none() && b.is_none(),
    }
}

impl Block {
    fn mask(&self, arc: usize) -> u64 {
        let number = self.numbers.as_ref().map_or(arc, |numbers| numbers[arc] as usize);
        match self.later.binary_search_by_key(&(number as u32), |(number, _)| *number) {
            Ok(place) => self.later[place].1,
            Err(_) => self.masks[number],
        }
    }
}

/// What is permitted.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    /// By arc number.
    turns: Vec<u8>,
    weights: Option<Vec<u8>>,
    phases: Vec<Phase>,
}

/// An earlier search, and what has become of its links since.
#[derive(Clone, Copy)]
pub(crate) struct Earlier<'a> {
    pub hops: &'a NextHops,
    pub links: &'a LinkChange,
}

impl NextHops {
    /// The targets of block `block` (bit i = switch `64 * block + i`) for which arc number `arc` is a best first step.
    pub(crate) fn mask(&self, block: usize, arc: usize) -> u64 {
        self.blocks[block].mask(arc)
    }

    /// Number of blocks.
    pub(crate) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Blocks that may differ from those of the earlier search everywhere, not only as [`NextHops::changes`] says.
    pub(crate) fn searched(&self) -> &[usize] {
        &self.searched
    }

    /// What differs in the other blocks, apart from the arcs of switches that lost one: blocks, each with the targets for which
    /// the best arcs of a switch do.
    pub(crate) fn changes(&self, s: SwitchIndex) -> impl Iterator<Item = (usize, u64)> + '_ {
        let first = self.changes.partition_point(|(of, ..)| *of < s);
        let of_switch = self.changes[first..].iter().take_while(move |(of, ..)| *of == s);
        of_switch.map(|(_, block, targets)| (*block as usize, *targets))
    }

    /// Shortest paths over all arcs; `weights` (1 to 255, by arc number) in place of 1 for each hop.
    pub(crate) fn shortest(
        graph: &SwitchGraph,
        weights: Option<Vec<u8>>,
        earlier: Option<Earlier<'_>>,
    ) -> Self {
        Self::search(graph, &|_| Turn::Free, weights, &[Phase::many(Turn::Free)], earlier)
    }

    /// Shortest paths that never turn from [`Turn::Down`] to [`Turn::Up`], `turn` by arc number. Where a switch has a path
    /// downwards only, it takes the shortest of these: then whoever comes down through it goes on down. Switches without
    /// any such path go on to a neighbour that has one, as with all kinds of sequences.
    pub(crate) fn up_down(
        graph: &SwitchGraph,
        turn: &dyn Fn(usize) -> Turn,
        earlier: Option<Earlier<'_>>,
    ) -> Self {
        Self::search(graph, turn, None, &[Phase::many(Turn::Down), Phase::many(Turn::Up)], earlier)
    }

    /// Paths of at most one local hop, one global hop and one local hop.
    pub(crate) fn local_global_local(graph: &SwitchGraph, turn: &dyn Fn(usize) -> Turn) -> Self {
        let phases = [Phase::once(Turn::Local), Phase::once(Turn::Global), Phase::once(Turn::Local)];
        Self::search(graph, turn, None, &phases, None)
    }

    /// Paths up, over at most one global hop, and down.
    pub(crate) fn up_global_down(graph: &SwitchGraph, turn: &dyn Fn(usize) -> Turn) -> Self {
        let phases = [Phase::many(Turn::Down), Phase::once(Turn::Global), Phase::many(Turn::Up)];
        Self::search(graph, turn, None, &phases, None)
    }

    fn search(
        graph: &SwitchGraph,
        turn: &dyn Fn(usize) -> Turn,
        weights: Option<Vec<u8>>,
        phases: &[Phase],
        earlier: Option<Earlier<'_>>,
    ) -> Self {
        let arcs = graph.all_arcs().len();
        let blocks = graph.switch_count().div_ceil(TARGETS);
        let switches = graph.switch_count();
        let turns: Vec<u8> = (0..arcs).map(|arc| turn(arc) as u8).collect();
        let rule = Rule { turns, weights, phases: phases.to_vec() };
        let earlier = earlier.filter(|earlier| earlier.holds_for(&rule));
        let numbers = earlier.map(|earlier| earlier.numbers()).unwrap_or_default();
        let found: Vec<(Block, Option<Changes>)> = (0..blocks)
            .into_par_iter()
            .map(|block| {
                let known = earlier.and_then(|earlier| earlier.take_over(block, (graph, &rule), &numbers));
                if let Some((known, changes)) = known {
                    return (known, Some(changes));
                }
                let (mut masks, mut illegal) = (vec![0; arcs], vec![0; switches]);
                let parts = (&mut masks[..], &mut illegal[..]);
                Search { graph, rule: &rule, masks: parts.0, illegal: parts.1, levels: Vec::new() }
                    .run(block);
                let later = Arc::default();
                (Block { masks: masks.into(), illegal: illegal.into(), numbers: None, later }, None)
            })
            .collect();
        let mut hops = Self { blocks: Vec::new(), rule, searched: Vec::new(), changes: Vec::new() };
        for (number, (block, changes)) in found.into_iter().enumerate() {
            hops.blocks.push(block);
            match changes {
                Some(changes) => {
                    hops.changes.extend(changes.into_iter().map(|(s, bits)| (s, number as u32, bits)))
                }
                None => hops.searched.push(number),
            }
        }
        hops.changes.sort_unstable();
        hops
    }

    /// The first pair of switches, both marked in `of`, that only an illegal path joins.
    pub(crate) fn first_detour(&self, of: &[bool]) -> Option<(SwitchIndex, SwitchIndex)> {
        let blocks = self.blocks.iter().enumerate();
        blocks
            .flat_map(|(block, row)| row.illegal.iter().enumerate().map(move |(s, bits)| (block, s, *bits)))
            .find_map(|(block, s, bits)| {
                let to = |bit: &usize| bits >> bit & 1 == 1 && of[block * TARGETS + bit];
                let bit = (0..TARGETS).find(|bit| bits != 0 && of[s] && to(bit))?;
                Some((s as u32, (block * TARGETS + bit) as u32))
            })
    }
}

impl Earlier<'_> {
    /// Whether the earlier search went by the same rule, and links were lost since, none came.
    fn holds_for(&self, rule: &Rule) -> bool {
        let (old, links) = (&self.hops.rule, self.links);
        let weight = |rule: &Rule, arc: usize| rule.weights.as_ref().map_or(1, |w| w[arc]);
        let same = |new: usize, old_arc: u32| {
            let old_arc = old_arc as usize;
            rule.turns[new] == old.turns[old_arc] && weight(rule, new) == weight(old, old_arc)
        };
        links.added.is_empty()
            && rule.phases == old.phases
            && links.old_arc.iter().enumerate().all(|(new, old_arc)| same(new, *old_arc))
    }

    /// For each way in which blocks number the arcs, the way in which they do so now.
    fn numbers(&self) -> Vec<(Numbers, Numbers)> {
        let mut all: Vec<(Numbers, Numbers)> = Vec::new();
        for block in &self.hops.blocks {
            if all.iter().any(|(known, _)| is_same(known, &block.numbers)) {
                continue;
            }
            let numbers = match &block.numbers {
                same if self.links.lost.is_empty() => same.clone(),
                None => Some(self.links.old_arc.clone().into()),
                Some(numbers) => Some(self.links.old_arc.iter().map(|old| numbers[*old as usize]).collect()),
            };
            all.push((block.numbers.clone(), numbers));
        }
        all
    }

    /// Takes a block over. Where no switch has lost its last best arc to any of its targets, all distances are as before, and with
    /// them what is best; else it is changed, with what that changes. `None` when it has to be searched.
    fn take_over(
        &self,
        block: usize,
        (graph, rule): (&SwitchGraph, &Rule),
        numbers: &[(Numbers, Numbers)],
    ) -> Option<(Block, Changes)> {
        let (old, links) = (&self.hops.blocks[block], self.links);
        let (_, numbers) = numbers.iter().find(|(known, _)| is_same(known, &old.numbers))?;
        let mut cut_off = Changes::default();
        for (s, arc) in &links.lost {
            let lost = old.mask(*arc as usize);
            let left = links.kept_of(*s).fold(0, |left, arc| left | old.mask(arc as usize));
            if lost & !left != 0 {
                *cut_off.entry(*s).or_default() |= lost & !left;
            }
        }
        if cut_off.is_empty() {
            return Some((Block { numbers: numbers.clone(), ..old.clone() }, cut_off));
        }
        let cut_off: Vec<(SwitchIndex, u64)> = cut_off.into_iter().collect();
        longer::patch(old, (block * TARGETS) as SwitchIndex, (graph, rule, numbers), &cut_off)
    }
}

/// One block's search. `levels[l]` holds for each switch the targets that it reaches in exactly l by the phases so far.
struct Search<'a> {
    graph: &'a SwitchGraph,
    rule: &'a Rule,
    masks: &'a mut [u64],
    illegal: &'a mut [u64],
    levels: Vec<Vec<u64>>,
}

impl Search<'_> {
    fn run(&mut self, block: usize) {
        let phases = &self.rule.phases;
        let count = self.graph.switch_count();
        let first = block * TARGETS;
        let mut start = vec![0_u64; count];
        for bit in 0..TARGETS.min(count - first) {
            start[first + bit] = 1 << bit;
        }
        let all = if count - first >= TARGETS { u64::MAX } else { (1 << (count - first)) - 1 };
        let mut seen = start.clone();
        self.levels.push(start);
        for phase in phases {
            self.phase(&mut seen, all, *phase);
        }
        if phases.len() > 1 && seen.iter().any(|s| *s != all) {
            let legal = seen.clone();
            self.phase(&mut seen, all, Phase { kinds: u8::MAX, once: false });
            for ((illegal, seen), legal) in self.illegal.iter_mut().zip(&seen).zip(legal) {
                *illegal = seen & !legal;
            }
        }
    }

    /// Relaxes level by level over the arcs of the phase's kind, until nothing new can come.
    fn phase(&mut self, seen: &mut [u64], all: u64, phase: Phase) {
        let longest = self.rule.weights.as_ref().map_or(1, |w| w.iter().copied().max().unwrap_or(1).max(1));
        // A phase of one hop starts from what the phases before it reached only.
        let before = phase.once.then(|| self.levels.clone());
        let levels = before.as_ref().map_or(usize::MAX, |b| b.len() + 1);
        let mut quiet = 0;
        let mut level = 1;
        while level < levels && (quiet < usize::from(longest) || level < self.levels.len()) {
            if self.levels.len() <= level {
                self.levels.push(vec![0; seen.len()]);
            }
            let found = self.relax(level, seen, all, phase.kinds, before.as_deref());
            quiet = if found { 0 } else { quiet + 1 };
            level += 1;
        }
    }

    fn relax(
        &mut self,
        level: usize,
        seen: &mut [u64],
        all: u64,
        kinds: u8,
        before: Option<&[Vec<u64>]>,
    ) -> bool {
        let (done, rest) = self.levels.split_at_mut(level);
        let found = &mut rest[0];
        let from = before.unwrap_or(done);
        let mut any = false;
        // Where few were reached by the hop before, only their neighbours can be next.
        let wave = if self.rule.weights.is_none() { from.get(level - 1) } else { None };
        let few = wave.and_then(|wave| neighbours_of_few(self.graph, wave));
        for number in 0..few.as_ref().map_or(seen.len(), Vec::len) {
            let s = few.as_ref().map_or(number, |few| few[number] as usize);
            if seen[s] == all {
                continue;
            }
            let range = self.graph.offsets()[s] as usize..self.graph.offsets()[s + 1] as usize;
            let mut reached = 0;
            for arc in range {
                if self.rule.turns[arc] & kinds == 0 {
                    continue;
                }
                let weight = self.rule.weights.as_ref().map_or(1, |w| usize::from(w[arc].max(1)));
                let Some(reach) = level.checked_sub(weight).and_then(|level| from.get(level)) else {
                    continue;
                };
                let fresh = reach[self.graph.all_arcs()[arc].to as usize] & !seen[s];
                self.masks[arc] |= fresh;
                reached |= fresh;
            }
            if reached != 0 {
                // `found` may hold targets of an earlier phase; these are not searched again.
                found[s] |= reached;
                any = true;
            }
        }
        // Marked only now: a switch may be reached over several arcs of the same level.
        for (seen, found) in seen.iter_mut().zip(found.iter()) {
            *seen |= *found;
        }
        any
    }
}

/// The neighbours of the switches that reach any target by `wave`, where these have a small part of all links.
fn neighbours_of_few(graph: &SwitchGraph, wave: &[u64]) -> Option<Vec<SwitchIndex>> {
    let hot = || (0..).zip(wave).filter(|(_, bits)| **bits != 0).map(|(s, _)| graph.arcs(s));
    if hot().map(<[_]>::len).sum::<usize>() * 4 > graph.all_arcs().len() {
        return None;
    }
    let mut near = vec![false; wave.len()];
    hot().flatten().for_each(|arc| near[arc.to as usize] = true);
    Some((0..).zip(near).filter_map(|(s, near)| near.then_some(s)).collect())
}

/// For one switch, its best first arcs turned from "targets by arc" to "arcs by target".
pub(crate) struct RowChoices<'a> {
    hops: &'a NextHops,
    /// Arc numbers in the order of choice: the first arc to every neighbour, then the second, and so on.
    order: Vec<u32>,
    base: u32,
    ports: Vec<u8>,
    sets: [[u64; TARGETS]; 4],
}

impl<'a> RowChoices<'a> {
    /// For switch `s`.
    pub(crate) fn new(graph: &SwitchGraph, hops: &'a NextHops, s: SwitchIndex) -> Self {
        let base = graph.offsets()[s as usize];
        let arcs = graph.arcs(s);
        let mut keyed: Vec<(u32, u32)> = Vec::with_capacity(arcs.len());
        let mut run = 0;
        for (i, arc) in arcs.iter().enumerate() {
            run = if i > 0 && arcs[i - 1].to == arc.to { run + 1 } else { 0 };
            keyed.push((run, i as u32));
        }
        keyed.sort_unstable();
        Self {
            hops,
            base,
            ports: keyed.iter().map(|(_, i)| arcs[*i as usize].out_port).collect(),
            order: keyed.into_iter().map(|(_, i)| base + i).collect(),
            sets: [[0; TARGETS]; 4],
        }
    }

    /// Number of blocks.
    pub(crate) fn blocks(&self) -> usize {
        self.hops.blocks()
    }

    /// Loads the targets of a block.
    pub(crate) fn load(&mut self, block: usize) {
        let block = &self.hops.blocks[block];
        for (word, arcs) in self.order.chunks(TARGETS).enumerate() {
            match &block.numbers {
                None => load_set(&mut self.sets[word], arcs.iter().map(|arc| block.masks[*arc as usize])),
                Some(_) => {
                    let mut masks = [0; TARGETS];
                    masks.iter_mut().zip(arcs).for_each(|(mask, arc)| *mask = block.mask(*arc as usize));
                    load_set(&mut self.sets[word], masks[..arcs.len()].iter().copied());
                }
            }
        }
    }

    /// The targets of a block for which the choices differ from those of an earlier search, whose arcs of this switch began
    /// at number `base`.
    pub(crate) fn differing(&self, block: usize, earlier: &NextHops, base: u32) -> u64 {
        let pairs = (self.base..).zip(base..).take(self.order.len());
        pairs.fold(0, |bits, (new, old)| {
            bits | (self.hops.mask(block, new as usize) ^ earlier.mask(block, old as usize))
        })
    }

    /// The arcs for target `bit` of the block, as a set of positions in the order of choice.
    pub(crate) fn set(&self, bit: usize) -> [u64; 4] {
        let words = self.order.len().div_ceil(TARGETS);
        std::array::from_fn(|w| if w < words { self.sets[w][bit] } else { 0 })
    }

    /// The port of the arc for target `bit`, where there is one arc only.
    pub(crate) fn only(&self, bit: usize) -> Option<u8> {
        let set = self.sets[0][bit];
        let one_word = self.order.len() <= TARGETS;
        (one_word && set.is_power_of_two()).then(|| self.ports[set.trailing_zeros() as usize])
    }

    /// Whether the arcs for target `bit` are those of a set; word by word, since what was written word by word can't be read
    /// fast in larger parts.
    pub(crate) fn is_set(&self, bit: usize, set: &[u64; 4]) -> bool {
        if self.order.len() <= TARGETS {
            return self.sets[0][bit] == set[0];
        }
        self.set(bit) == *set
    }

    /// The exit ports of a set, in the order of choice.
    pub(crate) fn ports_of(&self, set: &[u64; 4], ports: &mut Vec<u8>) {
        ports.clear();
        for (word, bits) in set.iter().enumerate() {
            let mut bits = *bits;
            while bits != 0 {
                ports.push(self.ports[word * TARGETS + bits.trailing_zeros() as usize]);
                bits &= bits - 1;
            }
        }
    }
}

/// Up to this many bits are set one by one, since that is cheaper than transposing all.
const FEW: u32 = 160;

/// Turns up to 64 masks (targets by arc) into sets (arcs by target).
fn load_set(set: &mut [u64; TARGETS], masks: impl ExactSizeIterator<Item = u64> + Clone) {
    let (mut any, mut every, mut bits) = (0, u64::MAX, 0);
    for mask in masks.clone() {
        any |= mask;
        every &= mask;
        bits += mask.count_ones();
    }
    if any == every {
        // Each target has all arcs or none: a switch below many equal parents.
        let all = u64::MAX >> (TARGETS - masks.len().max(1));
        set.iter_mut().enumerate().for_each(|(bit, set)| *set = all & 0_u64.wrapping_sub(any >> bit & 1));
    } else if bits <= FEW {
        set.fill(0);
        for (arc, mask) in masks.enumerate() {
            let mut mask = mask;
            while mask != 0 {
                set[mask.trailing_zeros() as usize] |= 1 << arc;
                mask &= mask - 1;
            }
        }
    } else {
        set.fill(0);
        set.iter_mut().zip(masks).for_each(|(set, mask)| *set = mask);
        transpose(set);
    }
}

/// Transposes a matrix of 64 × 64 bits in place (row i, bit j becomes row j, bit i), by halving blocks.
fn transpose(rows: &mut [u64; TARGETS]) {
    let mut width = 32;
    let mut mask = 0x0000_0000_ffff_ffff_u64;
    while width != 0 {
        for pair in rows.chunks_exact_mut(2 * width) {
            let (upper, lower) = pair.split_at_mut(width);
            for (upper, lower) in upper.iter_mut().zip(lower) {
                let swap = ((*upper >> width) ^ *lower) & mask;
                *upper ^= swap << width;
                *lower ^= swap;
            }
        }
        width >>= 1;
        mask ^= mask << width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_the_masks_turned_whichever_way_is_taken() {
        let dense: Vec<u64> = (1..=40_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let uniform = vec![0x0000_ffff_0ff0_1234; 64];
        let sparse: Vec<u64> = (0..36).map(|i| 1 << i | 1 << (63 - i)).collect();
        for masks in [dense, uniform, sparse, vec![], vec![u64::MAX]] {
            let mut set = [7; TARGETS];
            load_set(&mut set, masks.iter().copied());
            for (bit, set) in set.iter().enumerate() {
                let expected =
                    masks.iter().enumerate().fold(0, |set, (arc, mask)| set | (mask >> bit & 1) << arc);
                assert_eq!(*set, expected, "target {bit} of {masks:x?}");
            }
        }
    }

    /// Cables go one after another; best arcs and illegal pairs are those of a search from nothing after each, most of the time
    /// without one.
    #[test]
    fn b24_blocks_changed_after_a_lost_cable_are_those_of_a_search() {
        use rand::seq::IndexedRandom;

        use crate::engines::testing::random_fabrics;
        use crate::fabric::testing;

        let mut random = testing::seeded(5);
        let (mut changed, mut searched) = (0, 0);
        let large = ("tree of 96 switches".to_owned(), testing::fat_tree(&[4, 6, 8], &[1, 4, 4], 0));
        for (name, mut fabric) in random_fabrics().into_iter().chain([large]) {
            let mut before: Vec<(SwitchGraph, NextHops)> = Vec::new();
            for step in 0..5 {
                let graph = SwitchGraph::new(&fabric);
                let turn = |arc: usize| {
                    let from = graph.offsets().partition_point(|first| *first as usize <= arc) as u32 - 1;
                    if graph.all_arcs()[arc].to < from { Turn::Up } else { Turn::Down }
                };
                let find = |earlier: Option<(&SwitchGraph, &NextHops)>, up_down: bool| {
                    let links = earlier.and_then(|(old, _)| LinkChange::between(old, &graph));
                    let earlier = earlier.zip(links.as_ref());
                    let earlier = earlier.map(|((_, hops), links)| Earlier { hops, links });
                    match up_down {
                        true => NextHops::up_down(&graph, &turn, earlier),
                        false => NextHops::shortest(&graph, None, earlier),
                    }
                };
                let mut now = Vec::new();
                for (number, up_down) in [false, true].into_iter().enumerate() {
                    let known = before.get(number).map(|(graph, hops)| (graph, hops));
                    let (fresh, next) = (find(None, up_down), find(known, up_down));
                    for block in 0..fresh.blocks() {
                        for arc in 0..graph.all_arcs().len() {
                            assert_eq!(next.mask(block, arc), fresh.mask(block, arc), "{name}, step {step}");
                        }
                        assert_eq!(
                            next.blocks[block].illegal, fresh.blocks[block].illegal,
                            "{name}, step {step}"
                        );
                    }
                    if let Some((old_graph, old)) = known {
                        searched += next.searched.len();
                        changed += usize::from(!next.changes.is_empty());
                        let links = LinkChange::between(old_graph, &graph).unwrap();
                        for s in (0..graph.switch_count() as u32).filter(|s| !links.touches(*s)) {
                            for block in (0..next.blocks()).filter(|block| !next.searched.contains(block)) {
                                let row = RowChoices::new(&graph, &next, s);
                                let told =
                                    next.changes(s).find(|(of, _)| *of == block).map_or(0, |(_, bits)| bits);
                                let differing = row.differing(block, old, old_graph.offsets()[s as usize]);
                                assert_eq!(differing & !told, 0, "{name}, step {step}: all is told");
                            }
                        }
                    }
                    now.push((graph.clone(), next));
                }
                before = now;
                let between = |l: &&crate::fabric::Link| {
                    fabric.node(l.a.node).is_switch() && fabric.node(l.b.node).is_switch()
                };
                let links: Vec<crate::fabric::Link> = fabric.links().filter(between).copied().collect();
                fabric.disconnect(links.choose(&mut random).unwrap().a);
            }
        }
        assert!(changed > 3 * searched && changed > 20, "{changed} changed, {searched} searched");
    }

    #[test]
    fn transposing_swaps_rows_and_bits() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let rows: [u64; TARGETS] = std::array::from_fn(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        });
        let mut turned = rows;
        transpose(&mut turned);
        for (i, row) in rows.iter().enumerate() {
            for (j, column) in turned.iter().enumerate() {
                assert_eq!(row >> j & 1, column >> i & 1, "({i}, {j})");
            }
        }
    }
}
