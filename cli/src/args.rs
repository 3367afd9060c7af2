//! The command line as it is typed. Kept free of logic, so that help, man page and completions can be made from it.

mod generate;
mod load;
mod simulate;

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use mad::types::{Guid, Lid, MulticastLid};
use sm_core::config::LogLevel;

pub(crate) use generate::{FileFormat, Generate, Kind, Variation};
pub(crate) use load::{Load, Work};
pub(crate) use simulate::{Chaos, FailureKind, Failures, Scenario, Simulate, Traffic};

/// An InfiniBand subnet manager.
#[derive(Debug, Parser)]
#[command(name = "rsm", version, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Bring the fabric up and keep it up
    Run(Run),
    /// Print what `rsm run` would change, and change nothing
    Plan(Plan),
    /// Print the topology of the fabric as ibnetdiscover does; changes nothing and needs no subnet manager
    Discover(Discover),
    /// Ask subnet administration, as saquery does: nodes, ports, links, paths, groups, services, tables
    Query(Query),
    /// Ask subnet administration as many things at once as many hosts would, check the answers, and say how fast they come
    Load(Load),
    /// List InfiniBand devices and ports of this host
    Devices(Devices),
    /// Show or check the configuration
    #[command(subcommand)]
    Config(Config),
    /// The whole subnet manager against a simulated fabric in this process: no hardware needed
    Demo(Demo),
    /// Serve a simulated fabric on which unmodified programs run: infiniband-diags, opensm, rsm itself
    Emulate(Emulate),
    /// Route a topology from a file, check the routes, write the tables
    Route(Route),
    /// Check the tables of a dump against the topology they are for; exit code 1 when they are wrong
    Verify(Verify),
    /// Write the topology of a fat tree, torus, dragonfly or their like
    Generate(Generate),
    /// Play on a simulated fabric in virtual time
    #[command(subcommand)]
    Simulate(Simulate),
}

/// Which port to use.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PortChoice {
    /// Device name as `rsm devices` lists it [default: the first with a usable port]
    #[arg(long, value_name = "NAME")]
    pub(crate) device: Option<String>,
    /// Port of the device
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=254))]
    pub(crate) port: Option<u8>,
    /// Port GUID; instead of --device and --port
    #[arg(long, value_name = "GUID", value_parser = real_guid, conflicts_with_all = ["device", "port"])]
    pub(crate) guid: Option<Guid>,
}

/// What overrides the configuration file.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Settings {
    /// Configuration file (TOML); `rsm config show` lists its keys
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) port: PortChoice,
    /// Priority among subnet managers
    #[arg(long, value_name = "0-15", value_parser = clap::value_parser!(u8).range(0..=15))]
    pub(crate) priority: Option<u8>,
    /// Routing engines, tried in this order
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) engine: Vec<String>,
    /// Directory that keeps LIDs across restarts
    #[arg(long, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
    /// How much is logged to standard error
    #[arg(long, value_name = "LEVEL", value_parser = log_level())]
    pub(crate) log_level: Option<LogLevel>,
}

/// `rsm run`.
#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) settings: Settings,
    /// Bring the fabric up once, print a summary and end
    #[arg(long)]
    pub(crate) once: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write topology and tables into this directory after each change, as opensm dumps them
    #[arg(long, value_name = "DIR")]
    pub(crate) dump_dir: Option<PathBuf>,
    /// Write every management datagram to this pcap file
    #[arg(long, value_name = "FILE")]
    pub(crate) capture: Option<PathBuf>,
}

/// `rsm plan`.
#[derive(Debug, Args)]
pub(crate) struct Plan {
    #[command(flatten)]
    pub(crate) settings: Settings,
    /// Print the steps as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `rsm discover`.
#[derive(Debug, Args)]
pub(crate) struct Discover {
    #[command(flatten)]
    pub(crate) port: PortChoice,
    /// Form of the output
    #[arg(long, value_enum, default_value_t = TopologyFormat::Text)]
    pub(crate) format: TopologyFormat,
    /// Configuration file of whose section m_key the keys of ports are taken; none is asked with a key without
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// State directory of a subnet manager, for the keys that it remembers
    #[arg(long, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
    /// Write every management datagram to this pcap file
    #[arg(long, value_name = "FILE")]
    pub(crate) capture: Option<PathBuf>,
}

/// Forms of a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TopologyFormat {
    /// As ibnetdiscover prints it
    Text,
    /// One JSON object
    Json,
    /// Graphviz
    Dot,
    /// topology.conf of Slurm's topology/tree
    Slurm,
}

