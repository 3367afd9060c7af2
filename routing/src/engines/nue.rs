//! `nue`: any graph, any number of virtual lanes, never a credit loop.
//!
//! - Input: any graph; how many VLs may be used (1 is enough).
//! - Guarantees: every LID from every switch of a connected fabric; no credit loop, management traffic included; exactly
//!   the VLs allowed. Paths are shortest where the dependencies allow it, longer otherwise.
//! - How: switches are dealt to the VLs; SL = VL of the destination's switch. On each VL a spanning tree is the escape: its
//!   dependencies stand from the start. Then, destination by destination, a tree is grown from the target outwards along the
//!   least loaded links, taking only dependencies that close no cycle with all those taken before ([`super::acyclic`]). At
//!   an impasse a neighbour of a switch without a way takes another way itself (local backtracking). A destination that
//!   can't reach every switch even so is routed on the escape tree as a whole.
//! - LMC: every LID is routed by itself with the load of those before it, so LIDs of a port part where they can.
//! - VLs: as many as are allowed; more of them mean shorter paths. Cost: LIDs · links, VLs side by side; memory: the
//!   dependencies taken.
//! - Source: Domke, Hoefler, Matsuoka, Routing on the Dependency Graph (HPDC 2016).

use rayon::prelude::*;
use rustc_hash::FxHashSet;

use super::acyclic::{Acyclic, Insert};
use super::targets::one_by_one;
use super::{RoutingEngine, RoutingError, RoutingInput};
use crate::fabric::{Destination, SwitchGraph, SwitchIndex};
use crate::routes::{PathSl, Routes};

/// The engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nue;

impl RoutingEngine for Nue {
    fn name(&self) -> &'static str {
        "nue"
    }

    fn route(&self, graph: &SwitchGraph, input: &RoutingInput) -> Result<Routes, RoutingError> {
        let vls = match (input.vls(), input.nue_max_vls) {
            (links, 0) => links,
            (links, most) => links.min(most),
        };
        let ends: Vec<u32> = (0..graph.switch_count() as u32)
            .flat_map(|s| std::iter::repeat_n(s, graph.arcs(s).len()))
            .collect();
        let order = one_by_one(graph, input);
        let columns: Vec<Vec<(u16, Vec<u8>)>> =
            (0..vls).into_par_iter().map(|vl| Lane::new(graph, &ends).route(&order, vl, vls)).collect();
        let mut routes = Routes::empty(self.name(), graph);
        let mut sl = vec![0; usize::from(graph.top_lid()) + 1];
        for (vl, columns) in columns.into_iter().enumerate() {
            for (lid, column) in columns {
                sl[usize::from(lid)] = vl as u8;
                for (s, port) in column.into_iter().enumerate() {
                    routes.lfts.row_mut(s as u32)[usize::from(lid)] = port;
                }
            }
        }
        routes.vls = vls;
        if vls > 1 {
            routes.sl = PathSl::ByDestination(sl);
        }
        Ok(routes)
    }
}

const NONE: u32 = u32::MAX;

/// One virtual lane.
struct Lane<'g> {
    graph: &'g SwitchGraph,
    /// The switch that each arc leaves.
    from: &'g [u32],
    hosts: Vec<u64>,
    load: Vec<u64>,
    taken: Acyclic,
    blocked: FxHashSet<(u32, u32)>,
    /// Whether a switch without a way makes its neighbours try others.
    backtracking: bool,
    /// LIDs that were routed over the escape tree.
    escaped: usize,
    /// The escape tree: for each switch the arc to its parent, and its depth.
    parent: Vec<u32>,
    depth: Vec<u32>,
    /// The arc back over the cable of each arc.
    reverse: Vec<u32>,
    next: Vec<u32>,
    cost: Vec<u64>,
    order: Vec<SwitchIndex>,
}

impl<'g> Lane<'g> {
    fn new(graph: &'g SwitchGraph, from: &'g [u32]) -> Self {
        let (count, arcs) = (graph.switch_count(), graph.all_arcs().len());
        let mut hosts = vec![0; count];
        graph.destinations().iter().filter(|d| d.host).for_each(|d| hosts[d.switch as usize] += 1);
        let mut lane = Self {
            graph,
            from,
            hosts,
            load: vec![0; arcs],
            taken: Acyclic::new(arcs),
            blocked: FxHashSet::default(),
            backtracking: true,
            escaped: 0,
            parent: vec![NONE; count],
            depth: vec![NONE; count],
            reverse: reverse_arcs(graph, from),
            next: vec![NONE; count],
            cost: vec![0; count],
            order: Vec::with_capacity(count),
        };
        lane.escape();
        lane
    }

    fn to(&self, arc: u32) -> SwitchIndex {
        self.graph.all_arcs()[arc as usize].to
    }

