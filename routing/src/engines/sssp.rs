//! `sssp` and `dfsssp`: shortest paths one LID after the other, each avoiding what those before it have loaded; then once
//! more, each avoiding what all others load.
//!
//! - Input: any graph.
//! - Guarantees: minimal hop counts; among shortest paths the one with the least load so far, load being the routes of
//!   hosts. `sssp` is not free of credit loops. `dfsssp` is: paths that close a cycle of channels move to another VL by
//!   (source switch, LID), see [`super::layers`]; SL 0 is VL 0, SL 15 VL 1, SL 14 VL 2 and so on ([`SlToVl::first_for_most`]).
//! - Multicast: the first lane of `dfsssp` keeps room for a tree of all switches ([`super::escape`]); where the VLs do not suffice
//!   even so, a tree is grown in the last lane that has room when all paths have theirs, if one has, and that lane is the first then.
//!   So do the lanes that its paths are dealt to. SLs that no path has take the first lane; groups of the lowest of the others may find
//!   no room.
//! - Balance: in the end single routes are taken off the fullest links of fabrics that are more or less trees ([`super::relief`]).
//! - LMC: from each switch, the paths of the LIDs of one port share as few links and switches as shortest paths allow, LID after
//!   LID.
//! - After lost links: trees over one are mended with as few entries as minimal paths allow ([`regrow`]), and with `dfsssp` the paths
//!   that changed keep their SL where they can ([`super::base`]).
//! - Refuses: `dfsssp` when the links have fewer VLs than it needs (says how many).
//! - VLs: `sssp` 1; `dfsssp` needs 1 on trees, few on random graphs, more on tori, and deals the paths of the fullest lanes
//!   over those that are left, up to eight.
//! - Cost: `sssp` twice LIDs · links, one LID after the other; `dfsssp` adds some passes of LIDs · switches. Memory: the tables,
//!   and for `dfsssp` an SL table of the same size.
//! - Source: Hoefler, Schneider, Lumsdaine (HotI 2009); Domke, Hoefler, Nagel (IPDPS 2011).

use super::apart::Siblings;
use super::base::{Base, Kept};
use super::escape;
use super::layers::{layers, make_room, place, taken, use_spare};
use super::orphans::Cut;
use super::relief::relieve_shortest;
use super::room::{self, Taken};
use super::targets::one_by_one;
use super::{RoutingEngine, RoutingError, RoutingInput};
use crate::fabric::{Destination, LinkChange, SwitchGraph, SwitchIndex};
use crate::routes::{LftMatrix, PathSl, Routes, SlToVl, lane_of_sl, sl_of_lane};
use regrow::regrow;

/// The engine `sssp`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sssp;

impl RoutingEngine for Sssp {
    fn name(&self) -> &'static str {
        "sssp"
    }

    fn route(&self, graph: &SwitchGraph, input: &RoutingInput) -> Result<Routes, RoutingError> {
        from_nothing(graph, input).map(|(routes, _)| routes)
    }
}

pub(super) fn from_nothing(
    graph: &SwitchGraph,
    input: &RoutingInput,
) -> Result<(Routes, Kept), RoutingError> {
    let mut routes = Routes::empty(Sssp.name(), graph);
    let load = route_all(graph, input, &mut routes.lfts);
    Ok((routes, Kept { load, taken: None, ways: 1 }))
}

/// The tables after lost links.
pub(super) fn repair(base: &Base, graph: &SwitchGraph, links: &LinkChange) -> Option<Routes> {
    let mut routes = base.routes.clone();
    let cut = Cut::new((&base.graph, &base.routes.lfts), graph, links);
    regrow(&cut, &base.input, &mut routes.lfts, &mut base.load(graph, links));
    Some(routes)
}

/// Lanes that paths are dealt over where fewer are enough: more of them would leave few SLs for groups.
const MOST_DEALT: u8 = 8;

/// The engine `dfsssp`.
#[derive(Clone, Copy, Debug, Default)]
pub struct DfSssp;

impl RoutingEngine for DfSssp {
    fn name(&self) -> &'static str {
        "dfsssp"
    }

    fn route(&self, graph: &SwitchGraph, input: &RoutingInput) -> Result<Routes, RoutingError> {
        layered(graph, input).map(|(routes, _)| routes)
    }
}

