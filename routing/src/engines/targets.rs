//! What the counting-free engines share: the level of every switch above the hosts, the divider of its level, and for
//! every target switch its LIDs with a rank that spreads them.
//!
//! Level 0 are the switches with hosts, but for spines with a few ([`super::hosted_spines`]). With the divider Π[s] of Gliksberg et al. ("Dmodc", IEEE Micro 40(1), 2020) the
//! choice ⌊rank / Π[s]⌋ mod n on an intact fat tree is D-mod-K (Zahavi 2012): every level looks at another digit of the
//! rank; for leaves that fewer ways lead to there are dividers of their own ([`super::few_uplinks`]). Leaves of one subtree get
//! neighbouring ranks. Cost: linear in the links, times the number of levels.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::below::Below;
use super::few_uplinks::FewUplinks;
use super::next_hops::{NextHops, TARGETS};
use super::slots::Slots;
use super::{RoutingError, RoutingInput, hosted_spines};
use crate::fabric::{Destination, SwitchGraph, SwitchIndex};

/// An end port seen from its switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Base LID.
    pub lid: u16,
    /// Number of LIDs.
    pub lids: u16,
    /// The port that leads to it, 0 for the switch itself.
    pub port: u8,
    /// Rank for spreading.
    pub rank: u32,
}

/// Levels, dividers and targets of a fabric.
#[derive(Clone, Debug)]
pub(crate) struct Targets {
    /// Π of each switch, at least 1.
    pub divider: Vec<u32>,
    /// For each switch, how choices among lower switches are dealt.
    pub below: Vec<Below>,
    /// Places of up-links.
    pub slots: Slots,
    flat: bool,
    offsets: Vec<u32>,
    targets: Vec<Target>,
    /// For each switch, its own LIDs and those of its other end ports, where these follow one another.
    runs: Vec<Option<Runs>>,
    /// For parallel cables down to a switch that has at most half as many upper neighbours as its like, by (switch, lower switch): what
    /// ranks are divided by there. By the divider of the level those that come down would choose alike.
    pub cables: BTreeMap<(SwitchIndex, SwitchIndex), u32>,
    few_uplinks: FewUplinks,
    /// Seed by which LIDs are dealt by chance.
    pub scatter: Option<u64>,
    /// Exit ports in the operator's order, for the switches that have one.
    pub port_order: FxHashMap<SwitchIndex, Vec<u8>>,
}

impl Targets {
    /// Levels counted from the switches with hosts.
    pub(crate) fn new(graph: &SwitchGraph, input: &RoutingInput) -> Self {
        Self::with_levels(graph, &tree_levels(graph, input), input)
    }

    /// With levels that the engine knows better (ranks below given roots).
    pub(crate) fn with_levels(graph: &SwitchGraph, level: &[u16], input: &RoutingInput) -> Self {
        let divider = dividers(graph, level);
        let ranked = || ranked_targets(graph, &ordinals(graph, level), input);
        let uplinks = || (FewUplinks::new(graph, level, &divider), Slots::new(graph, level));
        let ((offsets, targets), (few_uplinks, slots)) = rayon::join(ranked, uplinks);
        let mut this = Self {
            cables: cables(graph, level, &divider),
            few_uplinks,
            below: Below::all(graph, level, &divider),
            divider,
            slots,
            flat: is_flat(level),
            offsets,
            targets,
            runs: Vec::new(),
            scatter: input.scatter,
            port_order: FxHashMap::default(),
        };
        for (guid, order) in &input.port_order {
            if let Some(s) = graph.find(*guid) {
                this.port_order.insert(s, order.iter().map(|port| port.0).collect());
            }
        }
        this.runs = (0..graph.switch_count() as u32).map(|s| runs(this.of(s))).collect();
        this
    }

    /// Whether no switch stands above those with hosts.
    pub(crate) fn is_flat(&self) -> bool {
        self.flat
    }

    /// What a switch adds to the quotient: nothing in a tree, whose levels look at different digits of the rank already; in a
    /// flat fabric its number, lest all switches of a path choose alike.
    pub(crate) fn shift(&self, switch: SwitchIndex) -> u32 {
        if self.flat { switch } else { 0 }
    }

    /// The LIDs of a switch's end ports, where they are no more than two stretches.
    pub(crate) fn runs(&self, switch: SwitchIndex) -> Option<[Range<usize>; 2]> {
        self.runs[switch as usize].map(|runs| runs.map(|(first, end)| usize::from(first)..usize::from(end)))
    }

