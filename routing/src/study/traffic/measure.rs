//! Patterns of single flows: rounds are shared out among threads, each with counters of its own.

use rayon::prelude::*;

use super::histogram::Counter;
use super::network::Network;
use super::pattern::{Pattern, Round};
use super::{Congestion, Spread};

/// Rounds that one thread takes at a time; fixed, so that sums of floats are formed in the same order everywhere.
const SHARE: usize = 8;

/// What one share of the rounds adds to the whole.
struct Part {
    /// Bandwidth and worst load of each round.
    rounds: Vec<(f64, u64)>,
    flows: u64,
    lost: u64,
    histogram: Counter,
    links: Vec<u64>,
}

pub(super) fn run(network: &Network<'_>, pattern: &Pattern) -> Congestion {
    let rounds: Vec<usize> = (0..pattern.rounds(network.hosts.len())).collect();
    let parts: Vec<Part> = rounds
        .par_chunks(SHARE)
        .map_init(|| Scratch::new(network), |scratch, numbers| scratch.part(pattern, numbers))
        .collect();
    let mut links = vec![0; network.arcs()];
    let mut histogram = Counter::new();
    let (mut flows, mut lost) = (0, 0);
    let mut by_round: Vec<(f64, u64)> = Vec::with_capacity(rounds.len());
    for part in parts {
        links.iter_mut().zip(&part.links).for_each(|(sum, load)| *sum += load);
        histogram.merge(&part.histogram);
        flows += part.flows;
        lost += part.lost;
        by_round.extend(part.rounds);
    }
    let of = |value: &dyn Fn(&(f64, u64)) -> f64| Spread::of(&by_round.iter().map(value).collect::<Vec<_>>());
    let turns = (links.len() * by_round.len()).max(1) as f64;
    Congestion {
        rounds: by_round.len(),
        flows,
        lost,
        bandwidth: of(&|(bandwidth, _)| *bandwidth),
        worst: of(&|(_, worst)| *worst as f64),
        free: by_round.iter().filter(|(_, worst)| *worst <= 1).count(),
        mean_load: links.iter().map(|l| *l as f64).sum::<f64>() / turns,
        unused: links.iter().filter(|l| **l == 0).count(),
        histogram: histogram.finish(),
        links,
    }
}

struct Scratch<'a> {
    network: &'a Network<'a>,
    round: Round,
    load: Vec<u64>,
    /// The links of all flows of the round, one flow after the other; where each ends.
    path: Vec<u32>,
    ends: Vec<usize>,
    /// Whether a host has sent in this round.
    sends: Vec<bool>,
}

impl<'a> Scratch<'a> {
    fn new(network: &'a Network<'a>) -> Self {
        Self {
            network,
            round: Round::default(),
            load: vec![0; network.links()],
            path: Vec::new(),
            ends: Vec::new(),
            sends: vec![false; network.graph.destinations().len()],
        }
    }

    fn part(&mut self, pattern: &Pattern, numbers: &[usize]) -> Part {
        let mut part = Part {
            rounds: Vec::with_capacity(numbers.len()),
            flows: 0,
            lost: 0,
            histogram: Counter::new(),
            links: vec![0; self.network.arcs()],
        };
        for number in numbers {
            pattern.fill(*number, &self.network.hosts, &mut self.round);
            self.send(&mut part);
            self.share_out(&mut part);
        }
        part
    }

    /// Walks all flows and adds their weights to the links.
    fn send(&mut self, part: &mut Part) {
        self.load.fill(0);
        self.path.clear();
        self.ends.clear();
        let all = self.network.graph.destinations();
        for flow in &self.round.flows {
            let (from, to) = (&all[flow.source as usize], &all[flow.destination as usize]);
            let begin = self.path.len();
            self.path.push(self.network.injection(flow.source));
            if self.network.walk(from.switch, to, &mut self.path) {
                self.path.push(self.network.delivery(flow.destination));
                part.flows += 1;
            } else {
                self.path.truncate(begin);
                part.lost += 1;
            }
            for link in &self.path[begin..] {
                self.load[*link as usize] += u64::from(flow.weight);
            }
            self.ends.push(self.path.len());
        }
    }

    /// Gives every flow its share of the worst link on its way.
    fn share_out(&mut self, part: &mut Part) {
        self.sends.fill(false);
        let (mut sum, mut senders, mut begin) = (0.0, 0_u32, 0);
        for (number, (flow, end)) in self.round.flows.iter().zip(&self.ends).enumerate() {
            let links = &self.path[begin..*end];
            begin = *end;
            if links.is_empty() || number < self.round.measured {
                continue;
            }
            let worst = links.iter().map(|link| self.load[*link as usize]).max().unwrap_or(1).max(1);
            sum += f64::from(flow.weight) / worst as f64;
            senders += u32::from(!std::mem::replace(&mut self.sends[flow.source as usize], true));
            part.histogram.add(worst, 1);
        }
        let between = &self.load[..self.network.arcs()];
        part.links.iter_mut().zip(between).for_each(|(sum, load)| *sum += load);
        let worst = between.iter().copied().max().unwrap_or(0);
        part.rounds.push((sum / f64::from(senders.max(1)), worst));
    }
}
