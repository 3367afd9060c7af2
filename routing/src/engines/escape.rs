//! A spanning tree whose turns stand on the first lane before any path: whatever is sent along it there closes no credit loop
//! with the paths, which multicast lives on ([`Routes::spanning`](crate::routes::Routes::spanning)).
//!
//! Every switch hangs below its uppermost neighbour in [`joined_order`], as on the escape tree of `nue`; so on a tree the turns
//! are those of shortest paths or go with them. Cost: the square of the tree's degrees.
//!
//! After lost links the parts that are left of a tree are joined by other links, and only where no links fit, a whole other tree is
//! grown in the same lane. `nue` has one in each of its lanes, which may differ then.
//!
//! Where there is no room beforehand, a tree is grown among the dependencies that a lane leaves free when all paths have theirs.
//! Cost: for each link, the degree of its ends on the tree.

use std::sync::Arc;

use super::ranks::{joined_order, upper_arcs};
use super::room::Lane;
use crate::fabric::{LinkChange, SwitchGraph, SwitchIndex};

/// The tree: for each switch the arc to its parent, `u32::MAX` for a root.
pub(super) fn parents(graph: &SwitchGraph) -> Arc<[u32]> {
    upper_arcs(graph, &joined_order(graph)).into()
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
pub(super) fn find_room<L: Clone>(
    graph: &SwitchGraph,
    parents: &[u32],
    mut lanes: impl Iterator<Item = (u8, L)>,
    fits: impl Fn(&mut L, &[(u32, u32)]) -> bool,
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
                let Some(back) = graph.back(at, arc).filter(|_| !joined[to]) else { continue };
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

/// The tree `parents` of the first graph for the second one, which lost links; `lane` takes the turns of links that join its parts.
/// `None` where that has no room for a tree of all switches.
pub(super) fn mend(
    parents: &[u32],
    (old, graph): (&SwitchGraph, &SwitchGraph),
    links: &LinkChange,
    lane: &mut Lane<'_>,
) -> Option<Arc<[u32]>> {
    let left = left_of(parents, old, links);
    let mut added = Vec::new();
    let joined = join(graph, left, |turns| lane.take_all(turns, &mut added));
    if joined.is_some() {
        return joined;
    }
    lane.give_back(added);
    let alone = std::iter::once((0, lane.clone()));
    let fits = |lane: &mut Lane<'_>, turns: &[(u32, u32)]| lane.take_all(turns, &mut Vec::new());
    let (_, tree) = find_room(graph, &self::parents(graph), alone, fits)?;
    fits(lane, &turns(graph, &tree)).then_some(tree)
}

/// What lost links left of the tree `parents` of the first graph, for the second one.
pub(super) fn left_of(parents: &[u32], old: &SwitchGraph, links: &LinkChange) -> Vec<u32> {
    let new_arc = links.new_arcs(old.all_arcs().len());
    parents.iter().map(|arc| new_arc.get(*arc as usize).copied().unwrap_or(u32::MAX)).collect()
}

/// Joins the parts of a tree by links that fit, those nearest to the tops of both parts first, lest ways along the tree get long. `None`
/// where some don't come together that the fabric joins.
fn join(
    graph: &SwitchGraph,
    mut up: Vec<u32>,
    mut fits: impl FnMut(&[(u32, u32)]) -> bool,
) -> Option<Arc<[u32]>> {
    let arcs = graph.all_arcs();
    let top = |mut s: SwitchIndex| {
        let mut depth = 0;
        while let Some(arc) = arcs.get(up[s as usize] as usize) {
            (s, depth) = (arc.to, depth + 1);
        }
        (s, depth)
    };
    let (mut tops, depths): (Vec<SwitchIndex>, Vec<u32>) = (0..up.len() as SwitchIndex).map(top).unzip();
    let mut between = Vec::new();
    for s in 0..up.len() as SwitchIndex {
        let out = (graph.offsets()[s as usize]..).zip(graph.arcs(s));
        let others = out.filter(|(_, arc)| tops[arc.to as usize] != tops[s as usize]);
        between.extend(others.map(|(down, arc)| (depths[s as usize] + depths[arc.to as usize], s, down)));
    }
    between.sort_unstable();
    let mut ends = ends(graph, &up);
    let mut refused = false;
    for (_, s, down) in between {
        let arc = &arcs[down as usize];
        let (upper, lower) = (tops[s as usize], tops[arc.to as usize]);
        if upper == lower {
            continue;
        }
        let Some(back) = graph.back(s, arc) else { continue };
        let above = ends[s as usize].iter().flat_map(|(into, out)| [(*into, down), (back, *out)]);
        let below = ends[arc.to as usize].iter().flat_map(|(into, out)| [(*into, back), (down, *out)]);
        if !fits(&above.chain(below).collect::<Vec<_>>()) {
            refused = true;
            continue;
        }
        ends[s as usize].push((back, down));
        ends[arc.to as usize].push((down, back));
        tops.iter_mut().filter(|top| **top == lower).for_each(|top| *top = upper);
        // What was above the lower end hangs below it now.
        let (mut at, mut turned) = (arc.to, back);
        while let Some(above) = arcs.get(std::mem::replace(&mut up[at as usize], turned) as usize) {
            turned = graph.back(at, above)?;
            at = above.to;
        }
    }
    let apart = |s: SwitchIndex| graph.arcs(s).iter().any(|arc| tops[arc.to as usize] != tops[s as usize]);
    (!refused || !(0..up.len() as SwitchIndex).any(apart)).then(|| up.into())
}

/// The turns of a tree: arcs in pairs, one after the other.
pub(super) fn turns(graph: &SwitchGraph, parents: &[u32]) -> Vec<(u32, u32)> {
    let mut turns = Vec::new();
    for ends in ends(graph, parents) {
        for (number, (into, _)) in ends.iter().enumerate() {
            let others = ends.iter().enumerate().filter(|(other, _)| *other != number);
            turns.extend(others.map(|(_, (_, out))| (*into, *out)));
        }
    }
    turns
}

/// For each switch its arcs on a tree, in and out.
fn ends(graph: &SwitchGraph, parents: &[u32]) -> Vec<Vec<(u32, u32)>> {
    let mut ends: Vec<Vec<(u32, u32)>> = vec![Vec::new(); graph.switch_count()];
    for (s, arc) in (0..graph.switch_count() as SwitchIndex).zip(parents) {
        let Some(to) = graph.all_arcs().get(*arc as usize) else { continue };
        let Some(back) = graph.back(s, to) else { continue };
        ends[s as usize].push((back, *arc));
        ends[to.to as usize].push((*arc, back));
    }
    ends
}
