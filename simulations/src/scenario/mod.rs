//! Scenarios: a fabric, subnet managers, a schedule of faults, and what must hold at the end.
//!
//! A scenario is a TOML file, or is drawn from a seed ([`random`]); [`run`] plays it in virtual time. Of subnet managers it
//! knows only that they are agents: who runs a scenario says how one is made. At the end the verifier must find the tables in
//! the switches right, every port with a link Active with a LID of its own, and exactly one master in each connected part
//! that has a manager; and at no moment may the tables have held a forwarding loop.

mod random;
mod run;

#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::device::{Misbehaviour, Quirk};
use crate::generate::{GenerateError, Options, Topology};

pub use random::random;
pub use run::{MakeManager, Outcome, Traced, run};

/// A scenario as its file spells it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it shows, in a sentence or two.
    pub about: String,
    /// The fabric.
    pub fabric: FabricSpec,
    /// How the network behaves from the start.
    #[serde(default)]
    pub network: Network,
    /// The subnet managers.
    #[serde(default)]
    pub manager: Vec<ManagerSpec>,
    /// What happens.
    #[serde(default)]
    pub step: Vec<Step>,
    /// What must hold at the end.
    #[serde(default)]
    pub expect: Expect,
}

/// A generated fabric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "the parameters are those of `generate::Topology`")]
pub enum FabricSpec {
    /// A row of switches.
    Line { switches: u16, hosts: u16 },
    /// Two levels.
    Tree { leaves: u16, spines: u16, hosts: u16 },
    /// A general fat tree.
    Xgft { m: Vec<u16>, w: Vec<u16>, p: Vec<u16> },
    /// A torus.
    Torus { dims: Vec<u16>, hosts: u16 },
    /// A random regular graph.
    RandomRegular { switches: u16, degree: u16, hosts: u16 },
    /// A dragonfly.
    Dragonfly { p: u16, a: u16, h: u16, g: u16 },
}

impl FabricSpec {
    /// As the generator takes it.
    pub fn topology(&self) -> Topology {
        match self.clone() {
            Self::Line { switches, hosts } => Topology::Line { switches, hosts },
            Self::Tree { leaves, spines, hosts } => Topology::tree(leaves, spines, hosts),
            Self::Xgft { m, w, p } => Topology::Xgft { m, w, p },
            Self::Torus { dims, hosts } => Topology::Torus { dims, hosts },
            Self::RandomRegular { switches, degree, hosts } => {
                Topology::RandomRegular { switches, degree, hosts }
            }
            Self::Dragonfly { p, a, h, g } => Topology::Dragonfly { p, a, h, g },
        }
    }

    /// The fabric itself.
    ///
    /// # Errors
    /// Parameters that make no network.
    pub fn fabric(&self, seed: u64) -> Result<routing::fabric::Fabric, GenerateError> {
        crate::generate::generate(&self.topology(), &Options { seed, ..Options::default() })
    }
}

/// How the network behaves. Shares are from 0 to 1.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Network {
    /// Packets lost on each link.
    pub loss: f64,
    /// Packets that arrive twice.
    pub duplication: f64,
    /// Up to so much is added to a packet's way, in microseconds.
    pub jitter_us: u64,
    /// Time that a link takes to train, in milliseconds.
    pub training_ms: u64,
}

/// A subnet manager.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManagerSpec {
    /// The host (or switch) that it runs on; on its first end port.
    pub node: String,
    /// Priority, 0 to 15.
    #[serde(default)]
    pub priority: u8,
    /// When it starts, in milliseconds.
    #[serde(default)]
    pub start_ms: u64,
}

/// Something that happens at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// When, in milliseconds of virtual time.
    pub at_ms: u64,
    /// What.
    #[serde(flatten)]
    pub fault: Fault,
}

/// A port by name and number: `["S1_0", 3]`.
pub type PortName = (String, u8);

/// What can happen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the fields are nodes, ports and managers by name or number")]
pub enum Fault {
    /// Pulls a cable.
    Unlink { port: PortName },
    /// Plugs it in again.
    Relink { port: PortName },
    /// Takes a device's power: it forgets everything.
    PowerOff { node: String },
    /// Gives it back.
    PowerOn { node: String },
    /// Power off and on at once.
    Reset { node: String },
    /// Exchanges the far ends of two cables.
    Swap { a: PortName, b: PortName },
    /// Changes a node description.
    Rename { node: String, name: String },
    /// Changes the share of packets lost.
    Loss { share: f64 },
    /// Cuts all cables between some nodes and the others.
    Split { nodes: Vec<String> },
    /// Plugs in what was split.
    Merge,
    /// Ends a manager, by its number in the file from 0.
    Kill { manager: usize },
    /// Starts it anew, without memory.
    Restart { manager: usize },
    /// Stops it; what comes for it waits.
    Freeze { manager: usize },
    /// Lets it go on.
    Thaw { manager: usize },
    /// A device does something wrong from now on.
    Misbehave { node: String, how: How },
    /// It behaves again.
    Behave { node: String },
    /// Everything is plugged in, powered, thawed, behaves and loses nothing.
    Heal,
}

/// What a device does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// It answers nothing.
    Silent,
    /// It refuses Set(PortInfo), with garbage in the answer (B07).
    RefusePortInfo,
    /// It drops Set(PortInfo) (B15).
    DropPortInfo,
    /// It tells LocalPortNum 99 (B03).
    WrongLocalPort,
    /// It says that it wrote its forwarding table, but doesn't.
    PretendTables,
}

impl How {
    /// As a fault of a device.
    pub fn quirk(self) -> Quirk {
        use mad::wire::{Method, ids::sm as id};
        match self {
            Self::Silent => Quirk::always(Misbehaviour::Silence),
            Self::RefusePortInfo => Quirk::always(Misbehaviour::Refuse { status: 0x001c, garbage: true })
                .on(Method::SET, id::PORT_INFO),
            Self::DropPortInfo => Quirk::always(Misbehaviour::Silence).on(Method::SET, id::PORT_INFO),
            Self::WrongLocalPort => Quirk::always(Misbehaviour::Overwrite { offset: 36, bytes: vec![99] })
                .on(Method::GET, id::NODE_INFO),
            Self::PretendTables => {
                Quirk::always(Misbehaviour::Pretend).on(Method::SET, id::LINEAR_FORWARDING_TABLE)
            }
        }
    }
}

/// What must hold at the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Expect {
    /// Seconds after the last step until all must be right.
    pub within_s: u64,
    /// Whether exactly one manager must be master in each part that has one.
    pub one_master: bool,
    /// Whether ports, LIDs and tables must be right.
    pub right: bool,
    /// The most Sets that may have been sent after the last step; any number when absent.
    pub most_sets: Option<u64>,
}

impl Default for Expect {
    fn default() -> Self {
        Self { within_s: 120, one_master: true, right: true, most_sets: None }
    }
}

impl Scenario {
    /// Reads a file's text.
    ///
    /// # Errors
    /// What is wrong, with line and column.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// When the last step happens.
    pub fn last_step(&self) -> Duration {
        let steps = self.step.iter().map(|step| step.at_ms);
        let starts = self.manager.iter().map(|manager| manager.start_ms);
        Duration::from_millis(steps.chain(starts).max().unwrap_or(0))
    }
}
