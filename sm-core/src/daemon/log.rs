//! What operators read of a round. A line is written when something begins or ends, not each time it is seen (B70).

use std::collections::BTreeSet;

use mad::wire::smp::Notice;

use crate::sm::{Report, Role};

/// Lines of one kind that a round writes; the rest is counted.
const MOST: usize = 20;

/// Remembers what was said already.
#[derive(Debug, Default)]
pub(super) struct Log {
    findings: BTreeSet<String>,
    failures: BTreeSet<String>,
    role: Option<Role>,
}

impl Log {
    pub(super) fn round(&mut self, report: &Report) {
        say_new(&mut self.findings, &report.findings, |text| tracing::warn!("{text}"));
        say_new(&mut self.failures, &report.failures, |text| tracing::error!("{text}"));
        for (fields, ports) in &report.not_kept {
            tracing::warn!(%fields, ports, "ports answer a Set of these fields with another value; they are not asked for again");
        }
        if self.role != Some(report.role) {
            self.role = Some(report.role);
            for manager in &report.managers {
                tracing::info!(
                    guid = %manager.guid, node = %manager.node, priority = manager.priority, state = manager.state,
                    "another subnet manager"
                );
            }
            tracing::info!(role = ?report.role, sm_lid = report.sm_lid.map(mad::types::Lid::get), "our role");
        }
        let sets: u64 = report.sets.values().sum();
        if report.verdict.is_some() {
            tracing::info!(
                round = report.round,
                nodes = report.nodes,
                switches = report.switches,
                links = report.links,
                lids_new = report.lids_new,
                mads = report.mads.sent,
                timed_out = report.mads.timed_out,
                sets,
                failures = report.failures.len(),
                seconds = report.seconds.total,
                "fabric configured"
            );
        } else {
            tracing::debug!(round = report.round, mads = report.mads.sent, sets, "looked at the fabric");
        }
    }

    pub(super) fn trap(notice: &Notice) {
        tracing::debug!(
            trap = notice.trap_number(),
            lid = notice.issuer_lid().map(mad::types::Lid::get),
            "trap"
        );
    }
}

/// Says what was not there the last time.
fn say_new(said: &mut BTreeSet<String>, now: &[String], say: impl Fn(&str)) {
    let new: Vec<&String> = now.iter().filter(|text| !said.contains(*text)).collect();
    new.iter().take(MOST).for_each(|text| say(text));
    if new.len() > MOST {
        say(&format!("and {} more of this kind", new.len() - MOST));
    }
    *said = now.iter().cloned().collect();
}
