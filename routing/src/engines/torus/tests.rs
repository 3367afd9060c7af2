use std::collections::{BTreeMap, BTreeSet};

use mad::types::{Guid, MulticastLid, PortNum};
use rand::seq::SliceRandom;

use super::*;
use crate::engines::testing::check_all;
use crate::fabric::{Fabric, PortRef, testing};
use crate::multicast::{self, Member, MulticastTables};
use crate::verify;
use crate::verify::multicast::Group;

fn input(data_vls: u8) -> RoutingInput {
    RoutingInput { data_vls, ..RoutingInput::default() }
}

#[test]
fn whole_tori_take_shortest_paths_on_two_lanes() {
    for dims in [vec![5], vec![4, 4], vec![5, 3], vec![3, 4, 5], vec![6, 2]] {
        let graph = SwitchGraph::new(&testing::torus(&dims, 2, 1));
        let report = check_all(&TorusTwoQos, &graph, &input(2));
        assert_eq!((report.hops.detours, report.vls), (0, 2), "{dims:?}: {report}");
        assert!(report.management_credit_loop.is_none(), "{report}");
    }
}

/// The way round a broken ring is longer; every ring of every dimension in turn loses one cable.
#[test]
fn one_cable_less_in_a_ring_is_gone_around() {
    let whole = testing::torus(&[4, 3, 3], 1, 0);
    let nodes: Vec<_> = whole.switches().map(|(id, _)| id).collect();
    for (node, port) in [(0, 1), (3, 1), (7, 3), (20, 5), (35, 5)] {
        let mut fabric = whole.clone();
        fabric.disconnect(PortRef { node: nodes[node], port: PortNum(port) }).unwrap();
        let graph = SwitchGraph::new(&fabric);
        let report = check_all(&TorusTwoQos, &graph, &input(2));
        assert!(report.is_right(), "{report}");
    }
}

/// Cables of a torus plugged as they came, so that ports say nothing.
fn tangled(dims: &[usize], seed: u64) -> Fabric {
    let mut random = rand_pcg::Pcg64Mcg::new(seed.into());
    let whole = testing::torus(dims, 0, 0);
    let place = |node| whole.switches().position(|(id, _)| id == node).unwrap();
    let mut links: Vec<(usize, usize)> = whole.links().map(|l| (place(l.a.node), place(l.b.node))).collect();
    links.shuffle(&mut random);
    let mut builder = testing::Builder::new(2 * dims.len() as u8 + 1);
    let switches: Vec<_> = whole.switches().map(|_| builder.switch()).collect();
    for (a, b) in links {
        builder.link(switches[a], switches[b]);
    }
    switches.iter().for_each(|s| _ = builder.host(*s));
    builder.finish(0)
}

/// What an operator would write of a torus: seeds at these places, datelines where the first switch lies.
fn config(fabric: &Fabric, dims: &[usize], origins: &[usize]) -> TorusConfig {
    let guids: Vec<_> = fabric.switches().map(|(_, node)| node.guid).collect();
    let size = |axis: usize| dims.get(axis).copied().unwrap_or(1);
    let at = |place: [usize; 3]| guids[place[0] + size(0) * (place[1] + size(1) * place[2])];
    // Where all coordinates are alike, as far as the torus goes.
    let diagonal = |origin: &usize| std::array::from_fn(|axis| (*origin).min(size(axis) - 1));
    let seed = |origin: [usize; 3]| TorusSeed {
        origin: at(origin),
        neighbours: std::array::from_fn(|axis| {
            [1, size(axis) - 1].map(|step| {
                let mut place = origin;
                place[axis] = (place[axis] + step) % size(axis);
                (size(axis) > 1 && (size(axis) == 4 || step == 1)).then(|| at(place))
            })
        }),
        dateline: std::array::from_fn(|axis| -(origin[axis] as i32)),
    };
    TorusConfig {
        dimensions: std::array::from_fn(|axis| TorusDimension { radix: size(axis) as u16, closed: true }),
        seeds: origins.iter().map(diagonal).map(seed).collect(),
        max_ports: 16,
        port_order: Vec::new(),
        max_changes: 32,
    }
}

