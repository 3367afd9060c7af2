//! The subnet manager's state machine as an agent of the world.

use std::collections::VecDeque;

use mad::transport::{Datagram, Received};
use mad::types::Timestamp;
use mad::wire::{Mad, MgmtClass};
use simulations::world::{Agent, AgentId, AgentOutput, End, World};
use sm_core::plan;
use sm_core::settings::SmSettings;
use sm_core::sm::{Action, Event, Report, Role, Sm};
use sm_core::store::Restored;

/// A subnet manager on a port. Plans in no time; keeps its reports.
pub(crate) struct Manager {
    sm: Sm,
    out: VecDeque<AgentOutput>,
    /// Of every round, oldest first.
    pub(crate) reports: Vec<Report>,
}

impl Manager {
    pub(crate) fn new(settings: SmSettings) -> Self {
        let mut sm = Sm::new(settings, Restored::default(), false, 1);
        sm.handle(Event::Time, Timestamp::ZERO);
        Self { sm, out: VecDeque::new(), reports: Vec::new() }
    }

    pub(crate) fn role(&self) -> Role {
        self.sm.role()
    }

    fn drain(&mut self, now: Timestamp) {
        while let Some(action) = self.sm.poll_action(now) {
            match action {
                Action::Send(datagram, _) => self.out.push_back(AgentOutput::Send(datagram)),
                Action::SetIsSm(on) => self.out.push_back(AgentOutput::IsSm(on)),
                Action::Plan(input) => {
                    let planned = plan::plan(&input);
                    self.sm.handle(Event::Planned(Box::new(planned)), now);
                }
                Action::Report(report) => self.reports.push(*report),
                Action::Publish(_) | Action::SaveLids(_) | Action::SaveQuirks(_) | Action::Notice(_) => {}
            }
        }
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
        self.sm.is_settled()
    }

    fn receive(&mut self, datagram: Datagram, now: Timestamp) {
        self.sm.handle(Event::Received(Received::Datagram(datagram)), now);
    }

    fn poll(&mut self, now: Timestamp) -> Option<AgentOutput> {
        if self.out.is_empty() {
            if self.sm.deadline().is_some_and(|due| due <= now) {
                self.sm.handle(Event::Time, now);
            }
            self.drain(now);
        }
        self.out.pop_front()
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.sm.deadline()
    }
}

/// Puts a subnet manager on port 1 of a host; `None` when there is no such host.
pub(crate) fn start(world: &mut World, node: &str, settings: SmSettings) -> Option<AgentId> {
    let node = world.find_name(node)?;
    world.attach(End::new(node, 1), Box::new(Manager::new(settings)))
}
