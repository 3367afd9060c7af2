//! Keeps the 2^LMC paths of a pair apart: what [`super::fill`] deals LID by LID is changed where two LIDs of one port would
//! share a link or a switch on the way.
//!
//! For each port with several LIDs the switches are taken in order of distance from it, nearest first, so that all that lies
//! beyond each choice is known. A switch keeps what was dealt where the paths from it share nothing, or no more than those
//! to another port of the same leaf must; else each LID takes in turn the choice whose whole path shares least with those of
//! the others: links count before switches, and of equal choices the one nearest to what was dealt. Where every switch has as many choices as
//! there are LIDs, the result is a set of trees without a common link (Edmonds 1973, for graphs without cycles).
//!
//! Nothing is done for ports with one LID. Cost: for each leaf a pass over the links, for each of its LIDs one walk from each
//! switch, and where paths have to share, one for each choice. After links were lost that is done for the leaves and switches only
//! from which some way begins with other choices, or was dealt otherwise, somewhere ([`set_apart_again`]).

use rayon::prelude::*;

use super::fill::Narrow;
use super::next_hops::{NextHops, TARGETS};
use super::targets::{Target, Targets};
use crate::fabric::{LinkChange, SwitchGraph, SwitchIndex};
use crate::routes::LftMatrix;

/// What a shared link counts beside a shared switch: more than any path has switches.
const LINK: u64 = 1 << 16;

/// How often the choices of a switch are gone through again; they hardly ever change after the second time.
const ROUNDS: usize = 4;

/// An entry of the tables.
type Entry = (SwitchIndex, u16, u8);

/// Changes `lfts`, as dealt, for all ports with several LIDs.
pub(super) fn set_apart(
    graph: &SwitchGraph,
    targets: &Targets,
    hops: &NextHops,
    narrow: Narrow<'_>,
    lfts: &mut LftMatrix,
) {
    let leaves = with_several(graph, targets);
    if leaves.is_empty() {
        return;
    }
    let links = Links::new(graph);
    let dealt: &LftMatrix = lfts;
    let changed: Vec<Vec<Entry>> = leaves
        .par_iter()
        .map_init(
            || Columns::new(graph, &links),
            |columns, leaf| columns.changes(*leaf, targets, (hops, narrow), (dealt, None)),
        )
        .collect();
    for (s, lid, port) in changed.into_iter().flatten() {
        lfts.row_mut(s)[usize::from(lid)] = port;
    }
}

/// Switches with ports that have several LIDs.
fn with_several(graph: &SwitchGraph, targets: &Targets) -> Vec<SwitchIndex> {
    let several = |t: &SwitchIndex| targets.of(*t).iter().any(|end| end.lids > 1);
    (0..graph.switch_count() as SwitchIndex).filter(several).collect()
}

/// Tables of the same switches and end ports with other links between switches, and what they were made from.
#[derive(Clone, Copy)]
pub(super) struct Before<'a> {
    pub links: &'a LinkChange,
    pub hops: &'a NextHops,
    /// The tables as dealt, and as set apart.
    pub dealt: &'a LftMatrix,
    pub apart: &'a LftMatrix,
}

