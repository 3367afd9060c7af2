//! What the tests of all engines share.

use std::sync::Arc;

use rand::seq::IndexedRandom;

use super::{NO_FALLBACK, RoutingEngine, RoutingInput, route_chain_from};
use crate::fabric::{Fabric, Link, SwitchGraph, testing};
use crate::routes::Routes;
use crate::verify::{self, Options, Report};

/// Routes, on one thread and on three, and asserts that every LID is reached and no host traffic closes a credit loop.
pub(crate) fn check_all(engine: &dyn RoutingEngine, graph: &SwitchGraph, input: &RoutingInput) -> Report {
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| engine.route(graph, input).unwrap_or_else(|error| panic!("{error}")))
    };
    let routes = with(1);
    assert!(routes == with(3), "{}: the number of threads shows", engine.name());
    let report = verify::check(graph, &routes, Options { management: false, data_vls: input.data_vls });
    assert!(report.is_right(), "{report}");
    report
}

/// The routes of an engine after each cable between switches that is lost, from the tables in force.
pub(crate) fn after_each_lost_cable(
    engine: &str,
    whole: &Fabric,
    mut check: impl FnMut(&Link, &Arc<SwitchGraph>, Routes),
) {
    let (chain, input) = ([engine, NO_FALLBACK], RoutingInput::default());
    let graph = Arc::new(SwitchGraph::new(whole));
    let standing = route_chain_from(&chain, &graph, &input, None).unwrap().standing;
    for link in testing::between_switches(whole) {
        let less = Arc::new(SwitchGraph::new(&testing::without(whole, [&link])));
        let routes = route_chain_from(&chain, &less, &input, Some(&standing)).unwrap().routes;
        check(&link, &less, routes);
    }
}

/// Fabrics of many shapes, whole and with cables taken out (the fabric stays in one piece).
pub(crate) fn random_fabrics() -> Vec<(String, Fabric)> {
    let mut random = testing::seeded(1);
    let mut fabrics = vec![
        ("tree of two levels".to_owned(), testing::fat_tree(&[4, 5], &[1, 3], 0)),
        ("tree of three levels".to_owned(), testing::fat_tree(&[2, 3, 4], &[1, 2, 3], 1)),
        ("ring".to_owned(), testing::torus(&[7], 2, 0)),
        ("torus 4x5".to_owned(), testing::torus(&[4, 5], 1, 1)),
        ("torus 3x3x3".to_owned(), testing::torus(&[3, 3, 3], 2, 0)),
        ("random".to_owned(), testing::random(12, 4, 2, &mut random)),
        ("random and thin".to_owned(), testing::random(20, 3, 1, &mut random)),
    ];
    for index in 0..fabrics.len() {
        let (name, mut fabric) = fabrics[index].clone();
        let mut taken = 0;
        for _ in 0..10 {
            let links = testing::between_switches(&fabric);
            let link = links.choose(&mut random).unwrap();
            let without = testing::without(&fabric, [link]);
            if petgraph::algo::kosaraju_scc(without.graph()).len() == 1 && taken < 3 {
                fabric = without;
                taken += 1;
            }
        }
        fabrics.push((format!("{name}, {taken} cables less"), fabric));
    }
    fabrics
}
