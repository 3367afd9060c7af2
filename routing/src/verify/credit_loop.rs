//! A cycle of channels, in words.

use std::fmt;

use serde::Serialize;

use super::cycle::{self, Order};
use super::dependencies::{Dependencies, Lanes};
use super::hop::{Hop, hop};
use super::network::Network;

/// A link in one direction with a VL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Channel {
    /// The switch that sends.
    pub from: Hop,
    /// The switch that receives, with its port of entry.
    pub to: Hop,
    /// VL.
    pub vl: u8,
}

/// Channels each of which can wait for the next, and the last for the first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CreditLoop {
    /// The channels along the cycle.
    pub channels: Vec<Channel>,
}

impl fmt::Display for CreditLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for channel in &self.channels {
            write!(f, "{} VL{} -> ", channel.from, channel.vl)?;
        }
        f.write_str("back to the first")
    }
}

/// A cycle of channels, in words.
pub(super) fn credit_loop(
    network: &Network<'_>,
    lanes: &Lanes<'_>,
    dependencies: &Dependencies,
) -> Option<CreditLoop> {
    loop_of(network, &cycle::find(network, lanes, dependencies))
}

/// What a verdict says, in words.
pub(super) fn loop_of(network: &Network<'_>, order: &Order) -> Option<CreditLoop> {
    let Order::Cycle(cycle) = order else { return None };
    let channel = |(arc, vl): (u32, usize)| {
        let ends = network.graph.all_arcs()[arc as usize];
        Channel {
            from: hop(network, network.from[arc as usize], ends.out_port),
            to: hop(network, ends.to, ends.in_port),
            vl: vl as u8,
        }
    };
    Some(CreditLoop { channels: cycle.iter().copied().map(channel).collect() })
}
