//! What lost links leave without a way to a LID, in tables that stood before: the switches below a lost link on the LID's tree.
//! They alone have to be joined again; all others keep their ways, which are as short as they were.
//!
//! Cost: a scan of the rows at both ends of each lost link for the LIDs that went over it; then for each of these the links of
//! its orphans, and their ways.

use super::apart::Siblings;
use crate::fabric::{Destination, LinkChange, SwitchGraph, SwitchIndex};
use crate::routes::LftMatrix;

pub(super) const NONE: u32 = u32::MAX;

/// A graph that lost links, and the tables from before.
pub(super) struct Cut<'a> {
    old: &'a SwitchGraph,
    pub(super) graph: &'a SwitchGraph,
    lfts: &'a LftMatrix,
    /// Arc of the graph by switch and port.
    by_port: Vec<[u32; 256]>,
    /// Switches and ports whose links are gone.
    lost: Vec<(SwitchIndex, u8)>,
    /// Whether a lost link was on the tree of a LID.
    is_cut: Vec<bool>,
    /// Hosts on each switch.
    pub(super) hosts: Vec<u64>,
}

impl<'a> Cut<'a> {
    /// `lfts` are tables for `old`; `links` must have lost links only.
    pub(super) fn new(
        (old, lfts): (&'a SwitchGraph, &'a LftMatrix),
        graph: &'a SwitchGraph,
        links: &LinkChange,
    ) -> Self {
        let count = graph.switch_count();
        let port = |(s, arc): &(SwitchIndex, u32)| (*s, old.all_arcs()[*arc as usize].out_port);
        let lost: Vec<(SwitchIndex, u8)> = links.lost.iter().map(port).collect();
        let mut is_cut = vec![false; lfts.stride()];
        for (s, port) in &lost {
            let entries = is_cut.iter_mut().zip(lfts.row(*s).iter());
            entries.for_each(|(is_cut, entry)| *is_cut |= entry == port);
        }
        let by_port = (0..count as SwitchIndex).map(|s| graph.arcs_by_port(s)).collect();
        Self { old, graph, lfts, by_port, lost, is_cut, hosts: graph.hosts() }
    }

    /// The LIDs of a port whose trees are cut.
    pub(super) fn lids_of(&self, d: &Destination) -> Vec<u16> {
        d.lids().filter(|lid| self.is_cut(*lid)).collect()
    }

    /// Whether a LID's tree is cut.
    pub(super) fn is_cut(&self, lid: u16) -> bool {
        self.is_cut[usize::from(lid)]
    }

    /// The arc that a switch took, [`NONE`] where it is gone or there was none.
    pub(super) fn old_arc(&self, s: SwitchIndex, lid: u16) -> u32 {
        self.by_port[s as usize][usize::from(self.lfts.row(s)[usize::from(lid)])]
    }

    /// The arc behind a port, [`NONE`] where there is none.
    pub(super) fn arc(&self, s: SwitchIndex, port: u8) -> u32 {
        self.by_port[s as usize][usize::from(port)]
    }

    /// Takes the packets of a host's switches off the links that their old ways to `lid` use, for all of `from`.
    pub(super) fn take_back(&self, lid: u16, from: &[SwitchIndex], load: &mut [u64]) {
        for start in from.iter().filter(|s| self.hosts[**s as usize] > 0) {
            self.old_way(lid, *start, |arc| {
                if let Some(load) = load.get_mut(arc as usize) {
                    *load = load.saturating_sub(self.hosts[*start as usize]);
                }
            });
        }
    }

    /// Calls `visit` with each arc of the old way from a switch, [`NONE`] for those that are gone.
    fn old_way(&self, lid: u16, from: SwitchIndex, mut visit: impl FnMut(u32)) {
        let mut at = from;
        // No way is longer.
        for _ in 0..self.hosts.len() {
            let arc = self.old_arc(at, lid);
            let port = self.lfts.row(at)[usize::from(lid)];
            at = match self.graph.all_arcs().get(arc as usize) {
                Some(ends) => ends.to,
                None => match self.old.arcs(at).iter().find(|arc| arc.out_port == port) {
                    Some(gone) => gone.to,
                    None => break,
                },
            };
            visit(arc);
        }
    }
}

/// The tree of one LID while it is joined again.
pub(super) struct Tree<'a> {
    cut: &'a Cut<'a>,
    lid: u16,
    pub(super) target: SwitchIndex,
    /// The orphans, those whose link is gone first.
    pub(super) orphans: Vec<SwitchIndex>,
    is_orphan: Vec<bool>,
    /// For each orphan the arc on which it sends now, [`NONE`] while it has none; for the others only where [`Tree::fill`] was asked to.
    pub(super) next: Vec<u32>,
    /// Hops of switches that kept their ways, as far as they were asked for.
    hops: Vec<u32>,
    asked: Vec<SwitchIndex>,
    /// Hosts that sent through each orphan; 0 elsewhere, and everywhere for LIDs of switches.
    senders: Vec<u64>,
}

/// Not asked for yet.
const UNKNOWN: u32 = u32::MAX - 1;

impl<'a> Tree<'a> {
    pub(super) fn new(cut: &'a Cut<'a>) -> Self {
        let count = cut.graph.switch_count();
        Self {
            cut,
            lid: 0,
            target: 0,
            orphans: Vec::new(),
            is_orphan: vec![false; count],
            next: vec![NONE; count],
            hops: vec![UNKNOWN; count],
            asked: Vec::new(),
            senders: vec![0; count],
        }
    }

