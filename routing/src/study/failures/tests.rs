//! Cases whose cost is known beforehand.

use super::*;
use crate::engines::{FatTree, RoutingEngine, RoutingInput, by_name};
use crate::fabric::{Fabric, SwitchGraph, testing};

fn input() -> RoutingInput {
    RoutingInput { data_vls: 8, ..RoutingInput::default() }
}

fn cost(fabric: &Fabric, engine: &dyn RoutingEngine, case: &Case) -> Cost {
    let whole = SwitchGraph::new(fabric);
    let standing = Standing::new(&whole, engine.route(&whole, &input()).unwrap());
    let left = SwitchGraph::new(&without(fabric, case));
    let routes = engine.route(&left, &input()).unwrap();
    let cost = compare(&standing, &left, &routes);
    assert_eq!(cost.moved, moved(&standing, &left, &routes));
    cost
}

#[test]
fn a_link_of_a_fat_tree_moves_what_used_it_and_little_else() {
    let fabric = testing::fat_tree(&[6, 6], &[1, 6], 0);
    let cases = draw(&fabric, Kind::EachLink, 0, 1).unwrap();
    assert_eq!(cases.len(), 36);
    for case in &cases {
        let cost = cost(&fabric, &FatTree, case);
        assert!(cost.connected && cost.right && cost.hosts_lost == 0, "{cost:?}");
        // The leaf's entries over its lost uplink (one of six for 30 hosts, and the spine's own), the spine's down to it.
        assert!(cost.must_move >= 5 + 6 && cost.must_move < 20, "{cost:?}");
        assert!(cost.moved >= cost.must_move && cost.moved < 4 * cost.must_move, "{cost:?}");
        assert!(cost.worst_after > cost.worst_before, "{cost:?}");
        // The spine sends what it no longer reaches by another leaf, which still sends by the spine: an order is needed.
        assert!(cost.loops > 0 && cost.steps > 1 && !cost.credit_loop, "{cost:?}");
        assert!(cost.switches <= 12 && cost.blocks <= cost.switches, "{cost:?}");
    }
}

#[test]
fn a_leaf_takes_its_hosts_along_and_a_bridge_cuts_the_fabric() {
    let fabric = testing::fat_tree(&[3, 4], &[1, 2], 0);
    let leaf = fabric.nodes().find(|(_, n)| n.description == "S2").unwrap().0;
    let lost = cost(&fabric, &FatTree, &Case { switches: vec![leaf], ..Case::default() });
    assert!(lost.connected && lost.right && lost.hosts_lost == 3, "{lost:?}");
    // Entries of LIDs that are gone don't count: only what the two spines may send one another over the leaf is left.
    assert!(lost.must_move <= 2, "{lost:?}");

    let mut builder = testing::Builder::new(4);
    let (a, b) = (builder.switch(), builder.switch());
    builder.link(a, b);
    builder.host(a);
    builder.host(b);
    let line = builder.finish(0);
    let case = draw(&line, Kind::Links(1), 1, 1).unwrap().remove(0);
    assert_eq!(case.describe(&line), "S1[1] - S2[1]");
    let cut = cost(&line, by_name("minhop").unwrap(), &case);
    assert!(!cut.connected && cut.hosts_lost == 0 && cut.right, "{cut:?}");
}

#[test]
fn what_has_no_host_left_is_not_connected() {
    let fabric = testing::fat_tree(&[3, 4], &[1, 2], 0);
    let whole = SwitchGraph::new(&fabric);
    let leaves = whole.destinations().iter().filter(|d| d.host).map(|d| whole.node(d.switch));
    let mut switches: Vec<_> = leaves.collect();
    switches.sort_unstable();
    switches.dedup();
    assert_eq!(switches.len(), 4);
    let lost = cost(&fabric, by_name("minhop").unwrap(), &Case { switches, ..Case::default() });
    assert!(!lost.connected && lost.hosts_lost == 12, "{lost:?}");
}

/// Engines with service levels: layers move too, and switches that go change the numbers of all others.
#[test]
fn engines_with_lanes_are_compared_with_their_service_levels() {
    let fabric = testing::torus(&[4, 4], 1, 0);
    let mut loops = 0;
    for engine in ["dfsssp", "lash", "nue", "torus-2qos"] {
        for kind in [Kind::Links(2), Kind::Switches(1)] {
            for case in draw(&fabric, kind, 2, 7).unwrap() {
                let left = SwitchGraph::new(&without(&fabric, &case));
                if by_name(engine).unwrap().route(&left, &input()).is_err() {
                    assert_eq!(engine, "torus-2qos", "which needs a whole torus");
                    continue;
                }
                let cost = cost(&fabric, by_name(engine).unwrap(), &case);
                assert!(cost.right && cost.moved >= cost.must_move, "{engine} {kind:?}: {cost:?}");
                loops += usize::from(cost.credit_loop);
            }
        }
    }
    assert!(loops > 0, "routes on a torus that change lanes can lock together on the way");
}

#[test]
fn seeds_decide_and_too_much_is_refused() {
    let fabric = testing::torus(&[3, 3], 1, 0);
    let drawn = |seed| draw(&fabric, Kind::Links(3), 5, seed).unwrap();
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
    for case in drawn(3) {
        let mut links = case.links.clone();
        links.dedup();
        assert_eq!(links.len(), 3);
    }
    let error = draw(&fabric, Kind::Links(19), 1, 1).unwrap_err().to_string();
    assert_eq!(error, "19 links between switches are to fail, the fabric has 18");
    let error = draw(&fabric, Kind::Switches(10), 1, 1).unwrap_err().to_string();
    assert_eq!(error, "10 switches are to fail, the fabric has 9");
    let error = draw(&fabric, Kind::Switches(9), 1, 1).unwrap_err().to_string();
    assert_eq!(error, "all 9 switches are to fail, one at least has to be left");
    assert_eq!(draw(&fabric, Kind::Switches(8), 1, 1).map(|cases| cases.len()), Ok(1));
    let lone = testing::fat_tree(&[3], &[1], 0);
    assert_eq!(draw(&lone, Kind::EachLink, 1, 1), Err(CasesError::NoLinks));
}
