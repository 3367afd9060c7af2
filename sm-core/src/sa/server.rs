//! The sans-IO server around [`serve`]: queue, fairness, replies, RMPP transfers, reports.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use mad::rmpp::{Direction, Event, Rmpp, RmppConfig, SendError, TransferKey};
use mad::transport::{Address, Datagram};
use mad::types::{Gid, Guid, Lid, Timestamp};
use mad::wire::ids::sa as ids;
use mad::wire::rmpp::RmppType;
use mad::wire::sa::{GuidInfoRecord, SaMad, SmInfoRecord};
use mad::wire::smp::{GidData, Notice, NoticeType};
use mad::wire::{Attribute, Method, MgmtClass, Status};

use super::answer::{Answer, Request, refuse, serve};
use super::complaints::{Complaint, Complaints};
use super::fair::FairQueue;
use super::figures::ByAttribute;
use super::heavy::is_heavy;
use super::records::unread;
use super::registry::{AliasEvent, GroupEvent, Registry};
use super::reports::Reports;
use super::transfers::Transfers;
use crate::multicast::MulticastDemand;
use crate::sm::Told;
use crate::snapshot::{EndPort, Snapshot};
use crate::store::{Change, Entries, Epoch};

/// Bounds and defaults of a [`Server`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// Requests that may wait, over all requesters; what comes beyond is answered BUSY.
    pub queue: usize,
    /// Requests of one requester that may wait.
    pub queue_per_requester: usize,
    /// Threads beside this one that compute long tables ([`Server::poll_heavy`]); 0: there are none.
    pub workers: usize,
    /// Tables that may be on their way to one requester; beyond, BUSY.
    pub transfers_per_requester: usize,
    /// Bounds of table transfers.
    pub rmpp: RmppConfig,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            queue: 16_384,
            queue_per_requester: 1024,
            workers: 0,
            transfers_per_requester: 512,
            rmpp: RmppConfig {
                max_bytes: 1 << 30,
                // A query of 255 GIDs at either end has 8 KiB.
                max_message: 64 << 10,
                retries_to_strangers: 2,
                ..RmppConfig::default()
            },
        }
    }
}

/// What a [`Server`] counted since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerStatistics {
    /// Datagrams that came.
    pub received: u64,
    /// Requests answered, refusals included.
    pub answered: u64,
    /// Of these, with a status other than 0.
    pub refused: u64,
    /// Requests answered BUSY unread, since the queue or the transfers were full.
    pub busy: u64,
    /// Requests that came while the same one waited, or its table was being sent already.
    pub duplicates: u64,
    /// Datagrams dropped without an answer: of another class, or no request.
    pub dropped: u64,
    /// Reports that a subscriber didn't answer, or that were too many for it.
    pub reports_lost: u64,
}

/// Who asks: base LID of the port, whichever of its LIDs and queue pairs it asks from; otherwise a host that has many would
/// have as many turns.
type Requester = u16;

/// Subnet administration as a state machine: [`Server::receive`] takes datagrams, [`Server::poll_send`] gives those that
/// are to be sent, [`Server::deadline`] says when it wants to be polled again although nothing came.
pub struct Server {
    config: ServerConfig,
    snapshot: Option<Arc<Snapshot>>,
    /// The same with the alias GUIDs of now, once somebody asks.
    picture: Option<Arc<Snapshot>>,
    registry: Registry,
    /// Who was told to register anew, as it was last noted of these registrations.
    told: Option<Arc<Told>>,
    /// Ports of the last picture, to tell which come and go.
    ports: BTreeSet<Guid>,
    waiting: FairQueue<Requester, Request>,
    outgoing: VecDeque<Datagram>,
    rmpp: Rmpp,
    transfers: Transfers,
    reports: Reports,
    /// Requests that wait until the tables that they ask for were read, and until when at most.
    held: VecDeque<(Timestamp, Request)>,
    /// Requests for long tables that wait.
    heavy: FairQueue<Requester, Request>,
    /// Those that are being computed elsewhere.
    computing: Vec<Request>,
    /// Nodes whose tables are to be read for them.
    unread: BTreeSet<Guid>,
    /// ActCount of the subnet manager.
    act_count: u32,
    statistics: ServerStatistics,
    answered: ByAttribute,
    complaints: Complaints,
}

