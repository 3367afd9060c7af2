//! Bringing what a node answered into the picture, so that the fabric graph and the attributes never disagree.
//!
//! Cost: O(1) for an attribute; routes and order are linear in nodes and links.

use std::collections::{BTreeMap, VecDeque};

use mad::types::{DirectedPath, NodeType, PortNum, PortPhysState, PortState};
use mad::wire::smp::{NodeInfo, PortInfo, SwitchInfo};
use routing::fabric::{Fabric, FabricError, Node, NodeId, Port, PortRef, SwitchFacts};

use super::{Observed, ObservedNode};

/// NodeDescription as text: up to the first NUL of the 64 bytes, invalid UTF-8 replaced (B76).
pub fn description_text(bytes: &[u8; 64]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

impl Observed {
    /// A picture with nothing but the subnet manager's own node in it.
    ///
    /// # Errors
    /// None in fact: an empty picture has no GUID twice.
    pub fn new(info: &NodeInfo) -> Result<Self, FabricError> {
        let mut observed = Self {
            fabric: Fabric::new(),
            nodes: BTreeMap::new(),
            local: PortRef { node: NodeId::default(), port: info.local_port_num() },
            managers: Vec::new(),
            findings: Vec::new(),
        };
        observed.local.node = observed.add_node(info, DirectedPath::LOCAL)?;
        Ok(observed)
    }

    /// Adds a node of which only NodeInfo is known yet.
    ///
    /// # Errors
    /// Another node has its GUID.
    pub fn add_node(&mut self, info: &NodeInfo, path: DirectedPath) -> Result<NodeId, FabricError> {
        let kind = info.node_type().unwrap_or(NodeType::Ca);
        let mut node = Node::new(kind, info.node_guid(), "", info.num_ports);
        node.ports.iter_mut().for_each(|port| *port = None);
        node.system_image_guid = info.system_image_guid();
        node.vendor_id = info.vendor_id();
        node.device_id = info.device_id.get();
        node.revision = info.revision.get();
        let ports = node.ports.len();
        let id = self.fabric.add_node(node)?;
        self.nodes.insert(
            id,
            ObservedNode {
                node_info: *info,
                description: [0; 64],
                switch_info: None,
                ports: vec![None; ports],
                tables: super::NodeTables::default(),
                path,
                entry_port: info.local_port_num(),
            },
        );
        self.note_port_guid(id, info);
        Ok(id)
    }

    /// Takes the PortGUID of the port that NodeInfo was asked through; the port exists from then on.
    pub fn note_port_guid(&mut self, id: NodeId, info: &NodeInfo) {
        let port = info.local_port_num();
        let node = self.fabric.node_mut(id);
        let guid = info.port_guid();
        if node.is_switch() {
            place(node, PortNum::MANAGEMENT).guid = guid;
        }
        place(node, port).guid = guid;
    }

    /// Removes a node, its links and what it answered.
    pub fn remove_node(&mut self, id: NodeId) {
        self.fabric.remove_node(id);
        self.nodes.remove(&id);
        self.managers.retain(|manager| manager.port.node != id);
    }

    /// Takes in a NodeDescription.
    pub fn record_description(&mut self, id: NodeId, description: &[u8; 64]) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.description = *description;
            self.fabric.node_mut(id).description = description_text(description);
        }
    }

    /// Takes in a SwitchInfo.
    pub fn record_switch_info(&mut self, id: NodeId, info: &SwitchInfo) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        node.switch_info = Some(*info);
        self.fabric.node_mut(id).switch = Some(SwitchFacts {
            enhanced_port_0: info.enhanced_port_0() != 0,
            linear_fdb_cap: info.linear_fdb_cap.get(),
            multicast_fdb_cap: info.multicast_fdb_cap.get(),
        });
        if let Some(port_0) = node.ports.first().copied().flatten() {
            self.record_port_info(PortRef { node: id, port: PortNum::MANAGEMENT }, &port_0);
        }
    }

    /// Takes in a PortInfo. Links are left as they are.
    pub fn record_port_info(&mut self, end: PortRef, info: &PortInfo) {
        let Some(observed) = self.nodes.get_mut(&end.node) else { return };
        let Some(slot) = observed.ports.get_mut(end.port.index()) else { return };
        *slot = Some(*info);
        let node = self.fabric.node_mut(end.node);
        let switch = node.is_switch();
        let enhanced = node.switch.is_some_and(|s| s.enhanced_port_0);
        let guid = node.port(PortNum::MANAGEMENT).map(|p| p.guid).filter(|_| switch);
        let port = place(node, end.port);
        if let Some(guid) = guid {
            port.guid = guid;
        }
        fill(port, info);
        let management = switch && end.port == PortNum::MANAGEMENT;
        if management && !enhanced {
            // A base port 0 has no link, and its state field no meaning (B06).
            port.state = PortState::Active;
            port.phys_state = PortPhysState::LinkUp;
        }
        if switch && !management {
            port.lid = None;
            port.lmc = 0;
        }
    }

    /// Forgets what a port answered: it was asked again and did not.
    pub fn forget_port_info(&mut self, end: PortRef) {
        if let Some(slot) = self.nodes.get_mut(&end.node).and_then(|n| n.ports.get_mut(end.port.index())) {
            *slot = None;
        }
    }

    /// Ports that are up and read, but at whose end nobody was found: to be watched, and never used (B05).
    pub fn dangling(&self) -> impl Iterator<Item = PortRef> + '_ {
        self.fabric.nodes().flat_map(move |(node, facts)| {
            facts.numbered_ports().filter_map(move |(port, state)| {
                let end = PortRef { node, port };
                let up = port.0 != 0 && state.state.is_up() && self.port_info(end).is_some();
                (up && self.fabric.peer(end).is_none()).then_some(end)
            })
        })
    }

    /// The directed route to a port itself: a channel adapter takes Sets of a port only by that port, so that its other
    /// ports are reached over the node at the other end of their cable.
    pub fn path_to(&self, end: PortRef) -> Option<DirectedPath> {
        let node = self.nodes.get(&end.node)?;
        let switch = self.fabric.get(end.node).is_some_and(Node::is_switch);
        let by_the_peer = || {
            let peer =
                self.fabric.peer(end).filter(|p| self.fabric.get(p.node).is_some_and(Node::is_switch))?;
            self.nodes.get(&peer.node)?.path.extend(peer.port).ok()
        };
        if switch || end.port == node.entry_port {
            Some(node.path)
        } else {
            by_the_peer().or(Some(node.path))
        }
    }

    /// Ports whose PortInfo was asked for and not answered: any port of a switch, and ports of others that are known to
    /// exist by their cable.
    pub fn unread(&self) -> impl Iterator<Item = PortRef> + '_ {
        self.nodes.iter().flat_map(move |(id, node)| {
            let facts = self.fabric.get(*id);
            let exists =
                move |port: &PortNum| facts.is_some_and(|f| f.is_switch() || f.port(*port).is_some());
            let numbers = (0..node.ports.len()).map(|n| PortNum(n as u8));
            numbers
                .filter(move |port| node.port_info(*port).is_none() && exists(port))
                .map(move |port| PortRef { node: *id, port })
        })
    }

    /// A directed route to a node, extended by one of its ports.
    pub fn path_beyond(&self, end: PortRef) -> Option<DirectedPath> {
        self.nodes.get(&end.node)?.path.extend(end.port).ok()
    }

    /// How messages call a node: its name in quotes and its GUID.
    pub fn name(&self, id: NodeId) -> String {
        match self.fabric.get(id) {
            Some(node) => format!("\"{}\" ({})", node.description.escape_debug(), node.guid),
            None => "a node that is gone".into(),
        }
    }

    /// Finds the shortest directed route to every node again, over links whose ends are both up, and removes the nodes
    /// that have none. Returns what was removed.
    pub fn renew_paths(&mut self) -> Vec<Node> {
        self.reroute()
            .into_iter()
            .filter_map(|id| {
                let node = self.fabric.get(id).cloned();
                self.remove_node(id);
                node
            })
            .collect()
    }

    /// Finds the shortest directed route to every node again, over links whose ends are both up. Returns the nodes that
    /// have none; they keep their old one.
    pub fn reroute(&mut self) -> Vec<NodeId> {
        let mut reached = BTreeMap::new();
        let mut line = VecDeque::from([self.local.node]);
        reached.insert(self.local.node, (DirectedPath::LOCAL, self.local.port));
        while let Some(id) = line.pop_front() {
            let (path, _) = reached[&id];
            let through = self.fabric.node(id).is_switch();
            let local = id == self.local.node;
            for (port, facts) in self.fabric.node(id).numbered_ports() {
                let passable = through || (local && port == self.local.port);
                let Some(peer) = self.fabric.peer(PortRef { node: id, port }).filter(|_| passable) else {
                    continue;
                };
                let up = facts.state.is_up() && self.fabric.port(peer).is_some_and(|p| p.state.is_up());
                if up && !reached.contains_key(&peer.node) {
                    let Ok(longer) = path.extend(port) else { continue };
                    reached.insert(peer.node, (longer, peer.port));
                    line.push_back(peer.node);
                }
            }
        }
        let lost = self.fabric.node_ids().filter(|id| !reached.contains_key(id)).collect();
        for (id, (path, entry)) in reached {
            if let Some(node) = self.nodes.get_mut(&id) {
                (node.path, node.entry_port) = (path, entry);
            }
        }
        lost
    }

    /// The same picture with nodes in the order of a breadth-first walk by port number from the subnet manager's own
    /// node: the order no longer tells in which order answers came.
    #[must_use]
    pub fn in_walking_order(&self) -> Self {
        let mut order = Vec::with_capacity(self.fabric.node_count());
        let mut new_id = BTreeMap::new();
        let mut line = VecDeque::from([self.local.node]);
        let mut fabric = Fabric::new();
        while let Some(old) =
            line.pop_front().or_else(|| self.fabric.node_ids().find(|id| !new_id.contains_key(id)))
        {
            if new_id.contains_key(&old) {
                continue;
            }
            let Some(node) = self.fabric.get(old) else { continue };
            if let Ok(id) = fabric.add_node(node.clone()) {
                new_id.insert(old, id);
                order.push(old);
            }
            line.extend(
                node.numbered_ports()
                    .filter_map(|(port, _)| self.fabric.peer(PortRef { node: old, port }))
                    .map(|p| p.node),
            );
        }
        for old in &order {
            for (port, _) in self.fabric.node(*old).numbered_ports() {
                let end = PortRef { node: *old, port };
                if let Some(peer) = self.fabric.peer(end)
                    && (new_id[old], end.port) < (new_id[&peer.node], peer.port)
                {
                    let moved = |e: PortRef| PortRef { node: new_id[&e.node], port: e.port };
                    let joined = fabric.connect(moved(end), moved(peer));
                    debug_assert!(joined.is_ok(), "each cable of the old graph is connected once");
                }
            }
        }
        let moved =
            |e: PortRef| PortRef { node: new_id.get(&e.node).copied().unwrap_or(e.node), port: e.port };
        Self {
            fabric,
            nodes: self
                .nodes
                .iter()
                .filter_map(|(id, node)| Some((*new_id.get(id)?, node.clone())))
                .collect(),
            local: moved(self.local),
            managers: self
                .managers
                .iter()
                .map(|m| super::OtherManager { port: moved(m.port), ..*m })
                .collect(),
            findings: self.findings.clone(),
        }
    }
}