    /// The LIDs of a switch's end ports.
    pub(crate) fn lids_of(&self, switch: SwitchIndex) -> impl Iterator<Item = usize> + '_ {
        self.of(switch).iter().flat_map(|t| usize::from(t.lid)..usize::from(t.lid) + usize::from(t.lids))
    }

    /// For each block of 64 switches, those whose end ports are ranked otherwise than before, or by another divider.
    pub(crate) fn moved_from(&self, old: &Self) -> Vec<u64> {
        let mut moved = vec![0; self.runs.len().div_ceil(TARGETS)];
        let same = |s: u32| self.of(s) == old.of(s) && self.few_uplinks.same_target(&old.few_uplinks, s);
        for s in (0..self.runs.len()).filter(|s| !same(*s as u32)) {
            moved[s / TARGETS] |= 1 << (s % TARGETS);
        }
        moved
    }

    /// Whether a switch deals what it did not lose as before.
    pub(crate) fn spreads_alike(&self, old: &Self, s: SwitchIndex) -> bool {
        self.divider[s as usize] == old.divider[s as usize]
            && self.below[s as usize] == old.below[s as usize]
            && self.shift(s) == old.shift(s)
            && self.slots.of(s) == old.slots.of(s)
            && self.slots.number(s) == old.slots.number(s)
            && self.cables_of(s).eq(old.cables_of(s))
            && self.few_uplinks.same_switch(&old.few_uplinks, s)
            && self.scatter == old.scatter
            && self.port_order.get(&s) == old.port_order.get(&s)
    }

    /// [`Targets::cables`] of one switch.
    pub(crate) fn cables_of(&self, s: SwitchIndex) -> impl Iterator<Item = (SwitchIndex, u32)> + '_ {
        self.cables.range((s, 0)..=(s, SwitchIndex::MAX)).map(|((_, to), divider)| (*to, *divider))
    }

    /// What a switch divides the ranks of a target switch's end ports by, where that has few ways up for the `divider` that others get.
    pub(crate) fn own_divider(&self, at: SwitchIndex, target: SwitchIndex, divider: u32) -> Option<u32> {
        self.few_uplinks.divider(at, target, divider)
    }

    /// The end ports of a switch, its own first, then by port.
    pub(crate) fn of(&self, switch: SwitchIndex) -> &[Target] {
        let i = switch as usize;
        &self.targets[self.offsets[i] as usize..self.offsets[i + 1] as usize]
    }
}

/// Indices of the destinations that are hosts: leaves of one subtree beside one another, hosts of a leaf by port. This is
/// the order in which D-mod-K spreads them.
pub(crate) fn hosts_in_tree_order(graph: &SwitchGraph) -> Vec<u32> {
    let ordinal = ordinals(graph, &levels_from_hosts(graph));
    let all = graph.destinations();
    let mut hosts: Vec<u32> = (0..all.len() as u32).filter(|i| all[*i as usize].host).collect();
    hosts.sort_by_key(|i| {
        let d = &all[*i as usize];
        (ordinal[d.switch as usize], d.port, d.lid)
    });
    hosts
}

/// First LIDs and those behind the last.
type Runs = [(u16, u16); 2];

/// The LIDs of the switch itself, and of all others; `None` where the latter leave gaps.
fn runs(targets: &[Target]) -> Option<Runs> {
    let (own, others): (Vec<&Target>, Vec<&Target>) = targets.iter().partition(|t| t.port == 0);
    let run = |targets: &[&Target]| {
        let first = targets.iter().map(|t| t.lid).min().unwrap_or(0);
        let end = targets.iter().map(|t| t.lid.saturating_add(t.lids)).max().unwrap_or(0);
        let count = targets.iter().fold(0_u16, |count, t| count.saturating_add(t.lids));
        (end - first == count).then_some((first, end))
    };
    match (run(&own)?, run(&others)?) {
        // One stretch, if the switch's LIDs lie beside the others.
        ((first, end), others) if end == others.0 && end > first => Some([(first, others.1), (0, 0)]),
        (own, others) => Some([own, others]),
    }
}

/// Whether no switch stands above those with hosts.
pub(super) fn is_flat(level: &[u16]) -> bool {
    level.iter().all(|level| *level == 0 || *level == u16::MAX)
}

/// Breadth-first distance from the switches with hosts (from all switches with any end port when there are no hosts).
pub(crate) fn levels_from_hosts(graph: &SwitchGraph) -> Vec<u16> {
    distances_from(graph, &hosts_by_switch(graph, &|d| d.host))
}

/// Which switches have hosts.
pub(super) fn with_hosts(graph: &SwitchGraph) -> Vec<bool> {
    let mut with_hosts = vec![false; graph.switch_count()];
    for d in graph.destinations().iter().filter(|d| d.host) {
        with_hosts[d.switch as usize] = true;
    }
    with_hosts
}

