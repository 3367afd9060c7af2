//! A client of subnet administration: queries out, records in. Sans-IO.
//!
//! ```text
//! submit(query, token)                     any number; `window` of them are under way at a time
//! while let Some((d, t)) = poll_send(now)  after submit, receive, expired
//! receive(&received, now)                  every datagram of the class, and every returned request
//! expired(now)                             when `deadline()` has come
//! while let Some((token, result)) = poll_answer()
//! ```
//!
//! A request is repeated with the same transaction ID until an answer comes or begins to come; from then on RMPP
//! ([`crate::rmpp`]) sees to the rest. BUSY counts as no answer yet (B47). Every query ends once.

mod answer;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

pub use answer::{Answer, Malformed};

use zerocopy::IntoBytes;

use crate::rmpp::{Event, Failure, Rmpp, RmppConfig, SendError, TransferKey};
use crate::transport::{Address, Datagram, Received};
use crate::types::Timestamp;
use crate::wire::sa::{MultiPathRecord, Record, SA_DATA_LEN, SaMad};
use crate::wire::smp::InformInfo;
use crate::wire::{Attribute, Mad, Method, MgmtClass, Status};

/// Times and bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaClientConfig {
    /// Queries under way at a time; at least 1 is taken.
    pub window: usize,
    /// How long each try waits for the answer to begin.
    pub timeout: Duration,
    /// Tries after the first.
    pub retries: u32,
    /// How much longer than told to the device a try is waited for: the kernel takes a request again only when it has given
    /// up the try before ([`crate::transactions`]).
    pub grace: Duration,
    /// RMPP's own.
    pub rmpp: RmppConfig,
}

impl Default for SaClientConfig {
    fn default() -> Self {
        Self {
            window: 16,
            timeout: Duration::from_secs(1),
            retries: 4,
            grace: Duration::from_millis(50),
            rmpp: RmppConfig::default(),
        }
    }
}

/// A query: where to, and the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The SA's address.
    pub address: Address,
    /// The request's headers, and its data when that fits into one datagram.
    pub head: SaMad,
    /// The data of a request that goes out in segments.
    pub segments: Option<Vec<u8>>,
}

impl Query {
    /// A request of any method with a record as template, of which the components in `mask` count.
    pub fn new<R: Record>(address: Address, method: Method, template: &R, mask: u64) -> Self {
        let mut head = SaMad::request(method, R::ID, mask);
        // Every record is shorter than the data; a longer one would only be cut off here.
        let bytes = template.as_bytes();
        let len = bytes.len().min(SA_DATA_LEN);
        head.data[..len].copy_from_slice(&bytes[..len]);
        Self { address, head, segments: None }
    }

    /// Subscribes to notices, or ends a subscription, as `inform` says.
    pub fn inform(address: Address, inform: &InformInfo) -> Self {
        let mut head = SaMad::request(Method::SET, InformInfo::ID, 0);
        let bytes = inform.as_bytes();
        head.data[..bytes.len()].copy_from_slice(bytes);
        Self { address, head, segments: None }
    }

    /// All records that agree with a template.
    pub fn get_table<R: Record>(address: Address, template: &R, mask: u64) -> Self {
        Self::new(address, Method::GET_TABLE, template, mask)
    }

    /// All records of a type.
    pub fn get_all<R: Record>(address: Address) -> Self {
        Self::get_table(address, &R::zeroed(), 0)
    }

    /// The one record that agrees with a template.
    pub fn get<R: Record>(address: Address, template: &R, mask: u64) -> Self {
        Self::new(address, Method::GET, template, mask)
    }

    /// SubnAdmGetMulti for a MultiPathRecord with its GIDs ([`MultiPathRecord::with_gids`]); goes out in segments.
    pub fn get_multi(address: Address, attribute: Vec<u8>, mask: u64) -> Self {
        let head = SaMad::request(Method::GET_MULTI, MultiPathRecord::ID, mask);
        Self { address, head, segments: Some(attribute) }
    }

    /// The same query with an SM_Key, for what the SA shows to trusted clients only.
    #[must_use]
    pub fn with_sm_key(mut self, key: u64) -> Self {
        self.head.sm_key.set(key);
        self
    }
}

