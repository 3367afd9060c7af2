use std::collections::{BTreeMap, VecDeque};

use mad::types::{Guid, Lid, NodeType, PortNum, PortState};
use proptest::prelude::*;

use super::*;
use crate::fabric::{Fabric, Node, PortRef};
use crate::multicast::MulticastTables;

/// A fabric of switches with these cables; port numbers are given out in order.
fn switches(count: u8, cables: &[(u8, u8)]) -> SwitchGraph {
    let mut fabric = Fabric::new();
    let ids: Vec<_> = (0..count)
        .map(|n| {
            let mut node = Node::new(NodeType::Switch, Guid(u64::from(n) + 1), format!("s{n}"), 60);
            node.port_mut(PortNum(0)).unwrap().lid = Lid::new(u16::from(n) + 1);
            fabric.add_node(node).unwrap()
        })
        .collect();
    let mut used = vec![20_u8; usize::from(count)];
    for (a, b) in cables {
        let mut end = |n: u8| {
            used[usize::from(n)] += 1;
            PortRef { node: ids[usize::from(n)], port: PortNum(used[usize::from(n)]) }
        };
        let (a, b) = (end(*a), end(*b));
        fabric.connect(a, b).unwrap();
        for end in [a, b] {
            fabric.node_mut(end.node).port_mut(end.port).unwrap().state = PortState::Active;
        }
    }
    SwitchGraph::new(&fabric)
}

/// Two levels: leaves 0 to 3, spines 4 to 6, one cable for each pair.
fn fat_tree() -> SwitchGraph {
    let cables: Vec<_> = (0..4).flat_map(|leaf| (4..7).map(move |spine| (leaf, spine))).collect();
    switches(7, &cables)
}

fn member(switch: u32, port: u8) -> Member {
    Member { switch, port, receives: true }
}

fn mlid(raw: u16) -> MulticastLid {
    MulticastLid::new(raw).unwrap()
}

/// Sends a packet from a member through the tables; how often each receiver of it gets it. Ends after more copies than
/// any tree could make.
fn deliveries(
    graph: &SwitchGraph,
    tables: &MulticastTables,
    group: MulticastLid,
    from: Member,
) -> BTreeMap<(u32, u8), u32> {
    let mut got = BTreeMap::new();
    let mut queue = VecDeque::from([(from.switch, from.port)]);
    let mut copies = 0;
    while let Some((switch, entry)) = queue.pop_front() {
        copies += 1;
        assert!(copies < 10_000, "the packet runs in a circle");
        for port in tables.ports(switch, group).iter().filter(|port| *port != entry) {
            match graph.arcs(switch).iter().find(|arc| arc.out_port == port) {
                Some(arc) => queue.push_back((arc.to, arc.in_port)),
                None => *got.entry((switch, port)).or_insert(0) += 1,
            }
        }
    }
    got
}

/// Every receiver but the sender gets exactly one copy, and nobody else any.
fn delivers(graph: &SwitchGraph, tables: &MulticastTables, group: MulticastLid, members: &[Member]) {
    for from in members {
        let others = members.iter().filter(|m| m.receives && (m.switch, m.port) != (from.switch, from.port));
        let expected: BTreeMap<_, _> = others.map(|m| ((m.switch, m.port), 1)).collect();
        assert_eq!(deliveries(graph, tables, group, *from), expected, "from {from:?}");
    }
}

#[test]
fn a_group_on_one_switch_stays_there() {
    let graph = fat_tree();
    let members = [member(1, 2), member(1, 3)];
    let tree = Planner::new(&graph).tree(mlid(0xc000), &members);
    assert_eq!(tree.root, Some(1));
    assert_eq!(tree.branches, [Branch { switch: 1, ports: PortSet::from_iter([2, 3]) }]);
    assert_eq!(Planner::new(&graph).tree(mlid(0xc000), &[]), Tree::default());
}

/// Groups over all leaves spread over the spines by MLID.
#[test]
fn trees_spread_over_equal_roots() {
    let graph = fat_tree();
    let members: Vec<_> = (0..4).map(|leaf| member(leaf, 1)).collect();
    let mut planner = Planner::new(&graph);
    let mut roots = BTreeMap::new();
    for n in 0..12 {
        let tree = planner.tree(mlid(0xc000 + n), &members);
        *roots.entry(tree.root.unwrap()).or_insert(0) += 1;
        assert_eq!(tree.branches.len(), 5, "four leaves and one spine");
    }
    assert_eq!(roots, BTreeMap::from([(4, 4), (5, 4), (6, 4)]));
}

/// B40: a member that only sends is on the tree, but no leaf of delivery.
#[test]
fn b40_send_only_members_receive_nothing() {
    let graph = fat_tree();
    let members = [member(0, 1), member(2, 1), Member { switch: 3, port: 5, receives: false }];
    let mut tables = MulticastTables::new(graph.switch_count());
    tables.set_tree(mlid(0xc001), &Planner::new(&graph).tree(mlid(0xc001), &members));
    delivers(&graph, &tables, mlid(0xc001), &members);
    assert!(!tables.ports(3, mlid(0xc001)).contains(5));
}

