//! Warm standby over the fabric itself: standbys ask the master for what changed, over vendor datagrams with RMPP.
//!
//! ```text
//! standby                                                              master
//!   Get(MirrorState): stream 0, after 0                  ->
//!                       <-   HELLO: stream S
//!   Get: stream S, after 0                               ->
//!                       <-   page 1 of all entries, until version u          (RMPP)
//!   Get: stream S, after u                               ->
//!                       <-   … the rest, then what changed since, in order of versions
//! ```
//! A snapshot and changes are one thing: entries in order of the version at which they last changed ([`log`]). Whoever has
//! fallen so far behind that removals are forgotten begins again from 0. A standby is *complete* when it has once been
//! level with the master; before that its copy is not used.
//!
//! **Nothing acknowledged is lost.** A standby that is level is *in step* ([`source`]): its next request is kept until something
//! changes, or for 100 ms, and the request after an answer confirms that answer. The master acknowledges a registration when
//! every standby in step has confirmed it ([`Replication::confirmed`]); one that does not for [`PATIENCE`] is in step no more, and is
//! told so by its next answer. So a standby that was in step until the master fell silent knows that its copy
//! has everything that was acknowledged ([`CopyState::Confirmed`]), and any other knows that it can't know.
//!
//! **Authentication.** Each message carries HMAC-SHA256 under the shared secret over all that goes before it; what does not
//! verify is counted and not answered. A request carries the sender's GUID, incarnation and a number that only grows, and the
//! master's stream; so a repeated request, also one of before the master's restart, gets nothing. An answer names the
//! request that it answers. What changed is encrypted under the same secret, since there are keys of ports and services among it:
//! whoever reads management datagrams on the wire learns who the managers are and how much they have to tell.
//!
//! **Rate.** One request in [`INTERVAL`] for each standby that is not level, answered with [`PAGE`] bytes at most: 1,600 datagrams a
//! second while a snapshot is on its way, 30 when nothing changes. In step, one answer at a time is on its way, with all that changed since
//! the one before.
//!
//! Sans-IO: time and entropy are arguments. Cost: O(changes · log entries).

pub mod log;
pub mod message;
mod source;
mod standby;
#[cfg(test)]
mod tests;

use std::time::Duration;

use mad::rmpp::{Event as RmppEvent, Rmpp, RmppConfig, TransferKey};
use mad::transport::{Address, Datagram};
use mad::types::{Guid, Lid, ServiceLevel, Timestamp};
use mad::wire::Method;
use mad::wire::vendor::mirror;

use crate::config::Acknowledge;
use crate::store::{Change, Entries};
pub use message::Secret;
use source::{Source, Taken};
use standby::Standby;

/// Time between two requests of a standby that is not in step.
pub const INTERVAL: Duration = Duration::from_millis(200);
/// The longest that a master keeps a request.
const KEPT: Duration = Duration::from_millis(100);
/// How long a standby waits for an answer before it asks again, and from then on.
pub const RETRY: Duration = Duration::from_millis(150);
const AGAIN: Duration = Duration::from_millis(50);
/// How long a master waits for a standby in step before it goes on without it: many repetitions, so that silence means an end and not bad
/// luck, and well below the second after which kernels ask again for what is not acknowledged.
pub const PATIENCE: Duration = Duration::from_millis(500);
/// Most bytes of changes in an answer.
pub const PAGE: usize = 64 * 1024;

/// What a standby learnt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Learnt {
    /// These changes, in order.
    Changes(Vec<Change>),
    /// The copy is level with the master for the first time: entries with other keys than these are no more.
    Complete(Entries),
}

/// What a standby knows of its copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CopyState {
    /// It was never level with the master, or there is none.
    Incomplete,
    /// It was level once; the master may have acknowledged since what is not in it.
    Doubtful,
    /// Everything that the master acknowledged is in it.
    Confirmed,
}

impl CopyState {
    /// What is known of the newer of this copy and of what a store that managers share holds, where that answered; `trusted` as
    /// [`SharedStore::read`](crate::store::SharedStore::read) has it; `held` and `own` are the versions of both. A store that holds nothing,
    /// or less than our own copy, has lost its data, and says nothing of what was acknowledged. What we hold without a copy of the
    /// master's counts what we noted ourselves too: that it is more than the store's says nothing about either.
    #[must_use]
    pub fn with_shared(self, trusted: bool, held: u64, own: u64) -> Self {
        match self {
            _ if held == 0 => return self,
            Self::Incomplete if held < own => return Self::Doubtful,
            Self::Doubtful | Self::Confirmed if held < own => return self,
            Self::Incomplete | Self::Doubtful | Self::Confirmed => {}
        }
        self.max(if trusted { Self::Confirmed } else { Self::Doubtful })
    }
}