/// Why a query has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum QueryError {
    /// Nothing came in time.
    #[error("no answer from subnet administration")]
    Timeout,
    /// The SA refused.
    #[error("subnet administration answered with status {0}")]
    Status(Status),
    /// The answer broke off.
    #[error("the answer was not complete: {0}")]
    Rmpp(#[from] Failure),
    /// The request could not be sent in segments.
    #[error("the request was not sent: {0}")]
    NotSent(#[from] SendError),
    /// The system refused to send it.
    #[error("the request was not sent: {}", std::io::Error::from_raw_os_error(*.0))]
    System(i32),
}

#[derive(Debug)]
struct Pending<K> {
    token: K,
    query: Query,
    retries_left: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// To be sent, again or for the first time.
    Due,
    /// Sent; to be repeated then.
    Waiting(Timestamp),
    /// RMPP has it: the request goes out or the answer comes in.
    InTransfer,
}

/// The client; `K` comes back with each answer.
#[derive(Debug)]
pub struct SaClient<K> {
    config: SaClientConfig,
    rmpp: Rmpp,
    pending: BTreeMap<u32, Pending<K>>,
    waiting: VecDeque<(u32, K, Query)>,
    answers: VecDeque<(K, Result<Answer, QueryError>)>,
    next_tid: u32,
}

impl<K> SaClient<K> {
    /// An idle client whose first query gets `first_tid` (1 for 0).
    pub fn new(config: SaClientConfig, first_tid: u32) -> Self {
        Self {
            rmpp: Rmpp::new(config.rmpp),
            config,
            pending: BTreeMap::new(),
            waiting: VecDeque::new(),
            answers: VecDeque::new(),
            next_tid: first_tid,
        }
    }

    /// Queues a query and says its transaction ID.
    pub fn submit(&mut self, mut query: Query, token: K) -> u32 {
        let tid = self.next_tid.max(1);
        self.next_tid = tid.wrapping_add(1);
        query.head.header.transaction_id.set(tid.into());
        self.waiting.push_back((tid, token, query));
        tid
    }

    /// The next datagram to send, with the time that the transport is told for a request.
    pub fn poll_send(&mut self, now: Timestamp) -> Option<(Datagram, Option<Duration>)> {
        self.admit(now);
        if let Some(datagram) = self.rmpp.poll_send(now) {
            return Some((datagram, None));
        }
        let timeout = self.config.timeout;
        let pending = self.pending.values_mut().find(|p| p.state == State::Due)?;
        pending.state = State::Waiting(now + timeout + self.config.grace);
        let datagram = Datagram { address: pending.query.address, mad: pending.query.head.into_mad() };
        Some((datagram, Some(timeout)))
    }

    /// Takes what came. False when it is no answer to a query of this client.
    pub fn receive(&mut self, received: &Received, now: Timestamp) -> bool {
        match received {
            Received::Datagram(datagram) => self.on_datagram(datagram, now),
            Received::Returned { request, errno } => self.on_returned(&request.mad, *errno),
        }
    }

    /// When [`Self::expired`] is to be called.
    pub fn deadline(&self) -> Option<Timestamp> {
        let waits = self.pending.values().filter_map(|p| match p.state {
            State::Waiting(at) => Some(at),
            State::Due | State::InTransfer => None,
        });
        waits.chain(self.rmpp.deadline()).min()
    }

    /// Lets time pass.
    pub fn expired(&mut self, now: Timestamp) {
        self.rmpp.expired(now);
        self.take_events(now);
        let late: Vec<u32> = self
            .pending
            .iter()
            .filter(|(_, p)| matches!(p.state, State::Waiting(at) if at <= now))
            .map(|(tid, _)| *tid)
            .collect();
        for tid in late {
            self.try_again(tid, QueryError::Timeout);
        }
    }

    /// The next query that has ended.
    pub fn poll_answer(&mut self) -> Option<(K, Result<Answer, QueryError>)> {
        self.answers.pop_front()
    }

    /// Queries that have not ended.
    pub fn outstanding(&self) -> usize {
        self.pending.len() + self.waiting.len()
    }

    /// Starts queries while the window has room.
    fn admit(&mut self, now: Timestamp) {
        while self.pending.len() < self.config.window.max(1) {
            let Some((tid, token, mut query)) = self.waiting.pop_front() else { return };
            let head = query.head.into_mad();
            let begun = match query.segments.take() {
                Some(data) => self.rmpp.send(query.address, &head, data, now).map(|_| State::InTransfer),
                None => self.rmpp.expect(&query.address, &head, Timestamp::MAX).map(|_| State::Due),
            };
            match begun {
                Ok(state) => {
                    let retries_left = self.config.retries;
                    self.pending.insert(tid, Pending { token, query, retries_left, state });
                }
                Err(error) => self.answers.push_back((token, Err(error.into()))),
            }
        }
    }

    fn on_datagram(&mut self, datagram: &Datagram, now: Timestamp) -> bool {
        let header = &datagram.mad.header;
        if header.mgmt_class() != MgmtClass::SUBN_ADM || !header.method().is_response() {
            return false;
        }
        let tid = header.transaction_id.get() as u32;
        let Some(pending) = self.pending.get_mut(&tid) else { return false };
        if self.rmpp.receive(datagram, now) {
            if self.rmpp.is_receiving(&TransferKey::of_received(&datagram.address, &datagram.mad)) {
                pending.state = State::InTransfer;
            }
            self.take_events(now);
            return true;
        }
        let request = &pending.query.head.header;
        // SubnAdmGetMulti for MultiPathRecord is answered with PathRecords.
        let same_attribute =
            header.attribute_id == request.attribute_id || request.method() == Method::GET_MULTI;
        if header.method() != request.method().response() || !same_attribute {
            return false;
        }
        match header.status() {
            Status::BUSY => self.busy(tid, now),
            status if !status.is_ok() => self.end(tid, Err(QueryError::Status(status))),
            _ => self.end(tid, Ok(Answer::single(SaMad::from_mad(datagram.mad)))),
        }
        true
    }

    /// The SA asks to come again later: the try's time runs on, then the request is repeated.
    fn busy(&mut self, tid: u32, now: Timestamp) {
        let Some(pending) = self.pending.get_mut(&tid) else { return };
        if pending.retries_left == 0 || pending.query.segments.is_some() {
            return self.end(tid, Err(QueryError::Status(Status::BUSY)));
        }
        if !matches!(pending.state, State::Waiting(_)) {
            pending.state = State::Waiting(now + self.config.timeout);
        }
    }

    fn on_returned(&mut self, request: &Mad, errno: i32) -> bool {
        /// ETIMEDOUT on Linux: no answer within the time that the device was told.
        const TIMED_OUT: i32 = 110;
        let tid = request.header.transaction_id.get() as u32;
        if request.header.mgmt_class() != MgmtClass::SUBN_ADM || !self.pending.contains_key(&tid) {
            return false;
        }
        let is_waiting = self.pending.get(&tid).is_some_and(|p| matches!(p.state, State::Waiting(_)));
        if is_waiting {
            let error = if errno == TIMED_OUT { QueryError::Timeout } else { QueryError::System(errno) };
            self.try_again(tid, error);
        }
        true
    }

    fn try_again(&mut self, tid: u32, error: QueryError) {
        let Some(pending) = self.pending.get_mut(&tid) else { return };
        let was_in_segments = pending.query.head.header.method() == Method::GET_MULTI;
        if was_in_segments || pending.retries_left == 0 {
            return self.end(tid, Err(error));
        }
        pending.retries_left -= 1;
        pending.state = State::Due;
    }

    fn take_events(&mut self, now: Timestamp) {
        while let Some(event) = self.rmpp.poll_event() {
            match event {
                Event::Received(message) => {
                    let head = SaMad::from_mad(message.head);
                    let tid = head.header.transaction_id.get() as u32;
                    match head.header.status() {
                        status if !status.is_ok() => self.end(tid, Err(QueryError::Status(status))),
                        _ => self.end(tid, Ok(Answer::table(head, message.data))),
                    }
                }
                Event::Sent(key) => {
                    // The request went out in segments and is not repeated as a whole: the answer gets the time of all tries.
                    if let Some(pending) = self.pending.get_mut(&(key.tid as u32))
                        && !self.rmpp.is_receiving(&key)
                    {
                        let patience = self.config.timeout * self.config.retries.saturating_add(1);
                        pending.state = State::Waiting(now + patience);
                    }
                }
                Event::Failed { key, failure, .. } => {
                    self.end(key.tid as u32, Err(QueryError::Rmpp(failure)));
                }
            }
        }
    }

    /// The one end of a query.
    fn end(&mut self, tid: u32, result: Result<Answer, QueryError>) {
        let Some(pending) = self.pending.remove(&tid) else { return };
        // After a whole answer RMPP still acknowledges what the peer repeats.
        if !matches!(&result, Ok(answer) if answer.came_in_segments()) {
            let head = pending.query.head.into_mad();
            self.rmpp.cancel(&TransferKey::of_sent(&pending.query.address, &head));
        }
        self.answers.push_back((pending.token, result));
    }
}

#[cfg(test)]
mod tests;
