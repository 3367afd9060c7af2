//! SL-to-VL tables: read where a node may have been configured before, set where they are not as planned.

use std::sync::Arc;
use std::time::Duration;

use mad::wire::Attribute;
use mad::wire::smp::SlToVlMappingTable;

use super::Apply;
use super::jobs::Job;
use super::steps::is_idle;
use crate::plan::lanes::LanePlan;
use crate::request::{Answer, SmpRequest};

/// How long a Set for all pairs of ports is waited for, the first time (B57).
const ALL_PORTS_TIMEOUT: Duration = Duration::from_secs(2);

/// Reads of tables that are not known of nodes in service: what another manager, or we before a restart, have set right needs
/// no Set.
pub(super) fn read_jobs(apply: &Apply) -> Vec<Job> {
    let unread = |plan: &LanePlan| {
        let guid = apply.observed.fabric.get(plan.end.node).map(|node| node.guid);
        let known = guid.and_then(|guid| apply.ground.tables.lanes(guid, plan.key()));
        known.is_none() && !plan.is_for_all() && !is_idle(apply, plan.end.node)
    };
    let plans = apply.plan.lanes.iter().enumerate().filter(|(_, plan)| unread(plan));
    plans.map(|(index, _)| Job::ReadLanes { index: index as u32 }).collect()
}

/// Sets of tables that are not known to be as planned.
pub(super) fn set_jobs(apply: &Apply) -> Vec<Job> {
    let due = |plan: &LanePlan| {
        let guid = apply.observed.fabric.get(plan.end.node).map(|node| node.guid);
        guid.and_then(|guid| apply.ground.tables.lanes(guid, plan.key())) != Some(plan.table)
    };
    let plans = apply.plan.lanes.iter().enumerate().filter(|(_, plan)| due(plan));
    plans.map(|(index, _)| Job::SetLanes { index: index as u32 }).collect()
}

impl Apply {
    pub(super) fn lanes_request(&mut self, index: u32, set: bool) -> Option<SmpRequest> {
        let plan = *self.plan.lanes.get(index as usize)?;
        let guid = self.observed.fabric.get(plan.end.node)?.guid;
        let path = self.observed.path_to(plan.end)?;
        if !set {
            return Some(SmpRequest::get::<SlToVlMappingTable>(path, guid, plan.modifier));
        }
        self.counts.add(SlToVlMappingTable::ID);
        // One Set for all pairs of ports: the switch may be long about it.
        let timeout = plan.is_for_all().then_some(ALL_PORTS_TIMEOUT);
        Some(SmpRequest { timeout, ..SmpRequest::set(path, guid, plan.modifier, &plan.table) })
    }

    pub(super) fn lanes_answered(&mut self, index: u32, set: bool, answer: &Answer) {
        let Some(plan) = self.plan.lanes.get(index as usize).copied() else { return };
        let Some(guid) = self.observed.fabric.get(plan.end.node).map(|node| node.guid) else { return };
        let found = answer.attribute::<SlToVlMappingTable>();
        let tables = Arc::make_mut(&mut self.ground.tables);
        let Some(found) = found.map(|table| if plan.is_for_all() { plan.table } else { table }) else {
            tables.doubt_lanes(guid, plan.key());
            if set {
                self.failed(plan.end.node, what(&plan), answer);
            }
            return;
        };
        tables.confirm_lanes(guid, plan.key(), found);
        if set && found != plan.table {
            self.failed_because(plan.end.node, what(&plan), "it holds other lanes than were set");
        }
    }
}

fn what(plan: &LanePlan) -> String {
    if plan.is_for_all() {
        return "SLtoVLMappingTable of all ports".to_owned();
    }
    let (entry, exit) = SlToVlMappingTable::split_modifier(plan.modifier);
    match plan.modifier {
        0 => format!("SLtoVLMappingTable of port {}", plan.end.port),
        _ => format!("SLtoVLMappingTable from port {entry} to port {exit}"),
    }
}
