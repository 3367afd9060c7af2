//! `nue`: any graph, any number of virtual lanes, never a credit loop.
//!
//! - Input: any graph; how many VLs may be used (1 is enough).
//! - Guarantees: every LID from every switch of a connected fabric; no credit loop, management traffic included; exactly
//!   the VLs allowed. Paths are shortest where the dependencies allow it, longer otherwise.
//! - How: switches are dealt to the VLs; SL = VL of the destination's switch. On each VL a spanning tree is the escape: its
//!   dependencies stand from the start. It hangs every switch below its uppermost neighbour, so that on a tree the shortest
//!   paths go with it, and the order of channels by which cycles are noticed ([`super::acyclic`]) is right for these from the
//!   start. Then, destination by destination, a tree is grown from the target outwards along the least loaded links, taking
//!   only dependencies that close no cycle with all those taken before. At an impasse a neighbour of a switch without a way
//!   takes another way itself (local backtracking). A destination that can't reach every switch even so is routed on the
//!   escape tree as a whole. The load of a link is the routes of hosts on all lanes: lanes that know only their own choose alike.
//!   Switches as destinations come last, and have longer paths where that saves dependencies.
//! - LMC: every LID is routed by itself, from each switch by the way that shares least with those of the port's LIDs before it, as
//!   far as the dependencies allow.
//! - VLs: as many as are allowed; more of them mean shorter paths. Cost: LIDs · links, one LID after the other; memory: the
//!   dependencies taken.
//! - Source: Domke, Hoefler, Matsuoka, Routing on the Dependency Graph (HPDC 2016).

use rayon::prelude::*;

use super::acyclic::Acyclic;
use super::apart::Siblings;
use super::ranks::{joined_order, upper_arcs};
use super::targets::one_by_one;
use super::{RoutingEngine, RoutingError, RoutingInput};
use crate::fabric::{Destination, SwitchGraph, SwitchIndex};
use crate::routes::{LftMatrix, NO_PORT, PathSl, Routes, SlToVl};

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
        let network = Network::new(graph);
        let order = one_by_one(graph, input);
        let columns = Growth::new(&network, vls).route(&order);
        let mut routes = Routes::empty(self.name(), graph);
        enter(&columns, &mut routes.lfts);
        let mut sl = vec![0; usize::from(graph.top_lid()) + 1];
        for d in &order {
            d.lids().for_each(|lid| sl[usize::from(lid)] = lane_of(d.switch, vls));
        }
        routes.vls = vls;
        routes.spanning = vec![network.parent.clone().into()];
        if vls > 1 {
            routes.sl = PathSl::ByDestination(sl);
            routes.sl_to_vl = SlToVl::below(input.vls());
        }
        Ok(routes)
    }
}

/// The VL of the LIDs on a switch.
fn lane_of(switch: SwitchIndex, vls: u8) -> u8 {
    (switch % u32::from(vls)) as u8
}

/// Enters columns into tables.
fn enter(columns: &[(u16, Vec<u8>)], lfts: &mut LftMatrix) {
    let mut rows: Vec<&mut [u8]> = lfts.par_rows_mut().collect();
    // As many rows together as a cache line holds of a column.
    rows.par_chunks_mut(64).enumerate().for_each(|(number, rows)| {
        for (lid, column) in columns {
            for (row, port) in rows.iter_mut().zip(&column[64 * number..]) {
                row[usize::from(*lid)] = *port;
            }
        }
    });
}

const NONE: u32 = u32::MAX;

/// What all lanes share.
struct Network<'g> {
    graph: &'g SwitchGraph,
    /// Hosts of each switch.
    hosts: Vec<u64>,
    /// The switch that each arc leaves.
    from: Vec<SwitchIndex>,
    /// The switch that each arc leads to.
    to: Vec<SwitchIndex>,
    /// The arc back over the cable of each arc.
    reverse: Vec<u32>,
    /// Dependencies are numbered by their first arc, then by their second one: where those of each arc begin, less the number
    /// of the first arc that can follow.
    base: Vec<u32>,
    dependencies: usize,
    /// The escape tree: for each switch the arc to its parent, [`NONE`] for a root.
    parent: Vec<u32>,
    /// The place of each arc in an order in which arcs upwards come first, the lowest first, then arcs downwards.
    places: Vec<u32>,
}

