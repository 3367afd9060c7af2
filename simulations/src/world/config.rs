//! How a world behaves.

use std::time::Duration;

/// When forwarding loops are looked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LoopWatch {
    /// Never.
    Off,
    /// After every change of a table or a link, so that the time of a loop is that of its cause.
    #[default]
    EachChange,
    /// Links that come up are looked at together, before a table is written or a link goes down next: no loop is missed, but its time
    /// is that of the look. A whole look costs a step for each entry of all tables, and a bring-up of a large fabric needs few.
    Batches,
}

/// Latencies and faults of a [`super::World`]. Shares are probabilities from 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Seed of everything random.
    pub seed: u64,
    /// Time that a packet takes for one hop.
    pub hop_latency: Duration,
    /// Time that a device takes to answer.
    pub response_time: Duration,
    /// Up to this much is added to each packet's way, evenly drawn: packets overtake each other.
    pub jitter: Duration,
    /// Share of packets that are lost on each link that they cross.
    pub loss: f64,
    /// Share of packets that arrive twice.
    pub duplication: f64,
    /// Time that a link takes to train.
    pub training: Duration,
    /// Whether devices send traps.
    pub traps: bool,
    /// When forwarding loops are looked for.
    pub watch_loops: LoopWatch,
}

impl Default for Config {
    /// A sound fabric: half a microsecond a hop, five for an answer, links train at once.
    fn default() -> Self {
        Self {
            seed: 1,
            hop_latency: Duration::from_nanos(500),
            response_time: Duration::from_micros(5),
            jitter: Duration::ZERO,
            loss: 0.0,
            duplication: 0.0,
            training: Duration::ZERO,
            traps: true,
            watch_loops: LoopWatch::EachChange,
        }
    }
}

impl Config {
    /// No latency at all: an answer is there when the request has been sent.
    pub fn instant() -> Self {
        Self { hop_latency: Duration::ZERO, response_time: Duration::ZERO, ..Self::default() }
    }
}
