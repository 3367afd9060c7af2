//! Shortest paths by the load so far, target after target: as `sssp` does for each LID, here for pairs of switches.
//!
//! Cost: the links of each switch for each target, once a round.

use super::parallel;
use super::paths::Paths;
use crate::engines::sssp::price;
use crate::fabric::{SwitchGraph, SwitchIndex};

/// Chooses by the load so far.
pub(super) struct ByLoad {
    /// Hosts of each switch.
    hosts: Vec<u64>,
    /// Cables of each channel.
    cables: Vec<u64>,
    /// Routes over each channel.
    load: Vec<u64>,
    /// What the first way from each switch costs.
    cost: Vec<u64>,
    /// Hosts that send through each switch.
    senders: Vec<u64>,
}

impl ByLoad {
    pub(super) fn new(graph: &SwitchGraph, paths: &Paths) -> Self {
        let cables_to = |s, to| parallel(graph, s, to).len() as u64;
        let of = |s: u32| paths.channels(s).map(move |c| cables_to(s, paths.neighbours[c as usize]));
        Self {
            cables: (0..paths.count as u32).flat_map(of).collect(),
            load: vec![0; paths.neighbours.len()],
            cost: vec![0; paths.count],
            senders: vec![0; paths.count],
            hosts: graph.hosts(),
        }
    }

    pub(super) fn choose(
        &mut self,
        paths: &mut Paths,
        target: SwitchIndex,
        queue: &[SwitchIndex],
        distance: &[u16],
    ) {
        self.cost[target as usize] = 0;
        for s in &queue[1..] {
            let equal: Vec<u32> = paths.nearer(*s, distance).collect();
            let cost = |c: &u32| {
                let beyond = self.cost[paths.neighbours[*c as usize] as usize];
                beyond.saturating_add(price(self.load[*c as usize] / self.cables[*c as usize]))
            };
            let best = (0..equal.len()).min_by_key(|place| cost(&equal[*place])).unwrap_or(0);
            self.cost[*s as usize] = equal.get(best).map_or(0, cost);
            paths.take(target, *s, &equal, best);
        }
    }

    /// Puts the routes of hosts to a target on the channels of its ways, or takes them off.
    pub(super) fn count(&mut self, paths: &Paths, target: SwitchIndex, queue: &[SwitchIndex], on: bool) {
        let to = self.hosts[target as usize];
        for way in (0..paths.ways).filter(|_| to > 0) {
            self.senders.copy_from_slice(&self.hosts);
            for s in queue[1..].iter().rev() {
                let Some(channel) = paths.next(way, target, *s) else { continue };
                let routes = to * self.senders[*s as usize];
                let load = &mut self.load[channel as usize];
                *load = if on { *load + routes } else { *load - routes };
                self.senders[paths.neighbours[channel as usize] as usize] += self.senders[*s as usize];
            }
        }
    }
}
