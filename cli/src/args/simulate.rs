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
    /// Congestion of a traffic pattern on the routes of engines or of a dump, side by side
    Traffic(Traffic),
    /// What the loss of links or switches costs: new routes, entries that move, load, safety of the way there
    Failures(Failures),
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
    /// Write every packet to this pcap file; a failure leaves one in the temporary directory in any case
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    /// Write a line for each event to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
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
    /// Draw clients of subnet administration too, which join, register and leave, and managers that remember
    #[arg(long)]
    pub(crate) clients: bool,
    /// Draw two or three managers, of which only they and their cables fail, with clients that must notice nothing
    #[arg(long, conflicts_with = "clients")]
    pub(crate) managers: bool,
}

/// `rsm simulate traffic`.
#[derive(Debug, Args)]
pub(crate) struct Traffic {
    /// Topology, as for `rsm route`
    #[arg(value_name = "TOPOLOGY")]
    pub(crate) topology: PathBuf,
    /// Routing engines to compare [default: minhop, unless --tables is given]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) engine: Vec<String>,
    /// Tables to compare with, as for `rsm verify`; may be given several times
    #[arg(long, value_name = "DUMP")]
    pub(crate) tables: Vec<PathBuf>,
    /// shift, alltoall, bisection, hotspot, or a file with lines `SOURCE DESTINATION [WEIGHT]`; a file of one of these names
    /// is given as ./NAME
    #[arg(long, value_name = "PATTERN", default_value = "bisection")]
    pub(crate) pattern: PathBuf,
    /// Rounds of a random pattern (bisection, hotspot)
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Seed of a random pattern
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Data VLs that the links have
    #[arg(long, value_name = "1-15", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=15))]
    pub(crate) data_vls: u8,
    /// Draw the load of every link into this SVG file
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Print the results as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `rsm simulate failures`.
#[derive(Debug, Args)]
pub(crate) struct Failures {
    /// Topology, as for `rsm route`
    #[arg(value_name = "TOPOLOGY")]
    pub(crate) topology: PathBuf,
    /// Routing engines; every case is played with each
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "minhop")]
    pub(crate) engine: Vec<String>,
    #[command(flatten)]
    pub(crate) kind: FailureKind,
    /// Cases to draw (--links, --switches)
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) cases: u32,
    /// Seed of the cases
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Data VLs that the links have
    #[arg(long, value_name = "1-15", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=15))]
    pub(crate) data_vls: u8,
    /// Print the cases as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the cases as comma-separated values
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
}

/// What fails in a case.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct FailureKind {
    /// So many random links between switches at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) links: Option<u32>,
    /// So many random switches at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) switches: Option<u32>,
    /// Every link between switches, one after the other
    #[arg(long)]
    pub(crate) each_link: bool,
}