/// SL by GUIDs of the two hosts.
fn sls(graph: &SwitchGraph, routes: &Routes) -> BTreeMap<(Guid, Guid), u8> {
    let hosts: Vec<_> = graph.destinations().iter().filter(|d| d.host).collect();
    let pairs = hosts.iter().flat_map(|a| hosts.iter().map(move |b| (a, b)));
    pairs.map(|(a, b)| ((a.guid, b.guid), routes.path_sl(a.switch, b.lid))).collect()
}

#[test]
fn service_levels_mark_the_datelines_that_a_pair_crosses() {
    let graph = SwitchGraph::new(&testing::torus(&[5, 4], 1, 0));
    let routes = TorusTwoQos.route(&graph, &input(2)).unwrap();
    let sls = sls(&graph, &routes);
    assert!(sls.values().all(|sl| *sl < 4) && sls.values().any(|sl| *sl == 3));
}

/// The halves of a port's LIDs go round an even ring by both ways where these are equal; SLs mark the dateline of the way
/// taken.
#[test]
fn halves_of_the_lids_of_a_port_go_both_ways_round() {
    for dims in [vec![4, 4], vec![6, 5], vec![6, 4, 3]] {
        let graph = SwitchGraph::new(&testing::torus(&dims, 1, 1));
        let report = check_all(&TorusTwoQos, &graph, &input(2));
        assert_eq!((report.hops.detours, report.vls), (0, 2), "{dims:?}: {report}");
        let routes = TorusTwoQos.route(&graph, &input(2)).unwrap();
        let (mut both, mut marked) = (0, 0);
        for to in graph.destinations().iter().filter(|d| d.host) {
            for from in (0..graph.switch_count() as u32).filter(|s| *s != to.switch) {
                let [low, high] = [0, 1].map(|offset| mad::types::Lid::new(to.lid.get() + offset).unwrap());
                let (mut at, mut there, mut opposite) = (from as usize, to.switch as usize, None);
                for (axis, size) in dims.iter().enumerate() {
                    let ahead = (there % size + size - at % size) % size;
                    if ahead != 0 && opposite.is_none() {
                        opposite = Some((axis, 2 * ahead == *size));
                    }
                    (at, there) = (at / size, there / size);
                }
                // The first hop says it: the lower dimensions come first.
                let exits = [low, high].map(|lid| routes.lfts.port(from, lid));
                let (axis, opposite) = opposite.unwrap();
                assert!(exits.iter().all(|port| usize::from(port - 1) / 2 == axis));
                assert_eq!(exits[0] != exits[1], opposite, "{dims:?}: from {from} to {}", to.switch);
                both += usize::from(opposite);
                marked += usize::from(routes.path_sl(from, low) != routes.path_sl(from, high));
            }
        }
        assert!(both > 10 && marked >= both, "{dims:?}: {both}, {marked}");
    }
}

/// A failed switch with several LIDs to a port: both halves' ways around are proved.
#[test]
fn one_failed_switch_is_gone_around_by_both_halves() {
    for dims in [vec![4, 5], vec![6, 4], vec![4, 4, 3]] {
        let whole = testing::torus(&dims, 1, 1);
        let nodes: Vec<_> = whole.switches().map(|(id, _)| id).collect();
        for failed in nodes {
            let mut fabric = whole.clone();
            fabric.remove_node(failed);
            let report = check_all(&TorusTwoQos, &SwitchGraph::new(&fabric), &input(4));
            assert!(report.is_right(), "{dims:?}: {report}");
        }
    }
}

