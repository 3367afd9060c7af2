//! `rsm generate`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand, ValueEnum};

/// `rsm generate`.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Generate {
    #[command(subcommand)]
    pub(crate) kind: Kind,
    #[command(flatten)]
    pub(crate) variation: Variation,
    /// Form of the output
    #[arg(long, value_enum, default_value_t = FileFormat::Ibsim, global = true)]
    pub(crate) format: FileFormat,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE", global = true)]
    pub(crate) output: Option<PathBuf>,
}

/// Families of networks.
#[derive(Debug, Subcommand)]
pub(crate) enum Kind {
    /// Fat tree XGFT(h; m1,…; w1,…), or PGFT with parallel links
    #[command(alias = "pgft")]
    Xgft {
        /// Children of a node of levels 1, 2, …; of level 1 they are hosts
        #[arg(short, value_name = "M1,M2,…")]
        m: Sizes,
        /// Parents of a node of levels 0, 1, …; those of hosts are 1
        #[arg(short, value_name = "W1,W2,…")]
        w: Sizes,
        /// Parallel links to each parent, from level 0 on [default: 1 each]
        #[arg(short, value_name = "P1,P2,…", default_value = "", hide_default_value = true)]
        p: Sizes,
    },
    /// The largest non-blocking tree of three levels: radix³/4 hosts
    FullTree {
        /// Ports of each switch, an even number
        #[arg(value_parser = radix)]
        radix: u16,
    },
    /// Torus of any number of dimensions
    Torus {
        /// Switches in each dimension
        #[arg(value_name = "XxYxZ")]
        sizes: Sizes,
        #[command(flatten)]
        hosts: Hosts,
    },
    /// HyperX: all switches that differ in one coordinate are joined
    Hyperx {
        /// Switches in each dimension
        #[arg(value_name = "XxY")]
        sizes: Sizes,
        /// Parallel links of each pair
        #[arg(long, value_name = "N", default_value_t = 1)]
        parallel: u16,
        #[command(flatten)]
        hosts: Hosts,
    },
    /// Canonical dragonfly
    Dragonfly {
        /// Hosts at each switch
        #[arg(short, value_name = "N")]
        p: u16,
        /// Switches in a group
        #[arg(short, value_name = "N")]
        a: u16,
        /// Global links of each switch
        #[arg(long = "global", value_name = "N")]
        h: u16,
        /// Groups [default: a times global links, and one]
        #[arg(short, value_name = "N", default_value_t = 0, hide_default_value = true)]
        g: u16,
    },
    /// Dragonfly+: groups of leaves and spines
    DragonflyPlus {
        /// Hosts at each leaf
        #[arg(short, value_name = "N")]
        p: u16,
        /// Leaves in a group
        #[arg(long, value_name = "N")]
        leaves: u16,
        /// Spines in a group
        #[arg(long, value_name = "N")]
        spines: u16,
        /// Global links of each spine
        #[arg(long = "global", value_name = "N")]
        h: u16,
        /// Groups
        #[arg(short, value_name = "N")]
        g: u16,
    },
    /// Kautz graph K(degree, diameter)
    Kautz {
        /// Degree: the alphabet has one letter more
        #[arg(long, value_name = "N")]
        degree: u16,
        /// Words have one letter more
        #[arg(long, value_name = "N")]
        diameter: u16,
        #[command(flatten)]
        hosts: Hosts,
    },
    /// Random regular graph
    RandomRegular {
        /// Number of switches
        #[arg(long, value_name = "N")]
        switches: u16,
        /// Links of each switch to others
        #[arg(long, value_name = "N")]
        degree: u16,
        #[command(flatten)]
        hosts: Hosts,
    },
    /// Switches in a row
    Line {
        /// Number of switches
        switches: u16,
        #[command(flatten)]
        hosts: Hosts,
    },
}

/// Hosts at each switch.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Hosts {
    /// Hosts at each switch
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) hosts: u16,
}

/// What is varied about a network.
#[derive(Clone, Debug, Args)]
pub(crate) struct Variation {
    /// Switches without hosts that are missing
    #[arg(long, value_name = "N", default_value_t = 0, global = true)]
    pub(crate) missing_switches: usize,
    /// Share of the links between switches that are missing, in per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = percent, global = true)]
    pub(crate) missing_links: f64,
    /// Share of the links between switches that run at 1x SDR, in per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = percent, global = true)]
    pub(crate) degraded_links: f64,
    /// Hosts have two ports, the second one on the neighbouring leaf
    #[arg(long, global = true)]
    pub(crate) dual_port: bool,
    /// Hosts have two adapters, the second one on the neighbouring leaf
    #[arg(long, global = true, conflicts_with = "dual_port")]
    pub(crate) dual_rail: bool,
    /// Names that parsers trip over: blanks, quotes, brackets, `#`, 64 bytes
    #[arg(long, global = true)]
    pub(crate) odd_names: bool,
    /// Give every end port a LID, counting from 1; without it that is left to a subnet manager
    #[arg(long, global = true)]
    pub(crate) lids: bool,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1, global = true)]
    pub(crate) seed: u64,
}

/// Forms of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FileFormat {
    /// Net file of ibsim
    Ibsim,
    /// As ibnetdiscover prints it
    Text,
    /// One JSON object
    Json,
}

/// Numbers with commas or `x` between them: `4x4x2`.
#[derive(Clone, Debug)]
pub(crate) struct Sizes(pub(crate) Vec<u16>);

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self(Vec::new()));
        }
        let number = |part: &str| {
            part.trim().parse().map_err(|_| format!("`{part}`: expected numbers with `,` or `x` between"))
        };
        text.split([',', 'x']).map(number).collect::<Result<_, _>>().map(Self)
    }
}

fn radix(text: &str) -> Result<u16, String> {
    let radix = text.parse().ok().filter(|n: &u16| (2..=254).contains(n) && n.is_multiple_of(2));
    radix.ok_or_else(|| "expected an even number from 2 to 254".to_owned())
}

fn percent(text: &str) -> Result<f64, String> {
    let percent = text.parse().ok().filter(|n| (0.0..=100.0).contains(n));
    percent.ok_or_else(|| "expected 0 to 100".to_owned())
}
