//! NodeInfo: who is at the end of a cable.

use std::sync::Arc;

use mad::types::{DirectedPath, Guid, MKey, NodeType, PortNum};
use mad::wire::smp::NodeInfo;
use routing::fabric::{NodeId, PortRef};

use super::{Place, Sweep, SweepError, What};
use crate::observed::{FindingKind, Observed};
use crate::request::Answer;

impl Sweep {
    pub(super) fn node_answered(&mut self, from: Option<Place>, key: MKey, answer: &Answer) {
        if let Some(info) = answer.attribute::<NodeInfo>() {
            self.believe_key(info.port_guid(), key);
        }
        let Some(from) = from else { return self.local_node_answered(answer) };
        let Some(end) = self.end(from) else { return };
        let Some(path) = self.path_beyond(end) else { return };
        let Some(info) = answer.attribute::<NodeInfo>() else {
            return self.nobody_there(end, path, answer);
        };
        if let Err(reason) = plausible(&info, false) {
            let text = format!(
                "the node behind {} (route {path}) says of itself what can't be: {reason}; left out",
                self.place_name(end)
            );
            return self.finding(FindingKind::RefusedNode, path, text);
        }
        self.note_move(end, info.node_guid());
        if self.observed().is_some_and(|o| o.fabric.peer(end).is_some()) {
            return; // settled from the other end meanwhile
        }
        match self.id(info.node_guid()) {
            Some(known) => self.known_node_met(end, path, known, &info),
            None => self.new_node_met(end, path, &info),
        }
    }

    fn local_node_answered(&mut self, answer: &Answer) {
        let Some(info) = answer.attribute::<NodeInfo>() else {
            self.failure = Some(SweepError::LocalNode(answer.in_words()));
            return;
        };
        if let Err(reason) = plausible(&info, true) {
            self.failure = Some(SweepError::LocalNode(reason));
            return;
        }
        match Observed::new(&info) {
            Ok(observed) => self.observed = Some(Arc::new(observed)),
            Err(error) => self.failure = Some(SweepError::LocalNode(error.to_string())),
        }
        self.port_guids.insert(info.port_guid(), (info.node_guid(), info.local_port_num()));
        self.ask_everything(&info);
    }

    fn nobody_there(&mut self, end: PortRef, path: DirectedPath, answer: &Answer) {
        if *answer == Answer::Cancelled {
            return;
        }
        let what = self.place_name(end);
        let (kind, text) = match answer {
            Answer::Silent => (
                FindingKind::SilentPeer,
                format!("{what} has a link, but nothing answers behind it (route {path})"),
            ),
            _ => (
                FindingKind::RefusedNode,
                format!("the node behind {what} (route {path}) answers NodeInfo with {}", answer.in_words()),
            ),
        };
        self.finding(kind, path, text);
    }

    fn new_node_met(&mut self, end: PortRef, path: DirectedPath, info: &NodeInfo) {
        let port = info.local_port_num();
        if let Some(other) = self.port_guids.get(&info.port_guid()).copied() {
            let text = format!(
                "port GUID {} is there twice: port {} of node {} and, at route {path}, port {port} of node {}; the second is left out",
                info.port_guid(),
                other.1,
                other.0,
                info.node_guid(),
            );
            self.met_twice(other.0, end);
            return self.finding(FindingKind::DuplicateGuid, path, text);
        }
        let Some(observed) = self.observed_mut() else { return };
        let Ok(node) = observed.add_node(info, path) else { return };
        self.join(end, PortRef { node, port });
        self.port_guids.insert(info.port_guid(), (info.node_guid(), port));
        self.ask_everything(info);
    }

    /// A node met again by another cable: the second end of a loop in the fabric, a second port of an adapter, a cable
    /// moved while we walk, or another node with the same GUID.
    fn known_node_met(&mut self, end: PortRef, path: DirectedPath, node: NodeId, info: &NodeInfo) {
        let Some(observed) = self.observed() else { return };
        let Some(known) = observed.nodes.get(&node) else { return };
        let (guid, port) = (info.node_guid(), info.local_port_num());
        let (first_path, first) = (known.path, known.node_info);
        let same_port_guid = observed.fabric.port(PortRef { node, port }).is_none_or(|p| {
            p.guid == info.port_guid()
                || !p.guid.is_some()
                || self.port_guids.get(&p.guid) != Some(&(guid, port))
        });
        if first.node_type != info.node_type || first.num_ports != info.num_ports || !same_port_guid {
            let text = format!(
                "node GUID {guid} is there twice: at route {first_path} and, as another kind of node, at route {path}; the second is left out",
            );
            self.met_twice(guid, end);
            return self.finding(FindingKind::DuplicateGuid, path, text);
        }
        let far = PortRef { node, port };
        if far == end {
            // Not to be asked again for it: it would be met again, for ever.
            return self.join(end, far);
        }
        if let Some(old) = observed.fabric.peer(far) {
            if let (Some(old), Some(new)) = (self.place(old), self.place(end)) {
                self.ask(What::Recheck { old, new, guid, port });
            }
            return;
        }
        let read = observed.port_info(far).is_some();
        let switch = observed.fabric.node(node).is_switch();
        if let Some(observed) = self.observed_mut() {
            observed.note_port_guid(node, info);
        }
        self.port_guids.insert(info.port_guid(), (guid, port));
        self.join(end, far);
        if self.look.is_some() {
            self.peer_met_again(guid, port, switch);
        } else if !switch && !read {
            self.ask_port(guid, port);
        }
    }