/// Every switch of every torus fails in turn: all others reach one another, no credit loop, and no SL has changed.
#[test]
fn one_failed_switch_is_gone_around_and_no_service_level_changes() {
    for dims in [vec![4, 5], vec![3, 3], vec![6, 5], vec![3, 4, 3]] {
        let whole = testing::torus(&dims, 1, 0);
        let config = config(&whole, &dims, &[0, 2]);
        let with = RoutingInput { torus: Some(config), ..input(8) };
        let graph = SwitchGraph::new(&whole);
        let before = sls(&graph, &TorusTwoQos.route(&graph, &with).unwrap());
        let plain = sls(&graph, &TorusTwoQos.route(&graph, &input(8)).unwrap());
        assert_eq!(before, plain, "{dims:?}: the wiring and the seeds say the same");
        let nodes: Vec<_> = whole.switches().map(|(id, _)| id).collect();
        for failed in nodes {
            let mut fabric = whole.clone();
            fabric.remove_node(failed);
            let graph = SwitchGraph::new(&fabric);
            let report = check_all(&TorusTwoQos, &graph, &with);
            assert!(report.is_right(), "{dims:?}: {report}");
            check_all(&TorusTwoQos, &graph, &input(4));
            let after = sls(&graph, &TorusTwoQos.route(&graph, &with).unwrap());
            assert!(after.iter().all(|(pair, sl)| before[pair] == *sl), "{dims:?} without {failed:?}");
        }
    }
}

#[test]
fn failed_switches_side_by_side_in_the_last_dimension_are_gone_around() {
    let dims = [6, 6];
    let whole = testing::torus(&dims, 1, 0);
    let nodes: Vec<_> = whole.switches().map(|(id, _)| id).collect();
    let without = |places: &[usize]| {
        let mut fabric = whole.clone();
        places.iter().for_each(|place| drop(fabric.remove_node(nodes[*place])));
        SwitchGraph::new(&fabric)
    };
    check_all(&TorusTwoQos, &without(&[14, 20]), &input(4));
    let reason = TorusTwoQos.route(&without(&[14, 15]), &input(4)).unwrap_err().to_string();
    assert!(
        reason.contains("no switch at (2, 2), (3, 2), and the ways around close a credit loop"),
        "{reason}"
    );
    let lanes = TorusTwoQos.route(&without(&[14]), &input(2)).unwrap_err().to_string();
    assert_eq!(lanes, "torus-2qos: needs 4 virtual lanes, the links have 2");
    let apart = TorusTwoQos.route(&without(&[13, 15]), &input(4)).unwrap_err().to_string();
    assert!(apart.contains("is broken in more than one place"), "{apart}");
}

/// Seeds find the places however the cables are plugged; a seed whose switches failed leaves its turn to the next.
#[test]
fn seeds_find_the_places_of_tangled_cables() {
    for (dims, seed) in
        [(vec![5, 6], 1), (vec![4, 4], 2), (vec![3, 5, 4], 3), (vec![7], 4), (vec![2, 5, 3], 5)]
    {
        let fabric = tangled(&dims, seed);
        let graph = SwitchGraph::new(&fabric);
        let config = config(&fabric, &dims, &[0, 2]);
        let with = RoutingInput { torus: Some(config.clone()), ..input(4) };
        let report = check_all(&TorusTwoQos, &graph, &with);
        assert_eq!(report.hops.detours, 0, "{dims:?}: {report}");
        assert!(
            TorusTwoQos.route(&graph, &input(4)).is_err() || dims.len() == 1,
            "{dims:?}: ports say nothing"
        );
        if dims.len() == 1 {
            continue;
        }
        let before = sls(&graph, &TorusTwoQos.route(&graph, &with).unwrap());
        let mut less = fabric.clone();
        less.remove_node(fabric.switches().next().unwrap().0);
        let graph = SwitchGraph::new(&less);
        let only = TorusConfig { seeds: config.seeds[..1].to_vec(), ..config.clone() };
        let reason = TorusTwoQos.route(&graph, &RoutingInput { torus: Some(only), ..input(4) }).unwrap_err();
        assert!(reason.to_string().contains("seed 1: switch 0x0002c90200000001 is not there"), "{reason}");
        check_all(&TorusTwoQos, &graph, &with);
        let after = sls(&graph, &TorusTwoQos.route(&graph, &with).unwrap());
        assert!(after.iter().all(|(pair, sl)| before[pair] == *sl), "{dims:?}");
    }
}

