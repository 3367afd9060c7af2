//! One tree after the other is grown from its target outwards, along links of little load and over dependencies for which there is
//! room.
//!
//! Cost: for each tree the links, and the ways at impasses ([`super::backtracking`]).

use super::lane::{Fit, Room};
use super::lane_of;
use super::network::{NONE, Network};
use crate::engines::apart::Siblings;
use crate::fabric::{Destination, SwitchIndex};

/// Grows the tree of one LID after the other, on the lanes of all, and knows the load of all.
pub(super) struct Growth<'g, R> {
    pub(super) network: &'g Network<'g>,
    /// Routes of hosts over each arc, and what they make it cost.
    pub(super) load: Vec<u64>,
    prices: Vec<u64>,
    pub(super) lanes: Vec<R>,
    /// Whose turn it is.
    pub(super) lane: usize,
    /// Whether a switch without a way makes its neighbours try others.
    pub(super) backtracking: bool,
    /// LIDs that were routed over the escape tree.
    pub(super) escaped: usize,
    /// The arc on which each switch sends to the target.
    pub(super) next: Vec<u32>,
    /// What the way from each switch costs, [`FAR`] and more where there is none yet.
    pub(super) cost: Vec<u64>,
    /// Switches in the order in which the tree reached them, the target first.
    pub(super) order: Vec<SwitchIndex>,
    /// One bit for each switch: whoever waits or waited to be reached, and whoever waits.
    touched: Vec<u64>,
    waiting: Vec<u64>,
    /// Hosts that send through each switch.
    senders: Vec<u64>,
    /// The other LIDs of the port.
    pub(super) siblings: Siblings,
}

