use rand::seq::{IndexedRandom, SliceRandom};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::engines::testing::random_fabrics;
use crate::engines::{NO_FALLBACK, Standing, by_name, route_chain_from};
use crate::fabric::{Destination, Fabric, Link, testing};
use crate::multicast::{self as trees, Member};
use crate::routes::LftMatrix;
use crate::verify::{self, Options, Report, multicast};

const ENGINES: [&str; 4] = ["sssp", "dfsssp", "lash", "nue"];

fn fabrics(random: &mut Pcg64Mcg) -> Vec<(String, Fabric)> {
    let named = |name: &str, fabric| (name.to_owned(), fabric);
    let mut fabrics = random_fabrics();
    fabrics.extend([
        named("torus 4x4x3", testing::torus(&[4, 4, 3], 1, 0)),
        named("torus 4x5, LMC 2", testing::torus(&[4, 5], 1, 2)),
        named("tree of three levels, LMC 2", testing::fat_tree(&[2, 3, 3], &[1, 2, 3], 2)),
        named("small leaf, LMC 1", testing::tree_with_a_small_leaf(1)),
        named("dragonfly+", testing::dragonfly_plus(5, 3, 3)),
        named("random, degree 5", testing::random(30, 5, 1, random)),
    ]);
    fabrics
}

fn random() -> Pcg64Mcg {
    testing::seeded(24)
}

fn without(fabric: &Fabric, links: &[Link]) -> Arc<SwitchGraph> {
    Arc::new(SwitchGraph::new(&testing::without(fabric, links)))
}

fn moved(before: &LftMatrix, after: &LftMatrix) -> usize {
    let rows = 0..before.switch_count() as u32;
    rows.map(|s| before.row(s).iter().zip(after.row(s).iter()).filter(|(a, b)| a != b).count()).sum()
}

/// Entries that no minimal routing can keep: those whose link is gone, or leads no nearer any more.
fn must_move(graph: &SwitchGraph, lfts: &LftMatrix) -> usize {
    let mut count = 0;
    for d in graph.destinations() {
        let mut hops = vec![u32::MAX; graph.switch_count()];
        hops[d.switch as usize] = 0;
        let mut queue = std::collections::VecDeque::from([d.switch]);
        while let Some(at) = queue.pop_front() {
            for arc in graph.arcs(at) {
                if hops[arc.to as usize] == u32::MAX {
                    hops[arc.to as usize] = hops[at as usize] + 1;
                    queue.push_back(arc.to);
                }
            }
        }
        for s in (0..graph.switch_count() as u32).filter(|s| *s != d.switch) {
            let nearer = |port: u8| {
                let arc = graph.arcs(s).iter().find(|arc| arc.out_port == port);
                arc.is_some_and(|arc| hops[arc.to as usize].wrapping_add(1) == hops[s as usize])
            };
            let ports = d.lids().map(|lid| lfts.row(s)[usize::from(lid)]);
            count += ports.filter(|port| *port != crate::routes::NO_PORT && !nearer(*port)).count();
        }
    }
    count
}

/// Paths from switches with hosts that changed, and of these the ones whose SL did; no other path's may, but with `lash` that of
/// the way back from a path that changed.
fn moved_sls(engine: &str, before: (&Base, &Routes), after: (&SwitchGraph, &Routes)) -> (usize, usize) {
    let graph = after.0;
    let path = |graph: &SwitchGraph, routes: &Routes, from: u32, lid: u16| {
        let mut path = vec![from];
        let exit = |s: u32| routes.lfts.row(s)[usize::from(lid)];
        let mut at = from;
        while let Some(arc) = graph.arcs(at).iter().find(|arc| arc.out_port == exit(at)) {
            path.extend([u32::from(arc.out_port), arc.to]);
            at = arc.to;
        }
        path
    };
    let mut count = (0, 0);
    let senders: std::collections::BTreeSet<u32> =
        graph.destinations().iter().filter(|d| d.host).map(|d| d.switch).collect();
    let is_path = |s: u32, lid| path(&before.0.graph, before.1, s, lid) == path(graph, after.1, s, lid);
    for (d, offset, lid) in with_offsets(graph) {
        for s in &senders {
            let mut back = with_offsets(graph).filter(|(d, ..)| engine == "lash" && d.switch == *s);
            let back = back.find(|(_, other, _)| *other == offset);
            let stays = is_path(*s, lid) && back.is_none_or(|(.., back)| is_path(d.switch, back));
            let number = mad::types::Lid::new(lid).unwrap();
            let sl = before.1.path_sl(*s, number) == after.1.path_sl(*s, number);
            assert!(sl || !stays, "the path from {s} to {lid} is what it was");
            count = add(count, (usize::from(!stays), usize::from(!sl)));
        }
    }
    count
}

