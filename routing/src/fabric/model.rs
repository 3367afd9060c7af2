//! The fabric model: nodes, ports, links.
//!
//! Cost: looking up a node by GUID and a port's peer is O(1); everything else is linear in what it returns.

use std::collections::HashMap;

use mad::types::{
    Guid, Lid, LinkSpeed, LinkSpeedSet, LinkWidth, LinkWidthSet, Mtu, NodeType, PortNum, PortPhysState,
    PortState,
};
use petgraph::stable_graph::{EdgeIndex, NodeIndex, StableUnGraph};

/// Identifies a node within one [`Fabric`]; stays valid when other nodes go.
pub type NodeId = NodeIndex<u32>;

/// One end of a cable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PortRef {
    /// The node.
    pub node: NodeId,
    /// Its port.
    pub port: PortNum,
}

/// A cable between two ports. `a` and `b` are in no particular order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Link {
    /// One end.
    pub a: PortRef,
    /// The other end.
    pub b: PortRef,
}

/// A node and its ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// NodeGUID.
    pub guid: Guid,
    /// SystemImageGUID, zero for none.
    pub system_image_guid: Guid,
    /// Channel adapter, switch or router.
    pub kind: NodeType,
    /// NodeDescription: up to the first NUL of at most 64 bytes, invalid UTF-8 replaced.
    pub description: String,
    /// Number of external ports, 1 to 254 (0 for a node of which a file says nothing).
    pub num_ports: u8,
    /// VendorID, 24 bits.
    pub vendor_id: u32,
    /// DeviceID.
    pub device_id: u16,
    /// Revision.
    pub revision: u32,
    /// Ports by number; entry 0 is used by switches only. Ports that nothing is known of are `None`.
    pub ports: Vec<Option<Port>>,
    /// What only switches have.
    pub switch: Option<SwitchFacts>,
}

/// Facts of a switch beyond its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchFacts {
    /// Whether port 0 is an enhanced port 0.
    pub enhanced_port_0: bool,
    /// Entries of the linear forwarding table (highest usable LID + 1).
    pub linear_fdb_cap: u16,
    /// Entries of the multicast forwarding table.
    pub multicast_fdb_cap: u16,
}

impl Default for SwitchFacts {
    fn default() -> Self {
        Self { enhanced_port_0: false, linear_fdb_cap: 0xc000, multicast_fdb_cap: 1024 }
    }
}

/// A port as it was found or as a file tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// PortGUID; of a switch's external ports, the GUID of port 0.
    pub guid: Guid,
    /// Base LID of an end port (channel adapter, router, switch port 0); `None` where none is assigned.
    pub lid: Option<Lid>,
    /// 2^lmc LIDs belong to the port.
    pub lmc: u8,
    /// PortState. A base switch port 0 has none and counts as `Active`.
    pub state: PortState,
    /// PortPhysicalState.
    pub phys_state: PortPhysState,
    /// LinkWidthActive, where the link is up.
    pub width: Option<LinkWidth>,
    /// Active speed, where the link is up.
    pub speed: Option<LinkSpeed>,
    /// Widths that the port can do.
    pub widths_supported: LinkWidthSet,
    /// Speeds that the port can do.
    pub speeds_supported: LinkSpeedSet,
    /// MTUCap: the largest MTU that the port can do.
    pub mtu_cap: Mtu,
    /// NeighborMTU: the MTU in force.
    pub mtu: Mtu,
    /// VLCap code: 1 = VL0, 2 = VL0–1, 3 = VL0–3, 4 = VL0–7, 5 = VL0–14.
    pub vl_cap: u8,
    /// OperationalVLs code; never an input to what is computed (B06).
    pub operational_vls: u8,
    /// CapabilityMask.
    pub capability_mask: u32,
    /// CapabilityMask2.
    pub capability_mask2: u16,
    /// The link to the peer.
    pub(super) edge: Option<EdgeIndex<u32>>,
}

impl Default for Port {
    /// An unlinked port that is down, 4x EDR at best, MTU 4096, 8 data VLs.
    fn default() -> Self {
        Self {
            guid: Guid::NONE,
            lid: None,
            lmc: 0,
            state: PortState::Down,
            phys_state: PortPhysState::Polling,
            width: None,
            speed: None,
            widths_supported: LinkWidthSet(3),
            speeds_supported: LinkSpeedSet(0b11_0111),
            mtu_cap: Mtu::M4096,
            mtu: Mtu::M2048,
            vl_cap: 4,
            operational_vls: 4,
            capability_mask: 0,
            capability_mask2: 0,
            edge: None,
        }
    }
}

