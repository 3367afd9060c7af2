//! The patterns. Rounds that are drawn at random are drawn from the seed and their number, so that they are the same in
//! whatever order and on however many threads they are run.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

use super::Flow;

/// Traffic as it is studied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Round k of n - 1: every host sends to the k-th after it, hosts in the order of the tree.
    Shift,
    /// One round: every host sends to every other.
    AllToAll,
    /// Random halves of the hosts: in each round every host of one half exchanges with one of the other.
    Bisection {
        /// Rounds; the error of the mean falls with the square root of them, 1000 are usual.
        rounds: usize,
        /// Seed.
        seed: u64,
    },
    /// In each round a random quarter of the hosts sends to one host. The others exchange in random pairs, and theirs are the
    /// flows that bandwidth and histogram are of: what others suffer from a hot spot.
    HotSpot {
        /// Rounds.
        rounds: usize,
        /// Seed.
        seed: u64,
    },
    /// One round of these flows.
    Flows(Vec<Flow>),
}

/// One round: all flows load links, of those from `measured` on the bandwidth is taken.
#[derive(Default)]
pub(super) struct Round {
    pub flows: Vec<Flow>,
    pub measured: usize,
}

impl Pattern {
    /// Number of rounds among `hosts` hosts.
    pub(super) fn rounds(&self, hosts: usize) -> usize {
        match self {
            Self::Shift => hosts.saturating_sub(1),
            Self::AllToAll | Self::Flows(_) => 1,
            Self::Bisection { rounds, .. } | Self::HotSpot { rounds, .. } => *rounds,
        }
    }

    /// Puts the flows of round number `number` in place of those of `round`.
    pub(super) fn fill(&self, number: usize, hosts: &[u32], round: &mut Round) {
        round.flows.clear();
        round.measured = 0;
        match self {
            Self::Shift => {
                let there = |i: usize| hosts[(i + number + 1) % hosts.len()];
                round.flows.extend(hosts.iter().enumerate().map(|(i, from)| flow(*from, there(i))));
            }
            Self::AllToAll => {
                let others = |from: u32| hosts.iter().filter(move |to| **to != from);
                round.flows.extend(hosts.iter().flat_map(|from| others(*from).map(|to| flow(*from, *to))));
            }
            Self::Bisection { seed, .. } => {
                let order = shuffled(hosts, *seed, number);
                exchange(&order, &mut round.flows);
            }
            Self::HotSpot { seed, .. } => {
                let order = shuffled(hosts, *seed, number);
                let Some((hot, others)) = order.split_first() else { return };
                let (aggressors, victims) = others.split_at(others.len() / 4);
                round.flows.extend(aggressors.iter().map(|from| flow(*from, *hot)));
                round.measured = round.flows.len();
                exchange(victims, &mut round.flows);
            }
            Self::Flows(flows) => round.flows.extend(flows),
        }
    }
}

fn flow(source: u32, destination: u32) -> Flow {
    Flow { source, destination, weight: 1 }
}

fn shuffled(hosts: &[u32], seed: u64, number: usize) -> Vec<u32> {
    let mut random = Pcg64Mcg::seed_from_u64(seed ^ (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut order = hosts.to_vec();
    order.shuffle(&mut random);
    order
}

/// The first half with the second, both ways; one is left over when they are odd.
fn exchange(hosts: &[u32], flows: &mut Vec<Flow>) {
    let (one, other) = hosts.split_at(hosts.len() / 2);
    let pairs = one.iter().zip(other);
    flows.extend(pairs.flat_map(|(a, b)| [flow(*a, *b), flow(*b, *a)]));
}
