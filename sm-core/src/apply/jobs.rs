//! Single Sets: what is sent, and what its answer does to the picture.

use std::sync::Arc;

use mad::types::{Guid, PortState};
use mad::wire::smp::{LinearForwardingTable, PortInfo, SwitchInfo};
use mad::wire::{Attribute, Status};
use routing::fabric::{NodeId, PortRef};
use routing::verify::transition::Write;

use super::port_set::{leave_the_link_alone, modifier};
use super::steps::{configuration, desired_block, is_idle, switch_info, top_to_set, transition_block};
use super::{Apply, Block, Failure, NotKept, empty};
use crate::plan::fields::{FieldSet, PortField};
use crate::plan::ports::PortPlan;
use crate::request::{Answer, SmpRequest};

/// A Set; comes back with its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// SwitchInfo, in the first or in the last step that sets it.
    Switch {
        /// The switch.
        node: NodeId,
        /// Whether this is the last step.
        last: bool,
    },
    /// One block of a forwarding table.
    Table {
        /// Index of the switch in the plan's graph.
        switch: u32,
        /// Block of 64 LIDs.
        block: u16,
    },
    /// One block of a switch in service, in the proven order.
    Write {
        /// Step of the plan's transition.
        step: u32,
        /// Index in the step's writes.
        index: u32,
    },
    /// One block of a switch in service read again, after a Set of it that was refused or not answered: whether it holds
    /// the old or the new entries decides whether the proven order can go on.
    ReadTable {
        /// Index of the switch in the plan's graph.
        switch: u32,
        /// Block of 64 LIDs.
        block: u16,
    },
    /// A read of one block of a switch in service of which nothing is known.
    ReadUnknown {
        /// Index of the switch in the plan's graph.
        switch: u32,
        /// Block of 64 LIDs.
        block: u16,
    },
    /// One block of a switch in service that does not hold what it shall, emptied.
    EmptyUnknown {
        /// Index of the switch in the plan's graph.
        switch: u32,
        /// Block of 64 LIDs.
        block: u16,
    },
    /// SL-to-VL table of a node that may have been configured before.
    ReadLanes {
        /// Index in the plan's lanes.
        index: u32,
    },
    /// SL-to-VL table.
    SetLanes {
        /// Index in the plan's lanes.
        index: u32,
    },
    /// VL arbitration table.
    Arbitration {
        /// Index in the plan's tables of it.
        index: u32,
        /// Whether it is set; else it is read of a port that may have been configured before.
        set: bool,
    },
    /// PortInfo.
    Port {
        /// Index in the plan's ports.
        index: u32,
        /// ACTIVE; otherwise settings and ARMED.
        activate: bool,
    },
    /// A Set of PortInfo that changes nothing, where it is not known whether there is a key.
    Probe {
        /// The port.
        end: PortRef,
    },
    /// M_Key, protection and lease.
    Key {
        /// Index in the plan's ports.
        index: u32,
    },
    /// PortInfo read with the new or with the old key.
    ReadKey {
        /// Index in the plan's ports.
        index: u32,
        /// Which.
        new: bool,
    },
    /// A block of a port's table.
    PortTable {
        /// Index in the plan's port tables.
        index: u32,
    },
    /// PortInfo of a port that was down when PortStateChange was not cleared yet.
    ReadDown {
        /// The port.
        end: PortRef,
    },
    /// NodeInfo of whoever is behind a switch's port.
    VerifyLink {
        /// The port.
        end: PortRef,
    },
    /// PortInfo read again, after a Set that was refused or not answered: the port may have done it all the same and only
    /// the answer was lost, it may have done half, and one that saw data went to ACTIVE by itself.
    ReadPort {
        /// Index in the plan's ports.
        index: u32,
        /// As in the Set.
        activate: bool,
        /// Status of the Set; `None` when it was not answered.
        status: Option<Status>,
    },
}

impl Apply {
    pub(super) fn request(&mut self, job: &Job) -> Option<SmpRequest> {
        match *job {
            Job::Probe { end } => self.probe_request(end),
            Job::Key { index } => self.key_request(index),
            Job::ReadKey { index, new } => self.read_key_request(index, new),
            _ => Some(self.keyless_request(job)?.with_key(&self.ground.keys, &self.observed)),
        }
    }