    /// Breadth-first trees from the switch with most links of each part, and their dependencies: every turn between two
    /// different neighbours in the tree.
    fn escape(&mut self) {
        let mut roots: Vec<SwitchIndex> = (0..self.graph.switch_count() as u32).collect();
        roots.sort_by_key(|s| (std::cmp::Reverse(self.graph.arcs(*s).len()), *s));
        for root in roots {
            if self.depth[root as usize] != NONE {
                continue;
            }
            self.depth[root as usize] = 0;
            let mut queue = vec![root];
            let mut head = 0;
            while let Some(&at) = queue.get(head) {
                head += 1;
                for (arc, ends) in arcs_of(self.graph, at) {
                    if self.depth[ends.to as usize] == NONE {
                        self.depth[ends.to as usize] = self.depth[at as usize] + 1;
                        self.parent[ends.to as usize] = self.reverse[arc as usize];
                        queue.push(ends.to);
                    }
                }
            }
        }
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); self.graph.switch_count()];
        for up in self.parent.iter().copied().filter(|up| *up != NONE) {
            children[self.to(up) as usize].push(up);
        }
        for (s, below) in children.iter().enumerate() {
            let up = self.parent[s];
            for into in below {
                let mut outs: Vec<u32> =
                    below.iter().filter(|c| *c != into).map(|c| self.reverse[*c as usize]).collect();
                outs.extend((up != NONE).then_some(up));
                for out in outs {
                    self.taken.insert(*into, out);
                }
                if up != NONE {
                    self.taken.insert(self.reverse[up as usize], self.reverse[*into as usize]);
                }
            }
        }
    }

    /// Routes the LIDs of this lane's switches; the columns of their tables.
    fn route(&mut self, order: &[&Destination], vl: u8, vls: u8) -> Vec<(u16, Vec<u8>)> {
        let mut columns = Vec::new();
        for d in order.iter().filter(|d| d.switch % u32::from(vls) == u32::from(vl)) {
            let mut same: Vec<u32> = Vec::new();
            for lid in d.lids() {
                if !self.grow(d.switch) {
                    self.escaped += 1;
                    self.take_escape(d.switch);
                }
                self.add_load(d);
                let port = |arc: &u32| match *arc {
                    NONE => crate::routes::NO_PORT,
                    arc => self.graph.all_arcs()[arc as usize].out_port,
                };
                let mut column: Vec<u8> = self.next.iter().map(port).collect();
                column[d.switch as usize] = d.port;
                columns.push((lid, column));
                if d.lmc > 0 {
                    let taken = self.order[1..].iter().map(|s| self.next[*s as usize]);
                    same.extend(taken.inspect(|arc| self.load[*arc as usize] += SAME));
                }
            }
            same.into_iter().for_each(|arc| self.load[arc as usize] -= SAME);
        }
        columns
    }

    /// Grows the tree of `target` level by level. False, and no dependency more than before, when a switch of the target's
    /// part stays out of reach.
    fn grow(&mut self, target: SwitchIndex) -> bool {
        self.next.fill(NONE);
        self.order.clear();
        self.order.push(target);
        self.cost[target as usize] = 0;
        let mut tried = Tried::default();
        let mut reached = vec![false; self.graph.switch_count()];
        reached[target as usize] = true;
        let mut done = 0;
        let mut waiting: Vec<SwitchIndex> = Vec::new();
        let mut candidates: Vec<(u64, u32)> = Vec::new();
        let mut rerouted = false;
        loop {
            // Whoever touches what was reached last may be next; whoever found every dependency blocked tries again then.
            let from = done;
            done = self.order.len();
            for i in from..done {
                waiting.extend(self.graph.arcs(self.order[i]).iter().map(|a| a.to));
            }
            waiting.retain(|s| !reached[*s as usize]);
            waiting.sort_unstable();
            waiting.dedup();
            let mut fresh = Vec::new();
            for s in &waiting {
                candidates.clear();
                for (arc, ends) in arcs_of(self.graph, *s) {
                    if reached[ends.to as usize] {
                        candidates.push((self.cost[ends.to as usize] + self.load[arc as usize] + HOP, arc));
                    }
                }
                candidates.sort_unstable();
                let found = candidates.iter().copied().find(|(_, arc)| self.take(*arc, &mut tried));
                if let Some((cost, arc)) = found {
                    self.cost[*s as usize] = cost;
                    self.next[*s as usize] = arc;
                    fresh.push(*s);
                }
            }
            if fresh.is_empty() && self.backtracking {
                let found = waiting.iter().copied().find(|s| self.backtrack(*s, &reached, &mut tried.added));
                rerouted |= found.is_some();
                fresh.extend(found);
            }
            if fresh.is_empty() {
                break;
            }
            for s in fresh {
                reached[s as usize] = true;
                self.order.push(s);
            }
        }
        if waiting.iter().any(|s| !reached[*s as usize]) {
            self.take_back(tried);
            return false;
        }
        if rerouted {
            self.order_from(target);
        }
        true
    }

    /// Takes the dependency of packets that come over `arc` and go on as the tree says.
    fn take(&mut self, arc: u32, tried: &mut Tried) -> bool {
        let on = self.next[self.to(arc) as usize];
        // No dependency at the target itself; a packet never turns back over the cable it came by.
        if on == NONE {
            return true;
        }
        if on == self.reverse[arc as usize] || self.blocked.contains(&(arc, on)) {
            return false;
        }
        match self.taken.insert(arc, on) {
            Insert::Known => true,
            Insert::Added => {
                tried.added.push((arc, on));
                true
            }
            Insert::Refused => {
                self.blocked.insert((arc, on));
                tried.blocked.push((arc, on));
                false
            }
        }
    }

    /// Undoes what a tree that was given up took, and what was blocked by that.
    fn take_back(&mut self, tried: Tried) {
        tried.added.into_iter().for_each(|(x, y)| self.taken.remove(x, y));
        for blocked in tried.blocked {
            self.blocked.remove(&blocked);
        }
    }

    /// Reaches `s` by sending one of its neighbours another way, if that, all that comes through it, and `s` then fit in with
    /// what is taken: the local backtracking of the paper. False, and nothing changed, when no neighbour has such a way.
    fn backtrack(&mut self, s: SwitchIndex, reached: &[bool], added: &mut Vec<(u32, u32)>) -> bool {
        let graph = self.graph;
        for (arc, ends) in arcs_of(graph, s).filter(|(_, ends)| reached[ends.to as usize]) {
            let neighbour = ends.to;
            let now = self.next[neighbour as usize];
            if now == NONE {
                continue;
            }
            let mut into: Vec<u32> = arcs_of(graph, neighbour)
                .filter(|(back, from)| self.next[from.to as usize] == self.reverse[*back as usize])
                .map(|(back, _)| self.reverse[back as usize])
                .collect();
            into.push(arc);
            for (other, beyond) in arcs_of(graph, neighbour) {
                if other == now || !reached[beyond.to as usize] || self.passes(beyond.to, neighbour) {
                    continue;
                }
                let begin = added.len();
                let behind = (other, self.next[beyond.to as usize]);
                let before = into.iter().map(|into| (*into, other));
                let mut wanted = std::iter::once(behind).filter(|(_, on)| *on != NONE).chain(before);
                if wanted.all(|(x, y)| self.depend(x, y, added)) {
                    self.next[neighbour as usize] = other;
                    self.next[s as usize] = arc;
                    let cost = |lane: &Self, arc: u32| {
                        lane.cost[lane.to(arc) as usize] + lane.load[arc as usize] + HOP
                    };
                    self.cost[neighbour as usize] = cost(self, other);
                    self.cost[s as usize] = cost(self, arc);
                    return true;
                }
                added.drain(begin..).for_each(|(x, y)| self.taken.remove(x, y));
            }
        }
        false
    }

    /// Takes a dependency where that closes no cycle.
    fn depend(&mut self, arc: u32, on: u32, added: &mut Vec<(u32, u32)>) -> bool {
        if on == self.reverse[arc as usize] {
            return false;
        }
        let insert = self.taken.insert(arc, on);
        if insert == Insert::Added {
            added.push((arc, on));
        }
        insert != Insert::Refused
    }

    /// Whether the way from `from` leads through `over`.
    fn passes(&self, from: SwitchIndex, over: SwitchIndex) -> bool {
        let mut at = from;
        while at != over && self.next[at as usize] != NONE {
            at = self.to(self.next[at as usize]);
        }
        at == over
    }

    /// Puts switches in order of their distance along the tree.
    fn order_from(&mut self, target: SwitchIndex) {
        self.order.clear();
        self.order.push(target);
        let mut into: Vec<Vec<SwitchIndex>> = vec![Vec::new(); self.graph.switch_count()];
        for arc in self.next.iter().copied().filter(|arc| *arc != NONE) {
            into[self.to(arc) as usize].push(self.from[arc as usize]);
        }
        let mut head = 0;
        while let Some(&s) = self.order.get(head) {
            head += 1;
            self.order.extend(&into[s as usize]);
        }
    }

    /// Routes `target` over the escape tree.
    fn take_escape(&mut self, target: SwitchIndex) {
        self.next.copy_from_slice(&self.parent);
        let mut at = target;
        self.next[target as usize] = NONE;
        while self.parent[at as usize] != NONE {
            let up = self.parent[at as usize];
            at = self.to(up);
            self.next[at as usize] = self.reverse[up as usize];
        }
        // Other parts of the fabric hang on other roots and have no path.
        self.order_from(target);
        let mut reached = vec![false; self.graph.switch_count()];
        self.order.iter().for_each(|s| reached[*s as usize] = true);
        for (s, next) in self.next.iter_mut().enumerate() {
            if !reached[s] {
                *next = NONE;
            }
        }
    }

    fn add_load(&mut self, d: &Destination) {
        if !d.host {
            return;
        }
        let mut senders = self.hosts.clone();
        for s in self.order[1..].iter().rev() {
            let arc = self.next[*s as usize];
            self.load[arc as usize] += senders[*s as usize];
            senders[self.to(arc) as usize] += senders[*s as usize];
        }
    }
}

