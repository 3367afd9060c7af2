//! Telling clients to register anew, at the pace at which the SA can take them in (B72).
//!
//! A few are told with the Set that gives the reason. Where there are many, as after a takeover, and where a port comes into
//! the picture that is ACTIVE already (B37), each gets a Set of its own, spread over time, and the confirmation is waited
//! for.
//!
//! Whom the SA *serves*, that is whose registrations it has, if there are any, is kept and mirrored with them: who goes on
//! with a state, after a restart or as another manager, tells those whom that state does not serve, and no others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use mad::types::{Guid, PortState, Timestamp};
use mad::wire::smp::PortInfo;
use routing::fabric::Port;

use super::pace::{self, SaBacklog};
use super::{Action, Sm, Token};
use crate::apply::reregister_request;
use crate::observed::Observed;
use crate::request::Answer;

/// The pause after those told in one go.
const PAUSE: Duration = Duration::from_millis(10);
/// Sets without confirmation after which a port is left alone until the end of the next round.
const TRIES: u32 = 3;

/// Who has been told to register anew, and has confirmed it, since it was last unknown what ports had registered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// How often that became unknown so far, of all ports or of one. Each time what the SA holds may lack something, and may hold what
    /// a port has left since.
    pub doubts: u32,
    /// Which of these was the last that was about all ports; 0: none.
    pub of_all: u32,
    /// Which was the last about a port that has been out of sight.
    pub of_port: BTreeMap<Guid, u32>,
    /// The ports, by PortGUID.
    pub ports: BTreeSet<Guid>,
}

/// Ports that have to be told, and whom the SA serves.
#[derive(Debug, Default)]
pub(super) struct Tell {
    waiting: VecDeque<(Guid, u32)>,
    queued: BTreeSet<Guid>,
    next: Timestamp,
    backlog: SaBacklog,
    /// Ports whose registrations, if they have any, the SA knows; `None`: those of the first picture.
    served: Option<BTreeSet<Guid>>,
    /// `served` is not kept yet as it is now.
    is_new: bool,
    /// Some were told in vain.
    in_vain: bool,
    /// Counts up when the SA goes on with other registrations: who was told before may have registered before, and that is lost.
    era: u32,
    /// `served` is what was restored at the start, and no fabric was seen since that could belie it.
    restored: bool,
    told: Told,
    /// `told` was not passed on yet as it is now.
    told_is_new: bool,
}

impl Tell {
    /// With the ports that are served by what was restored.
    pub(super) fn with(served: Option<BTreeSet<Guid>>) -> Self {
        Self { restored: served.is_some(), served, ..Self::default() }
    }

    /// The SA goes on with the registrations of these ports.
    pub(super) fn resume(&mut self, served: Option<BTreeSet<Guid>>) {
        (self.served, self.restored) = (served, false);
        self.era = self.era.wrapping_add(1);
        self.told.ports.clear();
        self.told.of_port.clear();
        self.told_is_new = true;
    }

    /// Which registrations the SA goes on with.
    pub(super) const fn era(&self) -> u32 {
        self.era
    }

    /// A first picture as master: whether what was restored at the start had been taken for true until now.
    pub(super) const fn was_restored(&mut self) -> bool {
        std::mem::replace(&mut self.restored, false)
    }

    pub(super) fn add(&mut self, ports: impl IntoIterator<Item = Guid>) {
        for guid in ports {
            if self.queued.insert(guid) {
                self.waiting.push_back((guid, 0));
            }
        }
    }

    /// These were told by another Set, none of them before an era began.
    pub(super) fn done(&mut self, ports: &BTreeSet<Guid>, era: u32) {
        if era != self.era {
            return;
        }
        ports.iter().for_each(|guid| self.note_served(*guid));
        if ports.is_empty() || self.queued.is_empty() {
            return;
        }
        self.queued.retain(|guid| !ports.contains(guid));
        self.waiting.retain(|(guid, _)| !ports.contains(guid));
    }

    /// A port has confirmed that it was told.
    fn note_served(&mut self, guid: Guid) {
        self.told_is_new |= self.told.ports.insert(guid);
        if let Some(served) = &mut self.served {
            self.is_new |= served.insert(guid);
        }
    }

    /// What was sent and not answered is sent again.
    pub(super) fn abandon(&mut self) {
        self.waiting = self.queued.iter().map(|guid| (*guid, 0)).collect();
    }

    /// Nobody is told any more; who takes over tells whom it has to.
    pub(super) fn stand_by(&mut self) {
        let told = Told { doubts: self.told.doubts, of_all: self.told.of_all, ..Told::default() };
        let (era, next, backlog) = (self.era.wrapping_add(1), self.next, self.backlog);
        *self = Self { next, backlog, era, told, ..Self::default() };
    }

    pub(super) const fn note_backlog(&mut self, backlog: SaBacklog) {
        self.backlog = backlog;
    }

