//! `rsm simulate chaos`: scenarios drawn from seeds, on all processors, and the seeds of those that fail.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::Context;
use simulated_manager::Manager;
use simulations::scenario::{self, Outcome as Played, Scenario};
use sm_core::config::{LogConfig, LogLevel};
use tracing::subscriber::NoSubscriber;

use super::scenario::explain;
use crate::args::Chaos;
use crate::failure::{Failure, Outcome};
use crate::progress::Progress;
use crate::{logging, out};

pub(super) fn run(args: &Chaos) -> Outcome {
    let log = logging::init(&LogConfig { level: LogLevel::Error, ..LogConfig::default() })?;
    let progress = Progress::start(&log, "playing");
    let end = args.from.saturating_add(args.seeds);
    let next = AtomicU64::new(args.from);
    let failed: Mutex<Vec<(u64, String)>> = Mutex::default();
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end {
                return;
            }
            let wrong = match played(&draw(args, seed), seed) {
                Ok(outcome) if outcome.is_right() => None,
                Ok(outcome) => Some(outcome.failures.first().cloned().unwrap_or_default()),
                Err(error) => Some(error),
            };
            let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
            failed.extend(wrong.map(|wrong| (seed, wrong)));
            let count = failed.len();
            progress.say(|| format!("{} of {}, {count} fail", seed - args.from + 1, args.seeds));
        }
    };
    thread::scope(|scope| {
        let count = thread::available_parallelism().map_or(1, usize::from);
        (0..count).for_each(|_| {
            scope.spawn(work);
        });
    });
    drop(progress);
    let mut failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.sort();
    for (seed, wrong) in &failed {
        out::line(&format!("seed {seed}: {wrong}"))?;
    }
    if let Some((seed, _)) = failed.first() {
        tell(&draw(args, *seed), *seed)?;
    }
    out::line(&format!("{} of {} seeds fail", failed.len(), args.seeds))?;
    if failed.is_empty() { Ok(()) } else { Err(Failure::Reported) }
}

fn draw(args: &Chaos, seed: u64) -> Scenario {
    match (args.clients, args.managers) {
        (true, _) => scenario::random_with_clients(seed),
        (_, true) => scenario::random_with_managers(seed),
        (false, false) => scenario::random(seed),
    }
}

/// What managers log of an etcd that is drawn to fail is no news, and names neither the seed nor the virtual time.
fn played(drawn: &Scenario, seed: u64) -> Result<Played, String> {
    let play = || scenario::run(drawn, seed, &mut Manager::of_scenario());
    if drawn.manager.iter().any(|manager| manager.etcd.is_some()) {
        return tracing::subscriber::with_default(NoSubscriber::default(), play);
    }
    play()
}

/// Tells one failure whole, and leaves its schedule as a file to play with.
fn tell(drawn: &Scenario, seed: u64) -> Outcome {
    let outcome = played(drawn, seed).map_err(|error| anyhow::anyhow!("seed {seed}: {error}"))?;
    out::line("")?;
    explain(drawn, &outcome, "drawn", None)?;
    let path = std::env::temp_dir().join(format!("rsm-drawn-seed-{seed}.toml"));
    let text = toml::to_string(drawn).context("the schedule as text")?;
    std::fs::write(&path, text).with_context(|| path.display().to_string())?;
    out::line(&format!("The schedule: {} (to be played with --seed {seed})\n", path.display()))
}
