use super::*;
use crate::engines::{RoutingInput, by_name, testing::random_fabrics};
use crate::fabric::{Fabric, testing};
use crate::multicast::{Planner, PortSet};

const MLID: MulticastLid = MulticastLid::MIN;

fn hosts(graph: &SwitchGraph) -> Vec<Member> {
    let hosts = graph.destinations().iter().filter(|d| d.host);
    hosts.map(|d| Member { switch: d.switch, port: d.port, receives: true }).collect()
}

/// One group of all hosts with its tables, and unicast tables without credit loops.
fn planned(fabric: &Fabric) -> (SwitchGraph, MulticastTables, Group, Routes) {
    let graph = SwitchGraph::new(fabric);
    let members = hosts(&graph);
    let mut tables = MulticastTables::new(graph.switch_count());
    tables.set_tree(MLID, &Planner::new(&graph).tree(MLID, &members));
    let routes = by_name("updn").unwrap().route(&graph, &RoutingInput::default()).unwrap();
    (graph, tables, Group { mlid: MLID, members, sl: 0 }, routes)
}

fn port_to(graph: &SwitchGraph, from: SwitchIndex, to: SwitchIndex) -> u8 {
    graph.arcs(from).iter().find(|arc| arc.to == to).unwrap().out_port
}

fn change(tables: &mut MulticastTables, switch: SwitchIndex, change: impl Fn(u8) -> bool, add: &[u8]) {
    let ports: PortSet =
        tables.ports(switch, MLID).iter().filter(|p| change(*p)).chain(add.iter().copied()).collect();
    tables.set_ports(switch, MLID, ports);
}

fn count(report: &MulticastReport, kind: MulticastFaultKind) -> u64 {
    report.faults[kind as usize].1
}

#[test]
fn planned_trees_are_right_on_every_shape() {
    for (name, fabric) in random_fabrics() {
        let (graph, mut tables, all, routes) = planned(&fabric);
        let mut groups = vec![all];
        for number in 1..6 {
            let mlid = MulticastLid::new(MLID.get() + number).unwrap();
            let member = |(i, m): (usize, &Member)| Member { receives: i % 3 != 0, ..*m };
            let every = |(i, _): &(usize, &Member)| i % (usize::from(number) + 1) == 0;
            let members: Vec<Member> = hosts(&graph).iter().enumerate().filter(every).map(member).collect();
            tables.set_tree(mlid, &Planner::new(&graph).tree(mlid, &members));
            groups.push(Group { mlid, members, sl: 0 });
        }
        let report = check(&graph, &tables, &groups, &routes);
        let faults: u64 = report.faults.iter().map(|(_, count)| count).sum();
        assert_eq!((faults, report.arrived), (0, report.pairs), "{name}: {report}");
        assert!(report.pairs > 0 && report.groups == 6);
        if name.starts_with("tree") && !name.contains("less") {
            assert!(report.is_right(), "{name}: shortest ways up and down a tree close nothing: {report}");
        }
    }
}

/// A dump that was cut off between two tables: members are not known, but others copy to the switches that are missing. Found
/// wherever it is cut, and not where all tables are there.
#[test]
fn a_switch_that_is_copied_to_without_an_entry_is_found_without_a_list() {
    for (name, fabric) in random_fabrics() {
        let (graph, tables, _, routes) = planned(&fabric);
        let whole = check_unlisted(&graph, &tables, &routes);
        assert_eq!(count(&whole, MulticastFaultKind::NoEntry), 0, "{name}: {whole}");
        let with_entry: Vec<SwitchIndex> = (0..graph.switch_count() as SwitchIndex)
            .filter(|s| tables.ports(*s, MLID).iter().next().is_some())
            .collect();
        for kept in 1..with_entry.len() {
            let mut cut = tables.clone();
            with_entry[kept..].iter().for_each(|s| cut.set_ports(*s, MLID, PortSet::EMPTY));
            let report = check_unlisted(&graph, &cut, &routes);
            let missing = |s: SwitchIndex| with_entry[kept..].contains(&s);
            let copies = with_entry[..kept].iter().flat_map(|s| {
                let ports = tables.ports(*s, MLID);
                let arcs = graph.arcs(*s).iter().filter(move |arc| ports.iter().any(|p| p == arc.out_port));
                arcs.filter(|arc| missing(arc.to))
            });
            let copies = copies.count() as u64;
            assert_eq!(count(&report, MulticastFaultKind::NoEntry), copies, "{name}, {kept}: {report}");
            // A fabric of several parts has a tree in each.
            assert!(copies == 0 || !report.is_right(), "{name}, {kept}: {report}");
            // Members on the two sides of a switch that is missing do not reach each other either.
            let kind = MulticastFaultKind::NoEntry;
            if let Some(first) = report.first_fault.filter(|first| first.kind == kind) {
                assert!(missing(graph.find(first.other[0].guid).unwrap()), "{first}");
            }
        }
    }
}

