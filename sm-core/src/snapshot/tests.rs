use mad::types::{LinkWidth, Mtu, PortNum, PortState};
use routing::engines::{MinHop, RoutingEngine, RoutingInput};

use super::*;
use crate::plan::lids::LidRange;
use crate::testing::{Tree, at, freeze};

const TREE: Tree = Tree { leaves: 2, spines: 2, hosts: 2, lmc: 1 };

#[test]
fn every_lid_of_every_end_port_is_found_and_walked_to() {
    let snapshot = TREE.snapshot();
    assert_eq!(snapshot.end_ports().len(), 4 + 4);
    for target in snapshot.end_ports() {
        for lid in target.lids() {
            assert_eq!(snapshot.end_port(lid), Some(target.end));
            for source in snapshot.end_ports() {
                let limits = snapshot.walk(source, target, lid);
                assert_eq!(limits.map(|l| l.mtu), Some(Mtu::M4096), "{source:?} to {lid}");
                if !(source.is_switch() && source.end == target.end) {
                    assert_eq!(limits.map(|l| l.rate.to_wire()), Some(16), "{source:?} to {lid}: 100 Gb/s");
                }
            }
        }
    }
    for raw in [1, 0xbfff, 14, 100] {
        assert_eq!(snapshot.end_port(Lid::new(raw).unwrap()), None, "LID {raw} belongs to nobody");
    }
}

/// Two subnets were joined, or a port comes back to a LID that another has now: who asks from it, or is asked for by it, can't be told.
#[test]
fn a_lid_of_two_ports_is_that_of_neither() {
    let mut fabric = TREE.fabric();
    let (one, two) = (Tree::host(0, 0), Tree::host(1, 0));
    let held = freeze(fabric.clone()).port_by_guid(one).unwrap().lid;
    let node = freeze(fabric.clone()).port_by_guid(two).unwrap().end.node;
    fabric.node_mut(node).port_mut(PortNum(1)).unwrap().lid = Some(held);
    let snapshot = freeze(fabric);
    assert!(snapshot.port_at(held).is_none());
    for guid in [one, two] {
        assert_eq!(snapshot.port_by_guid(guid).unwrap().lid, held, "each is known by its GUID");
    }
    assert!(
        snapshot
            .end_ports()
            .iter()
            .filter(|port| port.lid != held)
            .all(|port| snapshot.port_at(port.lid).is_some())
    );
}

/// Whoever got a LID asks from it at once, before the picture shows it: it is not to be taken for the one that had it.
#[test]
fn a_lid_that_is_handed_on_is_nobody_s_meanwhile() {
    let snapshot = TREE.snapshot();
    let port = |leaf, n| snapshot.port_by_guid(Tree::host(leaf, n)).unwrap();
    let range = |port: &EndPort| LidRange { base: port.lid, lmc: port.lmc };
    let (one, two) = (port(0, 0), port(1, 0));
    let kept = LidMemory::from([(one.guid, range(one)), (two.guid, range(two))]);
    assert!(snapshot.while_given(&kept).is_none(), "who keeps its own is known");
    let free = LidRange::new(Lid::new(0x100).unwrap(), 1).unwrap();
    assert!(snapshot.while_given(&LidMemory::from([(one.guid, free)])).is_none(), "and what was nobody's");
    let meanwhile =
        snapshot.while_given(&LidMemory::from([(one.guid, range(two)), (two.guid, free)])).unwrap();
    assert!(two.lids().all(|lid| meanwhile.port_at(lid).is_none()));
    assert!(one.lids().all(|lid| meanwhile.port_at(lid).is_some()));
}

/// The narrowest link and the smallest MTU on the way rule; MTUs in force count, not those that ports could do.
#[test]
fn limits_are_the_least_along_the_path() {
    let mut fabric = TREE.fabric();
    let leaf = fabric.find(Tree::leaf(1)).unwrap();
    for spine_port in [3, 4] {
        fabric.node_mut(leaf).port_mut(PortNum(spine_port)).unwrap().width = Some(LinkWidth::X1);
    }
    fabric.node_mut(leaf).port_mut(PortNum(1)).unwrap().mtu = Mtu::M2048;
    let snapshot = freeze(fabric);
    let port = |leaf, n| snapshot.port_by_guid(Tree::host(leaf, n)).unwrap();
    let walk = |a: &EndPort, b: &EndPort| {
        let limits = snapshot.walk(a, b, b.lid).unwrap();
        (limits.mtu, limits.rate.to_wire())
    };
    assert_eq!(walk(port(0, 0), port(1, 0)), (Mtu::M2048, 15), "25 Gb/s");
    assert_eq!(walk(port(1, 0), port(0, 0)), (Mtu::M2048, 15));
    assert_eq!(walk(port(0, 0), port(1, 1)), (Mtu::M4096, 15));
    assert_eq!(walk(port(1, 0), port(1, 1)), (Mtu::M2048, 16), "stays on the leaf");
    assert_eq!(port(1, 0).limits().mtu, Mtu::M2048, "B34: the MTU in force towards the neighbour");
}

