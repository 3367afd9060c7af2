//! Planted faults are found with their paths; choices that are right are found right.

use std::collections::BTreeMap;

use mad::types::Lid;

use super::*;
use crate::engines::{MinHop, RoutingEngine, RoutingInput};
use crate::fabric::{Fabric, testing};

/// Static tables with further exits for some (switch, LID).
struct Planted {
    routes: Routes,
    more: BTreeMap<(SwitchIndex, u16), Vec<u8>>,
}

impl Choices for Planted {
    fn exits(&self, switch: SwitchIndex, lid: u16, ports: &mut Vec<u8>) {
        ports.push(self.routes.lfts.port(switch, Lid::new(lid).unwrap()));
        ports.extend(self.more.get(&(switch, lid)).into_iter().flatten());
    }

    fn sls(&self, switch: SwitchIndex, lid: u16, sls: &mut Vec<u8>) {
        sls.push(self.routes.path_sl(switch, Lid::new(lid).unwrap()));
    }
}

fn planted(fabric: &Fabric) -> (SwitchGraph, Planted) {
    let graph = SwitchGraph::new(fabric);
    let routes = MinHop.route(&graph, &RoutingInput::default()).unwrap();
    (graph, Planted { routes, more: BTreeMap::new() })
}

fn judge(graph: &SwitchGraph, planted: &Planted) -> ChoiceReport {
    check(graph, &planted.routes, &[planted])
}

/// A tree of two leaves and two spines: switches 0 and 1 are the leaves; hosts 1 and 2 on the first, 3 and 4 on the other.
fn tree() -> (SwitchGraph, Planted) {
    planted(&testing::fat_tree(&[2, 2], &[1, 2], 0))
}

#[test]
fn both_spines_as_choice_are_right() {
    let (graph, mut tables) = tree();
    let before = judge(&graph, &tables);
    assert!(before.is_right(), "{before:?}");
    for (leaf, lids) in [(0, [3, 4]), (1, [1, 2])] {
        let up: Vec<u8> = graph.arcs(leaf).iter().map(|arc| arc.out_port).collect();
        for lid in lids {
            tables.more.insert((leaf, lid), up.clone());
        }
    }
    let report = judge(&graph, &tables);
    assert!(report.is_right() && report.exits == before.exits + 4, "{report:?}");
}

#[test]
fn a_member_that_leads_back_is_named_with_the_circle() {
    let (graph, mut tables) = tree();
    // The spine on the way from leaf 0 to LID 3 may also send it back to leaf 0.
    let up = tables.routes.lfts.port(0, Lid::new(3).unwrap());
    let spine = graph.arcs(0).iter().find(|arc| arc.out_port == up).unwrap();
    tables.more.insert((spine.to, 3), vec![spine.in_port]);
    let report = judge(&graph, &tables);
    let fault = report.first_fault.unwrap();
    assert_eq!((fault.kind, fault.lid, fault.path.len()), (FaultKind::Loop, 3, 3));
    let path: Vec<_> = fault.path.iter().map(|hop| (hop.guid, hop.port)).collect();
    assert!(path.contains(&(graph.guid(0), up)) && path.contains(&(graph.guid(spine.to), spine.in_port)));
    assert_eq!(path[0], path[2]);
    assert_eq!(report.faults[FaultKind::Loop as usize], (FaultKind::Loop, 1));
}

#[test]
fn members_that_lead_nowhere_or_to_another_host_are_named() {
    let (graph, mut tables) = tree();
    let host_2 = graph.destinations().iter().find(|d| d.lid.get() == 2).unwrap();
    for (port, kind) in [(60, FaultKind::DeadPort), (host_2.port, FaultKind::WrongEnd)] {
        tables.more = [((0, 3), vec![port])].into();
        let report = judge(&graph, &tables);
        let fault = report.first_fault.unwrap();
        assert_eq!((fault.kind, fault.lid), (kind, 3));
        assert_eq!((fault.path[0].guid, fault.path[0].port), (graph.guid(0), port));
    }
    tables.more.clear();
    tables.routes.lfts.row_mut(0)[3] = NO_PORT;
    let report = judge(&graph, &tables);
    assert_eq!(report.first_fault.unwrap().kind, FaultKind::Hole);
}

/// On a ring of five the shortest ways alone close a circle of channels, though every packet arrives.
#[test]
fn a_credit_loop_of_choices_is_found() {
    let (graph, tables) = planted(&testing::torus(&[5], 1, 0));
    let report = judge(&graph, &tables);
    assert!(report.always_arrives());
    assert_eq!(report.credit_loop.expect("a ring").channels.len(), 5);
}

/// With one exit for each LID the verdict is that of the plain check, service levels included.
#[test]
fn a_single_choice_is_judged_as_the_plain_check_does() {
    let input = RoutingInput { data_vls: 8, ..RoutingInput::default() };
    for engine in ["dfsssp", "lash", "torus-2qos", "minhop"] {
        let graph = SwitchGraph::new(&testing::torus(&[4, 4], 1, 0));
        let routes = crate::engines::by_name(engine).unwrap().route(&graph, &input).unwrap();
        let plain = crate::verify::check(&graph, &routes, crate::verify::Options::default());
        let report = judge(&graph, &Planted { routes, more: BTreeMap::new() });
        assert!(report.always_arrives(), "{engine}");
        assert_eq!(report.dependencies, plain.dependencies, "{engine}");
        assert_eq!(report.credit_loop.is_some(), plain.credit_loop.is_some(), "{engine}");
    }
}
