//! The order in which libibnetdisc (rdma-core 44) finds nodes, which is the reverse of the order in which they are printed.
//!
//! It sends one request after the other and handles replies in that order: NodeInfo of the next node; of a new switch
//! PortInfo of port 0, then of all ports; of anything else PortInfo of the port of entry; each port that is LinkUp gives
//! NodeInfo of the node behind it. Ports of some vendors' devices that run at QDR without an extended speed are asked for
//! one attribute more before that (FDR10). Observed against the tool on simulated fabrics.

use std::collections::VecDeque;

use mad::types::{LinkSpeed, PortNum, PortPhysState};
use rustc_hash::FxHashSet;

use crate::fabric::{Fabric, Node, NodeId, PortRef};

/// What was found, in order.
pub(super) struct Discovery {
    /// Nodes.
    pub nodes: Vec<NodeId>,
    /// Ports that are known to be connected.
    pub linked: FxHashSet<PortRef>,
}

/// NodeInfo, PortInfo and ExtendedPortInfo; the others don't matter for the order.
enum Request {
    Node { at: PortRef, via: Option<PortRef> },
    Port(PortRef),
    ExtendedPort(PortRef),
}

/// Plays the discovery from a port.
pub(super) fn discover(fabric: &Fabric, from: PortRef) -> Discovery {
    let mut found = Discovery { nodes: Vec::new(), linked: FxHashSet::default() };
    let mut seen: FxHashSet<NodeId> = FxHashSet::default();
    let mut queue = VecDeque::from([Request::Node { at: from, via: None }]);
    while let Some(request) = queue.pop_front() {
        match request {
            Request::Node { at, via } => {
                let new = seen.insert(at.node);
                let node = fabric.node(at.node);
                if new {
                    found.nodes.push(at.node);
                }
                found.linked.extend(via.into_iter().flat_map(|via| [via, at]));
                if node.is_switch() {
                    if new {
                        queue.push_back(Request::Port(PortRef { node: at.node, port: PortNum(0) }));
                    }
                } else {
                    queue.push_back(Request::Port(at));
                }
            }
            Request::Port(at) if at.port.0 == 0 => {
                let ports = 1..=fabric.node(at.node).num_ports;
                queue.extend(ports.map(|p| Request::Port(PortRef { node: at.node, port: PortNum(p) })));
            }
            Request::Port(at) if asks_for_more(fabric, at) => {
                queue.push_back(Request::ExtendedPort(at));
            }
            Request::Port(at) | Request::ExtendedPort(at) => {
                let through = fabric.node(at.node).is_switch() || at == from;
                let up = fabric.port(at).is_some_and(|p| p.phys_state == PortPhysState::LinkUp);
                if let Some(peer) = fabric.peer(at).filter(|_| through && up) {
                    queue.push_back(Request::Node { at: peer, via: Some(at) });
                }
            }
        }
    }
    found
}

fn asks_for_more(fabric: &Fabric, at: PortRef) -> bool {
    let qdr = |speed| matches!(speed, Some(LinkSpeed::Qdr | LinkSpeed::Fdr10));
    has_extended_port_info(fabric.node(at.node))
        && fabric.port(at).is_some_and(|p| p.phys_state == PortPhysState::LinkUp && qdr(p.speed))
}

/// Devices that the library asks for the vendor's ExtendedPortInfo.
fn has_extended_port_info(node: &Node) -> bool {
    const BULL: u32 = 0x119f;
    match node.device_id {
        0xc738..=0xc73b | 0xc839 | 0xcb20 | 0xcf08 | 0xcf09 | 0xd2f0 | 0x1003..=0x101b | 0xa2d2 => true,
        0x1b02
        | 0x1b50
        | 0x1ba0
        | 0x1bd0..=0x1bd5
        | 0x1bf0
        | 0x1b33
        | 0x1b73
        | 0x1b40
        | 0x1b41
        | 0x1b60
        | 0x1b61
        | 0x1b83
        | 0x1b93
        | 0x1b94
        | 0x1bb4
        | 0x1bb5
        | 0x1bc4..=0x1bc6 => node.vendor_id == BULL,
        _ => false,
    }
}
