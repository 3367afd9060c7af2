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
//!   escape tree as a whole. In the end full links between switches of a tree are relieved, as far as the lanes have room
//!   ([`super::relief`]). The load of a link is the routes of hosts on all lanes: lanes that know only their own choose alike.
//!   Switches as destinations come last, and have longer paths where that saves dependencies.
//! - LMC: every LID is routed by itself, from each switch by the way that shares least with those of the port's LIDs before it, as
//!   far as the dependencies allow.
//! - After lost links: trees over one are joined again in their lanes ([`repair`]), the others stay, and SLs do always.
//! - VLs: as many as are allowed; more of them mean shorter paths. Cost: LIDs · links, one LID after the other; memory: the
//!   dependencies taken.
//! - Source: Domke, Hoefler, Matsuoka, Routing on the Dependency Graph (HPDC 2016).

use super::base::Kept;
use super::relief::relieve_shortest;
use super::room::Taken;
use super::targets::one_by_one;
use super::{RoutingEngine, RoutingError, RoutingInput};
use crate::fabric::{SwitchGraph, SwitchIndex};
use crate::routes::{PathSl, Routes, SlToVl};
use growth::Growth;
use lane::{Lane, Room};
use network::{Escape, Network};

pub(super) use repair::repair;

/// The engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nue;

impl RoutingEngine for Nue {
    fn name(&self) -> &'static str {
        "nue"
    }

    fn route(&self, graph: &SwitchGraph, input: &RoutingInput) -> Result<Routes, RoutingError> {
        let network = Network::new(graph);
        Ok(route_all(&network, input).0)
    }
}

/// The routes, with the load of hosts over each arc and the lanes when all trees have theirs.
fn route_all<'g>(network: &'g Network<'g>, input: &RoutingInput) -> (Routes, Vec<u64>, Vec<Lane<'g>>) {
    let graph = network.graph;
    let vls = match (input.vls(), input.nue_max_vls) {
        (links, 0) => links,
        (links, most) => links.min(most),
    };
    let escape = Escape::new(network);
    let order = one_by_one(graph, input);
    let mut growth = Growth::new(network, vec![Lane::new(network, &escape); usize::from(vls)]);
    let columns = growth.route(&order, &escape.parent);
    let mut routes = Routes::empty(Nue.name(), graph);
    routes.lfts.enter(&columns);
    let lanes = &mut growth.lanes;
    let mut takes = |target: SwitchIndex, pairs: &[(u32, u32)]| {
        let lane = &mut lanes[usize::from(lane_of(target, vls))];
        lane.begin();
        let all = pairs.iter().all(|(arc, on)| lane.try_take(*arc, *on));
        if !all {
            lane.give_up();
        }
        all
    };
    if let Some(load) = relieve_shortest(graph, &mut routes.lfts, Some(&mut takes)) {
        growth.load = load;
    }
    let mut sl = vec![0; usize::from(graph.top_lid()) + 1];
    for d in &order {
        d.lids().for_each(|lid| sl[usize::from(lid)] = lane_of(d.switch, vls));
    }
    routes.vls = vls;
    routes.spanning = vec![escape.parent.into()];
    if vls > 1 {
        routes.sl = PathSl::ByDestination(sl);
        routes.sl_to_vl = SlToVl::below(input.vls());
    }
    (routes, growth.load, growth.lanes)
}

pub(super) fn from_nothing(
    graph: &SwitchGraph,
    input: &RoutingInput,
) -> Result<(Routes, Kept), RoutingError> {
    let network = Network::new(graph);
    let (routes, load, lanes) = route_all(&network, input);
    let mut taken = vec![0; network.dependencies];
    let orders = (0..).zip(lanes).map(|(number, lane)| lane.into_taken(1 << number, &mut taken).into());
    let orders = orders.collect();
    let taken = Taken::with_orders(graph, taken, orders);
    Ok((routes, Kept { load, taken: Some(taken), ways: 1 }))
}

/// The VL of the LIDs on a switch.
fn lane_of(switch: SwitchIndex, vls: u8) -> u8 {
    (switch % u32::from(vls)) as u8
}

mod backtracking;
mod growth;
mod join;
mod lane;
mod left;
mod network;
mod repair;
mod stands;
#[cfg(test)]
mod tests;
