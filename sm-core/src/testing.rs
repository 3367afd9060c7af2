//! A small two-level fat tree as a snapshot, for tests and for the benchmark that includes this file.

use std::collections::BTreeMap;
use std::sync::Arc;

use mad::types::{
    DirectedPath, Gid, Guid, Lid, LinkSpeed, LinkWidth, NodeType, PortNum, PortPhysState, PortState,
};
use mad::wire::smp::{NodeInfo, PortInfo, SwitchInfo};
use routing::engines::{MinHop, RoutingEngine, RoutingInput};
use routing::fabric::{Fabric, Node, NodeId, Port, PortRef, SwitchGraph};
use sm_core::observed::{Observed, ObservedNode};
use sm_core::snapshot::{SmFacts, Snapshot};
use zerocopy::FromZeros;

/// Shape of the tree: each leaf has `hosts` hosts on ports 1 on, and one cable to each spine.
#[derive(Clone, Copy, Debug)]
pub struct Tree {
    pub leaves: u8,
    pub spines: u8,
    pub hosts: u8,
    pub lmc: u8,
}

/// A place in the fabric.
pub fn at(node: NodeId, port: u8) -> PortRef {
    PortRef { node, port: PortNum(port) }
}

impl Tree {
    /// NodeGUID of a leaf (from 0), also the PortGUID of its port 0.
    pub fn leaf(n: u8) -> Guid {
        Guid(0x5000_0000_0000_0000 + u64::from(n))
    }

    /// NodeGUID of a spine.
    pub fn spine(n: u8) -> Guid {
        Guid(0x6000_0000_0000_0000 + u64::from(n))
    }

    /// PortGUID of host `n` of a leaf; its NodeGUID is one less.
    pub fn host(leaf: u8, n: u8) -> Guid {
        Guid(0x7000_0000_0000_0001 + (u64::from(leaf) << 16) + (u64::from(n) << 8))
    }

    /// The fabric with all links active at 4x EDR, MTU 4096; LIDs in the order hosts, leaves, spines.
    pub fn fabric(self) -> Fabric {
        let mut fabric = Fabric::new();
        let mut add = |node| fabric.add_node(node).unwrap();
        let mut next = 1 << self.lmc;
        let mut lid = |lmc: u8| {
            let lid = Lid::new(next);
            next += 1 << lmc;
            (lid, lmc)
        };
        let mut cables = Vec::new();
        let mut leaves = Vec::new();
        for leaf in 0..self.leaves {
            let mut switch = Node::new(
                NodeType::Switch,
                Self::leaf(leaf),
                format!("leaf{leaf}"),
                self.hosts + self.spines,
            );
            let hosts: Vec<NodeId> = (0..self.hosts)
                .map(|n| {
                    let guid = Guid(Self::host(leaf, n).0 - 1);
                    let mut host = Node::new(NodeType::Ca, guid, format!("host{leaf}-{n} HCA-1"), 1);
                    let port = host.port_mut(PortNum(1)).unwrap();
                    (port.lid, port.lmc) = lid(self.lmc);
                    add(host)
                })
                .collect();
            (switch.port_mut(PortNum(0)).unwrap().lid, _) = lid(0);
            let switch = add(switch);
            leaves.push(switch);
            cables.extend(hosts.iter().zip(1..).map(|(host, port)| (at(*host, 1), at(switch, port))));
        }
        for spine in 0..self.spines {
            let mut switch =
                Node::new(NodeType::Switch, Self::spine(spine), format!("spine{spine}"), self.leaves);
            (switch.port_mut(PortNum(0)).unwrap().lid, _) = lid(0);
            let switch = add(switch);
            let up = self.hosts + 1 + spine;
            cables.extend(leaves.iter().zip(1..).map(|(leaf, port)| (at(*leaf, up), at(switch, port))));
        }
        for (a, b) in cables {
            fabric.connect(a, b).unwrap();
            for end in [a, b] {
                let port = fabric.node_mut(end.node).port_mut(end.port).unwrap();
                bring_up(port);
            }
        }
        fabric
    }

