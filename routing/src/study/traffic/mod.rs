//! Congestion of a traffic pattern on static routes, counted as the literature counts it.
//!
//! A pattern is a number of rounds; in a round every flow is sent at once. The load of a link is the sum of the weights of
//! the flows over it; a flow gets its share of the most loaded link on its way, the host's own links included: weight /
//! load. The bandwidth of a round is the mean over hosts that send of the shares that their flows get in sum, 1 being the
//! whole of a host's link: over random bisections this is the effective bisection bandwidth. Counts are static: a flow that
//! waits in one place does not make room in another, buffers and virtual lanes have no part in it.
//!
//! - Source: Hoefler, Schneider, Lumsdaine, "Multistage switches are not crossbars" (CLUSTER 2008) and Schneider, Hoefler,
//!   Lumsdaine, "ORCS: an oblivious routing congestion simulator" (2009) for effective bisection bandwidth; Zahavi et al.
//!   (CCPE 22, 2010) for the hot-spot degree of shift permutations.
//! - Cost: rounds · hosts · hops; all-to-all hosts · (switches with hosts) · hops. Memory: a counter for each link and thread.

mod all_to_all;
mod histogram;
mod measure;
mod network;
mod pattern;
#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::fabric::SwitchGraph;
use crate::routes::LftMatrix;

pub use histogram::Histogram;
pub use pattern::Pattern;

use network::Network;

/// Traffic from one host port to another, both as indices into [`SwitchGraph::destinations`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Flow {
    /// The port that sends.
    pub source: u32,
    /// The port that receives; its base LID is used.
    pub destination: u32,
    /// Weight, 1 or more: in how many parts of a host's link it counts.
    pub weight: u32,
}

/// Mean and range of something that was measured several times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// Standard deviation of the single values.
    pub deviation: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
}

impl Spread {
    fn of(values: &[f64]) -> Self {
        if values.is_empty() {
            return Self::default();
        }
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count;
        Self {
            mean,
            deviation: variance.sqrt(),
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

/// What a pattern met.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Congestion {
    /// Rounds.
    pub rounds: usize,
    /// Flows that were sent and arrived, of all rounds.
    pub flows: u64,
    /// Flows that do not arrive: the tables lead nowhere or in a circle. They load no link.
    pub lost: u64,
    /// Bandwidth by round, 0 to 1.
    pub bandwidth: Spread,
    /// Load of the most loaded link between switches, by round.
    pub worst: Spread,
    /// Rounds in which no link between switches carries more than one flow's weight.
    pub free: usize,
    /// Mean load of a link between switches, over all rounds.
    pub mean_load: f64,
    /// Links between switches, each direction for itself, that no flow of any round used.
    pub unused: usize,
    /// Flows by the load of the most loaded link on their way.
    pub histogram: Histogram,
    /// For each arc of the graph, its load in the sum of all rounds.
    #[serde(skip)]
    pub links: Vec<u64>,
}

/// Sends `pattern` over `tables`, whose rows are in the order of the switches of `graph`.
pub fn run(graph: &SwitchGraph, tables: &LftMatrix, pattern: &Pattern) -> Congestion {
    let network = Network::new(graph, tables);
    if *pattern == Pattern::AllToAll { all_to_all::run(&network) } else { measure::run(&network, pattern) }
}
