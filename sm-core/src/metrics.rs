//! What monitoring reads of the subnet manager: a text in Prometheus' exposition format 0.0.4, for whoever writes it to a file.
//!
//! Every port has its series, zero included, and what failed is a number of its own (B78). Ports are named by GUID and number,
//! never by LID (B80); node names are labels beside. Names of metrics begin with `rsm_`; each has one meaning, and HELP says it.
//!
//! Cost: one line for each port of the fabric in each text; nothing is computed until it is asked for.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::sync::Arc;

use mad::types::Lid;

use crate::observed::Observed;
use crate::sa::{Complaint, Figures};
use crate::sm::{MadCounts, Report, Role};

/// What was told so far.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    rounds: u64,
    incomplete: u64,
    mads: MadCounts,
    sets: BTreeMap<String, u64>,
    last: Option<Arc<Report>>,
    observed: Option<Arc<Observed>>,
    figures: Figures,
}

impl Metrics {
    /// A round is over.
    pub fn round(&mut self, report: &Report) {
        self.rounds += 1;
        self.incomplete += u64::from(!report.failures.is_empty());
        let (sum, new) = (&mut self.mads, &report.mads);
        sum.sent += new.sent;
        sum.answered += new.answered;
        sum.retried += new.retried;
        sum.timed_out += new.timed_out;
        sum.send_errors += new.send_errors;
        for (attribute, count) in &report.sets {
            *self.sets.entry(attribute.clone()).or_default() += count;
        }
        self.last = Some(Arc::new(report.clone()));
    }

    /// There is a new picture of the fabric.
    pub fn picture(&mut self, observed: &Arc<Observed>) {
        self.observed = Some(Arc::clone(observed));
    }

    /// What subnet administration came to.
    pub fn administration(&mut self, figures: &Figures) {
        self.figures = *figures;
    }

