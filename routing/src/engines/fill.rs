//! Fills the forwarding tables from the best first arcs, spreading the LIDs of every target over them.
//!
//! Of the n choices at switch s for a LID of rank r and LMC offset o, number (⌊r / Π[s]⌋ + o) mod n is taken: no counters,
//! so every entry depends on its own switch and target only, rows are independent. Where all choices are up-links of a
//! regular tree, the number is taken modulo the slots of the tree as it was meant ([`super::slots`]), and only LIDs whose
//! slot is not among the choices go elsewhere: one failed link changes few entries. Each switch of a group takes another slot for
//! them, so that what a link carried is parted over all others; a tree with many gaps is relieved of its full links
//! ([`super::relief`]). Parallel cables down to a switch that
//! has far fewer upper neighbours than others of its level are dealt by its own number of these in place of Π[s]; so are, at all
//! switches above, the LIDs of a leaf with far fewer ways up than others, over the choices that there are ([`super::few_uplinks`]). Several
//! lower switches are dealt by the divider of those below them ([`super::below`]). Where the operator orders a
//! switch's ports, the choices are numbered in that order and there are no slots. The LIDs of switches themselves, which carry
//! next to no traffic, go by the arc of number r + s + o or the first after it that is a choice: there are many equal ways to
//! them, and one that is lost moves only what went over it. In the end the paths to ports with several LIDs are set apart
//! ([`super::apart`]). Cost: one step an entry, a look-up only where many rows deal by one [`Patterns`].

use std::sync::Arc;

use super::apart::{Before, set_apart, set_apart_again};
use super::deal::places;
use super::next_hops::{NextHops, RowChoices, TARGETS};
use super::patterns::Patterns;
use super::relief::relieve;
use super::targets::Targets;
use crate::fabric::{LinkChange, SwitchGraph, SwitchIndex};
use crate::routes::{Change, LftMatrix, NO_PORT, Routes};

/// What tables are filled from.
#[derive(Clone, Debug)]
pub(crate) struct Basis {
    /// Best first arcs.
    pub hops: NextHops,
    /// What is spread over them.
    pub targets: Targets,
    /// [`Routes::order`] of the tables.
    pub order: Option<Arc<[u32]>>,
}

impl Basis {
    /// The tables.
    pub(crate) fn routes(&self, engine: &str, graph: &SwitchGraph) -> Routes {
        let mut routes = self.dealt(engine, graph);
        self.relieve(graph, &mut routes.lfts);
        self.set_apart(graph, &mut routes.lfts);
        routes
    }

    /// Takes routes off full links of a tree with many gaps.
    pub(super) fn relieve(&self, graph: &SwitchGraph, lfts: &mut LftMatrix) {
        relieve(graph, &self.targets, &self.hops, lfts);
    }

    /// The tables before [`Basis::relieve`] and [`Basis::set_apart`].
    pub(super) fn dealt(&self, engine: &str, graph: &SwitchGraph) -> Routes {
        let mut routes = Routes { order: self.order.clone(), ..Routes::empty(engine, graph) };
        deal(graph, &self.targets, &self.hops, &mut routes.lfts, KEEP_ALL);
        routes
    }

    /// Sets the paths to ports with several LIDs apart.
    pub(super) fn set_apart(&self, graph: &SwitchGraph, lfts: &mut LftMatrix) {
        set_apart(graph, &self.targets, &self.hops, KEEP_ALL, lfts);
    }

    /// The same for tables as dealt, from what it came to before.
    pub(super) fn set_apart_again(
        &self,
        graph: &SwitchGraph,
        dealt: &LftMatrix,
        before: Before<'_>,
    ) -> LftMatrix {
        set_apart_again(graph, &self.targets, &self.hops, dealt, before)
    }
}

/// A rule that takes choices away, though never the last: it is given the switch and its exit ports for some targets.
pub(super) type Narrow<'a> = &'a (dyn Fn(SwitchIndex, &mut Vec<u8>) + Sync);

/// The rule that takes nothing away.
const KEEP_ALL: Narrow<'_> = &|_, _| ();