/// Every LID with its port and its place among those of the port.
fn with_offsets(graph: &SwitchGraph) -> impl Iterator<Item = (&Destination, usize, u16)> {
    graph.destinations().iter().flat_map(|d| d.lids().enumerate().map(move |(offset, lid)| (d, offset, lid)))
}

/// The answer to a request goes by its SL.
fn check_pairs(graph: &SwitchGraph, routes: &Routes, name: &str) {
    let sl = |from: &Destination, lid: u16| routes.path_sl(from.switch, mad::types::Lid::new(lid).unwrap());
    for (d, offset, lid) in with_offsets(graph).filter(|(d, ..)| d.host) {
        for (other, _, back) in with_offsets(graph).filter(|(d, at, _)| d.host && *at == offset) {
            assert_eq!(sl(other, lid), sl(d, back), "{name}: between {lid} and {back}");
        }
    }
}

const fn add(a: (usize, usize), b: (usize, usize)) -> (usize, usize) {
    (a.0 + b.0, a.1 + b.1)
}

struct Step {
    routes: Routes,
    standing: Option<Standing>,
}

fn go(
    engine: &str,
    graph: &Arc<SwitchGraph>,
    input: &RoutingInput,
    before: Option<&Standing>,
) -> Option<Step> {
    let chained = route_chain_from(&[engine, NO_FALLBACK], graph, input, before).ok()?;
    Some(Step { routes: chained.routes, standing: Some(chained.standing) })
}

fn base_of(standing: Option<&Standing>) -> &Arc<Base> {
    standing.and_then(Standing::base).expect("an engine that repairs")
}

/// What an engine promises of its tables.
fn check(engine: &str, graph: &SwitchGraph, routes: &Routes, input: &RoutingInput, name: &str) -> Report {
    let options = Options { management: engine == "nue", data_vls: input.data_vls };
    let report = verify::check(graph, routes, options);
    let name = format!("{engine} on {name}");
    assert!(report.reaches_all() && report.bad_vls == 0, "{name}: {report}");
    assert!(engine == "sssp" || report.is_right(), "{name}: {report}");
    assert!(engine == "nue" || report.hops.detours == 0, "{name}: {report}");
    assert!(report.vls <= usize::from(routes.vls) && routes.vls <= input.data_vls, "{name}: {report}");
    if engine == "lash" && report.unconnected == 0 {
        check_pairs(graph, routes, &name);
    }
    // Where no lane had room for a tree of all switches, none was promised.
    if !routes.spanning.is_empty() && report.unconnected == 0 {
        let of_hosts = graph.destinations().iter().filter(|d| d.host);
        let members: Vec<Member> =
            of_hosts.map(|d| Member { switch: d.switch, port: d.port, receives: true }).collect();
        let mlid = mad::types::MulticastLid::new(0xc000).unwrap();
        let groups = [multicast::Group { mlid, members, sl: 0 }];
        let planned = trees::plan(graph, &groups, routes, None);
        let tree = multicast::check(graph, &planned.tables, &groups, routes);
        assert!(planned.loops.is_empty() && tree.is_right(), "{name}: {tree}");
        // The tree that room is kept for, by itself.
        let planner = trees::Planner::new(graph).with_spanning(routes.spanning.clone());
        let mut tables = trees::MulticastTables::new(graph.switch_count());
        tables.set_tree(mlid, &planner.escape_tree(&groups[0].members, groups[0].sl).unwrap());
        let tree = multicast::check(graph, &tables, &groups, routes);
        assert!(tree.is_right(), "{name}: {tree}");
    }
    report
}