/// How replication stands, for logs and status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MirrorStatus {
    /// As a standby: whether the copy was level with the master once.
    pub complete: bool,
    /// As a standby: changes that the master has and we have not, as of its last answer.
    pub behind: u64,
    /// As a standby: when the master last answered.
    pub last_answer: Option<Timestamp>,
    /// As a master: standbys that asked within ten intervals.
    pub standbys: usize,
    /// As a master: those of them for whose confirmation acknowledgements wait.
    pub in_step: usize,
    /// As a master: changes that the slowest of these has not got.
    pub slowest_behind: u64,
    /// Messages that did not verify, or came again.
    pub refused: u64,
}

#[derive(Debug)]
enum Part {
    /// Neither master nor standby, or a standby that knows no master's LID.
    Idle,
    Source(Box<Source>),
    Standby(Box<Standby>),
}

/// Replication of one manager.
#[derive(Debug)]
pub struct Replication {
    secret: Secret,
    own: Guid,
    /// Differs from run to run and can't be guessed.
    incarnation: u64,
    /// Whether acknowledgements wait for standbys in step.
    waits: bool,
    /// Parts played so far: each source is a stream of its own.
    parts: u64,
    part: Part,
    rmpp: Rmpp,
    /// The last request's transfer.
    asked: Option<TransferKey>,
    outgoing: Vec<Datagram>,
    learnt: Vec<Learnt>,
    refused: u64,
}

impl Replication {
    /// Idle. `own` is our port's GUID; `incarnation` must differ from run to run and be hard to guess.
    pub fn new(secret: Secret, own: Guid, incarnation: u64) -> Self {
        let config = RmppConfig {
            max_message: 2 * PAGE,
            response_timeout: KEPT,
            // A page that is taken in late is not to be sent twice: what comes again once its end is forgotten counts as replayed.
            probe_timeout: KEPT,
            least_probe: KEPT,
            total_timeout: Duration::from_secs(10),
            // In step there are as many transfers as commits.
            linger: PATIENCE,
            max_transfers: 1 << 16,
            ..RmppConfig::default()
        };
        Self {
            secret,
            own,
            incarnation,
            waits: true,
            parts: 0,
            part: Part::Idle,
            rmpp: Rmpp::new(config),
            asked: None,
            outgoing: Vec::new(),
            learnt: Vec::new(),
            refused: 0,
        }
    }

    /// With [`Acknowledge::Local`] acknowledgements wait for no standby: a master's last ones may be missing from every copy.
    #[must_use]
    pub const fn acknowledging(mut self, when: Acknowledge) -> Self {
        self.waits = matches!(when, Acknowledge::Mirrored);
        self
    }

    /// Serves these entries from now on.
    pub fn become_master(&mut self, entries: &Entries, now: Timestamp) {
        self.parts += 1;
        let stream = self.incarnation.wrapping_add(self.parts);
        self.part = Part::Source(Box::new(Source::new(stream, entries, now)));
    }

    /// Follows the master at this LID. Nothing happens when it does so already.
    pub fn become_standby(&mut self, master: Lid, now: Timestamp) {
        if let Part::Standby(standby) = &mut self.part
            && standby.master == master
        {
            return;
        }
        self.parts += 1;
        self.part = Part::Standby(Box::new(Standby::new(master, now)));
    }

    /// Neither serves nor follows.
    pub fn become_idle(&mut self) {
        self.part = Part::Idle;
    }

    /// As a master: something changed. Returns the version that [`Replication::confirmed`] has to reach before that is
    /// acknowledged.
    pub fn change(&mut self, changes: &[Change], now: Timestamp) -> u64 {
        match &mut self.part {
            Part::Source(source) => source.change(changes, now),
            Part::Standby(_) | Part::Idle => 0,
        }
    }

    /// The version up to which every standby in step has confirmed all; the largest number where none is.
    pub fn confirmed(&self) -> u64 {
        match &self.part {
            Part::Source(source) if self.waits => source.confirmed(),
            _ => u64::MAX,
        }
    }

