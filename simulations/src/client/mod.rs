//! Clients of subnet administration on a host: what a kernel's multicast module and IPoIB, and programs above them, ask of
//! the subnet manager, and when.
//!
//! Modelled on Linux (`drivers/infiniband/core/multicast.c`, `sa_query.c`, `ulp/ipoib`): a request waits three seconds for
//! its answer and gets a new transaction ID each time; after a refusal or silence the pause doubles from one second to
//! sixteen; nothing is asked while the port is not Active or knows no subnet manager; everything is registered anew when the
//! port becomes Active, gets another LID or is told so by ClientReregister. A group of IPoIB waits for the broadcast group,
//! whose properties it takes over.
//!
//! Sans-IO: an [`Agent`], without a clock and without randomness. Cost: O(what it registers) for each event.

mod request;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use mad::transport::{Address, Datagram};
use mad::types::{Gid, Guid, Lid, MulticastLid, PortState, ServiceLevel, Timestamp};
use mad::wire::sa::{JoinState, McMemberRecord, PathRecord, Report, SaMad};
use mad::wire::{Attribute, Mad, Method, MgmtClass, Status};

pub use self::request::Thing;
use crate::device::DevicePort;
use crate::world::{Agent, AgentOutput, PortEvent, Registration};

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(3);
/// The pause after a first failure; twice as long after each further one.
const PAUSE: Duration = Duration::from_secs(1);
/// Doublings at most: IPoIB's longest pause is 16 s.
const DOUBLINGS: u32 = 4;

/// What a client does.
#[derive(Clone, Debug, Default)]
pub struct Habits {
    /// Groups that it joins, and how.
    pub groups: Vec<(Gid, JoinState)>,
    /// Services that it offers, by ServiceID.
    pub services: Vec<u64>,
    /// Lease of the services in seconds, renewed when half of it is over; without end when `None`.
    pub lease: Option<u32>,
    /// Traps that it subscribes to.
    pub traps: Vec<u16>,
    /// PortGUIDs to which it asks a path.
    pub paths: Vec<Guid>,
    /// When it begins.
    pub start: Timestamp,
    /// Whether it registers once only, whatever it is told (as drivers do that don't see a change of the subnet manager, B61).
    pub deaf: bool,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests sent.
    pub asked: u64,
    /// Answers with status 0.
    pub granted: u64,
    /// Answers with another status.
    pub refused: u64,
    /// Requests that nobody answered in time.
    pub unanswered: u64,
    /// Reports that came.
    pub reports: u64,
}

/// The port as its driver tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Port {
    guid: Guid,
    prefix: u64,
    lid: Option<Lid>,
    sm: Option<Lid>,
    sl: ServiceLevel,
    active: bool,
}

impl Port {
    fn of(port: &DevicePort) -> Self {
        Self {
            guid: Guid(port.guid),
            prefix: port.info.gid_prefix.get(),
            lid: port.info.lid(),
            sm: port.sm_lid(),
            sl: port.info.sm_sl(),
            active: port.state() == PortState::Active,
        }
    }

    const fn gid(&self) -> Gid {
        Gid::new(self.prefix, self.guid)
    }

    /// Where the SA is; `None` while it can't be asked.
    fn sa(&self) -> Option<Address> {
        (self.active && self.lid.is_some()).then_some(())?;
        self.sm.map(|lid| Address::gsi(lid.get(), self.sl))
    }
}

/// Where a thing stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// As it is wanted.
    Rest,
    /// To be asked for, or given back.
    Due(Timestamp),
    /// Asked for under a transaction ID, and how long the answer is waited for.
    Asked { tid: u32, until: Timestamp },
}

/// Something that is registered or asked for.
#[derive(Clone, Copy, Debug)]
struct Item {
    thing: Thing,
    /// Whether it is wanted; else it is given back.
    wanted: bool,
    stage: Stage,
    /// Failures in a row.
    failures: u32,
    /// Whether the SA may have it, acknowledged or not.
    touched: bool,
    /// What the SA acknowledged last, and has not been given back.
    acknowledged: Option<Acknowledged>,
}

impl Item {
    /// The group that has to be joined before this is asked for. To leave, nothing has to be joined.
    fn waits_for(&self) -> Option<Gid> {
        self.thing.waits_for().filter(|_| self.wanted)
    }
}

/// What an acknowledgement said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Acknowledged {
    Member(McMemberRecord),
    Path(u16),
    Other,
}