impl<'g> Network<'g> {
    fn new(graph: &'g SwitchGraph) -> Self {
        let mut hosts = vec![0; graph.switch_count()];
        graph.destinations().iter().filter(|d| d.host).for_each(|d| hosts[d.switch as usize] += 1);
        let from: Vec<u32> = (0..graph.switch_count() as u32)
            .flat_map(|s| std::iter::repeat_n(s, graph.arcs(s).len()))
            .collect();
        let mut dependencies = 0_u32;
        let mut base = Vec::with_capacity(from.len());
        for arc in graph.all_arcs() {
            base.push(dependencies.wrapping_sub(graph.offsets()[arc.to as usize]));
            dependencies += graph.arcs(arc.to).len() as u32;
        }
        let reverse = reverse_arcs(graph, &from);
        let order = joined_order(graph);
        Self {
            places: places(graph, &from, &order),
            parent: upper_arcs(graph, &order),
            graph,
            hosts,
            to: graph.all_arcs().iter().map(|arc| arc.to).collect(),
            from,
            reverse,
            base,
            dependencies: dependencies as usize,
        }
    }

    fn arcs(&self, s: SwitchIndex) -> std::ops::Range<u32> {
        self.graph.offsets()[s as usize]..self.graph.offsets()[s as usize + 1]
    }

    /// The number of the dependency of packets that come over `arc` and go on over `on`.
    fn dependency(&self, arc: u32, on: u32) -> usize {
        self.base[arc as usize].wrapping_add(on) as usize
    }
}

/// The places of arcs in an order that is forwards along every path up and down again: arcs upwards, the lowest first, then arcs
/// downwards, the uppermost first. `order` has the place of each switch, the uppermost 0.
fn places(graph: &SwitchGraph, from: &[SwitchIndex], order: &[u32]) -> Vec<u32> {
    let key = |arc: &u32| {
        let (from, to) = (from[*arc as usize], graph.all_arcs()[*arc as usize].to);
        let (from, to) = (i64::from(order[from as usize]), i64::from(order[to as usize]));
        if to < from { (0, -from) } else { (1, from) }
    };
    let mut arcs: Vec<u32> = (0..from.len() as u32).collect();
    arcs.sort_by_key(key);
    let mut places = vec![0; arcs.len()];
    (0..).zip(arcs).for_each(|(place, arc)| places[arc as usize] = place);
    places
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

/// One virtual lane.
#[derive(Clone)]
struct Lane {
    taken: Acyclic,
    /// By the numbers of dependencies.
    known: Vec<Known>,
}

impl Lane {
    /// A lane in which the dependencies of the escape tree are taken.
    fn new(network: &Network<'_>) -> Self {
        let mut lane = Self {
            taken: Acyclic::with_order(network.places.clone()),
            known: vec![Known::Nothing; network.dependencies],
        };
        for (arc, back) in (0..).zip(&network.reverse).filter(|(_, back)| **back != NONE) {
            lane.known[network.dependency(arc, *back)] = Known::Blocked;
        }
        lane.escape(network);
        lane
    }

    /// Takes the dependencies of the escape tree: every turn between two different neighbours in it.
    fn escape(&mut self, network: &Network<'_>) {
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); network.parent.len()];
        for up in network.parent.iter().copied().filter(|up| *up != NONE) {
            children[network.to[up as usize] as usize].push(up);
        }
        for (below, up) in children.iter().zip(&network.parent) {
            for into in below {
                let mut outs: Vec<u32> =
                    below.iter().filter(|c| *c != into).map(|c| network.reverse[*c as usize]).collect();
                outs.extend((*up != NONE).then_some(*up));
                for out in outs {
                    self.depend(network, *into, out, &mut Vec::new());
                }
                if *up != NONE {
                    let down = network.reverse[*up as usize];
                    self.depend(network, down, network.reverse[*into as usize], &mut Vec::new());
                }
            }
        }
    }

    /// Takes a dependency where that closes no cycle.
    fn depend(&mut self, network: &Network<'_>, arc: u32, on: u32, added: &mut Vec<(u32, u32)>) -> bool {
        let dependency = network.dependency(arc, on);
        match self.known[dependency] {
            Known::Taken => true,
            Known::Blocked => false,
            // What is refused is not blocked for good: dependencies tried with it may go again.
            Known::Nothing if self.taken.insert_new(arc, on) => {
                self.known[dependency] = Known::Taken;
                added.push((arc, on));
                true
            }
            Known::Nothing => false,
        }
    }
}