/// Routes, and the load of hosts over each arc.
fn layered(graph: &SwitchGraph, input: &RoutingInput) -> Result<(Routes, Vec<u64>), RoutingError> {
    let mut routes = Routes::empty(DfSssp.name(), graph);
    let load = route_all(graph, input, &mut routes.lfts);
    let available = input.vls();
    let parents = escape::parents(graph);
    let (mut sl, mut needed) = layers(graph, &routes.lfts, &escape::turns(graph, &parents));
    if needed <= available {
        routes.spanning = vec![parents];
    } else {
        (sl, needed) = layers(graph, &routes.lfts, &[]);
        if needed > available {
            return Err(RoutingError::NotEnoughVls { engine: "dfsssp", needed, available });
        }
        routes.spanning = make_room(graph, &routes.lfts, (&mut sl, needed), &parents).into_iter().collect();
    }
    routes.vls = use_spare(graph, &mut sl, needed, available.min(MOST_DEALT));
    give_lanes(&mut routes, sl, available);
    Ok((routes, load))
}

/// Sets the service levels by which paths take these lanes of those that links have.
fn give_lanes(routes: &mut Routes, mut lanes: LftMatrix, available: u8) {
    if routes.vls > 1 {
        lanes.par_rows_mut(|_, row| row.iter_mut().for_each(|lane| *lane = sl_of_lane(*lane)));
        (routes.sl, routes.sl_to_vl) = (PathSl::BySourceSwitch(lanes), SlToVl::first_for_most(available));
    }
}

pub(super) fn layered_from_nothing(
    graph: &SwitchGraph,
    input: &RoutingInput,
) -> Result<(Routes, Kept), RoutingError> {
    let (routes, load) = layered(graph, input)?;
    let turns = routes.spanning.first().map(|tree| escape::turns(graph, tree)).unwrap_or_default();
    let taken = taken(graph, &routes.lfts, &lanes_of(&routes), &turns);
    let taken = Taken::new(graph, taken, routes.vls);
    Ok((routes, Kept { load, taken: Some(taken), ways: 1 }))
}

/// The lane of each path.
fn lanes_of(routes: &Routes) -> LftMatrix {
    match &routes.sl {
        PathSl::BySourceSwitch(levels) => {
            let mut lanes = levels.clone();
            lanes.par_rows_mut(|_, row| row.iter_mut().for_each(|level| *level = lane_of_sl(*level)));
            lanes
        }
        _ => LftMatrix::filled(routes.switches.len(), routes.lfts.stride() as u16 - 1, 0),
    }
}

/// The tables of `dfsssp` after lost links. Paths that are what they were keep their lanes; the others keep theirs where they close no
/// cycle there. `None` where some path has room on no lane, or none is left for the tree of all switches.
pub(super) fn repair_layered(base: &Base, graph: &SwitchGraph, links: &LinkChange) -> Option<Routes> {
    let mut routes = base.routes.clone();
    let cut = Cut::new((&base.graph, &base.routes.lfts), graph, links);
    let changed = regrow(&cut, &base.input, &mut routes.lfts, &mut base.load(graph, links));
    let room = room::Lanes::new(base.kept.taken.as_ref()?, (&base.graph, graph), links);
    let mut lanes: Vec<_> = (0..base.input.vls()).map(|number| room.lane(number)).collect();
    if let Some(parents) = base.routes.spanning.first() {
        routes.spanning = vec![escape::mend(parents, (&base.graph, graph), links, lanes.first_mut()?)?];
    }
    let mut of_path = lanes_of(&routes);
    let last = place(&cut, &routes.lfts, &changed, &mut of_path, &mut lanes)?;
    routes.vls = routes.vls.max(last + 1);
    give_lanes(&mut routes, of_path, base.input.vls());
    Some(routes)
}

/// Fills the tables; the routes of hosts over each arc.
fn route_all(graph: &SwitchGraph, input: &RoutingInput, lfts: &mut LftMatrix) -> Vec<u64> {
    let mut tree = Tree::new(graph);
    let order = one_by_one(graph, input);
    for d in &order {
        tree.measure(d.switch);
        tree.grow_all(d, lfts);
    }
    // Once more, each port of a host against the load of all others: those that came first did not know it.
    for d in order.into_iter().filter(|d| d.host) {
        tree.measure(d.switch);
        d.lids().for_each(|lid| tree.take_back(usize::from(lid), lfts));
        tree.grow_all(d, lfts);
    }
    // What they could not know either is that those after them had no other way.
    relieve_shortest(graph, lfts, None).unwrap_or(tree.load)
}

/// The shortest paths to one LID, and the load of all so far.
struct Tree<'g> {
    graph: &'g SwitchGraph,
    /// Hosts on each switch.
    hosts: Vec<u64>,
    load: Vec<u64>,
    target: SwitchIndex,
    distance: Vec<u16>,
    /// Switches in order of distance.
    order: Vec<SwitchIndex>,
    cost: Vec<u64>,
    next: Vec<u32>,
    senders: Vec<u64>,
    /// Arc by switch and port.
    by_port: Vec<[u32; 256]>,
    /// The other LIDs of the port.
    siblings: Siblings,
}