/// What [`set_apart`] makes of `dealt` where all choices stand, from what it made before. Each LID is one port's.
///
/// What a switch chooses for the LIDs of a port depends on its choices, on what was dealt to it, and on what the switches choose to
/// which these lead; and on the same for other ports of the leaf. Where none of it differs, nothing does.
pub(super) fn set_apart_again(
    graph: &SwitchGraph,
    targets: &Targets,
    hops: &NextHops,
    dealt: &LftMatrix,
    before: Before<'_>,
) -> LftMatrix {
    let leaves = with_several(graph, targets);
    if leaves.is_empty() {
        return dealt.clone();
    }
    let mut lfts = before.apart.clone();
    let redealt: Vec<SwitchIndex> =
        (0..graph.switch_count() as SwitchIndex).filter(|s| !dealt.shares_row(*s, before.dealt)).collect();
    for s in &redealt {
        let pairs = dealt.row(*s).iter().zip(before.dealt.row(*s).iter()).enumerate();
        let differing: Vec<(usize, u8)> =
            pairs.filter(|(_, (new, old))| new != old).map(|(lid, (new, _))| (lid, *new)).collect();
        if !differing.is_empty() {
            let mut row = lfts.row_mut(*s);
            differing.into_iter().for_each(|(lid, port)| row[lid] = port);
        }
    }
    let rechosen = rechosen(graph, hops, before);
    let links = Links::new(graph);
    let base = &lfts;
    let changed: Vec<Vec<Entry>> = leaves
        .par_iter()
        .map_init(
            || Columns::new(graph, &links),
            |columns, leaf| {
                let (block, bit) = (*leaf as usize / TARGETS, *leaf as usize % TARGETS);
                let chooses =
                    rechosen[block].iter().filter(|(_, bits)| bits >> bit & 1 == 1).map(|(s, _)| *s);
                let is_redealt = |s: &SwitchIndex| {
                    targets.of(*leaf).iter().any(|end| {
                        let lids = usize::from(end.lid)..usize::from(end.lid) + usize::from(end.lids);
                        end.lids > 1 && dealt.row(*s).part(lids.clone()).ne(before.dealt.row(*s).part(lids))
                    })
                };
                let seeds: Vec<SwitchIndex> =
                    chooses.chain(redealt.iter().copied().filter(is_redealt)).collect();
                if seeds.is_empty() {
                    return Vec::new();
                }
                columns.changes(*leaf, targets, (hops, &|_, _| ()), (dealt, Some((base, &seeds))))
            },
        )
        .collect();
    for (s, lid, port) in changed.into_iter().flatten() {
        lfts.row_mut(s)[usize::from(lid)] = port;
    }
    lfts
}

/// For each block of targets the switches that have other choices than before, with the targets.
fn rechosen(graph: &SwitchGraph, hops: &NextHops, before: Before<'_>) -> Vec<Vec<(SwitchIndex, u64)>> {
    let of_switch = |block: usize, s: SwitchIndex| {
        let kept = before.links.arcs_of(s).fold(0, |bits, arc| {
            let old = before.links.old_arc[arc];
            let old = if old == u32::MAX { 0 } else { before.hops.mask(block, old as usize) };
            bits | (hops.mask(block, arc) ^ old)
        });
        let lost = before.links.lost.iter().filter(|(of, _)| *of == s);
        lost.fold(kept, |bits, (_, old)| bits | before.hops.mask(block, *old as usize))
    };
    let count = graph.switch_count() as SwitchIndex;
    let blocks = (0..hops.blocks()).into_par_iter();
    blocks
        .map(|block| (0..count).map(|s| (s, of_switch(block, s))).filter(|(_, bits)| *bits != 0).collect())
        .collect()
}

/// The arcs of a graph by number: where each comes from and leads to, and which comes back.
struct Links {
    from: Vec<SwitchIndex>,
    to: Vec<SwitchIndex>,
    /// The arc of the same link in the other direction; `u32::MAX` if there is none.
    back: Vec<u32>,
    /// Arc by switch and exit port.
    by_port: Vec<[u32; 256]>,
}

impl Links {
    fn new(graph: &SwitchGraph) -> Self {
        let all = graph.all_arcs();
        let by_port: Vec<_> =
            (0..graph.switch_count() as SwitchIndex).map(|s| graph.arcs_by_port(s)).collect();
        let back = all.iter().map(|arc| by_port[arc.to as usize][usize::from(arc.in_port)]).collect();
        Self { from: graph.sources(), to: all.iter().map(|arc| arc.to).collect(), back, by_port }
    }
}

/// What one thread needs to go through the columns of a leaf's LIDs.
struct Columns<'g> {
    graph: &'g SwitchGraph,
    links: &'g Links,
    /// Where the choices of each switch begin, and these, as arcs.
    offsets: Vec<u32>,
    choices: Vec<u32>,
    /// Whether an arc is a choice.
    is_choice: Vec<bool>,
    /// Switches, each after all to which its choices lead.
    order: Vec<SwitchIndex>,
    /// Switches whose choice may be another than before.
    open: Vec<bool>,
    paths: Paths<'g>,
}

/// Tables as they are so far, and the switches that choose or are dealt otherwise than when they were made; none: all.
type Kept<'a> = Option<(&'a LftMatrix, &'a [SwitchIndex])>;

