//! `nue` after lost links: the trees over one are joined again on their lanes, all others stay.
//!
//! First each lane's escape tree is mended; then, LID by LID in the order in which they were routed, the orphans are
//! joined ([`super::join`]). The load begins as that of the tables from before, less what the port at hand had lost.
//!
//! Where something has no room, all is done again in lanes that have what stands, but not what the lost ways had taken
//! ([`super::stands`]). Then a LID whose orphans can't be joined has its whole tree grown again on the lane, and where that fails too, it
//! takes the lane's escape tree: as those from nothing do. Where a lane has no room for an escape tree even so, that comes first, and LIDs
//! for whose ways there is none then have their trees grown again as well. So no loss makes `nue` compute all from nothing.
//!
//! Beside tables from nothing, on 23 small fabrics (trees, damaged trees, tori, a dragonfly+, random ones), with one cable less three times and
//! four less once: with one lane 10,326 entries moved instead of 55,927 (13,724 had their way cut there or farther on), hops were 0.4 %
//! more in the mean and the load of the fullest link 2.8 %; with two lanes 10,479 instead of 61,042 (13,082), 0.4 % and 4.6 %; with eight 9,291
//! instead of 58,101 (12,725), 0.1 % and 2.4 %. So prints the test. Load is worse since what stands is not spread anew.
//!
//! Cost: see [`super::join`]; where all is done again, [`super::stands`], and for each tree that is grown again what it costs from nothing.

use std::sync::Arc;

use super::growth::Growth;
use super::lane_of;
use super::left::{Left, Loss};
use super::network::{NONE, Network};
use super::stands::what_stands;
use crate::engines::base::Base;
use crate::engines::orphans::{Cut, Tree};
use crate::engines::room::{self, Taken};
use crate::engines::targets::one_by_one;
use crate::fabric::{Destination, LinkChange, SwitchGraph, SwitchIndex};
use crate::routes::{Routes, SlToVl};

/// The tables of `nue` after lost links.
pub(in crate::engines) fn repair(base: &Base, graph: &SwitchGraph, links: &LinkChange) -> Option<Routes> {
    let (graphs, network) = ((&*base.graph, graph), Network::new(graph));
    let parents = base.routes.spanning.first()?;
    let cut = Cut::new((&base.graph, &base.routes.lfts), graph, links);
    let loss = Loss { graphs, links, network: &network, cut: &cut, parents };
    let taken = base.kept.taken.as_ref()?;
    attempt(base, &loss, taken, false)
        .or_else(|| attempt(base, &loss, &what_stands(base, &loss, taken), true))
}

/// The tables where lanes begin with what is `taken`; `None` where something finds no room and this is not the `last` attempt.
fn attempt(base: &Base, loss: &Loss<'_>, taken: &Taken, last: bool) -> Option<Routes> {
    let mut routes = base.routes.clone();
    let (graph, cut) = (loss.network.graph, loss.cut);
    let order = one_by_one(graph, &base.input);
    let room = room::Lanes::new(taken, loss.graphs, loss.links);
    let (mut lanes, mut escapes) = (Vec::new(), Vec::new());
    let mut refused = vec![false; routes.lfts.stride()];
    for number in 0..routes.vls {
        let own = order.iter().copied().filter(|d| lane_of(d.switch, routes.vls) == number);
        let mended = Left::mended(&room, number, loss);
        let escape_first = || if last { Left::escape_first(&room, loss, own, &mut refused) } else { None };
        let (lane, escape) = mended.or_else(escape_first)?;
        lanes.push(lane);
        escapes.push(escape);
    }
    routes.spanning = by_level(&escapes, &routes.sl_to_vl);
    let mut growth = Growth::new(loss.network, lanes);
    growth.load = base.load(graph, loss.links);
    let mut mender = Mender {
        cut,
        tree: Tree::new(cut),
        growth,
        escapes: &escapes,
        refused,
        hops: vec![NONE; graph.switch_count()],
        earliest: vec![0; graph.switch_count()],
    };
    for d in order {
        for (s, lid, port) in mender.mend(d, last)? {
            if routes.lfts.row(s)[usize::from(lid)] != port {
                routes.lfts.row_mut(s)[usize::from(lid)] = port;
            }
        }
    }
    Some(routes)
}