    /// The port that was met at two places was asked for at the first one again (B01).
    pub(super) fn rechecked(&mut self, old: Place, new: Place, (guid, port): Place, answer: &Answer) {
        let (Some(old_end), Some(new_end)) = (self.end(old), self.end(new)) else { return };
        let (Some(old_path), Some(new_path)) = (self.path_beyond(old_end), self.path_beyond(new_end)) else {
            return;
        };
        let still = answer
            .attribute::<NodeInfo>()
            .is_some_and(|info| info.node_guid() == guid && info.local_port_num() == port);
        let (a, b) = (self.place_name(old_end), self.place_name(new_end));
        if still {
            let text = format!(
                "port {port} of node {guid} is there twice: behind {a} (route {old_path}) and behind {b} (route {new_path}); the second is left out",
            );
            self.met_twice(guid, new_end);
            return self.finding(FindingKind::DuplicateGuid, new_path, text);
        }
        let text = format!("port {port} of node {guid} was moved from {a} to {b} while we looked");
        self.finding(FindingKind::Moved, new_path, text);
        if let Some(observed) = self.observed_mut() {
            observed.fabric.disconnect(old_end);
        }
        self.look_again = true;
        if let Some(far) = self.end((guid, port)) {
            self.join(new_end, far);
            if let Some(observed) = self.observed_mut() {
                observed.renew_paths();
            }
            self.ask_port(guid, port);
        }
    }

    /// Connects two ends; a plug that leads a port back to itself is no link.
    fn join(&mut self, a: PortRef, b: PortRef) {
        let Some(observed) = self.observed_mut() else { return };
        let path = observed.nodes.get(&a.node).map_or(DirectedPath::LOCAL, |n| n.path);
        if a == b {
            let text = format!("{} is plugged into itself; not used", self.place_name(a));
            self.finding(FindingKind::RefusedNode, path, text);
        } else if let Err(error) = observed.fabric.connect(a, b) {
            let text = format!("the cable at {} can't be: {error}", self.place_name(a));
            self.finding(FindingKind::RefusedNode, path, text);
        } else {
            // Whether a switch's port enforces partitions depends on who is at its end.
            for end in [a, b] {
                if let Some(info) = self.observed().and_then(|o| o.port_info(end)).copied() {
                    self.ask_tables(end, &info);
                }
            }
        }
    }

    fn ask_everything(&mut self, info: &NodeInfo) {
        let guid = info.node_guid();
        self.ask(What::Description(guid));
        if info.node_type() == Some(NodeType::Switch) {
            self.ask(What::SwitchInfo(guid));
        } else {
            self.ask(What::Port { guid, port: info.local_port_num(), extended: false });
        }
    }
}

/// Whether a NodeInfo can be worked with; the reason when not (B03).
fn plausible(info: &NodeInfo, local: bool) -> Result<(), String> {
    let Some(kind) = info.node_type() else { return Err(format!("NodeType is {}", info.node_type)) };
    if info.num_ports == 0 || info.num_ports == 255 {
        return Err(format!("NumPorts is {}", info.num_ports));
    }
    let port = info.local_port_num();
    if port.0 > info.num_ports {
        return Err(format!("LocalPortNum is {port}, NumPorts {}", info.num_ports));
    }
    if port == PortNum::MANAGEMENT && !(local && kind == NodeType::Switch) {
        return Err("LocalPortNum is 0".into());
    }
    let zero = |guid: Guid, name: &str| if guid.is_some() { Ok(()) } else { Err(format!("{name} is 0")) };
    zero(info.node_guid(), "NodeGUID")?;
    zero(info.port_guid(), "PortGUID")
}