#[test]
fn seeds_that_say_too_little_or_something_else_are_named() {
    let dims = [4, 5];
    let fabric = tangled(&dims, 9);
    let graph = SwitchGraph::new(&fabric);
    let whole = config(&fabric, &dims, &[0]);
    let refuse = |change: &dyn Fn(&mut TorusConfig)| {
        let mut config = whole.clone();
        change(&mut config);
        TorusTwoQos.route(&graph, &RoutingInput { torus: Some(config), ..input(4) }).unwrap_err().to_string()
    };
    let four = refuse(&|config| config.seeds[0].neighbours[0][1] = None);
    assert!(four.contains("x is a ring of four: it must name both neighbours along it"), "{four}");
    let none = refuse(&|config| config.seeds[0].neighbours[1] = [None; 2]);
    assert!(none.contains("it names no neighbour along y"), "{none}");
    let far = refuse(&|config| config.seeds[0].neighbours[1][0] = Some(Guid(0x0002_c902_0000_000b)));
    assert!(far.contains("no cable joins switches \"S1\""), "{far}");
    let size = refuse(&|config| config.dimensions[1].radix = 4);
    assert!(size.starts_with("torus-2qos: "), "{size}");
    let open = refuse(&|config| config.dimensions[1].closed = false);
    assert!(open.starts_with("torus-2qos: "), "{open}");
    let ports = refuse(&|config| config.max_ports = 1);
    assert!(ports.contains("has 2 host ports, port 0 included, and portgroup_max_ports is 1"), "{ports}");
}

/// Parallel cables are dealt to hosts by number, or in the operator's order of ports.
#[test]
fn the_order_of_ports_deals_parallel_cables() {
    let mut builder = testing::Builder::new(16);
    let switches: Vec<_> = (0..3).map(|_| builder.switch()).collect();
    for i in 0..3 {
        builder.link(switches[i], switches[(i + 1) % 3]);
        builder.link(switches[i], switches[(i + 1) % 3]);
    }
    (0..4).for_each(|_| _ = builder.host(switches[0]));
    builder.host(switches[1]);
    let fabric = builder.finish(0);
    let graph = SwitchGraph::new(&fabric);
    let hosts: Vec<_> = graph.destinations().iter().filter(|d| d.host && d.switch == 0).collect();
    let cables = |order: Vec<PortNum>| {
        let mut torus = config(&fabric, &[3], &[0]);
        torus.port_order = order;
        let routes = TorusTwoQos.route(&graph, &RoutingInput { torus: Some(torus), ..input(2) }).unwrap();
        hosts.iter().map(|d| routes.lfts.port(1, d.lid)).collect::<Vec<u8>>()
    };
    let by_number = cables(vec![]);
    assert_eq!((by_number[0] == by_number[2], by_number[0] == by_number[1]), (true, false), "{by_number:?}");
    let ordered = cables([hosts[0].port, hosts[2].port, hosts[1].port, hosts[3].port].map(PortNum).to_vec());
    assert_eq!((ordered[0] == ordered[1], ordered[0] == ordered[2]), (true, false), "{ordered:?}");
}

/// With eight lanes the upper half of the SLs has lanes of its own.
#[test]
fn the_fourth_bit_of_a_service_level_is_a_level_of_service() {
    let graph = SwitchGraph::new(&testing::torus(&[5, 4], 1, 0));
    let SlToVl::PerSwitch(tables) = TorusTwoQos.route(&graph, &input(8)).unwrap().sl_to_vl else { panic!() };
    let lanes = |sls: std::ops::Range<usize>| {
        tables.iter().flatten().flat_map(|map| map[sls.clone()].to_vec()).collect::<BTreeSet<u8>>()
    };
    assert_eq!((lanes(0..8), lanes(8..16)), ([0, 1, 2, 3].into(), [1, 4, 5, 6, 7].into()));
}

