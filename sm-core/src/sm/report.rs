//! What one round (sweep, plan, apply) came to: for the log, `rsm status` and `--once`.

use std::collections::BTreeMap;
use std::time::Duration;

use mad::types::{Guid, Lid};
use serde::Serialize;

use crate::observed::Observed;
use crate::plan::{Moved, Verdict};

/// What the subnet manager is to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Looks around.
    Discovering,
    /// Another one is master; it is watched.
    Standby,
    /// In charge.
    Master,
    /// Switched off by a master.
    NotActive,
}

/// Another subnet manager.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ManagerSeen {
    /// PortGUID.
    pub guid: Guid,
    /// Name of its node.
    pub node: String,
    /// Priority.
    pub priority: u8,
    /// Its state, as SMInfo codes it: 0 not active, 1 discovering, 2 standby, 3 master.
    pub state: u8,
}

/// Datagrams of this round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MadCounts {
    /// Sent, repetitions included.
    pub sent: u64,
    /// Answered.
    pub answered: u64,
    /// Repetitions.
    pub retried: u64,
    /// Requests without any answer.
    pub timed_out: u64,
    /// Datagrams that could not be sent, or came back.
    pub send_errors: u64,
}

/// Seconds that each stage took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct StageSeconds {
    /// Sweep.
    pub sweep: f64,
    /// LIDs, routes and their proof.
    pub plan: f64,
    /// Sets.
    pub apply: f64,
    /// From the start of the sweep to the end.
    pub total: f64,
}

/// What one round came to.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Number of the round, from 1.
    pub round: u64,
    /// What we are after it.
    pub role: Role,
    /// Nodes.
    pub nodes: usize,
    /// Of these, switches.
    pub switches: usize,
    /// Channel adapters and routers.
    pub hosts: usize,
    /// Cables.
    pub links: usize,
    /// Ports that got a LID that they did not hold.
    pub lids_new: usize,
    /// Ports that kept theirs.
    pub lids_kept: usize,
    /// Our own LID.
    pub sm_lid: Option<Lid>,
    /// Datagrams.
    pub mads: MadCounts,
    /// Sets by attribute, repetitions not counted.
    pub sets: BTreeMap<String, u64>,
    /// Time.
    pub seconds: StageSeconds,
    /// What the verifier says of the routes; `None` when none were planned in this round.
    pub verdict: Option<Verdict>,
    /// How many table entries that changes; `None` when none were planned, or no table was known before.
    pub moved: Option<Moved>,
    /// What the sweep met that was wrong.
    pub findings: Vec<String>,
    /// PortInfo fields that ports were seen not to keep for the first time, and how many ports that were.
    pub not_kept: BTreeMap<String, usize>,
    /// Ports that can have virtual ports, which are not served (B74), a line each.
    pub virtual_ports: Vec<String>,
    /// What failed, by name. Empty: every reachable port is programmed and confirmed.
    pub failures: Vec<String>,
    /// Other subnet managers.
    pub managers: Vec<ManagerSeen>,
}

impl Report {
    /// Whether every port that was reached is programmed and confirmed, by us.
    pub fn is_complete(&self) -> bool {
        self.role == Role::Master && self.failures.is_empty()
    }

    /// Counts from the picture; everything else is empty.
    pub(super) fn new(round: u64, role: Role) -> Self {
        Self {
            round,
            role,
            nodes: 0,
            switches: 0,
            hosts: 0,
            links: 0,
            lids_new: 0,
            lids_kept: 0,
            sm_lid: None,
            mads: MadCounts::default(),
            sets: BTreeMap::new(),
            seconds: StageSeconds::default(),
            verdict: None,
            moved: None,
            findings: Vec::new(),
            not_kept: BTreeMap::new(),
            virtual_ports: Vec::new(),
            failures: Vec::new(),
            managers: Vec::new(),
        }
    }

    /// A round of a master that met nothing.
    #[cfg(test)]
    pub(crate) fn empty() -> Self {
        Self::new(1, Role::Master)
    }

    pub(super) fn count(&mut self, observed: &Observed) {
        self.nodes = observed.fabric.node_count();
        self.switches = observed.fabric.switches().count();
        self.hosts = self.nodes - self.switches;
        self.links = observed.fabric.link_count();
        self.virtual_ports = observed
            .can_have_virtual_ports()
            .map(|end| {
                let name = observed.name(end.node);
                format!(
                    "port {} of {name} can have virtual ports: they are not served, and stay DOWN",
                    end.port
                )
            })
            .collect();
        self.managers = observed
            .managers
            .iter()
            .map(|manager| ManagerSeen {
                guid: manager.guid,
                node: observed.name(manager.port.node),
                priority: manager.info.priority(),
                state: manager.info.state_raw(),
            })
            .collect();
    }
}

/// Seconds of a duration.
pub(super) fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}