    /// All but those that are about keys, without the key that they need.
    fn keyless_request(&mut self, job: &Job) -> Option<SmpRequest> {
        match *job {
            Job::Probe { .. } | Job::Key { .. } | Job::ReadKey { .. } => None,
            Job::Switch { node, last } => self.switch_request(node, last),
            Job::Table { switch, block } => {
                self.table_request(switch, block, desired_block(self, switch, usize::from(block)))
            }
            Job::Write { step, index } => {
                let write = self.write(step, index)?;
                self.table_request(write.switch, write.block, transition_block(self, &write))
            }
            Job::ReadTable { switch, block } | Job::ReadUnknown { switch, block } => {
                let (node, guid) = (self.plan.graph.node(switch), self.plan.graph.guid(switch));
                Some(SmpRequest::get::<LinearForwardingTable>(self.path(node)?, guid, u32::from(block)))
            }
            Job::EmptyUnknown { switch, block } => self.table_request(switch, block, empty::EMPTY),
            Job::PortTable { index } => {
                let plan = *self.plan.port_tables.get(index as usize)?;
                let request = SmpRequest::port_table(&self.observed, plan.end, plan.table, Some(plan.data))?;
                self.counts.add(request.attribute_id);
                Some(request)
            }
            Job::ReadLanes { index } => self.lanes_request(index, false),
            Job::SetLanes { index } => self.lanes_request(index, true),
            Job::Arbitration { index, set } => self.arbitration_request(index, set),
            Job::Port { index, activate } => self.port_request(index, activate),
            Job::ReadDown { end } => {
                let modifier = modifier(&self.observed, end);
                Some(SmpRequest::get::<PortInfo>(self.path(end.node)?, self.guid(end.node)?, modifier))
            }
            Job::VerifyLink { end } => self.verify_request(end),
            Job::ReadPort { index, .. } => {
                let end = self.plan.ports.get(index as usize)?.end;
                let modifier = modifier(&self.observed, end);
                Some(SmpRequest::get::<PortInfo>(self.observed.path_to(end)?, self.guid(end.node)?, modifier))
            }
        }
    }

    pub(super) fn job_answered(&mut self, job: Job, answer: &Answer) {
        match job {
            Job::Switch { node, .. } => self.switch_answered(node, answer),
            Job::Table { switch, block } => {
                let asked = desired_block(self, switch, usize::from(block));
                self.table_answered(switch, block, &asked, answer);
            }
            Job::Write { step, index } => {
                if let Some(write) = self.write(step, index) {
                    let asked = transition_block(self, &write);
                    self.table_answered(write.switch, write.block, &asked, answer);
                }
            }
            Job::ReadTable { switch, block } => {
                if let Some(asked) = self.doubted.remove(&(switch, block)) {
                    self.table_settled(switch, block, &asked, answer);
                }
            }
            Job::ReadUnknown { switch, block } => self.unknown_read(switch, block, answer),
            Job::EmptyUnknown { switch, block } => {
                self.table_answered(switch, block, &empty::EMPTY, answer);
            }
            Job::Probe { end } => self.probed(end, answer),
            Job::Key { index } => self.key_answered(index, answer),
            Job::ReadKey { index, new } => self.key_read(index, new, answer),
            Job::PortTable { index } => self.port_table_answered(index, answer),
            Job::ReadLanes { index } => self.lanes_answered(index, false, answer),
            Job::SetLanes { index } => self.lanes_answered(index, true, answer),
            Job::Arbitration { index, set } => self.arbitration_answered(index, set, answer),
            Job::Port { index, activate } => self.port_answered(index, activate, answer),
            Job::ReadPort { index, activate, status } => self.port_read(index, activate, status, answer),
            Job::VerifyLink { end } => self.link_verified(end, answer),
            Job::ReadDown { end } => {
                let up = |info: PortInfo| info.port_state().is_some_and(PortState::is_up);
                if let Some(guid) = self.guid(end.node).filter(|_| answer.attribute().is_some_and(up)) {
                    self.changed_meanwhile.push((guid, end.port));
                }
            }
        }
    }

    fn path(&self, node: NodeId) -> Option<mad::types::DirectedPath> {
        Some(self.observed.nodes.get(&node)?.path)
    }

    fn guid(&self, node: NodeId) -> Option<Guid> {
        Some(self.observed.fabric.get(node)?.guid)
    }

    fn switch_request(&mut self, node: NodeId, last: bool) -> Option<SmpRequest> {
        let plan = *self.plan.switches.iter().find(|plan| plan.node == node)?;
        let mut info = switch_info(self, node)?;
        info.linear_fdb_top.set(top_to_set(self, &plan, &info, last));
        info.set_life_time_value(plan.life_time);
        // PortStateChange as it was read: 1 clears it. Where it was 0, a change since then would be cleared unread.
        self.counts.add(SwitchInfo::ID);
        Some(SmpRequest::set(self.path(node)?, self.guid(node)?, 0, &info))
    }

    fn switch_answered(&mut self, node: NodeId, answer: &Answer) {
        let Some(info) = answer.attribute::<SwitchInfo>() else {
            self.unconfirmed.extend(self.guid(node));
            return self.failed(node, "SwitchInfo".into(), answer);
        };
        Arc::make_mut(&mut self.observed).record_switch_info(node, &info);
    }