/// `rsm query`.
#[derive(Debug, Args)]
pub(crate) struct Query {
    #[command(subcommand)]
    pub(crate) kind: QueryKind,
    /// Device name as `rsm devices` lists it [default: the first with a usable port]
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) device: Option<String>,
    /// Port of the device
    #[arg(long, value_name = "N", global = true, value_parser = clap::value_parser!(u8).range(1..=254))]
    pub(crate) port: Option<u8>,
    /// SM_Key, for what only trusted clients may see: P_Keys, members of groups, keys of services
    #[arg(long, value_name = "HEX", global = true, value_parser = key)]
    pub(crate) sm_key: Option<u64>,
    /// Print an array of objects with all fields
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print each record in hexadecimal, as it lay in the answer
    #[arg(long, global = true, conflicts_with = "json")]
    pub(crate) raw: bool,
}

/// Kinds of records.
#[derive(Debug, Subcommand)]
pub(crate) enum QueryKind {
    /// Nodes
    Node(NodeChoice),
    /// Ports: states, speeds, MTUs
    Port(NodeChoice),
    /// Links that are up
    Link(NodeChoice),
    /// Paths between two ports, each named by LID, 0xGUID or node name; from all or to all where it is left out
    Path {
        /// The source
        #[arg(long, value_name = "PORT")]
        from: Option<String>,
        /// The destination
        #[arg(long, value_name = "PORT")]
        to: Option<String>,
    },
    /// Multicast groups; with --sm-key their members
    Mcast {
        /// Group
        #[arg(long, value_name = "MGID")]
        mgid: Option<std::net::Ipv6Addr>,
        /// Groups with this multicast LID
        #[arg(long, value_name = "MLID", value_parser = mlid)]
        mlid: Option<MulticastLid>,
        /// Members, which need --sm-key
        #[command(flatten)]
        member: NodeChoice,
    },
    /// Registered services
    Service {
        /// ServiceName
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
    /// Subscriptions to notices
    Inform(NodeChoice),
    /// Switches
    Switch(NodeChoice),
    /// Linear forwarding tables
    Lft(NodeChoice),
    /// Multicast forwarding tables
    Mft(NodeChoice),
    /// GUIDs of ports, aliases included
    Guids(NodeChoice),
    /// P_Key tables; needs --sm-key
    Pkey(NodeChoice),
    /// SL-to-VL mapping tables
    Slvl(NodeChoice),
    /// VL arbitration tables
    Vlarb(NodeChoice),
    /// Subnet managers
    Sm(NodeChoice),
    /// What subnet administration can do
    ClassPortInfo,
}

/// Which nodes are meant; none of these: all.
#[derive(Clone, Debug, Default, Args)]
#[group(multiple = false)]
pub(crate) struct NodeChoice {
    /// Node name, as its NodeDescription says
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Node or port GUID
    #[arg(long, value_name = "GUID", value_parser = real_guid)]
    pub(crate) guid: Option<Guid>,
    /// LID of a port
    #[arg(long, value_name = "LID", value_parser = lid)]
    pub(crate) lid: Option<Lid>,
}

impl NodeChoice {
    /// What a single word means: a LID, a GUID with 0x before it, or a name.
    pub(crate) fn from_word(word: &str) -> Self {
        if let Ok(lid) = lid(word) {
            return Self { lid: Some(lid), ..Self::default() };
        }
        match real_guid(word) {
            Ok(guid) if word.starts_with("0x") => Self { guid: Some(guid), ..Self::default() },
            _ => Self { name: Some(word.to_owned()), ..Self::default() },
        }
    }
}

/// A 64-bit key in hexadecimal, with or without 0x before it.
fn key(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = if plain { u64::from_str_radix(digits, 16).ok() } else { None };
    number.ok_or_else(|| "a key is up to 16 hexadecimal digits".to_owned())
}

/// A unicast LID, decimal, or hexadecimal with 0x before it.
fn lid(text: &str) -> Result<Lid, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) if digits.len() <= 4 => u16::from_str_radix(digits, 16).ok(),
        Some(_) => None,
        None => text.parse().ok(),
    };
    number.and_then(Lid::new).ok_or_else(|| "a LID is 1 to 49151, or 0x0001 to 0xbfff".to_owned())
}

/// A multicast LID, decimal, or hexadecimal with 0x before it.
fn mlid(text: &str) -> Result<MulticastLid, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let mlid = number.and_then(MulticastLid::new);
    mlid.ok_or_else(|| "a multicast LID is 0xc000 to 0xfffe, or 49152 to 65534".to_owned())
}