impl<'g> Columns<'g> {
    fn new(graph: &'g SwitchGraph, links: &'g Links) -> Self {
        Self {
            graph,
            links,
            offsets: Vec::new(),
            choices: Vec::new(),
            is_choice: vec![false; graph.all_arcs().len()],
            order: Vec::new(),
            open: vec![true; graph.switch_count()],
            paths: Paths::new(graph.switch_count(), &links.to),
        }
    }

    /// The entries that have to be others than `dealt`, or than what is kept, for the ports on `leaf`.
    fn changes(
        &mut self,
        leaf: SwitchIndex,
        targets: &Targets,
        (hops, narrow): (&NextHops, Narrow<'_>),
        (dealt, kept): (&LftMatrix, Kept<'_>),
    ) -> Vec<Entry> {
        self.find_choices(leaf, hops, narrow);
        self.sort(leaf);
        if let Some((_, seeds)) = kept {
            self.spread_from(leaf, seeds);
        }
        self.paths.begin(leaf);
        let tables = (dealt, kept.map_or(dealt, |(tables, _)| tables));
        let mut changes = Vec::new();
        for end in targets.of(leaf).iter().filter(|end| end.lids > 1) {
            self.of_port(end, tables, &mut changes);
        }
        changes
    }

    fn find_choices(&mut self, leaf: SwitchIndex, hops: &NextHops, narrow: Narrow<'_>) {
        let (block, bit) = (leaf as usize / TARGETS, leaf as usize % TARGETS);
        self.offsets.clear();
        self.choices.clear();
        self.is_choice.fill(false);
        let mut ports = Vec::new();
        for s in 0..self.graph.switch_count() as SwitchIndex {
            let first = self.choices.len();
            self.offsets.push(first as u32);
            self.choices.extend(
                self.graph.arc_range(s).filter(|arc| hops.mask(block, *arc as usize) >> bit & 1 == 1),
            );
            if self.choices.len() > first + 1 {
                ports.clear();
                ports.extend(
                    self.choices[first..].iter().map(|arc| self.graph.all_arcs()[*arc as usize].out_port),
                );
                narrow(s, &mut ports);
                if ports.len() < self.choices.len() - first {
                    self.choices.truncate(first);
                    let by_port = &self.links.by_port[s as usize];
                    self.choices.extend(ports.iter().map(|port| by_port[usize::from(*port)]));
                }
            }
            self.choices[first..].iter().for_each(|arc| self.is_choice[*arc as usize] = true);
        }
        self.offsets.push(self.choices.len() as u32);
    }

    /// Orders the switches, by taking from the leaf outwards each whose choices have all been taken.
    fn sort(&mut self, leaf: SwitchIndex) {
        let mut open: Vec<u32> = self.offsets.windows(2).map(|ends| ends[1] - ends[0]).collect();
        self.order.clear();
        self.order.push(leaf);
        let mut head = 0;
        while let Some(&at) = self.order.get(head) {
            head += 1;
            let offsets = self.graph.offsets();
            let arcs = offsets[at as usize] as usize..offsets[at as usize + 1] as usize;
            for back in self.links.back[arcs].iter().filter(|back| **back != u32::MAX) {
                let s = self.links.from[*back as usize];
                if s != leaf && self.is_choice[*back as usize] {
                    open[s as usize] -= 1;
                    if open[s as usize] == 0 {
                        self.order.push(s);
                    }
                }
            }
        }
        self.order.remove(0);
    }

    /// Opens `seeds`, and all switches with a choice that leads to one that is open.
    fn spread_from(&mut self, leaf: SwitchIndex, seeds: &[SwitchIndex]) {
        self.open.fill(false);
        seeds.iter().for_each(|s| self.open[*s as usize] = true);
        self.open[leaf as usize] = false;
        for s in &self.order {
            let choices = self.offsets[*s as usize] as usize..self.offsets[*s as usize + 1] as usize;
            let mut leads_to = self.choices[choices].iter().map(|arc| self.links.to[*arc as usize]);
            self.open[*s as usize] |= leads_to.any(|to| self.open[to as usize]);
        }
    }

    fn of_port(&mut self, end: &Target, (dealt, so_far): (&LftMatrix, &LftMatrix), changes: &mut Vec<Entry>) {
        let (first, ways) = (usize::from(end.lid), usize::from(end.lids));
        let row = |s: SwitchIndex| dealt.row(s).part(first..first + ways);
        let now = |s: SwitchIndex| so_far.row(s).part(first..first + ways);
        let choices = |s: SwitchIndex| {
            &self.choices[self.offsets[s as usize] as usize..self.offsets[s as usize + 1] as usize]
        };
        let is_own = |s: SwitchIndex, port: u8| {
            choices(s).contains(&self.links.by_port[s as usize][usize::from(port)])
        };
        // A LID that another port has too may have been dealt for that one: then it is nobody's, and stays as it is.
        if !self.order.iter().all(|s| row(*s).all(|port| is_own(*s, port))) {
            return;
        }
        self.paths.ways(ways);
        for s in &self.order {
            let by_port = &self.links.by_port[*s as usize];
            let link = |port: u8| by_port[usize::from(port)];
            if !self.open[*s as usize] {
                self.paths.take(*s, now(*s).map(link));
                continue;
            }
            self.paths.choose(*s, choices(*s), row(*s).map(link));
            for ((way, port), lid) in now(*s).enumerate().zip(end.lid..) {
                let chosen = self.graph.all_arcs()[self.paths.next(way, *s) as usize].out_port;
                if chosen != port {
                    changes.push((*s, lid, chosen));
                }
            }
        }
    }
}

/// The paths to one port, way by way, of the switches that were gone through.
pub(super) struct Paths<'g> {
    /// Where links lead, by number.
    to: &'g [SwitchIndex],
    switches: usize,
    target: SwitchIndex,
    count: usize,
    /// First link by way and switch.
    next: Vec<u32>,
    /// Paths that use a link, or a switch between the two ends, among those marked.
    link_uses: Vec<u16>,
    switch_uses: Vec<u16>,
    /// For each switch, the least that the paths from it had to share, for ports of this leaf.
    least: Vec<u64>,
}

impl<'g> Paths<'g> {
    pub(super) fn new(switches: usize, to: &'g [SwitchIndex]) -> Self {
        Self {
            to,
            switches,
            target: 0,
            count: 0,
            next: Vec::new(),
            link_uses: vec![0; to.len()],
            switch_uses: vec![0; switches],
            least: vec![u64::MAX; switches],
        }
    }

