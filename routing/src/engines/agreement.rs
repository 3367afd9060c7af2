//! What holds for all engines, on fabrics of many shapes: tests only.

use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

use super::testing::random_fabrics;
use super::*;
use crate::adaptive::groups;
use crate::fabric::{Fabric, Node, PortRef, SwitchIndex, testing};
use crate::routes::{PathSl, SlToVl};
use crate::verify::{self, Options};

fn input(data_vls: u8) -> RoutingInput {
    RoutingInput { data_vls, ..RoutingInput::default() }
}

/// Fabrics on which every engine finds one that it is for.
fn fabrics() -> Vec<(String, Fabric)> {
    let mut fabrics = random_fabrics();
    fabrics.push(("dragonfly+".to_owned(), testing::dragonfly_plus(5, 2, 4)));
    fabrics.push(("complete".to_owned(), complete()));
    fabrics
}

/// A dragonfly of three groups of three switches.
fn complete() -> Fabric {
    let mut builder = testing::Builder::new(6);
    let groups: Vec<Vec<_>> = (0..3).map(|_| (0..3).map(|_| builder.switch()).collect()).collect();
    for group in &groups {
        for (i, s) in group.iter().enumerate() {
            builder.host(*s);
            group[i + 1..].iter().for_each(|t| builder.link(*s, *t));
        }
    }
    builder.join_groups(&groups, 1);
    builder.finish(1)
}

/// The same fabric, found in another order.
fn shuffled(fabric: &Fabric, random: &mut Pcg64Mcg) -> Fabric {
    let mut other = Fabric::new();
    let mut ids: Vec<_> = fabric.node_ids().collect();
    ids.shuffle(random);
    for id in ids {
        let node = fabric.node(id);
        let mut copy = Node::new(node.kind, node.guid, node.description.clone(), node.num_ports);
        for ((_, from), to) in node.numbered_ports().zip(copy.ports.iter_mut().flatten()) {
            (to.lid, to.lmc, to.state) = (from.lid, from.lmc, from.state);
        }
        other.add_node(copy).unwrap();
    }
    let mut links: Vec<_> = fabric.links().copied().collect();
    links.shuffle(random);
    for link in links {
        let end =
            |end: PortRef| PortRef { node: other.find(fabric.node(end.node).guid).unwrap(), port: end.port };
        let (a, b) = (end(link.b), end(link.a));
        other.connect(a, b).unwrap();
    }
    other
}

/// The tables are those of the fabric, whatever the order of discovery and the number of threads; so are the groups of adaptive
/// routing.
#[test]
fn neither_order_of_discovery_nor_number_of_threads_shows() {
    let mut random = Pcg64Mcg::new(3);
    let (mut routed, mut grouped) = (BTreeSet::new(), BTreeSet::new());
    let pools = [1, 3].map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap());
    let able = groups::Abilities { switches: None, group_cap: 5 };
    for (name, fabric) in fabrics() {
        let (one, other) = (SwitchGraph::new(&fabric), SwitchGraph::new(&shuffled(&fabric, &mut random)));
        for engine in names() {
            let route = by_name(engine).unwrap();
            // What `file` takes.
            let tables = (engine == "file").then(|| MinHop.route(&one, &input(8)).unwrap());
            let input = RoutingInput { tables, ..input(8) };
            let first = pools[0].install(|| route.route(&one, &input));
            let second = pools[1].install(|| route.route(&other, &input));
            assert!(first == second, "{engine} on {name}");
            routed.extend(first.is_ok().then_some(engine));
            let first = pools[0].install(|| groups::route(engine, &one, &input, &able));
            let second = pools[1].install(|| groups::route(engine, &other, &input, &able));
            match (first, second) {
                (Ok((first, _)), Ok((second, _))) => {
                    assert!(first.routes == second.routes && first.narrowed == second.narrowed);
                    assert!(first.tables == second.tables, "groups of {engine} on {name}");
                    grouped.insert(engine);
                }
                (first, second) => {
                    assert_eq!(first.err(), second.err(), "groups of {engine} on {name}");
                }
            }
        }
    }
    assert_eq!(routed.len(), names().count(), "{routed:?}");
    assert_eq!(grouped, ["minhop", "updn", "dnup", "ftree", "dragonfly-plus"].into());
}

