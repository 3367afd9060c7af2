//! Keys of ports, when everything else is set: the old key is known until the port showed the new one.
//!
//! The Set that changes a key goes out once: a repetition would carry the old key, and count as an attempt to break in where
//! only the answer was lost. What the port holds then is read back, with the new key first.
//!
//! A port that shows neither a key nor that it has none is probed before all else by a Set that changes nothing.

use std::sync::Arc;

use mad::types::{Guid, MKey, PortNum};
use mad::wire::Attribute;
use mad::wire::smp::PortInfo;
use routing::fabric::PortRef;

use super::Apply;
use super::jobs::Job;
use super::port_set::{leave_the_link_alone, modifier};
use crate::keys::Locked;
use crate::plan::fields::{FieldSet, PortField};
use crate::plan::ports::PortPlan;
use crate::request::{Answer, SmpRequest};

/// Tries after the first of a probe.
const PROBES: u32 = 1;

/// Ports that hide a key, if they have one.
pub(super) fn probe_jobs(apply: &Apply) -> Vec<Job> {
    let locked = apply.ground.keys.locked();
    let doubtful = |port: Guid| locked.get(&port).is_some_and(|locked| !locked.refused);
    let mut jobs = Vec::new();
    for (node, facts) in apply.observed.fabric.nodes().filter(|_| !locked.is_empty()) {
        let ports = facts.end_ports().filter(|(_, port)| doubtful(port.guid));
        jobs.extend(ports.map(|(port, _)| Job::Probe { end: PortRef { node, port } }));
    }
    jobs
}

/// Ports whose key, protection or lease is not as it shall be.
pub(super) fn key_jobs(apply: &Apply) -> Vec<Job> {
    let due = |plan: &PortPlan| is_end_port(apply, plan.end) && !due_fields(apply, plan).is_empty();
    let plans = (0..).zip(&apply.plan.ports);
    plans.filter(|(_, plan)| due(plan)).map(|(index, _)| Job::Key { index }).collect()
}

/// Whether a port shows that it holds a key; one that hides what it has does not show that it has none.
fn shows(info: &PortInfo, key: MKey) -> bool {
    info.m_key.key() == key && (key.is_some() || info.m_key_protect_bits() == 0)
}

fn is_end_port(apply: &Apply, end: PortRef) -> bool {
    apply.observed.fabric.get(end.node).is_some_and(|n| !n.is_switch() || end.port == PortNum::MANAGEMENT)
}

fn due_fields(apply: &Apply, plan: &PortPlan) -> FieldSet {
    let Some(info) = apply.observed.port_info(plan.end) else { return FieldSet::EMPTY };
    let guid = apply.observed.fabric.get(plan.end.node).map_or(Guid::NONE, |node| node.guid);
    let quirks = apply.ground.quirks.of(guid, plan.end.port);
    FieldSet::difference(info, &plan.desired).within(FieldSet::KEYS).without(quirks)
}

impl Apply {
    fn port_guid(&self, end: PortRef) -> Guid {
        self.observed.fabric.port(end).map_or(Guid::NONE, |port| port.guid)
    }

    /// Whether a request would meet a port that obeys nobody here.
    pub(super) fn is_shut(&self, request: &SmpRequest) -> bool {
        let locked = self.ground.keys.locked();
        !locked.is_empty()
            && crate::keys::entered_port(&self.observed, request.destination, &request.path)
                .is_some_and(|port| locked.get(&port).is_some_and(|locked| locked.refused))
    }

    /// What every Set of PortInfo carries: the key in force, so that none is changed by the way. An external port has none;
    /// where all ports of a device share one it is that of port 0.
    pub(super) fn keep_key(&self, end: PortRef, asked: &mut PortInfo) {
        let keys = &self.ground.keys;
        if !keys.in_use() {
            return;
        }
        let external = !is_end_port(self, end);
        let guarded = if external { PortRef { port: PortNum::MANAGEMENT, ..end } } else { end };
        asked.m_key.set(keys.of(self.port_guid(guarded)).0);
        if let Some(info) = self.observed.port_info(guarded).filter(|_| external) {
            asked.set_m_key_protect_bits(info.m_key_protect_bits());
            asked.m_key_lease_period = info.m_key_lease_period;
        }
    }

    pub(super) fn probe_request(&self, end: PortRef) -> Option<SmpRequest> {
        let mut asked = *self.observed.port_info(end)?;
        leave_the_link_alone(&mut asked);
        asked.set_client_reregister(0);
        let guid = self.observed.fabric.get(end.node)?.guid;
        let request =
            SmpRequest::set(self.observed.path_to(end)?, guid, modifier(&self.observed, end), &asked);
        Some(SmpRequest { retries: Some(PROBES), ..request })
    }