#[test]
fn a_circle_is_found_with_the_way_round() {
    let (graph, mut tables, group, routes) = planned(&testing::torus(&[4], 1, 0));
    // Close the ring: every switch copies to both neighbours.
    for s in 0..4 {
        let ports: Vec<u8> = graph.arcs(s).iter().map(|arc| arc.out_port).collect();
        change(&mut tables, s, |_| true, &ports);
    }
    let report = check(&graph, &tables, &[group], &routes);
    assert!(count(&report, MulticastFaultKind::Loop) > 0 && !report.is_right(), "{report}");
    let first = report.first_fault.clone().unwrap();
    assert_eq!(
        (first.kind, first.mlid),
        (MulticastFaultKind::Twice, 0xc000),
        "copies meet before they come round"
    );
    assert!(report.credit_loop.is_some(), "a ring of copies waits for itself: {report}");

    // One way round only: no copy meets another, the loop comes first.
    let (graph, mut tables, _, routes) = planned(&testing::torus(&[4], 1, 0));
    let ring: Vec<u32> = {
        let next = |s: u32, before: u32| graph.arcs(s).iter().map(|a| a.to).find(|to| *to != before).unwrap();
        let one = graph.arcs(0)[0].to;
        let two = next(one, 0);
        vec![0, one, two, next(two, one)]
    };
    for (i, s) in ring.iter().enumerate() {
        let links: Vec<u8> = graph.arcs(*s).iter().map(|arc| arc.out_port).collect();
        change(&mut tables, *s, |port| !links.contains(&port), &[port_to(&graph, *s, ring[(i + 1) % 4])]);
    }
    let mut only = tables.clone();
    for s in &ring[1..] {
        change(&mut only, *s, |port| graph.arcs(*s).iter().any(|arc| arc.out_port == port), &[]);
    }
    let member = hosts(&graph)[0];
    assert_eq!(member.switch, 0);
    let report = check(&graph, &only, &[Group { mlid: MLID, members: vec![member], sl: 0 }], &routes);
    let first = report.first_fault.clone().unwrap();
    assert_eq!(first.kind, MulticastFaultKind::Loop, "{report}");
    let guids: Vec<_> = first.path.iter().map(|hop| hop.guid).collect();
    assert_eq!(guids, ring.iter().chain(&ring[..1]).map(|s| graph.guid(*s)).collect::<Vec<_>>(), "{report}");
}

#[test]
fn a_member_that_is_not_reached_is_named_with_how_far_the_packet_comes() {
    let (graph, tables, group, routes) = planned(&testing::fat_tree(&[2, 3], &[1, 2], 0));
    let lost = *group.members.iter().find(|m| m.switch == 2).unwrap();
    // The last bit is missing.
    let mut broken = tables.clone();
    change(&mut broken, 2, |port| port != lost.port, &[]);
    let report = check(&graph, &broken, std::slice::from_ref(&group), &routes);
    assert_eq!(count(&report, MulticastFaultKind::Missing), 3, "from three leaves: {report}");
    let first = report.first_fault.clone().unwrap();
    assert_eq!(
        (first.kind, first.other[0].guid, first.other[0].port),
        (MulticastFaultKind::Missing, graph.guid(2), lost.port)
    );
    let (begin, end) = (&first.path[0], first.path.last().unwrap());
    assert_eq!(
        (begin.guid, end.guid, end.port, first.path.len()),
        (graph.guid(0), graph.guid(2), 255, 3),
        "{report}"
    );
    // The spine does not copy to the leaf.
    let spine = (3..5).find(|s| !tables.ports(*s, MLID).is_empty()).unwrap();
    let mut broken = tables.clone();
    change(&mut broken, spine, |port| port != port_to(&graph, spine, 2), &[]);
    let report = check(&graph, &broken, &[group], &routes);
    let first = report.first_fault.clone().unwrap();
    assert_eq!(
        first.path.iter().map(|hop| hop.guid).collect::<Vec<_>>(),
        [0, spine].map(|s| graph.guid(s)),
        "{report}"
    );
    assert_eq!(count(&report, MulticastFaultKind::Missing), 4, "two members from two leaves: {report}");
    // Who is not known to be a member is not missed when nobody delivers to it.
    let known = groups_of(&graph, &broken);
    assert_eq!(known[0].members.len(), 6);
}

