use super::*;
use crate::fabric::testing;
use crate::verify::{self, FaultKind, Options};
use mad::types::Lid;

/// B21: the chain says which engine ran and why those before it did not; nothing of them shows in the tables.
#[test]
fn b21_a_chain_names_who_routed_and_why_the_others_refused() {
    let graph = SwitchGraph::new(&testing::torus(&[5], 1, 0));
    let input = RoutingInput { data_vls: 1, ..RoutingInput::default() };
    let (routes, refused) =
        route_chain(&["ftree", "torus-2QoS", "no_such", "dfsssp"], &graph, &input).unwrap();
    assert_eq!(routes.engine, "minhop");
    assert!(routes == MinHop.route(&graph, &input).unwrap());
    let reasons: Vec<String> = refused.iter().map(ToString::to_string).collect();
    assert_eq!(reasons.len(), 4, "{reasons:?}");
    assert!(reasons[0].starts_with("ftree: no level of switches"), "{reasons:?}");
    assert_eq!(reasons[1], "torus-2qos: needs 2 virtual lanes, the links have 1");
    assert!(
        reasons[2].starts_with("no routing engine is called `no_such`; there are: minhop, updn"),
        "{reasons:?}"
    );
    assert!(reasons[3].starts_with("dfsssp: needs 2 virtual lanes"), "{reasons:?}");
    let none = route_chain(&["ftree", NO_FALLBACK], &graph, &input).unwrap_err();
    assert_eq!(none.len(), 1);
}

/// Fabrics without switches, hosts or links are routed or refused by every engine, and never a panic.
#[test]
fn every_engine_survives_fabrics_with_nothing_in_them() {
    let mut lone = testing::Builder::new(4);
    lone.switch();
    let mut pair = testing::Builder::new(4);
    let (a, b) = (pair.switch(), pair.switch());
    pair.link(a, b);
    let mut apart = testing::Builder::new(4);
    for _ in 0..2 {
        let s = apart.switch();
        apart.host(s);
    }
    let fabrics = [crate::fabric::Fabric::new(), lone.finish(0), pair.finish(0), apart.finish(1)];
    for fabric in &fabrics {
        let graph = SwitchGraph::new(fabric);
        for name in names() {
            let engine = by_name(name).unwrap();
            for data_vls in [0, 1, 8] {
                let input = RoutingInput { data_vls, ..RoutingInput::default() };
                match engine.route(&graph, &input) {
                    Ok(routes) => {
                        let report = verify::check(&graph, &routes, Options::default());
                        assert!(report.reaches_all(), "{report}");
                    }
                    Err(error) => assert!(!error.to_string().is_empty()),
                }
            }
        }
    }
}

/// Two ports with a LID, or with ranges that overlap: whoever has it, no engine panics over it, and no walk goes round in a circle.
#[test]
fn every_engine_survives_lids_that_two_ports_hold() {
    for (fabric, lmc) in [(testing::fat_tree(&[3, 4], &[1, 2], 0), 0_u16), (testing::torus(&[3, 4], 2, 2), 2)]
    {
        let mut hosts: Vec<_> =
            fabric.nodes().filter(|(_, node)| !node.is_switch()).map(|(id, _)| id).collect();
        let lid = |id| fabric.node(id).end_ports().find_map(|(_, port)| port.lid).unwrap();
        hosts.sort_by_key(|id| lid(*id));
        let (first, last) = (lid(hosts[0]), *hosts.last().unwrap());
        // The same base, and one in the middle of the other's range.
        for shift in [0, lmc] {
            let mut fabric = fabric.clone();
            fabric.node_mut(last).port_mut(PortNum(1)).unwrap().lid = Lid::new(first.get() + shift);
            let graph = SwitchGraph::new(&fabric);
            for name in names() {
                let Ok(routes) = by_name(name).unwrap().route(&graph, &RoutingInput::default()) else {
                    continue;
                };
                let report = verify::check(&graph, &routes, Options::default());
                assert!(
                    report.faults.iter().all(|(kind, count)| *kind != FaultKind::Loop || *count == 0),
                    "{name}: {report}"
                );
            }
        }
    }
}

/// One host of each leaf is an I/O node. By its place among all hosts each would take the same uplink of every leaf; spread by
/// themselves they take one each.
#[test]
fn io_nodes_are_spread_by_themselves() {
    let graph = SwitchGraph::new(&testing::fat_tree(&[4, 4], &[1, 4], 0));
    let mut seen = BTreeSet::new();
    let hosts = graph.destinations().iter().filter(|d| d.host);
    let io: Vec<Destination> = hosts.filter(|d| seen.insert(d.switch)).copied().collect();
    for engine in ["minhop", "updn", "ftree"] {
        let uplinks = |input: &RoutingInput| {
            let routes = by_name(engine).unwrap().route(&graph, input).unwrap();
            assert!(verify::check(&graph, &routes, Options::default()).is_right());
            let others = io.iter().filter(|d| d.switch != io[0].switch);
            others.map(|d| routes.lfts.port(io[0].switch, d.lid)).collect::<BTreeSet<u8>>().len()
        };
        let told = RoutingInput { io_guids: io.iter().map(|d| d.guid).collect(), ..RoutingInput::default() };
        assert_eq!((uplinks(&RoutingInput::default()), uplinks(&told)), (1, 3), "{engine}");
    }
}

/// Storage hosts on a spine, as many as on a leaf, hide the roots of a tree, unless compute nodes are named.
#[test]
fn levels_are_counted_from_compute_nodes_only() {
    let mut builder = testing::Builder::new(8);
    let spines: Vec<_> = (0..4).map(|_| builder.switch()).collect();
    for _ in 0..4 {
        let leaf = builder.switch();
        for _ in 0..4 {
            builder.host(leaf);
        }
        spines.iter().for_each(|spine| builder.link(leaf, *spine));
    }
    let storage = [(); 4].map(|()| builder.host(spines[0]));
    let fabric = builder.finish(0);
    let hosts = fabric.node_ids().filter(|id| !storage.contains(id) && !fabric.node(*id).is_switch());
    let guid = |id| fabric.node(id).end_ports().map(|(_, port)| port.guid).next().unwrap();
    let compute: BTreeSet<Guid> = hosts.map(guid).collect();
    let graph = SwitchGraph::new(&fabric);
    let told = RoutingInput { compute_guids: compute, ..RoutingInput::default() };
    let without = ranks::find_roots(&graph, &RoutingInput::default());
    assert_eq!((without.len(), ranks::find_roots(&graph, &told).len()), (3, 4));
    let routes = FatTree.route(&graph, &told).unwrap();
    assert!(verify::check(&graph, &routes, Options::default()).is_right());
}

#[test]
fn scattered_tables_come_from_the_seed_alone() {
    let graph = SwitchGraph::new(&testing::fat_tree(&[4, 4], &[1, 4], 0));
    let with = |seed| {
        let routes =
            UpDown.route(&graph, &RoutingInput { scatter: seed, ..RoutingInput::default() }).unwrap();
        assert!(verify::check(&graph, &routes, Options::default()).is_right());
        routes
    };
    assert!(with(Some(1)) == with(Some(1)));
    assert!(with(Some(1)) != with(Some(2)) && with(Some(1)) != with(None));
}
