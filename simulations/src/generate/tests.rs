use petgraph::visit::Dfs;
use routing::fabric::PortRef;

use super::*;

fn make(topology: &Topology) -> Fabric {
    generate(topology, &Options::default()).unwrap()
}

fn counts(fabric: &Fabric) -> (usize, usize, usize) {
    let switches = fabric.switches().count();
    (fabric.node_count() - switches, switches, fabric.link_count())
}

/// Links of a switch to other switches.
fn degree(fabric: &Fabric, node: NodeId) -> usize {
    let ports = fabric.node(node).numbered_ports();
    let peers = ports.filter_map(|(port, _)| fabric.peer(PortRef { node, port }));
    peers.filter(|peer| fabric.node(peer.node).is_switch()).count()
}

#[test]
fn every_family_is_connected_and_has_the_size_that_its_formula_gives() {
    let cases = [
        (Topology::tree(4, 2, 5), (20, 6, 28)),
        (Topology::Xgft { m: vec![4, 5], w: vec![1, 2], p: vec![1, 2] }, (20, 7, 40)),
        (Topology::fat_tree(&[4, 4, 4], &[1, 4, 4]), (64, 48, 192)),
        (Topology::full_tree(8), (128, 80, 384)),
        (Topology::Torus { dims: vec![5, 4], hosts: 1 }, (20, 20, 60)),
        (Topology::Torus { dims: vec![2, 3, 4], hosts: 2 }, (48, 24, 48 + 12 + 24 + 24)),
        (Topology::RandomRegular { switches: 18, degree: 5, hosts: 3 }, (54, 18, 54 + 45)),
        (Topology::Dragonfly { p: 2, a: 4, h: 2, g: 0 }, (72, 36, 72 + 9 * 6 + 36)),
        (Topology::DragonflyPlus { p: 3, leaves: 2, spines: 2, h: 2, g: 5 }, (30, 20, 30 + 20 + 10)),
        (Topology::HyperX { dims: vec![3, 4], width: 2, hosts: 1 }, (12, 12, 12 + 2 * (4 * 3 + 3 * 6))),
        (Topology::Kautz { degree: 2, diameter: 1, hosts: 1 }, (6, 6, 6 + 9)),
        (Topology::line(5), (5, 5, 9)),
    ];
    for (topology, expected) in cases {
        let fabric = make(&topology);
        assert_eq!(counts(&fabric), expected, "{topology:?}");
        let first = fabric.node_ids().next().unwrap();
        let mut walk = Dfs::new(fabric.graph(), first);
        let reached = std::iter::from_fn(|| walk.next(fabric.graph())).count();
        assert_eq!(reached, fabric.node_count(), "{topology:?}");
    }
}

#[test]
fn a_fat_tree_is_cabled_like_the_bench_nets_and_keeps_the_names_and_guids() {
    let fabric = make(&Topology::fat_tree(&[18, 36], &[1, 18]));
    assert_eq!(counts(&fabric), (648, 54, 1296));
    let host = fabric.find(host_guid(19)).unwrap();
    assert_eq!(fabric.node(host).description, "H19");
    let up = fabric.peer(PortRef { node: host, port: mad::types::PortNum(1) }).unwrap();
    assert_eq!((fabric.node(up.node).description.as_str(), up.port.0), ("S1_1", 2));
    let spine = fabric.peer(PortRef { node: up.node, port: mad::types::PortNum(36) }).unwrap();
    assert_eq!((fabric.node(spine.node).description.as_str(), spine.port.0), ("S2_17", 2));
    assert_eq!(fabric.node(spine.node).guid, switch_guid(36 + 17));
}

#[test]
fn regular_graphs_are_regular_without_parallel_links_and_the_seed_decides() {
    let topology = Topology::RandomRegular { switches: 30, degree: 7, hosts: 1 };
    let seeds: Vec<Vec<_>> = [1, 1, 2]
        .map(|seed| {
            let fabric = generate(&topology, &Options { seed, ..Options::default() }).unwrap();
            assert!(fabric.switches().all(|(id, _)| degree(&fabric, id) == 7), "seed {seed}");
            let mut pairs: Vec<_> = fabric.links().map(|l| (l.a.node, l.b.node)).collect();
            let total = pairs.len();
            pairs.sort_unstable();
            pairs.dedup();
            assert_eq!(pairs.len(), total, "seed {seed}");
            pairs
        })
        .into();
    assert_eq!(seeds[0], seeds[1]);
    assert_ne!(seeds[0], seeds[2]);
}

