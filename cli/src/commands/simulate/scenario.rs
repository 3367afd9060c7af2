//! `rsm simulate scenario`: plays a file in virtual time. Exit codes: 0 all holds, 1 something does not, 2 a file that can't
//! be used.

use std::io::Read;
use std::path::{Path, PathBuf};

use simulated_manager::Manager;
use simulations::scenario::{self, Outcome as Played, Scenario};

use super::trace::Trace;
use crate::args;
use crate::failure::{Failure, Outcome};
use crate::out;

/// A scenario is a page or two; whatever is longer than this is none.
const LONGEST: u64 = 16 << 20;

pub(super) fn run(args: &args::Scenario) -> Outcome {
    let name = args.file.display();
    let usage = |error: String| Failure::Usage(format!("{name}: {error}"));
    let scenario = read(&args.file)?;
    let outcome = play(&scenario, args.seed, args.pcap.as_deref(), args.trace.as_deref(), usage)?;
    if outcome.is_right() {
        return out::write(&outcome.to_string());
    }
    let stem = args.file.file_stem().map_or_else(|| "scenario".into(), |stem| stem.to_string_lossy());
    explain(&scenario, &outcome, &stem, args.pcap.as_deref())?;
    Err(Failure::Reported)
}

/// Plays it, with files of what happens where they are asked for.
pub(super) fn play(
    scenario: &Scenario,
    seed: u64,
    pcap: Option<&Path>,
    text: Option<&Path>,
    refused: impl Fn(String) -> Failure,
) -> Outcome<Played> {
    let trace = Trace::start(pcap, text)?;
    let watch = trace.as_ref().map(Trace::watch);
    let outcome =
        scenario::run_watched(scenario, seed, &mut Manager::of_scenario(), watch).map_err(refused)?;
    trace.map_or(Ok(()), Trace::finish)?;
    Ok(outcome)
}

/// Tells a failure: what does not hold, the last events, and a file with every packet. That is made by playing it once
/// more: the same seed plays the same run.
pub(super) fn explain(scenario: &Scenario, outcome: &Played, name: &str, pcap: Option<&Path>) -> Outcome {
    out::write(&outcome.to_string())?;
    let path = match pcap {
        Some(path) => path.to_path_buf(),
        None => {
            let path = std::env::temp_dir().join(format!("rsm-{name}-seed-{}.pcapng", outcome.seed));
            play(scenario, outcome.seed, Some(&path), None, Failure::Usage)?;
            path
        }
    };
    out::line(&format!("Every packet: {}", path.display()))
}

/// Reads and checks a file.
fn read(path: &PathBuf) -> Outcome<Scenario> {
    let name = path.display();
    let usage = |error: String| Failure::Usage(format!("{name}: {error}"));
    let mut text = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| usage(error.to_string()))?;
    file.take(LONGEST + 1).read_to_end(&mut text).map_err(|error| usage(error.to_string()))?;
    if text.len() as u64 > LONGEST {
        return Err(usage(format!("longer than {} MiB, expected a scenario (TOML)", LONGEST >> 20)));
    }
    let text = String::from_utf8(text).map_err(|_| usage("no text, expected a scenario (TOML)".into()))?;
    Scenario::parse(&text).map_err(|error| Failure::Usage(format!("{name}:{error}")))
}
