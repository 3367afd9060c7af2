//! The subnet manager as an agent of the simulated world: its state machine, subnet administration, the state that it keeps and
//! mirrors; one thread, virtual time, nothing random.
//!
//! A crate of its own, since `simulations` knows of subnet managers only that they are agents. Planning, answering and
//! writing take no virtual time.
#![forbid(unsafe_code)]

mod acknowledgements;
mod administration;
mod cluster;
mod etcd;
mod state;

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex};

use mad::transport::Datagram;
use mad::types::{Guid, Timestamp};
use mad::wire::vendor::mirror;
use mad::wire::{Mad, Method, MgmtClass};
use simulations::scenario::ManagerSpec;
use simulations::world::{Agent, AgentId, AgentOutput, End, Registration, World};
use sm_core::config::Config;
use sm_core::replication::{CopyState, Replication, Secret};
use sm_core::settings::SmSettings;
use sm_core::sm::{Action, Event, Inline, Report, Role, Sm};
use sm_core::store::{Entries, Kind, Restored, typed};

use acknowledgements::Acknowledgements;
use administration::Administration;
use cluster::Cluster;
use etcd::Shared;
use state::{Disk, Part, State};

/// A subnet manager on a port.
pub struct Manager {
    machine: Inline,
    priority: u8,
    administration: Administration,
    acknowledgements: Acknowledgements,
    state: State,
    /// Nothing was kept of what ports registered, perhaps with a manager before.
    is_new: bool,
    outgoing: VecDeque<AgentOutput>,
}

impl Manager {
    /// A manager that has seen nothing yet and remembers nothing.
    pub fn new(settings: SmSettings) -> Self {
        Self::with(settings, State::new(None, None, None))
    }

    fn with(settings: SmSettings, state: State) -> Self {
        let priority = settings.priority;
        let restored = Restored::of(state.entries());
        Self {
            machine: Inline::new(Sm::new(settings, restored, false, 1)),
            priority,
            administration: Administration::new(state.entries().clone()),
            acknowledgements: Acknowledgements::default(),
            is_new: state.is_new(),
            state,
            outgoing: VecDeque::new(),
        }
    }

    /// Makes the managers that a scenario asks for, as [`simulations::scenario::run`] takes it, and keeps their state
    /// directories from one life to the next. Refused is a configuration that can't be meant, and a secret that is too short.
    pub fn of_scenario() -> impl FnMut(&ManagerSpec, Timestamp) -> Result<Box<dyn Agent>, String> {
        let mut disks: BTreeMap<String, Disk> = BTreeMap::new();
        let mut life = 0;
        let mut cluster = None;
        move |spec, now| {
            let config = parse(&spec.config.to_string())?;
            let settings = SmSettings::load(&config).map_err(|error| error.to_string())?;
            let short = || format!("a secret needs {} bytes or more", Secret::LEAST);
            let secret = spec.secret.as_ref().map(|text| Secret::new(text.as_bytes()).ok_or_else(short));
            let disk = spec.store.then(|| Disk::clone(disks.entry(spec.node.clone()).or_default()));
            life += 1;
            // The number tells the manager and this life of it from all others.
            let acknowledge = config.failover.acknowledge;
            let replication = secret
                .transpose()?
                .map(|secret| Replication::new(secret, Guid(life), life << 32).acknowledging(acknowledge));
            let etcd = spec.etcd.as_ref().map(|etcd| {
                let cluster = cluster.get_or_insert_with(|| Arc::new(Mutex::new(Cluster::new(etcd))));
                Shared::start(cluster, life, now)
            });
            let state = State::new(disk, replication, etcd);
            Ok(Box::new(Self::with(SmSettings { priority: spec.priority, ..settings }, state)))
        }
    }

    /// Puts a manager on port 1 of a host, given by name or GUID; `None` when there is no such host.
    pub fn start(world: &mut World, node: &str, settings: SmSettings) -> Option<AgentId> {
        let node = world.find_name(node)?;
        world.attach(End::new(node, 1), Box::new(Self::new(settings)))
    }

    /// What it is to the others.
    pub fn role(&self) -> Role {
        self.machine.sm.role()
    }

    /// Of every round, oldest first.
    pub fn reports(&self) -> &[Report] {
        &self.machine.reports
    }

    /// Does what the state machine wants done.
    fn perform(&mut self, action: Action, now: Timestamp) {
        match action {
            Action::Send(datagram, _) => self.outgoing.push_back(AgentOutput::Send(datagram)),
            Action::SetIsSm(on) => self.outgoing.push_back(AgentOutput::IsSm(on)),
            Action::Publish(picture) => self.administration.publish(picture, now),
            Action::Withdraw => self.administration.withdraw(),
            Action::SaveLids(lids) => self.state.replace(Kind::Lids, &typed::lid_entries(&lids), now),
            Action::SaveQuirks(quirks) => {
                self.state.replace(Kind::NotKept, &typed::quirk_entries(&quirks), now)
            }
            Action::SaveKeys(keys) => self.state.replace(Kind::MKey, &typed::key_entries(&keys), now),
            Action::SaveServed(ports) => {
                self.state.replace(Kind::Served, &typed::served_entries(&ports), now)
            }
            Action::Told(told) => self.administration.note_told(told, now),
            Action::AnotherFabric => {
                self.state.set_aside();
                self.administration.restore(Entries::new(), now);
                self.machine.handle(Event::Unregistered, now);
            }
            Action::Notice(notice) => self.administration.notice(&notice),
            // Both are the machine's own.
            Action::Plan(_) | Action::Report(_) => {}
        }
    }