/// Grows the tree of one LID after the other, on the lanes of all, and knows the load of all.
struct Growth<'g> {
    network: &'g Network<'g>,
    /// Routes of hosts over each arc, and what they make it cost.
    load: Vec<u64>,
    prices: Vec<u64>,
    lanes: Vec<Lane>,
    /// Whose turn it is.
    lane: usize,
    /// Whether a switch without a way makes its neighbours try others.
    backtracking: bool,
    /// LIDs that were routed over the escape tree.
    escaped: usize,
    /// The arc on which each switch sends to the target.
    next: Vec<u32>,
    /// What the way from each switch costs, [`FAR`] and more where there is none yet.
    cost: Vec<u64>,
    /// Switches in the order in which the tree reached them, the target first.
    order: Vec<SwitchIndex>,
    /// One bit for each switch: whoever waits or waited to be reached, and whoever waits.
    touched: Vec<u64>,
    waiting: Vec<u64>,
    /// Hosts that send through each switch.
    senders: Vec<u64>,
    /// The other LIDs of the port.
    siblings: Siblings,
}

impl<'g> Growth<'g> {
    fn new(network: &'g Network<'g>, vls: u8) -> Self {
        let (count, arcs) = (network.graph.switch_count(), network.to.len());
        Self {
            network,
            load: vec![0; arcs],
            prices: vec![0; arcs],
            lanes: vec![Lane::new(network); usize::from(vls)],
            lane: 0,
            backtracking: true,
            escaped: 0,
            next: vec![NONE; count],
            cost: vec![FAR; count],
            order: Vec::with_capacity(count),
            touched: vec![0; count.div_ceil(64)],
            waiting: vec![0; count.div_ceil(64)],
            senders: vec![0; count],
            siblings: Siblings::new(network.graph),
        }
    }

    /// Routes all LIDs in order; the columns of the tables.
    fn route(&mut self, order: &[&Destination]) -> Vec<(u16, Vec<u8>)> {
        let graph = self.network.graph;
        let mut columns = Vec::new();
        for d in order {
            self.lane = usize::from(lane_of(d.switch, self.lanes.len() as u8));
            self.siblings.begin(d.switch);
            for lid in d.lids() {
                if (d.host || !self.grow(d.switch, true)) && !self.grow(d.switch, false) {
                    self.escaped += 1;
                    self.take_escape(d.switch);
                }
                self.add_load(d);
                let port = |arc: &u32| match *arc {
                    NONE => NO_PORT,
                    arc => graph.all_arcs()[arc as usize].out_port,
                };
                let mut column: Vec<u8> = self.next.iter().map(port).collect();
                column[d.switch as usize] = d.port;
                columns.push((lid, column));
                if d.lmc > 0 {
                    self.siblings.push(&self.next);
                }
            }
        }
        columns
    }

