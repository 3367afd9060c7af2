//! Holds multicast trees against unicast traffic one by one, for a planner that has others to offer.
//!
//! Cost: where a proof of the unicast tables is at hand, a copy of its dependencies, else a walk of all LIDs; then for each tree
//! its own dependencies, as long as they agree with the order of channels that is the proof; else a pass over all channels.

use std::collections::BTreeSet;

use super::flood::Flood;
use super::{CreditLoop, Group};
use crate::fabric::SwitchGraph;
use crate::multicast::MulticastTables;
use crate::routes::{LFT_BLOCK, Routes};
use crate::verify::cycle::{self, Order};
use crate::verify::dependencies::{Dependencies, Lanes};
use crate::verify::network::Network;
use crate::verify::{Standing, credit_loop, walk_all};

/// Unicast traffic between hosts, and the trees that were found to go with it.
pub struct Judge<'a> {
    network: Network<'a>,
    lanes: Lanes<'a>,
    dependencies: Dependencies,
    order: Order,
}

impl<'a> Judge<'a> {
    /// For groups whose packets have SLs of the set `sls`. `proof` is taken where it is one of these tables.
    pub fn new(graph: &'a SwitchGraph, routes: &'a Routes, sls: u16, proof: Option<&Standing>) -> Self {
        let network = Network::new(graph);
        let lanes = Lanes::with_sls(&network, routes, 0, sls);
        let known = proof.and_then(|proof| proof.of_hosts(&network, routes, &lanes));
        let (dependencies, order) = known.unwrap_or_else(|| {
            let blocks = usize::from(graph.top_lid()) / LFT_BLOCK + 1;
            let hosts = walk_all(&network, routes, &lanes, &vec![u64::MAX; blocks]).hosts;
            let order = cycle::find(&network, &lanes, &hosts);
            (hosts, order)
        });
        Self { network, lanes, dependencies, order }
    }

    /// Takes trees that are in `tables` already, whatever comes of it. Where there is a circle then, no tree can be held against
    /// it, and all that follow pass.
    pub fn take_all<'g>(&mut self, tables: &MulticastTables, groups: impl Iterator<Item = &'g Group>) {
        for group in groups {
            let new = self.dependencies_of(tables, group);
            new.iter().for_each(|(lane, arc, place)| self.dependencies.add(*lane, *arc, *place));
        }
        self.order = cycle::find(&self.network, &self.lanes, &self.dependencies);
    }

    /// What the tree of a group adds to what was taken.
    fn dependencies_of(&self, tables: &MulticastTables, group: &Group) -> BTreeSet<(usize, u32, usize)> {
        let mut flood = Flood::new(&self.network, &self.lanes, tables, group);
        flood.add_dependencies();
        let mut new = flood.found.dependencies;
        new.retain(|(lane, arc, place)| !self.dependencies.contains(*lane, *arc, *place));
        new
    }

    /// Takes the tree of a group, as it is in `tables`, unless it closes a circle with what was taken before.
    ///
    /// # Errors
    /// The circle; nothing was taken.
    pub fn take(&mut self, tables: &MulticastTables, group: &Group) -> Result<(), CreditLoop> {
        let new = self.dependencies_of(tables, group);
        let Order::Heights(heights) = &self.order else { return Ok(()) };
        let arcs = self.network.from.len();
        let rises = |(lane, arc, place): &(usize, u32, usize)| {
            let (vl, out) = if self.lanes.constant() {
                (*lane, *lane)
            } else {
                (lane / self.lanes.vls, lane % self.lanes.vls)
            };
            let base = self.network.graph.offsets()[self.network.to(*arc) as usize] as usize;
            heights[vl * arcs + *arc as usize] < heights[out * arcs + base + place]
        };
        let agrees = new.iter().all(rises);
        new.iter().for_each(|(lane, arc, place)| self.dependencies.add(*lane, *arc, *place));
        if agrees {
            return Ok(());
        }
        let order = cycle::find(&self.network, &self.lanes, &self.dependencies);
        match credit_loop::loop_of(&self.network, &order) {
            None => {
                self.order = order;
                Ok(())
            }
            Some(found) => {
                new.iter().for_each(|(lane, arc, place)| self.dependencies.remove(*lane, *arc, *place));
                Err(found)
            }
        }
    }
}
