//! A spanning tree whose turns stand on the first lane before any path: whatever is sent along it there closes no credit loop
//! with the paths, which multicast lives on ([`Routes::spanning`](crate::routes::Routes::spanning)).
//!
//! Every switch hangs below its uppermost neighbour in [`joined_order`], as on the escape tree of `nue`; so on a tree the turns
//! are those of shortest paths or go with them. Cost: the square of the tree's degrees.
//!
//! Where there is no room beforehand, a tree is grown among the dependencies that a lane leaves free when all paths have theirs.
//! Cost: for each link, the degree of its ends on the tree.

use std::sync::Arc;

use super::acyclic::Acyclic;
use super::ranks::{joined_order, upper_arcs};
use crate::fabric::{SwitchGraph, SwitchIndex};

/// The tree: for each switch the arc to its parent, `u32::MAX` for a root.
pub(super) fn parents(graph: &SwitchGraph) -> Arc<[u32]> {
    upper_arcs(graph, &joined_order(graph)).into()
}

/// The number of the arc that comes back where `arc` leads from `s`.
fn back(graph: &SwitchGraph, s: SwitchIndex, arc: &crate::fabric::Arc) -> Option<u32> {
    let key = (s, arc.in_port);
    let place = graph.arcs(arc.to).binary_search_by_key(&key, |back| (back.to, back.out_port)).ok()?;
    Some(graph.offsets()[arc.to as usize] + place as u32)
}

/// Roots by which [`grow`] is tried: the one of [`parents`], and some others.
fn roots(graph: &SwitchGraph) -> impl Iterator<Item = Option<SwitchIndex>> {
    let count = graph.switch_count() as SwitchIndex;
    std::iter::once(None)
        .chain((0..OTHER_ROOTS.min(count)).map(move |n| Some(n * count / OTHER_ROOTS.min(count))))
}

const OTHER_ROOTS: u32 = 8;

/// Grows a tree of all switches in the first of `lanes` that has room for one: the number of the lane, and the tree. `fits` adds the
/// turns that a link brings to a lane, all or none; `parents` as for [`grow`].
pub(super) fn find_room(
    graph: &SwitchGraph,
    parents: &[u32],
    mut lanes: impl Iterator<Item = (u8, Acyclic)>,
    fits: impl Fn(&mut Acyclic, &[(u32, u32)]) -> bool,
) -> Option<(u8, Arc<[u32]>)> {
    lanes.find_map(|(number, lane)| {
        let tree = roots(graph).find_map(|root| {
            let mut lane = lane.clone();
            grow(graph, parents, root, |turns| fits(&mut lane, turns))
        })?;
        Some((number, tree))
    })
}

/// Grows a tree of all switches, from `root` in its part of the fabric and else from the roots of the tree `parents`, link by
/// link; `fits` takes the turns that a link brings, all or none. `None` where some switch can't be joined.
fn grow(
    graph: &SwitchGraph,
    parents: &[u32],
    root: Option<SwitchIndex>,
    mut fits: impl FnMut(&[(u32, u32)]) -> bool,
) -> Option<Arc<[u32]>> {
    let mut up = vec![u32::MAX; graph.switch_count()];
    let mut joined = vec![false; graph.switch_count()];
    // For each switch its arcs on the tree, in and out.
    let mut ends: Vec<Vec<(u32, u32)>> = vec![Vec::new(); graph.switch_count()];
    let tops = (0..).zip(parents).filter(|(_, arc)| **arc == u32::MAX).map(|(s, _)| s);
    for start in root.into_iter().chain(tops) {
        if std::mem::replace(&mut joined[start as usize], true) {
            continue;
        }
        let mut part = vec![start];
        let mut head = 0;
        while let Some(&at) = part.get(head) {
            head += 1;
            for (down, arc) in (graph.offsets()[at as usize]..).zip(graph.arcs(at)) {
                let to = arc.to as usize;
                let Some(back) = back(graph, at, arc).filter(|_| !joined[to]) else { continue };
                let turns = ends[at as usize].iter().flat_map(|(into, out)| [(*into, down), (back, *out)]);
                if fits(&turns.collect::<Vec<_>>()) {
                    (joined[to], up[to]) = (true, back);
                    ends[at as usize].push((back, down));
                    ends[to].push((down, back));
                    part.push(arc.to);
                }
            }
        }
        let left = |s: &SwitchIndex| graph.arcs(*s).iter().any(|arc| !joined[arc.to as usize]);
        if part.iter().any(left) {
            return None;
        }
    }
    Some(up.into())
}

/// The turns of a tree: arcs in pairs, one after the other.
pub(super) fn turns(graph: &SwitchGraph, parents: &[u32]) -> Vec<(u32, u32)> {
    // For each switch its arcs on the tree, in and out.
    let mut ends: Vec<Vec<(u32, u32)>> = vec![Vec::new(); graph.switch_count()];
    for (s, arc) in (0..graph.switch_count() as SwitchIndex).zip(parents) {
        let Some(to) = graph.all_arcs().get(*arc as usize) else { continue };
        let Some(back) = back(graph, s, to) else { continue };
        ends[s as usize].push((back, *arc));
        ends[to.to as usize].push((*arc, back));
    }
    let mut turns = Vec::new();
    for ends in ends {
        for (number, (into, _)) in ends.iter().enumerate() {
            let others = ends.iter().enumerate().filter(|(other, _)| *other != number);
            turns.extend(others.map(|(_, (_, out))| (*into, *out)));
        }
    }
    turns
}
