use super::*;
use crate::engines::{MinHop, RoutingEngine, RoutingInput};
use crate::fabric::testing;
use crate::routes::{PathSl, SlToVl};
use mad::types::NodeType;

fn routed(fabric: &crate::fabric::Fabric) -> (SwitchGraph, Routes) {
    let graph = SwitchGraph::new(fabric);
    let routes = MinHop.route(&graph, &RoutingInput::default()).unwrap();
    (graph, routes)
}

#[test]
fn a_fat_tree_is_right_and_every_figure_is_what_one_counts_by_hand() {
    let (graph, routes) = routed(&testing::fat_tree(&[4, 4], &[1, 4], 0));
    let report = check(&graph, &routes, Options::default());
    assert!(report.is_right(), "{report}");
    assert_eq!(report.hosts, Counts { walks: 16 * 8, arrived: 16 * 8 });
    assert_eq!(report.management, Counts { walks: 8 * 8, arrived: 8 * 8 });
    assert_eq!(report.hops.histogram, [16, 0, 48]);
    assert_eq!((report.hops.longest, report.hops.detours), (2, 0));
    // Each leaf sends 4 hosts × 12 others over 4 links, and as much comes down.
    assert_eq!((report.balance.min, report.balance.max, report.balance.links), (12, 12, 32));
    let tier = |from, to| Tier { from, to, balance: Balance { links: 16, ..report.balance } };
    assert_eq!(report.tiers, [tier(0, 1), tier(1, 0)]);
    assert_eq!(report.credit_loop, None);
}

/// Three levels with the upper stage twice as wide as the traffic: each stage has figures of its own.
#[test]
fn tiers_are_told_apart() {
    let (graph, routes) = routed(&testing::fat_tree(&[2, 2, 2], &[1, 2, 2], 0));
    let report = check(&graph, &routes, Options::default());
    let levels: Vec<_> = report.tiers.iter().map(|tier| (tier.from, tier.to)).collect();
    assert_eq!(levels, [(0, 1), (1, 0), (1, 2), (2, 1)]);
    // 8 hosts to 6 on other leaves over 8 links; to the 4 of the other half over 8 links.
    let loads: Vec<_> = report.tiers.iter().map(|tier| (tier.balance.links, tier.balance.mean)).collect();
    assert_eq!(loads, [(8, 6.0), (8, 6.0), (8, 4.0), (8, 4.0)]);
    assert!(
        report.tiers[2].to_string().starts_with("level 1 to 2: 8 links, 0 unused, routes 4 to 4, mean 4.0")
    );
}

#[test]
fn each_kind_of_fault_is_found_with_its_path() {
    let (graph, routes) = routed(&testing::torus(&[4], 1, 0));
    let host = *graph.destinations().iter().find(|d| d.host && d.switch == 2).unwrap();
    let lid = host.lid.index();
    let right = |s: u32| routes.lfts.row(s)[lid];
    let back = |s: u32, to: u32| graph.arcs(s).iter().find(|a| a.to == to).unwrap().out_port;
    let before = if right(0) == back(0, 1) { 1 } else { 3 };
    let cases: [(FaultKind, u32, u8, usize); 5] = [
        (FaultKind::Hole, before, 255, 2),
        (FaultKind::DeadPort, before, 77, 2),
        (FaultKind::Loop, before, back(before, 0), 3),
        (FaultKind::WrongEnd, before, 3, 2),
        (FaultKind::WrongEnd, 2, 0, 3),
    ];
    for (kind, at, port, length) in cases {
        let mut broken = routes.clone();
        broken.lfts.row_mut(at)[lid] = port;
        let report = check(&graph, &broken, Options::default());
        let fault = report.first_fault.clone().unwrap_or_else(|| panic!("{kind:?} not found: {report}"));
        assert_eq!((fault.kind, usize::from(fault.lid)), (kind, lid), "{report}");
        assert!(!report.is_right() && !report.reaches_all());
        assert_eq!(fault.path.len(), length, "{report}");
        assert_eq!(fault.path[0].guid, graph.guid(0));
    }
}

#[test]
fn shortest_paths_on_a_ring_of_five_have_a_credit_loop_and_the_cycle_is_the_ring() {
    let (graph, routes) = routed(&testing::torus(&[5], 1, 0));
    let report = check(&graph, &routes, Options::default());
    assert!(report.reaches_all());
    let found = report.credit_loop.clone().expect("a ring of five");
    assert_eq!(found.channels.len(), 5, "{report}");
    for (channel, next) in found.channels.iter().zip(found.channels.iter().cycle().skip(1)) {
        assert_eq!(channel.to.guid, next.from.guid);
    }
    assert!(report.to_string().contains("credit loop: \"S"), "{report}");
}