/// The port, made when nothing was known of it.
fn place(node: &mut Node, port: PortNum) -> &mut Port {
    if node.ports.len() <= port.index() {
        node.ports.resize(port.index() + 1, None);
    }
    node.ports[port.index()].get_or_insert_with(|| {
        let mut port = Port::default();
        port.state = PortState::Init;
        port
    })
}

/// Writes the fields of PortInfo that the graph knows.
fn fill(port: &mut Port, info: &PortInfo) {
    port.lid = info.lid();
    port.lmc = info.lmc();
    port.state = info.port_state().unwrap_or(PortState::Down);
    port.phys_state = info.port_phys_state().unwrap_or(PortPhysState::Polling);
    let up = port.state.is_up();
    port.width = info.link_width().filter(|_| up);
    port.speed = info.link_speed(false).filter(|_| up);
    port.widths_supported = info.widths_supported();
    port.speeds_supported = info.speeds_supported();
    if let Some(mtu) = info.mtu_cap() {
        port.mtu_cap = mtu;
    }
    if let Some(mtu) = info.neighbor_mtu() {
        port.mtu = mtu;
    }
    port.vl_cap = info.vl_cap();
    port.operational_vls = info.operational_vls();
    port.capability_mask = info.capability_mask.get();
    port.capability_mask2 = info.capability_mask2.get();
}
