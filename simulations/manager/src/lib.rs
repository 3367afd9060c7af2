//! The subnet manager's state machine as an agent of the simulated world: one thread, virtual time, nothing random.
//!
//! A crate of its own, since `simulations` knows of subnet managers only that they are agents. Planning takes no virtual
//! time.
#![forbid(unsafe_code)]

use std::path::Path;

use mad::transport::Datagram;
use mad::types::Timestamp;
use mad::wire::{Mad, MgmtClass};
use simulations::scenario::ManagerSpec;
use simulations::world::{Agent, AgentId, AgentOutput, End, World};
use sm_core::config::Config;
use sm_core::settings::SmSettings;
use sm_core::sm::{Event, Inline, Output, Report, Role, Sm};
use sm_core::store::Restored;

/// A subnet manager on a port; it remembers nothing of an earlier life.
pub struct Manager {
    machine: Inline,
    priority: u8,
}

impl Manager {
    /// A manager that has seen nothing yet.
    pub fn new(settings: SmSettings) -> Self {
        let priority = settings.priority;
        Self { machine: Inline::new(Sm::new(settings, Restored::default(), false, 1)), priority }
    }

    /// The manager that a scenario asks for, as [`simulations::scenario::run`] takes it.
    ///
    /// # Errors
    /// Its configuration can't be meant.
    pub fn of_scenario(spec: &ManagerSpec, _now: Timestamp) -> Result<Box<dyn Agent>, String> {
        let settings = settings(&spec.config.to_string())?;
        Ok(Box::new(Self::new(SmSettings { priority: spec.priority, ..settings })))
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
}

/// The settings that a configuration file makes.
fn settings(text: &str) -> Result<SmSettings, String> {
    let config = Config::parse(text, Path::new("config")).map_err(|error| error.to_string())?;
    SmSettings::load(&config).map_err(|error| error.to_string())
}

impl Agent for Manager {
    fn accepts(&self, mad: &Mad) -> bool {
        matches!(mad.header.mgmt_class(), MgmtClass::SUBN_DR | MgmtClass::SUBN_LID)
    }

    fn is_master(&self) -> bool {
        self.role() == Role::Master
    }

    fn is_settled(&self) -> bool {
        self.machine.sm.is_settled()
    }

    fn configure(&mut self, text: &str, now: Timestamp) -> Result<(), String> {
        let settings = SmSettings { priority: self.priority, ..settings(text)? };
        self.machine.handle(Event::Settings(Box::new(settings)), now);
        Ok(())
    }

    fn receive(&mut self, datagram: Datagram, now: Timestamp) {
        self.machine.receive(datagram, now);
    }

    fn poll(&mut self, now: Timestamp) -> Option<AgentOutput> {
        Some(match self.machine.poll(now)? {
            Output::Send(datagram) => AgentOutput::Send(datagram),
            Output::SetIsSm(on) => AgentOutput::IsSm(on),
        })
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.machine.deadline()
    }
}