    /// Takes a datagram of the class.
    pub fn receive(&mut self, datagram: &Datagram, now: Timestamp) {
        if datagram.mad.header.mgmt_class() != mirror::CLASS {
            return;
        }
        if !self.rmpp.receive(datagram, now) && mirror::is_request(&datagram.mad) {
            self.serve(datagram, now);
        }
        self.take_events(now);
    }

    fn serve(&mut self, datagram: &Datagram, now: Timestamp) {
        let Part::Source(source) = &mut self.part else { return };
        let Some(request) = message::Request::decode(&self.secret, mirror::data(&datagram.mad)) else {
            self.refused += 1;
            return;
        };
        match source.take(&request, datagram, self.own, now) {
            Taken::Answer(answer) => self.answer(datagram, &answer, now),
            Taken::Kept => {}
            Taken::Refused => self.refused += 1,
        }
    }

    fn answer(&mut self, request: &Datagram, answer: &message::Answer, now: Timestamp) {
        let mut head = request.mad;
        head.header.method = Method::GET_RESP.0;
        head.header.status.set(0);
        let data = answer.encode(&self.secret);
        // One that can't be sent now is asked for again.
        let _ = self.rmpp.send(Address { grh: None, ..request.address }, &head, data, now);
    }

    fn take_events(&mut self, now: Timestamp) {
        while let Some(event) = self.rmpp.poll_event() {
            let (RmppEvent::Received(message), Part::Standby(standby)) = (event, &mut self.part) else {
                continue;
            };
            match message::Answer::decode(&self.secret, &message.data) {
                Some(answer) if standby.expects(&answer, self.incarnation) => {
                    self.learnt.extend(standby.take(answer, now));
                }
                _ => self.refused += 1,
            }
        }
    }

    /// The next datagram to send, until there is none.
    pub fn poll_send(&mut self, now: Timestamp) -> Option<Datagram> {
        if self.rmpp.deadline().is_some_and(|at| at <= now) {
            self.rmpp.expired(now);
            self.take_events(now);
        }
        if let Part::Source(source) = &mut self.part {
            for (request, answer) in source.turn(self.own, now) {
                self.answer(&request, &answer, now);
            }
        }
        if let Part::Standby(standby) = &mut self.part {
            let answered = self.asked.is_some_and(|key| self.rmpp.is_receiving(&key));
            if answered && standby.next <= now {
                standby.next = now + INTERVAL; // the answer is on its way
            } else if let Some(request) = standby.next_request(self.own, self.incarnation, now) {
                let address = Address::gsi(standby.master.get(), ServiceLevel(0));
                let mad = mirror::request(u64::from(request.number as u32), &request.encode(&self.secret));
                self.asked = self.rmpp.expect(&address, &mad, now + INTERVAL * 2).ok();
                self.outgoing.push(Datagram { address, mad });
            }
        }
        self.outgoing.pop().or_else(|| self.rmpp.poll_send(now))
    }

    /// What was learnt since the last call.
    pub fn take_learnt(&mut self) -> Vec<Learnt> {
        std::mem::take(&mut self.learnt)
    }

    /// When [`Replication::poll_send`] has something to do although nothing came.
    pub fn deadline(&self) -> Option<Timestamp> {
        let part = match &self.part {
            Part::Idle => None,
            Part::Source(source) => source.deadline(),
            Part::Standby(standby) => Some(standby.next),
        };
        [part, self.rmpp.deadline()].into_iter().flatten().min()
    }

    /// As a standby: what is known of the copy, where the master was last seen alive at `heard` by other means.
    pub fn copy_state(&self, heard: Option<Timestamp>) -> CopyState {
        match &self.part {
            Part::Standby(standby) => standby.copy_state(heard),
            Part::Idle | Part::Source(_) => CopyState::Incomplete,
        }
    }

    /// How it stands.
    pub fn status(&self, now: Timestamp) -> MirrorStatus {
        let mut status = MirrorStatus { refused: self.refused, ..MirrorStatus::default() };
        match &self.part {
            Part::Idle => {}
            Part::Source(source) => {
                (status.standbys, status.slowest_behind) = source.standbys(now);
                status.in_step = source.in_step();
            }
            Part::Standby(standby) => {
                status.complete = standby.complete;
                status.behind = standby.behind;
                status.last_answer = standby.last_answer;
            }
        }
        status
    }
}
