//! Against results known from the literature and against counts made in the plainest way.

use super::*;
use crate::engines::{FatTree, MinHop, RoutingEngine, RoutingInput, Sssp};
use crate::fabric::testing;
use crate::routes::NO_PORT;

fn routed(engine: &dyn RoutingEngine, graph: &SwitchGraph) -> LftMatrix {
    engine.route(graph, &RoutingInput { data_vls: 8, ..RoutingInput::default() }).unwrap().lfts
}

/// Zahavi: on an intact tree with full bisection D-mod-K carries every shift without contention.
#[test]
fn every_shift_is_free_of_contention_on_a_whole_fat_tree() {
    for fabric in [testing::fat_tree(&[4, 4], &[1, 4], 0), testing::fat_tree(&[3, 3, 3], &[1, 3, 3], 0)] {
        let graph = SwitchGraph::new(&fabric);
        let found = run(&graph, &routed(&FatTree, &graph), &Pattern::Shift);
        let hosts = graph.destinations().iter().filter(|d| d.host).count();
        assert_eq!((found.rounds, found.free), (hosts - 1, hosts - 1));
        assert_eq!((found.worst.max, found.bandwidth.min, found.lost), (1.0, 1.0, 0));
        assert_eq!(found.histogram, Histogram { width: 1, counts: vec![found.flows] });
    }
}

/// Full-bisection trees have an effective bisection bandwidth of 0.5 to 0.6 under any static routing (CLUSTER 2008).
#[test]
fn effective_bisection_bandwidth_of_a_full_tree_is_as_published() {
    let graph = SwitchGraph::new(&testing::fat_tree(&[8, 8, 4], &[1, 8, 8], 0));
    let tables = routed(&FatTree, &graph);
    let found = run(&graph, &tables, &Pattern::Bisection { rounds: 100, seed: 1 });
    assert!((0.5..0.62).contains(&found.bandwidth.mean), "{:?}", found.bandwidth);
    assert_eq!(found.flows, 256 * 100);
    let again = run(&graph, &tables, &Pattern::Bisection { rounds: 100, seed: 1 });
    let other = run(&graph, &tables, &Pattern::Bisection { rounds: 100, seed: 2 });
    assert_eq!(found, again);
    assert_ne!(found, other);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    assert_eq!(found, pool.install(|| run(&graph, &tables, &Pattern::Bisection { rounds: 100, seed: 1 })));
}

/// All-to-all by switches against the flows one by one, and against the verifier's count of routes.
#[test]
fn all_to_all_is_the_sum_of_all_flows() {
    let mut random = testing::seeded(3);
    for fabric in [testing::random(9, 4, 3, &mut random), testing::fat_tree(&[2, 3, 2], &[1, 2, 2], 0)] {
        let graph = SwitchGraph::new(&fabric);
        let routes = Sssp.route(&graph, &RoutingInput::default()).unwrap();
        let found = run(&graph, &routes.lfts, &Pattern::AllToAll);
        let hosts: Vec<u32> = (0..graph.destinations().len() as u32)
            .filter(|i| graph.destinations()[*i as usize].host)
            .collect();
        let pairs = hosts.iter().flat_map(|a| hosts.iter().map(move |b| (*a, *b))).filter(|(a, b)| a != b);
        let flows = pairs.map(|(source, destination)| Flow { source, destination, weight: 1 }).collect();
        let single = run(&graph, &routes.lfts, &Pattern::Flows(flows));
        assert_eq!((&found.links, &found.histogram), (&single.links, &single.histogram));
        assert!((found.bandwidth.mean - single.bandwidth.mean).abs() < 1e-9);
        let balance = crate::verify::check(&graph, &routes, crate::verify::Options::default()).balance;
        assert_eq!((found.worst.max, found.unused), (f64::from(balance.max), balance.unused));
        assert!((found.mean_load - balance.mean).abs() < 1e-9);
    }
}

/// Two leaves joined by one cable, three hosts each: all that crosses shares it.
#[test]
fn weights_share_a_link_in_proportion() {
    let mut builder = testing::Builder::new(8);
    let (a, b) = (builder.switch(), builder.switch());
    builder.link(a, b);
    for switch in [a, a, a, b, b, b] {
        builder.host(switch);
    }
    let graph = SwitchGraph::new(&builder.finish(0));
    let tables = routed(&MinHop, &graph);
    let flow = |source, destination, weight| Flow { source, destination, weight };
    let flows = vec![flow(0, 3, 3), flow(1, 4, 1), flow(2, 0, 1)];
    let found = run(&graph, &tables, &Pattern::Flows(flows.clone()));
    // 3/4 and 1/4 of the cable, and the third has its way for itself.
    assert!((found.bandwidth.mean - (0.75 + 0.25 + 1.0) / 3.0).abs() < 1e-9, "{:?}", found.bandwidth);
    assert_eq!((found.worst.max, found.links.as_slice(), found.unused), (4.0, &[4, 0][..], 1));
    assert_eq!(found.histogram, Histogram { width: 1, counts: vec![1, 0, 0, 2] });

    let mut holed = tables;
    holed.row_mut(0)[usize::from(graph.destinations()[3].lid.get())] = NO_PORT;
    let found = run(&graph, &holed, &Pattern::Flows(flows));
    assert_eq!((found.lost, found.flows, found.worst.max), (1, 2, 1.0));
    assert!((found.bandwidth.mean - 1.0).abs() < 1e-9);
}

/// Who shares no link with the hot spot's traffic keeps what he has; the aggressors themselves are not counted.
#[test]
fn victims_of_a_hot_spot_suffer_on_shared_links_only() {
    let alone = SwitchGraph::new(&testing::fat_tree(&[16], &[1], 0));
    let found = run(&alone, &routed(&MinHop, &alone), &Pattern::HotSpot { rounds: 20, seed: 5 });
    assert_eq!((found.bandwidth.min, found.bandwidth.max), (1.0, 1.0));
    assert_eq!(found.histogram.counts, [20 * 12]);
    let tree = SwitchGraph::new(&testing::fat_tree(&[4, 8], &[1, 4], 0));
    let tables = routed(&MinHop, &tree);
    let hot = run(&tree, &tables, &Pattern::HotSpot { rounds: 50, seed: 5 });
    let calm = run(&tree, &tables, &Pattern::Bisection { rounds: 50, seed: 5 });
    assert!(hot.bandwidth.mean < calm.bandwidth.mean, "{:?} {:?}", hot.bandwidth, calm.bandwidth);
    assert!(hot.worst.mean > calm.worst.mean);
}

#[test]
fn fabrics_without_hosts_or_links_have_no_congestion() {
    let graph = SwitchGraph::new(&crate::fabric::Fabric::new());
    for pattern in [Pattern::Shift, Pattern::AllToAll, Pattern::HotSpot { rounds: 3, seed: 1 }] {
        let found = run(&graph, &LftMatrix::default(), &pattern);
        assert_eq!((found.flows, found.lost, found.worst.max), (0, 0, 0.0), "{pattern:?}");
    }
}