    /// The snapshot of the fabric, routed by min-hop; the subnet manager sits on host 0 of leaf 0.
    pub fn snapshot(self) -> Snapshot {
        freeze(self.fabric())
    }
}

fn bring_up(port: &mut Port) {
    port.state = PortState::Active;
    port.phys_state = PortPhysState::LinkUp;
    port.width = Some(LinkWidth::X4);
    port.speed = Some(LinkSpeed::Edr);
    port.mtu = port.mtu_cap;
}

/// Routes a fabric and freezes it.
pub fn freeze(fabric: Fabric) -> Snapshot {
    let graph = SwitchGraph::new(&fabric);
    let routes = MinHop.route(&graph, &RoutingInput::default()).unwrap();
    let local = at(fabric.find(Guid(Tree::host(0, 0).0 - 1)).unwrap(), 1);
    let nodes = fabric.nodes().map(|(id, node)| (id, observed_node(node))).collect::<BTreeMap<_, _>>();
    let sm = SmFacts {
        guid: Tree::host(0, 0),
        lid: fabric.port(local).unwrap().lid.unwrap(),
        priority: 5,
        state: 3,
        act_count: 7,
        sm_key: 0,
        gid_prefix: Gid::DEFAULT_PREFIX,
        subnet_timeout: 18,
    };
    let observed = Observed { fabric, nodes, local, managers: Vec::new(), findings: Vec::new() };
    Snapshot::new(1, Arc::new(observed), Arc::new(graph), Arc::new(routes), sm)
}

fn observed_node(node: &Node) -> ObservedNode {
    let mut info = NodeInfo::new_zeroed();
    (info.base_version, info.class_version) = (1, 1);
    info.node_type = node.kind.to_wire();
    info.num_ports = node.num_ports;
    info.system_image_guid.set(node.system_image_guid.0);
    info.node_guid.set(node.guid.0);
    info.partition_cap.set(32);
    let mut description = [0; 64];
    description[..node.description.len()].copy_from_slice(node.description.as_bytes());
    let (entry, port) = node.end_ports().next().unwrap();
    info.port_guid.set(port.guid.0);
    info.set_local_port_num(entry);
    ObservedNode {
        node_info: info,
        description,
        switch_info: node.switch.map(|facts| {
            let mut info = SwitchInfo::new_zeroed();
            info.linear_fdb_cap.set(facts.linear_fdb_cap);
            info.multicast_fdb_cap.set(facts.multicast_fdb_cap);
            info
        }),
        ports: node
            .ports
            .iter()
            .enumerate()
            .map(|(n, port)| Some(port_info(n as u8, port.as_ref()?)))
            .collect(),
        tables: sm_core::observed::NodeTables::default(),
        path: DirectedPath::LOCAL,
        entry_port: entry,
    }
}

fn port_info(number: u8, port: &Port) -> PortInfo {
    let mut info = PortInfo::new_zeroed();
    info.local_port_num = number;
    info.base_lid.set(port.lid.map_or(0, Lid::get));
    info.set_lmc(port.lmc);
    info.set_port_state_raw(port.state.to_wire());
    info.set_port_phys_state_raw(port.phys_state.to_wire());
    info.set_mtu_cap_raw(port.mtu_cap.to_wire());
    info.set_neighbor_mtu_raw(port.mtu.to_wire());
    info.link_width_supported = port.widths_supported.0;
    info.link_width_active = port.width.map_or(0, LinkWidth::to_wire);
    let (base, ext, _) = port.speed.map_or((0, 0, 0), LinkSpeed::to_active);
    info.set_link_speed_active(base);
    info.set_link_speed_ext_active(ext);
    info.capability_mask.set(port.capability_mask);
    info.guid_cap = 8;
    info
}