/// Cables go one after another and come back in another order. After each step the tables are right, fewer entries moved than from
/// nothing, and they are those of any other way to the same fabric.
#[test]
fn b24_tables_depend_on_the_base_and_on_what_is_lost_only() {
    let mut random = random();
    let mut counts = [(0, 0); ENGINES.len()];
    let mut sums = [(0, 0); ENGINES.len()];
    let mut sls = (0, 0);
    for (name, whole) in fabrics(&mut random) {
        for ((engine, (repaired, from_nothing)), sum) in ENGINES.into_iter().zip(&mut counts).zip(&mut sums) {
            for vls in [1, 2, 8] {
                let input = RoutingInput { data_vls: vls, ..RoutingInput::default() };
                let graph = without(&whole, &[]);
                let Some(first) = go(engine, &graph, &input, None) else { continue };
                assert!(first.routes == by_name(engine).unwrap().route(&graph, &input).unwrap());
                let mut base = Arc::clone(base_of(first.standing.as_ref()));
                let links = testing::between_switches(&whole);
                let lost: Vec<Link> = links.sample(&mut random, 4.min(links.len())).copied().collect();
                let mut standing = first.standing.clone();
                let mut seen: Vec<(Vec<Link>, Routes)> = Vec::new();
                // One after the other, then back from the first on.
                let steps = (1..=lost.len()).map(|n| &lost[..n]).chain((1..lost.len()).map(|n| &lost[n..]));
                for gone in steps {
                    let graph = without(&whole, gone);
                    let Some(step) = go(engine, &graph, &input, standing.as_ref()) else { break };
                    check(engine, &graph, &step.routes, &input, &name);
                    if !Arc::ptr_eq(&base, base_of(step.standing.as_ref())) {
                        *from_nothing += 1;
                        assert!(step.routes == by_name(engine).unwrap().route(&graph, &input).unwrap());
                        base = Arc::clone(base_of(step.standing.as_ref()));
                        seen.clear();
                        standing = step.standing;
                        continue;
                    }
                    *repaired += 1;
                    assert_eq!(
                        step.routes.spanning.is_empty(),
                        base.routes.spanning.is_empty(),
                        "{engine} on {name}"
                    );
                    let ours = moved(&base.routes.lfts, &step.routes.lfts);
                    if let Ok(fresh) = by_name(engine).unwrap().route(&graph, &input) {
                        let all = moved(&base.routes.lfts, &fresh.lfts);
                        // Tables of `nue` from nothing may happen to have much in common with those before.
                        let few = ours <= all || engine == "nue";
                        assert!(few, "{engine} on {name}: {ours} entries moved, from nothing {all}");
                        *sum = add(*sum, (ours, all));
                    }
                    if engine != "nue" {
                        assert_eq!(ours, must_move(&graph, &base.routes.lfts), "{engine} on {name}");
                    }
                    if engine != "sssp" {
                        let changed = moved_sls(engine, (&base, &base.routes), (&graph, &step.routes));
                        assert!(engine != "nue" || changed.1 == 0, "{name}: SLs changed");
                        sls = if engine == "nue" { sls } else { add(sls, changed) };
                    }
                    seen.push((gone.to_vec(), step.routes));
                    standing = step.standing;
                }
                // The same fabrics in any order, all from the base.
                seen.shuffle(&mut random);
                for (gone, routes) in seen {
                    let step = go(engine, &without(&whole, &gone), &input, standing.as_ref()).unwrap();
                    assert!(step.routes == routes, "{engine} on {name}: another order, other tables");
                    standing = step.standing;
                }
                let back = go(engine, &graph, &input, standing.as_ref()).unwrap();
                assert!(back.routes == first.routes, "{engine} on {name}: all cables are back");
            }
        }
    }
    println!(
        "{:?} repaired and from nothing; {sls:?} paths changed, and their SLs",
        ENGINES.iter().zip(&counts).collect::<Vec<_>>()
    );
    println!("{sums:?} entries moved, and from nothing");
    for (engine, (ours, all)) in ENGINES.into_iter().zip(sums) {
        // `lash` from nothing chooses by rank and place, which leaves most as it was.
        let share = if engine == "lash" { 1 } else { 2 };
        assert!(share * ours < all, "{engine}: {sums:?}");
    }
    assert!(counts.iter().all(|(repaired, from_nothing)| *repaired > 4 * from_nothing));
    assert!(4 * sls.1 < sls.0, "{sls:?}: hosts keep SLs");
}