    fn write(&self, step: u32, index: u32) -> Option<Write> {
        self.plan.transition.get(step as usize)?.writes.get(index as usize).copied()
    }

    fn table_request(&mut self, switch: u32, block: u16, content: Block) -> Option<SmpRequest> {
        let (node, guid) = (self.plan.graph.node(switch), self.plan.graph.guid(switch));
        let table = LinearForwardingTable { ports: content };
        self.counts.add(LinearForwardingTable::ID);
        Some(SmpRequest::set(self.path(node)?, guid, u32::from(block), &table))
    }

    fn table_answered(&mut self, switch: u32, block: u16, asked: &Block, answer: &Answer) {
        if answer.attribute::<LinearForwardingTable>().is_none()
            && !is_idle(self, self.plan.graph.node(switch))
        {
            self.doubted.insert((switch, block), *asked);
            self.queue.push_front(Job::ReadTable { switch, block });
            return;
        }
        self.table_settled(switch, block, asked, answer);
    }

    pub(super) fn table_settled(&mut self, switch: u32, block: u16, asked: &Block, answer: &Answer) {
        let (node, guid) = (self.plan.graph.node(switch), self.plan.graph.guid(switch));
        let tables = Arc::make_mut(&mut self.ground.tables);
        match answer.attribute::<LinearForwardingTable>() {
            Some(table) if table.ports == *asked => tables.confirm(guid, usize::from(block), asked),
            Some(table) => {
                tables.confirm(guid, usize::from(block), &table.ports);
                self.table_unconfirmed(node, block);
                self.failed_because(
                    node,
                    format!("LinearForwardingTable block {block}"),
                    "it holds other entries than were set",
                );
            }
            None => {
                tables.doubt(guid, usize::from(block));
                self.table_unconfirmed(node, block);
                self.failed(node, format!("LinearForwardingTable block {block}"), answer);
            }
        }
    }

    /// Later writes of the same LIDs were proven safe after this one only; writes of other blocks go on.
    fn table_unconfirmed(&mut self, node: NodeId, block: u16) {
        self.unconfirmed.extend(self.guid(node));
        if !is_idle(self, node) {
            self.stalled.insert(block);
        }
    }

    fn port_request(&mut self, index: u32, activate: bool) -> Option<SmpRequest> {
        let plan = *self.plan.ports.get(index as usize)?;
        let mut asked = *self.observed.port_info(plan.end)?;
        let configuration = configuration(self, &plan);
        if !activate {
            configuration.fields.iter().for_each(|f| f.set(&mut asked, f.get(&plan.desired)));
        }
        let state = match (activate, configuration.arm) {
            (true, _) => PortState::Active.to_wire(),
            (false, true) => PortState::Armed.to_wire(),
            (false, false) => 0,
        };
        leave_the_link_alone(&mut asked);
        self.keep_key(plan.end, &mut asked);
        asked.set_port_state_raw(state);
        let tell = if activate { plan.reregister } else { configuration.reregister };
        asked.set_client_reregister(u8::from(tell));
        if plan.reregister && (tell || (self.many_to_tell && !activate)) {
            self.untold.extend(self.observed.fabric.port(plan.end).map(|p| p.guid));
        }
        if state != 0 && self.observed.fabric.node(plan.end.node).is_switch() {
            self.raised.extend(self.guid(plan.end.node).map(|guid| (guid, plan.end.port)));
        }
        self.counts.add(PortInfo::ID);
        let modifier = modifier(&self.observed, plan.end);
        Some(SmpRequest::set(self.observed.path_to(plan.end)?, self.guid(plan.end.node)?, modifier, &asked))
    }

    fn port_answered(&mut self, index: u32, activate: bool, answer: &Answer) {
        let Some(plan) = self.plan.ports.get(index as usize).copied() else { return };
        let wanted = configuration(self, &plan);
        let port_guid = self.observed.fabric.port(plan.end).map_or(Guid::NONE, |p| p.guid);
        let Some(info) = answer.attribute::<PortInfo>() else {
            let status = if let Answer::Refused(status) = answer { Some(*status) } else { None };
            if *answer != Answer::Cancelled {
                self.queue.push_back(Job::ReadPort { index, activate, status });
            }
            return;
        };
        self.record_port(plan.end, &info);
        if !activate {
            let missed = FieldSet::difference(&info, &plan.desired);
            let asked = wanted.fields;
            self.note_not_kept(&plan, asked.without(asked.without(missed)), port_guid);
        }
        if (activate && plan.reregister) || (!activate && wanted.reregister) {
            self.reregistered.insert(port_guid);
            self.untold.remove(&port_guid);
        }
        self.check_state(&plan, activate, wanted.arm, &info);
    }

