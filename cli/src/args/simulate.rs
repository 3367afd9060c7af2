//! `rsm simulate`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// What to simulate.
#[derive(Debug, Subcommand)]
pub(crate) enum Simulate {
    /// Play a scenario file: a fabric, subnet managers, faults by schedule, and what must hold at the end
    Scenario(Scenario),
    /// Play scenarios drawn from seeds, and name the seeds that fail
    Chaos(Chaos),
}

/// `rsm simulate scenario`.
#[derive(Debug, Args)]
pub(crate) struct Scenario {
    /// The scenario (TOML), as those in simulations/scenarios
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Seed of everything random; the same seed plays the same run
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}

/// `rsm simulate chaos`.
#[derive(Debug, Args)]
pub(crate) struct Chaos {
    /// How many seeds to play
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seeds: u64,
    /// The first of them
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub(crate) from: u64,
}