/// B22: hosts with two ports on two leaves.
#[test]
fn b22_dual_port_hosts_hang_on_two_leaves_and_rails_share_a_system() {
    let options = Options { dual_port: true, ..Options::default() };
    let fabric = generate(&Topology::tree(4, 2, 3), &options).unwrap();
    assert_eq!(counts(&fabric), (12, 6, 24 + 8));
    for (id, node) in fabric.nodes().filter(|(_, n)| !n.is_switch()) {
        let leaves: Vec<_> = [1, 2]
            .map(|n| fabric.peer(PortRef { node: id, port: mad::types::PortNum(n) }).unwrap().node)
            .into();
        assert_ne!(leaves[0], leaves[1], "{}", node.description);
        assert_ne!(node.ports[1].as_ref().unwrap().guid, node.ports[2].as_ref().unwrap().guid);
    }
    let fabric =
        generate(&Topology::tree(4, 2, 3), &Options { dual_rail: true, ..Options::default() }).unwrap();
    assert_eq!(counts(&fabric), (24, 6, 24 + 8));
    let named = |name: &str| fabric.nodes().find(|(_, n)| n.description == name).unwrap().1;
    assert_eq!(named("H3").system_image_guid, named("H3_1").system_image_guid);
    assert_ne!(named("H3").guid, named("H3_1").guid);
}

#[test]
fn faults_take_links_and_switches_away_and_slow_links_down() {
    let base = Options { seed: 7, ..Options::default() };
    let topology = Topology::tree(12, 6, 2);
    let whole = counts(&generate(&topology, &base).unwrap());
    let fewer = generate(&topology, &Options { missing_links: 0.25, ..base.clone() }).unwrap();
    assert!(fewer.link_count() < whole.2 && fewer.link_count() > 24);
    let fewer = generate(&topology, &Options { missing_switches: 2, ..base.clone() }).unwrap();
    assert_eq!(counts(&fewer), (24, 16, 24 + 12 * 4));
    let slow = generate(&topology, &Options { degraded_links: 1.0, ..base.clone() }).unwrap();
    let slow_ports =
        slow.nodes().flat_map(|(_, n)| n.numbered_ports()).filter(|(_, p)| p.width == Some(LinkWidth::X1));
    assert_eq!(slow_ports.count(), 2 * 72);
    assert!(generate(&topology, &Options { missing_switches: 7, ..base.clone() }).is_err());
    assert!(generate(&topology, &Options { missing_links: 1.5, ..base }).is_err());
}

#[test]
fn bad_parameters_are_refused_with_the_range() {
    let cases = [
        Topology::fat_tree(&[4, 4], &[1]),
        Topology::fat_tree(&[4, 4], &[2, 2]),
        Topology::fat_tree(&[], &[]),
        Topology::fat_tree(&[200, 200], &[1, 200]),
        Topology::Torus { dims: vec![], hosts: 1 },
        Topology::Torus { dims: vec![0, 3], hosts: 1 },
        Topology::RandomRegular { switches: 5, degree: 3, hosts: 1 },
        Topology::RandomRegular { switches: 1, degree: 1, hosts: 1 },
        Topology::Dragonfly { p: 1, a: 2, h: 1, g: 9 },
        Topology::HyperX { dims: vec![300], width: 1, hosts: 1 },
        Topology::Kautz { degree: 60, diameter: 9, hosts: 1 },
    ];
    for topology in cases {
        let error = generate(&topology, &Options::default()).unwrap_err();
        assert!(!error.to_string().is_empty(), "{topology:?}");
    }
}

/// B76, B78: names of 64 bytes, with blanks, quotes and letters beyond ASCII.
#[test]
fn b76_odd_names_are_unique_and_fit_a_node_description() {
    let options = Options { names: Names::Odd, ..Options::default() };
    let fabric = generate(&Topology::tree(4, 2, 4), &options).unwrap();
    let mut names: Vec<_> = fabric.nodes().map(|(_, n)| n.description.clone()).collect();
    assert!(names.iter().all(|n| n.len() <= 64) && names.iter().any(|n| n.len() == 64));
    names.sort();
    names.dedup();
    assert_eq!(names.len(), fabric.node_count());
}

#[test]
fn the_largest_fabric_has_as_many_end_ports_as_there_are_unicast_lids() {
    // 32 x 32 x 46 hosts and 32 * 46 + 32 * 32 switches at level 1, 2 and 3: just within the LID space.
    let topology = Topology::fat_tree(&[32, 32, 44], &[1, 32, 32]);
    let mut fabric = make(&topology);
    assign_lids(&mut fabric).unwrap();
    assert!(fabric.node_count() > 48_000 && fabric.node_count() <= 49_151);
    assert!(generate(&Topology::fat_tree(&[32, 32, 48], &[1, 32, 32]), &Options::default()).is_err());
}
