//! The spanning tree of a group.
//!
//! The root is the switch with the fewest hops to the members' switches in sum (a centre of the members, not of the
//! fabric); from each member's switch the tree goes to the root by a shortest way, along branches that are there already
//! where it can. Where several roots or links are equally good, the MLID decides.
//!
//! An ordered tree goes up to its root only and from there down only, by an order of all switches: the root is one that stands
//! above all members. So every packet goes up first and down after that, from whichever member, and closes no circle of
//! waiting with unicast packets that do the same.
//!
//! Cost: a breadth-first search for each switch with members, kept for the groups that follow; then for each group
//! O(switches · member switches) to find the root.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use mad::types::MulticastLid;

use super::PortSet;
use crate::engines::{joined_order, upper_arcs};
use crate::fabric::{self, SwitchGraph, SwitchIndex};

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

/// Which links a search follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Way {
    Any,
    /// From lower switches to upper ones.
    Up,
    Down,
}

/// Computes trees on one graph.
#[derive(Debug)]
pub struct Planner<G> {
    graph: G,
    /// The place of each switch in the order of ordered trees, the uppermost 0.
    order: Option<Arc<[u32]>>,
    /// The trees that the tables keep room for: for each switch its arc to its parent.
    spanning: Vec<Arc<[u32]>>,
    /// Hops from a switch to all others, where they were needed.
    hops: HashMap<(SwitchIndex, Way), Vec<u16>>,
}

/// The switches with members, and the members.
struct Wanted {
    members: BTreeSet<Member>,
    leaves: BTreeSet<SwitchIndex>,
}

impl<G: Borrow<SwitchGraph>> Planner<G> {
    /// A planner that has computed nothing yet.
    pub fn new(graph: G) -> Self {
        Self { graph, order: None, spanning: Vec::new(), hops: HashMap::new() }
    }

    /// The same with an order of the switches ([`Routes::order`](crate::routes::Routes::order)); one of another length than
    /// there are switches counts for nothing.
    #[must_use]
    pub fn with_order(self, order: Option<Arc<[u32]>>) -> Self {
        let count = self.graph.borrow().switch_count();
        Self { order: order.filter(|order| order.len() == count), ..self }
    }

    /// The same with trees that the tables keep room for ([`Routes::spanning`](crate::routes::Routes::spanning)); where one has another
    /// length than there are switches, they count for nothing.
    #[must_use]
    pub fn with_spanning(self, spanning: Vec<Arc<[u32]>>) -> Self {
        let count = self.graph.borrow().switch_count();
        let fits = spanning.iter().all(|tree| tree.len() == count);
        Self { spanning: if fits { spanning } else { Vec::new() }, ..self }
    }

    /// The tree of a group by shortest ways, whatever the order. Members on switches that the graph doesn't have are left out.
    pub fn tree(&mut self, mlid: MulticastLid, members: &[Member]) -> Tree {
        let wanted = self.wanted(members);
        let Some(root) = self.roots(mlid, &wanted.leaves, Way::Any).first().copied() else {
            return Tree::default();
        };
        self.tree_from(root, mlid, &wanted, Way::Any)
    }

    /// The tree of a group that keeps the order; `None` when there is no order, or no switch above all members that the fabric
    /// joins.
    pub fn ordered_tree(&mut self, mlid: MulticastLid, members: &[Member]) -> Option<Tree> {
        self.order.as_ref()?;
        let wanted = self.wanted(members);
        if wanted.leaves.is_empty() {
            return Some(Tree::default());
        }
        let root = self.roots(mlid, &wanted.leaves, Way::Up).first().copied()?;
        let tree = self.tree_from(root, mlid, &wanted, Way::Up);
        // Members that are left out must be such that no tree at all can join them to the others.
        let whole = tree.unreachable.is_empty()
            || tree.unreachable.len() == self.tree(mlid, members).unreachable.len();
        whole.then_some(tree)
    }