/// The trees along which multicast of each SL goes with unicast, by those of the lanes.
fn by_level(escapes: &[Arc<[u32]>], levels: &SlToVl) -> Vec<Arc<[u32]>> {
    match escapes {
        [first, others @ ..] if others.iter().any(|tree| tree != first) => {
            // On lanes beyond those of paths any tree goes.
            let of_level = |sl| escapes.get(usize::from(levels.vl(0, 0, (0, 0), sl))).unwrap_or(first);
            (0..16).map(|sl| Arc::clone(of_level(sl))).collect()
        }
        _ => escapes.first().cloned().into_iter().collect(),
    }
}

/// Mends the trees of one LID after the other.
pub(super) struct Mender<'a> {
    pub(super) cut: &'a Cut<'a>,
    /// The tree at hand.
    pub(super) tree: Tree<'a>,
    /// The lanes and the load, and the tree at hand where it is grown again.
    pub(super) growth: Growth<'a, Left<'a>>,
    /// By lane.
    escapes: &'a [Arc<[u32]>],
    /// LIDs for whose old ways there is no room in a lane where the escape tree came first.
    refused: Vec<bool>,
    /// Hops of orphans that have a way again, [`NONE`] everywhere else.
    pub(super) hops: Vec<u32>,
    /// The hops up to which an orphan waits for its old way.
    pub(super) earliest: Vec<u32>,
}

/// A new entry: switch, LID and port.
type Entry = (SwitchIndex, u16, u8);

impl Mender<'_> {
    /// Mends the trees of those LIDs of a port that don't keep their ways; their entries. `None` where orphans find no room, but in the
    /// `last` attempt.
    fn mend(&mut self, d: &Destination, last: bool) -> Option<Vec<Entry>> {
        let (cut, refused) = (self.cut, &self.refused);
        let keeps = |lid| !cut.is_cut(lid) && !refused[usize::from(lid)];
        let lids: Vec<u16> = d.lids().filter(|lid| !keeps(*lid)).collect();
        if lids.is_empty() {
            return Some(Vec::new());
        }
        self.growth.lane = usize::from(lane_of(d.switch, self.growth.lanes.len() as u8));
        if d.host {
            for lid in &lids {
                self.tree.begin(d, *lid);
                self.cut.take_back(*lid, &self.tree.orphans, &mut self.growth.load);
            }
        }
        self.tree.begin_siblings(d, keeps, &mut self.growth.siblings);
        let mut entries = Vec::new();
        for lid in lids {
            self.tree.begin(d, lid);
            if d.lmc > 0 {
                self.tree.fill();
            }
            if !self.refused[usize::from(lid)] && self.join() {
                if d.host {
                    self.tree.add_load(&mut self.growth.load);
                }
                if d.lmc > 0 {
                    self.growth.siblings.push(&self.tree.next);
                }
                entries.extend(self.tree.entries().map(|(s, port)| (s, lid, port)));
            } else if last {
                self.grow_again(d, lid, &mut entries);
            } else {
                return None;
            }
        }
        Some(entries)
    }

    /// Grows the whole tree, or takes the escape tree.
    fn grow_again(&mut self, d: &Destination, lid: u16, entries: &mut Vec<Entry>) {
        if d.host {
            let all = 0..self.hops.len() as SwitchIndex;
            let standing: Vec<SwitchIndex> = all.filter(|s| !self.tree.is_orphan(*s)).collect();
            self.cut.take_back(lid, &standing, &mut self.growth.load);
        }
        self.growth.price_all();
        self.growth.route_one(d, &self.escapes[self.growth.lane]);
        if d.lmc > 0 {
            self.growth.siblings.push(&self.growth.next);
        }
        let others = (0..).zip(&self.growth.next).filter(|(s, _)| *s != d.switch);
        entries.extend(others.map(|(s, arc)| (s, lid, self.cut.graph.port_of(*arc))));
    }
}

#[cfg(test)]
mod tests;