/// Whether an answer may acknowledge what a port registered: a promise, which only the master can make.
pub fn acknowledges(answer: &Datagram) -> bool {
    let attribute = answer.mad.header.attribute_id.get();
    let registrations = [ids::MC_MEMBER_RECORD, ids::SERVICE_RECORD, ids::INFORM_INFO, ids::GUID_INFO_RECORD];
    registrations.contains(&attribute)
}

/// How long a request waits for tables to be read. Then it is answered BUSY, and comes again.
const MOST_HELD: Duration = Duration::from_secs(2);
/// Requests that wait for tables at most; beyond, BUSY at once.
const HELD: usize = 256;
/// Of these, of one requester.
const HELD_OF_ONE: usize = 32;

impl Server {
    /// A server with nothing to do.
    pub fn new(config: ServerConfig) -> Self {
        Self {
            config,
            snapshot: None,
            picture: None,
            registry: Registry::default(),
            told: None,
            ports: BTreeSet::new(),
            waiting: FairQueue::new(config.queue, config.queue_per_requester),
            outgoing: VecDeque::new(),
            rmpp: Rmpp::new(config.rmpp),
            transfers: Transfers::new(&config),
            reports: Reports::default(),
            held: VecDeque::new(),
            heavy: FairQueue::new(config.queue, config.queue_per_requester),
            computing: Vec::new(),
            unread: BTreeSet::new(),
            act_count: 0,
            statistics: ServerStatistics::default(),
            answered: ByAttribute::default(),
            complaints: Complaints::default(),
        }
    }

    /// What was counted so far.
    pub const fn statistics(&self) -> ServerStatistics {
        ServerStatistics { reports_lost: self.reports.lost, ..self.statistics }
    }

    /// Answers by attribute so far.
    pub const fn answered(&self) -> ByAttribute {
        self.answered
    }

    /// Bad requests of a kind so far.
    pub const fn complaints(&self, of: Complaint) -> u64 {
        self.complaints.count(of)
    }

    /// Tells what the subnet manager's ActCount is by now.
    pub const fn set_act_count(&mut self, count: u32) {
        self.act_count = count;
    }

    /// Requests that wait for their answer.
    pub fn queued(&self) -> usize {
        self.waiting.len() + self.heavy.len() + self.computing.len()
    }

    /// Whether it answers from this picture, and nobody waits for an answer that could be sent.
    pub fn is_idle_with(&self, snapshot: &Arc<Snapshot>) -> bool {
        self.waiting.len() == 0
            && self.outgoing.is_empty()
            && self.snapshot.as_ref().is_some_and(|own| Arc::ptr_eq(own, snapshot))
    }

    /// What ports registered: groups, services, subscriptions.
    pub const fn registry(&self) -> &Registry {
        &self.registry
    }

    /// What registrations changed since the last call, for the store and for standbys.
    pub fn take_changes(&mut self, epoch: Epoch) -> Vec<Change> {
        self.registry.take_changes(epoch)
    }

    /// Goes on with registrations that were kept, in place of all that it has. Returns how many could not be used.
    pub fn restore(&mut self, entries: &Entries, epoch: Epoch, now: Timestamp) -> usize {
        let refused = self.registry.restore(entries, epoch, now);
        self.told = None;
        // Groups of partitions are there whether anybody kept them or not.
        if let Some(snapshot) = self.snapshot.clone() {
            self.settle_partitions(&snapshot);
        }
        refused
    }

