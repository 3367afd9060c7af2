//! Hosts that are away: while nothing else takes their place, the tables are those that they would be if the hosts were there, less
//! the entries to them.
//!
//! Engines deal out LIDs by rank among the hosts of a leaf, or one after the other by the load of those before. A host that is
//! switched off, or only reboots, would so move the routes to its neighbours, or to half of the fabric, and move them back when
//! it returns: no event is more frequent on a large fabric, and none of these entries has to move. So a host is remembered
//! with its port and its LIDs until another end or a cable is at its port, its GUID comes up elsewhere, a LID of its is
//! another's, or its switch is gone. The tables then depend on the picture and on who is away (B24: in whatever order they went); a
//! manager that takes over knows of nobody who is away. Cost: linear in the end ports, and a copy of the tables while somebody is away.

use std::sync::Arc;

use mad::types::{Guid, NodeType};
use rustc_hash::FxHashSet;

use crate::fabric::{Destination, SwitchGraph};
use crate::routes::{NO_PORT, Routes};

/// A fabric with the hosts that are away.
pub(super) struct Whole {
    /// All of it.
    pub(super) graph: Arc<SwitchGraph>,
    /// The LIDs of those who are away.
    away: Vec<u16>,
}

/// `graph` with the hosts of `before` that are away; `None` where nobody is.
pub(super) fn with_absent(graph: &SwitchGraph, before: &SwitchGraph) -> Option<Whole> {
    let same = |(a, b): (&Destination, &Destination)| a.guid == b.guid;
    let (now, then) = (graph.destinations(), before.destinations());
    if now.len() == then.len() && now.iter().zip(then).all(same) {
        return None; // nearly always
    }
    let here: FxHashSet<Guid> = now.iter().map(|d| d.guid).collect();
    let ports: FxHashSet<(u32, u8)> = now.iter().map(|d| (d.switch, d.port)).collect();
    let lids: FxHashSet<u16> = now.iter().flat_map(Destination::lids).collect();
    let mut away = Vec::new();
    for d in then.iter().filter(|d| d.kind != NodeType::Switch && !here.contains(&d.guid)) {
        let Some(switch) = graph.find(before.guid(d.switch)) else { continue };
        let cabled = graph.arcs(switch).iter().any(|arc| arc.out_port == d.port);
        let taken = cabled || ports.contains(&(switch, d.port)) || d.lids().any(|lid| lids.contains(&lid));
        if !taken {
            away.push(Destination { switch, ..*d });
        }
    }
    (!away.is_empty()).then(|| Whole {
        away: away.iter().flat_map(Destination::lids).collect(),
        graph: Arc::new(graph.with_destinations(away)),
    })
}

