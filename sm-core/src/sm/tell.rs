//! Telling clients to register anew, at the pace at which the SA can take them in (B72).
//!
//! A few are told with the Set that gives the reason. Where there are many, as after a takeover, and where a port's
//! registrations were dropped though it never left ACTIVE (B37), each gets a Set of its own, spread over time, and the
//! confirmation is waited for.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use mad::types::{Guid, PortState, Timestamp};
use mad::wire::smp::PortInfo;

use super::{Sm, Token};
use crate::apply::reregister_request;
use crate::observed::Observed;
use crate::request::Answer;

/// The pause after those told in one go.
const PAUSE: Duration = Duration::from_millis(10);
/// Sets without confirmation after which a port is given up until there is a new reason.
const TRIES: u32 = 3;

/// Ports that have to be told, and ports that left.
#[derive(Debug, Default)]
pub(super) struct Tell {
    waiting: VecDeque<(Guid, u32)>,
    queued: BTreeSet<Guid>,
    next: Timestamp,
    /// End ports that were in a picture once and are not now: the SA has dropped what they registered.
    absent: BTreeSet<Guid>,
}

impl Tell {
    pub(super) fn add(&mut self, ports: impl IntoIterator<Item = Guid>) {
        for guid in ports {
            if self.queued.insert(guid) {
                self.waiting.push_back((guid, 0));
            }
        }
    }

    /// These were told by another Set.
    pub(super) fn done(&mut self, ports: &BTreeSet<Guid>) {
        if ports.is_empty() || self.queued.is_empty() {
            return;
        }
        self.queued.retain(|guid| !ports.contains(guid));
        self.waiting.retain(|(guid, _)| !ports.contains(guid));
    }

    /// Nobody is told any more; who takes over tells whom it has to.
    pub(super) fn abandon(&mut self) {
        self.waiting.clear();
        self.queued.clear();
    }

    /// When the next ones are due.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        (!self.waiting.is_empty()).then_some(self.next)
    }

    /// Compares two pictures: who left is noted, who is back and was ACTIVE all the time must be told (B37).
    pub(super) fn compare(&mut self, before: &Observed, now: &Observed) {
        let ports = |o: &Observed| -> BTreeSet<Guid> {
            o.fabric.nodes().flat_map(|(_, n)| n.end_ports().map(|(_, p)| p.guid)).collect()
        };
        let present = ports(now);
        self.absent.extend(ports(before).difference(&present));
        if self.absent.is_empty() {
            return;
        }
        for (_, node) in now.fabric.nodes() {
            for (_, port) in node.end_ports().filter(|(_, p)| p.state == PortState::Active) {
                if self.absent.contains(&port.guid) {
                    self.add([port.guid]);
                }
            }
        }
        self.absent.retain(|guid| !present.contains(guid));
    }
}

impl Sm {
    /// Sends the next few, if it is time.
    pub(super) fn tell_some(&mut self, now: Timestamp) {
        if !self.may_write() || self.tell.waiting.is_empty() || self.tell.next > now {
            return;
        }
        // At less than one in a pause, the pause is as long as one takes.
        let each = Duration::from_secs(1) / self.settings.reregister_per_s.max(1);
        let batch = (PAUSE.as_nanos() / each.as_nanos().max(1)).max(1) as usize;
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
                    self.transactions.submit(request.into_transaction(), Token::Tell { guid, tries });
                }
                None => drop(self.tell.queued.remove(&guid)),
            }
        }
    }

    pub(super) fn told(&mut self, guid: Guid, tries: u32, answer: &Answer) {
        if answer.attribute::<PortInfo>().is_none() && tries + 1 < TRIES {
            self.tell.waiting.push_back((guid, tries + 1));
            return;
        }
        self.tell.queued.remove(&guid);
        let port = self.snapshot.as_ref().and_then(|s| s.port_by_guid(guid).map(|p| p.end));
        if let (Some(info), Some(end), Some(observed)) =
            (answer.attribute::<PortInfo>(), port, &mut self.observed)
            && observed.port_info(end).is_some_and(|known| *known != info)
        {
            Arc::make_mut(observed).record_port_info(end, &info);
        }
    }
}
