//! The sans-IO server around [`answer`]: queue, fairness, replies.

use std::collections::VecDeque;
use std::sync::Arc;

use mad::transport::{Address, Datagram};
use mad::types::{Qpn, Timestamp};
use mad::wire::rmpp::{RmppHeader, RmppStatus, RmppType};
use mad::wire::sa::{SA_DATA_LEN, SA_HEADER_LEN, SaMad};
use mad::wire::{MgmtClass, Status};

use super::answer::{Answer, Request, answer, refuse, request_of};
use super::fair::FairQueue;
use crate::snapshot::Snapshot;

/// Bounds of a [`Server`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// Requests that may wait, over all requesters; what comes beyond is answered BUSY.
    pub queue: usize,
    /// Requests of one requester that may wait.
    pub queue_per_requester: usize,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self { queue: 16_384, queue_per_requester: 1024 }
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
    /// Requests answered BUSY unread, since the queue was full.
    pub busy: u64,
    /// Requests that came while the same one waited already.
    pub duplicates: u64,
    /// Datagrams dropped without an answer: of another class, or no request.
    pub dropped: u64,
}

/// Who asks: LID and queue pair.
type Requester = (u16, Qpn);

/// Subnet administration as a state machine: [`Server::receive`] takes datagrams, [`Server::poll_send`] gives those that
/// are to be sent, [`Server::deadline`] says when it wants to be polled again although nothing came.
#[derive(Debug)]
pub struct Server {
    snapshot: Option<Arc<Snapshot>>,
    waiting: FairQueue<Requester, Request>,
    outgoing: VecDeque<Datagram>,
    statistics: ServerStatistics,
}

impl Server {
    /// A server with nothing to do.
    pub fn new(config: ServerConfig) -> Self {
        Self {
            snapshot: None,
            waiting: FairQueue::new(config.queue, config.queue_per_requester),
            outgoing: VecDeque::new(),
            statistics: ServerStatistics::default(),
        }
    }

    /// What was counted so far.
    pub const fn statistics(&self) -> ServerStatistics {
        self.statistics
    }

    /// Requests that wait for their answer.
    pub fn queued(&self) -> usize {
        self.waiting.len()
    }

    /// Takes a datagram of the subnet administration class. `snapshot` answers it and everything that still waits. After
    /// it, call [`Server::poll_send`] until it gives `None`.
    pub fn receive(&mut self, datagram: &Datagram, snapshot: &Arc<Snapshot>, _now: Timestamp) {
        self.statistics.received += 1;
        if self.snapshot.as_ref().is_none_or(|old| !Arc::ptr_eq(old, snapshot)) {
            self.snapshot = Some(Arc::clone(snapshot));
        }
        let header = &datagram.mad.header;
        if header.mgmt_class() != MgmtClass::SUBN_ADM
            || header.base_version != 1
            || header.method().is_response()
        {
            self.statistics.dropped += 1;
            return;
        }
        let requester = (datagram.address.lid, datagram.address.qpn);
        let request = request_of(&datagram.mad, datagram.address);
        if request.mad.rmpp.is_active() && request.mad.rmpp.rmpp_type() != Some(RmppType::Data) {
            self.statistics.dropped += 1;
            return;
        }
        if self.waiting.line(&requester).any(|waiting| waiting.mad == request.mad) {
            self.statistics.duplicates += 1;
            return;
        }
        if let Some(lost) = self.waiting.push(requester, request) {
            self.statistics.busy += 1;
            self.queue_answer(&lost, refuse(&lost.mad, Status::BUSY));
        }
    }

    /// The next datagram to send; `None` when there is none for now.
    pub fn poll_send(&mut self, _now: Timestamp) -> Option<Datagram> {
        loop {
            if let Some(datagram) = self.outgoing.pop_front() {
                return Some(datagram);
            }
            let request = self.waiting.pop()?;
            let snapshot = self.snapshot.as_ref()?;
            let answer = answer(snapshot, &request);
            self.queue_answer(&request, answer);
        }
    }

    /// When [`Server::poll_send`] should be called next although nothing was received; `None`: not before that.
    pub const fn deadline(&self) -> Option<Timestamp> {
        None
    }

    fn queue_answer(&mut self, request: &Request, answer: Answer) {
        match answer {
            Answer::Silence => self.statistics.dropped += 1,
            Answer::Single(mad) => {
                self.statistics.answered += 1;
                self.statistics.refused += u64::from(!mad.header.status().is_ok());
                self.outgoing.push_back(reply(request.source, *mad));
            }
            Answer::Table { head, records } => {
                self.statistics.answered += 1;
                self.outgoing.push_back(reply(request.source, first_segment(*head, &records)));
            }
        }
    }
}

/// A reply goes back the way the request came: same P_Key index, SL, path bits and global route (B44).
fn reply(source: Address, mad: SaMad) -> Datagram {
    Datagram { address: source, mad: mad.into_mad() }
}

/// The first segment of a table, complete in itself: length, first and (where it holds all) last flag. A client behind a
/// transport without RMPP sees nothing else of the table.
fn first_segment(mut head: SaMad, records: &[u8]) -> SaMad {
    let segments = records.len().div_ceil(SA_DATA_LEN).max(1);
    let last = if segments == 1 { RmppHeader::FLAG_LAST } else { 0 };
    let length = (segments * SA_HEADER_LEN + records.len()) as u32;
    head.rmpp = RmppHeader::new(RmppType::Data, RmppHeader::FLAG_FIRST | last, RmppStatus::OK, 1, length);
    let part = records.len().min(SA_DATA_LEN);
    head.data[..part].copy_from_slice(&records[..part]);
    head
}