/// Refuses when no permitted path joins two switches with hosts in one part of the fabric; `reason` ends with what the two
/// are, and their names follow.
pub(super) fn check_hosts(
    engine: &'static str,
    reason: &str,
    graph: &SwitchGraph,
    hops: &NextHops,
) -> Result<(), RoutingError> {
    let Some((from, to)) = hops.first_detour(&with_hosts(graph)) else { return Ok(()) };
    let reason = format!("{reason} {} and {}", graph.describe(from), graph.describe(to));
    Err(RoutingError::Unsuitable { engine, reason })
}

/// Destinations for engines that route one after the other: hosts before others, compute nodes before I/O nodes before
/// hosts in neither list, leaves with most hosts first.
pub(super) fn one_by_one<'g>(graph: &'g SwitchGraph, input: &RoutingInput) -> Vec<&'g Destination> {
    let hosts = graph.hosts();
    let mut order: Vec<&Destination> = graph.destinations().iter().collect();
    order.sort_by_key(|d| {
        let kind = if d.host { input.kind_of(d) } else { u8::MAX };
        (kind, Reverse(hosts[d.switch as usize]), d.switch, d.port, d.lid)
    });
    order
}

/// Breadth-first distance from the leaves: the switches with hosts by which levels are counted, but for those above leaves.
pub(super) fn tree_levels(graph: &SwitchGraph, input: &RoutingInput) -> Vec<u16> {
    let mut hosts = hosts_by_switch(graph, &|d| input.counts_levels(d));
    hosted_spines::leave_out(graph, &mut hosts);
    distances_from(graph, &hosts)
}

fn hosts_by_switch(graph: &SwitchGraph, counts: &dyn Fn(&Destination) -> bool) -> Vec<u32> {
    let mut hosts = vec![0; graph.switch_count()];
    graph.destinations().iter().filter(|d| counts(d)).for_each(|d| hosts[d.switch as usize] += 1);
    hosts
}

/// Hops from the nearest switch with `hosts`.
fn distances_from(graph: &SwitchGraph, hosts: &[u32]) -> Vec<u16> {
    let level = |hosts: &u32| if *hosts > 0 { 0 } else { u16::MAX };
    let mut level: Vec<u16> = hosts.iter().map(level).collect();
    let mut queue = (0..level.len() as SwitchIndex).filter(|s| level[*s as usize] == 0).collect();
    widen(graph, &mut queue, &mut level);
    level
}

/// Goes breadth first from the switches in `queue`, whose level is known, to those whose level is `u16::MAX`.
pub(crate) fn widen(graph: &SwitchGraph, queue: &mut Vec<SwitchIndex>, level: &mut [u16]) {
    let mut head = 0;
    while let Some(&at) = queue.get(head) {
        head += 1;
        for arc in graph.arcs(at) {
            if level[arc.to as usize] == u16::MAX {
                level[arc.to as usize] = level[at as usize] + 1;
                queue.push(arc.to);
            }
        }
    }
}

/// Switches in order of level, those without level left out.
fn by_level(level: &[u16]) -> Vec<SwitchIndex> {
    let mut order: Vec<SwitchIndex> =
        (0..level.len() as u32).filter(|s| level[*s as usize] != u16::MAX).collect();
    order.sort_by_key(|s| level[*s as usize]);
    order
}

/// Upper neighbours of a switch.
pub(super) fn upper_neighbours(graph: &SwitchGraph, level: &[u16], s: SwitchIndex) -> u32 {
    let here = level[s as usize];
    let groups = graph.arcs(s).chunk_by(|a, b| a.to == b.to);
    groups.filter(|group| level[group[0].to as usize] == here + 1).count() as u32
}

/// [`Targets::cables`].
fn cables(graph: &SwitchGraph, level: &[u16], divider: &[u32]) -> BTreeMap<(SwitchIndex, SwitchIndex), u32> {
    let mut cables = BTreeMap::new();
    for s in (0..level.len() as SwitchIndex).filter(|s| divider[*s as usize] > 1) {
        for group in graph.arcs(s).chunk_by(|a, b| a.to == b.to).filter(|group| group.len() > 1) {
            let to = group[0].to;
            if level[to as usize] < level[s as usize] {
                let above = upper_neighbours(graph, level, to).max(1);
                let own = divider[to as usize].saturating_mul(above);
                if own <= divider[s as usize] / 2 {
                    cables.insert((s, to), own);
                }
            }
        }
    }
    cables
}