/// The highest VL that a packet can get.
fn top_vl(routes: &Routes) -> u8 {
    match (&routes.sl_to_vl, &routes.sl) {
        (SlToVl::PerSwitch(tables), _) => tables.iter().flatten().flatten().copied().max().unwrap_or(0),
        (SlToVl::Uniform(map), _) => map.iter().copied().max().unwrap_or(0),
        (SlToVl::Identity, PathSl::Default) => 0,
        (SlToVl::Identity, PathSl::ByDestination(sls)) => sls.iter().copied().max().unwrap_or(0),
        (SlToVl::Identity, PathSl::BySourceSwitch(sls)) => {
            let rows = (0..sls.switch_count() as u32).flat_map(|s| sls.row(s).iter());
            rows.copied().filter(|sl| *sl < 16).max().unwrap_or(0)
        }
    }
}

/// No engine uses a VL that the links don't have, or that the operator does not grant; one that needs more says how many,
/// and is content with as many.
#[test]
fn engines_keep_to_the_lanes_of_the_links_and_say_how_many_they_need() {
    let mut refused = 0;
    for (name, fabric) in fabrics() {
        let graph = SwitchGraph::new(&fabric);
        for engine in names() {
            let route = by_name(engine).unwrap();
            for vls in [1, 2, 4, 8] {
                for granted in [input(vls), RoutingInput { max_vls: vls, ..input(15) }] {
                    match route.route(&graph, &granted) {
                        Ok(routes) => {
                            assert!(
                                routes.vls <= vls && top_vl(&routes) < vls,
                                "{engine} on {name}, {vls} VLs"
                            );
                        }
                        Err(RoutingError::NotEnoughVls { needed, available, .. }) => {
                            assert!(
                                available == vls && needed > vls,
                                "{engine} on {name}: {needed}, {vls} VLs"
                            );
                            refused += 1;
                            if needed < 16 {
                                route.route(&graph, &input(needed)).unwrap();
                            }
                        }
                        Err(_) => {}
                    }
                }
            }
        }
    }
    assert!(refused > 10, "{refused}");
}

/// Roots of a tree reach one another, though no way up and down joins them: what opensm does with connect_roots only.
#[test]
fn roots_reach_one_another() {
    let graph = SwitchGraph::new(&testing::fat_tree(&[4, 4], &[1, 4], 0));
    let roots = ranks::find_roots(&graph, &RoutingInput::default());
    for engine in ["updn", "ftree", "dnup"] {
        let routes = by_name(engine).unwrap().route(&graph, &input(1)).unwrap();
        let report = verify::check(&graph, &routes, Options::default());
        assert!(report.is_right() && report.reaches_all(), "{engine}: {report}");
        for (from, to) in roots.iter().flat_map(|from| roots.iter().map(move |to| (*from, *to))) {
            let lid = graph.destinations().iter().find(|d| d.port == 0 && d.switch == to).unwrap().lid;
            assert_ne!(routes.lfts.port(from, lid), crate::routes::NO_PORT, "{engine}");
        }
    }
}

