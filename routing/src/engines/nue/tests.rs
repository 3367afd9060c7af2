use super::*;
use crate::engines::targets::one_by_one;
use crate::engines::testing::{check_all, random_fabrics};
use crate::fabric::{Fabric, testing};

#[test]
fn every_number_of_lanes_is_enough_for_every_fabric() {
    let mut hops = [0.0; 3];
    for (name, fabric) in random_fabrics() {
        let graph = SwitchGraph::new(&fabric);
        for (vls, hops) in [1, 2, 4].into_iter().zip(&mut hops) {
            let input = RoutingInput { data_vls: 8, nue_max_vls: vls, ..RoutingInput::default() };
            let report = check_all(&Nue, &graph, &input);
            assert!(report.management_credit_loop.is_none(), "{name}, {vls} VLs: {report}");
            assert!(report.vls <= usize::from(vls), "{name}: {report}");
            *hops += report.hops.mean;
        }
    }
    assert!(hops[2] < hops[0], "mean hops between hosts, in sum: {hops:?}");
}

/// Fewer destinations have to take the escape tree when neighbours may go other ways, on one lane and on thin fabrics.
#[test]
fn backtracking_saves_destinations_from_the_escape_tree() {
    let mut escaped = [0, 0];
    let mut random = rand_pcg::Pcg64Mcg::new(5);
    let thin = (0..12).map(|_| testing::random(60, 4, 1, &mut random)).collect::<Vec<_>>();
    for (name, fabric) in thin.iter().enumerate() {
        let graph = SwitchGraph::new(fabric);
        let network = Network::new(&graph);
        let escape = Escape::new(&network);
        let order = one_by_one(&graph, &RoutingInput::default());
        let [without, with] = [false, true].map(|backtracking| {
            let mut growth = Growth::new(&network, vec![Lane::new(&network, &escape)]);
            growth.backtracking = backtracking;
            growth.route(&order, &escape.parent);
            growth.escaped
        });
        println!("{name}: {without} escaped, {with} with backtracking");
        escaped = [escaped[0] + without, escaped[1] + with];
    }
    assert!(2 * escaped[1] < escaped[0], "{escaped:?}");
}

/// What a lost cable carried is parted over the others, in place of making one of them twice as full.
#[test]
fn no_link_of_a_tree_less_one_cable_is_nearly_twice_as_full() {
    for (m, w) in [(&[6, 12][..], &[1, 6][..]), (&[6, 4, 4], &[1, 6, 4])] {
        let whole = testing::fat_tree(m, w, 0);
        for vls in [1, 2, 8] {
            let input = RoutingInput { data_vls: vls, ..RoutingInput::default() };
            let most = |fabric: &Fabric| check_all(&Nue, &SwitchGraph::new(fabric), &input).balance.max;
            let intact = most(&whole);
            for link in testing::between_switches(&whole).iter().step_by(7) {
                let less = most(&testing::without(&whole, [link]));
                assert!(4 * less <= 7 * intact, "{m:?}, {vls} VLs, without {link:?}: {less} after {intact}");
            }
        }
    }
}

/// More lanes leave more choice, so that the worst link gets lighter rather than heavier.
#[test]
fn more_lanes_load_no_link_more() {
    let mut fabrics = random_fabrics();
    let trees: [(&[usize], &[usize]); 3] =
        [(&[4, 4, 8], &[1, 4, 4]), (&[3, 3, 3, 3], &[1, 2, 3, 2]), (&[6, 9], &[1, 3])];
    fabrics.extend(trees.map(|(m, w)| (format!("tree {m:?} {w:?}"), testing::fat_tree(m, w, 0))));
    for (name, fabric) in fabrics {
        let graph = SwitchGraph::new(&fabric);
        let [one, two, eight] = [1, 2, 8].map(|vls| {
            let input = RoutingInput { data_vls: vls, ..RoutingInput::default() };
            f64::from(check_all(&Nue, &graph, &input).balance.max)
        });
        println!("{name}: worst load {one} with one lane, {two} with two, {eight} with eight");
        assert!(two.max(eight) <= 1.1 * one, "{name}: {one} with one lane, {two}, {eight}");
    }
}

#[test]
fn trees_are_routed_by_shortest_paths_on_one_lane() {
    let graph = SwitchGraph::new(&testing::fat_tree(&[4, 4], &[1, 4], 0));
    let report = check_all(&Nue, &graph, &RoutingInput { data_vls: 1, ..RoutingInput::default() });
    assert!(report.balance.max <= 2 * report.balance.min.max(6), "{report}");
}

#[test]
fn a_cut_fabric_is_routed_part_by_part() {
    let mut fabric = testing::torus(&[6], 1, 0);
    let ring: Vec<_> = fabric.links().copied().take(6).collect();
    for link in [ring[0], ring[3]] {
        fabric.disconnect(link.a);
    }
    let graph = SwitchGraph::new(&fabric);
    let report = check_all(&Nue, &graph, &RoutingInput { data_vls: 2, ..RoutingInput::default() });
    assert_eq!(report.unconnected, 2 * 3 * 6);
}