/// What the base does not know is computed from nothing, and is the next base.
#[test]
fn a_new_cable_other_settings_and_many_losses_begin_from_nothing() {
    let mut random = random();
    for engine in ENGINES {
        // Where lanes have room for whatever is lost.
        let whole = testing::fat_tree(&[3, 5], &[1, 4], 0);
        let input = RoutingInput { data_vls: 8, ..RoutingInput::default() };
        let mut links = testing::between_switches(&whole);
        links.shuffle(&mut random);
        let route =
            |graph: &SwitchGraph, input: &RoutingInput| by_name(engine).unwrap().route(graph, input).unwrap();
        let less = without(&whole, &links[..1]);
        let first = go(engine, &less, &input, None).unwrap();
        // A cable comes that was not there.
        let graph = without(&whole, &[]);
        let more = go(engine, &graph, &input, first.standing.as_ref()).unwrap();
        assert!(more.routes == route(&graph, &input), "{engine}");
        let base = base_of(more.standing.as_ref());
        assert!(base.graph.all_arcs() == graph.all_arcs(), "{engine}");
        // Other settings.
        let others = RoutingInput { data_vls: 7, ..input.clone() };
        let step = go(engine, &less, &others, more.standing.as_ref()).unwrap();
        assert!(step.routes == route(&less, &others), "{engine}");
        // A host comes that was not there.
        let mut fewer = whole.clone();
        let host = fewer.links().find(|l| !fewer.node(l.a.node).is_switch()).unwrap().a;
        fewer.disconnect(host);
        let fewer = Arc::new(SwitchGraph::new(&fewer));
        let without_it = go(engine, &fewer, &input, None).unwrap();
        let step = go(engine, &graph, &input, without_it.standing.as_ref()).unwrap();
        assert!(step.routes == route(&graph, &input), "{engine}");
        // One cable more than are repaired.
        let few = without(&whole, &links[..4]);
        let step = go(engine, &few, &input, more.standing.as_ref()).unwrap();
        assert!(Arc::ptr_eq(base, base_of(step.standing.as_ref())), "{engine}");
        let many = without(&whole, &links[..5]);
        let step = go(engine, &many, &input, more.standing.as_ref()).unwrap();
        assert!(step.routes == route(&many, &input), "{engine}");
        assert!(!Arc::ptr_eq(base, base_of(step.standing.as_ref())), "{engine}");
    }
}

/// What was cut off has no entries for the rest and the rest none for it; what hangs together goes on.
#[test]
fn a_fabric_that_falls_in_two_is_repaired_part_by_part() {
    let whole = testing::torus(&[6], 2, 0);
    let links = testing::between_switches(&whole);
    for engine in ENGINES {
        let input = RoutingInput { data_vls: 4, ..RoutingInput::default() };
        let first = go(engine, &without(&whole, &[]), &input, None).unwrap();
        let graph = without(&whole, &[links[0], links[3]]);
        let step = go(engine, &graph, &input, first.standing.as_ref()).unwrap();
        assert!(Arc::ptr_eq(base_of(first.standing.as_ref()), base_of(step.standing.as_ref())), "{engine}");
        let report = check(engine, &graph, &step.routes, &input, "two parts");
        assert_eq!(report.unconnected, 2 * 3 * 9, "{engine}");
    }
}

/// Two ports with one LID: whose entries stand where is not known, so nothing is taken over.
#[test]
fn lids_held_twice_leave_no_base() {
    let mut fabric = testing::torus(&[3, 3], 1, 0);
    let hosts: Vec<_> = fabric.nodes().filter(|(_, n)| !n.is_switch()).map(|(id, _)| id).collect();
    let one = mad::types::PortNum(1);
    let lid = fabric.node(hosts[4]).port(one).unwrap().lid;
    fabric.node_mut(hosts[6]).port_mut(one).unwrap().lid = lid;
    for engine in ENGINES {
        let input = RoutingInput { data_vls: 8, ..RoutingInput::default() };
        let standing = go(engine, &without(&fabric, &[]), &input, None).unwrap().standing;
        assert!(standing.as_ref().and_then(Standing::base).is_none(), "{engine}");
    }
}
