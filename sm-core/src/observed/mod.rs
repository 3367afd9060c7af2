//! What the fabric said of itself: the result of a sweep, and the input of everything that is planned.
//!
//! Values in [`Observed`] come from replies only: of a reply with a status other than 0, and of a Set that was not
//! answered, nothing enters (B07).

use std::collections::BTreeMap;

mod tables;
mod update;

use mad::types::{DirectedPath, Guid, NodeType, PortNum, PortState};
use mad::wire::smp::{NodeInfo, PortInfo, SmInfo, SwitchInfo};
use routing::fabric::{Fabric, NodeId, PortRef};

pub use tables::{NodeTables, PortTable, has_arbitration_block};
pub use update::description_text;

/// A node as it answered.
#[derive(Clone, Debug)]
pub struct ObservedNode {
    /// NodeInfo, as asked through the port that [`ObservedNode::path`] enters by.
    pub node_info: NodeInfo,
    /// NodeDescription, all 64 bytes.
    pub description: [u8; 64],
    /// SwitchInfo, of switches only.
    pub switch_info: Option<SwitchInfo>,
    /// PortInfo by port number; `None` for ports that were not read or did not answer. Entry 0 is used by switches only.
    pub ports: Vec<Option<PortInfo>>,
    /// Tables of its ports.
    pub tables: NodeTables,
    /// The directed route by which the node is reached.
    pub path: DirectedPath,
    /// The port of the node by which that route enters.
    pub entry_port: PortNum,
}

impl ObservedNode {
    /// PortInfo of a port, where it was read.
    pub fn port_info(&self, port: PortNum) -> Option<&PortInfo> {
        self.ports.get(port.index())?.as_ref()
    }

    /// Whether a port can have SL-to-VL and VL arbitration tables: a base port 0 has no lanes to arbitrate.
    pub fn has_qos_tables(&self, port: PortNum) -> bool {
        let base = self.switch_info.is_some_and(|info| info.enhanced_port_0() == 0);
        !(base && port == PortNum::MANAGEMENT)
    }
}

/// A fabric as it was found, and as it was confirmed by the replies to Sets since.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Nodes and links. Every node here has an entry in [`Observed::nodes`].
    pub fabric: Fabric,
    /// What each node answered.
    pub nodes: BTreeMap<NodeId, ObservedNode>,
    /// The port that the subnet manager itself sits on.
    pub local: PortRef,
    /// Other subnet managers that answered, by the port that they sit on.
    pub managers: Vec<OtherManager>,
    /// What was wrong, in the order in which it was met.
    pub findings: Vec<Finding>,
}

/// A subnet manager other than ourselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherManager {
    /// Its port.
    pub port: PortRef,
    /// PortGUID of that port, by the NodeInfo of the node.
    pub guid: Guid,
    /// What it said.
    pub info: SmInfo,
}

impl Observed {
    /// End ports of channel adapters that can have virtual ports (IsVirtualizationSupported). Those stay DOWN: nobody serves them
    /// here (B74).
    pub fn can_have_virtual_ports(&self) -> impl Iterator<Item = PortRef> + '_ {
        self.fabric.nodes().filter(|(_, node)| node.kind == NodeType::Ca).flat_map(|(node, facts)| {
            let ends = facts.numbered_ports().map(move |(port, _)| PortRef { node, port });
            ends.filter(|end| {
                self.port_info(*end).is_some_and(|info| info.has_capability2(PortInfo::CAP2_VIRTUALIZATION))
            })
        })
    }

    /// The node's answers.
    pub fn node(&self, id: NodeId) -> Option<&ObservedNode> {
        self.nodes.get(&id)
    }

    /// PortInfo of a port, where it was read.
    pub fn port_info(&self, end: PortRef) -> Option<&PortInfo> {
        self.nodes.get(&end.node)?.port_info(end.port)
    }

    /// State of the port that was looked from.
    pub fn local_state(&self) -> Option<PortState> {
        self.port_info(self.local)?.port_state()
    }
}

/// Something that the operator should know of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is, for counting and for tests.
    pub kind: FindingKind,
    /// The directed route of the place.
    pub path: DirectedPath,
    /// One line in words, with names, GUIDs and routes.
    pub text: String,
}

/// Kinds of [`Finding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FindingKind {
    /// Two nodes have the same GUID; both routes are in the text (B01).
    DuplicateGuid,
    /// The link is up, but nothing answers at its end (B05).
    SilentPeer,
    /// A node answered with values that can't be (B03).
    RefusedNode,
    /// An attribute of a known node was not answered or refused.
    Unanswered,
    /// A node lies more than 63 hops away.
    TooFar,
    /// A cable was moved while the walk was under way.
    Moved,
    /// A node can't be reached any more.
    Gone,
    /// A switch that is locked with an unknown M_Key.
    Locked,
}
