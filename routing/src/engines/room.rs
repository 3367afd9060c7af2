//! The room that is left on lanes after links were lost: which dependencies of channels a lane has, and whether it can take more.
//!
//! What a lane had before the loss is kept as one bit for each pair of arcs in a row, with an order of the arcs that is forwards
//! along all of them. Dependencies whose paths are gone count as taken still: a set that is too large and free of cycles proves the
//! smaller one. A new one that agrees with the order costs nothing; only where one does not, the lane's own are laid out to
//! search them ([`super::acyclic`]).

use std::sync::Arc;

use super::acyclic::{Acyclic, Insert};
use crate::fabric::{LinkChange, SwitchGraph};

/// The dependencies of up to 16 lanes.
#[derive(Debug)]
pub(super) struct Taken {
    /// Where the dependencies of each arc begin: one for each arc that leaves where it leads to.
    base: Vec<u32>,
    /// One bit for each lane, by dependency.
    lanes: Vec<u16>,
    /// For each lane the places of the arcs in an order that is forwards along its dependencies.
    places: Vec<Arc<[u32]>>,
}

impl Taken {
    /// `lanes` has one bit for each lane and dependency, which are numbered by their first arc, then by their second one. None
    /// of the `count` lanes has a cycle.
    pub(super) fn new(graph: &SwitchGraph, lanes: Vec<u16>, count: u8) -> Self {
        let mut taken = Self { base: dependency_starts(graph), lanes, places: Vec::new() };
        taken.places = (0..count).map(|lane| taken.order(graph, lane)).collect();
        taken
    }

    /// The same where such orders are known: for each lane the places of the arcs.
    pub(super) fn with_orders(graph: &SwitchGraph, lanes: Vec<u16>, places: Vec<Arc<[u32]>>) -> Self {
        Self { base: dependency_starts(graph), lanes, places }
    }

    /// The same with no more than some of the dependencies, for which the orders hold as well.
    pub(super) fn with_fewer(&self, lanes: Vec<u16>) -> Self {
        Self { base: self.base.clone(), lanes, places: self.places.clone() }
    }

    /// An order of arcs that is forwards along the dependencies of a lane.
    fn order(&self, graph: &SwitchGraph, lane: u8) -> Arc<[u32]> {
        let arcs = graph.all_arcs();
        let following = |arc: usize| {
            let on = graph.offsets()[arcs[arc].to as usize]..;
            let lanes = &self.lanes[self.base[arc] as usize..self.base[arc + 1] as usize];
            on.zip(lanes).filter(|(_, lanes)| **lanes >> lane & 1 == 1).map(|(on, _)| on as usize)
        };
        let mut before = vec![0_u32; arcs.len()];
        (0..arcs.len()).flat_map(following).for_each(|on| before[on] += 1);
        let mut ready: Vec<usize> = (0..arcs.len()).rev().filter(|arc| before[*arc] == 0).collect();
        let (mut places, mut place) = (vec![0; arcs.len()], 0);
        while let Some(arc) = ready.pop() {
            places[arc] = place;
            place += 1;
            for on in following(arc) {
                before[on] -= 1;
                if before[on] == 0 {
                    ready.push(on);
                }
            }
        }
        debug_assert_eq!(place as usize, arcs.len(), "no cycle");
        places.into()
    }
}

/// Where the dependencies of each arc begin, and the number of all: one for each arc that leaves where it leads to.
pub(super) fn dependency_starts(graph: &SwitchGraph) -> Vec<u32> {
    let mut base = vec![0; graph.all_arcs().len() + 1];
    for (i, arc) in graph.all_arcs().iter().enumerate() {
        base[i + 1] = base[i] + graph.arcs(arc.to).len() as u32;
    }
    base
}

/// The number of a dependency, by [`dependency_starts`].
pub(super) fn dependency(graph: &SwitchGraph, starts: &[u32], arc: u32, on: u32) -> usize {
    let first = graph.offsets()[graph.all_arcs()[arc as usize].to as usize];
    (starts[arc as usize] + on - first) as usize
}

const GONE: u32 = u32::MAX;

/// Lanes of a graph that lost links.
pub(super) struct Lanes<'a> {
    taken: &'a Taken,
    old: &'a SwitchGraph,
    graph: &'a SwitchGraph,
    links: &'a LinkChange,
    /// New numbers of arcs by their old ones.
    new_arc: Vec<u32>,
}

