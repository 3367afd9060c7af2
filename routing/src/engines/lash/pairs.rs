//! The lanes of `lash`: each pair of switches, both directions, in the first one on which its paths close no cycle of channels.
//!
//! Cost: pairs of switches · hops, each with a short repair of a topological order ([`Acyclic`]).

use std::sync::Arc;

use super::parallel;
use super::paths::Paths;
use crate::engines::acyclic::Acyclic;
use crate::engines::escape;
use crate::engines::layers::swapped;
use crate::engines::room::dependency_starts;
use crate::engines::targets::with_hosts;
use crate::fabric::{SwitchGraph, SwitchIndex};

/// The lane of each pair of switches.
pub(super) struct Layers {
    lanes: Vec<Acyclic>,
    /// By the cells of [`Paths`]: way, target, source.
    pub(super) of_pair: Vec<u8>,
}

impl Layers {
    /// Only pairs of switches with hosts are paths of traffic. The first lane keeps room for the turns `reserved`, pairs of arcs.
    pub(super) fn assign(graph: &SwitchGraph, paths: &Paths, reserved: &[(u32, u32)]) -> Self {
        let count = graph.switch_count();
        let with_hosts = with_hosts(graph);
        let ends: Vec<SwitchIndex> = (0..count as u32).filter(|s| with_hosts[*s as usize]).collect();
        let mut layers =
            Self { lanes: vec![Acyclic::new(paths.neighbours.len())], of_pair: vec![0; paths.next.len()] };
        for (before, after) in paths.turns(graph, reserved) {
            // Turns of a tree close no cycle by themselves.
            layers.lanes[0].insert(before, after);
        }
        let mut dependencies = Vec::new();
        for way in 0..paths.ways {
            for (i, a) in ends.iter().enumerate() {
                for b in &ends[i + 1..] {
                    dependencies.clear();
                    paths.dependencies(way, *a, *b, &mut dependencies);
                    paths.dependencies(way, *b, *a, &mut dependencies);
                    let lane = layers.place(&dependencies, paths.neighbours.len());
                    layers.of_pair[paths.cell(way, *b, *a)] = lane;
                    layers.of_pair[paths.cell(way, *a, *b)] = lane;
                }
            }
        }
        layers
    }

    fn place(&mut self, dependencies: &[(u32, u32)], channels: usize) -> u8 {
        if let Some(number) = self.lanes.iter_mut().position(|lane| lane.insert_all(dependencies)) {
            return number as u8;
        }
        if self.lanes.len() >= usize::from(u8::MAX) {
            return u8::MAX - 1;
        }
        let mut lane = Acyclic::new(channels);
        // A single shortest path and its way back close no cycle: neither meets a channel twice.
        lane.insert_all(dependencies);
        self.lanes.push(lane);
        self.lanes.len() as u8 - 1
    }

    /// Grows a tree of all switches in the last lane that has room for one; that lane and the first change their numbers. `None`
    /// where no lane has room.
    pub(super) fn make_room(
        &mut self,
        graph: &SwitchGraph,
        paths: &Paths,
        parents: &[u32],
    ) -> Option<Arc<[u32]>> {
        let lanes = (0..self.count()).rev().map(|number| (number, self.lanes[usize::from(number)].clone()));
        let fits = |lane: &mut Acyclic, turns: &[(u32, u32)]| lane.insert_all(&paths.turns(graph, turns));
        let (roomy, tree) = escape::find_room(graph, parents, lanes, fits)?;
        fits(&mut self.lanes[usize::from(roomy)], &escape::turns(graph, &tree));
        self.lanes.swap(0, usize::from(roomy));
        self.of_pair.iter_mut().for_each(|lane| *lane = swapped(*lane, roomy));
        Some(tree)
    }

    /// The lanes that have each pair of arcs in a row, as [`Taken::new`] numbers them: those whose channels have it.
    pub(super) fn taken(&self, graph: &SwitchGraph, paths: &Paths) -> Vec<u16> {
        let starts = dependency_starts(graph);
        let mut taken = vec![0; starts[graph.all_arcs().len()] as usize];
        for s in 0..paths.count as u32 {
            for (arc, ends) in (graph.offsets()[s as usize]..).zip(graph.arcs(s)) {
                let Some(channel) = paths.channel(s, ends.to) else { continue };
                let first = starts[arc as usize] as usize;
                for (number, lane) in self.lanes.iter().enumerate() {
                    for on in lane.following(channel) {
                        let to = paths.neighbours[*on as usize];
                        let cables = parallel(graph, ends.to, to);
                        taken[first + cables.start..first + cables.end]
                            .iter_mut()
                            .for_each(|lanes| *lanes |= 1 << number);
                    }
                }
            }
        }
        taken
    }

    pub(super) fn count(&self) -> u8 {
        self.lanes.len() as u8
    }
}