impl Node {
    /// A node with `num_ports` default ports (and a port 0 for a switch), all with GUID `port_guid(number)`.
    pub fn new(kind: NodeType, guid: Guid, description: impl Into<String>, num_ports: u8) -> Self {
        let first = if kind == NodeType::Switch { 0 } else { 1 };
        let port = |number: u16| {
            (number >= first).then(|| Port {
                guid: if kind == NodeType::Switch {
                    guid
                } else {
                    Guid(guid.0.wrapping_add(u64::from(number)))
                },
                state: if number == 0 { PortState::Active } else { PortState::Down },
                phys_state: if number == 0 { PortPhysState::LinkUp } else { PortPhysState::Polling },
                ..Port::default()
            })
        };
        Self {
            guid,
            system_image_guid: guid,
            kind,
            description: description.into(),
            num_ports,
            vendor_id: 0,
            device_id: 0,
            revision: 0,
            ports: (0..=u16::from(num_ports)).map(port).collect(),
            switch: (kind == NodeType::Switch).then(SwitchFacts::default),
        }
    }

    /// Whether this is a switch.
    pub fn is_switch(&self) -> bool {
        self.kind == NodeType::Switch
    }

    /// The port with this number.
    pub fn port(&self, number: PortNum) -> Option<&Port> {
        self.ports.get(number.index())?.as_ref()
    }

    /// The port with this number, to change.
    pub fn port_mut(&mut self, number: PortNum) -> Option<&mut Port> {
        self.ports.get_mut(number.index())?.as_mut()
    }

    /// All known ports with their numbers, in order.
    pub fn numbered_ports(&self) -> impl Iterator<Item = (PortNum, &Port)> {
        self.ports.iter().enumerate().filter_map(|(n, p)| Some((PortNum(n as u8), p.as_ref()?)))
    }

    /// The ports that can have LIDs: port 0 of a switch, every port of anything else.
    pub fn end_ports(&self) -> impl Iterator<Item = (PortNum, &Port)> {
        let switch = self.is_switch();
        self.numbered_ports().filter(move |(n, _)| !switch || n.0 == 0)
    }
}

/// Why a change of a [`Fabric`] was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FabricError {
    /// Another node has this GUID.
    #[error("node GUID {0} is there twice")]
    DuplicateGuid(Guid),
    /// The port number is beyond the node's ports.
    #[error("{node} has no port {port}: it has {num_ports} ports")]
    NoSuchPort {
        /// The node's description.
        node: String,
        /// The port asked for.
        port: PortNum,
        /// How many it has.
        num_ports: u8,
    },
    /// The port already has a cable.
    #[error("port {port} of {node} is already connected")]
    PortInUse {
        /// The node's description.
        node: String,
        /// The port.
        port: PortNum,
    },
}

/// Nodes and links.
#[derive(Clone, Debug, Default)]
pub struct Fabric {
    graph: StableUnGraph<Node, Link>,
    by_guid: HashMap<Guid, NodeId>,
}

impl Fabric {
    /// An empty fabric.
    pub fn new() -> Self {
        Self::default()
    }

    /// The graph underneath, for petgraph's algorithms.
    pub fn graph(&self) -> &StableUnGraph<Node, Link> {
        &self.graph
    }

    /// Adds a node, without the cables that it may have had in another fabric.
    ///
    /// # Errors
    /// [`FabricError::DuplicateGuid`].
    pub fn add_node(&mut self, mut node: Node) -> Result<NodeId, FabricError> {
        let guid = node.guid;
        if self.by_guid.contains_key(&guid) {
            return Err(FabricError::DuplicateGuid(guid));
        }
        for port in node.ports.iter_mut().flatten() {
            port.edge = None;
        }
        let id = self.graph.add_node(node);
        self.by_guid.insert(guid, id);
        Ok(id)
    }

    /// Removes a node and its links.
    pub fn remove_node(&mut self, id: NodeId) -> Option<Node> {
        let edges: Vec<_> = self.graph.edges(id).map(|e| petgraph::visit::EdgeRef::id(&e)).collect();
        for edge in edges {
            self.remove_edge(edge);
        }
        let node = self.graph.remove_node(id)?;
        self.by_guid.remove(&node.guid);
        Some(node)
    }

