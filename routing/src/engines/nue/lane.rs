//! A virtual lane: the dependencies that trees have taken on it, and whether it has room for more.
//!
//! A tree that is given up gives back what it took: a lane knows what came since the tree was begun.

use super::network::{Escape, NONE, Network};
use crate::engines::acyclic::Acyclic;
use crate::engines::escape;

/// What [`super::growth::Growth`] asks of a lane. A dependency is named by the arc by which packets come and the one over which they
/// go on.
pub(super) trait Room {
    /// Begins a tree.
    fn begin(&mut self);

    /// Takes a dependency where that closes no cycle with those taken.
    fn take(&mut self, arc: u32, on: u32) -> bool;

    /// The same where some of those taken may be given back before the tree is done, and what is refused be asked for again.
    fn try_take(&mut self, arc: u32, on: u32) -> bool {
        self.take(arc, on)
    }

    /// Whether a dependency is taken, and if not, whether it agrees with the order of channels as it is and so costs no search.
    fn fit(&self, arc: u32, on: u32) -> Fit;

    /// How many dependencies the tree took so far.
    fn mark(&self) -> usize;

    /// Gives back what the tree took after a mark.
    fn rewind(&mut self, mark: usize);

    /// Gives up the tree, with all that it took.
    fn give_up(&mut self) {
        self.rewind(0);
    }
}

/// How well a dependency fits in with those taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    Taken,
    Forward,
    Unknown,
}

/// What a lane knows of a dependency.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    Nothing,
    /// It is among those taken.
    Taken,
    /// It would close a cycle with those taken, or turns back over the cable it came by.
    Blocked,
}

/// A lane of tables from nothing.
#[derive(Clone)]
pub(super) struct Lane<'g> {
    network: &'g Network<'g>,
    taken: Acyclic,
    /// By the numbers of dependencies.
    known: Vec<Known>,
    /// Dependencies that the tree took.
    added: Vec<(u32, u32)>,
    /// Those that it found to close a cycle, by number.
    blocked: Vec<usize>,
}

impl<'g> Lane<'g> {
    /// A lane in which the dependencies of the escape tree are taken.
    pub(super) fn new(network: &'g Network<'g>, tree: &Escape) -> Self {
        let mut lane = Self {
            network,
            taken: Acyclic::with_order(tree.places.clone()),
            known: vec![Known::Nothing; network.dependencies],
            added: Vec::new(),
            blocked: Vec::new(),
        };
        for (arc, back) in (0..).zip(&network.reverse).filter(|(_, back)| **back != NONE) {
            lane.known[network.dependency(arc, *back)] = Known::Blocked;
        }
        for (arc, on) in escape::turns(network.graph, &tree.parent) {
            lane.try_take(arc, on);
        }
        lane
    }

    /// Sets `bit` of each dependency that is taken; the places of arcs in an order that is forwards along them.
    pub(super) fn into_taken(self, bit: u16, lanes: &mut [u16]) -> Vec<u32> {
        for (lanes, known) in lanes.iter_mut().zip(&self.known) {
            *lanes |= if *known == Known::Taken { bit } else { 0 };
        }
        self.taken.into_places()
    }
}

impl Room for Lane<'_> {
    fn begin(&mut self) {
        self.added.clear();
        self.blocked.clear();
    }

    fn take(&mut self, arc: u32, on: u32) -> bool {
        let taken = self.try_take(arc, on);
        if !taken {
            let number = self.network.dependency(arc, on);
            if self.known[number] == Known::Nothing {
                self.known[number] = Known::Blocked;
                self.blocked.push(number);
            }
        }
        taken
    }

    fn try_take(&mut self, arc: u32, on: u32) -> bool {
        let number = self.network.dependency(arc, on);
        match self.known[number] {
            Known::Taken => true,
            Known::Blocked => false,
            Known::Nothing if self.taken.insert_new(arc, on) => {
                self.known[number] = Known::Taken;
                self.added.push((arc, on));
                true
            }
            Known::Nothing => false,
        }
    }

    fn fit(&self, arc: u32, on: u32) -> Fit {
        match self.known[self.network.dependency(arc, on)] {
            Known::Taken => Fit::Taken,
            Known::Nothing if self.taken.is_forward(arc, on) => Fit::Forward,
            Known::Nothing | Known::Blocked => Fit::Unknown,
        }
    }

    fn mark(&self) -> usize {
        self.added.len()
    }

    fn rewind(&mut self, mark: usize) {
        for (arc, on) in self.added.drain(mark..) {
            self.taken.remove(arc, on);
            self.known[self.network.dependency(arc, on)] = Known::Nothing;
        }
    }

    fn give_up(&mut self) {
        self.rewind(0);
        for number in self.blocked.drain(..) {
            self.known[number] = Known::Nothing;
        }
    }
}