    pub(super) fn probed(&mut self, end: PortRef, answer: &Answer) {
        let port = self.port_guid(end);
        match answer {
            Answer::Cancelled => {}
            Answer::Reply(_) | Answer::Refused(_) => {
                Arc::make_mut(&mut self.ground.keys).learn(port, MKey::NONE, 0);
            }
            Answer::Silent => {
                let Some(info) = self.observed.port_info(end) else { return };
                let (protect, lease_s) = (info.m_key_protect_bits(), info.m_key_lease_period.get());
                let locked = Locked { protect, lease_s, refused: true };
                Arc::make_mut(&mut self.ground.keys).lock(port, locked);
                if let Some(node) = self.observed.fabric.get(end.node) {
                    self.changed_meanwhile.push((node.guid, end.port));
                    if node.is_switch() {
                        self.unconfirmed.insert(node.guid);
                    }
                }
            }
        }
    }

    pub(super) fn key_request(&mut self, index: u32) -> Option<SmpRequest> {
        let plan = *self.plan.ports.get(index as usize)?;
        let mut asked = *self.observed.port_info(plan.end)?;
        let fields = due_fields(self, &plan);
        let port = self.port_guid(plan.end);
        leave_the_link_alone(&mut asked);
        asked.set_client_reregister(0);
        self.keep_key(plan.end, &mut asked);
        fields.iter().for_each(|field| field.set(&mut asked, field.get(&plan.desired)));
        let changes = fields.contains(PortField::MKey);
        if changes {
            Arc::make_mut(&mut self.ground.keys).expect(port, plan.desired.m_key.key());
        }
        self.counts.add(PortInfo::ID);
        let request =
            self.at_port(&plan, |path, guid, modifier| SmpRequest::set(path, guid, modifier, &asked))?;
        Some(SmpRequest { m_key: self.ground.keys.of(port), retries: changes.then_some(0), ..request })
    }

    fn at_port(
        &self,
        plan: &PortPlan,
        make: impl FnOnce(mad::types::DirectedPath, Guid, u32) -> SmpRequest,
    ) -> Option<SmpRequest> {
        let guid = self.observed.fabric.get(plan.end.node)?.guid;
        Some(make(self.observed.path_to(plan.end)?, guid, modifier(&self.observed, plan.end)))
    }

    pub(super) fn key_answered(&mut self, index: u32, answer: &Answer) {
        let Some(plan) = self.plan.ports.get(index as usize).copied() else { return };
        match answer.attribute::<PortInfo>() {
            Some(info) if shows(&info, plan.desired.m_key.key()) => self.key_confirmed(&plan, &info),
            _ if *answer == Answer::Cancelled => {}
            _ => self.queue.push_back(Job::ReadKey { index, new: true }),
        }
    }

    pub(super) fn read_key_request(&self, index: u32, new: bool) -> Option<SmpRequest> {
        let plan = *self.plan.ports.get(index as usize)?;
        let key = if new { plan.desired.m_key.key() } else { self.ground.keys.of(self.port_guid(plan.end)) };
        let request = self.at_port(&plan, SmpRequest::get::<PortInfo>)?;
        Some(SmpRequest { m_key: key, ..request })
    }

    pub(super) fn key_read(&mut self, index: u32, new: bool, answer: &Answer) {
        let Some(plan) = self.plan.ports.get(index as usize).copied() else { return };
        let info = answer.attribute::<PortInfo>();
        match info {
            Some(info) if shows(&info, plan.desired.m_key.key()) => self.key_confirmed(&plan, &info),
            _ if *answer == Answer::Cancelled => {}
            _ if new => self.queue.push_back(Job::ReadKey { index, new: false }),
            _ => {
                if let Some(info) =
                    info.filter(|info| info.m_key.key() == self.ground.keys.of(self.port_guid(plan.end)))
                {
                    self.record_port(plan.end, &info);
                }
                let what = format!("M_Key of port {}", plan.end.port);
                self.failed_because(plan.end.node, what, "not confirmed");
            }
        }
    }

    fn key_confirmed(&mut self, plan: &PortPlan, info: &PortInfo) {
        let port = self.port_guid(plan.end);
        Arc::make_mut(&mut self.ground.keys).learn(port, info.m_key.key(), info.m_key_protect_bits());
        let asked = due_fields(self, plan);
        self.record_port(plan.end, info);
        let missed = FieldSet::difference(info, &plan.desired).within(asked);
        self.note_not_kept(plan, missed, port);
    }
}
