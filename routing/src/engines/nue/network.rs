//! The channels and their dependencies, as all lanes see them, and the tree that is every lane's escape at first.

use std::ops::Range;

use crate::engines::ranks::{joined_order, upper_arcs};
use crate::engines::room::dependency_starts;
use crate::fabric::{Arc, SwitchGraph, SwitchIndex};

pub(super) const NONE: u32 = u32::MAX;

/// What all lanes share.
pub(super) struct Network<'g> {
    pub(super) graph: &'g SwitchGraph,
    /// Hosts of each switch.
    pub(super) hosts: Vec<u64>,
    /// The switch that each arc leaves.
    pub(super) from: Vec<SwitchIndex>,
    /// The switch that each arc leads to.
    pub(super) to: Vec<SwitchIndex>,
    /// The arc back over the cable of each arc.
    pub(super) reverse: Vec<u32>,
    /// Dependencies are numbered by their first arc, then by their second one: where those of each arc begin, less the number
    /// of the first arc that can follow.
    base: Vec<u32>,
    pub(super) dependencies: usize,
}

impl<'g> Network<'g> {
    pub(super) fn new(graph: &'g SwitchGraph) -> Self {
        let (arcs, from, starts) = (graph.all_arcs(), graph.sources(), dependency_starts(graph));
        let base = |(start, arc): (&u32, &Arc)| start.wrapping_sub(graph.offsets()[arc.to as usize]);
        let reverse = |(s, arc): (&SwitchIndex, &Arc)| graph.back(*s, arc).unwrap_or(NONE);
        Self {
            graph,
            hosts: graph.hosts(),
            to: arcs.iter().map(|arc| arc.to).collect(),
            reverse: from.iter().zip(arcs).map(reverse).collect(),
            from,
            base: starts.iter().zip(arcs).map(base).collect(),
            dependencies: starts[arcs.len()] as usize,
        }
    }

    pub(super) fn arcs(&self, s: SwitchIndex) -> Range<u32> {
        self.graph.arc_range(s)
    }

    /// The number of the dependency of packets that come over `arc` and go on over `on`.
    pub(super) fn dependency(&self, arc: u32, on: u32) -> usize {
        self.base[arc as usize].wrapping_add(on) as usize
    }
}

/// The escape tree of tables from nothing.
pub(super) struct Escape {
    /// For each switch the arc to its parent, [`NONE`] for a root.
    pub(super) parent: Vec<u32>,
    /// The place of each arc in an order in which arcs upwards come first, the lowest first, then arcs downwards.
    pub(super) places: Vec<u32>,
}

impl Escape {
    pub(super) fn new(network: &Network<'_>) -> Self {
        let order = joined_order(network.graph);
        Self { places: places(network, &order), parent: upper_arcs(network.graph, &order) }
    }
}

/// The places of arcs in an order that is forwards along every path up and down again: arcs upwards, the lowest first, then arcs
/// downwards, the uppermost first. `order` has the place of each switch, the uppermost 0.
fn places(network: &Network<'_>, order: &[u32]) -> Vec<u32> {
    let key = |arc: &u32| {
        let (from, to) = (network.from[*arc as usize], network.to[*arc as usize]);
        let (from, to) = (i64::from(order[from as usize]), i64::from(order[to as usize]));
        if to < from { (0, -from) } else { (1, from) }
    };
    let mut arcs: Vec<u32> = (0..network.to.len() as u32).collect();
    arcs.sort_by_key(key);
    let mut places = vec![0; arcs.len()];
    (0..).zip(arcs).for_each(|(place, arc)| places[arc as usize] = place);
    places
}