    /// Grows the tree of `target` level by level, `thrifty` or not ([`Lane::reach_thriftily`]). False, and no dependency more than before, when a switch of the target's
    /// part stays out of reach.
    fn grow(&mut self, target: SwitchIndex, thrifty: bool) -> bool {
        self.next.fill(NONE);
        self.cost.fill(FAR);
        self.touched.fill(0);
        self.waiting.fill(0);
        self.order.clear();
        let mut tried = Tried::default();
        let mut fresh = vec![(target, 0)];
        let mut untouched = self.cost.len() - 1;
        self.touched[target as usize / 64] |= 1 << (target % 64);
        let mut rerouted = false;
        while !fresh.is_empty() {
            // Whoever touches what was reached last may be next; whoever found every dependency blocked tries again then.
            for (s, cost) in fresh.drain(..) {
                self.cost[s as usize] = cost;
                self.waiting[s as usize / 64] &= !(1 << (s % 64));
                self.order.push(s);
                if untouched > 0 {
                    untouched -= self.touch(s);
                }
            }
            for word in 0..self.waiting.len() {
                let mut bits = self.waiting[word];
                while bits != 0 {
                    let s = (64 * word) as u32 + bits.trailing_zeros();
                    bits &= bits - 1;
                    let cost =
                        if thrifty { self.reach_thriftily(s, &mut tried) } else { self.reach(s, &mut tried) };
                    fresh.extend(cost.map(|cost| (s, cost)));
                }
            }
            if fresh.is_empty() && self.backtracking && !thrifty {
                let found = (0..self.next.len() as u32).find(|s| {
                    self.waiting[*s as usize / 64] >> (s % 64) & 1 == 1
                        && self.backtrack(*s, &mut tried.added)
                });
                rerouted |= found.is_some();
                fresh.extend(found.map(|s| (s, self.cost[s as usize])));
            }
        }
        if self.waiting.iter().any(|bits| *bits != 0) {
            self.take_back(tried);
            return false;
        }
        if rerouted {
            self.order_from(target);
        }
        true
    }

    /// Lets the neighbours of `s` wait that did not yet; how many these are.
    fn touch(&mut self, s: SwitchIndex) -> usize {
        let mut fresh = 0;
        for arc in self.network.arcs(s) {
            let to = self.network.to[arc as usize];
            let (word, bit) = (to as usize / 64, 1 << (to % 64));
            if self.touched[word] & bit == 0 {
                self.touched[word] |= bit;
                self.waiting[word] |= bit;
                fresh += 1;
            }
        }
        fresh
    }

    /// Gives `s` the cheapest way over a neighbour that was reached before, as far as the dependencies allow it; its cost.
    fn reach(&mut self, s: SwitchIndex, tried: &mut Tried) -> Option<u64> {
        if !self.siblings.is_empty() {
            return self.reach_apart(s, tried);
        }
        let network = self.network;
        let range = network.arcs(s).start as usize..network.arcs(s).end as usize;
        let ends = network.to[range.clone()].iter().zip(&self.prices[range.clone()]);
        let mut best = (FAR, NONE);
        for (arc, (to, load)) in (range.start as u32..).zip(ends) {
            let price = self.cost[*to as usize] + load;
            if price < best.0 {
                best = (price, arc);
            }
        }
        if best.1 == NONE {
            return None;
        }
        if !self.take(best.1, tried) {
            // Rare but on thin fabrics: the others in their order.
            let mut others: Vec<(u64, u32)> = network
                .arcs(s)
                .map(|arc| (self.price(arc), arc))
                .filter(|other| other.0 < FAR && *other > best)
                .collect();
            others.sort_unstable();
            best = others.into_iter().find(|(_, arc)| self.take(*arc, tried))?;
        }
        self.next[s as usize] = best.1;
        Some(best.0 + HOP)
    }

    /// The same by a way that shares as little as it can with those of the port's other LIDs.
    fn reach_apart(&mut self, s: SwitchIndex, tried: &mut Tried) -> Option<u64> {
        self.siblings.look_from(Some(s));
        let priced = |arc: u32| {
            let price = self.price(arc);
            (price < FAR).then(|| (price / HOP, self.siblings.shared(arc, &self.next), price, arc))
        };
        let mut ways: Vec<(u64, u64, u64, u32)> = self.network.arcs(s).filter_map(priced).collect();
        ways.sort_unstable();
        let (.., arc) = ways.into_iter().find(|(.., arc)| self.take(*arc, tried))?;
        self.next[s as usize] = arc;
        Some(self.price(arc) + HOP)
    }

    /// The same for a target without traffic that would have to be spread: only over dependencies that are taken already, or
    /// that agree with the order of channels as it is and so cost no search.
    fn reach_thriftily(&mut self, s: SwitchIndex, tried: &mut Tried) -> Option<u64> {
        let network = self.network;
        let lane = &self.lanes[self.lane];
        let price = |arc: u32| {
            let price = self.price(arc);
            let on = self.next[network.to[arc as usize] as usize];
            if on == NONE || price >= FAR {
                return price;
            }
            match lane.known[network.dependency(arc, on)] {
                Known::Taken => price,
                Known::Nothing if lane.taken.is_forward(arc, on) => price | NEW,
                Known::Nothing | Known::Blocked => FAR,
            }
        };
        let (best, arc) =
            network.arcs(s).map(|arc| (price(arc), arc)).min().filter(|(best, _)| *best < FAR)?;
        self.take(arc, tried).then(|| {
            self.next[s as usize] = arc;
            (best & !NEW) + HOP
        })
    }

