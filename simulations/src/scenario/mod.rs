//! Scenarios: a fabric, subnet managers, a schedule of faults, and what must hold at the end.
//!
//! A scenario is a TOML file, or is drawn from a seed ([`random`]); [`run`] plays it in virtual time. Of subnet managers it
//! knows only that they are agents: who runs a scenario says how one is made. At the end the verifier must find the tables in
//! the switches right, every port with a link Active with a LID of its own, and exactly one master in each connected part
//! that has a manager; and at no moment may the tables have held a forwarding loop. Where there are clients of subnet
//! administration, all that they want must be acknowledged and known to the master, and the switches must deliver each
//! multicast group to its members once and to nobody else.

mod clients;
mod etcd;
mod fabric;
mod fault;
mod outcome;
mod random;
mod random_clients;
mod random_managers;
mod run;

#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use clients::{ClientSpec, Membership};
pub use etcd::{EtcdSpec, EtcdTrouble};
pub use fabric::FabricSpec;
pub use fault::{Fault, Field, How, PortName, Speeds, Step};
pub use outcome::{Outcome, Traced, What};
pub use random::random;
pub use random_clients::random_with_clients;
pub use random_managers::random_with_managers;
pub use run::{MakeManager, Watch, run, run_watched};

/// Why a text is no scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct ScenarioError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What was found, and what is allowed.
    pub message: String,
}

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
    /// Clients of subnet administration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<ClientSpec>,
    /// What happens.
    #[serde(default)]
    pub step: Vec<Step>,
    /// What must hold at the end.
    #[serde(default)]
    pub expect: Expect,
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
    /// Time that a device takes to answer, in microseconds; as fast as real ones when 0. A slow network makes room for
    /// faults in the middle of a sweep.
    pub response_us: u64,
}

/// A subnet manager.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
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
    /// Whether it has a state directory, which it finds again when it is restarted.
    #[serde(default)]
    pub store: bool,
    /// The secret under which managers mirror their state, 16 bytes or more; it is not mirrored without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// The etcd that it keeps its state in besides, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd: Option<EtcdSpec>,
    /// What its configuration file says, by sections: `config.routing.engines = ["ftree"]`. The priority above wins.
    #[serde(default, skip_serializing_if = "toml::Table::is_empty")]
    pub config: toml::Table,
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
    /// The most datagrams that managers may have sent after the last step; any number when absent.
    pub most_sent: Option<u64>,
    /// The least Sets with ClientReregister that devices must have taken after the last step.
    pub least_reregisters: u64,
    /// Whether every end port must have the LID that it had before the last step, unless it had none.
    pub same_lids: bool,
    /// Whether every end port, those of nodes with managers apart, must have the LID that it had before the first step.
    pub kept_lids: bool,
    /// Whether all that clients want must be acknowledged and known to the master, and the trees of their groups right.
    pub clients: bool,
    /// Nodes that need not be up, and are not looked at.
    pub apart_from: Vec<String>,
}

impl Default for Expect {
    fn default() -> Self {
        Self {
            within_s: 120,
            one_master: true,
            right: true,
            most_sets: None,
            most_sent: None,
            least_reregisters: 0,
            same_lids: false,
            kept_lids: false,
            clients: true,
            apart_from: Vec::new(),
        }
    }
}

impl Scenario {
    /// Reads a file's text.
    ///
    /// # Errors
    /// What is wrong, with line and column.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        toml::from_str(text).map_err(|error: toml::de::Error| {
            let before = text.get(..error.span().map_or(0, |span| span.start)).unwrap_or(text);
            ScenarioError {
                line: before.matches('\n').count() + 1,
                column: before.rsplit('\n').next().unwrap_or("").chars().count() + 1,
                message: error.message().replace('\n', " "),
            }
        })
    }

    /// When the last step happens.
    pub fn last_step(&self) -> Duration {
        let steps = self.step.iter().map(|step| step.at_ms);
        let starts = self.manager.iter().map(|manager| manager.start_ms);
        let joins = self.clients.iter().map(|clients| clients.at_ms + clients.within_ms);
        Duration::from_millis(steps.chain(starts).chain(joins).max().unwrap_or(0))
    }
}