/// `rsm route`.
#[derive(Debug, Args)]
pub(crate) struct Route {
    /// Topology: output of ibnetdiscover, ibsim net file, opensm-subnet.lst, or JSON of `rsm discover`
    #[arg(value_name = "TOPOLOGY")]
    pub(crate) topology: PathBuf,
    /// Routing engines; each is tried and judged by itself
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "minhop")]
    pub(crate) engine: Vec<String>,
    /// Take the engines as a chain, as `rsm run` does: the first that routes, minhop after them unless no_fallback is given
    #[arg(long)]
    pub(crate) chain: bool,
    /// Give all ports LIDs anew, 2^N to each of an adapter [default: the LIDs of the topology, or one each where it has none]
    #[arg(long, value_name = "0-7", value_parser = clap::value_parser!(u8).range(0..=7))]
    pub(crate) lmc: Option<u8>,
    #[command(flatten)]
    pub(crate) steering: Steering,
    /// Data VLs that the links have
    #[arg(long, value_name = "1-15", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=15))]
    pub(crate) data_vls: u8,
    /// Tables in force, as for `rsm verify`: what `file` takes and `adaptive-minhop` moves a little of; others are compared
    #[arg(long, value_name = "DUMP")]
    pub(crate) tables: Option<PathBuf>,
    /// Load that was measured on them, for `adaptive-minhop`: flows (lines `SOURCE DESTINATION [WEIGHT]`) or port counters (as
    /// perfquery prints them)
    #[arg(long, value_name = "FILE")]
    pub(crate) load: Option<PathBuf>,
    /// Form port groups for switches with adaptive routing, and judge all choices that they leave
    #[arg(long, conflicts_with_all = ["tables", "load", "output"])]
    pub(crate) adaptive: bool,
    /// With detours over a third group (dragonfly-plus), for switches with private tables; needs two VLs
    #[arg(long, requires = "adaptive")]
    pub(crate) detours: bool,
    /// Groups that a switch has at most (GroupCap of its AdaptiveRoutingInfo)
    #[arg(long, value_name = "1-4095", default_value_t = 4095, requires = "adaptive",
        value_parser = clap::value_parser!(u16).range(1..=4095))]
    pub(crate) group_cap: u16,
    /// Write opensm-subnet.lst, opensm.fdbs, opensm-lfts.dump, path-sl.dump (service levels), opensm-sl2vl.dump where VL is
    /// not SL, and routes.json (all of these) of the first engine that routes, and in opensm.mcfdbs a group of all hosts,
    /// into this directory
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Print the judgements as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What steers routing engines.
#[derive(Debug, Default, Args)]
pub(crate) struct Steering {
    /// Root switches for updn and ftree: node GUIDs, one a line
    #[arg(long, value_name = "FILE")]
    pub(crate) root_guids: Option<PathBuf>,
    /// Compute nodes: port GUIDs, one a line [default: all hosts but I/O nodes]
    #[arg(long, value_name = "FILE")]
    pub(crate) cn_guids: Option<PathBuf>,
    /// I/O nodes, spread by themselves: port GUIDs, one a line
    #[arg(long, value_name = "FILE")]
    pub(crate) io_guids: Option<PathBuf>,
    /// Ids for switches of one rank (updn): lines of GUID ID
    #[arg(long, value_name = "FILE")]
    pub(crate) ids: Option<PathBuf>,
    /// Weights of hops (minhop, dor): lines of GUID PORT WEIGHT
    #[arg(long, value_name = "FILE")]
    pub(crate) hop_weights: Option<PathBuf>,
    /// Orders of switch ports (dor): lines of GUID PORT PORT …
    #[arg(long, value_name = "FILE")]
    pub(crate) port_order: Option<PathBuf>,
    /// Deal LIDs to equal paths by chance, from this seed
    #[arg(long, value_name = "SEED")]
    pub(crate) scatter: Option<u64>,
    /// Leave out links that run below what both ends can, where nothing is cut off by that
    #[arg(long)]
    pub(crate) avoid_degraded: bool,
    /// The torus as it is meant to be (torus-2qos): opensm's torus-2QoS.conf [default: found from the wiring]
    #[arg(long, value_name = "FILE")]
    pub(crate) torus_conf: Option<PathBuf>,
    /// The most virtual lanes that engines use [default: all]
    #[arg(long, value_name = "1-15", value_parser = clap::value_parser!(u8).range(1..=15))]
    pub(crate) max_vls: Option<u8>,
}

