//! The state machine with its planning done on the spot: for virtual time, where a plan takes none, and for one thread.

use mad::transport::{Datagram, Received};
use mad::types::Timestamp;

use super::{Action, Event, Report, Sm};
use crate::plan;

/// A subnet manager without threads and files. Reports are collected; what else is to be done is handed on.
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

    /// What is to be done now, planning and reports aside; until it gives `None`.
    pub fn poll(&mut self, now: Timestamp) -> Option<Action> {
        if !self.started || self.sm.deadline().is_some_and(|at| at <= now) {
            self.started = true;
            self.sm.handle(Event::Time, now);
        }
        loop {
            match self.sm.poll_action(now)? {
                Action::Plan(input) => {
                    let result = plan::plan(&input);
                    drop(input);
                    self.sm.handle(Event::Planned(Box::new(result)), now);
                }
                Action::Report(report) => self.reports.push(*report),
                other => return Some(other),
            }
        }
    }

    /// When to poll again though nothing came in.
    pub fn deadline(&self) -> Option<Timestamp> {
        if self.started { self.sm.deadline() } else { Some(Timestamp::ZERO) }
    }
}
