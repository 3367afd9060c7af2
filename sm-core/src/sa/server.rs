//! The sans-IO server around [`answer`]: queue, fairness, replies.

use std::collections::VecDeque;
use std::sync::Arc;

use mad::transport::{Address, Datagram};
use mad::types::{Qpn, Timestamp};
use mad::wire::{Mad, MgmtClass, Status};

use super::answer::{Answer, Request, answer, refuse};
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
        if self.waiting.line(&requester).any(|waiting| waiting.mad == datagram.mad) {
            self.statistics.duplicates += 1;
            return;
        }
        let request = Request { mad: datagram.mad, source: datagram.address };
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
        }
    }
}

/// A reply goes back the way the request came: same P_Key index, SL, path bits and global route (B44).
const fn reply(source: Address, mad: Mad) -> Datagram {
    Datagram { address: source, mad }
}
