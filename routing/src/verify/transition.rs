//! The way from old tables to new ones: is every mix of the two free of loops, and if not, in which order must the blocks
//! be written.
//!
//! For one LID an order always exists when the new tables are free of loops: whoever is written after all switches on its
//! new path follows the new path to the end, whoever is not written yet follows the old one until it meets such a switch.
//! [`plan`] asks for this order only where it is needed: where old and new entries together close a cycle, and where the
//! new path of a switch that works leads over one that does not work yet, so that no path is cut on the way. One block
//! holds 64 LIDs whose orders can contradict each other; then some LIDs of the block are written in a second round, and no
//! entry ever has to be dropped.
//!
//! Cost: a scan for blocks that differ, then for each changed LID the stretches reachable from the switches that change.

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::network::{Exit, Network};
use crate::fabric::{SwitchGraph, SwitchIndex};
use crate::routes::{LFT_BLOCK, LftMatrix, NO_PORT, Row};

/// One block of one switch to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Write {
    /// The switch.
    pub switch: SwitchIndex,
    /// Number of the block; it begins at LID `64 * block`.
    pub block: u16,
    /// The LIDs of the block (bit i = LID `64 * block + i`) that have their new entry after this write; the others keep the
    /// old one. All ones unless the block has to be written twice.
    pub done: u64,
}

impl Write {
    /// The 64 entries to send.
    pub fn content(&self, old: &LftMatrix, new: &LftMatrix) -> [u8; LFT_BLOCK] {
        let entry =
            |tables: &LftMatrix, i| entry(tables, self.switch, usize::from(self.block) * LFT_BLOCK + i);
        std::array::from_fn(|i| entry(if self.done >> i & 1 == 1 { new } else { old }, i))
    }
}

/// Writes that may be sent and take effect in any order; the next step begins when all are confirmed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The writes, sorted.
    pub writes: Vec<Write>,
}

/// What changes, and what could happen in between without an order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Entries that differ.
    pub entries: usize,
    /// Blocks of 64 entries that differ.
    pub blocks: usize,
    /// Switches with such a block.
    pub switches: usize,
    /// LIDs for which some mix of old and new entries holds a loop.
    pub loops: Vec<u16>,
    /// LIDs for which some order of writing cuts a path that works before and after.
    pub cuts: Vec<u16>,
}

/// Looks for loops and cuts in any mix of the entries of `old` and `new`.
///
/// Rows of both are in the order of the graph's switches; rows and entries that are not there count as 255. Old entries
/// that lead over links which are down are no paths.
pub fn check(graph: &SwitchGraph, old: &LftMatrix, new: &LftMatrix) -> Change {
    let network = Network::new(graph);
    let columns = changed_columns(graph, old, new);
    let parts: Vec<Change> = columns
        .par_iter()
        .map_init(|| Mix::new(&network, old, new), |mix, column| mix.change(column))
        .collect();
    let mut change = Change::default();
    let mut switches = vec![false; graph.switch_count()];
    for (part, column) in parts.into_iter().zip(&columns) {
        change.entries += part.entries;
        change.blocks += column.switches.len();
        change.loops.extend(part.loops);
        change.cuts.extend(part.cuts);
        column.switches.iter().for_each(|(s, _)| switches[*s as usize] = true);
    }
    change.switches = switches.into_iter().filter(|s| *s).count();
    change
}

/// Steps from `old` to `new` such that at no moment a mix of them holds a loop that is not in `old` or `new` itself, and no
/// path is cut that works in both.
///
/// Nothing is written that is right already; no steps when nothing differs.
pub fn plan(graph: &SwitchGraph, old: &LftMatrix, new: &LftMatrix) -> Vec<Step> {
    let network = Network::new(graph);
    let columns = changed_columns(graph, old, new);
    // LID by LID, since all that changes may be in one column.
    let lids: Vec<(usize, u32, usize)> = columns
        .iter()
        .enumerate()
        .flat_map(|(number, column)| column.lids().map(move |(bit, lid)| (number, bit, lid)))
        .collect();
    let needs: Vec<Vec<Before>> = lids
        .par_iter()
        .map_init(
            || Mix::new(&network, old, new),
            |mix, (number, bit, lid)| mix.needs(*bit, *lid, &columns[*number].switches).before,
        )
        .collect();
    let mut of_column: Vec<Needed> = columns.iter().map(|_| Vec::new()).collect();
    for ((number, bit, _), before) in lids.into_iter().zip(needs).filter(|(_, before)| !before.is_empty()) {
        of_column[number].push((bit, before));
    }
    let planned: Vec<Vec<Step>> =
        columns.par_iter().zip(of_column).map(|(column, needs)| order(column, needs)).collect();
    let mut steps: Vec<Step> = Vec::new();
    for column in planned {
        for (number, step) in column.into_iter().enumerate() {
            if steps.len() == number {
                steps.push(Step::default());
            }
            steps[number].writes.extend(step.writes);
        }
    }
    for step in &mut steps {
        step.writes.sort_unstable();
    }
    steps
}

