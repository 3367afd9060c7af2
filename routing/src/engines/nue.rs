//! `nue`: any graph, any number of virtual lanes, never a credit loop.
//!
//! - Input: any graph; how many VLs may be used (1 is enough).
//! - Guarantees: every LID from every switch of a connected fabric; no credit loop, management traffic included; exactly
//!   the VLs allowed. Paths are shortest where the dependencies allow it, longer otherwise.
//! - How: switches are dealt to the VLs; SL = VL of the destination's switch. On each VL a spanning tree is the escape: its
//!   dependencies stand from the start. Then, destination by destination, a tree is grown from the target outwards along the
//!   least loaded links, taking only dependencies that close no cycle with all those taken before ([`super::acyclic`]). A
//!   destination that can't reach every switch so is routed on the escape tree as a whole.
//! - LMC: every LID is routed by itself with the load of those before it, so LIDs of a port part where they can.
//! - VLs: as many as are allowed; more of them mean shorter paths. Cost: LIDs · links, VLs side by side; memory: the
//!   dependencies taken.
//! - Source: Domke, Hoefler, Matsuoka, Nue (HPDC 2016); without its local backtracking.

use rayon::prelude::*;
use rustc_hash::FxHashSet;

use super::acyclic::{Acyclic, Insert};
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
        let columns: Vec<Vec<(u16, Vec<u8>)>> =
            (0..vls).into_par_iter().map(|vl| Lane::new(graph, &ends).route(vl, vls)).collect();
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
    fn route(mut self, vl: u8, vls: u8) -> Vec<(u16, Vec<u8>)> {
        let mut order: Vec<&Destination> = self.graph.destinations().iter().collect();
        order.retain(|d| d.switch % u32::from(vls) == u32::from(vl));
        order.sort_by_key(|d| {
            (!d.host, std::cmp::Reverse(self.hosts[d.switch as usize]), d.switch, d.port, d.lid)
        });
        let mut columns = Vec::new();
        for d in order {
            for lid in d.lids() {
                if !self.grow(d.switch) {
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
            }
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
        let mut added: Vec<(u32, u32)> = Vec::new();
        let mut reached = vec![false; self.graph.switch_count()];
        reached[target as usize] = true;
        let mut done = 0;
        let mut waiting: Vec<SwitchIndex> = Vec::new();
        let mut candidates: Vec<(u64, u32)> = Vec::new();
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
                let found = candidates.iter().copied().find(|(_, arc)| self.take(*arc, &mut added));
                if let Some((cost, arc)) = found {
                    self.cost[*s as usize] = cost;
                    self.next[*s as usize] = arc;
                    fresh.push(*s);
                }
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
            added.into_iter().for_each(|(x, y)| self.taken.remove(x, y));
            return false;
        }
        true
    }

    /// Takes the dependency of packets that come over `arc` and go on as the tree says.
    fn take(&mut self, arc: u32, added: &mut Vec<(u32, u32)>) -> bool {
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
                added.push((arc, on));
                true
            }
            Insert::Refused => {
                self.blocked.insert((arc, on));
                false
            }
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

/// What a hop costs beside its load: more than any load.
const HOP: u64 = 1 << 40;

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
