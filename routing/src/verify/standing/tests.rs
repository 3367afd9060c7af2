use rand::seq::IndexedRandom;

use super::*;
use crate::engines::{self, RoutingInput};
use crate::fabric::{Fabric, Link, testing};
use crate::verify::{Fault, check};

/// What two checks must agree upon.
fn comparable(report: &Report) -> (Report, bool) {
    let management = report.management_credit_loop.is_some();
    let named =
        Report { dependencies: 0, first_detour: None, management_credit_loop: None, ..report.clone() };
    (named, management)
}

/// Cables go and come back one after another: every report is the one from nothing (B24).
#[test]
fn b24_reports_by_difference_are_those_from_nothing() {
    let mut random = testing::seeded(3);
    let shapes = [
        ("tree", testing::fat_tree(&[3, 3, 3], &[1, 3, 3], 1)),
        ("thin tree", testing::fat_tree(&[4, 5], &[1, 2], 0)),
        ("torus", testing::torus(&[4, 4], 2, 0)),
        ("random", testing::random(14, 4, 2, &mut random)),
    ];
    let mut stepped = 0;
    for (name, whole) in shapes {
        for engine in ["minhop", "updn", "dfsssp"] {
            let mut fabrics: Vec<Fabric> = vec![whole.clone()];
            for _ in 0..4 {
                let mut fabric = fabrics.last().unwrap().clone();
                let between =
                    |l: &&Link| fabric.node(l.a.node).is_switch() && fabric.node(l.b.node).is_switch();
                let links: Vec<Link> = fabric.links().filter(between).copied().collect();
                fabric.disconnect(links.choose(&mut random).unwrap().a);
                fabrics.push(fabric);
            }
            let back: Vec<Fabric> = fabrics.iter().rev().skip(1).cloned().collect();
            fabrics.extend(back);
            let mut standing: Option<Standing> = None;
            for fabric in &fabrics {
                let graph = Arc::new(SwitchGraph::new(fabric));
                let input = RoutingInput { data_vls: 8, ..RoutingInput::default() };
                let routes = engines::by_name(engine).unwrap().route(&graph, &input).unwrap();
                let routes = Arc::new(routes);
                let whole = check(&graph, &routes, Options::default());
                let network = Network::new(&graph);
                let lanes = Lanes::new(&network, &routes, 0);
                let possible = |old: &Standing| {
                    let before = Network::new(&old.graph);
                    old.step((&before, &network), &routes, &lanes, Options::default())
                };
                stepped += usize::from(standing.as_ref().and_then(possible).is_some());
                let (report, next) = check_from(&graph, &routes, Options::default(), standing.as_ref());
                assert_eq!(comparable(&report), comparable(&whole), "{engine} on {name}");
                assert!(report.dependencies >= whole.dependencies);
                standing = Some(next);
            }
        }
    }
    assert!(stepped > 15, "most checks go by difference: {stepped}");
}

/// A fault that a changed table brings is found, and named with its path.
#[test]
fn a_loop_in_the_new_tables_is_found() {
    let graph = Arc::new(SwitchGraph::new(&testing::fat_tree(&[4, 4], &[1, 2], 0)));
    let routes = engines::by_name("updn").unwrap().route(&graph, &RoutingInput::default()).unwrap();
    let (_, standing) = check_from(&graph, &Arc::new(routes.clone()), Options::default(), None);
    let host = *graph.destinations().iter().find(|d| d.host).unwrap();
    let spine = graph.arcs(host.switch)[0];
    let other = graph.arcs(spine.to).iter().find(|a| a.to != host.switch).unwrap();
    let mut broken = routes;
    broken.lfts.row_mut(spine.to)[host.lid.index()] = other.out_port;
    broken.lfts.row_mut(other.to)[host.lid.index()] = other.in_port;
    let broken = Arc::new(broken);
    let (report, _) = check_from(&graph, &broken, Options::default(), Some(&standing));
    assert_eq!(report, check(&graph, &broken, Options::default()));
    let Some(Fault { kind, lid, path }) = &report.first_fault else { panic!("{report}") };
    assert_eq!((*kind, *lid, path.len()), (crate::verify::FaultKind::Loop, host.lid.get(), 3), "{report}");
}
