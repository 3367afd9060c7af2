//! What a round came to, in words.

use std::fmt::Write;

use mad::types::Timestamp;
use serde_json::{Value, json};
use sm_core::merge::Merger;
use sm_core::sm::{Progress, Report, Role};

/// One JSON object: the report and whether all is programmed and confirmed.
pub(crate) fn as_json(report: &Report) -> Value {
    let mut value = serde_json::to_value(report).unwrap_or_else(|e| json!({ "error": e.to_string() }));
    if let Value::Object(fields) = &mut value {
        fields.insert("complete".to_owned(), report.is_complete().into());
    }
    value
}

/// One line, for a running subnet manager.
pub(crate) fn as_line(report: &Report) -> String {
    let verdict = match report.role {
        Role::Master if report.failures.is_empty() => "fabric is up".to_owned(),
        Role::Master => format!("fabric is not complete, {} failures", report.failures.len()),
        other => format!("{other:?}").to_lowercase(),
    };
    format!(
        "{verdict}: {}, {} LIDs new, {} Sets, {:.3} s",
        size(report),
        report.lids_new,
        report.sets.values().sum::<u64>(),
        report.seconds.total
    )
}

/// The whole summary of `rsm run --once`.
pub(crate) fn as_text(report: &Report) -> String {
    let mut text = String::new();
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:<9} {value}");
    };
    row("Fabric", &size(report));
    let lid = report.sm_lid.map_or_else(|| "no LID".to_owned(), |lid| format!("LID {}", lid.get()));
    row("Manager", &format!("{}, {lid}", format!("{:?}", report.role).to_lowercase()));
    for other in &report.managers {
        row(
            "",
            &format!("{} {}: priority {}, state {}", other.guid, other.node, other.priority, other.state),
        );
    }
    row("LIDs", &format!("{} new, {} kept", report.lids_new, report.lids_kept));
    if let Some(verdict) = &report.verdict {
        row("Routes", &verdict.report.to_string());
        for refused in &verdict.refused {
            row("", &format!("refused: {refused}"));
        }
    }
    if let Some(moved) = report.moved.filter(|moved| moved.entries > 0) {
        let anew = moved.from_nothing.map_or_else(String::new, |n| format!(", {n} by tables from nothing"));
        row(
            "Moved",
            &format!(
                "{} of {} table entries, {} had to{anew}; {} blocks of {} switches",
                moved.entries, moved.of, moved.had_to, moved.blocks, moved.switches
            ),
        );
    }
    let mads = &report.mads;
    row(
        "MADs",
        &format!(
            "{} sent, {} answered, {} repeated, {} timed out, {} not sent",
            mads.sent, mads.answered, mads.retried, mads.timed_out, mads.send_errors
        ),
    );
    let sets: Vec<String> = report.sets.iter().map(|(name, count)| format!("{name} {count}")).collect();
    row("Sets", &if sets.is_empty() { "none".to_owned() } else { sets.join(", ") });
    let time = &report.seconds;
    row(
        "Time",
        &format!(
            "{:.3} s: sweep {:.3}, plan {:.3}, apply {:.3}",
            time.total, time.sweep, time.plan, time.apply
        ),
    );
    for (fields, ports) in &report.not_kept {
        row("Not kept", &format!("{fields} by {ports} ports; not asked for again"));
    }
    if let Some(virtual_ports) = merged(&report.virtual_ports) {
        row("Virtual", &virtual_ports);
    }
    for finding in &report.findings {
        row("Found", finding);
    }
    for failure in &report.failures {
        row("Failed", failure);
    }
    text
}

/// Many lines of one cause as one.
pub(crate) fn merged(lines: &[String]) -> Option<String> {
    let mut merger = Merger::new(0);
    for line in lines {
        merger.note("", line, Timestamp::ZERO);
    }
    let merged: Vec<String> = merger.rest().iter().map(ToString::to_string).collect();
    (!merged.is_empty()).then(|| merged.join("; "))
}

/// How far it is.
pub(crate) fn stage(progress: &Progress) -> String {
    match progress {
        Progress::Idle => String::new(),
        Progress::Sweeping(sweep) => {
            format!("discovering, {} nodes, {} answers", sweep.nodes, sweep.answered)
        }
        Progress::Planning => "LIDs and routes".to_owned(),
        Progress::Applying { done, open } => format!("programming, {done} done, {open} open"),
    }
}

fn size(report: &Report) -> String {
    format!(
        "{} nodes ({} switches, {} hosts), {} links",
        report.nodes, report.switches, report.hosts, report.links
    )
}