/// The ring's paths, split over two VLs by whether they cross the link between the last and the first switch.
#[test]
fn service_levels_and_tables_of_each_switch_are_applied() {
    let (graph, mut routes) = routed(&testing::torus(&[5], 1, 0));
    let crosses = |from: u32, lid: usize| {
        let (mut at, mut crossed) = (from, false);
        let owner = graph.destinations().iter().find(|d| d.lid.index() == lid).unwrap();
        while at != owner.switch {
            let port = routes.lfts.row(at)[lid];
            let to = graph.arcs(at).iter().find(|a| a.out_port == port).unwrap().to;
            crossed |= (at == 4 && to == 0) || (at == 0 && to == 4);
            at = to;
        }
        crossed
    };
    let mut sl = crate::routes::LftMatrix::new(5, graph.top_lid());
    for s in 0..5 {
        for d in graph.destinations() {
            sl.row_mut(s)[d.lid.index()] = u8::from(crosses(s, d.lid.index()));
        }
    }
    routes.sl = PathSl::BySourceSwitch(sl);
    let report = check(&graph, &routes, Options { management: true, data_vls: 2 });
    assert!(report.is_right(), "{report}");
    assert_eq!(report.vls, 2);
    assert!(!check(&graph, &routes, Options { management: true, data_vls: 1 }).is_right());

    // All on one VL again, by tables of the switches.
    let ports = usize::from(graph.num_ports(0)) + 1;
    routes.sl_to_vl = SlToVl::PerSwitch(vec![vec![[0; 16]; ports * ports]; 5]);
    let report = check(&graph, &routes, Options::default());
    assert!(report.credit_loop.is_some(), "{report}");
    // And apart, by tables of the switches.
    let mut identity = [0; 16];
    identity.iter_mut().enumerate().for_each(|(sl, vl)| *vl = (sl as u8).min(1));
    routes.sl_to_vl = SlToVl::PerSwitch(vec![vec![identity; ports * ports]; 5]);
    assert!(check(&graph, &routes, Options { management: true, data_vls: 2 }).is_right());
    // SL 1 dropped.
    identity[1] = 15;
    routes.sl_to_vl = SlToVl::PerSwitch(vec![vec![identity; ports * ports]; 5]);
    assert!(check(&graph, &routes, Options::default()).bad_vls > 0);
}

#[test]
fn switches_without_hosts_can_close_a_loop_that_hosts_can_not() {
    let mut fabric = testing::torus(&[5], 1, 0);
    let hosts: Vec<_> = fabric.nodes().filter(|(_, n)| n.kind == NodeType::Ca).map(|(id, _)| id).collect();
    for host in &hosts[1..] {
        fabric.remove_node(*host);
    }
    let (graph, routes) = routed(&fabric);
    let report = check(&graph, &routes, Options::default());
    assert!(report.is_right() && report.management_credit_loop.is_some(), "{report}");
    assert!(!check(&graph, &routes, Options { management: true, data_vls: 0 }).is_right());
}

#[test]
fn a_cut_fabric_and_an_empty_one_are_no_fault_of_the_tables() {
    let mut fabric = testing::torus(&[4], 1, 0);
    let links: Vec<_> = fabric
        .links()
        .copied()
        .filter(|l| fabric.node(l.a.node).is_switch() && fabric.node(l.b.node).is_switch())
        .collect();
    fabric.disconnect(links[0].a);
    fabric.disconnect(links[2].a);
    let (graph, routes) = routed(&fabric);
    let report = check(&graph, &routes, Options::default());
    assert!(report.is_right(), "{report}");
    assert_eq!(report.unconnected, 2 * 2 * 4);
    let (graph, routes) = routed(&crate::fabric::Fabric::new());
    assert!(check(&graph, &routes, Options::default()).is_right());
}

#[test]
fn tables_of_another_size_are_read_as_holes() {
    let (graph, _) = routed(&testing::torus(&[4], 1, 0));
    let report = check(&graph, &Routes::default(), Options::default());
    assert_eq!(report.faults[FaultKind::Hole as usize].1, 4 * 8);
}
