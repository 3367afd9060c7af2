//! The state machine with its planning done on the spot: for virtual time, where a plan takes none, and for one thread.

use mad::transport::{Datagram, Received};
use mad::types::Timestamp;

use super::{Action, Event, Report, Sm};
use crate::plan;

/// What is left to do for whoever drives [`Inline`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are datagrams; a box would cost an allocation for each"
)]
pub enum Output {
    /// Send a datagram.
    Send(Datagram),
    /// Show or hide the port's IsSM bit.
    SetIsSm(bool),
}

/// A subnet manager without threads and files. Reports are collected; LIDs to be saved are in the last plan.
#[derive(Debug)]
pub struct Inline {
    /// The machine.
    pub sm: Sm,
    /// Reports of all rounds so far.
    pub reports: Vec<Report>,
    started: bool,
}

impl Inline {
    /// Takes a machine that has not been given an event yet.
    pub const fn new(sm: Sm) -> Self {
        Self { sm, reports: Vec::new(), started: false }
    }

    /// Something came in.
    pub fn receive(&mut self, datagram: Datagram, now: Timestamp) {
        self.sm.handle(Event::Received(Received::Datagram(datagram)), now);
    }

    /// Anything else happened.
    pub fn handle(&mut self, event: Event, now: Timestamp) {
        self.sm.handle(event, now);
    }

    /// What is to be done now; until it gives `None`.
    pub fn poll(&mut self, now: Timestamp) -> Option<Output> {
        if !self.started || self.sm.deadline().is_some_and(|at| at <= now) {
            self.started = true;
            self.sm.handle(Event::Time, now);
        }
        loop {
            match self.sm.poll_action(now)? {
                Action::Send(datagram, _) => return Some(Output::Send(datagram)),
                Action::SetIsSm(on) => return Some(Output::SetIsSm(on)),
                Action::Plan(input) => {
                    let result = plan::plan(&input);
                    drop(input);
                    self.sm.handle(Event::Planned(Box::new(result)), now);
                }
                Action::Report(report) => self.reports.push(*report),
                Action::Publish(_)
                | Action::Withdraw
                | Action::SaveLids(_)
                | Action::SaveQuirks(_)
                | Action::AnotherFabric
                | Action::Notice(_) => {}
            }
        }
    }

    /// When to poll again though nothing came in.
    pub fn deadline(&self) -> Option<Timestamp> {
        if self.started { self.sm.deadline() } else { Some(Timestamp::ZERO) }
    }
}