    /// Tells whoever keeps the state what the manager is; a standby that takes over goes on with its copy.
    fn follow_role(&mut self, now: Timestamp) {
        let part = match self.role() {
            Role::Master => Part::Master,
            Role::Standby => Part::Standby(self.machine.sm.master_lid()),
            Role::Discovering | Role::NotActive => Part::None,
        };
        let before = self.state.part;
        if part == before {
            return;
        }
        let stands_by = |part| matches!(part, Part::Standby(_));
        if stands_by(before) && !stands_by(part) {
            let known = self.state.take_over(self.machine.sm.master_heard(), now);
            let entries = match known {
                CopyState::Incomplete => self.state.forget_registrations(),
                CopyState::Doubtful | CopyState::Confirmed => self.state.entries().clone(),
            };
            if known != CopyState::Incomplete {
                self.machine.handle(Event::Mirrored(Box::new(Restored::of(&entries))), now);
            }
            if known != CopyState::Confirmed {
                self.machine.handle(Event::Unregistered, now);
            }
            self.administration.restore(entries, now);
        }
        self.state.play(part, now);
    }

    /// Lets everybody but the state machine have its turn; whether there is anything new for the machine.
    fn turn(&mut self, now: Timestamp) -> bool {
        self.follow_role(now);
        let (changes, answers) = self.administration.turn(now);
        // Written, here and by standbys in step, before anybody is told.
        let version = self.state.change(changes, now);
        let mut sent = self.acknowledgements.keep(answers, version, now);
        let adopted = self.state.adopt(now);
        sent.extend(self.state.turn(now));
        let leads = self.machine.sm.leads_until() >= now;
        sent.extend(self.acknowledgements.release(self.state.reached(), leads, now));
        self.outgoing.extend(sent.into_iter().map(AgentOutput::Send));
        if let Some(entries) = adopted {
            self.machine.handle(Event::Mirrored(Box::new(Restored::of(&entries))), now);
            self.machine.handle(Event::Unregistered, now);
            self.administration.restore(entries, now);
            return true;
        }
        let Some(wish) = self.administration.wish(now) else { return false };
        self.machine.handle(wish.into(), now);
        true
    }
}

fn parse(text: &str) -> Result<Config, String> {
    Config::parse(text, Path::new("config")).map_err(|error| error.to_string())
}

impl Agent for Manager {
    fn accepts(&self, mad: &Mad) -> bool {
        match mad.header.mgmt_class() {
            // Reports are for clients.
            MgmtClass::SUBN_ADM => mad.header.method() != Method::REPORT,
            class => matches!(class, MgmtClass::SUBN_DR | MgmtClass::SUBN_LID) || class == mirror::CLASS,
        }
    }

    fn is_master(&self) -> bool {
        self.role() == Role::Master
    }

    fn is_settled(&self) -> bool {
        self.machine.sm.is_settled() && !self.administration.wants_to_tell()
    }

    fn holds(&self, registration: &Registration) -> bool {
        self.is_master() && self.administration.holds(registration)
    }

    fn configure(&mut self, text: &str, now: Timestamp) -> Result<(), String> {
        let settings = SmSettings::load(&parse(text)?).map_err(|error| error.to_string())?;
        let settings = SmSettings { priority: self.priority, ..settings };
        self.machine.handle(Event::Settings(Box::new(settings)), now);
        Ok(())
    }

    fn receive(&mut self, datagram: Datagram, now: Timestamp) {
        match datagram.mad.header.mgmt_class() {
            MgmtClass::SUBN_ADM => self.administration.receive(&datagram, now),
            class if class == mirror::CLASS => self.state.receive(&datagram, now),
            _ => self.machine.receive(datagram, now),
        }
    }

    fn poll(&mut self, now: Timestamp) -> Option<AgentOutput> {
        if std::mem::take(&mut self.is_new) {
            self.machine.handle(Event::Unregistered, now);
        }
        loop {
            if let Some(output) = self.outgoing.pop_front() {
                return Some(output);
            }
            if let Some(action) = self.machine.poll(now) {
                self.perform(action, now);
            } else if !self.turn(now) && self.outgoing.is_empty() {
                return None;
            }
        }
    }

    fn deadline(&self) -> Option<Timestamp> {
        let others =
            [self.administration.deadline(), self.state.deadline(), self.acknowledgements.deadline()];
        self.machine.deadline().into_iter().chain(others.into_iter().flatten()).min()
    }
}