    /// Connects two ports. Port states are left as they are.
    ///
    /// # Errors
    /// A port that isn't there or already has a cable.
    pub fn connect(&mut self, a: PortRef, b: PortRef) -> Result<(), FabricError> {
        for end in [a, b] {
            let node = &self.graph[end.node];
            let port =
                node.port(end.port).filter(|_| end.port.0 != 0).ok_or_else(|| FabricError::NoSuchPort {
                    node: node.description.clone(),
                    port: end.port,
                    num_ports: node.num_ports,
                })?;
            if port.edge.is_some() || a == b {
                return Err(FabricError::PortInUse { node: node.description.clone(), port: end.port });
            }
        }
        let edge = self.graph.add_edge(a.node, b.node, Link { a, b });
        for end in [a, b] {
            if let Some(port) = self.graph[end.node].port_mut(end.port) {
                port.edge = Some(edge);
            }
        }
        Ok(())
    }

    /// Takes the cable of a port away; returns it. Port states are left as they are.
    pub fn disconnect(&mut self, end: PortRef) -> Option<Link> {
        let edge = self.graph.node_weight(end.node)?.port(end.port)?.edge?;
        self.remove_edge(edge)
    }

    fn remove_edge(&mut self, edge: EdgeIndex<u32>) -> Option<Link> {
        let link = self.graph.remove_edge(edge)?;
        for end in [link.a, link.b] {
            if let Some(port) = self.graph[end.node].port_mut(end.port) {
                port.edge = None;
            }
        }
        Some(link)
    }

    /// The node with this NodeGUID.
    pub fn find(&self, guid: Guid) -> Option<NodeId> {
        self.by_guid.get(&guid).copied()
    }

    /// The node; panics when `id` is of another fabric or was removed.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.graph[id]
    }

    /// The node, to change. Its GUID must not be changed.
    pub fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.graph[id]
    }

    /// The node, or `None` when it was removed.
    pub fn get(&self, id: NodeId) -> Option<&Node> {
        self.graph.node_weight(id)
    }

    /// All node ids in the order of insertion.
    pub fn node_ids(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.graph.node_indices()
    }

    /// All nodes in the order of insertion.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.graph.node_indices().map(|id| (id, &self.graph[id]))
    }

    /// All switches in the order of insertion.
    pub fn switches(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.nodes().filter(|(_, n)| n.is_switch())
    }

    /// All links.
    pub fn links(&self) -> impl Iterator<Item = &Link> {
        self.graph.edge_weights()
    }

    /// Number of nodes.
    pub fn node_count(&self) -> usize {
        self.graph.node_count()
    }

    /// Number of links.
    pub fn link_count(&self) -> usize {
        self.graph.edge_count()
    }

    /// The port.
    pub fn port(&self, end: PortRef) -> Option<&Port> {
        self.get(end.node)?.port(end.port)
    }

    /// The other end of a port's cable; itself never.
    pub fn peer(&self, end: PortRef) -> Option<PortRef> {
        let link = self.graph.edge_weight(self.port(end)?.edge?)?;
        Some(if link.a == end { link.b } else { link.a })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(node: NodeId, port: u8) -> PortRef {
        PortRef { node, port: PortNum(port) }
    }

    #[test]
    fn parallel_cables_and_a_loopback_cable_are_kept() {
        let mut fabric = Fabric::new();
        let a = fabric.add_node(Node::new(NodeType::Switch, Guid(1), "a", 8)).unwrap();
        let b = fabric.add_node(Node::new(NodeType::Switch, Guid(2), "b", 8)).unwrap();
        fabric.connect(end(a, 1), end(b, 1)).unwrap();
        fabric.connect(end(a, 2), end(b, 2)).unwrap();
        fabric.connect(end(a, 3), end(a, 4)).unwrap();
        assert_eq!(fabric.link_count(), 3);
        assert_eq!(fabric.peer(end(a, 4)), Some(end(a, 3)));
        assert_eq!(fabric.peer(end(b, 2)), Some(end(a, 2)));
        assert!(matches!(fabric.connect(end(a, 1), end(b, 3)), Err(FabricError::PortInUse { .. })));
        assert!(matches!(fabric.connect(end(a, 9), end(b, 3)), Err(FabricError::NoSuchPort { .. })));
        assert!(matches!(fabric.connect(end(a, 0), end(b, 3)), Err(FabricError::NoSuchPort { .. })));
        assert!(matches!(fabric.connect(end(a, 5), end(a, 5)), Err(FabricError::PortInUse { .. })));
        fabric.remove_node(b);
        assert_eq!((fabric.link_count(), fabric.peer(end(a, 1))), (1, None));
        assert_eq!(fabric.find(Guid(2)), None);
    }
}