/// Which engine follows which list: each changes the tables of those that it is documented for and of no other, and what
/// comes out is right.
#[test]
fn engines_follow_the_lists_that_they_are_documented_for() {
    let tree = SwitchGraph::new(&testing::fat_tree(&[4, 4], &[1, 4], 0));
    let torus = SwitchGraph::new(&testing::torus(&[4, 5], 2, 0));
    let dragonfly = SwitchGraph::new(&testing::dragonfly_plus(5, 2, 4));
    let graphs = [&tree, &torus, &dragonfly];
    let by_rank = ["minhop", "updn", "dnup", "ftree", "dragonfly-plus", "adaptive-minhop"];
    let with = |more: &[&'static str], less: &[&str]| -> BTreeSet<&str> {
        by_rank.into_iter().chain(more.iter().copied()).filter(|name| !less.contains(name)).collect()
    };
    let hosts = |graph: &SwitchGraph| {
        graph.destinations().iter().filter(|d| d.host).map(|d| d.guid).collect::<Vec<_>>()
    };
    let backwards = |graph: &SwitchGraph| {
        let of = |s| (graph.guid(s), graph.arcs(s).iter().rev().map(|arc| PortNum(arc.out_port)).collect());
        (0..graph.switch_count() as u32).map(of).collect::<BTreeMap<Guid, Vec<PortNum>>>()
    };
    type Steer<'a> = &'a dyn Fn(&SwitchGraph, &mut RoutingInput);
    let lists: [(&str, Steer<'_>, BTreeSet<&str>); 5] = [
        ("scatter", &|_, input| input.scatter = Some(5), with(&[], &[])),
        ("port order", &|graph, input| input.port_order = backwards(graph), with(&["dor"], &[])),
        (
            "hop weights",
            &|graph, input| {
                input.hop_weights = (0..graph.switch_count() as u32)
                    .step_by(3)
                    .flat_map(|s| {
                        graph
                            .arcs(s)
                            .iter()
                            .step_by(2)
                            .map(move |a| ((graph.guid(s), PortNum(a.out_port)), 3))
                    })
                    .collect();
            },
            ["minhop", "dor", "adaptive-minhop"].into(),
        ),
        (
            "I/O nodes",
            &|graph, input| input.io_guids = hosts(graph).into_iter().step_by(2).collect(),
            with(&["sssp", "dfsssp", "nue"], &[]),
        ),
        (
            "roots",
            &|graph, input| input.root_guids = vec![graph.guid(graph.switch_count() as u32 - 1)],
            ["updn", "ftree"].into(),
        ),
    ];
    for (list, steer, documented) in lists {
        let mut follow = BTreeSet::new();
        for graph in graphs {
            let mut steered = input(8);
            steer(graph, &mut steered);
            for engine in names() {
                let route = by_name(engine).unwrap();
                let (plain, led) = (route.route(graph, &input(8)), route.route(graph, &steered));
                if plain.as_ref().ok() != led.as_ref().ok() {
                    follow.insert(engine);
                }
                if let Ok(routes) = led {
                    let report = verify::check(graph, &routes, Options::default());
                    assert!(report.reaches_all(), "{engine} with {list}: {report}");
                }
            }
        }
        assert_eq!(follow, documented, "{list}");
    }
}

/// Most routes of one pair's LIDs over one link between switches, and the fewest that could be: LIDs over the number of
/// shortest ways that share no link.
fn shares(graph: &SwitchGraph, routes: &Routes, from: SwitchIndex, to: &Destination) -> (usize, usize) {
    let mut over: BTreeMap<(SwitchIndex, u8), usize> = BTreeMap::new();
    for lid in to.lids().filter_map(mad::types::Lid::new) {
        let mut at = from;
        while at != to.switch {
            let port = routes.lfts.port(at, lid);
            *over.entry((at, port)).or_default() += 1;
            at = graph.arcs(at).iter().find(|arc| arc.out_port == port).unwrap().to;
        }
    }
    let lids = to.lids().count();
    (over.into_values().max().unwrap_or(0), lids.div_ceil(disjoint(graph, from, to.switch).max(1)))
}

/// Shortest paths that share no cable: augmenting paths on the arcs that lead nearer.
fn disjoint(graph: &SwitchGraph, from: SwitchIndex, to: SwitchIndex) -> usize {
    let mut distance = vec![u16::MAX; graph.switch_count()];
    distance[to as usize] = 0;
    widen(graph, &mut vec![to], &mut distance);
    let mut used = vec![false; graph.all_arcs().len()];
    let numbered = |s: SwitchIndex| (graph.offsets()[s as usize] as usize..).zip(graph.arcs(s));
    let nearer = |s: SwitchIndex, to: SwitchIndex| distance[to as usize] + 1 == distance[s as usize];
    for found in 0.. {
        // Forwards over free arcs, backwards over used ones.
        let mut came: Vec<Option<(SwitchIndex, usize, bool)>> = vec![None; graph.switch_count()];
        let mut queue = vec![from];
        let mut head = 0;
        while let Some(&at) = queue.get(head) {
            head += 1;
            for (number, arc) in numbered(at) {
                let back = numbered(arc.to).find(|(_, b)| b.to == at && b.out_port == arc.in_port).unwrap().0;
                let step = match (nearer(at, arc.to), nearer(arc.to, at)) {
                    (true, _) if !used[number] => Some((number, true)),
                    (_, true) if used[back] => Some((back, false)),
                    _ => None,
                };
                let Some((number, forward)) = step else { continue };
                if arc.to != from && came[arc.to as usize].is_none() {
                    came[arc.to as usize] = Some((at, number, forward));
                    queue.push(arc.to);
                }
            }
        }
        let mut at = to;
        while let Some((before, arc, forward)) = came[at as usize] {
            used[arc] = forward;
            at = before;
        }
        if at == to {
            return found;
        }
    }
    0
}

/// The 2^LMC paths of a pair share links no more than they must on trees, and on other fabrics not much more.
#[test]
fn paths_of_one_port_are_as_disjoint_as_the_fabric_allows() {
    let mut random = Pcg64Mcg::new(11);
    let fabrics = [
        ("tree", testing::fat_tree(&[3, 4], &[1, 4], 2)),
        ("tree of three levels", testing::fat_tree(&[2, 3, 3], &[1, 2, 2], 2)),
        ("torus", testing::torus(&[4, 4], 1, 2)),
        ("random", with_lmc(&testing::random(12, 5, 1, &mut random), 2)),
        ("dragonfly+", with_lmc(&testing::dragonfly_plus(5, 2, 4), 2)),
    ];
    for (name, fabric) in &fabrics {
        let graph = SwitchGraph::new(fabric);
        for engine in names() {
            let Ok(routes) = by_name(engine).unwrap().route(&graph, &input(8)) else { continue };
            let (mut worst, mut best, mut pairs, mut apart) = (0, 0, 0, 0);
            let leaves: BTreeSet<SwitchIndex> =
                graph.destinations().iter().filter(|d| d.host).map(|d| d.switch).collect();
            for to in graph.destinations().iter().filter(|d| d.host) {
                for from in leaves.iter().filter(|from| **from != to.switch) {
                    let (found, possible) = shares(&graph, &routes, *from, to);
                    worst += found;
                    best += possible;
                    pairs += 1;
                    apart += usize::from(found == possible);
                }
            }
            println!(
                "{name}, {engine}: {worst} routes on the fullest links of {pairs} pairs, {best} possible, {apart} at best"
            );
            let tree = name.starts_with("tree");
            match engine {
                // Two orders of dimensions, or one and both ways round a ring; escape trees and lanes leave less to choose.
                "dor" => assert!(worst <= 2 * best, "{engine} on {name}: {worst}, {best}"),
                "torus-2qos" => assert!(worst * 10 <= best * 15, "{engine} on {name}: {worst}, {best}"),
                _ if tree => assert_eq!(worst, best, "{engine} on {name}"),
                "updn" | "dnup" | "nue" | "lash" => {
                    assert!(worst * 10 <= best * 25, "{engine} on {name}: {worst}, {best}")
                }
                _ => assert!(worst * 10 <= best * 15, "{engine} on {name}: {worst}, {best}"),
            }
        }
    }
}

/// Trees without some of their links and switches.
fn damaged_trees(random: &mut Pcg64Mcg) -> Vec<(&'static str, Fabric)> {
    let whole = [
        ("two levels, links", testing::fat_tree(&[6, 18], &[1, 6], 2), 12, 0),
        ("two levels, a spine", testing::fat_tree(&[6, 18], &[1, 6], 2), 4, 1),
        ("two levels, narrow", testing::fat_tree(&[4, 12], &[1, 4], 2), 8, 0),
        ("three levels, links", testing::fat_tree(&[4, 4, 6], &[1, 4, 4], 2), 20, 0),
        ("three levels, a spine", testing::fat_tree(&[4, 4, 6], &[1, 4, 4], 2), 8, 1),
        ("three levels, narrow", testing::fat_tree(&[4, 4, 4], &[1, 4, 2], 2), 6, 0),
        ("three levels, LMC 1", testing::fat_tree(&[4, 4, 6], &[1, 4, 4], 1), 20, 1),
    ];
    let damage = |(name, mut fabric, links, switches): (&'static str, Fabric, usize, usize)| {
        let graph = SwitchGraph::new(&fabric);
        let level = levels_from_hosts(&graph);
        let above = |s: &SwitchIndex| level[*s as usize] > 0;
        let mut upper: Vec<SwitchIndex> = (0..graph.switch_count() as u32).filter(above).collect();
        upper.shuffle(random);
        let links_of = |fabric: &Fabric, at: Option<crate::fabric::NodeId>| -> Vec<crate::fabric::Link> {
            let between = |l: &&crate::fabric::Link| {
                fabric.node(l.a.node).is_switch()
                    && fabric.node(l.b.node).is_switch()
                    && at.is_none_or(|at| l.a.node == at || l.b.node == at)
            };
            fabric.links().filter(between).copied().collect()
        };
        for s in &upper[..switches] {
            let gone = links_of(&fabric, Some(graph.node(*s)));
            for link in gone {
                fabric.disconnect(link.a);
            }
        }
        let mut left = links_of(&fabric, None);
        left.shuffle(random);
        for link in &left[..links] {
            fabric.disconnect(link.a);
        }
        (name, fabric)
    };
    whole.into_iter().map(damage).collect()
}

/// On trees that miss links and switches too, paths share links no more than shortest paths must, for all but a few pairs.
#[test]
fn paths_of_one_port_keep_apart_on_damaged_trees() {
    let mut random = testing::seeded(1);
    for (name, fabric) in damaged_trees(&mut random) {
        let graph = SwitchGraph::new(&fabric);
        let leaves: BTreeSet<SwitchIndex> =
            graph.destinations().iter().filter(|d| d.host).map(|d| d.switch).collect();
        for engine in ["minhop", "updn", "ftree", "dnup", "sssp", "dfsssp", "lash", "nue"] {
            let Ok(routes) = by_name(engine).unwrap().route(&graph, &input(8)) else { continue };
            let (mut pairs, mut apart, mut possible, mut least) = (0, 0, 0, 0);
            for to in graph.destinations().iter().filter(|d| d.host) {
                for from in leaves.iter().filter(|from| **from != to.switch) {
                    let (found, best) = shares(&graph, &routes, *from, to);
                    pairs += 1;
                    apart += usize::from(found == 1);
                    possible += usize::from(best == 1);
                    least += usize::from(found <= best);
                }
            }
            let text = format!(
                "{name}, {engine}: of {pairs} pairs {apart} share nothing, {possible} could; {least} share no more than they must"
            );
            println!("{text}");
            // Dependencies between channels leave `nue` less to choose.
            let share = if engine == "nue" { 90 } else { 99 };
            assert!(least * 100 >= share * pairs && apart * 100 >= (share - 4) * possible, "{text}");
            assert!(pairs > 500 && possible > 100, "{text}");
        }
    }
}

/// The same fabric with 2^lmc LIDs for each host.
fn with_lmc(fabric: &Fabric, lmc: u8) -> Fabric {
    let mut copy = fabric.clone();
    let ids: Vec<_> = copy.node_ids().collect();
    let mut next = 1_u16 << 12;
    for id in ids {
        let node = copy.node_mut(id);
        if !node.is_switch() {
            for port in node.ports.iter_mut().flatten().filter(|port| port.lid.is_some()) {
                (port.lid, port.lmc) = (mad::types::Lid::new(next), lmc);
                next += 1 << lmc;
            }
        }
    }
    copy
}
