//! What operators read of a round. A line is written when something begins, not each time it is seen, and what has one cause is
//! one line a minute with a count ([`crate::merge`]; B70).

use std::collections::BTreeSet;
use std::time::Duration;

use mad::types::Timestamp;
use mad::wire::smp::Notice;

use crate::merge::{Line, Merger};
use crate::sa::{Complaint, Server, ServerStatistics};
use crate::sm::{Report, Role};

/// Time between two lines with the counters of subnet administration.
const COUNTERS: Duration = Duration::from_secs(600);

/// Remembers what was said already.
#[derive(Debug, Default)]
pub(super) struct Log {
    findings: Said,
    failures: Said,
    virtual_ports: Said,
    role: Option<Role>,
}

impl Log {
    /// What is to be said of findings and failures at `now`, though no round has ended.
    pub(super) fn tell_due(&mut self, now: Timestamp) {
        self.tell(|merger| merger.due(now));
    }

    /// What was not said yet: at the end.
    pub(super) fn tell_rest(&mut self) {
        self.tell(Merger::rest);
    }

    fn tell(&mut self, take: impl Fn(&mut Merger) -> Vec<Line>) {
        for said in [&mut self.findings, &mut self.virtual_ports] {
            take(&mut said.merger).iter().for_each(|line| tracing::warn!("{line}"));
        }
        take(&mut self.failures.merger).iter().for_each(|line| tracing::error!("{line}"));
    }

    pub(super) fn round(&mut self, report: &Report, now: Timestamp) {
        self.findings.note(&report.findings, now);
        self.failures.note(&report.failures, now);
        self.virtual_ports.note(&report.virtual_ports, now);
        self.tell_due(now);
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

/// Complaints of one kind.
#[derive(Debug)]
struct Said {
    /// Those of the last round.
    last: BTreeSet<String>,
    merger: Merger,
}

impl Default for Said {
    fn default() -> Self {
        Self { last: BTreeSet::new(), merger: Merger::new(0) }
    }
}

impl Said {
    /// Takes in a round's complaints; those of the last one were said.
    fn note(&mut self, texts: &[String], now: Timestamp) {
        for text in texts.iter().filter(|text| !self.last.contains(*text)) {
            self.merger.note("", text, now);
        }
        self.last = texts.iter().cloned().collect();
    }
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

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_start(Duration::from_secs(seconds))
    }

    /// A sweep each ten seconds for twenty minutes. A thousand hosts behind a dead switch fail for as long as it lasts, and one host
    /// answers in every second sweep only.
    #[test]
    fn b70_what_lasts_is_said_once_and_what_comes_and_goes_once_a_minute() {
        let mut said = Said::default();
        let silent = |host: u32| format!("port 1 of \"H{host}\" (0x{host:016x}): PortInfo was not answered");
        let mut lines = Vec::new();
        for round in 0..120 {
            let hosts = (0..1000).map(silent);
            let flapping = (round % 2 == 1).then(|| "node \"F\" (0x5) has stopped answering".to_owned());
            said.note(&hosts.chain(flapping).collect::<Vec<_>>(), at(10 * round));
            lines.extend(said.merger.due(at(10 * round)).iter().map(ToString::to_string));
        }
        let (flapping, silent): (Vec<_>, Vec<_>) =
            lines.into_iter().partition(|line| line.contains("stopped"));
        assert_eq!(silent.len(), 1, "{silent:?}");
        assert!(silent[0].contains("(and 999 more like it: \"H1\""), "{}", silent[0]);
        assert!((15..=20).contains(&flapping.len()), "{}", flapping.len());
        assert!(flapping[5].contains("more like it"), "{}", flapping[5]);
    }

    /// A cluster of a thousand hosts whose adapters can have virtual ports is told so in one line, once; a host that comes later in
    /// another, and who can't any more and can again is told again.
    #[test]
    fn b74_adapters_that_can_have_virtual_ports_are_told_once() {
        let mut said = Said::default();
        let can = |host: u32| {
            format!(
                "port 1 of \"H{host}\" (0x{host:016x}) can have virtual ports: they are not served, and stay DOWN"
            )
        };
        let mut lines = Vec::new();
        for round in 0..120 {
            let hosts = 0..if round < 60 { 1000 } else { 1001 };
            said.note(&hosts.map(can).collect::<Vec<_>>(), at(10 * round));
            lines.extend(said.merger.due(at(10 * round)).iter().map(ToString::to_string));
        }
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains("(and 999 more like it: \"H1\""), "{}", lines[0]);
        assert!(lines[1].contains("\"H1000\" (0x"), "{}", lines[1]);
    }

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
