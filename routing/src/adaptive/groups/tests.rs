//! Groups are proved right on fabrics of all kinds, keep to their limit, and a wrong member is found.

use super::*;
use crate::engines::testing::random_fabrics;
use crate::fabric::testing;
use crate::verify::FaultKind;

fn all(group_cap: u16) -> Abilities {
    Abilities { switches: None, group_cap }
}

fn input() -> RoutingInput {
    RoutingInput { data_vls: 8, ..RoutingInput::default() }
}

/// On a tree every leaf may take every spine; the ways down are one.
#[test]
fn a_fat_tree_offers_all_its_spines() {
    let graph = SwitchGraph::new(&testing::fat_tree(&[4, 6], &[1, 3], 0));
    for engine in ["minhop", "updn", "ftree"] {
        let (adaptive, report) = route(engine, &graph, &input(), &all(4095)).unwrap();
        assert!(report.is_right(), "{report:?}");
        let summary = adaptive.summary(&graph);
        // 6 leaves with one group each for the 20 hosts of the others; 9 switches, 24 hosts.
        assert_eq!((summary.switches, summary.most_groups, summary.narrowed), (6, 1, 0), "{engine}");
        assert!((summary.reuse - 20.0).abs() < 1e-9 && (summary.members - 3.0).abs() < 1e-9, "{summary:?}");
        assert!((summary.adaptive - 120.0 / (9.0 * 24.0)).abs() < 1e-9, "{summary:?}");
    }
}

/// Whatever the fabric, whole or damaged: every choice arrives and no circle of channels is left.
#[test]
fn groups_are_right_on_fabrics_of_all_kinds() {
    let mut formed = 0;
    for (name, fabric) in random_fabrics() {
        let graph = SwitchGraph::new(&fabric);
        for engine in ["minhop", "updn", "dnup", "ftree"] {
            let Ok((adaptive, report)) = route(engine, &graph, &input(), &all(4095)) else { continue };
            assert!(report.is_right(), "{engine} on {name}: {report:?}");
            let plain = crate::verify::check(&graph, &adaptive.routes, crate::verify::Options::default());
            assert!(plain.is_right(), "{engine} on {name}: the escape alone: {plain}");
            assert!(report.exits >= report.pairs - graph.destinations().len() as u64, "{engine} on {name}");
            formed += 1;
        }
        let error = route("dfsssp", &graph, &input(), &all(4095)).unwrap_err().to_string();
        assert!(error.contains("has no adaptive form"), "{error}");
    }
    assert!(formed > 20, "{formed}");
}

/// Leaves linked among themselves: shortest paths over these links and over the spines close circles; members go.
#[test]
fn members_that_would_close_a_circle_are_left_out() {
    let mut fabric = testing::Builder::new(16);
    let spines: Vec<_> = (0..2).map(|_| fabric.switch()).collect();
    let leaves: Vec<_> = (0..4).map(|_| fabric.switch()).collect();
    for (i, leaf) in leaves.iter().enumerate() {
        spines.iter().for_each(|spine| fabric.link(*leaf, *spine));
        fabric.link(*leaf, leaves[(i + 1) % 4]);
        fabric.host(*leaf);
    }
    let graph = SwitchGraph::new(&fabric.finish(0));
    let (adaptive, report) = route("minhop", &graph, &input(), &all(4095)).unwrap();
    assert!(report.is_right(), "{report:?}");
    assert!(
        adaptive.narrowed > 0 && adaptive.summary(&graph).adaptive > 0.0,
        "{:?}",
        adaptive.summary(&graph)
    );
    // A ring of five has a circle in the static tables already.
    let ring = SwitchGraph::new(&testing::torus(&[5], 1, 0));
    let error = route("minhop", &ring, &input(), &all(4095)).unwrap_err().to_string();
    assert!(error.contains("have a credit loop themselves, by switch \"S"), "{error}");
}

#[test]
fn dragonfly_plus_offers_its_spines_within_a_group() {
    let graph = SwitchGraph::new(&testing::dragonfly_plus(5, 2, 4));
    let (adaptive, report) = route("dragonfly-plus", &graph, &input(), &all(4095)).unwrap();
    assert!(report.is_right(), "{report:?}");
    let summary = adaptive.summary(&graph);
    assert!(summary.most_groups >= 1 && summary.adaptive > 0.0, "{summary:?}");
}

/// With fewer groups than sets of exits: smaller groups or static entries, never an exit that was not allowed.
#[test]
fn the_limit_of_a_device_is_kept() {
    let mut fabric = testing::fat_tree(&[3, 4, 4], &[1, 4, 4], 0);
    // A lost link of a leaf takes one exit from the sets of all others towards it.
    let between =
        |l: &&crate::fabric::Link| fabric.node(l.a.node).is_switch() && fabric.node(l.b.node).is_switch();
    let links: Vec<_> = fabric.links().filter(between).copied().collect();
    for lost in [0, 5, 10, 15, 21, 26] {
        fabric.disconnect(links[lost].a);
    }
    let graph = SwitchGraph::new(&fabric);
    let (free, _) = route("ftree", &graph, &input(), &all(4095)).unwrap();
    let most = free.summary(&graph).most_groups;
    assert!(most > 2, "{most}");
    let (tight, report) = route("ftree", &graph, &input(), &all(2)).unwrap();
    assert!(report.is_right(), "{report:?}");
    let summary = tight.summary(&graph);
    assert!(summary.most_groups == 2 && summary.smaller + summary.limited > 0, "{summary:?}");
    for (few, many) in tight.tables.iter().zip(&free.tables) {
        for lid in 0..=graph.top_lid() {
            let within =
                few.group(lid).is_none_or(|group| many.group(lid).is_some_and(|all| group.is_subset(all)));
            assert!(within);
        }
    }
    let error = route("ftree", &graph, &input(), &all(0)).unwrap_err().to_string();
    assert_eq!(error, "ftree: the switches have no adaptive-routing group");
}

/// Only the switches that can do it have groups; their static neighbours do not stand in the way.
#[test]
fn switches_without_adaptive_routing_stay_static() {
    let graph = SwitchGraph::new(&testing::fat_tree(&[2, 4], &[1, 2], 0));
    let one = Abilities { switches: Some([graph.guid(1)].into()), group_cap: 10 };
    let (adaptive, report) = route("updn", &graph, &input(), &one).unwrap();
    assert!(report.is_right(), "{report:?}");
    let with: Vec<usize> =
        (0..adaptive.tables.len()).filter(|s| !adaptive.tables[*s].groups.is_empty()).collect();
    assert_eq!(with, [1]);
    assert_eq!(adaptive.tables[1].lids()[0].len(), 6);
}

/// A member planted into a group that leads back is found, with its path.
#[test]
fn a_planted_member_is_found() {
    let graph = SwitchGraph::new(&testing::fat_tree(&[2, 3], &[1, 2], 0));
    let (mut adaptive, _) = route("ftree", &graph, &input(), &all(10)).unwrap();
    let spine = graph.arcs(0)[0];
    let lid = graph.destinations().iter().find(|d| d.host && d.switch == 1).unwrap().lid.get();
    adaptive.tables[spine.to as usize].plant(lid, [spine.in_port].into_iter().collect());
    let report = choices::check(&graph, &adaptive.routes, &[&adaptive]);
    let fault = report.first_fault.unwrap();
    assert_eq!((fault.kind, fault.lid), (FaultKind::Loop, lid));
    assert!(fault.path.iter().any(|hop| (hop.guid, hop.port) == (graph.guid(spine.to), spine.in_port)));
}