impl Whole {
    /// Takes the entries to those who are away out of routes for all: they are then routes for those who are there.
    pub(super) fn leave_out(&self, routes: &mut Routes) {
        let stride = routes.lfts.stride();
        routes.lfts.par_change_rows(|_, row| {
            for lid in self.away.iter().map(|lid| usize::from(*lid)).filter(|lid| *lid < stride) {
                row.with(lid..lid + 1)[lid] = NO_PORT;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use mad::types::{Lid, PortNum};
    use rand::seq::SliceRandom;

    use super::*;
    use crate::engines::{NO_FALLBACK, RoutingInput, Standing, names, route_chain_from};
    use crate::fabric::{Fabric, NodeId, PortRef, testing};
    use crate::verify;

    const PORT: PortNum = PortNum(1);

    fn fabrics() -> Vec<(&'static str, Fabric)> {
        vec![
            ("tree of three levels", testing::fat_tree(&[3, 4, 3], &[1, 3, 2], 0)),
            ("tree, LMC 1", testing::fat_tree(&[3, 4], &[1, 2], 1)),
            ("small leaf", testing::tree_with_a_small_leaf(0)),
            ("torus", testing::torus(&[4, 4], 2, 0)),
            ("dragonfly+", testing::dragonfly_plus(5, 3, 3)),
        ]
    }

    /// Engines that need nothing but the fabric.
    fn engines() -> impl Iterator<Item = &'static str> {
        names().filter(|name| !["file", "adaptive-minhop"].contains(name))
    }

    fn hosts(fabric: &Fabric) -> Vec<NodeId> {
        fabric.nodes().filter(|(_, node)| !node.is_switch()).map(|(id, _)| id).collect()
    }

    fn route(engine: &str, fabric: &Fabric, before: Option<&Standing>) -> Option<(Routes, Standing)> {
        let graph = Arc::new(SwitchGraph::new(fabric));
        let input = RoutingInput { data_vls: 8, ..RoutingInput::default() };
        let chained = route_chain_from(&[engine, NO_FALLBACK], &graph, &input, before).ok()?;
        let report = verify::check(&graph, &chained.routes, verify::Options::default());
        assert!(report.reaches_all(), "{engine}: {report}");
        Some((chained.routes, chained.standing))
    }

    /// How many entries, and service levels, to the hosts of `fabric` differ.
    fn moved(fabric: &Fabric, a: &Routes, b: &Routes) -> usize {
        let graph = SwitchGraph::new(fabric);
        let lids: Vec<Lid> =
            graph.destinations().iter().flat_map(Destination::lids).filter_map(Lid::new).collect();
        let of = |s: u32| {
            let differ = |lid: &&Lid| {
                a.lfts.port(s, **lid) != b.lfts.port(s, **lid) || a.path_sl(s, **lid) != b.path_sl(s, **lid)
            };
            lids.iter().filter(differ).count()
        };
        (0..graph.switch_count() as u32).map(of).sum()
    }

    /// Hosts go in some order and come back in another: nobody else's route moves, theirs are gone, and at the end the tables are
    /// those of the beginning.
    #[test]
    fn b24_a_host_that_goes_and_comes_back_moves_nobody_elses_routes() {
        let mut random = testing::seeded(3);
        let mut routed = 0;
        for (name, whole) in fabrics() {
            for engine in engines() {
                let Some((first, mut standing)) = route(engine, &whole, None) else { continue };
                routed += 1;
                let mut order = hosts(&whole);
                order.shuffle(&mut random);
                let links: Vec<_> =
                    order.iter().take(5).map(|id| PortRef { node: *id, port: PORT }).collect();
                let mut fabric = whole.clone();
                for end in &links {
                    fabric.disconnect(*end);
                    let (routes, next) = route(engine, &fabric, Some(&standing)).expect("it took more");
                    assert_eq!(moved(&fabric, &first, &routes), 0, "{engine} on {name}");
                    for end in links.iter().filter(|end| fabric.peer(**end).is_none()) {
                        let lid = whole.port(*end).and_then(|port| port.lid).expect("a LID");
                        let rows = 0..routes.lfts.switch_count() as u32;
                        assert!(rows.into_iter().all(|s| routes.lfts.port(s, lid) == NO_PORT), "{engine}");
                    }
                    standing = next;
                }
                for end in links.iter().rev() {
                    fabric.connect(*end, whole.peer(*end).expect("a cable")).expect("free");
                    let (routes, next) = route(engine, &fabric, Some(&standing)).expect("it took more");
                    assert_eq!(moved(&fabric, &first, &routes), 0, "{engine} on {name}");
                    standing = next;
                }
                let (routes, _) = route(engine, &fabric, Some(&standing)).expect("as at first");
                assert!(routes == first, "{engine} on {name}: not the tables of the beginning");
            }
        }
        assert!(routed > 25, "{routed}");
    }

    /// Who goes and who loses a cable between switches, in whatever order: the same tables.
    #[test]
    fn b24_tables_depend_on_who_is_away_and_not_on_the_order() {
        let whole = testing::fat_tree(&[3, 4, 3], &[1, 3, 2], 0);
        let end = |node| PortRef { node, port: PORT };
        let host = end(hosts(&whole)[7]);
        let cable = testing::between_switches(&whole)[0].a;
        for engine in ["minhop", "updn", "ftree", "dfsssp", "sssp"] {
            let ways = [[host, cable], [cable, host]].map(|order| {
                let (_, mut standing) = route(engine, &whole, None).expect("a tree");
                let mut fabric = whole.clone();
                let mut last = None;
                for end in order {
                    fabric.disconnect(end);
                    let (routes, next) = route(engine, &fabric, Some(&standing)).expect("a tree");
                    (last, standing) = (Some(routes), next);
                }
                last
            });
            assert!(ways[0] == ways[1], "{engine}");
        }
    }

    /// Somebody else at the port, a LID that is another's, a host that moved: the one who was away is forgotten.
    #[test]
    fn a_place_that_is_taken_is_nobody_elses() {
        let whole = testing::fat_tree(&[3, 4], &[1, 2], 0);
        let before = SwitchGraph::new(&whole);
        let all = hosts(&whole);
        let (gone, other) = (PortRef { node: all[2], port: PORT }, PortRef { node: all[9], port: PORT });
        let place = whole.peer(gone).expect("a cable");
        let mut away = whole.clone();
        away.disconnect(gone);
        let count = |fabric: &Fabric| {
            let graph = SwitchGraph::new(fabric);
            with_absent(&graph, &before)
                .map_or(0, |whole| whole.graph.destinations().len() - graph.destinations().len())
        };
        assert_eq!((count(&whole), count(&away)), (0, 1));
        let mut replaced = away.clone();
        replaced.disconnect(other);
        replaced.connect(other, place).expect("free");
        assert_eq!(count(&replaced), 0, "another at its port; and that one is not away");
        let mut lid_taken = away.clone();
        let lid = whole.port(gone).and_then(|port| port.lid);
        lid_taken.node_mut(other.node).port_mut(PORT).expect("a port").lid = lid;
        assert_eq!(count(&lid_taken), 0);
    }
}
