//! Who is master: the comparison with others, standby, and what others may ask of us (specification volume 1, 14.4).
//!
//! Higher priority wins, then the lower port GUID. Whoever finds a master while it is discovering stands by and asks that
//! master for SMInfo at an interval; too many questions without an answer, and it discovers anew.

use std::sync::Arc;

use mad::transactions::Request;
use mad::transport::Datagram;
use mad::types::{DirectedPath, Guid, Timestamp};
use mad::wire::smp::{SmControl, SmInfo, SmState, Smp};
use mad::wire::{Attribute, Status};

use super::{Action, Phase, Role, Sm, Token};
use crate::observed::{Observed, OtherManager};
use crate::request::{Answer, SmpRequest};
use crate::snapshot::Snapshot;

/// The master that a standby watches.
#[derive(Debug, Default)]
pub(super) struct Standby {
    master: Option<(Guid, DirectedPath)>,
    next_poll: Option<Timestamp>,
    unanswered: u32,
}

impl Standby {
    pub(super) const fn deadline(&self) -> Option<Timestamp> {
        self.next_poll
    }
}

impl Sm {
    /// Our state as SMInfo tells it.
    pub(super) const fn sm_state(&self) -> SmState {
        match self.role {
            Role::Discovering => SmState::Discovering,
            Role::Standby => SmState::Standby,
            Role::Master => SmState::Master,
            Role::NotActive => SmState::NotActive,
        }
    }

    /// Whether another manager is to be master rather than we.
    fn is_better(&self, other: &OtherManager) -> bool {
        let key = |priority: u8, guid: Guid| (priority, std::cmp::Reverse(guid));
        key(other.info.priority(), other.guid) > key(self.settings.priority, self.own.guid)
    }

    /// Compares with the managers that a sweep saw (B58). True when we stand by from now on.
    pub(super) fn meets_other_managers(&mut self, observed: &Observed, now: Timestamp) -> bool {
        let state = |m: &OtherManager| m.info.state();
        let yields = |m: &&OtherManager| match (self.role, state(m)) {
            (Role::Master, Some(SmState::Master | SmState::Standby)) => self.is_better(m),
            (Role::Discovering, Some(SmState::Master)) => true,
            (Role::Discovering, Some(SmState::Discovering)) => self.is_better(m),
            _ => false,
        };
        let Some(other) = observed.managers.iter().filter(yields).max_by_key(|m| m.info.priority()).copied()
        else {
            return false;
        };
        let Some(path) = observed.nodes.get(&other.port.node).map(|n| n.path) else { return false };
        if self.role == Role::Master {
            self.control(path, other.guid, SmControl::Handover);
        }
        self.stand_by(other.guid, path, now);
        true
    }

    fn stand_by(&mut self, guid: Guid, path: DirectedPath, now: Timestamp) {
        self.role = Role::Standby;
        let next_poll = Some(now + self.settings.polling_interval);
        self.standby = Standby { master: Some((guid, path)), next_poll, unanswered: 0 };
        self.plan = None;
    }

    /// Set(SMInfo) to another manager.
    fn control(&mut self, path: DirectedPath, guid: Guid, control: SmControl) {
        let info = self.sm_info();
        let request = SmpRequest::set(path, guid, control.to_wire(), &info);
        self.transactions.submit(request.into_transaction(), Token::Control);
    }

    /// A standby's turn: ask the master when it is time. Never begins a sweep by itself.
    pub(super) fn standby_turn(&mut self, now: Timestamp) -> bool {
        if self.role != Role::Standby || self.standby.next_poll.is_none_or(|at| at > now) {
            return false;
        }
        let Some((guid, path)) = self.standby.master else { return false };
        self.standby.next_poll = Some(now + self.settings.polling_interval);
        let request = SmpRequest::get::<SmInfo>(path, guid, 0).into_transaction();
        let timeout = self.settings.polling_interval.min(self.settings.transactions.timeout);
        let once = Request { timeout: Some(timeout), retries: Some(0), ..request };
        self.transactions.submit(once, Token::Poll);
        false
    }

    pub(super) fn polled(&mut self, answer: &Answer, now: Timestamp) {
        if self.role != Role::Standby {
            return;
        }
        match answer.attribute::<SmInfo>() {
            Some(info) if info.state() == Some(SmState::Master) => self.standby.unanswered = 0,
            _ => self.standby.unanswered += 1,
        }
        if self.standby.unanswered > self.settings.polling_retries {
            self.discover(now);
        }
    }

    fn discover(&mut self, _now: Timestamp) {
        self.role = Role::Discovering;
        self.standby = Standby::default();
        self.foreign_tables = true;
        self.wishes.full();
    }

    /// Set(SMInfo) from another manager: the table of 14.4.1, as far as each state allows.
    pub(super) fn controlled(&mut self, datagram: &Datagram, now: Timestamp) {
        let smp = Smp::from_mad(datagram.mad);
        let control = SmControl::from_wire(smp.header.attribute_modifier.get());
        let sender = SmInfo::decode(&smp.data).and_then(|info| info.state());
        let legal = match (self.role, control) {
            (Role::Standby | Role::Master | Role::Discovering, Some(SmControl::Handover)) => {
                sender == Some(SmState::Master)
            }
            (Role::Master, Some(SmControl::Acknowledge)) => true,
            (Role::Standby, Some(SmControl::Disable | SmControl::Discover | SmControl::Acknowledge)) => true,
            (Role::NotActive, Some(SmControl::Standby)) => true,
            _ => false,
        };
        if legal {
            self.obey(control, &smp, now);
        }
        let info = self.sm_info();
        let status = if legal { Status::OK } else { Status::INVALID_FIELD };
        self.reply(datagram, status, |data| info.encode(data));
    }

    fn obey(&mut self, control: Option<SmControl>, smp: &Smp, now: Timestamp) {
        match control {
            Some(SmControl::Handover) => {
                let sender = SmInfo::decode(&smp.data).map_or(Guid::NONE, |info| info.guid());
                if let Some((guid, path)) = self.standby.master.filter(|(guid, _)| *guid == sender) {
                    self.control(path, guid, SmControl::Acknowledge);
                }
                self.discover(now);
                // The one who handed over says MASTER until it has our ACKNOWLEDGE.
                self.role = Role::Master;
            }
            Some(SmControl::Disable) => {
                self.role = Role::NotActive;
                self.standby = Standby::default();
            }
            Some(SmControl::Discover) => self.discover(now),
            Some(SmControl::Standby) => {
                self.role = Role::Discovering;
                self.wishes.full();
            }
            Some(SmControl::Acknowledge) | None => {}
        }
    }

    /// The same tables with a picture in which something was read anew.
    pub(super) fn republish(&mut self) {
        let (Some(old), Some(observed)) = (&self.snapshot, &self.observed) else { return };
        if matches!(self.phase, Phase::Sweeping(_)) {
            return; // the sweep's own end publishes
        }
        let snapshot = Snapshot::new(
            old.generation + 1,
            Arc::clone(observed),
            Arc::clone(&old.graph),
            Arc::clone(&old.routes),
            old.sm,
        );
        let snapshot = Arc::new(snapshot);
        self.snapshot = Some(Arc::clone(&snapshot));
        self.actions.push_back(Action::Publish(snapshot));
    }
}