    /// The text as of now.
    pub fn text(&self) -> String {
        let mut text = Text::default();
        text.family("rsm_info", GAUGE, "Always 1; the program's version.");
        text.sample("rsm_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
        self.manager(&mut text);
        self.administration_text(&mut text);
        self.fabric(&mut text);
        text.0
    }

    fn manager(&self, text: &mut Text) {
        let last = self.last.as_deref();
        text.family("rsm_role", GAUGE, "1 for the part that the subnet manager plays, 0 for the others.");
        let roles = [
            (Role::Discovering, "discovering"),
            (Role::Standby, "standby"),
            (Role::Master, "master"),
            (Role::NotActive, "not-active"),
        ];
        for (role, name) in roles {
            text.sample("rsm_role", &[("role", name)], u8::from(last.is_some_and(|last| last.role == role)));
        }
        let lid = last.and_then(|last| last.sm_lid).map_or(0, Lid::get);
        text.single("rsm_lid", GAUGE, "LID of the subnet manager's port; 0 where it has none.", lid);
        text.single("rsm_rounds_total", COUNTER, "Looks at the fabric that came to an end.", self.rounds);
        let help = "Of these, those after which something was not programmed and confirmed.";
        text.single("rsm_rounds_incomplete_total", COUNTER, help, self.incomplete);
        let count = |of: fn(&Report) -> usize| last.map_or(0, of);
        let help = "What was not programmed and confirmed after the last round: ports, tables, attributes.";
        text.single("rsm_failures", GAUGE, help, count(|last| last.failures.len()));
        let help = "What the last round met that was wrong.";
        text.single("rsm_findings", GAUGE, help, count(|last| last.findings.len()));
        text.single("rsm_managers", GAUGE, "Other subnet managers.", count(|last| last.managers.len()));
        text.single(
            "rsm_lids_new",
            GAUGE,
            "Ports that got a LID in the last round.",
            count(|last| last.lids_new),
        );
        text.single("rsm_lids_kept", GAUGE, "Ports that kept theirs.", count(|last| last.lids_kept));
        text.family("rsm_round_seconds", GAUGE, "Seconds that the stages of the last round took.");
        let seconds = last.map(|last| last.seconds).unwrap_or_default();
        let stages = [
            ("sweep", seconds.sweep),
            ("plan", seconds.plan),
            ("apply", seconds.apply),
            ("total", seconds.total),
        ];
        for (stage, seconds) in stages {
            text.sample("rsm_round_seconds", &[("stage", stage)], seconds);
        }
        text.family(
            "rsm_mads_total",
            COUNTER,
            "Subnet management datagrams of rounds, by what became of them.",
        );
        let mads = self.mads;
        let results = [
            ("sent", mads.sent),
            ("answered", mads.answered),
            ("retried", mads.retried),
            ("timed_out", mads.timed_out),
            ("send_errors", mads.send_errors),
        ];
        for (result, count) in results {
            text.sample("rsm_mads_total", &[("result", result)], count);
        }
        text.family("rsm_sets_total", COUNTER, "Sets by attribute, repetitions not counted.");
        for (attribute, count) in &self.sets {
            text.sample("rsm_sets_total", &[("attribute", attribute)], count);
        }
    }

    fn administration_text(&self, text: &mut Text) {
        let figures = &self.figures;
        let statistics = &figures.statistics;
        text.single(
            "rsm_sa_received_total",
            COUNTER,
            "Datagrams of subnet administration.",
            statistics.received,
        );
        text.family("rsm_sa_answered_total", COUNTER, "Requests answered, refusals included.");
        for (attribute, count) in figures.answered.named() {
            text.sample("rsm_sa_answered_total", &[("attribute", attribute)], count);
        }
        let counters = [
            ("rsm_sa_refused_total", "Of these, with a status other than 0.", statistics.refused),
            ("rsm_sa_busy_total", "Requests answered BUSY unread.", statistics.busy),
            ("rsm_sa_duplicates_total", "Requests that were under way already.", statistics.duplicates),
            ("rsm_sa_dropped_total", "Datagrams dropped without an answer.", statistics.dropped),
            (
                "rsm_sa_reports_lost_total",
                "Reports that no subscriber acknowledged.",
                statistics.reports_lost,
            ),
        ];
        for (name, help, count) in counters {
            text.single(name, COUNTER, help, count);
        }
        text.family(
            "rsm_sa_bad_requests_total",
            COUNTER,
            "Requests that could not be meant so, by what was wrong.",
        );
        for (kind, count) in Complaint::ALL.iter().zip(figures.bad) {
            text.sample("rsm_sa_bad_requests_total", &[("kind", kind.name())], count);
        }
        let gauges = [
            ("rsm_sa_queue", "Requests that wait for their answer.", figures.queued),
            ("rsm_sa_groups", "Multicast groups.", figures.groups),
            ("rsm_sa_members", "Members of multicast groups.", figures.members),
            ("rsm_sa_services", "Services.", figures.services),
            ("rsm_sa_subscriptions", "Subscriptions to traps.", figures.subscriptions),
            ("rsm_sa_aliases", "Alias GUIDs.", figures.aliases),
        ];
        for (name, help, count) in gauges {
            text.single(name, GAUGE, help, count);
        }
    }

    fn fabric(&self, text: &mut Text) {
        let observed = self.observed.as_deref();
        let fabric = observed.map(|observed| &observed.fabric);
        let nodes = fabric.map_or(0, |fabric| fabric.node_count());
        let switches = fabric.map_or(0, |fabric| fabric.switches().count());
        text.single("rsm_switches", GAUGE, "Switches.", switches);
        text.single("rsm_hosts", GAUGE, "Channel adapters and routers.", nodes - switches);
        text.single(
            "rsm_links",
            GAUGE,
            "Cables with a node at each end.",
            fabric.map_or(0, |f| f.link_count()),
        );
        let lids = fabric.map_or(0, |fabric| {
            let ends = fabric.nodes().flat_map(|(_, node)| node.end_ports());
            ends.filter(|(_, port)| port.lid.is_some()).count()
        });
        text.single("rsm_ports_with_lid", GAUGE, "Ports that hold a LID.", lids);
        let silent = observed.map_or(0, |observed| observed.dangling().count());
        text.single(
            "rsm_ports_silent",
            GAUGE,
            "Ports with a link at whose end nobody usable answers.",
            silent,
        );
        let unread = observed.map_or(0, |observed| observed.unread().count());
        text.single("rsm_ports_unread", GAUGE, "Ports of which PortInfo was not answered.", unread);
        let can = observed.map_or(0, |observed| observed.can_have_virtual_ports().count());
        let help = "Ports of adapters that can have virtual ports; those are not served and stay DOWN.";
        text.single("rsm_ports_with_virtual", GAUGE, help, can);
        text.family("rsm_port_up", GAUGE, "1 where the port has a link, 0 where it has none.");
        for (_, node) in fabric.iter().flat_map(|fabric| fabric.nodes()) {
            let guid = node.guid.to_string();
            for (number, port) in node.numbered_ports().filter(|(number, _)| number.0 != 0) {
                let number = number.to_string();
                let labels = [("node_guid", &*guid), ("port", &*number), ("node", &*node.description)];
                text.sample("rsm_port_up", &labels, u8::from(port.state.is_up()));
            }
        }
    }
}

const COUNTER: &str = "counter";
const GAUGE: &str = "gauge";

/// The text as it grows. Writing to a string can't fail.
#[derive(Default)]
struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn single(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (index, (label, value)) in labels.iter().enumerate() {
            let _ = write!(self.0, "{}{label}=\"", if index == 0 { '{' } else { ',' });
            for c in value.chars() {
                match c {
                    '\\' => self.0.push_str("\\\\"),
                    '"' => self.0.push_str("\\\""),
                    '\n' => self.0.push_str("\\n"),
                    c => self.0.push(c),
                }
            }
            self.0.push('"');
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use mad::types::{Guid, PortNum, PortState};
    use routing::fabric::PortRef;

    use super::*;
    use crate::testing::{Tree, freeze};

    /// Name, labels and value of a line, read as the format says; `None` where it is none.
    fn parse(line: &str) -> Option<(String, BTreeMap<String, String>, f64)> {
        let end = line.find(['{', ' '])?;
        let (name, mut rest) = line.split_at(end);
        let mut labels = BTreeMap::new();
        if let Some(mut inside) = rest.strip_prefix('{') {
            loop {
                let (label, value) = inside.split_once("=\"")?;
                let (mut text, mut chars) = (String::new(), value.char_indices());
                let after = loop {
                    match chars.next()? {
                        (at, '"') => break &value[at + 1..],
                        (_, '\\') => text.push(match chars.next()?.1 {
                            'n' => '\n',
                            c @ ('\\' | '"') => c,
                            _ => return None,
                        }),
                        (_, c) => text.push(c),
                    }
                };
                labels.insert(label.to_owned(), text);
                match after.strip_prefix(',') {
                    Some(more) => inside = more,
                    None => {
                        rest = after.strip_prefix('}')?;
                        break;
                    }
                }
            }
        }
        let plain = |c: char| c.is_ascii_lowercase() || c == '_';
        (name.chars().all(plain))
            .then(|| Some((name.to_owned(), labels, rest.strip_prefix(' ')?.parse().ok()?)))?
    }

    fn series(text: &str) -> Vec<(String, BTreeMap<String, String>, f64)> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| parse(line).unwrap_or_else(|| panic!("no metric: {line}"))).collect()
    }

