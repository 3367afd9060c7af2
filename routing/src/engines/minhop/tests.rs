use super::*;
use crate::engines::testing::after_each_lost_cable;
use crate::fabric::testing;
use crate::verify;
use mad::types::{Guid, PortNum};

/// Walks every LID from every switch; returns the number of hops of the longest walk.
fn longest_walk(graph: &SwitchGraph, routes: &Routes) -> usize {
    let mut longest = 0;
    for d in graph.destinations() {
        for lid in d.lids() {
            for from in 0..graph.switch_count() as u32 {
                let mut at = from;
                let mut hops = 0;
                while at != d.switch {
                    let port = routes.lfts.row(at)[usize::from(lid)];
                    let arc = graph.arcs(at).iter().find(|a| a.out_port == port);
                    at = arc.unwrap_or_else(|| panic!("no way from {from} at {at} to {lid}")).to;
                    hops += 1;
                    assert!(hops <= graph.switch_count(), "loop to {lid}");
                }
                assert_eq!(routes.lfts.row(at)[usize::from(lid)], d.port);
                longest = longest.max(hops);
            }
        }
    }
    longest
}

#[test]
fn every_lid_is_reached_from_every_switch_on_trees_and_rings() {
    for (fabric, diameter) in [
        (testing::fat_tree(&[4, 4], &[1, 4], 0), 2),
        (testing::fat_tree(&[3, 3, 3], &[1, 3, 3], 0), 4),
        (testing::torus(&[5], 2, 1), 2),
        (testing::torus(&[4, 3, 3], 1, 2), 4),
    ] {
        let graph = SwitchGraph::new(&fabric);
        let routes = MinHop.route(&graph, &RoutingInput::default()).unwrap();
        assert_eq!(longest_walk(&graph, &routes), diameter);
    }
}

#[test]
fn every_uplink_of_a_fat_tree_carries_the_same_number_of_hosts() {
    let fabric = testing::fat_tree(&[4, 4, 4], &[1, 4, 4], 0);
    let graph = SwitchGraph::new(&fabric);
    let routes = MinHop.route(&graph, &RoutingInput::default()).unwrap();
    for s in 0..graph.switch_count() as u32 {
        let mut count = [0_usize; 16];
        for d in graph.destinations().iter().filter(|d| d.host && d.switch != s) {
            count[usize::from(routes.lfts.port(s, d.lid))] += 1;
        }
        let used: Vec<usize> = count.into_iter().filter(|c| *c > 0).collect();
        let up: Vec<usize> = used.iter().copied().filter(|c| *c != 4 && *c != 1).collect();
        assert!(up.iter().all(|c| *c == up[0]), "switch {s}: {used:?}");
    }
}

#[test]
fn lids_of_one_port_take_different_neighbours() {
    let fabric = testing::fat_tree(&[2, 4], &[1, 4], 2);
    let graph = SwitchGraph::new(&fabric);
    let routes = MinHop.route(&graph, &RoutingInput::default()).unwrap();
    for d in graph.destinations().iter().filter(|d| d.host) {
        for s in (0..graph.switch_count() as u32).filter(|s| *s != d.switch && graph.arcs(*s).len() == 4) {
            let mut ports: Vec<u8> = d.lids().map(|lid| routes.lfts.row(s)[usize::from(lid)]).collect();
            ports.sort_unstable();
            ports.dedup();
            let leaf = targets_hosts(&graph, s);
            assert!(!leaf || ports.len() == 4, "switch {s}, {:?}", d.lid);
        }
    }
}

fn targets_hosts(graph: &SwitchGraph, s: u32) -> bool {
    graph.destinations().iter().any(|d| d.host && d.switch == s)
}

#[test]
fn the_number_of_threads_does_not_change_a_byte() {
    let fabric = testing::torus(&[4, 4, 4], 3, 1);
    let graph = SwitchGraph::new(&fabric);
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| MinHop.route(&graph, &RoutingInput::default()).unwrap())
    };
    assert_eq!(with(1), with(3));
}

#[test]
fn a_heavy_hop_is_avoided() {
    let fabric = testing::torus(&[4], 1, 0);
    let graph = SwitchGraph::new(&fabric);
    let heavy = graph.arcs(0)[0];
    let mut input = RoutingInput::default();
    input.hop_weights.insert((graph.guid(0), PortNum(heavy.out_port)), 10);
    let routes = MinHop.route(&graph, &input).unwrap();
    longest_walk(&graph, &routes);
    assert!(graph.destinations().iter().all(|d| routes.lfts.port(0, d.lid) != heavy.out_port));
    assert!(graph.guid(0) != Guid(0));
}

/// A leaf that hangs below one spine of many, by two cables: its hosts share both, by every engine that deals by rank.
#[test]
fn parallel_cables_to_a_leaf_with_few_uplinks_share_its_hosts() {
    let graph = SwitchGraph::new(&testing::tree_with_a_small_leaf(0));
    let small = graph.destinations().iter().filter(|d| d.host).map(|d| d.switch).max().unwrap();
    let hosts: Vec<_> = graph.destinations().iter().filter(|d| d.host && d.switch == small).collect();
    assert_eq!(hosts.len(), 5);
    let spine = graph.arcs(small)[0].to;
    for engine in ["minhop", "updn", "dnup", "ftree"] {
        let routes =
            crate::engines::by_name(engine).unwrap().route(&graph, &RoutingInput::default()).unwrap();
        let over = |port: u8| hosts.iter().filter(|d| routes.lfts.port(spine, d.lid) == port).count();
        let mut shares: Vec<usize> =
            graph.arcs(spine).iter().filter(|arc| arc.to == small).map(|arc| over(arc.out_port)).collect();
        shares.sort_unstable();
        assert_eq!(shares, [2, 3], "{engine}");
    }
}

/// Leaves that fewer ways lead to than to others: the routes to their hosts lie as evenly on the links above the spine as on those that
/// all of them have to take, by the engines that deal by rank (`dnup` has no legal path between the two leaves).
#[test]
fn ways_to_a_leaf_with_few_uplinks_part_above_its_spine() {
    let graph = SwitchGraph::new(&testing::tall_tree_with_small_leaves(0));
    let hosts = graph.destinations().iter().filter(|d| d.host).count();
    // Four hosts of such a leaf, from all others, over two links: the cables of one leaf, or the tops above the other.
    let least = 4 * (hosts - 4) / 2;
    for engine in ["minhop", "updn", "ftree"] {
        let routes =
            crate::engines::by_name(engine).unwrap().route(&graph, &RoutingInput::default()).unwrap();
        let report = verify::check(&graph, &routes, verify::Options::default());
        assert_eq!(report.balance.max as usize, least, "{engine}");
    }
}

/// What a lost cable of a leaf carried is parted over all its others, in both directions: from nothing, and from tables in force.
#[test]
fn a_lost_cable_is_shared_by_all_others_of_its_leaf() {
    let whole = testing::fat_tree(&[6, 12], &[1, 6], 0);
    for engine in ["minhop", "updn", "ftree", "sssp", "dfsssp"] {
        after_each_lost_cable(engine, &whole, |link, less, routes| {
            let worst = verify::check(less, &routes, verify::Options::default()).balance.max;
            // 66 routes, six to each of eleven leaves or from them, and those of a lost cable over five.
            assert!(worst <= 66 + 18, "{engine}, without {link:?}: {worst}");
        });
    }
}
