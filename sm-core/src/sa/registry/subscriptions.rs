//! Subscriptions to notices (specification volume 1, 13.4.8.3 and 13.4.11; o13-12.1.1 ff.).
//!
//! Cost: O(subscriptions) for a notice, O(log subscriptions) to subscribe.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mad::transport::Address;
use mad::types::{Gid, Guid, Lid, Timestamp};
use mad::wire::Status;
use mad::wire::sa::{InformInfo, InformInfoRecord};
use mad::wire::smp::{Notice, TrapDetails};
use zerocopy::IntoBytes;

use crate::snapshot::{EndPort, Snapshot};

/// The most subscriptions that are held; beyond, NO_RESOURCES.
const MOST: usize = 100_000;

/// The most subscriptions of one port.
const MOST_OF_PORT: usize = 256;

/// How long a subscriber may answer no report before its subscription is removed (B46). Not at once: while a switch is away
/// the answers to several reports are lost together, and nobody would tell the subscriber.
const MOST_SILENCE: Duration = Duration::from_secs(60);

/// Identifies a subscription for as long as it is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriptionId(pub(super) u64);

/// A subscription.
#[derive(Clone, Debug)]
pub struct Subscription {
    /// Where reports go: the way by which the subscription came.
    pub address: Address,
    /// The subscriber's port.
    pub port: Guid,
    /// What it wants to hear of.
    pub inform: InformInfo,
    /// When it subscribed.
    pub since: Timestamp,
    /// Since when reports are given up that it didn't answer.
    pub silent_since: Option<Timestamp>,
}

/// All subscriptions.
#[derive(Clone, Debug, Default)]
pub struct Subscriptions {
    by_id: BTreeMap<SubscriptionId, Subscription>,
    next: u64,
    /// Subscriptions that changed since they were last taken for the store.
    changed: BTreeSet<SubscriptionId>,
}

impl Subscriptions {
    /// The subscriptions in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = (SubscriptionId, &Subscription)> {
        self.by_id.iter().map(|(id, subscription)| (*id, subscription))
    }

    /// The subscription with this identity, if it is still there.
    pub fn get(&self, id: SubscriptionId) -> Option<&Subscription> {
        self.by_id.get(&id)
    }

    /// Subscribes, or ends a subscription, as `inform` says. The same subscription twice is one. Returns what is answered.
    ///
    /// # Errors
    /// REQ_INVALID to end what isn't there, or for a value of `Subscribe` that is not defined; REQ_DENIED for security
    /// traps by an untrusted requester; NO_RESOURCES.
    pub fn set(
        &mut self,
        requester: &EndPort,
        address: Address,
        inform: &InformInfo,
        trusted: bool,
        now: Timestamp,
    ) -> Result<InformInfo, Status> {
        let mut kept = *inform;
        kept.subscribe = 1;
        if inform.subscribe == 1 {
            kept.set_qpn(address.qpn.0);
        }
        let same = |subscription: &Subscription| {
            subscription.port == requester.guid
                && (subscription.address.qpn == address.qpn || subscription.address.qpn.0 == inform.qpn())
                && wants_same(&subscription.inform, &kept)
        };
        let found = self.by_id.iter().find(|(_, subscription)| same(subscription)).map(|(id, _)| *id);
        match (inform.subscribe, found) {
            (1, _) if !trusted && names_security_trap(inform) => return Err(Status::SA_REQ_DENIED),
            (1, Some(id)) => {
                if let Some(subscription) = self.by_id.get_mut(&id) {
                    (subscription.address, subscription.silent_since) = (address, None);
                    self.changed.insert(id);
                }
            }
            (1, None) => {
                let of_port = self.by_id.values().filter(|s| s.port == requester.guid).count();
                if of_port >= MOST_OF_PORT || self.by_id.len() >= MOST {
                    return Err(Status::SA_NO_RESOURCES);
                }
                let id = SubscriptionId(self.next);
                self.next += 1;
                let port = requester.guid;
                self.changed.insert(id);
                self.by_id
                    .insert(id, Subscription { address, port, inform: kept, since: now, silent_since: None });
            }
            (0, Some(id)) => {
                self.changed.insert(id);
                self.by_id.remove(&id);
            }
            _ => return Err(Status::SA_REQ_INVALID),
        }
        kept.subscribe = inform.subscribe;
        Ok(kept)
    }

    /// Who is to hear of a notice that `issuer` issued, of those who may.
    pub fn matching<'a>(
        &'a self,
        snapshot: &'a Snapshot,
        notice: &'a Notice,
        issuer: Gid,
        may: &'a dyn Fn(&EndPort) -> bool,
    ) -> impl Iterator<Item = (SubscriptionId, &'a Subscription)> {
        self.iter().filter(move |(_, subscription)| {
            wants(snapshot, &subscription.inform, notice, issuer)
                && snapshot.port_by_guid(subscription.port).is_some_and(may)
                && may_hear(snapshot, subscription, notice)
        })
    }

    /// A report was answered.
    pub fn answered(&mut self, id: SubscriptionId) {
        if let Some(subscription) = self.by_id.get_mut(&id) {
            subscription.silent_since = None;
        }
    }

    /// A report was given up. Returns the subscription when it was removed for that (B46).
    pub fn failed(&mut self, id: SubscriptionId, now: Timestamp) -> Option<Subscription> {
        let since = *self.by_id.get_mut(&id)?.silent_since.get_or_insert(now);
        if now - since < MOST_SILENCE {
            return None;
        }
        self.changed.insert(id);
        self.by_id.remove(&id)
    }

    /// What changed since the last call, with what is left of it.
    pub(super) fn take_changed(&mut self) -> Vec<(SubscriptionId, Option<&Subscription>)> {
        let changed = std::mem::take(&mut self.changed);
        changed.into_iter().map(|id| (id, self.by_id.get(&id))).collect()
    }

    /// Puts back a subscription.
    pub(super) fn insert(&mut self, id: SubscriptionId, subscription: Subscription) {
        self.next = self.next.max(id.0.saturating_add(1));
        self.by_id.insert(id, subscription);
    }

    /// Removes the subscriptions of a port, since it is gone for good (B46).
    pub fn remove_port(&mut self, guid: Guid) {
        let of_port = self.by_id.iter().filter(|(_, subscription)| subscription.port == guid);
        self.changed.extend(of_port.map(|(id, _)| *id));
        self.by_id.retain(|_, subscription| subscription.port != guid);
    }

    /// The records; `Enum` counts the subscriptions of one subscriber. The QPN is shown to trusted requesters only.
    pub fn records(&self, snapshot: &Snapshot, trusted: bool) -> Vec<InformInfoRecord> {
        let mut counts: BTreeMap<Guid, u16> = BTreeMap::new();
        let record = |subscription: &Subscription| {
            let count = counts.entry(subscription.port).or_insert(0);
            let mut inform = subscription.inform;
            if !trusted {
                inform.set_qpn(0);
            }
            let gid = Gid::new(snapshot.sm.gid_prefix, subscription.port);
            let record = InformInfoRecord::new(gid, *count, inform);
            *count = count.wrapping_add(1);
            record
        };
        self.by_id.values().map(record).collect()
    }
}