    /// What the way over `arc` costs, but for the hop.
    fn price(&self, arc: u32) -> u64 {
        self.cost[self.network.to[arc as usize] as usize] + self.prices[arc as usize]
    }

    /// Takes the dependency of packets that come over `arc` and go on as the tree says.
    fn take(&mut self, arc: u32, tried: &mut Tried) -> bool {
        let on = self.next[self.network.to[arc as usize] as usize];
        // No dependency at the target itself.
        if on == NONE {
            return true;
        }
        let dependency = self.network.dependency(arc, on);
        let lane = &mut self.lanes[self.lane];
        match lane.known[dependency] {
            Known::Taken => true,
            Known::Blocked => false,
            Known::Nothing if lane.taken.insert_new(arc, on) => {
                lane.known[dependency] = Known::Taken;
                tried.added.push((arc, on));
                true
            }
            Known::Nothing => {
                lane.known[dependency] = Known::Blocked;
                tried.blocked.push(dependency);
                false
            }
        }
    }

    /// Undoes what a tree that was given up took, and what was blocked by that.
    fn take_back(&mut self, tried: Tried) {
        self.forget(tried.added);
        for blocked in tried.blocked {
            self.lanes[self.lane].known[blocked] = Known::Nothing;
        }
    }

    fn forget(&mut self, added: impl IntoIterator<Item = (u32, u32)>) {
        let lane = &mut self.lanes[self.lane];
        for (arc, on) in added {
            lane.taken.remove(arc, on);
            lane.known[self.network.dependency(arc, on)] = Known::Nothing;
        }
    }