/// A block number and the switches where that block differs, each with those of its LIDs that do.
struct Column {
    block: u16,
    switches: Vec<(SwitchIndex, u64)>,
}

impl Column {
    /// The LIDs that differ on some switch, each with its bit.
    fn lids(&self) -> impl Iterator<Item = (u32, usize)> + use<> {
        let first = usize::from(self.block) * LFT_BLOCK;
        let mut left = self.switches.iter().fold(0, |all, (_, lids)| all | lids);
        std::iter::from_fn(move || {
            let bit = (left != 0).then(|| left.trailing_zeros())?;
            left &= left - 1;
            Some((bit, first + bit as usize))
        })
    }
}

fn entry(tables: &LftMatrix, switch: SwitchIndex, lid: usize) -> u8 {
    if (switch as usize) < tables.switch_count() {
        tables.row(switch).get(lid).unwrap_or(NO_PORT)
    } else {
        NO_PORT
    }
}

fn changed_columns(graph: &SwitchGraph, old: &LftMatrix, new: &LftMatrix) -> Vec<Column> {
    const NONE: [u8; LFT_BLOCK] = [NO_PORT; LFT_BLOCK];
    let blocks = old.stride().max(new.stride()) / LFT_BLOCK;
    fn block_of(tables: &LftMatrix, s: u32, block: usize) -> &[u8] {
        let known = (s as usize) < tables.switch_count();
        let row = if known { tables.row(s) } else { Row::EMPTY };
        row.block(block).map_or(&NONE[..], |block| &block[..])
    }
    let differing: Vec<Vec<(u16, u64)>> = (0..graph.switch_count() as u32)
        .into_par_iter()
        .map(|s| {
            let both = (s as usize) < old.switch_count().min(new.switch_count());
            let blocks: Vec<usize> = if both && old.stride() == new.stride() {
                new.differing_blocks(s, old).collect()
            } else {
                (0..blocks).filter(|b| block_of(old, s, *b) != block_of(new, s, *b)).collect()
            };
            let bits = |b: usize| differing_bits(block_of(old, s, b), block_of(new, s, b));
            blocks.into_iter().map(|b| (b as u16, bits(b))).collect()
        })
        .collect();
    let mut columns: Vec<Column> =
        (0..blocks).map(|block| Column { block: block as u16, switches: Vec::new() }).collect();
    for (s, blocks) in differing.into_iter().enumerate() {
        for (block, lids) in blocks {
            columns[usize::from(block)].switches.push((s as u32, lids));
        }
    }
    columns.retain(|c| !c.switches.is_empty());
    columns
}

/// The places, as bits, where two blocks of entries differ.
fn differing_bits(old: &[u8], new: &[u8]) -> u64 {
    let pairs = old.iter().zip(new).enumerate();
    pairs.fold(0, |bits, (place, (old, new))| bits | u64::from(old != new) << place)
}

/// "`first` is to be written before `then`."
type Before = (SwitchIndex, SwitchIndex);

/// What has to be known of one LID.
#[derive(Default)]
struct Needs {
    before: Vec<Before>,
    changed: usize,
    loops: bool,
    cuts: bool,
}

/// Old and new tables laid over one another, with scratch space.
struct Mix<'a> {
    network: &'a Network<'a>,
    old: &'a LftMatrix,
    new: &'a LftMatrix,
    /// 0 not seen, 1 on the path of the search, 2 finished; cleared through `touched`.
    colour: Vec<u8>,
    touched: Vec<SwitchIndex>,
    /// Whether the old path from a switch works: 0 not known.
    works: Vec<u8>,
    walked: Vec<SwitchIndex>,
}

impl<'a> Mix<'a> {
    fn new(network: &'a Network<'a>, old: &'a LftMatrix, new: &'a LftMatrix) -> Self {
        let count = network.graph.switch_count();
        Self {
            network,
            old,
            new,
            colour: vec![0; count],
            touched: Vec::new(),
            works: vec![0; count],
            walked: Vec::new(),
        }
    }