    /// Goes on to another LID and finds its orphans.
    pub(super) fn begin(&mut self, d: &Destination, lid: u16) {
        for s in self.orphans.drain(..) {
            (self.is_orphan[s as usize], self.senders[s as usize]) = (false, 0);
        }
        self.asked.drain(..).for_each(|s| self.hops[s as usize] = UNKNOWN);
        (self.lid, self.target) = (lid, d.switch);
        let cut = self.cut;
        for (s, port) in &cut.lost {
            if cut.lfts.row(*s)[usize::from(lid)] == *port {
                self.is_orphan[*s as usize] = true;
                self.orphans.push(*s);
            }
        }
        let mut head = 0;
        while let Some(&at) = self.orphans.get(head) {
            head += 1;
            self.next[at as usize] = NONE;
            for arc in cut.graph.arcs(at) {
                let below = arc.to as usize;
                if !self.is_orphan[below] && cut.lfts.row(arc.to)[usize::from(lid)] == arc.in_port {
                    self.is_orphan[below] = true;
                    self.orphans.push(arc.to);
                }
            }
        }
        if d.host {
            self.count_senders();
        }
    }

    /// Adds up the hosts behind each orphan: whoever sent to another comes after it.
    fn count_senders(&mut self) {
        for s in self.orphans.iter().rev() {
            self.senders[*s as usize] += self.cut.hosts[*s as usize];
            if let Some(arc) = self.cut.graph.all_arcs().get(self.cut.old_arc(*s, self.lid) as usize)
                && self.is_orphan[arc.to as usize]
            {
                self.senders[arc.to as usize] += self.senders[*s as usize];
            }
        }
    }

    /// Enters the arcs of all switches that keep their ways, for [`Siblings`].
    pub(super) fn fill(&mut self) {
        for (s, is_orphan) in self.is_orphan.iter().enumerate() {
            self.next[s] = if *is_orphan { NONE } else { self.cut.old_arc(s as u32, self.lid) };
        }
    }

    /// Hosts whose packets to the LID came through an orphan; 0 where the LID is a switch's.
    pub(super) fn senders(&self, s: SwitchIndex) -> u64 {
        self.senders[s as usize]
    }

    pub(super) fn is_orphan(&self, s: SwitchIndex) -> bool {
        self.is_orphan[s as usize]
    }

    /// The arc that an orphan took, [`NONE`] where it is gone.
    pub(super) fn old_arc(&self, s: SwitchIndex) -> u32 {
        self.cut.old_arc(s, self.lid)
    }

    /// Hops that an orphan's way had.
    pub(super) fn old_hops(&self, s: SwitchIndex) -> u32 {
        let mut hops = 0;
        self.cut.old_way(self.lid, s, |_| hops += 1);
        hops
    }

    /// The arc that a switch takes now.
    pub(super) fn next(&self, s: SwitchIndex) -> u32 {
        if self.is_orphan(s) { self.next[s as usize] } else { self.old_arc(s) }
    }

    /// Whether a switch has a way to the target now.
    pub(super) fn is_joined(&mut self, s: SwitchIndex) -> bool {
        if self.is_orphan(s) { self.next[s as usize] != NONE } else { self.kept_hops(s) != NONE }
    }

    /// Hops to the target from a switch that kept its way, [`NONE`] where it never had one.
    pub(super) fn kept_hops(&mut self, s: SwitchIndex) -> u32 {
        let mut way = Vec::new();
        let mut at = s;
        while self.hops[at as usize] == UNKNOWN && way.len() <= self.hops.len() {
            way.push(at);
            let arc = self.old_arc(at);
            match self.cut.graph.all_arcs().get(arc as usize) {
                Some(arc) => at = arc.to,
                None => {
                    self.hops[at as usize] = if at == self.target { 0 } else { NONE };
                    self.asked.push(at);
                    way.pop();
                }
            }
        }
        while let Some(before) = way.pop() {
            self.hops[before as usize] = match self.hops[at as usize] {
                NONE | UNKNOWN => NONE,
                hops => hops + 1,
            };
            self.asked.push(before);
            at = before;
        }
        self.hops[s as usize]
    }

    /// Calls `visit` with each arc of the way from a switch.
    pub(super) fn way(&self, from: SwitchIndex, mut visit: impl FnMut(u32)) {
        let mut arc = self.next(from);
        while let Some(ends) = self.cut.graph.all_arcs().get(arc as usize) {
            visit(arc);
            arc = self.next(ends.to);
        }
    }

    /// Puts the packets of the orphans' hosts on the links that they use now.
    pub(super) fn add_load(&self, load: &mut [u64]) {
        for s in self.orphans.iter().filter(|s| self.cut.hosts[**s as usize] > 0) {
            self.way(*s, |arc| load[arc as usize] += self.cut.hosts[*s as usize]);
        }
    }

    /// The orphans' entries.
    pub(super) fn entries(&self) -> impl Iterator<Item = (SwitchIndex, u8)> + '_ {
        self.orphans.iter().map(|s| (*s, self.cut.graph.port_of(self.next[*s as usize])))
    }

    /// Adds the ways of those LIDs of a port that keep them to its siblings.
    pub(super) fn begin_siblings(
        &mut self,
        d: &Destination,
        keeps: impl Fn(u16) -> bool,
        siblings: &mut Siblings,
    ) {
        siblings.begin(d.switch);
        if d.lmc == 0 {
            return;
        }
        for lid in d.lids().filter(|lid| keeps(*lid)) {
            self.begin(d, lid);
            self.fill();
            siblings.push(&self.next);
        }
    }
}
