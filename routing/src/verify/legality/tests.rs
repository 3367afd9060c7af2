use super::*;
use crate::engines::{RoutingInput, by_name, testing::random_fabrics};
use crate::fabric::testing;
use crate::verify::{Options, check};

/// A leaf that hands packets of another leaf up again, in a tree of two spines: the turn is found with the path.
#[test]
fn a_turn_from_down_to_up_is_found_with_its_path() {
    let graph = SwitchGraph::new(&testing::fat_tree(&[2, 3], &[1, 2], 0));
    let routes = by_name("updn").unwrap().route(&graph, &RoutingInput::default()).unwrap();
    let report = check(&graph, &routes, Options::default());
    assert_eq!(report.legality, Some(Legality::default()), "{report}");
    assert!(report.is_right());

    let host = *graph.destinations().iter().find(|d| d.host && d.switch == 2).unwrap();
    let spines: Vec<_> = graph.arcs(0).to_vec();
    let to = |from: u32, to: u32| graph.arcs(from).iter().find(|arc| arc.to == to).unwrap().out_port;
    let mut broken = routes;
    let lid = host.lid.index();
    // From leaf 0 by the first spine down to leaf 1, and from there by the second to leaf 2.
    broken.lfts.row_mut(0)[lid] = spines[0].out_port;
    broken.lfts.row_mut(spines[0].to)[lid] = to(spines[0].to, 1);
    broken.lfts.row_mut(1)[lid] = to(1, spines[1].to);
    broken.lfts.row_mut(spines[1].to)[lid] = to(spines[1].to, 2);
    let report = check(&graph, &broken, Options::default());
    assert!(report.reaches_all() && !report.is_legal() && !report.is_right(), "{report}");
    let legality = report.legality.clone().unwrap();
    let first = legality.first.unwrap();
    assert_eq!((legality.turns, first.lid, first.turn), (1, host.lid.get(), 2), "{report}");
    let guids: Vec<_> = first.path.iter().map(|hop| hop.guid).collect();
    assert_eq!(guids, [0, spines[0].to, 1, spines[1].to, 2].map(|s| graph.guid(s)));
    let said = report.to_string();
    assert!(
        said.contains("1 turns from down to up, first: LID") && said.contains("(down, then up)"),
        "{said}"
    );
}

/// Tables from anywhere are judged by roots that the operator names.
#[test]
fn roots_make_the_order_for_tables_that_claim_none() {
    let graph = SwitchGraph::new(&testing::fat_tree(&[2, 4], &[1, 2], 0));
    let mut routes = by_name("minhop").unwrap().route(&graph, &RoutingInput::default()).unwrap();
    assert_eq!(check(&graph, &routes, Options::default()).legality, None);
    let spines: Vec<Guid> = graph.arcs(0).iter().map(|arc| graph.guid(arc.to)).collect();
    routes.order = order_from_roots(&graph, &spines, &BTreeMap::new());
    assert!(check(&graph, &routes, Options::default()).is_right());
    // With a leaf for the root all others are still two levels below it: the same paths are legal.
    routes.order = order_from_roots(&graph, &[graph.guid(0)], &BTreeMap::new());
    assert!(check(&graph, &routes, Options::default()).is_right());
    // Shortest paths on a ring do turn.
    let ring = SwitchGraph::new(&testing::torus(&[6], 1, 0));
    let mut routes = by_name("minhop").unwrap().route(&ring, &RoutingInput::default()).unwrap();
    routes.order = order_from_roots(&ring, &[ring.guid(0)], &BTreeMap::new());
    let legality = check(&ring, &routes, Options::default()).legality.unwrap();
    assert_eq!(legality.turns, 2, "one in each direction, at the switch opposite to the root");
    assert_eq!(order_from_roots(&ring, &[Guid(1)], &BTreeMap::new()), None);
}

/// What the engines claim holds, on whole and damaged fabrics of many shapes.
#[test]
fn engines_keep_the_order_that_they_claim() {
    let mut claims = 0;
    for (name, fabric) in random_fabrics() {
        let graph = SwitchGraph::new(&fabric);
        for engine in ["updn", "dnup", "ftree"] {
            let Ok(routes) = by_name(engine).unwrap().route(&graph, &RoutingInput::default()) else {
                continue;
            };
            let report = check(&graph, &routes, Options::default());
            assert_eq!(report.legality, Some(Legality::default()), "{engine} on {name}: {report}");
            claims += 1;
        }
    }
    assert!(claims >= 20, "{claims}");
}
