//! What changed tables change in the sums of all walks, without walking what did not change.
//!
//! For one LID the switches whose walk differs are those that send through a *changed* switch: one whose entry differs, or is
//! a link that is gone. Whoever sends through it keeps its way as far as there; so it is enough to know how many hosts send
//! through each changed switch, and to follow the old and the new way from there on. Who sends through a switch is found
//! backwards from it; the dependencies of the old tables say which links can lead there at all.
//!
//! Detours also change where the fewest hops to a target do. When links go or come, these are the same for all targets to
//! which they are the same from the ends of these links; for the other targets they are measured again.
//!
//! Cost: a comparison of the rows that changed, two breadth-first searches for the ends of links and for every 64 targets that
//! are farther or nearer than before, and for each changed entry the old way, the new way and the links of those that send through it.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::dependencies::Dependencies;
use super::network::{Exit, ManyHops, Network};
use super::walk::{HISTOGRAM, Tally};
use crate::fabric::{Destination, LinkChange, SwitchIndex};
use crate::routes::{LFT_BLOCK, LftMatrix, NO_PORT};

/// Old and new.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    pub old: &'a Network<'a>,
    pub new: &'a Network<'a>,
    pub old_lfts: &'a LftMatrix,
    pub new_lfts: &'a LftMatrix,
    pub links: &'a LinkChange,
    /// All dependencies of the old tables, or more.
    pub dependencies: &'a Dependencies,
}

/// What is to be added to sums, and the dependencies that are new.
#[derive(Clone, Default)]
pub(super) struct Difference {
    histogram: Vec<i64>,
    reach: Vec<i64>,
    detours: i64,
    extra_hops: i64,
    stray: i64,
    /// By number of arcs in the new graph.
    load: Vec<i32>,
    /// Pairs of an arc and the place of the next, between hosts and else.
    hosts: Vec<(u32, u32)>,
    others: Vec<(u32, u32)>,
}

impl Difference {
    fn merge(mut self, other: Self) -> Self {
        fn add<T: Copy + Default + std::ops::AddAssign>(sums: &mut Vec<T>, other: &[T]) {
            sums.resize(sums.len().max(other.len()), T::default());
            sums.iter_mut().zip(other).for_each(|(a, b)| *a += *b);
        }
        add(&mut self.histogram, &other.histogram);
        add(&mut self.reach, &other.reach);
        add(&mut self.load, &other.load);
        self.detours += other.detours;
        self.extra_hops += other.extra_hops;
        self.stray += other.stray;
        self.hosts.extend(other.hosts);
        self.others.extend(other.others);
        self
    }

    /// Adds it to the sums; `load` of these must be by new arcs already.
    pub(super) fn apply(&self, tally: &mut Tally) {
        let added = |sum: &mut u64, difference: i64| *sum = sum.wrapping_add_signed(difference);
        tally.histogram.iter_mut().zip(&self.histogram).for_each(|(sum, d)| added(sum, *d));
        tally.reach.resize(tally.reach.len().max(self.reach.len()), 0);
        tally.reach.iter_mut().zip(&self.reach).for_each(|(sum, d)| added(sum, *d));
        added(&mut tally.detours, self.detours);
        added(&mut tally.extra_hops, self.extra_hops);
        added(&mut tally.stray, self.stray);
        tally.load.iter_mut().zip(&self.load).for_each(|(sum, d)| *sum = sum.wrapping_add_signed(*d));
    }

    /// Dependencies that are not in `known`, sorted: those between hosts.
    pub(super) fn new_hosts(&self, known: &Dependencies) -> Vec<(u32, u32)> {
        not_in(known, self.hosts.iter())
    }

    /// The same of all traffic.
    pub(super) fn new_all(&self, known: &Dependencies) -> Vec<(u32, u32)> {
        not_in(known, self.hosts.iter().chain(&self.others))
    }
}

fn not_in<'a>(known: &Dependencies, found: impl Iterator<Item = &'a (u32, u32)>) -> Vec<(u32, u32)> {
    let mut new: Vec<(u32, u32)> =
        found.filter(|(arc, place)| !known.contains(0, *arc, *place as usize)).copied().collect();
    new.sort_unstable();
    new.dedup();
    new
}

/// Where fewest hops changed.
#[derive(Default)]
struct Farther {
    /// By target switch, from where they differ: old and new.
    by_target: FxHashMap<SwitchIndex, Vec<(SwitchIndex, u16, u16)>>,
    /// These targets' fewest hops now: number of the measurement and place in it.
    measured: FxHashMap<SwitchIndex, (usize, usize)>,
    now: Vec<ManyHops>,
}