/// What a tree has done to the lane so far.
#[derive(Default)]
struct Tried {
    /// Dependencies that it added.
    added: Vec<(u32, u32)>,
    /// Dependencies that it found to close a cycle.
    blocked: Vec<(u32, u32)>,
}

/// What a hop costs beside its load: more than any load.
const HOP: u64 = 1 << 50;

/// What a link costs for each other LID of the same port that took it: more than the load of traffic.
const SAME: u64 = 1 << 36;

fn arcs_of(graph: &SwitchGraph, s: SwitchIndex) -> impl Iterator<Item = (u32, &crate::fabric::Arc)> {
    (graph.offsets()[s as usize]..).zip(graph.arcs(s))
}

fn reverse_arcs(graph: &SwitchGraph, from: &[u32]) -> Vec<u32> {
    let reverse = |arc: usize| {
        let ends = graph.all_arcs()[arc];
        let back = |a: &(u32, &crate::fabric::Arc)| a.1.to == from[arc] && a.1.out_port == ends.in_port;
        arcs_of(graph, ends.to).find(back).map_or(NONE, |(number, _)| number)
    };
    (0..from.len()).map(reverse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::testing::{check_all, random_fabrics};
    use crate::fabric::testing;

    #[test]
    fn every_number_of_lanes_is_enough_for_every_fabric() {
        for (name, fabric) in random_fabrics() {
            let graph = SwitchGraph::new(&fabric);
            let mut detours = Vec::new();
            for vls in [1, 2, 4] {
                let input = RoutingInput { data_vls: 8, nue_max_vls: vls, ..RoutingInput::default() };
                let report = check_all(&Nue, &graph, &input);
                assert!(report.management_credit_loop.is_none(), "{name}, {vls} VLs: {report}");
                assert!(report.vls <= usize::from(vls), "{name}: {report}");
                detours.push(report.hops.detours);
            }
            assert!(detours[2] <= detours[0], "{name}: {detours:?}");
        }
    }

    /// Fewer destinations have to take the escape tree when neighbours may go other ways, on one lane and on thin fabrics.
    #[test]
    fn backtracking_saves_destinations_from_the_escape_tree() {
        let mut escaped = [0, 0];
        let mut random = rand_pcg::Pcg64Mcg::new(5);
        let thin = (0..12).map(|_| testing::random(60, 4, 1, &mut random)).collect::<Vec<_>>();
        for (name, fabric) in thin.iter().enumerate() {
            let graph = SwitchGraph::new(fabric);
            let ends: Vec<u32> = (0..graph.switch_count() as u32)
                .flat_map(|s| std::iter::repeat_n(s, graph.arcs(s).len()))
                .collect();
            let order = one_by_one(&graph, &RoutingInput::default());
            let [without, with] = [false, true].map(|backtracking| {
                let mut lane = Lane { backtracking, ..Lane::new(&graph, &ends) };
                lane.route(&order, 0, 1);
                lane.escaped
            });
            println!("{name}: {without} escaped, {with} with backtracking");
            escaped = [escaped[0] + without, escaped[1] + with];
        }
        assert!(2 * escaped[1] < escaped[0], "{escaped:?}");
    }

    #[test]
    fn trees_are_routed_by_shortest_paths_on_one_lane() {
        let graph = SwitchGraph::new(&testing::fat_tree(&[4, 4], &[1, 4], 0));
        let report = check_all(&Nue, &graph, &RoutingInput { data_vls: 1, ..RoutingInput::default() });
        assert!(report.balance.max <= 2 * report.balance.min.max(6), "{report}");
    }

    #[test]
    fn a_cut_fabric_is_routed_part_by_part() {
        let mut fabric = testing::torus(&[6], 1, 0);
        let ring: Vec<_> = fabric.links().copied().take(6).collect();
        for link in [ring[0], ring[3]] {
            fabric.disconnect(link.a);
        }
        let graph = SwitchGraph::new(&fabric);
        let report = check_all(&Nue, &graph, &RoutingInput { data_vls: 2, ..RoutingInput::default() });
        assert_eq!(report.unconnected, 2 * 3 * 6);
    }
}