/// Π[s] = the largest product Π[c] · (number of switches above c) over the switches c one level below s.
fn dividers(graph: &SwitchGraph, level: &[u16]) -> Vec<u32> {
    let mut divider = vec![1_u32; level.len()];
    for s in by_level(level) {
        let here = level[s as usize];
        let above = upper_neighbours(graph, level, s);
        let product = divider[s as usize].saturating_mul(above.max(1)).min(1 << 20);
        for arc in graph.arcs(s).iter().filter(|a| level[a.to as usize] == here + 1) {
            divider[arc.to as usize] = divider[arc.to as usize].max(product);
        }
    }
    divider
}

/// A number for each switch such that the leaves below one switch are neighbours: leaves are sorted by the subtree they
/// belong to at the highest level, then at the next lower one, and so on; a subtree is named by its smallest leaf.
fn ordinals(graph: &SwitchGraph, level: &[u16]) -> Vec<u32> {
    let count = level.len();
    let top = level.iter().copied().filter(|l| *l != u16::MAX).max().unwrap_or(0);
    let mut order: Vec<SwitchIndex> = (0..count as u32).collect();
    let mut root: Vec<u32> = (0..count as u32).collect();
    for height in 1..=top {
        for s in (0..count as u32).filter(|s| level[*s as usize] == height) {
            for arc in graph.arcs(s).iter().filter(|a| level[a.to as usize] < height) {
                join(&mut root, s, arc.to);
            }
        }
        // A stable sort by ever larger subtrees leaves the smaller ones in order within them.
        let names: Vec<u32> = (0..count as u32).map(|s| find(&mut root, s)).collect();
        let mut smallest = vec![u32::MAX; count];
        for s in (0..count).filter(|s| level[*s] == 0) {
            let name = &mut smallest[names[s] as usize];
            *name = (*name).min(s as u32);
        }
        order.sort_by_key(|s| smallest[names[*s as usize] as usize]);
    }
    let mut ordinal = vec![0; count];
    order.sort_by_key(|s| level[*s as usize]);
    for (number, s) in order.into_iter().enumerate() {
        ordinal[s as usize] = number as u32;
    }
    ordinal
}

fn find(root: &mut [u32], mut s: u32) -> u32 {
    while root[s as usize] != s {
        root[s as usize] = root[root[s as usize] as usize];
        s = root[s as usize];
    }
    s
}

fn join(root: &mut [u32], a: u32, b: u32) {
    let (a, b) = (find(root, a), find(root, b));
    root[a.max(b) as usize] = a.min(b);
}

/// The end ports of each switch. A host's rank is (ordinal of its switch) · (most hosts of its kind on any switch) + place
/// by port among those of its kind, so that a host that comes or goes moves the ranks of its own leaf only, and I/O nodes
/// are spread as evenly as compute nodes; other end ports are ranked by their switch.
fn ranked_targets(graph: &SwitchGraph, ordinal: &[u32], input: &RoutingInput) -> (Vec<u32>, Vec<Target>) {
    let count = ordinal.len();
    let all = graph.destinations();
    let mut offsets = vec![0_u32; count + 1];
    all.iter().for_each(|d| offsets[d.switch as usize + 1] += 1);
    for s in 0..count {
        offsets[s + 1] += offsets[s];
    }
    // Dealt to the switches, then sorted on each: they come by LID.
    let mut next = offsets.clone();
    let mut order = vec![0; all.len()];
    for (i, d) in all.iter().enumerate() {
        order[next[d.switch as usize] as usize] = i;
        next[d.switch as usize] += 1;
    }
    for s in 0..count {
        let of_switch = &mut order[offsets[s] as usize..offsets[s + 1] as usize];
        of_switch.sort_unstable_by_key(|i| (all[*i].host, all[*i].port, all[*i].lid));
    }
    let mut hosts = vec![[0_u32; 3]; count];
    let kind = |d: &Destination| usize::from(input.kind_of(d));
    for d in graph.destinations().iter().filter(|d| d.host) {
        hosts[d.switch as usize][kind(d)] += 1;
    }
    let stride: [u32; 3] =
        std::array::from_fn(|kind| hosts.iter().map(|of| of[kind]).max().unwrap_or(1).max(1));
    let mut targets = Vec::with_capacity(order.len());
    let mut placed = (u32::MAX, [0_u32; 3]);
    for i in order {
        let d = &graph.destinations()[i];
        if placed.0 != d.switch {
            placed = (d.switch, [0; 3]);
        }
        let (base, kind) = (ordinal[d.switch as usize], kind(d));
        let rank =
            if d.host { base.saturating_mul(stride[kind]).saturating_add(placed.1[kind]) } else { base };
        placed.1[kind] += u32::from(d.host);
        targets.push(Target { lid: d.lid.get(), lids: 1 << d.lmc, port: d.port, rank });
    }
    (offsets, targets)
}