impl Farther {
    /// From where the fewest hops to a target differ.
    fn from(&self, target: SwitchIndex) -> &[(SwitchIndex, u16, u16)] {
        self.by_target.get(&target).map_or(&[], |farther| &farther[..])
    }
}

/// The difference that new tables and links make; `None` when something does not arrive, or is not connected, in either.
pub(super) fn difference(pair: Pair<'_>) -> Option<Difference> {
    let (changed, farther) = rayon::join(|| changed_entries(&pair), || farther(&pair));
    let farther = farther?;
    // The LIDs, each with its changed switches: of all with a changed entry, and of all owners whose distance changed.
    let mut jobs: Vec<(u16, &[(u16, SwitchIndex)])> =
        changed.chunk_by(|a, b| a.0 == b.0).map(|entries| (entries[0].0, entries)).collect();
    let known: rustc_hash::FxHashSet<u16> = jobs.iter().map(|(lid, _)| *lid).collect();
    let owners = pair.new.graph.destinations().iter().filter(|d| farther.by_target.contains_key(&d.switch));
    jobs.extend(
        owners.flat_map(Destination::lids).filter(|lid| !known.contains(lid)).map(|lid| (lid, &[][..])),
    );
    jobs.sort_unstable_by_key(|(lid, _)| *lid);
    let mut new_arc = vec![u32::MAX; pair.old.from.len()];
    for (arc, old) in (0..).zip(&pair.links.old_arc).filter(|(_, old)| **old != u32::MAX) {
        new_arc[*old as usize] = arc;
    }
    // Dealt in turn: LIDs with much to do are often neighbours.
    let shares = rayon::current_num_threads() * 2;
    let parts = (0..shares).into_par_iter().map(|first| {
        let mut rewalk = Rewalk::new(pair, &farther, &new_arc);
        jobs.iter().skip(first).step_by(shares).try_for_each(|(lid, changed)| rewalk.lid(*lid, changed))?;
        Some(rewalk.found)
    });
    parts.try_reduce(Difference::default, |a, b| Some(a.merge(b)))
}

/// LIDs and switches whose entry differs or leads over a link that is gone, sorted.
fn changed_entries(pair: &Pair<'_>) -> Vec<(u16, SwitchIndex)> {
    let rows: Vec<SwitchIndex> = (0..pair.new_lfts.switch_count() as SwitchIndex)
        .filter(|s| !pair.new_lfts.shares_row(*s, pair.old_lfts))
        .collect();
    let differing = rows.par_iter().flat_map_iter(|s| {
        let (old, new) = (pair.old_lfts.row(*s), pair.new_lfts.row(*s));
        let blocks = pair.new_lfts.differing_blocks(*s, pair.old_lfts);
        blocks.flat_map(move |block| {
            let blocks = old.block(block).into_iter().zip(new.block(block));
            let entries = (block * LFT_BLOCK..).zip(blocks.flat_map(|(old, new)| old.iter().zip(new)));
            entries.filter(|(_, (old, new))| old != new).map(move |(lid, _)| (lid as u16, *s))
        })
    });
    let mut changed: Vec<(u16, SwitchIndex)> = differing.collect();
    for (s, arc) in &pair.links.lost {
        let port = pair.old.graph.all_arcs()[*arc as usize].out_port;
        let users = pair.old_lfts.row(*s).iter().enumerate().filter(|(_, entry)| **entry == port);
        changed.extend(users.map(|(lid, _)| (lid as u16, *s)));
    }
    changed.par_sort_unstable();
    changed.dedup();
    changed
}

