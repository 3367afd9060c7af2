//! `lash`: shortest paths, layered by pairs of switches.
//!
//! - Input: any graph.
//! - Guarantees: minimal hop counts; no credit loop: each pair of switches (both directions) belongs to the first virtual
//!   lane on which its paths close no cycle of channels. SL = VL by (source switch, switch of the destination). Parallel
//!   cables count as one channel and share the LIDs.
//! - Refuses: when the links have fewer VLs than it needs (says how many).
//! - VLs: 1 on trees, few elsewhere. The paths are first spread over equal neighbours; if that needs more VLs than there are,
//!   all take the neighbour behind the first port, which on regular cabling keeps to dimensions and needs fewer.
//! - Cost: pairs of switches · hops, each with a short repair of a topological order ([`super::acyclic`]) in place of a new
//!   search for cycles. Memory: dependencies for each lane, a next hop for each pair of switches.
//! - Source: Skeie, Lysne, Theiss, LASH (IPDPS 2002).

use super::acyclic::{Acyclic, Insert};
use super::targets::Targets;
use super::{RoutingEngine, RoutingError, RoutingInput};
use crate::fabric::{SwitchGraph, SwitchIndex};
use crate::routes::{LftMatrix, PathSl, Routes};

/// The engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lash;

impl RoutingEngine for Lash {
    fn name(&self) -> &'static str {
        "lash"
    }

    fn route(&self, graph: &SwitchGraph, input: &RoutingInput) -> Result<Routes, RoutingError> {
        let available = input.vls();
        let targets = Targets::new(graph, input);
        let mut needed = u8::MAX;
        for spread in [true, false] {
            let paths = Paths::new(graph, &targets, spread);
            let layers = Layers::assign(graph, &paths);
            needed = needed.min(layers.count());
            if layers.count() <= available {
                return Ok(tables(graph, &targets, &paths, &layers));
            }
        }
        Err(RoutingError::NotEnoughVls { engine: "lash", needed, available })
    }
}

/// Neighbours of switches, parallel cables joined, and the neighbour on the way to each switch.
struct Paths {
    /// Where the neighbours of each switch begin.
    offsets: Vec<u32>,
    neighbours: Vec<SwitchIndex>,
    /// For each (target, switch), the number of the channel taken; `u32::MAX` for none.
    next: Vec<u32>,
    count: usize,
}

impl Paths {
    fn new(graph: &SwitchGraph, targets: &Targets, spread: bool) -> Self {
        let count = graph.switch_count();
        let mut offsets = vec![0];
        let mut neighbours: Vec<SwitchIndex> = Vec::new();
        for s in 0..count as u32 {
            let first = neighbours.len();
            let mut by_port: Vec<_> = graph.arcs(s).iter().map(|a| (a.out_port, a.to)).collect();
            by_port.sort_unstable();
            for (_, to) in by_port {
                if !neighbours[first..].contains(&to) {
                    neighbours.push(to);
                }
            }
            offsets.push(neighbours.len() as u32);
        }
        let mut paths = Self { offsets, neighbours, next: vec![u32::MAX; count * count], count };
        let mut distance = vec![u16::MAX; count];
        let mut queue = Vec::with_capacity(count);
        for target in 0..count as u32 {
            let place = if spread { targets.of(target).last().map_or(target, |t| t.rank) } else { 0 };
            paths.search(target, place, &targets.divider, &mut distance, &mut queue);
        }
        paths
    }

    fn channels(&self, s: SwitchIndex) -> std::ops::Range<u32> {
        self.offsets[s as usize]..self.offsets[s as usize + 1]
    }

    fn search(
        &mut self,
        target: SwitchIndex,
        rank: u32,
        divider: &[u32],
        distance: &mut [u16],
        queue: &mut Vec<SwitchIndex>,
    ) {
        distance.fill(u16::MAX);
        distance[target as usize] = 0;
        queue.clear();
        queue.push(target);
        let mut head = 0;
        while let Some(&at) = queue.get(head) {
            head += 1;
            for channel in self.channels(at) {
                let to = self.neighbours[channel as usize] as usize;
                if distance[to] == u16::MAX {
                    distance[to] = distance[at as usize] + 1;
                    queue.push(to as u32);
                }
            }
        }
        for s in &queue[1..] {
            let nearer =
                |c: &u32| distance[self.neighbours[*c as usize] as usize] + 1 == distance[*s as usize];
            let equal = self.channels(*s).filter(nearer).count() as u32;
            let choice = rank / divider[*s as usize] % equal.max(1);
            let channel = self.channels(*s).filter(nearer).nth(choice as usize);
            self.next[target as usize * self.count + *s as usize] = channel.unwrap_or(u32::MAX);
        }
    }

    /// Calls `visit` for every dependency on the way from `from` to `to`.
    fn dependencies(&self, from: SwitchIndex, to: SwitchIndex, out: &mut Vec<(u32, u32)>) {
        let row = &self.next[to as usize * self.count..(to as usize + 1) * self.count];
        let mut last = row[from as usize];
        while last != u32::MAX {
            let next = row[self.neighbours[last as usize] as usize];
            if next != u32::MAX {
                out.push((last, next));
            }
            last = next;
        }
    }
}