#[test]
fn a_second_copy_is_found_with_both_ways() {
    let (graph, mut tables, group, routes) = planned(&testing::fat_tree(&[1, 2], &[1, 2], 0));
    // The other spine joins the two leaves too, so that each copy arrives twice; that a leaf sends nothing back to where the
    // first copy came from is taken away by copying upwards from leaf 0 only.
    let idle = (2..4).find(|s| tables.ports(*s, MLID).is_empty()).unwrap();
    change(&mut tables, 0, |_| true, &[port_to(&graph, 0, idle)]);
    tables.set_ports(idle, MLID, PortSet::from_iter([port_to(&graph, idle, 1)]));
    let from_first = Group { members: group.members.clone(), ..group };
    let report = check(&graph, &tables, &[from_first], &routes);
    assert!(count(&report, MulticastFaultKind::Twice) > 0, "{report}");
    let first = report.first_fault.clone().unwrap();
    assert_eq!(first.kind, MulticastFaultKind::Twice, "{report}");
    assert_eq!((first.path.len(), first.other.len()), (3, 3), "{report}");
    assert_ne!(first.path[1].guid, first.other[1].guid, "by different spines: {report}");
    assert_eq!(first.path[2], first.other[2]);
}

#[test]
fn exits_without_a_link_and_ports_of_strangers_are_named() {
    let (graph, tables, group, routes) = planned(&testing::fat_tree(&[2, 3], &[1, 2], 0));
    let mut dead = tables.clone();
    change(&mut dead, 1, |_| true, &[60]);
    let report = check(&graph, &dead, std::slice::from_ref(&group), &routes);
    assert_eq!(count(&report, MulticastFaultKind::DeadPort), 3, "{report}");
    let first = report.first_fault.unwrap();
    assert_eq!((first.path.last().unwrap().guid, first.path.last().unwrap().port), (graph.guid(1), 60));
    // A member that only sends gets nothing; a tree that delivers to it leaks.
    let mut members = group.members.clone();
    members[0].receives = false;
    let report = check(&graph, &tables, &[Group { members, ..group }], &routes);
    assert_eq!(count(&report, MulticastFaultKind::Stranger), 3, "{report}");
}

/// A tree from one leaf over another to a third waits against up/down: with unicast together it closes a circle that neither
/// closes alone.
#[test]
fn a_credit_loop_of_multicast_and_unicast_together_is_found() {
    let graph = SwitchGraph::new(&testing::torus(&[5], 1, 0));
    let input = RoutingInput { root_guids: vec![graph.guid(0)], ..RoutingInput::default() };
    let routes = by_name("updn").unwrap().route(&graph, &input).unwrap();
    assert!(crate::verify::check(&graph, &routes, crate::verify::Options::default()).credit_loop.is_none());
    // Unicast turns at every switch but the lowest; a group across the lowest closes the ring.
    let members = hosts(&graph);
    let closed = (0..5_u32).any(|middle| {
        let near: Vec<u32> = graph.arcs(middle).iter().map(|arc| arc.to).collect();
        let group: Vec<Member> =
            members.iter().filter(|m| m.switch == middle || near.contains(&m.switch)).copied().collect();
        let mut tables = MulticastTables::new(5);
        tables.set_tree(MLID, &Planner::new(&graph).tree(MLID, &group));
        let group = Group { mlid: MLID, members: group, sl: 0 };
        let alone = check(&graph, &tables, std::slice::from_ref(&group), &Routes::empty("none", &graph));
        assert!(alone.is_right() && alone.dependencies == 2, "{alone}");
        let both = check(&graph, &tables, std::slice::from_ref(&group), &routes);
        let other_lane = check(&graph, &tables, &[Group { sl: 1, ..group }], &routes);
        assert_eq!(other_lane.credit_loop, None, "on a VL of its own it waits for nobody");
        let found = both.credit_loop.as_ref().map(|found| found.channels.len());
        assert!(found.is_none_or(|channels| channels == 5), "the ring: {both}");
        found.is_some()
    });
    assert!(closed);
}
