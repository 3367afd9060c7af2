//! The transaction engine: requests out, answers in, each request ended exactly once.
//!
//! Sans-IO: it neither sends nor reads a clock. The caller hands datagrams to a transport and time to the engine:
//!
//! ```text
//! submit(..)                                  as many as there are; keep `queued()` bounded
//! while let Some((d, t)) = poll_send(now)     after submit, receive, expired, send_failed
//!     transport.send(&d, Some(t))  -- failed? --> send_failed(tid, errno, now)
//! receive(&received, now)                     for every response and every returned request
//! expired(now)                                when `deadline()` has come
//! ```
//!
//! - **One end each** (B08): reply, timeout, send error or cancel; the window is then what it was before.
//! - **Two windows**: a global one, and one per destination, a key that the caller chooses (a node's GUID, a
//!   hash of the route). Destinations take turns; within one, order is that of submission, and a repetition
//!   goes first. So a slow node holds at most its own share, and with a share of 1 requests to a node keep
//!   their order.
//! - **Repetitions keep the transaction ID.** An answer that comes after its try was given up then still
//!   answers the request, and only the same ID gets it through the kernel, which drops answers whose ID waits
//!   for none. In return the kernel refuses an ID of which it still holds a try, so it is told
//!   [`TransactionConfig::timeout`] and we wait [`TransactionConfig::grace`] longer: there the device's own
//!   report ends a try, elsewhere (simulators) our clock does.
//! - **Transaction IDs** (B09): 32 bits, unsigned, never 0, not reused while in use. The upper half of the
//!   wire's 64 bits belongs to the kernel and is ignored. An answer must also match in class, method and
//!   attribute.
//! - Back-off is a plain multiplication without jitter: the same events give the same datagrams.
//!
//! One engine serves one kind of traffic: SMPs and general services get their own, so that neither pushes out the
//! other (B09). Answers of several segments are `mad::rmpp`'s; this engine sees single datagrams.
//!
//! Cost: O(1) amortised per event, with the timer heap kept within twice what is in flight (plus 1024 entries);
//! memory is about 350 bytes for each request queued or in flight.

mod fair_queue;
mod tids;
mod timers;

use std::time::Duration;

use crate::transport::{Datagram, Received};
use crate::types::Timestamp;
use crate::wire::{Mad, MadHeader};
use fair_queue::FairQueue;
use tids::{Ended, Lookup, Tids};
use timers::Timers;

/// Windows, times and repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionConfig {
    /// Most requests in flight; at least 1 is taken. The fabric simulator ibsim hangs above about 300.
    pub window: usize,
    /// Most requests in flight to one destination; at least 1 is taken.
    pub per_destination: usize,
    /// How long the first try waits for its answer.
    pub timeout: Duration,
    /// Tries after the first.
    pub retries: u32,
    /// Factor from each try's time to the next one's; 1 keeps it constant.
    pub backoff: u32,
    /// Longest time for one try.
    pub max_timeout: Duration,
    /// How much longer than told to the device a try is waited for, so that a device with clocks of its own (the
    /// kernel's) has given up the try before it is repeated.
    pub grace: Duration,
}

impl Default for TransactionConfig {
    fn default() -> Self {
        Self {
            window: 64,
            per_destination: 4,
            timeout: Duration::from_millis(200),
            retries: 3,
            backoff: 2,
            max_timeout: Duration::from_secs(2),
            grace: Duration::from_millis(50),
        }
    }
}

/// Bound of what waits, in windows, where a caller submits while [`Transactions::is_hungry`].
pub const MOST_WAITING: usize = 32;

/// A datagram that wants an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What to send and where to; its transaction ID is overwritten.
    pub datagram: Datagram,
    /// Key of the destination for its share of the window.
    pub destination: u64,
    /// Instead of [`TransactionConfig::timeout`].
    pub timeout: Option<Duration>,
    /// Instead of [`TransactionConfig::retries`].
    pub retries: Option<u32>,
}

impl Request {
    /// A request with the configured time and repetitions.
    pub const fn new(datagram: Datagram, destination: u64) -> Self {
        Self { datagram, destination, timeout: None, retries: None }
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are replies; a box would cost an allocation for each"
)]
pub enum Outcome {
    /// The answer; its status may still say that the request was refused.
    Reply(Mad),
    /// No answer to any try.
    Timeout,
    /// The transport refused it, or the device returned it, with this error number.
    SendError(i32),
    /// Cancelled by the caller.
    Cancelled,
}

