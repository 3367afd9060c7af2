//! Clients in a scenario: on which hosts, what they do, and what must hold of them at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mad::types::{Gid, Guid, MulticastLid};
use mad::wire::sa::JoinState;
use routing::fabric::SwitchGraph;
use routing::multicast::{Member, PortSet};
use routing::verify::multicast::{self, Group};
use serde::{Deserialize, Serialize};

use super::run::Play;
use crate::client::{Client, Habits};
use crate::world::{Agent, AgentId, End, Registration};

/// Failures that are told one by one.
const TOLD: usize = 10;

/// Clients that do the same on several hosts. Those of one port must not share groups, services or traps: subnet
/// administration knows ports, not programs.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientSpec {
    /// The hosts (or switches), each on its first end port; `"*"` is every host.
    pub hosts: Vec<String>,
    /// When the first one begins, in milliseconds.
    #[serde(default)]
    pub at_ms: u64,
    /// The others follow evenly within so many milliseconds.
    #[serde(default)]
    pub within_ms: u64,
    /// MGIDs of the groups that each joins. Groups of IPoIB bring their broadcast group with them.
    #[serde(default)]
    pub groups: Vec<String>,
    /// How it joins them.
    #[serde(default)]
    pub membership: Membership,
    /// ServiceIDs that each offers.
    #[serde(default)]
    pub services: Vec<u64>,
    /// Lease of the services in seconds; without end when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_s: Option<u32>,
    /// Traps that each subscribes to.
    #[serde(default)]
    pub traps: Vec<u16>,
    /// Hosts to which each asks a path.
    #[serde(default)]
    pub paths: Vec<String>,
    /// Whether it registers once only, whatever it is told.
    #[serde(default)]
    pub deaf: bool,
    /// Whether it must be refused: nothing that it wants may be acknowledged at the end.
    #[serde(default)]
    pub refused: bool,
}

/// How a client joins its groups (JoinState).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Membership {
    /// FullMember.
    #[default]
    Full,
    /// NonMember.
    NonMember,
    /// SendOnlyNonMember.
    SendOnly,
    /// SendOnlyFullMember.
    SendOnlyFull,
}

impl Membership {
    const fn join_state(self) -> JoinState {
        match self {
            Self::Full => JoinState::FULL_MEMBER,
            Self::NonMember => JoinState::NON_MEMBER,
            Self::SendOnly => JoinState::SEND_ONLY_NON_MEMBER,
            Self::SendOnlyFull => JoinState::SEND_ONLY_FULL_MEMBER,
        }
    }
}

impl ClientSpec {
    /// When the client with this number of so many begins, after the first.
    fn offset(&self, number: usize, count: usize) -> Duration {
        Duration::from_micros(self.within_ms * 1000 * number as u64 / count.max(1) as u64)
    }
}

/// A group as its members know it.
struct Members {
    mgid: Gid,
    /// By switch and port; whether it receives.
    ports: BTreeMap<(u32, u8), bool>,
}

