//! What became of the links between two pictures of the same switches and end ports: the ground on which results for the
//! old picture are taken over for the new one.
//!
//! Cost: one comparison for each arc and destination.

use std::ops::Range;

use super::switch_graph::Destination;
use super::{Arc, SwitchGraph, SwitchIndex};

/// Arcs lost and added, and where the others went. Arcs are numbered as in [`SwitchGraph::all_arcs`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkChange {
    /// For each arc of the new graph its number in the old one, `u32::MAX` for an arc that came.
    pub old_arc: Vec<u32>,
    /// Arcs that are gone, by switch and old number.
    pub lost: Vec<(SwitchIndex, u32)>,
    /// Arcs that came, by switch and new number.
    pub added: Vec<(SwitchIndex, u32)>,
    /// Stretches of arcs that follow one another in both: first new number, first old number, length.
    runs: Vec<(u32, u32, u32)>,
    /// Where each switch's arcs begin in the new graph.
    offsets: Vec<u32>,
}

impl LinkChange {
    /// Compares two graphs; `None` when they differ in more than links between switches.
    pub fn between(old: &SwitchGraph, new: &SwitchGraph) -> Option<Self> {
        let count = new.switch_count();
        let same_switch = |s| old.guid(s) == new.guid(s) && old.num_ports(s) == new.num_ports(s);
        let same = |(a, b): (&Destination, &Destination)| Destination { end: b.end, ..*a } == *b;
        if old.switch_count() != count
            || !(0..count as SwitchIndex).all(same_switch)
            || old.destinations().len() != new.destinations().len()
            || !old.destinations().iter().zip(new.destinations()).all(same)
        {
            return None;
        }
        let mut change = Self {
            old_arc: Vec::with_capacity(new.all_arcs().len()),
            offsets: new.offsets().to_vec(),
            ..Self::default()
        };
        for s in 0..count as SwitchIndex {
            change.compare(s, (old.arcs(s), old.offsets()[s as usize]), new.arcs(s));
        }
        Some(change)
    }

    /// Merges the arcs of one switch, which both graphs sort alike.
    fn compare(&mut self, s: SwitchIndex, (old, first): (&[Arc], u32), new: &[Arc]) {
        if old == new {
            return self.keep(first, old.len() as u32);
        }
        let key = |arc: &Arc| (arc.to, arc.out_port, arc.in_port);
        let (mut i, mut j) = (0, 0);
        while i < old.len() || j < new.len() {
            let number = first + i as u32;
            match (old.get(i), new.get(j)) {
                (Some(a), Some(b)) if key(a) == key(b) => {
                    self.keep(number, 1);
                    (i, j) = (i + 1, j + 1);
                }
                (Some(a), b) if b.is_none_or(|b| key(a) < key(b)) => {
                    self.lost.push((s, number));
                    i += 1;
                }
                _ => {
                    self.added.push((s, self.old_arc.len() as u32));
                    self.old_arc.push(u32::MAX);
                    j += 1;
                }
            }
        }
    }

    fn keep(&mut self, old: u32, count: u32) {
        let new = self.old_arc.len() as u32;
        match self.runs.last_mut() {
            Some((first, from, length)) if *first + *length == new && *from + *length == old => {
                *length += count;
            }
            _ if count > 0 => self.runs.push((new, old, count)),
            _ => {}
        }
        self.old_arc.extend(old..old + count);
    }

    /// For each arc of the old graph, which had so many, its number in the new one; `u32::MAX` for one that is gone.
    pub(crate) fn new_arcs(&self, old_arcs: usize) -> Vec<u32> {
        let mut new_arcs = vec![u32::MAX; old_arcs];
        for (new, old, length) in self.runs() {
            (new as u32..).zip(&mut new_arcs[old..old + length]).for_each(|(number, new)| *new = number);
        }
        new_arcs
    }

    /// Whether the links are the same.
    pub fn is_empty(&self) -> bool {
        self.lost.is_empty() && self.added.is_empty()
    }

    /// Whether a switch lost or gained a link.
    pub fn touches(&self, switch: SwitchIndex) -> bool {
        self.lost.iter().chain(&self.added).any(|(s, _)| *s == switch)
    }

    /// The arcs of a switch in the new graph.
    pub fn arcs_of(&self, switch: SwitchIndex) -> Range<usize> {
        self.offsets[switch as usize] as usize..self.offsets[switch as usize + 1] as usize
    }

    /// Old numbers of the arcs that a switch still has.
    pub fn kept_of(&self, switch: SwitchIndex) -> impl Iterator<Item = u32> + '_ {
        self.old_arc[self.arcs_of(switch)].iter().copied().filter(|old| *old != u32::MAX)
    }

    /// Stretches of arcs that follow one another in both numberings: first new number, first old number, length.
    pub fn runs(&self) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
        self.runs.iter().map(|(new, old, length)| (*new as usize, *old as usize, *length as usize))
    }

    /// Copies values by arc from the old numbering to the new; those of arcs that came are left alone.
    pub fn copy_arcs<T: Copy>(&self, from: &[T], to: &mut [T]) {
        for (new, old, length) in self.runs() {
            to[new..new + length].copy_from_slice(&from[old..old + length]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::testing;

    #[test]
    fn a_lost_link_is_two_arcs_and_the_rest_keeps_its_values() {
        let fabric = testing::fat_tree(&[4, 3], &[1, 2], 0);
        let old = SwitchGraph::new(&fabric);
        let mut broken = fabric.clone();
        let switch_link =
            |l: &&crate::fabric::Link| fabric.node(l.a.node).is_switch() && fabric.node(l.b.node).is_switch();
        let link = *fabric.links().find(switch_link).unwrap();
        broken.disconnect(link.a);
        let new = SwitchGraph::new(&broken);
        let change = LinkChange::between(&old, &new).unwrap();
        assert_eq!((change.lost.len(), change.added.len()), (2, 0));
        let mut moved = vec![Arc { to: 0, out_port: 0, in_port: 0 }; new.all_arcs().len()];
        change.copy_arcs(old.all_arcs(), &mut moved);
        assert_eq!(moved, new.all_arcs());
        let back = LinkChange::between(&new, &old).unwrap();
        assert_eq!((back.lost.len(), back.added.len()), (0, 2));
        assert!(change.lost.iter().all(|(s, _)| change.touches(*s) && back.touches(*s)));
        assert!(LinkChange::between(&old, &old).unwrap().is_empty());
    }

    #[test]
    fn a_host_more_is_more_than_links() {
        let fabric = testing::fat_tree(&[4, 3], &[1, 2], 0);
        let mut less = fabric.clone();
        let host =
            fabric.links().find(|l| !fabric.node(l.b.node).is_switch() || !fabric.node(l.a.node).is_switch());
        less.disconnect(host.unwrap().a);
        assert_eq!(LinkChange::between(&SwitchGraph::new(&fabric), &SwitchGraph::new(&less)), None);
    }
}