/// `rsm verify`.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// Topology, as for `rsm route`; with the LIDs that the tables are for
    #[arg(value_name = "TOPOLOGY")]
    pub(crate) topology: PathBuf,
    /// Tables: opensm.fdbs, opensm-lfts.dump, what dump_lfts prints, or routes.json of `rsm route`; with the service levels of a
    /// path-sl.dump that lies beside them
    #[arg(long, value_name = "DUMP")]
    pub(crate) tables: PathBuf,
    /// SL-to-VL tables: opensm-sl2vl.dump, outputs of `smpquery sl2vl`, or what `ibdmchk -d` takes
    #[arg(long, value_name = "DUMP")]
    pub(crate) sl2vl: Option<PathBuf>,
    /// Service levels of paths: path-sl.dump, or lines GUID DLID SL as `ibdmchk -c` takes them [default: path-sl.dump beside
    /// the tables; where there is none all paths are judged on SL 0]
    #[arg(long, value_name = "FILE")]
    pub(crate) path_sl: Option<PathBuf>,
    /// Multicast tables: opensm.mcfdbs
    #[arg(long, value_name = "DUMP")]
    pub(crate) multicast: Option<PathBuf>,
    /// LMC of adapters' ports for which the topology says none: opensm-subnet.lst has no room for it
    #[arg(long, value_name = "0-7", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=7))]
    pub(crate) lmc: u8,
    /// Members of multicast groups: lines MLID PORT-GUID [send-only] or MLID sl N [default: those the tables deliver to]
    #[arg(long, value_name = "FILE", requires = "multicast")]
    pub(crate) members: Option<PathBuf>,
    /// Root switches (node GUIDs, one a line): paths between hosts must not turn from down to up
    #[arg(long, value_name = "FILE")]
    pub(crate) root_guids: Option<PathBuf>,
    /// Ids for switches of one rank below the roots: lines of GUID ID
    #[arg(long, value_name = "FILE", requires = "root_guids")]
    pub(crate) ids: Option<PathBuf>,
    /// Data VLs that the links have; a higher VL is a fault
    #[arg(long, value_name = "1-15", default_value_t = 15, value_parser = clap::value_parser!(u8).range(1..=15))]
    pub(crate) data_vls: u8,
    /// Print balance by tier too
    #[arg(long)]
    pub(crate) tiers: bool,
    /// Count a credit loop that needs traffic of switches' management ports as a fault
    #[arg(long)]
    pub(crate) management: bool,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `rsm devices`.
#[derive(Debug, Args)]
pub(crate) struct Devices {
    /// Print one JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

/// `rsm config`.
#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Print the effective configuration as a commented TOML file
    Show(Settings),
    /// Check a file and say what is wrong with it
    Check {
        /// The file
        file: PathBuf,
    },
}

/// `rsm demo`.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// How much is logged to standard error
    #[arg(long, value_name = "LEVEL", default_value = "error",
        value_parser = log_level())]
    pub(crate) log_level: LogLevel,
}

/// `rsm emulate`.
#[derive(Debug, Args)]
pub(crate) struct Emulate {
    /// The fabric: an ibsim net file, ibnetdiscover output, opensm's subnet.lst or JSON
    pub(crate) topology: Option<PathBuf>,
    /// Where programs sit: node name or GUID, several with commas between [default: the first adapter]
    #[arg(long, value_name = "NODE", default_value = "")]
    pub(crate) node: String,
    /// Make adapters of this machine's own kernel of these nodes, several with commas between; needs the kernel module vib
    #[arg(long, value_name = "NODE", conflicts_with = "send")]
    pub(crate) kernel: Option<String>,
    /// Show each node as two devices, as XDR adapters are: rsm0 for general services, smi0 for subnet management
    #[arg(long)]
    pub(crate) smi_device: bool,
    /// Directory for socket and sysfs [default: one of its own in the temporary directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Share of datagrams that each link loses, in per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) loss: u8,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Give a running emulator (--dir, or RSM_EMULATE) a line of its console, and end; `Help` lists what there is
    #[arg(long, value_name = "LINE", conflicts_with_all = ["topology", "command"])]
    pub(crate) send: Option<String>,
    /// How much is logged to standard error
    #[arg(long, value_name = "LEVEL", default_value = "warn", value_parser = log_level())]
    pub(crate) log_level: LogLevel,
    /// A command to run on the fabric; without one, it is served until `Quit` on standard input or a signal
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// A GUID other than 0.
fn real_guid(text: &str) -> Result<Guid, String> {
    let guid: Guid = text.parse().map_err(|e: mad::types::TypeError| e.to_string())?;
    if guid.is_some() { Ok(guid) } else { Err("0 is no GUID".to_owned()) }
}

/// The words of [`LogLevel`], listed in the help.
fn log_level() -> impl TypedValueParser<Value = LogLevel> {
    PossibleValuesParser::new(LogLevel::WORDS).try_map(|word| word.parse::<LogLevel>())
}
