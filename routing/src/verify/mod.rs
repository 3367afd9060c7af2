//! Proves tables right, or names what is wrong: a second opinion that shares no code with the engines.
//!
//! - Every LID (all 2^LMC of a port) from every switch: delivered, and in how many hops against the fewest possible;
//!   loops, holes, exits that lead nowhere or to somebody else.
//! - Credit loops: the channel dependency graph (Dally, Seitz 1987) over (link, VL), with SLs and SL-to-VL tables applied,
//!   is acyclic; otherwise a shortest cycle is named. Once for traffic between hosts, once with everything that can be
//!   sent, management traffic from and to switches included.
//! - Legality ([`legality`]): where the tables come with an order of switches, no turn from down to up.
//! - Balance: routes between hosts over every link between switches, over all and by tier.
//!
//! Cost: O(LIDs · switches), in blocks of 64 LIDs (one LFT block: a cache line of each row) over all threads; hop counts
//! by one breadth-first search for each (block, target switch); the cycle test is linear in channels and dependencies.

mod balance;
pub mod choices;
mod credit_loop;
mod cycle;
mod dependencies;
pub mod entries;
mod fault;
mod hop;
pub mod legality;
pub mod lmc;
pub mod mixture;
pub mod multicast;
mod network;
mod report;
mod rewalk;
mod standing;
#[cfg(test)]
mod tests;
pub mod transition;
mod walk;

use rayon::prelude::*;

pub use balance::{Balance, Tier};
pub use credit_loop::{Channel, CreditLoop};
pub use fault::{Detour, Fault, FaultKind};
pub use hop::Hop;
pub use legality::{IllegalTurn, Legality};
pub use report::{Counts, Hops, Report};

pub use standing::{Standing, check_from};

use crate::fabric::SwitchGraph;
use crate::routes::{LFT_BLOCK, Routes};
use cycle::Order;
use dependencies::Lanes;
use network::Network;
use walk::Tally;

/// What the verdict takes into account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Whether a credit loop that needs traffic from or to a switch's port 0 is a fault; it is reported in any case.
    pub management: bool,
    /// Data VLs that every link has; a VL at or beyond is a fault. 0: any of 15.
    pub data_vls: u8,
}

/// Checks `routes` on `graph`. The rows of `routes` must be in the order of the graph's switches.
pub fn check(graph: &SwitchGraph, routes: &Routes, options: Options) -> Report {
    let network = Network::new(graph);
    let lanes = Lanes::new(&network, routes, options.data_vls);
    let blocks = usize::from(graph.top_lid()) / LFT_BLOCK + 1;
    let tally = walk_all(&network, routes, &lanes, &vec![u64::MAX; blocks]);
    let orders = orders(&network, &lanes, &tally);
    let first_detour = tally.first_detour.map(|(lid, from)| fault::detour(&network, routes, lid, from));
    let report = report::make(&network, routes, &lanes, &tally, (&orders.0, &orders.1), options);
    Report { first_detour, ..report }
}

/// Walks the LIDs that `wanted` names, 64 for each block.
fn walk_all(network: &Network<'_>, routes: &Routes, lanes: &Lanes<'_>, wanted: &[u64]) -> Tally {
    let blocks: Vec<usize> = (0..wanted.len()).filter(|block| wanted[*block] != 0).collect();
    let share = blocks.len().div_ceil(rayon::current_num_threads() * 4).max(1);
    let mut tally = blocks
        .par_chunks(share)
        .map(|blocks| {
            let mut tally = Tally::new(network, lanes);
            let mut walker = walk::Walker::new(network, routes, lanes);
            for block in blocks {
                walker.block(*block, wanted[*block], &mut tally);
            }
            tally
        })
        .reduce_with(Tally::merge)
        .unwrap_or_else(|| Tally::new(network, lanes));
    let Tally { hosts, all, .. } = &mut tally;
    all.merge(hosts);
    tally
}

/// Proofs or cycles for traffic between hosts, and for all.
fn orders(network: &Network<'_>, lanes: &Lanes<'_>, tally: &Tally) -> (Order, Order) {
    rayon::join(|| cycle::find(network, lanes, &tally.hosts), || cycle::find(network, lanes, &tally.all))
}