    fn change(&mut self, column: &Column) -> Change {
        let mut change = Change::default();
        for (bit, lid) in column.lids() {
            let needs = self.needs(bit, lid, &column.switches);
            change.entries += needs.changed;
            change.loops.extend(needs.loops.then_some(lid as u16));
            change.cuts.extend(needs.cuts.then_some(lid as u16));
        }
        change
    }

    fn next(&self, tables: &LftMatrix, s: SwitchIndex, lid: usize) -> Option<SwitchIndex> {
        match self.network.exit(s, entry(tables, s, lid)) {
            Exit::Arc(arc) => Some(self.network.to(arc)),
            Exit::End | Exit::Nothing => None,
        }
    }

    fn changes(&self, s: SwitchIndex, lid: usize) -> bool {
        entry(self.old, s, lid) != entry(self.new, s, lid)
    }

    fn needs(&mut self, bit: u32, lid: usize, switches: &[(SwitchIndex, u64)]) -> Needs {
        let changed: Vec<SwitchIndex> =
            switches.iter().filter(|(_, lids)| lids >> bit & 1 == 1).map(|(s, _)| *s).collect();
        let mut needs = Needs { changed: changed.len(), ..Needs::default() };
        needs.loops = self.has_cycle(lid, &changed);
        let component = if needs.loops { self.components(lid, &changed) } else { FxHashMap::default() };
        for s in &changed {
            let Some(successor) = self.next(self.new, *s, lid) else { continue };
            let mut together = component.get(s).is_some_and(|c| component.get(&successor) == Some(c));
            let owned = self.network.owner(lid).is_some();
            let works = owned && self.old_works(*s, lid);
            // Along the new path: the next switch that changes must come first where a loop threatens, and every switch
            // that does not work yet must come first where something that works could be cut.
            let mut at = Some(successor);
            for _ in 0..self.colour.len() {
                let Some(there) = at else { break };
                let broken = works && !self.old_works(there, lid);
                if !together && !broken {
                    break;
                }
                if self.changes(there, lid) {
                    needs.before.push((there, *s));
                    needs.cuts |= broken;
                    together = false;
                }
                at = self.next(self.new, there, lid);
            }
        }
        self.walked.drain(..).for_each(|s| self.works[s as usize] = 0);
        needs
    }

    /// Whether old and new entries together close a cycle that the changed switches reach.
    fn has_cycle(&mut self, lid: usize, changed: &[SwitchIndex]) -> bool {
        let mut found = false;
        let mut stack: Vec<(SwitchIndex, u8)> = Vec::new();
        for start in changed {
            if self.colour[*start as usize] == 0 {
                stack.push((*start, 0));
            }
            while let Some((s, tried)) = stack.pop() {
                if tried == 0 {
                    self.colour[s as usize] = 1;
                    self.touched.push(s);
                }
                if tried == 2 {
                    self.colour[s as usize] = 2;
                    continue;
                }
                stack.push((s, tried + 1));
                let next = self.next(if tried == 0 { self.old } else { self.new }, s, lid);
                match next.map(|n| (n, self.colour[n as usize])) {
                    Some((n, 0)) => stack.push((n, 0)),
                    Some((_, 1)) => found = true,
                    _ => {}
                }
            }
        }
        self.touched.drain(..).for_each(|s| self.colour[s as usize] = 0);
        found
    }

    /// Strongly connected components of the mix, as far as the changed switches reach; only those of two or more.
    fn components(&self, lid: usize, changed: &[SwitchIndex]) -> FxHashMap<SwitchIndex, usize> {
        let mut graph = petgraph::graphmap::DiGraphMap::<SwitchIndex, ()>::new();
        let mut queue: Vec<SwitchIndex> = changed.to_vec();
        for s in changed {
            graph.add_node(*s);
        }
        while let Some(s) = queue.pop() {
            for next in [self.next(self.old, s, lid), self.next(self.new, s, lid)].into_iter().flatten() {
                if !graph.contains_node(next) {
                    queue.push(next);
                }
                graph.add_edge(s, next, ());
            }
        }
        let mut component = FxHashMap::default();
        let sccs = petgraph::algo::kosaraju_scc(&graph);
        for (number, members) in sccs.into_iter().filter(|m| m.len() > 1).enumerate() {
            component.extend(members.into_iter().map(|s| (s, number)));
        }
        component
    }