#[test]
fn other_fabrics_and_too_few_lanes_are_refused_with_the_reason() {
    let refuse = |fabric: &Fabric, vls| {
        TorusTwoQos.route(&SwitchGraph::new(fabric), &input(vls)).unwrap_err().to_string()
    };
    let torus = testing::torus(&[4, 4], 1, 0);
    assert_eq!(refuse(&torus, 1), "torus-2qos: needs 2 virtual lanes, the links have 1");
    let tree = refuse(&testing::fat_tree(&[2, 4], &[1, 4], 0), 8);
    assert!(tree.starts_with("torus-2qos: "), "{tree}");
    let nodes: Vec<_> = torus.switches().map(|(id, _)| id).collect();
    let mut twice = torus;
    for node in [0, 2] {
        twice.disconnect(PortRef { node: nodes[node], port: PortNum(1) }).unwrap();
    }
    let reason = refuse(&twice, 2);
    assert!(reason.contains("broken in more than one place"), "{reason}");
}

/// Groups of all hosts, one of each SL, all at once.
fn groups_of_all_sls(graph: &SwitchGraph) -> Vec<Group> {
    let hosts = graph.destinations().iter().filter(|d| d.host);
    let members: Vec<_> = hosts.map(|d| Member { switch: d.switch, port: d.port, receives: true }).collect();
    let mlid = |sl: u8| MulticastLid::new(0xc000 + u16::from(sl)).unwrap();
    (0..16).map(|sl| Group { mlid: mlid(sl), members: members.clone(), sl }).collect()
}

/// What the trees that room was kept for close with unicast and with one another, `None` where none was.
fn room(graph: &SwitchGraph, vls: u8) -> Option<Result<(), String>> {
    let routes = TorusTwoQos.route(graph, &input(vls)).unwrap();
    if routes.spanning.is_empty() {
        return None;
    }
    let groups = groups_of_all_sls(graph);
    let planner = multicast::Planner::new(graph).with_spanning(routes.spanning.clone());
    let mut tables = MulticastTables::new(graph.switch_count());
    for group in &groups {
        tables.set_tree(group.mlid, &planner.escape_tree(&group.members, group.sl).unwrap());
    }
    let report = verify::multicast::check(graph, &tables, &groups, &routes);
    Some(if report.is_right() { Ok(()) } else { Err(report.to_string()) })
}

/// Groups of every SL have trees for which there is room, together.
#[test]
fn whole_tori_have_room_for_trees_of_every_service_level() {
    for dims in
        [vec![5], vec![6], vec![4, 4], vec![5, 6], vec![7, 3], vec![3, 4, 5], vec![5, 3, 5], vec![6, 2]]
    {
        let whole = testing::torus(&dims, 1, 1);
        let mut less = whole.clone();
        let switches: Vec<_> = whole.switches().map(|(id, _)| id).collect();
        less.disconnect(PortRef { node: switches[dims[0] - 1], port: PortNum(1) }).unwrap();
        for (fabric, vls) in [(&whole, 2), (&whole, 8), (&less, 2), (&less, 8)] {
            assert_eq!(room(&SwitchGraph::new(fabric), vls), Some(Ok(())), "{dims:?}, {vls} VLs");
        }
    }
}

/// The same with a switch missing, whichever it is.
#[test]
fn trees_go_round_a_missing_switch() {
    for dims in [vec![4, 5], vec![6, 5], vec![3, 4, 3], vec![4, 4, 4]] {
        let whole = testing::torus(&dims, 1, 0);
        let (mut none, mut wrong) = (Vec::new(), Vec::new());
        for (number, (failed, _)) in whole.switches().enumerate() {
            let mut fabric = whole.clone();
            fabric.remove_node(failed);
            match room(&SwitchGraph::new(&fabric), 4) {
                Some(Ok(())) => {}
                Some(Err(found)) => wrong.push((number, found)),
                None => none.push(number),
            }
        }
        assert!(none.is_empty() && wrong.is_empty(), "{dims:?}: no room without {none:?}, {wrong:?}");
    }
}
