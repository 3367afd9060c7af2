//! Whether cables lead where the sweep saw them lead, asked once more before a link is raised.
//!
//! A sweep that could not clear PortStateChange first (the first one of a manager) sees no cable that is moved behind its
//! back: the port is at INIT before and after, and the notice that came of it is cleared with the others. Entries made for the
//! old cabling would make loops over the new one, and nobody would look again. So after the clearing whoever is behind each link
//! that is to be raised is asked who it is. One NodeInfo for each link; none where the sweep was too short for a cable to
//! be moved meanwhile.

use mad::types::PortState;
use mad::wire::smp::{NodeInfo, PortInfo};
use routing::fabric::{NodeId, PortRef};

use super::Apply;
use super::jobs::Job;
use crate::request::{Answer, SmpRequest};

/// Links at INIT of switches whose PortStateChange was set when their ports were read.
pub(super) fn verify_jobs(apply: &Apply) -> Vec<Job> {
    if !apply.verify_links {
        return Vec::new();
    }
    let fabric = &apply.observed.fabric;
    // By the far end the question would go out and come back over the very link, and find us wherever the cable leads.
    let distance = |end: PortRef| (apply.observed.nodes.get(&end.node).map(|node| node.path.len()), end);
    let of_switch = |node: &NodeId| {
        let node = *node;
        let facts = fabric.get(node).filter(|facts| facts.is_switch());
        let ports = facts.into_iter().flat_map(|facts| facts.numbered_ports());
        ports.filter_map(move |(port, _)| {
            let end = PortRef { node, port };
            let peer = fabric.peer(end)?;
            let init = apply.observed.port_info(end).and_then(PortInfo::port_state) == Some(PortState::Init);
            let between = is_switch(apply, peer);
            let asked_there =
                between && apply.read_before.contains(&peer.node) && distance(peer) < distance(end);
            (init && !asked_there).then_some(Job::VerifyLink { end })
        })
    };
    apply.read_before.iter().flat_map(of_switch).collect()
}

fn is_switch(apply: &Apply, end: PortRef) -> bool {
    apply.observed.fabric.get(end.node).is_some_and(routing::fabric::Node::is_switch)
}

impl Apply {
    pub(super) fn verify_request(&self, end: PortRef) -> Option<SmpRequest> {
        let peer = self.observed.fabric.peer(end)?;
        let guid = self.observed.fabric.get(peer.node)?.guid;
        Some(SmpRequest::get::<NodeInfo>(self.observed.path_beyond(end)?, guid, 0))
    }

    /// Somebody else is there: nothing more is written by this picture. (Silence says nothing; a Set tells then.)
    pub(super) fn link_verified(&mut self, end: PortRef, answer: &Answer) {
        let (Some(info), Some(peer)) = (answer.attribute::<NodeInfo>(), self.observed.fabric.peer(end))
        else {
            return;
        };
        let expected = self.observed.fabric.get(peer.node).map(|node| node.guid);
        if expected == Some(info.node_guid()) && peer.port == info.local_port_num() {
            return;
        }
        self.moved = true;
        self.stop();
        let reason = "its cable was moved while we looked: the fabric is walked again before anything is set";
        self.failed_because(end.node, format!("the link of port {}", end.port), reason);
    }
}