    /// Takes note of who was told to register anew: of memberships that nobody can vouch for those end that such a port does not
    /// confirm in time. The same once more costs nothing.
    pub fn note_told(&mut self, told: &Arc<Told>, now: Timestamp) {
        if self.told.as_ref().is_none_or(|noted| !Arc::ptr_eq(noted, told)) {
            self.registry.groups.note_told(told, now);
            self.told = Some(Arc::clone(told));
        }
    }

    /// Answers from this picture from now on. Ports that came or went are reported to subscribers.
    pub fn set_snapshot(&mut self, snapshot: &Arc<Snapshot>, now: Timestamp) {
        let (first, same_partitions) = match &self.snapshot {
            Some(old) if Arc::ptr_eq(old, snapshot) => return,
            Some(old) => (false, Arc::ptr_eq(&old.partitions, &snapshot.partitions)),
            None => (true, false),
        };
        let old = self.snapshot.replace(Arc::clone(snapshot));
        self.picture = None;
        let ports: BTreeSet<Guid> = snapshot.end_ports().iter().map(|port| port.guid).collect();
        let before = std::mem::replace(&mut self.ports, ports);
        if !same_partitions {
            self.settle_partitions(snapshot);
        }
        if !first {
            for guid in self.ports.difference(&before).copied().collect::<Vec<_>>() {
                self.report_port(64, snapshot, guid);
            }
            let gone: Vec<Guid> = before.difference(&self.ports).copied().collect();
            for (guid, old) in gone.into_iter().filter_map(|guid| Some((guid, old.as_deref()?))) {
                self.report_port(65, old, guid);
            }
        }
        self.registry.settle(snapshot, now);
        self.report_groups();
        self.report_aliases();
        for (_, request) in std::mem::take(&mut self.held) {
            self.queue_request(request, now);
        }
    }

    /// Takes a datagram of the subnet administration class. `snapshot` answers it and everything that still waits. After
    /// it, call [`Server::poll_send`] until it gives `None`.
    pub fn receive(&mut self, datagram: &Datagram, snapshot: &Arc<Snapshot>, now: Timestamp) {
        self.statistics.received += 1;
        self.set_snapshot(snapshot, now);
        let header = &datagram.mad.header;
        if header.mgmt_class() != MgmtClass::SUBN_ADM || header.base_version != 1 {
            self.statistics.dropped += 1;
            self.complaints.note(Complaint::Version, datagram.address.lid, now);
            return;
        }
        if self.rmpp.receive(datagram, now) {
            self.take_transfer_events(now);
            return;
        }
        if header.method().is_response() {
            let answers_report = header.method() == Method::REPORT_RESP
                && self.reports.receive(datagram, &mut self.registry.subscriptions);
            self.statistics.dropped += u64::from(!answers_report);
            return;
        }
        self.queue_request(Request::new(SaMad::from_mad(datagram.mad), datagram.address), now);
    }

    fn requester(&self, lid: u16) -> Requester {
        let port = Lid::new(lid).and_then(|lid| self.snapshot.as_ref()?.port_at(lid));
        port.map_or(lid, |port| port.lid.get())
    }

    fn queue_request(&mut self, request: Request, now: Timestamp) {
        let requester = self.requester(request.source.lid);
        let held =
            || self.held.iter().any(|(_, held)| held.source == request.source && held.mad == request.mad);
        let same = |other: &Request| other.source == request.source && other.mad == request.mad;
        let lines = || self.waiting.line(&requester).chain(self.heavy.line(&requester));
        if lines().any(same) || held() || self.computing.iter().any(same) {
            self.statistics.duplicates += 1;
            return;
        }
        let line = if is_heavy(&request.mad) { &mut self.heavy } else { &mut self.waiting };
        if let Some(lost) = line.push(requester, request) {
            self.statistics.busy += 1;
            self.queue_answer(&lost, refuse(&lost.mad, Status::BUSY), now);
        }
    }