/// B27: holes, circles, ports without a cable and links that are down end a walk without a path.
#[test]
fn b27_holes_and_circles_are_no_paths() {
    let fabric = TREE.fabric();
    let good = freeze(fabric.clone());
    let (a, b) = (good.port_by_guid(Tree::host(0, 0)).unwrap(), good.port_by_guid(Tree::host(1, 0)).unwrap());
    let leaf = good.graph.index_of(fabric.find(Tree::leaf(0)).unwrap()).unwrap();
    let spine_guids = [Tree::spine(0), Tree::spine(1)];
    let with_entry = |change: &dyn Fn(&mut Routes)| {
        let mut routes = (*good.routes).clone();
        change(&mut routes);
        Snapshot::new(2, good.observed.clone(), good.graph.clone(), Arc::new(routes), good.sm)
    };
    for wrong in [0, 1, 2, 5, 200, 255] {
        let bad = with_entry(&|routes| routes.lfts.row_mut(leaf)[b.lid.index()] = wrong);
        assert_eq!(bad.walk(a, b, b.lid), None, "port {wrong} of the leaf");
    }
    let circle = with_entry(&|routes| {
        for guid in spine_guids {
            let spine = good.graph.index_of(fabric.find(guid).unwrap()).unwrap();
            routes.lfts.row_mut(spine)[b.lid.index()] = 1;
        }
    });
    assert_eq!(circle.walk(a, b, b.lid), None);

    let mut cut = fabric.clone();
    cut.node_mut(b.end.node).port_mut(b.end.port).unwrap().state = PortState::Down;
    let graph = Arc::new(SwitchGraph::new(&fabric));
    let routes = MinHop.route(&graph, &RoutingInput::default()).unwrap();
    let mut observed = (*good.observed).clone();
    observed.fabric = cut;
    let down = Snapshot::new(3, Arc::new(observed), graph, Arc::new(routes), good.sm);
    let b = down.port_by_guid(Tree::host(1, 0)).unwrap();
    assert_eq!(down.walk(down.port_by_guid(Tree::host(0, 0)).unwrap(), b, b.lid), None);
}

/// B45: the membership bit takes no part in the search for a common partition; two limited members have none.
#[test]
fn b45_common_partitions() {
    let snapshot = TREE.snapshot();
    let keys = |a: &[u16], b: &[u16]| {
        let ends = [Tree::host(0, 0), Tree::host(1, 0)].map(|guid| snapshot.port_by_guid(guid).unwrap().end);
        let table = |keys: &[u16]| keys.iter().copied().map(PKey).collect::<Vec<_>>();
        let with = snapshot.clone().with_pkeys(&HashMap::from([(ends[0], table(a)), (ends[1], table(b))]));
        let [a, b] = [Tree::host(0, 0), Tree::host(1, 0)].map(|g| with.port_by_guid(g).unwrap().clone());
        (a, b)
    };
    let (a, b) = keys(&[0x0081, 0x0082], &[0x8081, 0x0003]);
    assert_eq!(a.common_pkey(&b, None), Some(PKey(0x0081)));
    assert_eq!(b.common_pkey(&a, None), Some(PKey(0x8081)));
    for wanted in [0x0081, 0x8081] {
        assert!(a.common_pkey(&b, Some(PKey(wanted))).is_some());
    }
    for wanted in [0x0082, 0x8003, 0, 0x8000] {
        assert_eq!(a.common_pkey(&b, Some(PKey(wanted))), None);
    }
    let (a, b) = keys(&[0x0081, 0], &[0x0081]);
    assert!(!a.shares_partition(&b), "limited with limited");
    assert!(a.shares_partition(&a));
}

#[test]
fn b41_gids_of_the_own_and_the_default_prefix_are_found() {
    let mut snapshot = TREE.snapshot();
    snapshot.sm.gid_prefix = 0xfec0_0000_0000_0006;
    let guid = Tree::host(0, 1);
    for (prefix, found) in
        [(0xfec0_0000_0000_0006, true), (Gid::DEFAULT_PREFIX, true), (0xfec0_0000_0000_0007, false)]
    {
        assert_eq!(snapshot.port_by_gid(Gid::new(prefix, guid)).is_some(), found, "{prefix:x}");
    }
    assert_eq!(
        snapshot.end_port(Lid::new(snapshot.sm.lid.get()).unwrap()).unwrap(),
        at(snapshot.observed.local.node, 1)
    );
}
