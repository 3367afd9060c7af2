//! Forwards notices to subscribers as Reports (specification volume 1, 13.4.11 and 15.4.10), with repetitions.
//!
//! Bounded: a subscriber that doesn't answer holds up to [`MOST_OF_ONE`] reports, which are given up one after the other;
//! after a minute of that the subscription goes (B46).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use mad::transport::Datagram;
use mad::types::{Gid, Timestamp};
use mad::wire::sa::{Report, SaMad};
use mad::wire::smp::Notice;
use mad::wire::{Attribute, Method};

use super::registry::{SubscriptionId, Subscriptions};
use crate::snapshot::{EndPort, Snapshot};

/// How long a subscriber has to answer.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Times that a report is sent before it is given up.
const TRIES: u32 = 3;
/// Reports of one subscription that wait or are under way.
const MOST_OF_ONE: usize = 64;
/// Reports under way together.
const WINDOW: usize = 128;
/// Of these, to one LID: who does not answer holds up nobody else.
const WINDOW_OF_LID: usize = 16;

#[derive(Debug)]
struct Pending {
    subscription: SubscriptionId,
    datagram: Datagram,
    tries: u32,
    due: Timestamp,
}

/// The reports to one LID.
#[derive(Debug, Default)]
struct Line {
    waiting: VecDeque<(SubscriptionId, Datagram)>,
    under_way: usize,
    /// Whether it is in [`Reports::turns`].
    has_turn: bool,
}

impl Line {
    /// Whether it is to be given a turn.
    fn wants_turn(&self) -> bool {
        !self.has_turn && !self.waiting.is_empty() && self.under_way < WINDOW_OF_LID
    }
}

/// Reports that wait and are under way.
#[derive(Debug, Default)]
pub(super) struct Reports {
    lines: BTreeMap<u16, Line>,
    /// LIDs with reports that wait and may be sent, in turn.
    turns: VecDeque<u16>,
    of_one: BTreeMap<SubscriptionId, usize>,
    /// By the lower 32 bits of the transaction ID: the kernel owns the upper ones.
    pending: BTreeMap<u32, Pending>,
    due: BTreeSet<(Timestamp, u32)>,
    next_tid: u32,
    /// Reports that were dropped or given up.
    pub(super) lost: u64,
}

impl Reports {
    /// Queues a notice for everybody who subscribed to it and may hear of it.
    pub(super) fn forward(
        &mut self,
        snapshot: &Snapshot,
        subscriptions: &Subscriptions,
        notice: &Notice,
        issuer: Gid,
        may: &dyn Fn(&EndPort) -> bool,
    ) {
        for (id, subscription) in subscriptions.matching(snapshot, notice, issuer, may) {
            let count = self.of_one.entry(id).or_insert(0);
            if *count >= MOST_OF_ONE {
                self.lost += 1;
                continue;
            }
            *count += 1;
            let mut mad = SaMad::request(Method::REPORT, Report::ID, 0);
            let _fits = Report::new(*notice, issuer).encode(&mut mad.data);
            let datagram = Datagram { address: subscription.address, mad: mad.into_mad() };
            self.lines.entry(datagram.address.lid).or_default().waiting.push_back((id, datagram));
            self.settle_line(datagram.address.lid);
        }
    }

    /// Takes the answer to a report; false when it answers none that is under way.
    pub(super) fn receive(&mut self, datagram: &Datagram, subscriptions: &mut Subscriptions) -> bool {
        let tid = datagram.mad.header.transaction_id.get() as u32;
        let fits = |pending: &Pending| pending.datagram.address.lid == datagram.address.lid;
        if !self.pending.get(&tid).is_some_and(fits) {
            return false;
        }
        if let Some(pending) = self.take(tid) {
            subscriptions.answered(pending.subscription);
        }
        true
    }

    /// The next report to send.
    pub(super) fn poll_send(
        &mut self,
        subscriptions: &mut Subscriptions,
        now: Timestamp,
    ) -> Option<Datagram> {
        while let Some((due, tid)) = self.due.first().copied().filter(|(due, _)| *due <= now) {
            self.due.remove(&(due, tid));
            let alive = |pending: &Pending| subscriptions.get(pending.subscription).is_some();
            if let Some(pending) = self.pending.get_mut(&tid).filter(|p| p.tries < TRIES && alive(p)) {
                pending.tries += 1;
                pending.due = now + TIMEOUT * 2_u32.pow(pending.tries - 1);
                self.due.insert((pending.due, tid));
                return Some(pending.datagram);
            }
            if let Some(pending) = self.take(tid) {
                self.lost += 1;
                if let Some(gone) = subscriptions.failed(pending.subscription, now) {
                    tracing::info!(lid = gone.address.lid, guid = %gone.port, "a subscriber does not answer reports: removed");
                }
            }
        }
        while self.pending.len() < WINDOW {
            let (subscription, mut datagram) = self.next_waiting()?;
            if subscriptions.get(subscription).is_none() {
                self.count_down(subscription);
                self.settle_line(datagram.address.lid);
                continue;
            }
            let tid = self.next_tid;
            self.next_tid = self.next_tid.wrapping_add(1);
            datagram.mad.header.transaction_id.set(tid.into());
            let due = now + TIMEOUT;
            self.lines.entry(datagram.address.lid).or_default().under_way += 1;
            self.pending.insert(tid, Pending { subscription, datagram, tries: 1, due });
            self.due.insert((due, tid));
            return Some(datagram);
        }
        None
    }

    /// The next report that may be sent; its line has another turn when it may send one more.
    fn next_waiting(&mut self) -> Option<(SubscriptionId, Datagram)> {
        let lid = self.turns.pop_front()?;
        let line = self.lines.get_mut(&lid)?;
        line.has_turn = false;
        let next = line.waiting.pop_front();
        // The one that is taken is about to be under way.
        let more = !line.waiting.is_empty() && line.under_way + 1 < WINDOW_OF_LID;
        if more {
            line.has_turn = true;
            self.turns.push_back(lid);
        }
        next
    }

    /// Gives a line its turn, or forgets it when it is empty.
    fn settle_line(&mut self, lid: u16) {
        let Some(line) = self.lines.get_mut(&lid) else { return };
        if line.wants_turn() {
            line.has_turn = true;
            self.turns.push_back(lid);
        } else if line.waiting.is_empty() && line.under_way == 0 && !line.has_turn {
            self.lines.remove(&lid);
        }
    }

    /// When [`Reports::poll_send`] has something to send again.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.due.first().map(|(due, _)| *due)
    }

    fn take(&mut self, tid: u32) -> Option<Pending> {
        let pending = self.pending.remove(&tid)?;
        self.due.remove(&(pending.due, tid));
        self.count_down(pending.subscription);
        let lid = pending.datagram.address.lid;
        if let Some(line) = self.lines.get_mut(&lid) {
            line.under_way -= 1;
        }
        self.settle_line(lid);
        Some(pending)
    }

    fn count_down(&mut self, subscription: SubscriptionId) {
        if let Some(count) = self.of_one.get_mut(&subscription) {
            *count -= 1;
            if *count == 0 {
                self.of_one.remove(&subscription);
            }
        }
    }
}