    /// Goes over to the ports of another switch.
    pub(super) fn begin(&mut self, target: SwitchIndex) {
        self.target = target;
        self.least.fill(u64::MAX);
    }

    /// Goes over to another port, of so many LIDs.
    pub(super) fn ways(&mut self, count: usize) {
        self.count = count;
        self.next.resize(self.next.len().max(count * self.switches), u32::MAX);
    }

    /// The link that `s` takes.
    pub(super) fn next(&self, way: usize, s: SwitchIndex) -> u32 {
        self.next[way * self.switches + s as usize]
    }

    /// Takes the first link of each way from `s` as it is.
    fn take(&mut self, s: SwitchIndex, links: impl IntoIterator<Item = u32>) {
        for (way, link) in links.into_iter().enumerate() {
            self.next[way * self.switches + s as usize] = link;
        }
    }

    /// Chooses the first link of each way from `s` among `choices`, by which the switches gone through before are reached;
    /// `dealt` is what it is so far.
    pub(super) fn choose(&mut self, s: SwitchIndex, choices: &[u32], dealt: impl Iterator<Item = u32>) {
        let mut shared = 0;
        for (way, link) in dealt.enumerate() {
            self.next[way * self.switches + s as usize] = link;
            if choices.len() > 1 {
                shared += self.cost(way, link);
                self.mark(way, link, true);
            }
        }
        if choices.len() < 2 {
            return;
        }
        let least = self.least[s as usize];
        if shared > 0 && (least == u64::MAX || shared > least) {
            shared = self.search(s, choices, shared);
            self.least[s as usize] = least.min(shared);
        }
        for way in 0..self.count {
            self.mark(way, self.next(way, s), false);
        }
    }