/// A client.
#[derive(Debug)]
pub struct Client {
    habits: Habits,
    items: Vec<Item>,
    port: Option<Port>,
    next_tid: u32,
    /// Answers to reports.
    replies: VecDeque<Datagram>,
    /// What was counted so far.
    pub counts: Counts,
}

impl Client {
    /// A client that has asked nothing yet.
    pub fn new(habits: Habits) -> Self {
        let mut things: Vec<Thing> = Vec::new();
        for (mgid, how) in &habits.groups {
            // IPoIB joins its broadcast group before all others.
            let broadcast = request::broadcast_of(*mgid);
            for (mgid, how) in [(broadcast, JoinState::FULL_MEMBER), (Some(*mgid), *how)] {
                let Some(mgid) = mgid else { continue };
                let known =
                    |thing: &Thing| matches!(thing, Thing::Group { mgid: known, .. } if *known == mgid);
                if !things.iter().any(known) {
                    things.push(Thing::Group { mgid, how });
                }
            }
        }
        things.extend(habits.services.iter().map(|id| Thing::Service { id: *id, lease: habits.lease }));
        things.extend(habits.traps.iter().map(|trap| Thing::Trap(*trap)));
        things.extend(habits.paths.iter().map(|to| Thing::Path(*to)));
        let item = |thing| Item {
            thing,
            wanted: true,
            stage: Stage::Due(habits.start),
            failures: 0,
            touched: false,
            acknowledged: None,
        };
        Self {
            items: things.into_iter().map(item).collect(),
            habits,
            port: None,
            next_tid: 1,
            replies: VecDeque::new(),
            counts: Counts::default(),
        }
    }

    /// Registers everything, or gives it all back, from `start` on.
    pub fn want(&mut self, wanted: bool, start: Timestamp) {
        for item in &mut self.items {
            item.wanted = wanted;
            item.failures = 0;
            item.stage = if wanted || item.touched { Stage::Due(start) } else { Stage::Rest };
        }
    }

    /// What the SA acknowledged and was not given back, with the MLID of a group.
    pub fn acknowledged(&self) -> impl Iterator<Item = (Registration, Option<MulticastLid>)> + '_ {
        self.items.iter().filter(|item| item.wanted).filter_map(|item| {
            let mlid = match item.acknowledged? {
                Acknowledged::Member(record) => record.mlid(),
                Acknowledged::Path(_) | Acknowledged::Other => None,
            };
            Some((item.thing.registration(self.port?.guid)?, mlid))
        })
    }

    /// What is wanted and was not acknowledged since there was a reason to ask for it.
    pub fn open(&self) -> impl Iterator<Item = &Thing> {
        let open = |item: &&Item| {
            item.wanted && (item.acknowledged.is_none() || matches!(item.stage, Stage::Asked { .. }))
        };
        self.items.iter().filter(open).map(|item| &item.thing)
    }

    /// The DLIDs of the paths that it was told last, with the PortGUIDs that they lead to.
    pub fn paths(&self) -> impl Iterator<Item = (Guid, u16)> + '_ {
        self.items.iter().filter_map(|item| match (item.thing, item.acknowledged?) {
            (Thing::Path(to), Acknowledged::Path(dlid)) => Some((to, dlid)),
            _ => None,
        })
    }

    /// Everything that is wanted is to be asked for, whatever was acknowledged.
    fn begin_anew(&mut self, now: Timestamp) {
        if self.habits.deaf {
            return;
        }
        let start = now.max(self.habits.start);
        for item in self.items.iter_mut().filter(|item| item.wanted) {
            (item.stage, item.failures) = (Stage::Due(start), 0);
        }
    }

    /// The broadcast group's record, where it was joined.
    fn broadcast(&self, of: Gid) -> Option<McMemberRecord> {
        self.items.iter().find_map(|item| match (item.thing, item.acknowledged?) {
            (Thing::Group { mgid, .. }, Acknowledged::Member(record)) if mgid == of => Some(record),
            _ => None,
        })
    }

    fn answered(&mut self, mad: &SaMad, now: Timestamp) {
        let tid = mad.header.transaction_id.get() as u32;
        let asked = |item: &&mut Item| matches!(item.stage, Stage::Asked { tid: own, .. } if own == tid);
        let Some(item) = self.items.iter_mut().find(asked) else { return };
        let status = mad.header.status();
        // Also when there was nothing to give back.
        let gave_back = !item.wanted && status != Status::BUSY;
        if status.is_ok() || gave_back {
            self.counts.granted += 1;
            item.failures = 0;
        } else {
            self.counts.refused += 1;
            item.failures += 1;
            item.stage = Stage::Due(now + pause(item.failures));
            return;
        }
        if gave_back {
            (item.acknowledged, item.touched, item.stage) = (None, false, Stage::Rest);
            return;
        }
        item.acknowledged = Some(match item.thing {
            Thing::Group { .. } => match McMemberRecord::decode(&mad.data) {
                Some(record) => Acknowledged::Member(record),
                None => return,
            },
            Thing::Path(_) => match PathRecord::decode(&mad.data) {
                Some(path) => Acknowledged::Path(path.dlid.get()),
                None => return,
            },
            Thing::Service { .. } | Thing::Trap(_) => Acknowledged::Other,
        });
        item.stage = match item.thing {
            Thing::Service { lease: Some(lease), .. } => {
                Stage::Due(now + Duration::from_secs(lease.into()) / 2)
            }
            _ => Stage::Rest,
        };
    }

    /// The next request that is due.
    fn ask(&mut self, now: Timestamp) -> Option<Datagram> {
        let port = self.port?;
        let address = port.sa()?;
        for index in 0..self.items.len() {
            let item = self.items[index];
            if !matches!(item.stage, Stage::Due(at) if at <= now) {
                continue;
            }
            let broadcast = match item.waits_for() {
                None => None,
                Some(mgid) => match self.broadcast(mgid) {
                    Some(record) => Some(record),
                    None => continue,
                },
            };
            let tid = self.next_tid;
            self.next_tid = self.next_tid.wrapping_add(1).max(1);
            let mut mad = item.thing.request(port.gid(), item.wanted, broadcast.as_ref());
            mad.header.transaction_id.set(tid.into());
            let item = &mut self.items[index];
            (item.stage, item.touched) = (Stage::Asked { tid, until: now + PATIENCE }, true);
            self.counts.asked += 1;
            return Some(Datagram { address, mad: mad.into_mad() });
        }
        None
    }

    fn give_up(&mut self, now: Timestamp) {
        for item in &mut self.items {
            if matches!(item.stage, Stage::Asked { until, .. } if until <= now) {
                self.counts.unanswered += 1;
                item.failures += 1;
                item.stage = Stage::Due(now + pause(item.failures));
            }
        }
    }
}