    /// Whether the old tables bring the LID from `s` to its owner.
    fn old_works(&mut self, s: SwitchIndex, lid: usize) -> bool {
        const WORKS: u8 = 1;
        const FAILS: u8 = 2;
        let Some(owner) = self.network.owner(lid) else { return false };
        let first = self.walked.len();
        let mut at = s;
        let end = loop {
            if self.works[at as usize] != 0 {
                break self.works[at as usize];
            }
            // Failing until proved working, which also ends a loop.
            self.works[at as usize] = FAILS;
            self.walked.push(at);
            if at == owner.switch && entry(self.old, at, lid) == owner.port {
                break WORKS;
            }
            match self.next(self.old, at, lid) {
                Some(next) => at = next,
                None => break FAILS,
            }
        };
        for s in &self.walked[first..] {
            self.works[*s as usize] = end;
        }
        end == WORKS
    }
}

/// LIDs of a column, by bit, with what has to be written first for each.
type Needed = Vec<(u32, Vec<Before>)>;

/// Orders the writes of one column: rounds of LIDs that don't contradict each other, each in layers.
fn order(column: &Column, needs: Needed) -> Vec<Step> {
    let mut left = needs;
    let mut waiting = u64::MAX;
    let mut steps = Vec::new();
    loop {
        let (round, later) = compatible(left);
        let later_bits = later.iter().fold(0, |bits, (bit, _)| bits | 1_u64 << bit);
        let now = waiting & !later_bits;
        waiting &= later_bits;
        let before: Vec<Before> = round.into_iter().flat_map(|(_, before)| before).collect();
        let writes: Vec<SwitchIndex> =
            column.switches.iter().filter(|(_, lids)| lids & now != 0).map(|(s, _)| *s).collect();
        for layer in layers(&writes, &before) {
            let write = |switch| Write { switch, block: column.block, done: !waiting };
            steps.push(Step { writes: layer.into_iter().map(write).collect() });
        }
        if later.is_empty() {
            return steps;
        }
        left = later;
    }
}

/// Splits into LIDs whose orders hold together, and the rest.
fn compatible(needs: Needed) -> (Needed, Needed) {
    let mut all: Vec<Before> = needs.iter().flat_map(|(_, before)| before.iter().copied()).collect();
    all.sort_unstable();
    all.dedup();
    if is_acyclic(&all) {
        return (needs, Vec::new());
    }
    let mut taken: Vec<Before> = Vec::new();
    let (mut round, mut later) = (Vec::new(), Vec::new());
    for (bit, before) in needs {
        let length = taken.len();
        taken.extend(&before);
        if is_acyclic(&taken) {
            round.push((bit, before));
        } else {
            taken.truncate(length);
            later.push((bit, before));
        }
    }
    if round.is_empty() {
        // The new tables themselves hold a loop for every one of these LIDs: no order helps.
        return (later.into_iter().map(|(bit, _)| (bit, Vec::new())).collect(), Vec::new());
    }
    (round, later)
}

fn is_acyclic(before: &[Before]) -> bool {
    if before.is_empty() {
        return true;
    }
    let graph = petgraph::graphmap::DiGraphMap::<SwitchIndex, ()>::from_edges(before.iter().copied());
    petgraph::algo::toposort(&graph, None).is_ok()
}

/// Layers of `writes` such that each comes after all that must be written before it.
fn layers(writes: &[SwitchIndex], before: &[Before]) -> Vec<Vec<SwitchIndex>> {
    if before.is_empty() && !writes.is_empty() {
        return vec![writes.to_vec()];
    }
    let mut depth: FxHashMap<SwitchIndex, usize> = writes.iter().map(|s| (*s, 0)).collect();
    let graph = petgraph::graphmap::DiGraphMap::<SwitchIndex, ()>::from_edges(before.iter().copied());
    let order = petgraph::algo::toposort(&graph, None).unwrap_or_default();
    for first in order {
        let next = depth.get(&first).map_or(0, |d| d + 1);
        for then in graph.neighbors(first) {
            if let Some(depth) = depth.get_mut(&then) {
                *depth = (*depth).max(next);
            }
        }
    }
    let count = depth.values().max().map_or(0, |d| d + 1);
    let mut layers = vec![Vec::new(); count];
    for s in writes {
        layers[depth[s]].push(*s);
    }
    layers
}

#[cfg(test)]
mod tests;
