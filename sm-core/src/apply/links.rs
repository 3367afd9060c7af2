//! Whether cables lead where the sweep saw them lead, asked once more before anything is written that depends on it.
//!
//! A cable that is moved after a sweep has passed it is not in the picture. Where the sweep could not clear PortStateChange
//! first (the first one of a manager) it never would be: the port is at INIT before and after, and the notice that came of it is cleared
//! with the others. Entries made for the old cabling would make loops over the new one; and a Set by a directed route over a
//! moved cable goes to another switch than the one that it was made for. So whoever is behind each link that is to be raised,
//! and, where tables are to be written, behind each link between switches, is asked who it is. One NodeInfo for each such
//! link; none where the sweep was too short for a cable to be moved meanwhile.
//!
//! The question goes from the end that is nearer to us: by the far end it would go out and come back over the very link, and
//! find us again wherever the cable leads.

use mad::types::PortState;
use mad::wire::smp::{NodeInfo, PortInfo};
use routing::fabric::{Node, NodeId, PortRef};

use super::Apply;
use super::jobs::Job;
use super::steps::writes_tables;
use crate::request::{Answer, SmpRequest};

/// Links at INIT of switches whose PortStateChange was set when their ports were read, and, where tables are to be written, those
/// between switches.
pub(super) fn verify_jobs(apply: &Apply) -> Vec<Job> {
    if !apply.verify_links {
        return Vec::new();
    }
    let fabric = &apply.observed.fabric;
    let writes = writes_tables(apply);
    let distance = |end: PortRef| (apply.observed.nodes.get(&end.node).map(|node| node.path.len()), end);
    let matters = |end: PortRef, peer: PortRef| {
        let state = apply.observed.port_info(end).and_then(PortInfo::port_state);
        let raised = state == Some(PortState::Init) && apply.read_before.contains(&end.node);
        raised || (writes && is_switch(apply, peer) && state.is_some_and(PortState::is_up))
    };
    let of_switch = |(node, facts): (NodeId, &Node)| {
        let ends: Vec<PortRef> = facts.numbered_ports().map(|(port, _)| PortRef { node, port }).collect();
        ends.into_iter().filter_map(|end| {
            let peer = fabric.peer(end)?;
            let asked_there = is_switch(apply, peer) && matters(peer, end) && distance(peer) < distance(end);
            (matters(end, peer) && !asked_there).then_some(Job::VerifyLink { end })
        })
    };
    fabric.switches().flat_map(of_switch).collect()
}

fn is_switch(apply: &Apply, end: PortRef) -> bool {
    apply.observed.fabric.get(end.node).is_some_and(Node::is_switch)
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