    /// Moves one way after the other to where it shares least; what the paths share in the end.
    fn search(&mut self, s: SwitchIndex, choices: &[u32], mut shared: u64) -> u64 {
        for _ in 0..ROUNDS {
            let before = shared;
            for way in 0..self.count {
                let old = self.next(way, s);
                self.mark(way, old, false);
                let here = self.cost(way, old);
                let first = choices.iter().position(|link| *link == old).unwrap_or(0);
                let (mut best, mut least) = (old, here);
                for link in choices[first..].iter().chain(&choices[..first]) {
                    if least == 0 {
                        break;
                    }
                    let cost = self.cost(way, *link);
                    if cost < least {
                        (best, least) = (*link, cost);
                    }
                }
                shared -= here - least;
                self.next[way * self.switches + s as usize] = best;
                self.mark(way, best, true);
            }
            if shared == before {
                break;
            }
        }
        shared
    }

    /// What a path that begins with `link` shares with those that are marked.
    fn cost(&self, way: usize, mut link: u32) -> u64 {
        let mut cost = u64::from(self.link_uses[link as usize]) * LINK;
        let mut at = self.to[link as usize];
        while at != self.target {
            link = self.next(way, at);
            cost +=
                u64::from(self.switch_uses[at as usize]) + u64::from(self.link_uses[link as usize]) * LINK;
            at = self.to[link as usize];
        }
        cost
    }

    /// Marks a path, or takes the mark back.
    fn mark(&mut self, way: usize, mut link: u32, on: bool) {
        let count = |uses: &mut u16| *uses = if on { *uses + 1 } else { *uses - 1 };
        loop {
            count(&mut self.link_uses[link as usize]);
            let at = self.to[link as usize];
            if at == self.target {
                break;
            }
            count(&mut self.switch_uses[at as usize]);
            link = self.next(way, at);
        }
    }
}

/// For engines that route LID by LID: the paths of the LIDs of one port that were routed before.
pub(super) struct Siblings {
    /// Where links lead, by number.
    to: Vec<SwitchIndex>,
    target: SwitchIndex,
    /// First link by switch, of each LID; `u32::MAX` where there is none.
    next: Vec<Vec<u32>>,
    /// LIDs whose path from the switch at hand uses a link, or a switch between the two ends.
    link_uses: Vec<u16>,
    switch_uses: Vec<u16>,
    /// What is not 0 of these.
    links: Vec<u32>,
    switches: Vec<SwitchIndex>,
}

impl Siblings {
    pub(super) fn new(graph: &SwitchGraph) -> Self {
        Self {
            to: graph.all_arcs().iter().map(|arc| arc.to).collect(),
            target: 0,
            next: Vec::new(),
            link_uses: vec![0; graph.all_arcs().len()],
            switch_uses: vec![0; graph.switch_count()],
            links: Vec::new(),
            switches: Vec::new(),
        }
    }

    /// Forgets all paths; those that follow end at `target`.
    pub(super) fn begin(&mut self, target: SwitchIndex) {
        self.look_from(None);
        self.target = target;
        self.next.clear();
    }

    /// Whether there is no path to keep apart from.
    pub(super) fn is_empty(&self) -> bool {
        self.next.is_empty()
    }

    /// Adds the paths of a LID: the first link by switch.
    pub(super) fn push(&mut self, next: &[u32]) {
        self.next.push(next.to_vec());
    }

    /// Finds what the paths from a switch use.
    pub(super) fn look_from(&mut self, from: Option<SwitchIndex>) {
        self.links.drain(..).for_each(|link| self.link_uses[link as usize] = 0);
        self.switches.drain(..).for_each(|s| self.switch_uses[s as usize] = 0);
        let Some(from) = from else { return };
        for next in &self.next {
            let mut link = next[from as usize];
            while link != u32::MAX {
                self.link_uses[link as usize] += 1;
                self.links.push(link);
                let at = self.to[link as usize];
                if at == self.target {
                    break;
                }
                self.switch_uses[at as usize] += 1;
                self.switches.push(at);
                link = next[at as usize];
            }
        }
    }

    /// What the path shares with those that begins with `link` and goes on as `next` says: links count 16 times, and no more
    /// than 4095 in all.
    pub(super) fn shared(&self, mut link: u32, next: &[u32]) -> u64 {
        let mut shared = 0;
        while link != u32::MAX {
            shared += 16 * u64::from(self.link_uses[link as usize]);
            let at = self.to[link as usize];
            if at == self.target {
                break;
            }
            shared += u64::from(self.switch_uses[at as usize]);
            link = next[at as usize];
        }
        shared.min(4095)
    }
}