/// From where the fewest hops to which switch changed; `None` when the fabric is not in one piece.
///
/// Where they are the same from all ends of links that went or came, they are the same from everywhere: a shortest way up to
/// the first link that is gone, and on from there by what is as short, is as short as before; and the other way round.
fn farther(pair: &Pair<'_>) -> Option<Farther> {
    let mut ends: Vec<SwitchIndex> =
        pair.links.lost.iter().chain(&pair.links.added).map(|(s, _)| *s).collect();
    ends.sort_unstable();
    ends.dedup();
    let measure = |sources: &[SwitchIndex]| {
        let (old, new) =
            rayon::join(|| pair.old.hops_from_many(sources), || pair.new.hops_from_many(sources));
        (old.whole && new.whole).then_some((old, new))
    };
    let switches = 0..pair.new.graph.switch_count() as SwitchIndex;
    let mut targets: Vec<SwitchIndex> = Vec::new();
    for ends in ends.chunks(64) {
        let (old, new) = measure(ends)?;
        targets.extend(switches.clone().filter(|s| new.differing(&old, *s) != 0));
    }
    targets.sort_unstable();
    targets.dedup();
    let mut farther = Farther::default();
    for (number, targets) in targets.chunks(64).enumerate() {
        let (old, new) = measure(targets)?;
        for s in switches.clone() {
            let mut differing = new.differing(&old, s);
            while differing != 0 {
                let place = differing.trailing_zeros() as usize;
                differing &= differing - 1;
                let hops = (s, old.hops(place, s), new.hops(place, s));
                farther.by_target.entry(targets[place]).or_default().push(hops);
            }
        }
        farther.measured.extend(targets.iter().enumerate().map(|(place, s)| (*s, (number, place))));
        farther.now.push(new);
    }
    Some(farther)
}

/// Somebody who sends through a changed switch.
struct Sender {
    switch: SwitchIndex,
    /// Hops to the changed switch.
    depth: u16,
    /// Whom it sends to, as an index among the senders.
    next: usize,
    /// Host ports that send through it, its own included.
    ports: u32,
}

/// Works LID by LID.
struct Rewalk<'a> {
    pair: Pair<'a>,
    farther: &'a Farther,
    found: Difference,
    /// New number of each old arc.
    new_arc: &'a [u32],
    /// By switch, the last job in which it was found changed.
    changed_in: Vec<u32>,
    job: u32,
    senders: Vec<Sender>,
    /// Fewest hops to the target that was asked for last.
    distance: Vec<u16>,
    distance_of: SwitchIndex,
    /// Arcs of a way.
    way: Vec<u32>,
}

impl<'a> Rewalk<'a> {
    fn new(pair: Pair<'a>, farther: &'a Farther, new_arc: &'a [u32]) -> Self {
        Self {
            pair,
            farther,
            found: Difference {
                histogram: vec![0; HISTOGRAM],
                load: vec![0; pair.new.from.len()],
                ..Difference::default()
            },
            new_arc,
            changed_in: vec![0; pair.new.graph.switch_count()],
            job: 0,
            senders: Vec::new(),
            distance: Vec::new(),
            distance_of: SwitchIndex::MAX,
            way: Vec::new(),
        }
    }

    fn lid(&mut self, lid: u16, changed: &[(u16, SwitchIndex)]) -> Option<()> {
        let Some(owner) = self.pair.new.owner(usize::from(lid)) else {
            for (_, s) in changed {
                let used = |lfts: &LftMatrix| i64::from(lfts.row(*s)[usize::from(lid)] != NO_PORT);
                self.found.stray += used(self.pair.new_lfts) - used(self.pair.old_lfts);
            }
            return Some(());
        };
        self.job += 1;
        changed.iter().for_each(|(_, s)| self.changed_in[*s as usize] = self.job);
        for (_, s) in changed {
            self.changed_switch(lid, *s, owner)?;
        }
        for (s, before, after) in self.farther.from(owner.switch) {
            let [old, new] = [false, true].map(|new| self.follow(lid, *s, owner, new));
            self.count_detour(old?, *before, -1);
            self.count_detour(new?, *after, 1);
        }
        Some(())
    }

    fn changed_switch(&mut self, lid: u16, s: SwitchIndex, owner: &Destination) -> Option<()> {
        self.gather(lid, s, owner);
        let ports = self.senders[0].ports as i32;
        let before = self.follow(lid, s, owner, false)?;
        for arc in &self.way {
            let arc = self.new_arc[*arc as usize];
            if arc != u32::MAX {
                self.found.load[arc as usize] -= ports;
            }
        }
        let after = self.follow(lid, s, owner, true)?;
        self.way.iter().for_each(|arc| self.found.load[*arc as usize] += ports);
        self.add_dependencies(lid);
        if before != after {
            self.count_hops(before, after, owner);
        }
        Some(())
    }

