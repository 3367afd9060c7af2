//! `rsm simulate chaos`: scenarios drawn from seeds, one after the other, and the seeds of those that fail.

use simulated_manager::Manager;
use simulations::scenario;

use crate::args::Chaos;
use crate::failure::{Failure, Outcome};
use crate::out;

pub(super) fn run(args: &Chaos) -> Outcome {
    let mut failing: Vec<u64> = Vec::new();
    for seed in args.from..args.from.saturating_add(args.seeds) {
        let outcome = scenario::run(&scenario::random(seed), seed, &mut Manager::of_scenario)
            .map_err(|error| anyhow::anyhow!("seed {seed}: {error}"))?;
        if !outcome.is_right() {
            out::write(&outcome.to_string())?;
            failing.push(seed);
        }
    }
    out::line(&format!("{} of {} seeds fail: {failing:?}", failing.len(), args.seeds))?;
    if failing.is_empty() { Ok(()) } else { Err(Failure::Reported) }
}