impl<'g> Tree<'g> {
    fn new(graph: &'g SwitchGraph) -> Self {
        let count = graph.switch_count();
        Self {
            graph,
            hosts: graph.hosts(),
            load: vec![0; graph.all_arcs().len()],
            target: SwitchIndex::MAX,
            distance: vec![u16::MAX; count],
            order: Vec::with_capacity(count),
            cost: vec![0; count],
            next: vec![u32::MAX; count],
            senders: vec![0; count],
            by_port: (0..count as SwitchIndex).map(|s| graph.arcs_by_port(s)).collect(),
            siblings: Siblings::new(graph),
        }
    }

    /// Distances to `target`, kept while it stays the same.
    fn measure(&mut self, target: SwitchIndex) {
        if std::mem::replace(&mut self.target, target) == target {
            return;
        }
        self.distance.fill(u16::MAX);
        self.distance[target as usize] = 0;
        self.order.clear();
        self.order.push(target);
        let mut head = 0;
        while let Some(&at) = self.order.get(head) {
            head += 1;
            for arc in self.graph.arcs(at) {
                if self.distance[arc.to as usize] == u16::MAX {
                    self.distance[arc.to as usize] = self.distance[at as usize] + 1;
                    self.order.push(arc.to);
                }
            }
        }
    }

    /// The trees of all LIDs of a port.
    fn grow_all(&mut self, d: &Destination, lfts: &mut LftMatrix) {
        self.siblings.begin(d.switch);
        for lid in d.lids() {
            self.grow(d);
            self.write(usize::from(lid), d, lfts);
        }
    }

    /// Chooses the next arc of every switch, nearest first: of the arcs that lead nearer, the one whose way shares least with those
    /// of the port's other LIDs, of these the one with the least load along all of its way; the first in order when equal. Then
    /// adds the load of hosts.
    fn grow(&mut self, d: &Destination) {
        self.cost[self.target as usize] = 0;
        let alone = self.siblings.is_empty();
        for s in &self.order[1..] {
            if !alone {
                self.siblings.look_from(Some(*s));
            }
            let nearer = self.distance[*s as usize] - 1;
            let first = self.graph.offsets()[*s as usize];
            let mut best = (u64::MAX, u64::MAX, u32::MAX);
            for (i, arc) in self.graph.arcs(*s).iter().enumerate() {
                if self.distance[arc.to as usize] == nearer {
                    let number = first + i as u32;
                    let cost = self.cost[arc.to as usize].saturating_add(price(self.load[number as usize]));
                    let shared = if alone { 0 } else { self.siblings.shared(number, &self.next) };
                    best = best.min((shared, cost, number));
                }
            }
            (_, self.cost[*s as usize], self.next[*s as usize]) = best;
        }
        if d.lmc > 0 {
            self.siblings.push(&self.next);
        }
        self.senders.copy_from_slice(&self.hosts);
        for s in self.order[1..].iter().rev() {
            let arc = self.next[*s as usize];
            let senders = self.senders[*s as usize];
            self.load[arc as usize] += if d.host { senders } else { 0 };
            self.senders[self.graph.all_arcs()[arc as usize].to as usize] += senders;
        }
    }

    /// Takes the load of a host's LID off the links again. A LID that another port has too may lead there by now: whatever load was
    /// put where is not known then, and what is there stays.
    fn take_back(&mut self, lid: usize, lfts: &LftMatrix) {
        self.senders.copy_from_slice(&self.hosts);
        for s in self.order[1..].iter().rev() {
            let arc = self.by_port[*s as usize][usize::from(lfts.row(*s)[lid])];
            let Some(to) = self.graph.all_arcs().get(arc as usize).map(|arc| arc.to) else { continue };
            let senders = self.senders[*s as usize];
            self.load[arc as usize] = self.load[arc as usize].saturating_sub(senders);
            self.senders[to as usize] += senders;
        }
    }

    fn write(&self, lid: usize, d: &Destination, lfts: &mut LftMatrix) {
        for s in &self.order[1..] {
            lfts.row_mut(*s)[lid] = self.graph.all_arcs()[self.next[*s as usize] as usize].out_port;
        }
        lfts.row_mut(d.switch)[lid] = d.port;
    }
}

/// What a link of this load costs: its square, so that two links of middling load are better than a heavy and a light one.
pub(super) fn price(load: u64) -> u64 {
    load.saturating_mul(load).min(1 << 46)
}

pub(super) mod regrow;
#[cfg(test)]
mod tests;