/// The one end of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion<K> {
    /// What the caller gave with the request.
    pub token: K,
    /// How it ended.
    pub outcome: Outcome,
    /// Set where the request was sent more often than it was answered: it may arrive (once more) after this end.
    pub stray: Option<Box<Stray>>,
}

/// A request of which copies may still be under way though it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stray {
    /// The request, with its transaction ID.
    pub datagram: Datagram,
    /// As in [`Request::destination`].
    pub destination: u64,
    /// When it was last sent.
    pub last_sent: Timestamp,
}

/// Counters since the engine was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionStats {
    /// Datagrams handed out for sending, repetitions included.
    pub sent: u64,
    /// Requests ended by a reply.
    pub answered: u64,
    /// Repetitions handed out.
    pub retried: u64,
    /// Requests ended by time.
    pub timed_out: u64,
    /// Answers to requests that had ended without one; dropped.
    pub late: u64,
    /// Further answers to requests that had theirs; dropped.
    pub duplicate: u64,
    /// Answers that belong to no request known here; dropped.
    pub unmatched: u64,
    /// Failed sends, those repeated included.
    pub send_errors: u64,
    /// Requests cancelled.
    pub cancelled: u64,
}

#[derive(Debug)]
struct Entry<K> {
    token: K,
    datagram: Datagram,
    tid: u32,
    destination: u64,
    /// Time for the coming try, or for the one in flight.
    timeout: Duration,
    retries_left: u32,
    tries: u32,
    last_sent: Timestamp,
    /// When the try in flight is given up; `None` while queued.
    deadline: Option<Timestamp>,
}

/// The engine; `K` is what the caller wants back with each outcome.
#[derive(Debug)]
pub struct Transactions<K> {
    config: TransactionConfig,
    slots: Vec<Option<Entry<K>>>,
    free: Vec<u32>,
    tids: Tids,
    queue: FairQueue,
    timers: Timers,
    stats: TransactionStats,
}

impl<K> Transactions<K> {
    /// An idle engine whose first request gets `first_tid` (1 for 0). Engines that share a device should start
    /// apart, and a restarted program elsewhere than before, so that old answers meet no new request.
    pub fn new(config: TransactionConfig, first_tid: u32) -> Self {
        Self {
            config,
            slots: Vec::new(),
            free: Vec::new(),
            tids: Tids::new(first_tid),
            queue: FairQueue::new(config.per_destination.max(1)),
            timers: Timers::default(),
            stats: TransactionStats::default(),
        }
    }