/// A switch cut off is named, and the others keep their tree.
#[test]
fn unreachable_members_are_reported() {
    let graph = switches(4, &[(0, 1), (2, 3)]);
    let members = [member(0, 1), member(1, 1), member(1, 2), member(2, 1)];
    let tree = Planner::new(&graph).tree(mlid(0xc000), &members);
    assert_eq!(tree.unreachable, [member(2, 1)]);
    let mut tables = MulticastTables::new(4);
    tables.set_tree(mlid(0xc000), &tree);
    delivers(&graph, &tables, mlid(0xc000), &members[..3]);
}

/// B39: differences at all positions; a member that moves from port 17 to 33 changes two of them.
#[test]
fn b39_difference_covers_all_positions() {
    let graph = fat_tree();
    let tables = |port| {
        let mut tables = MulticastTables::new(graph.switch_count());
        let tree = Planner::new(&graph).tree(mlid(0xc021), &[member(1, 1), member(1, port)]);
        tables.set_tree(mlid(0xc021), &tree);
        tables
    };
    let (old, new) = (tables(17), tables(33));
    let blocks: Vec<_> = new.difference(&old, &graph).collect();
    let at: Vec<_> = blocks.iter().map(|b| (b.switch, b.block, b.position, b.masks[1])).collect();
    assert_eq!(at, [(1, 1, 1, 0), (1, 1, 2, 0b10)]);
    assert_eq!(blocks[1].attribute_modifier(), 0x2000_0001);
    assert_eq!(new.difference(&new, &graph).count(), 0, "nothing is sent again");
}

/// A connected fabric: a random tree of switches and a few more cables, parallel ones among them.
fn fabrics() -> impl Strategy<Value = SwitchGraph> {
    let parents = proptest::collection::vec(any::<u8>(), 1..12);
    let more = proptest::collection::vec((any::<u8>(), any::<u8>()), 0..12);
    (parents, more).prop_map(|(parents, more)| {
        let count = parents.len() as u8 + 1;
        let tree = parents.iter().zip(1..).map(|(parent, n)| (parent % n, n));
        let extra = more.into_iter().map(|(a, b)| (a % count, b % count)).filter(|(a, b)| a != b);
        switches(count, &tree.chain(extra).collect::<Vec<_>>())
    })
}

fn groups() -> impl Strategy<Value = Vec<(u32, u8, bool)>> {
    proptest::collection::vec((any::<u32>(), 1..20_u8, any::<bool>()), 1..15)
}

fn members_on(graph: &SwitchGraph, group: &[(u32, u8, bool)]) -> Vec<Member> {
    let count = graph.switch_count() as u32;
    let places: BTreeMap<_, _> =
        group.iter().map(|(s, port, receives)| ((s % count, *port), *receives)).collect();
    places.into_iter().map(|((switch, port), receives)| Member { switch, port, receives }).collect()
}

proptest! {
    /// Every packet reaches every receiver once, and the order in which members came changes nothing (B24).
    #[test]
    fn every_receiver_gets_one_copy(graph in fabrics(), group in groups(), raw in 0xc000..0xc400_u16) {
        let members = members_on(&graph, &group);
        let tree = Planner::new(&graph).tree(mlid(raw), &members);
        let mut tables = MulticastTables::new(graph.switch_count());
        tables.set_tree(mlid(raw), &tree);
        delivers(&graph, &tables, mlid(raw), &members);
        let backwards: Vec<_> = members.iter().rev().copied().collect();
        let mut planner = Planner::new(&graph);
        planner.tree(mlid(0xc3ff), &members[..1]);
        prop_assert_eq!(planner.tree(mlid(raw), &backwards), tree);
    }

    /// B29: on the way from any tree to any other, at any moment, no packet runs in a circle.
    #[test]
    fn b29_no_mix_of_old_and_new_has_a_circle(
        graph in fabrics(),
        before in groups(),
        after in groups(),
        order in proptest::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let group = mlid(0xc000);
        let tables = |members: &[Member]| {
            let mut tables = MulticastTables::new(graph.switch_count());
            tables.set_tree(group, &Planner::new(&graph).tree(group, members));
            tables
        };
        let (old_members, new_members) = (members_on(&graph, &before), members_on(&graph, &after));
        let (old, new) = (tables(&old_members), tables(&new_members));
        let mut live = old.clone();
        for goal in [new.common(&old), new.clone()] {
            let mut blocks: Vec<_> = goal.difference(&live, &graph).collect();
            for index in &order {
                if blocks.is_empty() { break; }
                let block = blocks.swap_remove(index.index(blocks.len()));
                let mut ports = live.ports(block.switch, group);
                ports.set_mask(block.position, block.masks[0]);
                live.set_ports(block.switch, group, ports);
                for from in old_members.iter().chain(&new_members) {
                    deliveries(&graph, &live, group, *from);
                }
            }
            live = goal;
        }
        delivers(&graph, &live, group, &new_members);
    }
}