    /// What the port says after a Set of which nothing is known.
    fn port_read(&mut self, index: u32, activate: bool, status: Option<Status>, answer: &Answer) {
        let Some(plan) = self.plan.ports.get(index as usize).copied() else { return };
        let wanted = configuration(self, &plan);
        let port_guid = self.observed.fabric.port(plan.end).map_or(Guid::NONE, |p| p.guid);
        let sets_lid = !activate && wanted.fields.contains(PortField::Lid);
        let what = format!("PortInfo of port {}", plan.end.port);
        let Some(info) = answer.attribute::<PortInfo>() else {
            if sets_lid {
                self.stuck.insert(port_guid);
            }
            return self.failed(plan.end.node, what, answer);
        };
        self.record_port(plan.end, &info);
        if !activate {
            let asked = wanted.fields;
            let missed = asked.without(asked.without(FieldSet::difference(&info, &plan.desired)));
            if missed.contains(PortField::Lid) {
                self.stuck.insert(port_guid);
            }
            if !missed.is_empty() {
                let ended = status.map_or_else(|| "no answer".into(), |status| format!("status {status}"));
                return self.failed_because(plan.end.node, what, &format!("{ended}, {missed} not confirmed"));
            }
        }
        self.check_state(&plan, activate, wanted.arm, &info);
    }

    /// Takes in what a port says. Where its link fell since it was raised, whoever is at the other end may have been reset,
    /// so both ends are read again (B04).
    pub(super) fn record_port(&mut self, end: PortRef, info: &PortInfo) {
        let passes = |info: &PortInfo| info.port_state().is_some_and(|state| state >= PortState::Armed);
        if self.observed.port_info(end).is_some_and(passes) && !passes(info) {
            for end in [Some(end), self.observed.fabric.peer(end)].into_iter().flatten() {
                self.changed_meanwhile.extend(self.guid(end.node).map(|guid| (guid, end.port)));
            }
        }
        Arc::make_mut(&mut self.observed).record_port_info(end, info);
    }

    /// What the port answered is what it holds; after a refusal or silence that is not known.
    fn port_table_answered(&mut self, index: u32, answer: &Answer) {
        let Some(plan) = self.plan.port_tables.get(index as usize).copied() else { return };
        let came = if let Answer::Reply(data) = answer { Some(data) } else { None };
        if let Some(node) = Arc::make_mut(&mut self.observed).nodes.get_mut(&plan.end.node) {
            node.tables.put(plan.end.port, plan.table, came);
        }
        let what = format!("{:?} of port {}", plan.table, plan.end.port);
        match came {
            Some(data) if *data == plan.data => {}
            Some(_) => self.failed_because(plan.end.node, what, "it holds other entries than were set"),
            None => self.failed(plan.end.node, what, answer),
        }
    }

    fn check_state(&mut self, plan: &PortPlan, activate: bool, arm: bool, info: &PortInfo) {
        let state = info.port_state().unwrap_or(PortState::Down);
        let least = if activate { PortState::Active } else { PortState::Armed };
        if (activate || arm) && state < least {
            let what = format!("PortInfo of port {}", plan.end.port);
            self.failed_because(plan.end.node, what, &format!("asked for {least:?}, it is {state:?}"));
        }
    }

    /// A LID that was not taken is a failure; of the other fields, those not kept are noted and not asked for again.
    pub(super) fn note_not_kept(&mut self, plan: &PortPlan, fields: FieldSet, port_guid: Guid) {
        let vital = FieldSet::EMPTY.with(PortField::Lid).with(PortField::MasterSmLid).with(PortField::Lmc);
        let vital = vital.with(PortField::MKey);
        let refused = fields.without(fields.without(vital));
        if !refused.is_empty() {
            if refused.contains(PortField::Lid) {
                self.stuck.insert(port_guid);
            }
            let what = format!("PortInfo of port {}", plan.end.port);
            self.failed_because(plan.end.node, what, &format!("{refused} not taken"));
        }
        let Some(guid) = self.guid(plan.end.node) else { return };
        let new = self.ground.quirks.add(guid, plan.end.port, fields.without(vital));
        if !new.is_empty() {
            self.not_kept.push(NotKept { node: guid, port: plan.end.port, fields: new });
        }
    }

    pub(super) fn failed(&mut self, node: NodeId, attribute: String, answer: &Answer) {
        if *answer != Answer::Cancelled {
            self.failed_because(node, attribute, &answer.in_words());
        }
    }

    pub(super) fn failed_because(&mut self, node: NodeId, attribute: String, reason: &str) {
        let path = self.path(node).unwrap_or(mad::types::DirectedPath::LOCAL);
        self.failures.push(Failure {
            node: self.guid(node).unwrap_or(Guid::NONE),
            name: self.observed.name(node),
            path,
            attribute,
            reason: reason.to_owned(),
        });
    }
}