impl<'a> Lanes<'a> {
    pub(super) fn new(
        taken: &'a Taken,
        (old, graph): (&'a SwitchGraph, &'a SwitchGraph),
        links: &'a LinkChange,
    ) -> Self {
        Self { taken, old, graph, links, new_arc: links.new_arcs(old.all_arcs().len()) }
    }

    /// A lane, empty where there was none of this number.
    pub(super) fn lane(&self, number: u8) -> Lane<'_> {
        let places = match self.taken.places.get(usize::from(number)) {
            Some(places) => self.links.old_arc.iter().map(|old| places[*old as usize]).collect(),
            None => (0..self.graph.all_arcs().len() as u32).collect(),
        };
        Lane {
            lanes: self,
            number: Some(number),
            dependencies: Acyclic::with_order(places),
            is_laid_out: false,
        }
    }

    /// A lane with nothing in it; `places` is an order of arcs in which most dependencies will be forwards.
    pub(super) fn empty(&self, places: Vec<u32>) -> Lane<'_> {
        Lane { lanes: self, number: None, dependencies: Acyclic::with_order(places), is_laid_out: true }
    }

    /// Whether a lane had a dependency, by the numbers of arcs in the graph that is left.
    fn had(&self, lane: u8, arc: u32, on: u32) -> bool {
        let [arc, on] = [arc, on].map(|arc| self.links.old_arc[arc as usize]);
        self.taken.lanes[dependency(self.old, &self.taken.base, arc, on)] >> lane & 1 == 1
    }
}

/// A lane.
#[derive(Clone)]
pub(super) struct Lane<'a> {
    lanes: &'a Lanes<'a>,
    /// Which it was before the loss.
    number: Option<u8>,
    /// Those that came, and when they are laid out those that were there.
    dependencies: Acyclic,
    is_laid_out: bool,
}

impl Lane<'_> {
    /// Takes a dependency if it closes no cycle.
    pub(super) fn take(&mut self, arc: u32, on: u32) -> Insert {
        if self.has_from_before(arc, on) {
            return Insert::Known;
        }
        if !self.is_laid_out && !self.dependencies.is_forward(arc, on) {
            self.lay_out();
        }
        self.dependencies.insert(arc, on)
    }

    /// Whether a dependency was taken before the loss.
    pub(super) fn has_from_before(&self, arc: u32, on: u32) -> bool {
        self.number.is_some_and(|number| self.lanes.had(number, arc, on))
    }

    /// Whether a dependency agrees with the order of arcs as it is, as those that were taken do.
    pub(super) fn is_forward(&self, arc: u32, on: u32) -> bool {
        self.dependencies.is_forward(arc, on)
    }

    /// Takes dependencies if they all together close no cycle, and appends those that came to `added`. False, and nothing changed,
    /// if they do.
    pub(super) fn take_all(&mut self, pairs: &[(u32, u32)], added: &mut Vec<(u32, u32)>) -> bool {
        let begin = added.len();
        for (arc, on) in pairs {
            match self.take(*arc, *on) {
                Insert::Known => {}
                Insert::Added => added.push((*arc, *on)),
                Insert::Refused => {
                    self.give_back(added.drain(begin..));
                    return false;
                }
            }
        }
        true
    }

    /// Takes away what was added.
    pub(super) fn give_back(&mut self, added: impl IntoIterator<Item = (u32, u32)>) {
        added.into_iter().for_each(|(arc, on)| self.dependencies.remove(arc, on));
    }

    /// Enters all that the lane had, which is forwards in the order as it is: nothing that came was against it yet.
    fn lay_out(&mut self) {
        self.is_laid_out = true;
        let (Lanes { taken, old, links, new_arc, .. }, Some(number)) = (self.lanes, self.number) else {
            return;
        };
        for (arc, before) in (0..).zip(&links.old_arc) {
            let starts = &taken.base[*before as usize..];
            let lanes = &taken.lanes[starts[0] as usize..starts[1] as usize];
            let on = old.offsets()[old.all_arcs()[*before as usize].to as usize] as usize;
            for (_, on) in lanes.iter().zip(&new_arc[on..]).filter(|(lanes, _)| **lanes >> number & 1 == 1) {
                if *on != GONE {
                    self.dependencies.insert_new(arc, *on);
                }
            }
        }
    }
}
