//! The subnet manager's state machine as an agent of the simulated world: one thread, virtual time, nothing random.
//!
//! A crate of its own, since `simulations` knows of subnet managers only that they are agents. Planning takes no virtual
//! time.
#![forbid(unsafe_code)]

use mad::transport::Datagram;
use mad::types::Timestamp;
use mad::wire::{Mad, MgmtClass};
use simulations::scenario::ManagerSpec;
use simulations::world::{Agent, AgentId, AgentOutput, End, World};
use sm_core::settings::SmSettings;
use sm_core::sm::{Inline, Output, Report, Role, Sm};
use sm_core::store::Restored;

/// A subnet manager on a port; it remembers nothing of an earlier life.
pub struct Manager(Inline);

impl Manager {
    /// A manager that has seen nothing yet.
    pub fn new(settings: SmSettings) -> Self {
        Self(Inline::new(Sm::new(settings, Restored::default(), false, 1)))
    }

    /// The manager that a scenario asks for, as [`simulations::scenario::run`] takes it.
    pub fn of_scenario(spec: &ManagerSpec, _now: Timestamp) -> Box<dyn Agent> {
        Box::new(Self::new(SmSettings { priority: spec.priority, ..SmSettings::default() }))
    }

    /// Puts a manager on port 1 of a host, given by name or GUID; `None` when there is no such host.
    pub fn start(world: &mut World, node: &str, settings: SmSettings) -> Option<AgentId> {
        let node = world.find_name(node)?;
        world.attach(End::new(node, 1), Box::new(Self::new(settings)))
    }

    /// What it is to the others.
    pub fn role(&self) -> Role {
        self.0.sm.role()
    }

    /// Of every round, oldest first.
    pub fn reports(&self) -> &[Report] {
        &self.0.reports
    }
}

impl Agent for Manager {
    fn accepts(&self, mad: &Mad) -> bool {
        matches!(mad.header.mgmt_class(), MgmtClass::SUBN_DR | MgmtClass::SUBN_LID)
    }

    fn is_master(&self) -> bool {
        self.role() == Role::Master
    }

    fn is_settled(&self) -> bool {
        self.0.sm.is_settled()
    }

    fn receive(&mut self, datagram: Datagram, now: Timestamp) {
        self.0.receive(datagram, now);
    }

    fn poll(&mut self, now: Timestamp) -> Option<AgentOutput> {
        Some(match self.0.poll(now)? {
            Output::Send(datagram) => AgentOutput::Send(datagram),
            Output::SetIsSm(on) => AgentOutput::IsSm(on),
        })
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.0.deadline()
    }
}
