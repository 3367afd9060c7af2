//! What links that were lost left of a lane.

use std::sync::Arc;

use super::lane::{Fit, Room};
use super::network::{Escape, NONE, Network};
use crate::engines::acyclic::Insert;
use crate::engines::orphans::{Cut, Tree};
use crate::engines::{escape, room};
use crate::fabric::{Destination, LinkChange, SwitchGraph, SwitchIndex};

/// A loss of links.
pub(super) struct Loss<'a> {
    /// Before and after.
    pub(super) graphs: (&'a SwitchGraph, &'a SwitchGraph),
    pub(super) links: &'a LinkChange,
    pub(super) network: &'a Network<'a>,
    pub(super) cut: &'a Cut<'a>,
    /// The escape tree of all lanes before.
    pub(super) parents: &'a [u32],
}

/// A lane of a fabric that lost links.
pub(super) struct Left<'a> {
    lane: room::Lane<'a>,
    /// Dependencies that the tree took.
    added: Vec<(u32, u32)>,
}

impl<'a> Left<'a> {
    const fn new(lane: room::Lane<'a>) -> Self {
        Self { lane, added: Vec::new() }
    }

    /// A lane with its escape tree mended. `None` where it has no room for one.
    pub(super) fn mended(
        room: &'a room::Lanes<'_>,
        number: u8,
        loss: &Loss<'_>,
    ) -> Option<(Self, Arc<[u32]>)> {
        let mut lane = room.lane(number);
        let escape = escape::mend(loss.parents, loss.graphs, loss.links, &mut lane)?;
        Some((Self::new(lane), escape))
    }

    /// A lane with its mended escape tree, for which an empty lane has room, and then of the ways that stand those for which it has. `own`
    /// are the ports of the lane; their LIDs for whose ways there is no room are `refused`.
    pub(super) fn escape_first<'d>(
        room: &'a room::Lanes<'_>,
        loss: &Loss<'_>,
        own: impl Iterator<Item = &'d Destination>,
        refused: &mut [bool],
    ) -> Option<(Self, Arc<[u32]>)> {
        let mut lane = room.empty(Escape::new(loss.network).places);
        let escape = escape::mend(loss.parents, loss.graphs, loss.links, &mut lane.clone())?;
        lane.take_all(&escape::turns(loss.network.graph, &escape), &mut Vec::new());
        let mut left = Self::new(lane);
        left.stand(loss.cut, own, refused);
        Some((left, escape))
    }

    /// Takes the dependencies of all switches that keep their ways to ports, LID by LID.
    fn stand<'d>(
        &mut self,
        cut: &Cut<'_>,
        ports: impl Iterator<Item = &'d Destination>,
        refused: &mut [bool],
    ) {
        let arcs = cut.graph.all_arcs();
        let mut tree = Tree::new(cut);
        for (d, lid) in ports.flat_map(|d| d.lids().map(move |lid| (d, lid))) {
            tree.begin(d, lid);
            self.begin();
            let fits = |s: SwitchIndex| {
                let arc = cut.old_arc(s, lid);
                let Some(ends) = arcs.get(arc as usize).filter(|_| !tree.is_orphan(s)) else { return true };
                let on = cut.old_arc(ends.to, lid);
                on == NONE || self.take(arc, on)
            };
            if !(0..cut.graph.switch_count() as SwitchIndex).all(fits) {
                self.give_up();
                refused[usize::from(lid)] = true;
            }
        }
    }
}

impl Room for Left<'_> {
    fn begin(&mut self) {
        self.added.clear();
    }

    fn take(&mut self, arc: u32, on: u32) -> bool {
        match self.lane.take(arc, on) {
            Insert::Known => {}
            Insert::Added => self.added.push((arc, on)),
            Insert::Refused => return false,
        }
        true
    }

    fn fit(&self, arc: u32, on: u32) -> Fit {
        match self.lane.has_from_before(arc, on) {
            true => Fit::Taken,
            false if self.lane.is_forward(arc, on) => Fit::Forward,
            false => Fit::Unknown,
        }
    }

    fn mark(&self) -> usize {
        self.added.len()
    }

    fn rewind(&mut self, mark: usize) {
        self.lane.give_back(self.added.drain(mark..));
    }
}
