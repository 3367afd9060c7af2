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

/// Lanes of a graph that lost links.
pub(super) struct Lanes<'a> {
    taken: &'a Taken,
    old: &'a SwitchGraph,
    graph: &'a SwitchGraph,
    links: &'a LinkChange,
}

impl<'a> Lanes<'a> {
    pub(super) const fn new(
        taken: &'a Taken,
        (old, graph): (&'a SwitchGraph, &'a SwitchGraph),
        links: &'a LinkChange,
    ) -> Self {
        Self { taken, old, graph, links }
    }

    /// A lane, empty where there was none of this number.
    pub(super) fn lane(&self, number: u8) -> Lane<'_> {
        let places = match self.taken.places.get(usize::from(number)) {
            Some(places) => self.links.old_arc.iter().map(|old| places[*old as usize]).collect(),
            None => (0..self.graph.all_arcs().len() as u32).collect(),
        };
        Lane { lanes: self, number, dependencies: Acyclic::with_order(places), is_laid_out: false }
    }

    /// Whether a lane had a dependency, by the numbers of arcs in the graph that is left.
    fn had(&self, lane: u8, arc: u32, on: u32) -> bool {
        let [arc, on] = [arc, on].map(|arc| self.links.old_arc[arc as usize]);
        let first = self.old.offsets()[self.old.all_arcs()[arc as usize].to as usize];
        self.taken.lanes[(self.taken.base[arc as usize] + on - first) as usize] >> lane & 1 == 1
    }
}

/// A lane.
#[derive(Clone)]
pub(super) struct Lane<'a> {
    lanes: &'a Lanes<'a>,
    number: u8,
    /// Those that came, and when they are laid out those that were there.
    dependencies: Acyclic,
    is_laid_out: bool,
}

impl Lane<'_> {
    /// Takes a dependency if it closes no cycle.
    pub(super) fn take(&mut self, arc: u32, on: u32) -> Insert {
        if self.lanes.had(self.number, arc, on) {
            return Insert::Known;
        }
        if !self.is_laid_out && !self.dependencies.is_forward(arc, on) {
            self.lay_out();
        }
        self.dependencies.insert(arc, on)
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
        let graph = self.lanes.graph;
        for (arc, ends) in (0..).zip(graph.all_arcs()) {
            for on in graph.offsets()[ends.to as usize]..graph.offsets()[ends.to as usize + 1] {
                if self.lanes.had(self.number, arc, on) {
                    self.dependencies.insert_new(arc, on);
                }
            }
        }
    }
}