    /// Finds who sends a LID through a changed switch without going through another one first: the switch itself first.
    fn gather(&mut self, lid: u16, s: SwitchIndex, owner: &Destination) {
        let Pair { old, old_lfts, dependencies, .. } = self.pair;
        let own = |s: SwitchIndex| if owner.host { old.host_ports[s as usize].len() as u32 } else { 0 };
        self.senders.clear();
        self.senders.push(Sender { switch: s, depth: 0, next: 0, ports: own(s) });
        let mut head = 0;
        while let Some(&Sender { switch: at, depth, .. }) = self.senders.get(head) {
            let exit = match old.exit(at, old_lfts.row(at)[usize::from(lid)]) {
                Exit::Arc(arc) => Some((arc - old.graph.offsets()[at as usize]) as usize),
                Exit::End | Exit::Nothing => None,
            };
            for back in old.graph.arcs(at) {
                let Some(step) = old.step(back.to, back.in_port) else { continue };
                // Nobody goes from that link on to the exit: no need to look.
                let possible = exit.is_none_or(|place| dependencies.contains(0, step.arc, place));
                if possible
                    && self.changed_in[back.to as usize] != self.job
                    && old_lfts.row(back.to)[usize::from(lid)] == back.in_port
                {
                    let ports = own(back.to);
                    self.senders.push(Sender { switch: back.to, depth: depth + 1, next: head, ports });
                }
            }
            head += 1;
        }
        for i in (1..self.senders.len()).rev() {
            let Sender { next, ports, .. } = self.senders[i];
            self.senders[next].ports += ports;
        }
    }

    /// Follows a LID to its owner and leaves the arcs in `way`; the hops, `None` when it does not arrive.
    fn follow(&mut self, lid: u16, from: SwitchIndex, owner: &Destination, new: bool) -> Option<u16> {
        let Pair { old, new: after, old_lfts, new_lfts, .. } = self.pair;
        let (network, lfts) = if new { (after, new_lfts) } else { (old, old_lfts) };
        self.way.clear();
        let mut at = from;
        while self.way.len() <= network.graph.switch_count() {
            let port = lfts.row(at)[usize::from(lid)];
            if at == owner.switch && port == owner.port {
                return Some(self.way.len() as u16);
            }
            let Exit::Arc(arc) = network.exit(at, port) else { return None };
            self.way.push(arc);
            at = network.to(arc);
        }
        None
    }

    /// Dependencies along the new way, which lies in `way`, and of those that come to the changed switch.
    fn add_dependencies(&mut self, lid: u16) {
        let Pair { new, new_lfts, .. } = self.pair;
        let offsets = new.graph.offsets();
        let place = |arc: u32| arc - offsets[new.from[arc as usize] as usize];
        let by_hosts = self.senders[0].ports > 0;
        let sets = if by_hosts { &mut self.found.hosts } else { &mut self.found.others };
        sets.extend(self.way.windows(2).map(|pair| (pair[0], place(pair[1]))));
        let Some(first) = self.way.first().copied() else { return };
        for sender in self.senders.iter().take_while(|sender| sender.depth < 2).filter(|s| s.depth == 1) {
            let port = new_lfts.row(sender.switch)[usize::from(lid)];
            let Some(step) = new.step(sender.switch, port) else { continue };
            let sets = if sender.ports > 0 { &mut self.found.hosts } else { &mut self.found.others };
            sets.push((step.arc, place(first)));
        }
    }

    /// All who send through a changed switch need `after` hops from there in place of `before`.
    fn count_hops(&mut self, before: u16, after: u16, owner: &Destination) {
        let farther = self.farther.from(owner.switch);
        let measured = self.farther.measured.get(&owner.switch);
        if measured.is_none() && self.distance_of != owner.switch {
            self.distance = self.pair.new.hops_from(&[owner.switch]);
            self.distance_of = owner.switch;
        }
        for i in 0..self.senders.len() {
            let Sender { switch, depth, .. } = self.senders[i];
            for (hops, sign) in [(before + depth, -1), (after + depth, 1)] {
                let place = usize::from(hops);
                if self.found.reach.len() <= place {
                    self.found.reach.resize(place + 1, 0);
                }
                self.found.reach[place] += sign;
                if owner.host && !self.pair.new.host_ports[switch as usize].is_empty() {
                    self.found.histogram[place.min(HISTOGRAM - 1)] += sign;
                }
                // Those whose fewest hops changed too are counted with these.
                if !farther.iter().any(|(s, ..)| *s == switch) {
                    let fewest = match measured {
                        Some((number, place)) => self.farther.now[*number].hops(*place, switch),
                        None => self.distance[switch as usize],
                    };
                    self.count_detour(hops, fewest, sign);
                }
            }
        }
    }

    fn count_detour(&mut self, hops: u16, fewest: u16, sign: i64) {
        self.found.detours += if hops > fewest { sign } else { 0 };
        self.found.extra_hops += sign * i64::from(hops.saturating_sub(fewest));
    }
}