    /// Trees of a group in the order in which they are to be tried when some don't fit: by shortest ways from the roots nearest
    /// to the members, then the part of the tree that the tables keep room for on the group's SL, or if they don't, of the one on which
    /// every switch hangs below its uppermost neighbour.
    pub fn trees(&mut self, mlid: MulticastLid, members: &[Member], sl: u8) -> impl Iterator<Item = Tree> {
        let wanted = self.wanted(members);
        let near = self.roots(mlid, &wanted.leaves, Way::Any);
        let tries = near.into_iter().take(NEAR_ROOTS).map(Some).chain([None]);
        tries.filter_map(move |root| match root {
            Some(root) => Some(self.tree_from(root, mlid, &wanted, Way::Any)),
            None => self.escape_tree(members, sl),
        })
    }

    fn wanted(&self, members: &[Member]) -> Wanted {
        let count = self.graph.borrow().switch_count();
        let members: BTreeSet<Member> =
            members.iter().copied().filter(|member| (member.switch as usize) < count).collect();
        Wanted { leaves: members.iter().map(|member| member.switch).collect(), members }
    }

    /// The tree from a root along the ways that are searched `up` to it.
    fn tree_from(&mut self, root: SwitchIndex, mlid: MulticastLid, wanted: &Wanted, up: Way) -> Tree {
        let down = if up == Way::Up { Way::Down } else { up };
        let to_root = self.hops(root, down).to_vec();
        let mut ports: BTreeMap<SwitchIndex, PortSet> = BTreeMap::from([(root, PortSet::EMPTY)]);
        for leaf in &wanted.leaves {
            if to_root[*leaf as usize] != FAR {
                self.grow(mlid, *leaf, (&to_root, up), &mut ports);
            }
        }
        finish(root, wanted, |s| to_root[s as usize] != FAR, ports)
    }

    /// The part that joins the members of the tree that the tables keep room for on an SL, or if they don't, of the one on which every
    /// switch hangs below its uppermost neighbour; `None` when they are in several parts of the fabric.
    pub(crate) fn escape_tree(&self, members: &[Member], sl: u8) -> Option<Tree> {
        let wanted = self.wanted(members);
        let graph = self.graph.borrow();
        let up = self.spanning.get(usize::from(sl) % self.spanning.len().max(1)).cloned();
        let up = up.unwrap_or_else(|| upper_arcs(graph, &joined_order(graph)).into());
        let parent = |s: SwitchIndex| graph.all_arcs().get(up[s as usize] as usize);
        let mut top = None;
        let mut seen = BTreeSet::new();
        let mut ports: BTreeMap<SwitchIndex, PortSet> = BTreeMap::new();
        for leaf in &wanted.leaves {
            let mut at = *leaf;
            while let Some(arc) = parent(at).filter(|_| seen.insert(at)) {
                ports.entry(at).or_default().insert(arc.out_port);
                ports.entry(arc.to).or_default().insert(arc.in_port);
                at = arc.to;
            }
            if parent(at).is_none() && *top.get_or_insert(at) != at {
                return None;
            }
        }
        let mut root = top?;
        // What no member hangs below is cut off from the top.
        while let Some(only) =
            ports.get(&root).filter(|ports| ports.len() == 1 && !wanted.leaves.contains(&root))
        {
            let port = only.iter().next()?;
            let arc = *graph.arcs(root).iter().find(|arc| arc.out_port == port)?;
            ports.remove(&root);
            root = arc.to;
            let kept = ports.get(&root)?.iter().filter(|port| *port != arc.in_port).collect();
            ports.insert(root, kept);
        }
        Some(finish(root, &wanted, |_| true, ports))
    }