    /// When the next ones are due.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        (!self.waiting.is_empty()).then_some(self.next)
    }

    /// Who is missing from a master's picture loses what it registered, sooner or later (B37).
    pub(super) fn retain_present(&mut self, now: &Observed) {
        let Some(served) = &mut self.served else { return };
        let present: BTreeSet<Guid> = end_ports(now).map(|port| port.guid).collect();
        for guid in served.extract_if(.., |guid| !present.contains(guid)) {
            self.is_new = true;
            self.told_is_new = true;
            self.told.doubts = self.told.doubts.wrapping_add(1);
            self.told.of_port.insert(guid, self.told.doubts);
            self.told.ports.remove(&guid);
        }
    }

    /// Ports that are in service and are not served: they registered with somebody else, with a manager before us, or not since
    /// they were dropped (B37). The LID of the subnet manager that they show may be ours all the same, since LIDs are taken
    /// over. They are told, if anybody is (`told`).
    pub(super) fn add_unserved(&mut self, now: &Observed, told: bool) {
        if self.served.is_none() || !told {
            let all = Some(end_ports(now).map(|port| port.guid).collect());
            self.is_new |= self.served != all;
            self.served = all;
        }
        self.in_vain = false;
        let Some(served) = &self.served else { return };
        let unserved =
            end_ports(now).filter(|port| port.state == PortState::Active && !served.contains(&port.guid));
        self.add(unserved.map(|port| port.guid).collect::<Vec<_>>());
    }

    /// What is to be kept, when it has changed; while many are told, one by one, only at the end of a round.
    fn take_new(&mut self, round_ends: bool) -> Option<Arc<BTreeSet<Guid>>> {
        let due = self.is_new && (round_ends || self.queued.is_empty());
        self.is_new &= !due;
        self.served.clone().filter(|_| due).map(Arc::new)
    }

    /// Who has been told, when there is news of it; while many are told, only at the end of a round.
    fn take_told(&mut self, round_ends: bool) -> Option<Arc<Told>> {
        let due = self.told_is_new && (round_ends || self.queued.is_empty());
        self.told_is_new &= !due;
        due.then(|| Arc::new(self.told.clone()))
    }
}

fn end_ports(observed: &Observed) -> impl Iterator<Item = &Port> {
    observed.fabric.nodes().flat_map(|(_, node)| node.end_ports().map(|(_, port)| port))
}

impl Sm {
    /// What ports registered is not known, of any: they are told to register anew.
    pub(super) fn serve_nobody(&mut self) {
        self.tell.resume(Some(BTreeSet::new()));
        self.tell.is_new = true;
        self.tell.told.doubts = self.tell.told.doubts.wrapping_add(1);
        self.tell.told.of_all = self.tell.told.doubts;
        self.save_served(true);
    }

    pub(super) fn save_served(&mut self, round_ends: bool) {
        if let Some(served) = self.tell.take_new(round_ends) {
            self.actions.push_back(Action::SaveServed(served));
        }
        if let Some(told) = self.tell.take_told(round_ends) {
            self.actions.push_back(Action::Told(told));
        }
    }

    /// At the end of a round: who was told in vain is told again.
    pub(super) fn tell_again(&mut self) {
        if let Some(observed) = self.observed.as_ref().filter(|_| self.tell.in_vain && self.election.leads())
        {
            self.tell.add_unserved(observed, self.settings.plan.client_reregister);
        }
        self.save_served(true);
    }

    /// Sends the next few, if it is time.
    pub(super) fn tell_some(&mut self, now: Timestamp) {
        if !self.may_write() || self.tell.waiting.is_empty() || self.tell.next > now {
            return;
        }
        // At less than one in a pause, the pause is as long as one takes.
        let each = Duration::from_secs(1) / self.settings.reregister_per_s.max(1);
        let most = (PAUSE.as_nanos() / each.as_nanos().max(1)).max(1) as usize;
        let (batch, era) = (pace::batch(most, self.tell.backlog), self.tell.era);
        self.tell.next = now + PAUSE.max(each);
        let (Some(observed), Some(snapshot)) = (self.observed.clone(), self.snapshot.clone()) else { return };
        for (guid, tries) in self.tell.waiting.drain(..batch.min(self.tell.waiting.len())).collect::<Vec<_>>()
        {
            let request = snapshot
                .port_by_guid(guid)
                .and_then(|port| reregister_request(&observed, port.end, snapshot.sm.lid));
            match request {
                Some(request) => {
                    let request = request.with_key(&self.ground.keys, &observed);
                    self.transactions.submit(request.into_transaction(), Token::Tell { guid, tries, era });
                }
                None => drop(self.tell.queued.remove(&guid)),
            }
        }
    }

    pub(super) fn told(&mut self, guid: Guid, tries: u32, era: u32, answer: &Answer) {
        if era != self.tell.era {
            if self.tell.queued.contains(&guid) {
                self.tell.waiting.push_back((guid, 0));
            }
            return;
        }
        if answer.attribute::<PortInfo>().is_none() && tries + 1 < TRIES {
            self.tell.waiting.push_back((guid, tries + 1));
            return;
        }
        self.tell.queued.remove(&guid);
        if answer.attribute::<PortInfo>().is_some() {
            self.tell.note_served(guid);
        } else {
            self.tell.in_vain = true;
        }
        self.save_served(false);
        let port = self.snapshot.as_ref().and_then(|s| s.port_by_guid(guid).map(|p| p.end));
        if let (Some(info), Some(end), Some(observed)) =
            (answer.attribute::<PortInfo>(), port, &mut self.observed)
            && observed.port_info(end).is_some_and(|known| *known != info)
        {
            Arc::make_mut(observed).record_port_info(end, &info);
        }
    }
}
