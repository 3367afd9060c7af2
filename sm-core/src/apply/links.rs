//! Whether cables lead where the sweep saw them lead, asked once more before anything is written that depends on it.
//!
//! A cable that is moved after a sweep has passed it is not in the picture. Where the sweep could not clear PortStateChange
//! first (the first one of a manager) it never would be: the port is at INIT before and after, and the notice that came of it is cleared
//! with the others. Entries made for the old cabling would make loops over the new one; and a Set by a directed route over a
//! moved cable goes to another switch than the one that it was made for. So whoever is behind each link that is to be raised,
//! and, where tables are to be written, behind each link between switches, is asked who it is. One NodeInfo for each such
//! link; none where the sweep was too short for a cable to be moved meanwhile. An answer that comes late leaves as much time again:
//! then all are asked once more, [`MOST_REPEATS`] times at most. And links between switches that are to be raised are asked
//! again where writing tables to idle switches took long: until then nothing can flow over what was written astray.
//!
//! The question goes from the end that is nearer to us: by the far end it would go out and come back over the very link, and
//! find us again wherever the cable leads.

use std::collections::BTreeMap;
use std::time::Duration;

use mad::types::{PortState, Timestamp};
use mad::wire::smp::{NodeInfo, PortInfo};
use routing::fabric::{Node, NodeId, PortRef};

use super::Apply;
use super::jobs::Job;
use super::steps::{Step, sets_ports, writes_tables};
use crate::request::{Answer, SmpRequest};

/// No cable is moved, and its link trained, in less than this.
const SWIFT: Duration = Duration::from_millis(100);

/// Questions are repeated so often because of answers that were late.
const MOST_REPEATS: u8 = 3;

/// When which links were asked.
#[derive(Clone, Debug, Default)]
pub(super) struct Verification {
    now: Timestamp,
    /// Since when cables may lead elsewhere than the picture says; `None`: nobody asks.
    pictured: Option<Timestamp>,
    asked: BTreeMap<PortRef, Timestamp>,
    /// The step that asked last.
    step: Option<Step>,
    /// Whether an answer to its questions was late.
    late: bool,
    repeats: u8,
}

impl Verification {
    pub(super) fn of(pictured: Timestamp) -> Self {
        Self { now: pictured, pictured: Some(pictured), ..Self::default() }
    }

    pub(super) const fn at(&mut self, now: Timestamp) {
        self.now = now;
    }

    fn is_due(&self) -> bool {
        self.pictured.is_some_and(|since| self.now.saturating_since(since) > SWIFT)
    }

    /// The picture is as new as the questions that are sent now.
    pub(super) fn begin(&mut self, step: Step) {
        (self.pictured, self.step) = (self.pictured.map(|_| self.now), Some(step));
        self.asked.clear();
    }
}

/// Links at INIT of switches whose PortStateChange was set when their ports were read, and, where anything is to be set, those
/// between switches; in the second step those between switches only.
pub(super) fn verify_jobs(apply: &Apply, step: Step) -> Vec<Job> {
    if !apply.verification.is_due() {
        return Vec::new();
    }
    let fabric = &apply.observed.fabric;
    let first = step == Step::VerifyLinks;
    let writes = writes_tables(apply) || (first && sets_ports(apply));
    let distance = |end: PortRef| (apply.observed.nodes.get(&end.node).map(|node| node.path.len()), end);
    let matters = |end: PortRef, peer: PortRef| {
        let state = apply.observed.port_info(end).and_then(PortInfo::port_state);
        let raised = state == Some(PortState::Init) && apply.read_before.contains(&end.node);
        let raised = raised && (first || is_switch(apply, peer));
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
    /// Puts the last step once more in front where one of its answers was late.
    pub(super) fn verify_again(&mut self) {
        let verification = &mut self.verification;
        let late = std::mem::take(&mut verification.late) && verification.repeats < MOST_REPEATS;
        if let Some(step) = verification.step.filter(|_| late) {
            verification.repeats += 1;
            self.steps.push_front(step);
        }
    }

    pub(super) fn verify_request(&mut self, end: PortRef) -> Option<SmpRequest> {
        self.verification.asked.insert(end, self.verification.now);
        let peer = self.observed.fabric.peer(end)?;
        let guid = self.observed.fabric.get(peer.node)?.guid;
        Some(SmpRequest::get::<NodeInfo>(self.observed.path_beyond(end)?, guid, 0))
    }

    /// Somebody else is there: nothing more is written by this picture. (Silence says nothing; a Set tells then.)
    pub(super) fn link_verified(&mut self, end: PortRef, answer: &Answer) {
        let verification = &mut self.verification;
        if verification.asked.get(&end).is_some_and(|at| verification.now.saturating_since(*at) > SWIFT) {
            verification.late = true;
        }
        let (Some(info), Some(peer)) = (answer.attribute::<NodeInfo>(), self.observed.fabric.peer(end))
        else {
            return;
        };
        let expected = self.observed.fabric.get(peer.node).map(|node| node.guid);
        if expected == Some(info.node_guid()) && peer.port == info.local_port_num() {
            return;
        }
        self.moved = true;
        self.verification.late = false;
        self.stop();
        let reason = "its cable was moved while we looked: the fabric is walked again before anything is set";
        self.failed_because(end.node, format!("the link of port {}", end.port), reason);
    }
}
