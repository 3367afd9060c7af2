//! VL arbitration tables: read where a port may have been configured before, set where they are not as planned.

use std::sync::Arc;

use super::Apply;
use super::jobs::Job;
use super::steps::is_idle;
use crate::plan::port_tables::TablePlan;
use crate::request::{Answer, SmpRequest};

/// Reads of tables that are not known, of nodes in service.
pub(super) fn read_jobs(apply: &Apply) -> Vec<Job> {
    let unread = |plan: &TablePlan| held(apply, plan).is_none() && !is_idle(apply, plan.end.node);
    let plans = (0..).zip(&apply.plan.arbitration).filter(|(_, plan)| unread(plan));
    plans.map(|(index, _)| Job::Arbitration { index, set: false }).collect()
}

/// Sets of tables that are not known to be as planned.
pub(super) fn set_jobs(apply: &Apply) -> Vec<Job> {
    let plans = (0..).zip(&apply.plan.arbitration).filter(|(_, plan)| held(apply, plan) != Some(plan.data));
    plans.map(|(index, _)| Job::Arbitration { index, set: true }).collect()
}

fn held(apply: &Apply, plan: &TablePlan) -> Option<[u8; 64]> {
    apply.observed.nodes.get(&plan.end.node)?.tables.get(plan.end.port, plan.table)
}

impl Apply {
    pub(super) fn arbitration_request(&mut self, index: u32, set: bool) -> Option<SmpRequest> {
        let plan = *self.plan.arbitration.get(index as usize)?;
        let value = set.then_some(plan.data);
        let request = SmpRequest::port_table(&self.observed, plan.end, plan.table, value)?;
        if set {
            self.counts.add(request.attribute_id);
        }
        Some(request)
    }

    pub(super) fn arbitration_answered(&mut self, index: u32, set: bool, answer: &Answer) {
        let Some(plan) = self.plan.arbitration.get(index as usize).copied() else { return };
        let came = if let Answer::Reply(data) = answer { Some(data) } else { None };
        if let Some(node) = Arc::make_mut(&mut self.observed).nodes.get_mut(&plan.end.node) {
            node.tables.put(plan.end.port, plan.table, came);
        }
        let what = format!("{:?} of port {}", plan.table, plan.end.port);
        match came {
            Some(data) if set && *data != plan.data => {
                self.failed_because(plan.end.node, what, "it holds other entries than were set");
            }
            None if set => self.failed(plan.end.node, what, answer),
            _ => {}
        }
    }
}