    fn value(text: &str, name: &str, label: &str) -> f64 {
        let all = series(text);
        let fits =
            |labels: &BTreeMap<String, String>| label.is_empty() || labels.values().any(|l| l == label);
        let found: Vec<_> = all.iter().filter(|(n, labels, _)| n == name && fits(labels)).collect();
        assert_eq!(found.len(), 1, "{name} {label}");
        found[0].2
    }

    /// One silent host, one port that is down, names that break parsers: every port has its series, and the failure is one too.
    #[test]
    fn b78_every_port_has_its_series_and_failures_are_a_metric_of_their_own() {
        let snapshot = Tree { leaves: 2, spines: 1, hosts: 3, lmc: 0 }.snapshot();
        let mut fabric = snapshot.observed.fabric.clone();
        let host = |n: u8| fabric.find(Guid(Tree::host(1, n).0 - 1)).unwrap();
        let (silent, down, odd) = (host(0), host(1), host(2));
        fabric.remove_node(silent);
        fabric.node_mut(down).port_mut(PortNum(1)).unwrap().state = PortState::Down;
        let name = "rack 7 - \"left\" \\ {x=\"1\"} \n#2";
        fabric.node_mut(odd).description = name.into();
        let ports: BTreeSet<(String, String)> = fabric
            .nodes()
            .flat_map(|(_, node)| node.numbered_ports().map(move |(number, _)| (node.guid, number)))
            .filter(|(_, number)| number.0 != 0)
            .map(|(guid, number)| (guid.to_string(), number.to_string()))
            .collect();
        assert!(fabric.peer(PortRef { node: odd, port: PortNum(1) }).is_some());
        let snapshot = freeze(fabric);

        let mut metrics = Metrics::default();
        let mut report = Report::empty();
        report.failures.push("port 1 of \"S\" has a link, but nobody usable behind it".into());
        report.sets.insert("PortInfo".into(), 3);
        metrics.round(&report);
        metrics.round(&report);
        metrics.picture(&snapshot.observed);
        let text = metrics.text();
        let up: Vec<_> = series(&text).into_iter().filter(|(name, ..)| name == "rsm_port_up").collect();
        let told = up.iter().map(|(_, labels, _)| (labels["node_guid"].clone(), labels["port"].clone()));
        assert_eq!(told.collect::<BTreeSet<_>>(), ports);
        assert_eq!(up.len(), ports.len(), "each once");
        assert!(up.iter().any(|(_, labels, _)| labels["node"] == name));
        assert!(up.iter().any(|(.., value)| *value == 0.0) && up.iter().any(|(.., value)| *value == 1.0));
        assert_eq!(
            (value(&text, "rsm_failures", ""), value(&text, "rsm_rounds_incomplete_total", "")),
            (1.0, 2.0)
        );
        assert_eq!(value(&text, "rsm_sets_total", "PortInfo"), 6.0, "counters go on over rounds");
        assert!(text.lines().all(|line| !line.contains("lid=")), "no LID is a key");
    }

    /// Before anything is known, all metrics are there, at zero.
    #[test]
    fn b78_nothing_is_missing_where_nothing_has_happened() {
        let text = Metrics::default().text();
        for name in [
            "rsm_failures",
            "rsm_ports_with_virtual",
            "rsm_sa_queue",
            "rsm_sa_busy_total",
            "rsm_sa_dropped_total",
            "rsm_rounds_total",
        ] {
            assert_eq!(value(&text, name, ""), 0.0);
        }
        assert_eq!(value(&text, "rsm_sa_answered_total", "PathRecord"), 0.0);
        assert_eq!(value(&text, "rsm_role", "master"), 0.0);
        let typed: BTreeSet<_> =
            text.lines().filter_map(|l| l.strip_prefix("# TYPE ")?.split(' ').next()).collect();
        assert!(series(&text).iter().all(|(name, ..)| typed.contains(name.as_str())), "each has its type");
    }
}