    /// The switches that some ways `up` from `leaves` lead to, the nearest to all first; members that can't be reached weigh
    /// more than any way to those that can.
    fn roots(&mut self, mlid: MulticastLid, leaves: &BTreeSet<SwitchIndex>, up: Way) -> Vec<SwitchIndex> {
        let mut sums = vec![0_u64; self.graph.borrow().switch_count()];
        for leaf in leaves {
            for (sum, hops) in sums.iter_mut().zip(self.hops(*leaf, up)) {
                *sum += if *hops == FAR { 1 << 32 } else { u64::from(*hops) };
            }
        }
        let Some(least) = sums.iter().min().copied().filter(|_| !leaves.is_empty()) else {
            return Vec::new();
        };
        let best = sums.iter().filter(|sum| **sum == least).count();
        let mut sorted: Vec<SwitchIndex> = (0..sums.len() as SwitchIndex).collect();
        sorted.sort_by_key(|s| sums[*s as usize]);
        sorted[..best].rotate_left(mlid.index() % best);
        // What reaches fewer members than the best is no choice.
        sorted.retain(|s| sums[*s as usize] >> 32 == least >> 32);
        sorted
    }

    /// Joins a switch to the tree by a shortest way to the root.
    fn grow(
        &self,
        mlid: MulticastLid,
        leaf: SwitchIndex,
        (to_root, up): (&[u16], Way),
        ports: &mut BTreeMap<SwitchIndex, PortSet>,
    ) {
        let graph = self.graph.borrow();
        let mut at = leaf;
        let mut arrived = ports.contains_key(&at);
        while !arrived {
            let nearer = || {
                let arcs = graph.arcs(at).iter().filter(|arc| self.leads(at, arc.to, up));
                arcs.filter(|arc| to_root[arc.to as usize].saturating_add(1) == to_root[at as usize])
            };
            let mut choice: Vec<&fabric::Arc> = nearer().filter(|arc| ports.contains_key(&arc.to)).collect();
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

    /// Whether a link from one switch to another is among those searched.
    fn leads(&self, from: SwitchIndex, to: SwitchIndex, way: Way) -> bool {
        leads(self.order.as_deref(), from, to, way)
    }

    /// Hops from a switch to all others.
    fn hops(&mut self, from: SwitchIndex, way: Way) -> &[u16] {
        let (graph, order) = (self.graph.borrow(), self.order.as_deref());
        self.hops.entry((from, way)).or_insert_with(|| {
            let mut hops = vec![FAR; graph.switch_count()];
            hops[from as usize] = 0;
            let mut queue = VecDeque::from([from]);
            while let Some(at) = queue.pop_front() {
                for arc in graph.arcs(at).iter().filter(|arc| leads(order, at, arc.to, way)) {
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

/// Roots that are tried one after the other.
const NEAR_ROOTS: usize = 64;

fn leads(order: Option<&[u32]>, from: SwitchIndex, to: SwitchIndex, way: Way) -> bool {
    let place = |s: SwitchIndex| order.map(|order| order[s as usize]);
    match way {
        Way::Any => true,
        Way::Up => place(to) < place(from),
        Way::Down => place(to) > place(from),
    }
}

/// Adds the members that receive to the ports between switches.
fn finish(
    root: SwitchIndex,
    wanted: &Wanted,
    is_joined: impl Fn(SwitchIndex) -> bool,
    mut ports: BTreeMap<SwitchIndex, PortSet>,
) -> Tree {
    let (reached, unreachable): (Vec<Member>, Vec<Member>) =
        wanted.members.iter().copied().partition(|member| is_joined(member.switch));
    for member in reached.into_iter().filter(|member| member.receives) {
        ports.entry(member.switch).or_default().insert(member.port);
    }
    let branches = ports.into_iter().map(|(switch, ports)| Branch { switch, ports }).collect();
    Tree { root: Some(root), branches, unreachable }
}

/// Spreads groups over equal links, differently at each switch.
fn spread(mlid: MulticastLid, switch: SwitchIndex) -> usize {
    mlid.index().wrapping_add(switch as usize)
}

#[cfg(test)]
mod tests;