    /// Reaches `s` by sending one of its neighbours another way, if that, all that comes through it, and `s` then fit in with
    /// what is taken: the local backtracking of the paper. False, and nothing changed, when no neighbour has such a way.
    fn backtrack(&mut self, s: SwitchIndex, added: &mut Vec<(u32, u32)>) -> bool {
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
                let begin = added.len();
                let behind = (other, self.next[beyond as usize]);
                let before = into.iter().map(|into| (*into, other));
                let mut wanted = std::iter::once(behind).filter(|(_, on)| *on != NONE).chain(before);
                if wanted.all(|(x, y)| self.lanes[self.lane].depend(network, x, y, added)) {
                    self.next[neighbour as usize] = other;
                    self.next[s as usize] = arc;
                    self.cost[neighbour as usize] = self.price(other) + HOP;
                    self.cost[s as usize] = self.price(arc) + HOP;
                    return true;
                }
                self.forget(added.drain(begin..));
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
    fn order_from(&mut self, target: SwitchIndex) {
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

    /// Routes `target` over the escape tree.
    fn take_escape(&mut self, target: SwitchIndex) {
        let network = self.network;
        self.next.copy_from_slice(&network.parent);
        let mut at = target;
        self.next[target as usize] = NONE;
        while network.parent[at as usize] != NONE {
            let up = network.parent[at as usize];
            at = network.to[up as usize];
            self.next[at as usize] = network.reverse[up as usize];
        }
        // Other parts of the fabric hang on other roots and have no path.
        self.order_from(target);
        let mut reached = vec![false; self.next.len()];
        self.order.iter().for_each(|s| reached[*s as usize] = true);
        for (next, reached) in self.next.iter_mut().zip(reached) {
            if !reached {
                *next = NONE;
            }
        }
    }

    fn add_load(&mut self, d: &Destination) {
        if !d.host {
            return;
        }
        self.senders.copy_from_slice(&self.network.hosts);
        for s in self.order[1..].iter().rev() {
            let (arc, senders) = (self.next[*s as usize] as usize, self.senders[*s as usize]);
            self.load[arc] += senders;
            self.prices[arc] = price_of(self.load[arc]);
            self.senders[self.network.to[arc] as usize] += senders;
        }
    }
}

/// What a tree has done to the lane so far.
#[derive(Default)]
struct Tried {
    /// Dependencies that it added.
    added: Vec<(u32, u32)>,
    /// Dependencies that it found to close a cycle, by number.
    blocked: Vec<usize>,
}

/// What the load of a link costs: its square, so that two links of middling load are better than a heavy and a light one.
fn price_of(load: u64) -> u64 {
    load.saturating_mul(load).min(1 << 42)
}

/// What a hop costs beside its load: more than the load of a whole way.
const HOP: u64 = 1 << 50;

/// What a new dependency costs where none is wanted: more than the load of a whole way, less than a hop.
const NEW: u64 = 1 << 49;

/// What no way costs. A way of more than 8,000 hops counts as none: the escape tree is left then.
const FAR: u64 = 1 << 63;

fn reverse_arcs(graph: &SwitchGraph, from: &[SwitchIndex]) -> Vec<u32> {
    let reverse = |arc: usize| {
        let ends = graph.all_arcs()[arc];
        let back = |a: &(u32, &crate::fabric::Arc)| a.1.to == from[arc] && a.1.out_port == ends.in_port;
        let arcs = (graph.offsets()[ends.to as usize]..).zip(graph.arcs(ends.to));
        arcs.into_iter().find(back).map_or(NONE, |(number, _)| number)
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
        let mut hops = [0.0; 3];
        for (name, fabric) in random_fabrics() {
            let graph = SwitchGraph::new(&fabric);
            for (vls, hops) in [1, 2, 4].into_iter().zip(&mut hops) {
                let input = RoutingInput { data_vls: 8, nue_max_vls: vls, ..RoutingInput::default() };
                let report = check_all(&Nue, &graph, &input);
                assert!(report.management_credit_loop.is_none(), "{name}, {vls} VLs: {report}");
                assert!(report.vls <= usize::from(vls), "{name}: {report}");
                *hops += report.hops.mean;
            }
        }
        assert!(hops[2] < hops[0], "mean hops between hosts, in sum: {hops:?}");
    }

    /// Fewer destinations have to take the escape tree when neighbours may go other ways, on one lane and on thin fabrics.
    #[test]
    fn backtracking_saves_destinations_from_the_escape_tree() {
        let mut escaped = [0, 0];
        let mut random = rand_pcg::Pcg64Mcg::new(5);
        let thin = (0..12).map(|_| testing::random(60, 4, 1, &mut random)).collect::<Vec<_>>();
        for (name, fabric) in thin.iter().enumerate() {
            let graph = SwitchGraph::new(fabric);
            let network = Network::new(&graph);
            let order = one_by_one(&graph, &RoutingInput::default());
            let [without, with] = [false, true].map(|backtracking| {
                let mut growth = Growth { backtracking, ..Growth::new(&network, 1) };
                growth.route(&order);
                growth.escaped
            });
            println!("{name}: {without} escaped, {with} with backtracking");
            escaped = [escaped[0] + without, escaped[1] + with];
        }
        assert!(2 * escaped[1] < escaped[0], "{escaped:?}");
    }

    /// More lanes leave more choice, so that the worst link gets lighter rather than heavier.
    #[test]
    fn more_lanes_load_no_link_more() {
        let mut fabrics = random_fabrics();
        let trees: [(&[usize], &[usize]); 3] =
            [(&[4, 4, 8], &[1, 4, 4]), (&[3, 3, 3, 3], &[1, 2, 3, 2]), (&[6, 9], &[1, 3])];
        fabrics.extend(trees.map(|(m, w)| (format!("tree {m:?} {w:?}"), testing::fat_tree(m, w, 0))));
        for (name, fabric) in fabrics {
            let graph = SwitchGraph::new(&fabric);
            let [one, two, eight] = [1, 2, 8].map(|vls| {
                let input = RoutingInput { data_vls: vls, ..RoutingInput::default() };
                f64::from(check_all(&Nue, &graph, &input).balance.max)
            });
            println!("{name}: worst load {one} with one lane, {two} with two, {eight} with eight");
            assert!(two.max(eight) <= 1.1 * one, "{name}: {one} with one lane, {two}, {eight}");
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