/// The lane of each pair of switches.
struct Layers {
    lanes: Vec<Acyclic>,
    of_pair: Vec<u8>,
    count: usize,
}

impl Layers {
    /// Only pairs of switches with hosts are paths of traffic.
    fn assign(graph: &SwitchGraph, paths: &Paths) -> Self {
        let count = graph.switch_count();
        let mut with_hosts = vec![false; count];
        graph.destinations().iter().filter(|d| d.host).for_each(|d| with_hosts[d.switch as usize] = true);
        let ends: Vec<SwitchIndex> = (0..count as u32).filter(|s| with_hosts[*s as usize]).collect();
        let mut layers = Self {
            lanes: vec![Acyclic::new(paths.neighbours.len())],
            of_pair: vec![0; count * count],
            count,
        };
        let mut dependencies = Vec::new();
        for (i, a) in ends.iter().enumerate() {
            for b in &ends[i + 1..] {
                dependencies.clear();
                paths.dependencies(*a, *b, &mut dependencies);
                paths.dependencies(*b, *a, &mut dependencies);
                let lane = layers.place(&dependencies, paths.neighbours.len());
                layers.of_pair[*a as usize * count + *b as usize] = lane;
                layers.of_pair[*b as usize * count + *a as usize] = lane;
            }
        }
        layers
    }

    fn place(&mut self, dependencies: &[(u32, u32)], channels: usize) -> u8 {
        let mut added = Vec::new();
        for (number, lane) in self.lanes.iter_mut().enumerate() {
            added.clear();
            let fits = dependencies.iter().all(|(x, y)| match lane.insert(*x, *y) {
                Insert::Known => true,
                Insert::Added => {
                    added.push((*x, *y));
                    true
                }
                Insert::Refused => false,
            });
            if fits {
                return number as u8;
            }
            added.drain(..).for_each(|(x, y)| lane.remove(x, y));
        }
        if self.lanes.len() >= usize::from(u8::MAX) {
            return u8::MAX - 1;
        }
        let mut lane = Acyclic::new(channels);
        // A single shortest path and its way back close no cycle: neither meets a channel twice.
        for (x, y) in dependencies {
            lane.insert(*x, *y);
        }
        self.lanes.push(lane);
        self.lanes.len() as u8 - 1
    }

    fn count(&self) -> u8 {
        self.lanes.len() as u8
    }
}

fn tables(graph: &SwitchGraph, targets: &Targets, paths: &Paths, layers: &Layers) -> Routes {
    let mut routes = Routes::empty("lash", graph);
    let mut sl = LftMatrix::new(graph.switch_count(), graph.top_lid());
    let mut cables: Vec<u8> = Vec::new();
    for s in 0..graph.switch_count() as u32 {
        for target in 0..graph.switch_count() as u32 {
            let channel = paths.next[target as usize * paths.count + s as usize];
            cables.clear();
            if channel != u32::MAX {
                let to = paths.neighbours[channel as usize];
                cables.extend(graph.arcs(s).iter().filter(|a| a.to == to).map(|a| a.out_port));
            } else if s != target {
                continue;
            }
            let lane = layers.of_pair[s as usize * layers.count + target as usize];
            for end in targets.of(target) {
                for (offset, lid) in (end.lid..end.lid + end.lids).enumerate() {
                    let lid = usize::from(lid);
                    let cable = cables.get((end.rank as usize + offset) % cables.len().max(1));
                    routes.lfts.row_mut(s)[lid] = cable.copied().unwrap_or(end.port);
                    sl.row_mut(s)[lid] = lane;
                }
            }
        }
    }
    routes.vls = layers.count();
    if routes.vls > 1 {
        routes.sl = PathSl::BySourceSwitch(sl);
    }
    routes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::testing::{check_all, random_fabrics};

    #[test]
    fn every_fabric_is_free_of_credit_loops_with_shortest_paths() {
        let input = RoutingInput { data_vls: 15, ..RoutingInput::default() };
        for (name, fabric) in random_fabrics() {
            let graph = SwitchGraph::new(&fabric);
            let report = check_all(&Lash, &graph, &input);
            assert_eq!(report.hops.detours, 0, "{name}");
            assert!(report.vls <= 8, "{name}: {report}");
            assert!(
                !name.starts_with("tree of two levels") || name.contains("less") || report.vls == 1,
                "{report}"
            );
        }
    }

    #[test]
    fn too_few_lanes_are_refused_with_the_number() {
        let graph = SwitchGraph::new(&crate::fabric::testing::torus(&[5, 5], 1, 0));
        let error = Lash.route(&graph, &RoutingInput { data_vls: 1, ..RoutingInput::default() }).unwrap_err();
        let RoutingError::NotEnoughVls { needed, available: 1, .. } = error else { panic!("{error}") };
        check_all(&Lash, &graph, &RoutingInput { data_vls: needed, ..RoutingInput::default() });
    }
}
