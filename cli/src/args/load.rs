//! `rsm load` as it is typed.

use clap::{Args, ValueEnum};

/// `rsm load`.
#[derive(Debug, Args)]
pub(crate) struct Load {
    /// What is asked for
    #[arg(value_enum, value_name = "WORK")]
    pub(crate) work: Work,
    /// Device name as `rsm devices` lists it [default: the first with a usable port]
    #[arg(long, value_name = "NAME")]
    pub(crate) device: Option<String>,
    /// Port of the device
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=254))]
    pub(crate) port: Option<u8>,
    /// Clients, each with a thread and an agent of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) clients: u16,
    /// Requests that each client has under way at a time
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) window: u16,
    /// How long to go on
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) seconds: u32,
    /// Requests in all, over the clients; instead of --seconds
    #[arg(long, value_name = "N", conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) count: Option<u64>,
    /// How long an answer is waited for
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=600_000))]
    pub(crate) timeout: u32,
    /// How often a request is repeated that has no answer, or BUSY
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) retries: u32,
    /// Seed of the choice of destinations, and of work when it is mixed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Print the figures as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What clients do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Work {
    /// Get the path to one host after the other, drawn at random
    Path,
    /// Get the table of all paths of the subnet
    AllPaths,
    /// Join a multicast group and leave it, again and again
    Join,
    /// Register a service, look it up, register it anew, take it back, again and again
    Service,
    /// Subscribe to notices and end the subscription, again and again
    Subscribe,
    /// Paths, groups and services, drawn at random
    Mixed,
}
