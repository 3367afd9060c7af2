//! What operators read of a round. A line is written when something begins or ends, not each time it is seen (B70).

use std::collections::BTreeSet;
use std::time::Duration;

use mad::types::Timestamp;
use mad::wire::smp::Notice;

use crate::sa::{Complaint, Server, ServerStatistics};
use crate::sm::{Report, Role};

/// Time between two lines with the counters of subnet administration.
const COUNTERS: Duration = Duration::from_secs(600);

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
        if let Some(moved) = report.moved.filter(|moved| moved.entries > 0) {
            tracing::info!(
                round = report.round,
                entries = moved.entries,
                had_to = moved.had_to,
                from_nothing = moved.from_nothing,
                of = moved.of,
                blocks = moved.blocks,
                switches = moved.switches,
                "table entries move"
            );
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

/// The counters of subnet administration: a line at the end, and one every ten minutes when something came.
#[derive(Debug, Default)]
pub(super) struct Counters {
    told: ServerStatistics,
    at: Timestamp,
}

impl Counters {
    pub(super) fn tell_sometimes(&mut self, server: &Server, now: Timestamp) {
        if now >= self.at + COUNTERS {
            self.at = now;
            self.tell(server);
        }
    }

    pub(super) fn tell(&mut self, server: &Server) {
        let now = server.statistics();
        if std::mem::replace(&mut self.told, now) == now {
            return;
        }
        tracing::info!(
            received = now.received,
            answered = now.answered,
            refused = now.refused,
            busy = now.busy,
            duplicates = now.duplicates,
            dropped = now.dropped,
            reports_lost = now.reports_lost,
            bad = complaints(server),
            "requests of subnet administration so far"
        );
    }
}

/// Bad requests by kind, such as `field 3, key 12`; empty without any.
fn complaints(server: &Server) -> String {
    let counts = Complaint::ALL.map(|kind| (kind.name(), server.complaints(kind)));
    let some = counts.iter().filter(|(_, count)| *count > 0);
    some.map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mad::transport::{Address, Datagram};
    use mad::types::ServiceLevel;
    use mad::wire::Method;
    use mad::wire::sa::SaMad;

    use super::*;
    use crate::sa::ServerConfig;
    use crate::testing::Tree;

    #[test]
    fn bad_requests_are_listed_by_kind() {
        let snapshot = Arc::new(Tree { leaves: 2, spines: 1, hosts: 3, lmc: 0 }.snapshot());
        let mut server = Server::new(ServerConfig::default());
        assert_eq!(complaints(&server), "");
        for (tid, attribute, key) in [(1, 0x7777, 0), (2, 0x11, 99), (3, 0x11, 98)] {
            let mut mad = SaMad::request(Method::GET, attribute, 0);
            mad.header.transaction_id.set(tid);
            mad.sm_key.set(key);
            let datagram = Datagram { address: Address::gsi(2, ServiceLevel(0)), mad: mad.into_mad() };
            server.receive(&datagram, &snapshot, Timestamp::ZERO);
            while server.poll_send(Timestamp::ZERO).is_some() {}
        }
        assert_eq!(complaints(&server), "attribute 1, key 2");
    }
}