    /// Queues a request and says its transaction ID.
    pub fn submit(&mut self, request: Request, token: K) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        });
        let tid = self.tids.assign(slot);
        let mut datagram = request.datagram;
        datagram.mad.header.transaction_id.set(u64::from(tid));
        self.slots[slot as usize] = Some(Entry {
            token,
            datagram,
            tid,
            destination: request.destination,
            timeout: request.timeout.unwrap_or(self.config.timeout),
            retries_left: request.retries.unwrap_or(self.config.retries),
            tries: 0,
            last_sent: Timestamp::ZERO,
            deadline: None,
        });
        self.queue.push_back(request.destination, slot);
        tid
    }

    /// The next datagram to send, with the time that the transport is told; `None` when the windows are full or
    /// nothing waits. It counts as sent unless [`Self::send_failed`] follows.
    pub fn poll_send(&mut self, now: Timestamp) -> Option<(Datagram, Duration)> {
        if self.queue.in_flight() >= self.config.window.max(1) {
            return None;
        }
        let slot = self.queue.pop()?;
        let entry = self.slots[slot as usize].as_mut().expect("a queued slot is in use");
        let deadline = now + entry.timeout + self.config.grace;
        entry.deadline = Some(deadline);
        self.timers.set(deadline, slot, entry.tid);
        self.stats.sent += 1;
        self.stats.retried += u64::from(entry.tries > 0);
        entry.tries += 1;
        entry.last_sent = now;
        Some((entry.datagram, entry.timeout))
    }

    /// Takes in a response or a returned request. `None` when it ends nothing: late, duplicate, foreign, no
    /// response at all, or a returned try that is going to be repeated.
    pub fn receive(&mut self, received: &Received, now: Timestamp) -> Option<Completion<K>> {
        match received {
            Received::Datagram(datagram) => self.reply(&datagram.mad),
            Received::Returned { request, errno } => {
                let slot = self.in_flight_slot(request.mad.header.transaction_id.get() as u32)?;
                if *errno == libc::ETIMEDOUT {
                    self.give_up_try(slot)
                } else {
                    self.failed_try(slot, *errno, now)
                }
            }
        }
    }

    /// The transport did not take the datagram with this transaction ID (the lower 32 bits) that
    /// [`Self::poll_send`] gave. A lack of memory or buffers is tried again after the try's time, anything else
    /// ends the request.
    pub fn send_failed(&mut self, tid: u32, errno: i32, now: Timestamp) -> Option<Completion<K>> {
        let slot = self.in_flight_slot(tid)?;
        self.failed_try(slot, errno, now)
    }

    /// Gives up every try whose time has come: repeats it, or ends its request.
    pub fn expired(&mut self, now: Timestamp) -> Vec<Completion<K>> {
        let mut completions = Vec::new();
        while let Some((deadline, slot, tid)) = self.timers.pop_due(now) {
            if is_current(&self.slots, deadline, slot, tid) {
                completions.extend(self.give_up_try(slot));
            }
        }
        self.trim_timers();
        completions
    }

    /// When [`Self::expired`] is due; `None` while nothing is in flight.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.timers.next()
    }

    /// Ends one request by its transaction ID; `None` when it has ended already. An answer to it will count as
    /// late. Takes time in proportion to what is queued for its destination.
    pub fn cancel(&mut self, tid: u32) -> Option<Completion<K>> {
        let Lookup::Live(slot) = self.tids.look_up(tid) else { return None };
        let completion = self.finish(slot, Outcome::Cancelled, Ended::Unanswered);
        self.trim_timers();
        Some(completion)
    }

    /// Ends all requests, always in the same order for the same events.
    pub fn cancel_all(&mut self) -> Vec<Completion<K>> {
        self.queue.clear_queued();
        let live: Vec<u32> =
            (0..self.slots.len() as u32).filter(|slot| self.slots[*slot as usize].is_some()).collect();
        let completions =
            live.into_iter().map(|slot| self.finish(slot, Outcome::Cancelled, Ended::Unanswered)).collect();
        self.trim_timers();
        completions
    }

    /// Requests sent and waiting for their answer.
    pub const fn in_flight(&self) -> usize {
        self.queue.in_flight()
    }

    /// Requests waiting for room in a window, those to be repeated included.
    pub const fn queued(&self) -> usize {
        self.queue.queued()
    }

    /// Whether more should be submitted: what is in flight and what could follow at once do not fill the window
    /// twice. Requests that wait for the share of their destination don't count, lest a few slow or large nodes
    /// keep the window empty; yet no more than [`MOST_WAITING`] of the window's size wait.
    pub fn is_hungry(&self) -> bool {
        let window = self.config.window.max(1);
        let sendable = self.in_flight() + self.queue.destinations_in_line();
        sendable < 2 * window && self.queued() < MOST_WAITING * window
    }

    /// Whether every request has ended.
    pub const fn is_idle(&self) -> bool {
        self.in_flight() == 0 && self.queued() == 0
    }

    /// The counters.
    pub const fn stats(&self) -> TransactionStats {
        self.stats
    }

    fn reply(&mut self, reply: &Mad) -> Option<Completion<K>> {
        if !reply.header.method().is_response() {
            return None;
        }
        match self.tids.look_up(reply.header.transaction_id.get() as u32) {
            Lookup::Live(slot) => {
                let entry = self.slots[slot as usize].as_ref().expect("a live transaction has its slot");
                // While it is queued for a repetition, an answer to the earlier try is as good; before the
                // first try nothing can answer it.
                if entry.tries == 0 || !answers(&reply.header, &entry.datagram.mad.header) {
                    self.stats.unmatched += 1;
                    return None;
                }
                self.stats.answered += 1;
                let completion = self.finish(slot, Outcome::Reply(*reply), Ended::Answered);
                self.trim_timers();
                Some(completion)
            }
            Lookup::Ended(Ended::Answered) => {
                self.stats.duplicate += 1;
                None
            }
            Lookup::Ended(Ended::Unanswered) => {
                self.stats.late += 1;
                None
            }
            Lookup::Unknown => {
                self.stats.unmatched += 1;
                None
            }
        }
    }

    fn in_flight_slot(&self, tid: u32) -> Option<u32> {
        let Lookup::Live(slot) = self.tids.look_up(tid) else { return None };
        self.slots[slot as usize].as_ref()?.deadline.map(|_| slot)
    }

    /// The try in flight got no answer: queue the next one, or end the request.
    fn give_up_try(&mut self, slot: u32) -> Option<Completion<K>> {
        let entry = self.slots[slot as usize].as_mut()?;
        let completion = if entry.retries_left == 0 {
            self.stats.timed_out += 1;
            Some(self.finish(slot, Outcome::Timeout, Ended::Unanswered))
        } else {
            entry.retries_left -= 1;
            let longest = self.config.max_timeout.max(entry.timeout);
            entry.timeout = entry.timeout.saturating_mul(self.config.backoff.max(1)).min(longest);
            entry.deadline = None;
            let destination = entry.destination;
            self.queue.release(destination);
            self.queue.push_front(destination, slot);
            None
        };
        self.trim_timers();
        completion
    }

    /// The try in flight was not sent. It stays in flight, to be given up in its time, when there is hope: the
    /// system lacked memory or buffers, or it still holds an earlier try with this ID (`EINVAL` for a
    /// repetition). Else the request ends.
    fn failed_try(&mut self, slot: u32, errno: i32, now: Timestamp) -> Option<Completion<K>> {
        self.stats.send_errors += 1;
        let entry = self.slots[slot as usize].as_mut()?;
        let passing = match errno {
            libc::EAGAIN | libc::EINTR | libc::ENOMEM | libc::ENOBUFS => true,
            libc::EINVAL => entry.tries > 1,
            _ => false,
        };
        if passing && entry.retries_left > 0 {
            let deadline = now + entry.timeout;
            entry.deadline = Some(deadline);
            self.timers.set(deadline, slot, entry.tid);
            self.trim_timers();
            return None;
        }
        let completion = self.finish(slot, Outcome::SendError(errno), Ended::Unanswered);
        self.trim_timers();
        Some(completion)
    }

    /// Takes a request out of every table; the only place where one ends.
    fn finish(&mut self, slot: u32, outcome: Outcome, ended: Ended) -> Completion<K> {
        let entry = self.slots[slot as usize].take().expect("only a live slot is finished");
        if entry.deadline.is_some() {
            self.queue.release(entry.destination);
        } else {
            self.queue.remove(entry.destination, slot);
        }
        self.free.push(slot);
        self.tids.end(entry.tid, ended);
        self.stats.cancelled += u64::from(outcome == Outcome::Cancelled);
        let answered = u32::from(matches!(outcome, Outcome::Reply(_)));
        let (datagram, destination, last_sent) = (entry.datagram, entry.destination, entry.last_sent);
        let stray = (entry.tries > answered).then(|| Box::new(Stray { datagram, destination, last_sent }));
        Completion { token: entry.token, outcome, stray }
    }

    fn trim_timers(&mut self) {
        let slots = &self.slots;
        self.timers
            .trim(self.queue.in_flight(), |deadline, slot, tid| is_current(slots, deadline, slot, tid));
    }
}

/// Whether a timer still stands for the try in flight.
fn is_current<K>(slots: &[Option<Entry<K>>], deadline: Timestamp, slot: u32, tid: u32) -> bool {
    slots[slot as usize].as_ref().is_some_and(|entry| entry.tid == tid && entry.deadline == Some(deadline))
}

/// Whether a header is that of an answer to a request, transaction IDs apart. The modifier is left out: some
/// devices clear bits of it.
fn answers(reply: &MadHeader, request: &MadHeader) -> bool {
    reply.mgmt_class == request.mgmt_class
        && reply.method() == request.method().response()
        && reply.attribute_id == request.attribute_id
}

#[cfg(test)]
mod tests;
