//! The way out of an impasse of [`Growth`]: the local backtracking of the paper.

use super::growth::{FAR, Growth, HOP};
use super::lane::Room;
use super::network::NONE;
use crate::fabric::SwitchIndex;

impl<R: Room> Growth<'_, R> {
    /// Reaches `s` by sending one of its neighbours another way, if that, all that comes through it, and `s` then fit in with
    /// what is taken: the local backtracking of the paper. False, and nothing changed, when no neighbour has such a way.
    pub(super) fn backtrack(&mut self, s: SwitchIndex) -> bool {
        let network = self.network;
        let (to, reverse) = (|arc: u32| network.to[arc as usize], |arc: u32| network.reverse[arc as usize]);
        for arc in network.arcs(s) {
            let neighbour = to(arc);
            let now = self.next[neighbour as usize];
            if now == NONE {
                continue;
            }
            let comes =
                |back: &u32| *back != NONE && self.next[network.from[*back as usize] as usize] == *back;
            let mut into: Vec<u32> = network.arcs(neighbour).map(reverse).filter(comes).collect();
            into.push(arc);
            for other in network.arcs(neighbour) {
                let beyond = to(other);
                if other == now || self.cost[beyond as usize] >= FAR || self.passes(beyond, neighbour) {
                    continue;
                }
                let begin = self.lanes[self.lane].mark();
                let behind = (other, self.next[beyond as usize]);
                let before = into.iter().map(|into| (*into, other));
                let mut wanted = std::iter::once(behind).filter(|(_, on)| *on != NONE).chain(before);
                if wanted.all(|(x, y)| self.lanes[self.lane].try_take(x, y)) {
                    self.next[neighbour as usize] = other;
                    self.next[s as usize] = arc;
                    self.cost[neighbour as usize] = self.price(other) + HOP;
                    self.cost[s as usize] = self.price(arc) + HOP;
                    return true;
                }
                self.lanes[self.lane].rewind(begin);
            }
        }
        false
    }

    /// Whether the way from `from` leads through `over`.
    fn passes(&self, from: SwitchIndex, over: SwitchIndex) -> bool {
        let mut at = from;
        while at != over && self.next[at as usize] != NONE {
            at = self.network.to[self.next[at as usize] as usize];
        }
        at == over
    }

    /// Puts switches in order of their distance along the tree.
    pub(super) fn order_from(&mut self, target: SwitchIndex) {
        self.order.clear();
        self.order.push(target);
        let mut into: Vec<Vec<SwitchIndex>> = vec![Vec::new(); self.next.len()];
        for arc in self.next.iter().copied().filter(|arc| *arc != NONE) {
            into[self.network.to[arc as usize] as usize].push(self.network.from[arc as usize]);
        }
        let mut head = 0;
        while let Some(&s) = self.order.get(head) {
            head += 1;
            self.order.extend(&into[s as usize]);
        }
    }
}