    /// The picture with the alias GUIDs of now.
    fn picture(&mut self) -> Option<Arc<Snapshot>> {
        let aliases = self.registry.aliases.table();
        if self.picture.as_ref().is_none_or(|picture| !Arc::ptr_eq(&picture.aliases, aliases)) {
            let snapshot = self.snapshot.as_deref()?.clone();
            self.picture = Some(Arc::new(snapshot.with_aliases(Arc::clone(aliases))));
        }
        self.picture.clone()
    }

    /// The same for a request. One that changes aliases needs none of them, and who holds none lets the table be changed in
    /// place.
    fn picture_for(&mut self, request: &Request) -> Option<Arc<Snapshot>> {
        match (request.mad.header.attribute_id.get(), request.mad.header.method()) {
            (GuidInfoRecord::ID, Method::SET | Method::DELETE) => {
                self.picture = None;
                self.snapshot.clone()
            }
            (SmInfoRecord::ID, _) => {
                let mut snapshot = (*self.picture()?).clone();
                snapshot.sm.act_count = self.act_count;
                Some(Arc::new(snapshot))
            }
            _ => self.picture(),
        }
    }

    /// The next request for a long table, and the picture to answer it from by [`answer`](super::answer()), in another
    /// thread. Its end is told by [`Server::computed`]. No more are given out than there are workers.
    pub fn poll_heavy(&mut self, now: Timestamp) -> Option<(Arc<Snapshot>, Request)> {
        while self.computing.len() < self.config.workers {
            let snapshot = self.picture()?;
            let request = self.heavy.pop()?;
            if let Some(request) = self.hold(&snapshot, request, now) {
                self.computing.push(request.clone());
                return Some((snapshot, request));
            }
        }
        None
    }

    /// Takes the answer to a request of [`Server::poll_heavy`].
    pub fn computed(&mut self, request: &Request, answer: Answer, now: Timestamp) {
        let same = |other: &Request| other.source == request.source && other.mad == request.mad;
        if let Some(at) = self.computing.iter().position(same) {
            self.computing.swap_remove(at);
            self.queue_answer(request, answer, now);
        }
    }

    /// The next request to be answered here: of those for long tables only when nobody else computes them.
    fn next_request(&mut self) -> Option<Request> {
        let next = self.waiting.pop();
        if next.is_some() || self.config.workers > 0 { next } else { self.heavy.pop() }
    }

    /// Nodes whose SL-to-VL and VL arbitration tables are to be read; each is named once.
    pub fn take_unread(&mut self) -> BTreeSet<Guid> {
        std::mem::take(&mut self.unread)
    }

    /// Puts a request aside when what it asks for was not read from the fabric yet; gives it back when it can be answered.
    fn hold(&mut self, snapshot: &Snapshot, request: Request, now: Timestamp) -> Option<Request> {
        let mut unread = unread(snapshot, &request.mad);
        if unread.is_empty() {
            return Some(request);
        }
        let requester = self.requester(request.source.lid);
        let of_same = self.held.iter().filter(|(_, held)| self.requester(held.source.lid) == requester);
        if self.held.len() >= HELD || of_same.count() >= HELD_OF_ONE {
            self.statistics.busy += 1;
            self.queue_answer(&request, refuse(&request.mad, Status::BUSY), now);
            return None;
        }
        self.unread.append(&mut unread);
        self.held.push_back((now + MOST_HELD, request));
        None
    }

    /// The groups that switches are to carry.
    pub fn demand(&self) -> MulticastDemand {
        self.registry.groups.demand()
    }

    /// Forwards a notice to those who subscribed to it. Its issuer is the port with the LID that it names.
    pub fn notice(&mut self, notice: &Notice) {
        self.forward(notice, &|_| true);
    }

    fn forward(&mut self, notice: &Notice, may: &dyn Fn(&EndPort) -> bool) {
        if let Some(snapshot) = &self.picture() {
            let port = notice.issuer_lid().and_then(|lid| snapshot.port_at(lid));
            let issuer = port.map_or(Gid(0), |port| snapshot.gid_of(port));
            self.reports.forward(snapshot, &self.registry.subscriptions, notice, issuer, may);
        }
    }

