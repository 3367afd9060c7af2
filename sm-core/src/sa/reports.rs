//! Forwards notices to subscribers as Reports (specification volume 1, 13.4.11 and 15.4.10), with repetitions.
//!
//! Bounded: a subscriber that doesn't answer holds up to [`MOST_OF_ONE`] reports, which are given up one after the other;
//! after a few of them the subscription goes (B46).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use mad::transport::Datagram;
use mad::types::{Gid, Timestamp};
use mad::wire::sa::{Report, SaMad};
use mad::wire::smp::Notice;
use mad::wire::{Attribute, Method};

use super::registry::{SubscriptionId, Subscriptions};
use crate::snapshot::Snapshot;

/// How long a subscriber has to answer.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Times that a report is sent before it is given up.
const TRIES: u32 = 3;
/// Reports of one subscription that wait or are under way.
const MOST_OF_ONE: usize = 64;
/// Reports under way together.
const WINDOW: usize = 128;

#[derive(Debug)]
struct Pending {
    subscription: SubscriptionId,
    datagram: Datagram,
    tries: u32,
    due: Timestamp,
}

/// Reports that wait and are under way.
#[derive(Debug, Default)]
pub(super) struct Reports {
    waiting: VecDeque<(SubscriptionId, Datagram)>,
    of_one: BTreeMap<SubscriptionId, usize>,
    /// By the lower 32 bits of the transaction ID: the kernel owns the upper ones.
    pending: BTreeMap<u32, Pending>,
    due: BTreeSet<(Timestamp, u32)>,
    next_tid: u32,
    /// Reports that were dropped or given up.
    pub(super) lost: u64,
}

impl Reports {
    /// Queues a notice for everybody who subscribed to it.
    pub(super) fn forward(
        &mut self,
        snapshot: &Snapshot,
        subscriptions: &Subscriptions,
        notice: &Notice,
        issuer: Gid,
    ) {
        for (id, subscription) in subscriptions.matching(snapshot, notice, issuer) {
            let count = self.of_one.entry(id).or_insert(0);
            if *count >= MOST_OF_ONE {
                self.lost += 1;
                continue;
            }
            *count += 1;
            let mut mad = SaMad::request(Method::REPORT, Report::ID, 0);
            let _fits = Report::new(*notice, issuer).encode(&mut mad.data);
            self.waiting.push_back((id, Datagram { address: subscription.address, mad: mad.into_mad() }));
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
                if let Some(gone) = subscriptions.failed(pending.subscription) {
                    tracing::info!(lid = gone.address.lid, guid = %gone.port, "a subscriber does not answer reports: removed");
                }
            }
        }
        while self.pending.len() < WINDOW {
            let (subscription, mut datagram) = self.waiting.pop_front()?;
            if subscriptions.get(subscription).is_none() {
                self.count_down(subscription);
                continue;
            }
            let tid = self.next_tid;
            self.next_tid = self.next_tid.wrapping_add(1);
            datagram.mad.header.transaction_id.set(tid.into());
            let due = now + TIMEOUT;
            self.pending.insert(tid, Pending { subscription, datagram, tries: 1, due });
            self.due.insert((due, tid));
            return Some(datagram);
        }
        None
    }

    /// When [`Reports::poll_send`] has something to send again.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.due.first().map(|(due, _)| *due)
    }

    fn take(&mut self, tid: u32) -> Option<Pending> {
        let pending = self.pending.remove(&tid)?;
        self.due.remove(&(pending.due, tid));
        self.count_down(pending.subscription);
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
