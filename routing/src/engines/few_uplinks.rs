//! Leaves from which fewer ways lead up than from others of their level, and what the ranks of their hosts are divided by.
//!
//! The divider Π of a level (see [`super::targets`]) supposes that as many hosts of a leaf as it has upper neighbours were told apart
//! below. Where a leaf hangs on one spine and the others on ten, ten hosts of it in a row would choose alike at all that lies above
//! that spine, and one link would carry the routes to them all. So the ranks of its hosts are divided by the product of the
//! upper neighbours that its own ways up pass: at most W(c, k) = (upper neighbours of c) · max W(p, k-1) over these, W(c, 0) = 1. That
//! is done only where it is at most half of Π, lest a lost cable moves the routes to a leaf everywhere. Cost: linear in the
//! links, times the number of levels; memory where a leaf is such a one.

use super::targets::{upper_neighbours, with_hosts};
use crate::fabric::{SwitchGraph, SwitchIndex};

/// The largest divider.
const MOST: u32 = 1 << 20;

/// The levels of switches, and the dividers of the leaves with few ways up.
#[derive(Clone, Debug)]
pub(super) struct FewUplinks {
    level: Vec<u16>,
    /// For each switch with hosts the divider at every level; empty for most.
    dividers: Vec<Box<[u32]>>,
}

impl FewUplinks {
    /// For switches at `level` with the dividers Π.
    pub(super) fn new(graph: &SwitchGraph, level: &[u16], divider: &[u32]) -> Self {
        let top = level.iter().copied().filter(|l| *l != u16::MAX).max().map_or(0, usize::from);
        let mut of_level = vec![1; top + 1];
        for (l, divider) in level.iter().zip(divider).filter(|(l, _)| **l != u16::MAX) {
            of_level[usize::from(*l)] = of_level[usize::from(*l)].max(*divider);
        }
        let mut ways: Vec<Vec<u32>> = vec![vec![1; level.len()]];
        for k in 1..=top {
            let next = (0..level.len() as SwitchIndex).map(|s| widened(graph, level, s, &ways[k - 1]));
            ways.push(next.collect());
        }
        let hosts = with_hosts(graph);
        let dividers = (0..level.len()).map(|s| {
            let here = usize::from(level[s]);
            let own = |l: usize| if l < here { of_level[l] } else { ways[l - here][s] };
            let few = hosts[s] && level[s] != u16::MAX && (here..=top).any(|l| is_few(own(l), of_level[l]));
            if few { (0..=top).map(own).collect() } else { Box::default() }
        });
        Self { dividers: dividers.collect(), level: level.to_vec() }
    }

    /// What a switch divides the ranks of a target switch's end ports by, where that is not its own `divider`.
    pub(super) fn divider(&self, at: SwitchIndex, target: SwitchIndex, divider: u32) -> Option<u32> {
        let own = *self.dividers[target as usize].get(usize::from(self.level[at as usize]))?;
        is_few(own, divider).then_some(own)
    }

    /// Whether switches divide for a target as before, as far as it depends on the target.
    pub(super) fn same_target(&self, old: &Self, target: SwitchIndex) -> bool {
        self.dividers[target as usize] == old.dividers[target as usize]
    }

    /// Whether a switch divides as before, as far as it depends on itself.
    pub(super) fn same_switch(&self, old: &Self, at: SwitchIndex) -> bool {
        self.level[at as usize] == old.level[at as usize]
    }
}

fn is_few(own: u32, divider: u32) -> bool {
    own <= divider / 2
}

/// W(s, k) from all W(p, k-1).
fn widened(graph: &SwitchGraph, level: &[u16], s: SwitchIndex, ways: &[u32]) -> u32 {
    let above = |to: &SwitchIndex| level[*to as usize] == level[s as usize].saturating_add(1);
    let beyond = graph.arcs(s).iter().map(|arc| arc.to).filter(above).map(|to| ways[to as usize]).max();
    upper_neighbours(graph, level, s).max(1).saturating_mul(beyond.unwrap_or(1)).min(MOST)
}