    /// The next datagram to send; `None` when there is none for now. Requests among them (Reports) want an answer: a kernel
    /// that matches answers to requests must be told to wait for it.
    pub fn poll_send(&mut self, now: Timestamp) -> Option<Datagram> {
        self.registry.expire(now);
        self.report_groups();
        self.report_aliases();
        if self.rmpp.deadline().is_some_and(|deadline| deadline <= now) {
            self.rmpp.expired(now);
        }
        while let Some((_, request)) = self.held.pop_front_if(|(until, _)| *until <= now) {
            self.statistics.busy += 1;
            self.queue_answer(&request, refuse(&request.mad, Status::BUSY), now);
        }
        loop {
            self.take_transfer_events(now);
            if let Some(datagram) = self.outgoing.pop_front() {
                return Some(datagram);
            }
            if let Some(datagram) = self.rmpp.poll_send(now) {
                let kind = SaMad::from_mad(datagram.mad).rmpp.rmpp_type();
                if matches!(kind, Some(RmppType::Stop | RmppType::Abort)) {
                    self.complaints.note(Complaint::Segments, datagram.address.lid, now);
                }
                return Some(datagram);
            }
            if let Some(report) = self.reports.poll_send(&mut self.registry.subscriptions, now) {
                return Some(report);
            }
            let request = self.next_request()?;
            let snapshot = self.picture_for(&request)?;
            let Some(request) = self.hold(&snapshot, request, now) else { continue };
            let answer = serve(&snapshot, &mut self.registry, &request, now);
            self.queue_answer(&request, answer, now);
            self.report_groups();
        }
    }

    /// When [`Server::poll_send`] should be called next although nothing was received; `None`: not before that.
    pub fn deadline(&self) -> Option<Timestamp> {
        let held = self.held.front().map(|(until, _)| *until);
        let deadlines = [self.rmpp.deadline(), self.reports.deadline(), self.registry.deadline(), held];
        deadlines.into_iter().flatten().min()
    }

    fn queue_answer(&mut self, request: &Request, answer: Answer, now: Timestamp) {
        match answer {
            Answer::Silence => {
                self.statistics.dropped += 1;
                let key = request.mad.sm_key.get();
                if self.snapshot.as_ref().is_some_and(|snapshot| key != 0 && key != snapshot.sm.sm_key) {
                    self.complaints.note(Complaint::Key, request.source.lid, now);
                }
            }
            Answer::Single(mad) => {
                if let Some(complaint) = Complaint::of(mad.header.status()) {
                    self.complaints.note(complaint, request.source.lid, now);
                }
                self.count_answer(request);
                self.statistics.refused += u64::from(!mad.header.status().is_ok());
                self.outgoing.push_back(reply(request.source, *mad));
            }
            Answer::Table { head, records } => {
                let (requester, bytes) = (self.requester(request.source.lid), records.len());
                let key = TransferKey::of_sent(&request.source, &head.into_mad());
                let sent = if self.transfers.has_room(&key, requester, bytes) {
                    self.rmpp.send(request.source, &head.into_mad(), records, now)
                } else {
                    Err(SendError::Full)
                };
                // Where this one replaces another of the same key, that one's end is told first.
                self.take_transfer_events(now);
                match sent {
                    Ok(key) => {
                        self.count_answer(request);
                        self.transfers.begin(key, requester, bytes);
                    }
                    Err(SendError::UnderWay) => self.statistics.duplicates += 1,
                    Err(SendError::Full) => {
                        self.statistics.busy += 1;
                        self.queue_answer(request, refuse(&request.mad, Status::BUSY), now);
                    }
                    Err(SendError::TooLong(_) | SendError::Class(_)) => {
                        self.queue_answer(request, refuse(&request.mad, Status::SA_NO_RESOURCES), now);
                    }
                }
            }
        }
    }