impl Play<'_> {
    fn spec(&self, clients: usize) -> Result<&ClientSpec, String> {
        let count = self.scenario.clients.len();
        let spec = self.scenario.clients.get(clients);
        spec.ok_or_else(|| format!("no clients {clients}: the file has {count} tables, from 0"))
    }

    /// The first end port of a node.
    fn first_end(&self, name: &str) -> Result<End, String> {
        let node = self.node(name)?;
        Ok(End::new(node, *self.world.device(node).end_ports().start()))
    }

    fn hosts(&self, spec: &ClientSpec) -> Result<Vec<End>, String> {
        let mut ends = Vec::new();
        for name in &spec.hosts {
            if name == "*" {
                let hosts = self.world.devices().iter().enumerate().filter(|(_, device)| !device.is_switch());
                ends.extend(hosts.map(|(node, _)| End::new(node as u32, 1)));
            } else {
                ends.push(self.first_end(name)?);
            }
        }
        Ok(ends)
    }

    /// Starts the clients of a table, or lets them register everything again.
    pub(super) fn join(&mut self, clients: usize) -> Result<(), String> {
        let spec = self.spec(clients)?.clone();
        if !self.clients[clients].is_empty() {
            return self.want(clients, true);
        }
        let mgid = |text: &String| text.parse().map_err(|error| format!("`{text}`: {error}"));
        let mgids: Vec<Gid> = spec.groups.iter().map(mgid).collect::<Result<_, String>>()?;
        let guid = |name: &String| {
            let end = self.first_end(name)?;
            Ok(Guid(self.world.device(end.node).ports[end.port.index()].guid))
        };
        let paths: Vec<Guid> = spec.paths.iter().map(guid).collect::<Result<_, String>>()?;
        let ends = self.hosts(&spec)?;
        for (number, end) in ends.iter().enumerate() {
            let habits = Habits {
                groups: mgids.iter().map(|mgid| (*mgid, spec.membership.join_state())).collect(),
                services: spec.services.clone(),
                lease: spec.lease_s,
                traps: spec.traps.clone(),
                paths: paths.clone(),
                start: self.world.now() + spec.offset(number, ends.len()),
                deaf: spec.deaf,
            };
            let attached = self.world.attach(*end, Box::new(Client::new(habits)));
            self.clients[clients].extend(attached);
        }
        Ok(())
    }

    /// Lets the clients of a table give back what they registered.
    pub(super) fn leave(&mut self, clients: usize) -> Result<(), String> {
        self.spec(clients)?;
        self.want(clients, false)
    }

    fn want(&mut self, clients: usize, wanted: bool) -> Result<(), String> {
        let spec = self.spec(clients)?.clone();
        let ids = self.clients[clients].clone();
        for (number, id) in ids.iter().enumerate() {
            let start = self.world.now() + spec.offset(number, ids.len());
            if let Some(client) = self.world.agent_mut::<Client>(*id) {
                client.want(wanted, start);
            }
            self.world.pump(*id);
        }
        Ok(())
    }

    /// What clients want and don't have, registrations that the master doesn't know, and trees that are not right.
    pub(super) fn unserved(&self) -> Vec<String> {
        let parts = self.world.parts();
        let mut failures = Vec::new();
        let mut groups: BTreeMap<u32, BTreeMap<MulticastLid, Members>> = BTreeMap::new();
        let fabric = self.world.fabric();
        let graph = SwitchGraph::new(&fabric);
        for (spec, ids) in self.scenario.clients.iter().zip(&self.clients) {
            for id in ids {
                let Some(end) = self.world.agent_end(*id) else { continue };
                let part = parts[end.node as usize];
                if !self.world.device(end.node).ports[end.port.index()].is_up() {
                    continue;
                }
                let Some(master) = self.master_of(part, &parts) else { continue };
                self.judge_client(spec, *id, master, &mut failures);
                let is_switch = self.world.device(end.node).is_switch();
                let at = if is_switch { Some(end) } else { self.world.peer(end) };
                let switch = at.and_then(|at| {
                    let guid = self.world.device(at.node).guid();
                    Some((graph.index_of(fabric.find(guid)?)?, at.port.0))
                });
                if let Some(at) = switch {
                    self.note_groups(*id, at, groups.entry(part).or_default(), &mut failures);
                }
            }
        }
        if self.scenario.clients.is_empty() {
            return failures;
        }
        let (all, routes) =
            (self.world.multicast_tables(&fabric, &graph), self.world.routes(&fabric, &graph));
        let switch_parts: Vec<Option<u32>> = (0..graph.switch_count() as u32)
            .map(|row| self.world.find(graph.guid(row)).map(|node| parts[node as usize]))
            .collect();
        let with_master: BTreeSet<u32> = switch_parts.iter().flatten().copied().collect();
        for part in with_master.into_iter().filter(|part| self.master_of(*part, &parts).is_some()) {
            let mut tables = all.clone();
            for (row, _) in (0..).zip(&switch_parts).filter(|(_, of)| **of != Some(part)) {
                all.mlids().into_iter().for_each(|mlid| tables.set_ports(row, mlid, PortSet::EMPTY));
            }
            let known = groups.remove(&part).unwrap_or_default();
            for mlid in tables.mlids().into_iter().filter(|mlid| !known.contains_key(mlid)) {
                failures.push(format!("switches hold entries for {mlid}, which is no group of any client"));
            }
            let judged: Vec<Group> = known.iter().map(|(mlid, members)| members.group(*mlid)).collect();
            let report = multicast::check(&graph, &tables, &judged, &routes);
            if report.faults.iter().any(|(_, count)| *count > 0) {
                let names = known.iter().map(|(mlid, members)| format!("{mlid} is {}", members.mgid));
                failures.push(format!("{report} ({})", names.collect::<Vec<_>>().join(", ")));
            }
        }
        failures
    }

    /// The one master in a part; `None` where there is none, or more.
    fn master_of(&self, part: u32, parts: &[u32]) -> Option<AgentId> {
        let mut masters = self.managers.iter().flatten().copied().filter(|id| {
            let end = self.world.agent_end(*id);
            end.is_some_and(|end| parts[end.node as usize] == part)
                && self.world.any_agent(*id).is_some_and(Agent::is_master)
        });
        masters.next().filter(|_| masters.next().is_none())
    }

    fn judge_client(&self, spec: &ClientSpec, id: AgentId, master: AgentId, failures: &mut Vec<String>) {
        let (Some(client), Some(end)) = (self.world.agent::<Client>(id), self.world.agent_end(id)) else {
            return;
        };
        let mut tell = |what: String| {
            if failures.len() < TOLD {
                failures.push(format!("client on {}: {what}", self.world.device(end.node).name()));
            }
        };
        if spec.refused {
            if client.counts.refused == 0 {
                tell("was never refused".into());
            }
            client.acknowledged().for_each(|(known, _)| tell(format!("{known} should have been refused")));
            return;
        }
        client.open().for_each(|thing| tell(format!("{thing} is not granted ({:?})", client.counts)));
        for (registration, _) in client.acknowledged() {
            if !self.world.any_agent(master).is_some_and(|agent| agent.holds(&registration)) {
                tell(format!("{registration} was acknowledged and is not known to the master"));
            }
        }
    }

    /// Adds a client's part in groups, at a switch's port.
    fn note_groups(
        &self,
        id: AgentId,
        at: (u32, u8),
        groups: &mut BTreeMap<MulticastLid, Members>,
        failures: &mut Vec<String>,
    ) {
        let Some(client) = self.world.agent::<Client>(id) else { return };
        for (registration, mlid) in client.acknowledged() {
            let Registration::Member { mgid, how, .. } = registration else { continue };
            let Some(mlid) = mlid else {
                failures.push(format!("{registration}: no MLID in the answer"));
                continue;
            };
            let group = groups.entry(mlid).or_insert_with(|| Members { mgid, ports: BTreeMap::new() });
            if group.mgid != mgid {
                failures.push(format!("{registration}: {mlid} is that of {} too", group.mgid));
            }
            *group.ports.entry(at).or_default() |= JoinState(how).receives();
        }
    }
}

impl Members {
    fn group(&self, mlid: MulticastLid) -> Group {
        let member = |((switch, port), receives): (&(u32, u8), &bool)| Member {
            switch: *switch,
            port: *port,
            receives: *receives,
        };
        Group { mlid, members: self.ports.iter().map(member).collect(), sl: 0 }
    }
}
