//! The spanning tree of a group.
//!
//! The root is the switch with the fewest hops to the members' switches in sum (a centre of the members, not of the
//! fabric); from each member's switch the tree goes to the root by a shortest way, along branches that are there already
//! where it can. Where several roots or links are equally good, the MLID decides.
//!
//! Cost: a breadth-first search for each switch with members, kept for the groups that follow; then for each group
//! O(switches · member switches) to find the root.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use mad::types::MulticastLid;

use super::PortSet;
use crate::fabric::{Arc, SwitchGraph, SwitchIndex};

/// A member of a group: where it is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    /// The switch that it is attached to, or is.
    pub switch: SwitchIndex,
    /// The switch's port that leads to it; 0 for the switch itself.
    pub port: u8,
    /// Whether packets are delivered to it; false for members that only send (B40).
    pub receives: bool,
}

/// A switch of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The switch.
    pub switch: SwitchIndex,
    /// Its ports on the tree: to its neighbours and to members that receive.
    pub ports: PortSet,
}

/// A group's tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// The root; `None` when the group has no member.
    pub root: Option<SwitchIndex>,
    /// The switches of the tree, in order of their numbers.
    pub branches: Vec<Branch>,
    /// Members that the root can't reach.
    pub unreachable: Vec<Member>,
}

const FAR: u16 = u16::MAX;

/// Computes trees on one graph.
#[derive(Debug)]
pub struct Planner<'a> {
    graph: &'a SwitchGraph,
    /// Hops from a switch to all others, where they were needed.
    hops: BTreeMap<SwitchIndex, Vec<u16>>,
}

impl<'a> Planner<'a> {
    /// A planner that has computed nothing yet.
    pub const fn new(graph: &'a SwitchGraph) -> Self {
        Self { graph, hops: BTreeMap::new() }
    }

    /// The tree of a group. Members on switches that the graph doesn't have are left out.
    pub fn tree(&mut self, mlid: MulticastLid, members: &[Member]) -> Tree {
        let count = self.graph.switch_count();
        let members: BTreeSet<Member> =
            members.iter().copied().filter(|member| (member.switch as usize) < count).collect();
        let leaves: BTreeSet<SwitchIndex> = members.iter().map(|member| member.switch).collect();
        let Some(root) = self.root(mlid, &leaves) else { return Tree::default() };
        let to_root = self.hops(root).to_vec();
        let mut ports: BTreeMap<SwitchIndex, PortSet> = BTreeMap::from([(root, PortSet::EMPTY)]);
        for leaf in leaves {
            if to_root[leaf as usize] != FAR {
                self.grow(mlid, leaf, &to_root, &mut ports);
            }
        }
        let (reached, unreachable): (Vec<_>, Vec<_>) =
            members.into_iter().partition(|member| to_root[member.switch as usize] != FAR);
        for member in reached.into_iter().filter(|member| member.receives) {
            ports.entry(member.switch).or_default().insert(member.port);
        }
        let branches = ports.into_iter().map(|(switch, ports)| Branch { switch, ports }).collect();
        Tree { root: Some(root), branches, unreachable }
    }

    /// The switch nearest to all `leaves`; members that can't be reached weigh more than any way to those that can.
    fn root(&mut self, mlid: MulticastLid, leaves: &BTreeSet<SwitchIndex>) -> Option<SwitchIndex> {
        let mut sums = vec![0_u64; self.graph.switch_count()];
        for leaf in leaves {
            for (sum, hops) in sums.iter_mut().zip(self.hops(*leaf)) {
                *sum += if *hops == FAR { 1 << 32 } else { u64::from(*hops) };
            }
        }
        let least = if leaves.is_empty() { None } else { sums.iter().min() }?;
        let best: Vec<_> =
            (0..).zip(&sums).filter(|(_, sum)| *sum == least).map(|(switch, _)| switch).collect();
        Some(best[mlid.index() % best.len()])
    }

    /// Joins a switch to the tree by a shortest way to the root.
    fn grow(
        &self,
        mlid: MulticastLid,
        leaf: SwitchIndex,
        to_root: &[u16],
        ports: &mut BTreeMap<SwitchIndex, PortSet>,
    ) {
        let mut at = leaf;
        let mut arrived = ports.contains_key(&at);
        while !arrived {
            let nearer = || {
                let arcs = self.graph.arcs(at).iter();
                arcs.filter(|arc| to_root[arc.to as usize].saturating_add(1) == to_root[at as usize])
            };
            let mut choice: Vec<&Arc> = nearer().filter(|arc| ports.contains_key(&arc.to)).collect();
            if choice.is_empty() {
                choice = nearer().collect();
            }
            // A switch at a finite distance has a nearer neighbour: the search came from there.
            let Some(arc) = choice.get(spread(mlid, at) % choice.len().max(1)) else { return };
            ports.entry(at).or_default().insert(arc.out_port);
            arrived = ports.contains_key(&arc.to);
            ports.entry(arc.to).or_default().insert(arc.in_port);
            at = arc.to;
        }
    }

    /// Hops from a switch to all others.
    fn hops(&mut self, from: SwitchIndex) -> &[u16] {
        let graph = self.graph;
        self.hops.entry(from).or_insert_with(|| {
            let mut hops = vec![FAR; graph.switch_count()];
            hops[from as usize] = 0;
            let mut queue = VecDeque::from([from]);
            while let Some(at) = queue.pop_front() {
                for arc in graph.arcs(at) {
                    if hops[arc.to as usize] == FAR {
                        hops[arc.to as usize] = hops[at as usize] + 1;
                        queue.push_back(arc.to);
                    }
                }
            }
            hops
        })
    }
}

/// Spreads groups over equal links, differently at each switch.
fn spread(mlid: MulticastLid, switch: SwitchIndex) -> usize {
    mlid.index().wrapping_add(switch as usize)
}

#[cfg(test)]
mod tests;