/// Fills all rows of `lfts`; LIDs to which there is no path get [`NO_PORT`], those that nobody has are left as they are.
pub(crate) fn fill(graph: &SwitchGraph, targets: &Targets, hops: &NextHops, lfts: &mut LftMatrix) {
    fill_narrowed(graph, targets, hops, lfts, KEEP_ALL);
}

/// The same with a rule that takes choices away.
pub(crate) fn fill_narrowed(
    graph: &SwitchGraph,
    targets: &Targets,
    hops: &NextHops,
    lfts: &mut LftMatrix,
    narrow: Narrow<'_>,
) {
    deal(graph, targets, hops, lfts, narrow);
    set_apart(graph, targets, hops, narrow, lfts);
}

fn deal(graph: &SwitchGraph, targets: &Targets, hops: &NextHops, lfts: &mut LftMatrix, narrow: Narrow<'_>) {
    let patterns = Patterns::new(graph, targets);
    lfts.par_rows_mut(|s, row| {
        let mut filler = Filler::new(graph, targets, hops, &patterns, narrow, s);
        filler.all(row);
    });
}

/// Makes tables as an earlier basis dealt them those of the new one: rows and targets for which nothing differs are left alone.
pub(crate) fn refill(
    graph: &SwitchGraph,
    (old, old_graph): (&Basis, &SwitchGraph),
    new: &Basis,
    links: &LinkChange,
    lfts: &mut LftMatrix,
) {
    let moved = new.targets.moved_from(&old.targets);
    let blocks: Vec<usize> = (0..new.hops.blocks())
        .filter(|block| moved[*block] != 0 || new.hops.searched().contains(block))
        .collect();
    let patterns = Patterns::default();
    lfts.par_change_rows(|s, row| {
        let mut filler = Filler::new(graph, &new.targets, &new.hops, &patterns, KEEP_ALL, s);
        if links.touches(s) || !new.targets.spreads_alike(&old.targets, s) {
            let row = row.all();
            row.fill(NO_PORT);
            return filler.all(row);
        }
        for block in &blocks {
            let bits =
                moved[*block] | filler.choices.differing(*block, &old.hops, old_graph.offsets()[s as usize]);
            filler.change(*block, bits, row);
        }
        for (block, bits) in new.hops.changes(s) {
            filler.change(block, bits, row);
        }
    });
}

/// Fills one row.
struct Filler<'a> {
    graph: &'a SwitchGraph,
    targets: &'a Targets,
    choices: RowChoices<'a>,
    narrow: Narrow<'a>,
    switch: SwitchIndex,
    /// Divider and shift.
    digit: (u32, u32),
    /// The divider for the choices of the last set where they have no slots.
    divider: u32,
    slots: &'a [u8],
    /// Place of each LID among the slots, where somebody has computed that.
    pattern: Option<&'a [u8]>,
    last: [u64; 4],
    /// The choices of the last set.
    ports: Vec<u8>,
    /// The same by slot, empty where the switch has no slots.
    slot_ports: Vec<u8>,
    /// `slot_ports` when all of them are choices, to look up without a bound.
    whole: Option<[u8; 256]>,
}

impl<'a> Filler<'a> {
    fn new(
        graph: &'a SwitchGraph,
        targets: &'a Targets,
        hops: &'a NextHops,
        patterns: &'a Patterns,
        narrow: Narrow<'a>,
        s: SwitchIndex,
    ) -> Self {
        Self {
            graph,
            targets,
            choices: RowChoices::new(graph, hops, s),
            narrow,
            switch: s,
            digit: (targets.divider[s as usize], targets.shift(s)),
            divider: targets.divider[s as usize],
            slots: targets.slots.of(s),
            pattern: patterns.of(targets, s),
            last: [0; 4],
            ports: Vec::new(),
            slot_ports: Vec::new(),
            whole: None,
        }
    }

    fn all(&mut self, row: &mut [u8]) {
        for block in 0..self.choices.blocks() {
            self.block(block, u64::MAX, row);
        }
    }