fn pause(failures: u32) -> Duration {
    PAUSE * 2_u32.pow(failures.saturating_sub(1).min(DOUBLINGS))
}

impl Agent for Client {
    fn accepts(&self, mad: &Mad) -> bool {
        mad.header.mgmt_class() == MgmtClass::SUBN_ADM && mad.header.method() == Method::REPORT
    }

    fn listens(&self) -> bool {
        true
    }

    fn port_event(&mut self, port: &DevicePort, event: PortEvent, now: Timestamp) {
        let new = Port::of(port);
        let old = self.port.replace(new);
        let rose = new.active && old.is_some_and(|old| !old.active);
        let moved = old.is_some_and(|old| old.lid != new.lid);
        if rose || moved || event == PortEvent::Reregister {
            self.begin_anew(now);
        }
    }

    fn receive(&mut self, datagram: Datagram, now: Timestamp) {
        let mad = SaMad::from_mad(datagram.mad);
        if mad.header.method() != Method::REPORT {
            return self.answered(&mad, now);
        }
        if Report::decode(&mad.data).is_some() {
            self.counts.reports += 1;
            let mut reply = mad;
            reply.header.method = Method::REPORT_RESP.0;
            self.replies.push_back(Datagram { address: datagram.address, mad: reply.into_mad() });
        }
    }

    fn poll(&mut self, now: Timestamp) -> Option<AgentOutput> {
        self.give_up(now);
        self.replies.pop_front().or_else(|| self.ask(now)).map(AgentOutput::Send)
    }

    fn deadline(&self) -> Option<Timestamp> {
        let can_ask = self.port.is_some_and(|port| port.sa().is_some());
        let due = |item: &Item| match item.stage {
            Stage::Rest => None,
            Stage::Due(at) => {
                let waits = item.waits_for().is_some_and(|mgid| self.broadcast(mgid).is_none());
                (can_ask && !waits).then_some(at)
            }
            Stage::Asked { until, .. } => Some(until),
        };
        self.items.iter().filter_map(due).min()
    }
}
