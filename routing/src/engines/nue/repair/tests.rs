use std::sync::Arc;

use rand::seq::SliceRandom;

use crate::engines::nue::Nue;
use crate::engines::testing::random_fabrics;
use crate::engines::{NO_FALLBACK, RoutingEngine, RoutingInput, Standing, route_chain_from};
use crate::fabric::{Fabric, LinkChange, SwitchGraph, testing};
use crate::multicast::{self as trees, Member};
use crate::routes::Routes;
use crate::verify::{self, Options, Report, multicast};

fn fabrics(random: &mut rand_pcg::Pcg64Mcg) -> Vec<(String, Fabric)> {
    let named = |name: &str, fabric| (name.to_owned(), fabric);
    let mut fabrics = random_fabrics();
    let tree = testing::fat_tree(&[4, 4, 8], &[1, 4, 4], 0);
    let mut links = testing::between_switches(&tree);
    links.shuffle(random);
    let damaged = testing::without(&tree, &links[..links.len() / 10]);
    fabrics.extend([
        named("torus 4x4x3", testing::torus(&[4, 4, 3], 1, 0)),
        named("torus 6x6", testing::torus(&[6, 6], 2, 0)),
        named("torus 4x5, LMC 2", testing::torus(&[4, 5], 1, 2)),
        named("tree of three levels, LMC 2", testing::fat_tree(&[2, 3, 3], &[1, 2, 3], 2)),
        named("tree, a tenth of the cables less", damaged),
        named("small leaf, LMC 1", testing::tree_with_a_small_leaf(1)),
        named("dragonfly+", testing::dragonfly_plus(5, 3, 3)),
        named("random, degree 5", testing::random(30, 5, 1, random)),
        named("random, degree 8", testing::random(50, 8, 2, random)),
    ]);
    fabrics
}

fn without(whole: &Fabric, links: &[crate::fabric::Link]) -> Arc<SwitchGraph> {
    Arc::new(SwitchGraph::new(&testing::without(whole, links)))
}

/// Entries that differ, of those to LIDs that somebody has.
fn moved(graph: &SwitchGraph, before: &Routes, after: &Routes) -> usize {
    let differing = |lid: u16| {
        let entry = |routes: &Routes, s| routes.lfts.row(s)[usize::from(lid)];
        (0..graph.switch_count() as u32).filter(|s| entry(before, *s) != entry(after, *s)).count()
    };
    graph.destinations().iter().flat_map(|d| d.lids()).map(differing).sum()
}

/// Entries whose way goes over a link that is gone: at once, or farther on.
fn cut(old: &SwitchGraph, links: &LinkChange, routes: &Routes) -> usize {
    let mut count = 0;
    for lid in old.destinations().iter().flat_map(|d| d.lids()) {
        for start in 0..old.switch_count() as u32 {
            let mut at = start;
            let exit = |s: u32| routes.lfts.row(s)[usize::from(lid)];
            while let Some(arc) = old.arcs(at).iter().find(|arc| arc.out_port == exit(at)) {
                let is_lost =
                    |(s, lost): &(u32, u32)| *s == at && old.all_arcs()[*lost as usize].out_port == exit(at);
                if links.lost.iter().any(is_lost) {
                    count += 1;
                    break;
                }
                at = arc.to;
            }
        }
    }
    count
}

fn route(graph: &Arc<SwitchGraph>, input: &RoutingInput, before: Option<&Standing>) -> (Routes, Standing) {
    let chained = route_chain_from(&["nue", NO_FALLBACK], graph, input, before).unwrap();
    (chained.routes, chained.standing)
}

fn check(graph: &SwitchGraph, routes: &Routes, name: &str) -> Report {
    let report = verify::check(graph, routes, Options { management: true, data_vls: routes.vls });
    assert!(report.is_right() && report.reaches_all(), "{name}: {report}");
    assert!(report.vls <= usize::from(routes.vls), "{name}: {report}");
    report
}

/// All hosts are members of a group of each SL, whose trees are those that room is kept for.
fn check_multicast(graph: &SwitchGraph, routes: &Routes, name: &str) {
    let hosts = graph.destinations().iter().filter(|d| d.host);
    let members: Vec<Member> =
        hosts.map(|d| Member { switch: d.switch, port: d.port, receives: true }).collect();
    let planner = trees::Planner::new(graph).with_spanning(routes.spanning.clone());
    let mut tables = trees::MulticastTables::new(graph.switch_count());
    let group = |sl: u8| multicast::Group {
        mlid: mad::types::MulticastLid::new(0xc000 + u16::from(sl)).unwrap(),
        members: members.clone(),
        sl,
    };
    let groups: Vec<multicast::Group> = (0..16).map(group).collect();
    for group in &groups {
        tables.set_tree(group.mlid, &planner.escape_tree(&group.members, group.sl).unwrap());
    }
    let report = multicast::check(graph, &tables, &groups, routes);
    assert!(report.is_right(), "{name}: {report}");
}

/// One cable, and four at once, on every kind of fabric and number of lanes: the tables are right, and multicast goes with them; little
/// moves that does not have to, and the rest is about as good as from nothing.
#[test]
fn lost_cables_move_little_more_than_the_ways_over_them() {
    let mut random = testing::seeded(11);
    let mut trees_of_their_own = 0;
    let fabrics = fabrics(&mut random);
    for vls in [1, 2, 8] {
        let (mut ours, mut all, mut must) = (0, 0, 0);
        let (mut worse, mut count) = ([0.0; 2], 0.0);
        for (name, whole) in &fabrics {
            let graph = without(whole, &[]);
            let input = RoutingInput { data_vls: vls, ..RoutingInput::default() };
            let (first, standing) = route(&graph, &input, None);
            for number in [1, 1, 1, 4] {
                let mut links = testing::between_switches(whole);
                links.shuffle(&mut random);
                let left = without(whole, &links[..number]);
                let change = LinkChange::between(&graph, &left).unwrap();
                let name = format!("{name}, {vls} lanes, {number} cables less");
                let (repaired, next) = route(&left, &input, Some(&standing));
                assert!(Arc::ptr_eq(standing.base().unwrap(), next.base().unwrap()), "{name}: not repaired");
                let fresh = Nue.route(&left, &input).unwrap();
                let reports = [&repaired, &fresh].map(|routes| check(&left, routes, &name));
                if reports[0].unconnected == 0 {
                    check_multicast(&left, &repaired, &name);
                }
                trees_of_their_own += usize::from(repaired.spanning.len() > 1);
                ours += moved(&left, &first, &repaired);
                all += moved(&left, &first, &fresh);
                must += cut(&graph, &change, &first);
                if reports[1].hops.mean > 0.0 {
                    worse[0] += reports[0].hops.mean / reports[1].hops.mean;
                    worse[1] += f64::from(reports[0].balance.max) / f64::from(reports[1].balance.max.max(1));
                    count += 1.0;
                }
            }
        }
        let worse = worse.map(|sum| sum / count);
        println!(
            "{vls} lanes: {ours} entries moved, {must} cut, {all} from nothing; hops and load: {worse:?}"
        );
        assert!(4 * ours < 5 * must && 3 * ours < all, "{vls} lanes: {ours} of {must}, from nothing {all}");
        assert!(worse[0] < 1.02 && worse[1] < 1.15, "{vls} lanes: {worse:?}");
    }
    assert!(trees_of_their_own > 0, "lanes that are full join the parts of their trees otherwise");
}
