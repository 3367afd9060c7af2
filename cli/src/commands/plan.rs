//! `rsm plan`: what `rsm run` would change. Only Gets are sent, and no file is touched but a damaged one, which is set aside.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use mad::transport::umad::{OpenOptions, UmadTransport};
use mad::types::Guid;
use serde::Serialize;
use sm_core::apply::{Ground, KnownTables, PlannedSet, preview};
use sm_core::config::Config;
use sm_core::daemon;
use sm_core::keys::KeyRing;
use sm_core::plan::{PlanInput, Verdict, plan};
use sm_core::store::{self, Restored};
use sm_core::sweep::{PKeyReading, SweepSettings};

use crate::args::Plan;
use crate::failure::{Outcome, complain};
use crate::progress::Progress;
use crate::{host, logging, out, settings};

pub(super) fn run(args: &Plan) -> Outcome {
    let config = settings::effective(&args.settings)?;
    let log = logging::init(&config.log)?;
    let restored = memory(&config)?;
    let selected = host::select(&config.device)?;
    let transport = host::captured(UmadTransport::open(&selected, &OpenOptions::client())?, None)?;
    let progress = Progress::start(&log, "discovering");
    let sm = settings::manager(&config, settings::file_of(&args.settings).as_deref())?;
    let pkeys = PKeyReading::of(&sm.plan.partitions);
    let keys = Arc::new(KeyRing::new(Arc::clone(&sm.m_keys), restored.keys));
    let own = selected.port.port_guid.unwrap_or(Guid::NONE);
    let sweep = SweepSettings { read_tables: true, pkeys, keys, own, ..SweepSettings::default() };
    let found = daemon::discover(&transport, sweep, sm.transactions, |now| {
        progress.say(|| format!("{} nodes, {} answers", now.nodes, now.answered));
    })?;
    drop(progress);
    for finding in &found.observed.findings {
        complain(&finding.text);
    }
    let mut tables = KnownTables::default();
    tables.take(found.tables);
    let tables = Arc::new(tables);
    let planned = plan(&PlanInput {
        aliases: restored.aliases,
        observed: Arc::clone(&found.observed),
        settings: sm.plan,
        memory: restored.lids,
        stuck: BTreeSet::new(),
        reassign: config.lids.reassign,
        tables: Arc::clone(&tables),
        keys: Arc::clone(&found.keys),
        previous: None,
        measured: None,
    })?;
    let verdict = planned.verdict.clone();
    let ground = Ground { tables, quirks: restored.quirks, keys: found.keys };
    let sets = preview(Arc::new(planned), found.observed, ground);
    if args.json { out::json(&Shown { verdict, sets }) } else { out::write(&as_text(&verdict, &sets)) }
}

#[derive(Serialize)]
struct Shown {
    verdict: Verdict,
    sets: Vec<PlannedSet>,
}

/// What a subnet manager would remember; read even while one writes it. A state directory that is not there yet holds
/// nothing, and is not made.
fn memory(config: &Config) -> Outcome<Restored> {
    let restored = store::peek(&config.state.dir)?;
    for complaint in &restored.complaints {
        complain(complaint);
    }
    Ok(restored)
}

fn as_text(verdict: &Verdict, sets: &[PlannedSet]) -> String {
    let mut text = String::new();
    for set in sets {
        let _ = writeln!(text, "{}: {}: {}", set.node, set.attribute, set.changes);
    }
    let _ = writeln!(text, "{} Sets would be sent. {}", sets.len(), verdict.report);
    text
}