    /// The same of a row that is copied as far as these targets' LIDs.
    fn change(&mut self, block: usize, bits: u64, row: &mut Change<'_>) {
        if bits != 0 {
            let named = (0..TARGETS).filter(|bit| bits >> bit & 1 == 1);
            let ends = named.flat_map(|bit| self.targets.of((block * TARGETS + bit) as SwitchIndex));
            ends.for_each(|end| {
                row.with(usize::from(end.lid)..usize::from(end.lid) + usize::from(end.lids));
            });
            self.block(block, bits, row.with(0..0));
        }
    }

    /// Fills the targets of a block that `bits` names.
    fn block(&mut self, block: usize, bits: u64, row: &mut [u8]) {
        self.choices.load(block);
        for bit in
            (0..TARGETS.min(self.graph.switch_count() - block * TARGETS)).filter(|b| bits >> b & 1 == 1)
        {
            let target = (block * TARGETS + bit) as SwitchIndex;
            if target == self.switch {
                for own in self.targets.of(target) {
                    let first = usize::from(own.lid);
                    row[first..first + usize::from(own.lids)].fill(own.port);
                }
            } else if let Some(port) = self.choices.only(bit) {
                // The most frequent case, and nothing is to be dealt.
                match self.targets.runs(target) {
                    Some(runs) => runs.into_iter().for_each(|run| row[run].fill(port)),
                    None => self.targets.lids_of(target).for_each(|lid| row[lid] = port),
                }
            } else {
                if !self.choices.is_set(bit, &self.last) {
                    self.take(self.choices.set(bit));
                }
                self.target(target, row);
            }
        }
    }

    fn take(&mut self, set: [u64; 4]) {
        self.last = set;
        self.choices.ports_of(&set, &mut self.ports);
        (self.narrow)(self.switch, &mut self.ports);
        self.divider = self
            .targets
            .cables_of(self.switch)
            .find(|(to, _)| self.all_lead_to(*to))
            .map(|(_, own)| own)
            .or_else(|| {
                self.targets.below[self.switch as usize].divider(self.graph, self.switch, &self.ports)
            })
            .unwrap_or(self.digit.0);
        if let Some(order) = self.targets.port_order.get(&self.switch) {
            // The operator's order counts in place of the tree's.
            let place = |port: &u8| order.iter().position(|listed| listed == port).unwrap_or(usize::MAX);
            self.ports.sort_by_key(place);
            self.slot_ports.clear();
        } else {
            usable_slots(self.slots, &self.ports, &mut self.slot_ports);
        }
        let whole = !self.slot_ports.is_empty() && !self.slot_ports.contains(&NO_PORT);
        self.whole = whole.then(|| {
            let mut table = [NO_PORT; 256];
            table[..self.slot_ports.len()].copy_from_slice(&self.slot_ports);
            table
        });
    }

    /// Whether all choices of the last set are parallel cables to one switch.
    fn all_lead_to(&self, to: SwitchIndex) -> bool {
        let arcs = self.graph.arcs(self.switch);
        self.ports.iter().all(|port| arcs.iter().any(|arc| arc.to == to && arc.out_port == *port))
    }

    fn target(&self, target: SwitchIndex, row: &mut [u8]) {
        if let Some(seed) = self.targets.scatter.filter(|_| self.ports.len() > 1) {
            for lid in self.targets.lids_of(target) {
                row[lid] = self.ports[chance(seed, self.switch, lid) % self.ports.len()];
            }
            return;
        }
        let own = self.targets.own_divider(self.switch, target, self.divider);
        let pattern = self.pattern.filter(|_| own.is_none());
        match (&self.ports[..], &self.whole, pattern, self.targets.runs(target)) {
            ([], ..) => self.targets.lids_of(target).for_each(|lid| row[lid] = NO_PORT),
            ([port], .., Some(runs)) => runs.into_iter().for_each(|run| row[run].fill(*port)),
            (_, Some(table), Some(pattern), Some(runs)) => {
                for run in runs {
                    let places = &pattern[run.clone()];
                    let entries = row[run].iter_mut().zip(places);
                    entries.for_each(|(entry, place)| *entry = table[usize::from(*place)]);
                }
            }
            _ if self.slot_ports.is_empty() || own.is_some() => {
                let digit = (own.unwrap_or(self.divider), self.digit.1);
                places(self.targets.of(target), digit, self.ports.len(), |lid, _, place| {
                    row[usize::from(lid)] = self.ports[place];
                });
                self.own_lids(target, row);
            }
            _ => self.by_slots(target, row),
        }
    }

