//! `rsm simulate scenario`: plays a file in virtual time. Exit codes: 0 all holds, 1 something does not, 2 a file that can't
//! be used.

use simulated_manager::Manager;
use simulations::scenario::{self, Scenario};

use crate::args;
use crate::failure::{Failure, Outcome};
use crate::out;

pub(super) fn run(args: &args::Scenario) -> Outcome {
    let name = args.file.display();
    let usage = |error: String| Failure::Usage(format!("{name}: {error}"));
    let text = std::fs::read_to_string(&args.file).map_err(|error| usage(error.to_string()))?;
    let scenario = Scenario::parse(&text).map_err(|error| usage(error.to_string()))?;
    let outcome = scenario::run(&scenario, args.seed, &mut Manager::of_scenario).map_err(usage)?;
    out::write(&outcome.to_string())?;
    if outcome.is_right() { Ok(()) } else { Err(Failure::Reported) }
}