/// Whether two subscriptions ask for the same; the QPN and the response time play no part.
fn wants_same(a: &InformInfo, b: &InformInfo) -> bool {
    let bare = |inform: &InformInfo| {
        let mut inform = *inform;
        inform.set_qpn(0);
        inform.set_resp_time_value(0);
        inform
    };
    bare(a).as_bytes() == bare(b).as_bytes()
}

/// Traps 256 to 259 say which keys are tried where: for trusted subscribers only. All-traps subscriptions don't name them.
fn names_security_trap(inform: &InformInfo) -> bool {
    inform.is_generic != 0 && (256..=259).contains(&inform.trap_number_or_device_id.get())
}

/// Whether a subscription covers a notice.
fn wants(snapshot: &Snapshot, inform: &InformInfo, notice: &Notice, issuer: Gid) -> bool {
    let issuer_fits = match inform.gid() {
        // A port is the same by whichever of its GIDs.
        Some(gid) => gid == issuer || snapshot.port_by_gid(gid).map(|p| snapshot.gid_of(p)) == Some(issuer),
        None if inform.lid_range_begin.get() == InformInfo::ALL => true,
        None => {
            let (begin, end) = (inform.lid_range_begin.get(), inform.lid_range_end.get());
            // An end of 0 is a range of one.
            (begin..=end.max(begin)).contains(&notice.issuer_lid.get())
        }
    };
    let kind = inform.notice_type.get();
    let number = inform.trap_number_or_device_id.get();
    let producer = inform.producer_type_or_vendor_id();
    issuer_fits
        && (inform.is_generic != 0) == notice.is_generic()
        && (kind == InformInfo::ALL || kind == u16::from(notice.notice_type_raw()))
        && (number == InformInfo::ALL || number == notice.trap_number_or_device_id.get())
        && (producer == InformInfo::ALL_PRODUCERS || producer == notice.producer_type_or_vendor_id())
}

/// A subscriber hears of ports that it shares a partition with; of multicast groups everybody who may join them.
fn may_hear(snapshot: &Snapshot, subscription: &Subscription, notice: &Notice) -> bool {
    let Some(subscriber) = snapshot.port_by_guid(subscription.port) else { return false };
    let port = match notice.details() {
        TrapDetails::GidInService(data) | TrapDetails::GidOutOfService(data) => {
            snapshot.port_by_gid(data.gid())
        }
        _ => notice.issuer_lid().and_then(|lid: Lid| snapshot.port_at(lid)),
    };
    let security = notice.trap_number().is_some_and(|number| (256..=259).contains(&number));
    let named = names_security_trap(&subscription.inform);
    port.is_none_or(|port| port.end == subscriber.end || subscriber.shares_partition(port))
        && (!security || named)
}