impl<'g, R: Room> Growth<'g, R> {
    /// Nothing is loaded yet.
    pub(super) fn new(network: &'g Network<'g>, lanes: Vec<R>) -> Self {
        let (count, arcs) = (network.graph.switch_count(), network.to.len());
        Self {
            network,
            load: vec![0; arcs],
            prices: vec![0; arcs],
            lanes,
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
    pub(super) fn route(&mut self, order: &[&Destination], parent: &[u32]) -> Vec<(u16, Vec<u8>)> {
        let graph = self.network.graph;
        let mut columns = Vec::new();
        for d in order {
            self.lane = usize::from(lane_of(d.switch, self.lanes.len() as u8));
            self.siblings.begin(d.switch);
            for lid in d.lids() {
                self.route_one(d, parent);
                let mut column: Vec<u8> = self.next.iter().map(|arc| graph.port_of(*arc)).collect();
                column[d.switch as usize] = d.port;
                columns.push((lid, column));
                if d.lmc > 0 {
                    self.siblings.push(&self.next);
                }
            }
        }
        columns
    }

    /// Routes one LID of a port; `parent` is its lane's escape tree.
    pub(super) fn route_one(&mut self, d: &Destination, parent: &[u32]) {
        if (d.host || !self.grow(d.switch, true)) && !self.grow(d.switch, false) {
            self.escaped += 1;
            self.take_escape(d.switch, parent);
        }
        self.add_load(d);
    }

    /// Sets what the links cost by their load.
    pub(super) fn price_all(&mut self) {
        self.prices.iter_mut().zip(&self.load).for_each(|(price, load)| *price = price_of(*load));
    }

    /// Grows the tree of `target` level by level, `thrifty` or not ([`Self::reach_thriftily`]). False, and no dependency more than
    /// before, when a switch of the target's part stays out of reach.
    fn grow(&mut self, target: SwitchIndex, thrifty: bool) -> bool {
        self.next.fill(NONE);
        self.cost.fill(FAR);
        self.touched.fill(0);
        self.waiting.fill(0);
        self.order.clear();
        self.lanes[self.lane].begin();
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
                    let cost = if thrifty { self.reach_thriftily(s) } else { self.reach(s) };
                    fresh.extend(cost.map(|cost| (s, cost)));
                }
            }
            if fresh.is_empty() && self.backtracking && !thrifty {
                let found = (0..self.next.len() as u32)
                    .find(|s| self.waiting[*s as usize / 64] >> (s % 64) & 1 == 1 && self.backtrack(*s));
                rerouted |= found.is_some();
                fresh.extend(found.map(|s| (s, self.cost[s as usize])));
            }
        }
        if self.waiting.iter().any(|bits| *bits != 0) {
            self.lanes[self.lane].give_up();
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
    fn reach(&mut self, s: SwitchIndex) -> Option<u64> {
        if !self.siblings.is_empty() {
            return self.reach_apart(s);
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
        if !self.take(best.1) {
            // Rare but on thin fabrics: the others in their order.
            let mut others: Vec<(u64, u32)> = network
                .arcs(s)
                .map(|arc| (self.price(arc), arc))
                .filter(|other| other.0 < FAR && *other > best)
                .collect();
            others.sort_unstable();
            best = others.into_iter().find(|(_, arc)| self.take(*arc))?;
        }
        self.next[s as usize] = best.1;
        Some(best.0 + HOP)
    }

    /// The same by a way that shares as little as it can with those of the port's other LIDs.
    fn reach_apart(&mut self, s: SwitchIndex) -> Option<u64> {
        self.siblings.look_from(Some(s));
        let priced = |arc: u32| {
            let price = self.price(arc);
            (price < FAR).then(|| (price / HOP, self.siblings.shared(arc, &self.next), price, arc))
        };
        let mut ways: Vec<(u64, u64, u64, u32)> = self.network.arcs(s).filter_map(priced).collect();
        ways.sort_unstable();
        let (.., arc) = ways.into_iter().find(|(.., arc)| self.take(*arc))?;
        self.next[s as usize] = arc;
        Some(self.price(arc) + HOP)
    }

    /// The same for a target without traffic that would have to be spread: only over dependencies that are taken already, or
    /// that agree with the order of channels as it is and so cost no search.
    fn reach_thriftily(&mut self, s: SwitchIndex) -> Option<u64> {
        let network = self.network;
        let lane = &self.lanes[self.lane];
        let price = |arc: u32| {
            let price = self.price(arc);
            let on = self.next[network.to[arc as usize] as usize];
            if on == NONE || price >= FAR {
                return price;
            }
            match lane.fit(arc, on) {
                Fit::Taken => price,
                Fit::Forward => price | NEW,
                Fit::Unknown => FAR,
            }
        };
        let (best, arc) =
            network.arcs(s).map(|arc| (price(arc), arc)).min().filter(|(best, _)| *best < FAR)?;
        self.take(arc).then(|| {
            self.next[s as usize] = arc;
            (best & !NEW) + HOP
        })
    }

    /// What the way over `arc` costs, but for the hop.
    pub(super) fn price(&self, arc: u32) -> u64 {
        self.cost[self.network.to[arc as usize] as usize] + self.prices[arc as usize]
    }

    /// Takes the dependency of packets that come over `arc` and go on as the tree says.
    fn take(&mut self, arc: u32) -> bool {
        let on = self.next[self.network.to[arc as usize] as usize];
        // No dependency at the target itself.
        on == NONE || self.lanes[self.lane].take(arc, on)
    }

    /// Routes `target` over the escape tree `parent`.
    fn take_escape(&mut self, target: SwitchIndex, parent: &[u32]) {
        let network = self.network;
        self.next.copy_from_slice(parent);
        let mut at = target;
        self.next[target as usize] = NONE;
        while parent[at as usize] != NONE {
            let up = parent[at as usize];
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

/// What the load of a link costs: its square, so that two links of middling load are better than a heavy and a light one.
pub(super) fn price_of(load: u64) -> u64 {
    load.saturating_mul(load).min(1 << 42)
}

/// What a hop costs beside its load: more than the load of a whole way.
pub(super) const HOP: u64 = 1 << 50;

/// What a new dependency costs where none is wanted: more than the load of a whole way, less than a hop.
pub(super) const NEW: u64 = 1 << 49;

/// What no way costs. A way of more than 8,000 hops counts as none: the escape tree is left then.
pub(super) const FAR: u64 = 1 << 63;