    /// Gives each LID the port of its slot. Those whose slot is no choice take the one so many slots further: by the next digit of
    /// the rank, so that one switch spreads what it loses, and by the switch's number, so that the switches of a group
    /// part what they lose alike, as all ways to a leaf behind one spine. What finds none there is spread by a hash.
    fn by_slots(&self, target: SwitchIndex, row: &mut [u8]) {
        let (divider, _) = self.digit;
        let (slots, number) = (&self.slot_ports, self.targets.slots.number(self.switch));
        let above = divider.saturating_mul(slots.len() as u32);
        places(self.targets.of(target), self.digit, slots.len(), |lid, rank, place| {
            let further = |place: usize| {
                let by = number.wrapping_add(rank / above) as usize % (slots.len() - 1).max(1);
                slots[(place + 1 + by) % slots.len()]
            };
            let port = match slots[place] {
                NO_PORT => further(place),
                port => port,
            };
            let port =
                if port == NO_PORT { self.ports[hash(rank, lid, number) % self.ports.len()] } else { port };
            row[usize::from(lid)] = port;
        });
    }

    /// Deals the LIDs of a switch itself so that a choice that is lost moves what it had only.
    fn own_lids(&self, target: SwitchIndex, row: &mut [u8]) {
        let narrowed =
            self.ports.len() != self.last.iter().map(|word| word.count_ones() as usize).sum::<usize>();
        if narrowed || self.targets.port_order.contains_key(&self.switch) {
            return;
        }
        let arcs = self.graph.arcs(self.switch).len() as u32;
        for own in self.targets.of(target).iter().filter(|own| own.port == 0) {
            let lids = usize::from(own.lid)..usize::from(own.lid) + usize::from(own.lids);
            for (lid, offset) in lids.zip(0..) {
                let from = own.rank.wrapping_add(self.switch).wrapping_add(offset) % arcs;
                row[lid] = self.ports[place_from(&self.last, from)];
            }
        }
    }
}

/// The place among the members of a set of the first that is `from` or more, or of the first of all.
fn place_from(set: &[u64; 4], from: u32) -> usize {
    let (word, bit) = (from as usize / 64, from % 64);
    let below: u32 = set[..word].iter().map(|w| w.count_ones()).sum::<u32>()
        + (set[word] & ((1_u64 << bit) - 1)).count_ones();
    let all: u32 = set.iter().map(|w| w.count_ones()).sum();
    if below == all { 0 } else { below as usize }
}

/// The slots with those taken out that are no choice; empty when a choice has no slot.
fn usable_slots(slots: &[u8], choices: &[u8], usable: &mut Vec<u8>) {
    usable.clear();
    let mut chosen = [0_u64; 4];
    choices.iter().for_each(|port| chosen[usize::from(*port) / 64] |= 1 << (port % 64));
    let is_choice = |port: u8| chosen[usize::from(port) / 64] >> (port % 64) & 1 == 1;
    usable.extend(slots.iter().map(|port| if is_choice(*port) { *port } else { NO_PORT }));
    if usable.iter().filter(|port| **port != NO_PORT).count() != choices.len() {
        usable.clear();
    }
}

/// A number that looks random, the same for the same seed, switch and LID (the finaliser of SplitMix64).
fn chance(seed: u64, switch: SwitchIndex, lid: usize) -> usize {
    let mut mixed =
        seed.wrapping_add((u64::from(switch) << 16 | lid as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ mixed >> 31) as usize
}

/// Spreads what has lost its slot and the next.
fn hash(rank: u32, lid: u16, number: u32) -> usize {
    let mixed = (u64::from(rank) << 16 | u64::from(lid)) ^ u64::from(number) << 48;
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize
}
