//! Links that trained below what both ends can do: one slow cable drags everybody whose packets cross it.

use std::cmp::Reverse;
use std::collections::HashSet;

use super::{Fabric, Link, Port, PortRef};

/// The links between switches whose width or speed is less than the best that both ends support.
pub fn degraded_links(fabric: &Fabric) -> Vec<Link> {
    let degraded = |link: &&Link| {
        let (Some(a), Some(b)) = (fabric.port(link.a), fabric.port(link.b)) else { return false };
        between_switches(fabric, link) && (below(a, b, a) || below(a, b, b))
    };
    fabric.links().filter(degraded).copied().collect()
}

fn between_switches(fabric: &Fabric, link: &Link) -> bool {
    fabric.node(link.a.node).is_switch() && fabric.node(link.b.node).is_switch()
}

/// Whether `end` of the link between `a` and `b` runs below the best of both.
fn below(a: &Port, b: &Port, end: &Port) -> bool {
    let widest = mad::types::LinkWidthSet(a.widths_supported.0 & b.widths_supported.0).widest();
    let fastest = mad::types::LinkSpeedSet(a.speeds_supported.0 & b.speeds_supported.0).fastest();
    let slow =
        |best: Option<u64>, now: Option<u64>| matches!((best, now), (Some(best), Some(now)) if now < best);
    slow(widest.map(|w| u64::from(w.lanes())), end.width.map(|w| u64::from(w.lanes())))
        || slow(fastest.map(|s| u64::from(s.lane_mbps())), end.speed.map(|s| u64::from(s.lane_mbps())))
}

/// The ends of degraded links that can be left out without cutting anything off that the usable links join.
pub(super) fn avoidable(fabric: &Fabric, usable: impl Fn(&Link) -> bool) -> HashSet<PortRef> {
    let bound = fabric.node_ids().map(|id| id.index() + 1).max().unwrap_or(0);
    let mut joined = petgraph::unionfind::UnionFind::<usize>::new(bound);
    let degraded: HashSet<Link> = degraded_links(fabric).into_iter().filter(|link| usable(link)).collect();
    for link in fabric.links().filter(|link| usable(link) && !degraded.contains(link)) {
        joined.union(link.a.node.index(), link.b.node.index());
    }
    let rate = |link: &Link| {
        let port = fabric.port(link.a);
        let lanes = port.and_then(|p| p.width).map_or(0, |w| u64::from(w.lanes()));
        lanes * port.and_then(|p| p.speed).map_or(0, |s| u64::from(s.lane_mbps()))
    };
    let guids = |link: &Link| [link.a, link.b].map(|end| (fabric.node(end.node).guid, end.port));
    let mut order: Vec<Link> = degraded.into_iter().collect();
    order.sort_by_key(|link| {
        let mut ends = guids(link);
        ends.sort_unstable();
        (Reverse(rate(link)), ends)
    });
    let mut needed = |link: &Link| joined.union(link.a.node.index(), link.b.node.index());
    order.into_iter().filter(|link| !needed(link)).flat_map(|link| [link.a, link.b]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::{SwitchGraph, testing};
    use mad::types::{LinkSpeed, LinkSpeedSet, LinkWidth, LinkWidthSet};

    /// B28: `tree(4,2,4)` with one uplink at 1x: it is left out; when the other uplink of that leaf is gone it is used.
    #[test]
    fn b28_a_slow_uplink_is_avoided_unless_nothing_else_reaches() {
        let mut fabric = testing::fat_tree(&[4, 4], &[1, 2], 0);
        let ends: Vec<PortRef> = fabric.links().flat_map(|l| [l.a, l.b]).collect();
        for end in &ends {
            let port = fabric.node_mut(end.node).port_mut(end.port).unwrap();
            (port.widths_supported, port.speeds_supported) = (LinkWidthSet(3), LinkSpeedSet(0b10_0111));
            (port.width, port.speed) = (Some(LinkWidth::X4), Some(LinkSpeed::Edr));
        }
        let uplinks: Vec<Link> = fabric.links().filter(|l| between_switches(&fabric, l)).copied().collect();
        for end in [uplinks[0].a, uplinks[0].b] {
            fabric.node_mut(end.node).port_mut(end.port).unwrap().width = Some(LinkWidth::X1);
        }
        assert_eq!(degraded_links(&fabric), [uplinks[0]]);
        let all = SwitchGraph::new(&fabric).all_arcs().len();
        assert_eq!(SwitchGraph::avoiding_degraded(&fabric).all_arcs().len(), all - 2);
        // The leaf's other uplink goes.
        fabric.disconnect(uplinks[1].a);
        let whole = SwitchGraph::new(&fabric).all_arcs().len();
        assert_eq!(SwitchGraph::avoiding_degraded(&fabric).all_arcs().len(), whole);
    }
}