    fn count_answer(&mut self, request: &Request) {
        self.statistics.answered += 1;
        self.answered.count(request.mad.header.attribute_id.get());
    }

    /// Counts transfers that ended, and queues requests that came in segments (GetMulti) as those of one datagram. No
    /// attribute is served that needs more than a request's first segment.
    fn take_transfer_events(&mut self, now: Timestamp) {
        while let Some(event) = self.rmpp.poll_event() {
            let key = match event {
                Event::Sent(key) | Event::Failed { key, direction: Direction::Sending, .. } => key,
                Event::Failed { direction: Direction::Receiving, .. } => continue,
                Event::Received(message) => {
                    self.queue_request(Request::in_segments(*message), now);
                    continue;
                }
            };
            self.transfers.end(&key);
        }
    }

    /// Gives each partition its groups; those of partitions that are gone stay only as long as they have members.
    fn settle_partitions(&mut self, snapshot: &Snapshot) {
        for group in self.registry.settle_partitions(snapshot) {
            tracing::error!(mgid = %group.mgid, "a partition's group can't be made: no switch has room for it");
        }
    }

    /// Tells subscribers of groups that came and went (traps 66 and 67).
    fn report_groups(&mut self) {
        for event in self.registry.groups.take_events() {
            match event {
                GroupEvent::Created(mgid, pkey) => {
                    self.report_gid(66, mgid, &|port| port.has_partition(pkey))
                }
                GroupEvent::Deleted(mgid, pkey) => {
                    self.report_gid(67, mgid, &|port| port.has_partition(pkey))
                }
            }
        }
    }

    /// The GIDs of aliases that ports got or gave up. Those of a port that is away went with it.
    fn report_aliases(&mut self) {
        let events = self.registry.aliases.take_events();
        let Some(snapshot) = self.snapshot.clone().filter(|_| !events.is_empty()) else { return };
        for AliasEvent { port, alias, given } in events {
            // A GUID that was taken back for the port whose own it is stays in service.
            if snapshot.port_by_guid(alias).is_none() {
                self.report_guid(if given { 64 } else { 65 }, &snapshot, port, alias);
            }
        }
    }

    /// Notices about a port of a picture: its own GID, and those of its aliases.
    fn report_port(&mut self, trap: u16, of: &Snapshot, guid: Guid) {
        self.report_guid(trap, of, guid, guid);
        let aliases = Arc::clone(self.registry.aliases.table());
        for alias in aliases.of_port(guid).filter(|alias| of.port_by_guid(*alias).is_none()) {
            self.report_guid(trap, of, guid, alias);
        }
    }

    /// A notice about a GUID of a port of a picture, for those who share a partition with it.
    fn report_guid(&mut self, trap: u16, of: &Snapshot, port: Guid, guid: Guid) {
        let Some(holder) = of.port_by_guid(port) else { return };
        // Ports of two pictures are not the same by their places.
        let may = |other: &EndPort| other.guid == port || other.common_pkey(holder, None).is_some();
        self.report_gid(trap, Gid::new(of.sm.gid_prefix, guid), &may);
    }

    /// A notice of the subnet manager itself about a GID.
    fn report_gid(&mut self, trap: u16, gid: Gid, may: &dyn Fn(&EndPort) -> bool) {
        let Some(snapshot) = &self.snapshot else { return };
        let issuer = snapshot.sm;
        let kind = NoticeType::SubnetManagement;
        let notice = Notice::generic(kind, Notice::PRODUCER_CLASS_MANAGER, trap, Some(issuer.lid));
        self.forward(&notice.with_data(&GidData::new(gid)), may);
    }
}

/// A reply goes back the way the request came: same P_Key index, SL, path bits and global route (B44).
fn reply(source: Address, mad: SaMad) -> Datagram {
    Datagram { address: source, mad: mad.into_mad() }
}

#[cfg(test)]
mod tests;
