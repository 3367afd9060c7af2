//! The master's side: answers requests, and knows how far each standby is.
//!
//! | a standby | its request |
//! | --- | --- |
//! | has not all | is answered at once with the next page |
//! | has all, for the first time | is answered at once: it is *in step* from now on |
//! | has all, and is in step | is kept until something changes, [`KEPT`] at most |
//!
//! An answer that says "in step" is a promise: nothing is acknowledged without that standby for [`PATIENCE`] from its request on. It is not
//! made while a change waits for confirmation longer than [`INTERVAL`]; so in step ends [`PATIENCE`] after the last request, or a little
//! later than that after a change where requests come and answers are lost. Time in which the master itself was stopped doesn't count:
//! the request may be waiting at its device.
//!
//! Cost: O(log changes) a request; O(standbys) a turn.

use std::collections::{BTreeMap, VecDeque};

use mad::transport::Datagram;
use mad::types::{Guid, Timestamp};

use super::log::Log;
use super::message::{Answer, Request};
use super::{INTERVAL, KEPT, PAGE, PATIENCE};
use crate::store::{Change, Entries};

/// Standbys, or lives of them, that are remembered.
const STANDBYS: usize = 64;

/// What became of a request.
#[derive(Debug)]
pub(super) enum Taken {
    Answer(Box<Answer>),
    /// It is answered when something changes.
    Kept,
    /// It came before.
    Refused,
}

/// A request that is answered later.
#[derive(Debug)]
struct Kept {
    datagram: Datagram,
    request: Request,
    until: Timestamp,
}

#[derive(Debug)]
struct Asker {
    number: u64,
    after: u64,
    seen: Timestamp,
    in_step: bool,
    /// When the last request came whose answer says so.
    promised: Timestamp,
    kept: Option<Kept>,
}

/// Everything that a master serves.
#[derive(Debug)]
pub(super) struct Source {
    stream: u64,
    /// Answers so far.
    answers: u64,
    log: Log,
    /// By GUID and incarnation.
    askers: BTreeMap<(Guid, u64), Asker>,
    /// Versions and times of changes that standbys in step have yet to confirm, oldest first.
    unconfirmed: VecDeque<(u64, Timestamp)>,
    /// The last turn, and the end of the last time in which there was none for long.
    turned: Timestamp,
    awake_since: Timestamp,
}

impl Source {
    pub(super) fn new(stream: u64, entries: &Entries, now: Timestamp) -> Self {
        Self {
            stream,
            answers: 0,
            log: Log::new(entries),
            askers: BTreeMap::new(),
            unconfirmed: VecDeque::new(),
            turned: now,
            awake_since: now,
        }
    }

    /// Notes changes; the version that is to be confirmed.
    pub(super) fn change(&mut self, changes: &[Change], now: Timestamp) -> u64 {
        changes.iter().for_each(|change| self.log.change(change));
        if self.in_step() > 0 {
            self.unconfirmed.push_back((self.log.newest(), now));
        }
        self.log.newest()
    }

    fn steady(&self) -> impl Iterator<Item = &Asker> {
        self.askers.values().filter(|asker| asker.in_step)
    }

    /// Standbys in step.
    pub(super) fn in_step(&self) -> usize {
        self.steady().count()
    }

    /// The version up to which all of these have all.
    pub(super) fn confirmed(&self) -> u64 {
        self.steady().map(|asker| asker.after).min().unwrap_or(u64::MAX)
    }

    /// The answer to a request, if there is one now.
    pub(super) fn take(
        &mut self,
        request: &Request,
        datagram: &Datagram,
        own: Guid,
        now: Timestamp,
    ) -> Taken {
        if request.stream != self.stream {
            // Nothing but our stream's number, and nothing is remembered: this may be an old request sent again.
            let hello = Answer { hello: true, newest: 0, since: 0, until: 0, ..self.blank(request, own) };
            return Taken::Answer(Box::new(hello));
        }
        let name = (request.sender, request.incarnation);
        if self.askers.get(&name).is_some_and(|asker| request.number <= asker.number) {
            return Taken::Refused;
        }
        if self.askers.len() >= STANDBYS && !self.askers.contains_key(&name) {
            let oldest = self.askers.iter().min_by_key(|(_, asker)| asker.seen).map(|(name, _)| *name);
            oldest.map(|oldest| self.askers.remove(&oldest));
        }
        let after = if self.log.reaches(request.after) { request.after } else { 0 };
        let is_level = after == self.log.newest();
        let before = self.askers.get(&name);
        let was_in_step = before.is_some_and(|asker| asker.in_step && asker.after <= after);
        let kept = (is_level && was_in_step).then(|| Kept {
            datagram: *datagram,
            request: *request,
            until: now + KEPT,
        });
        let is_kept = kept.is_some();
        let in_step = is_level || was_in_step;
        let promises = in_step && self.may_promise(after, now);
        let promised = if promises { now } else { before.map_or(now, |asker| asker.promised) };
        let number = request.number;
        self.askers.insert(name, Asker { number, after, seen: now, in_step, promised, kept });
        let confirmed = self.confirmed();
        while self.unconfirmed.front().is_some_and(|(version, _)| *version <= confirmed) {
            self.unconfirmed.pop_front();
        }
        if is_kept { Taken::Kept } else { Taken::Answer(Box::new(self.page(request, after, promises, own))) }
    }

    /// Whether a standby that has all up to `after` can be promised anything: it is not late with a change.
    fn may_promise(&self, after: u64, now: Timestamp) -> bool {
        let next = self.unconfirmed.partition_point(|(version, _)| *version <= after);
        self.unconfirmed.get(next).is_none_or(|(_, at)| now - (*at).max(self.awake_since) <= INTERVAL)
    }

    /// An answer without changes.
    fn blank(&mut self, request: &Request, own: Guid) -> Answer {
        self.answers += 1;
        Answer {
            sender: own,
            stream: self.stream,
            to: (request.incarnation, request.number),
            since: request.after,
            until: request.after,
            newest: self.log.newest(),
            serial: self.answers,
            changes: Vec::new(),
            hello: false,
            in_step: false,
        }
    }

    fn page(&mut self, request: &Request, after: u64, in_step: bool, own: Guid) -> Answer {
        let since = if self.log.reaches(after) { after } else { 0 };
        let (changes, until) = self.log.page(since, PAGE);
        Answer { since, until, changes, in_step, ..self.blank(request, own) }
    }

    /// Gives up standbys that don't confirm; the answers to kept requests that are due.
    pub(super) fn turn(&mut self, own: Guid, now: Timestamp) -> Vec<(Datagram, Answer)> {
        if now - self.turned > INTERVAL {
            self.awake_since = now;
        }
        self.turned = now;
        let newest = self.log.newest();
        let mut due = Vec::new();
        for asker in self.askers.values_mut().filter(|asker| asker.in_step || asker.kept.is_some()) {
            asker.in_step &= now - asker.promised.max(self.awake_since) < PATIENCE;
            if let Some(kept) = asker.kept.take_if(|kept| asker.after < newest || kept.until <= now) {
                due.push((kept, asker.after, asker.in_step));
            }
        }
        if self.in_step() == 0 {
            self.unconfirmed.clear();
        }
        let answered = due
            .into_iter()
            .map(|(kept, after, in_step)| (kept.datagram, self.page(&kept.request, after, in_step, own)));
        answered.collect()
    }

    /// When [`Source::turn`] is due; often enough to notice that we were stopped.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        let newest = self.log.newest();
        let answers = self.askers.values().filter_map(|asker| {
            let kept = asker.kept.as_ref()?;
            Some(if asker.after < newest { Timestamp::ZERO } else { kept.until })
        });
        let look = (self.in_step() > 0).then(|| self.turned + KEPT);
        answers.chain(look).min()
    }

    /// Standbys that still ask, and how far the slowest is behind.
    pub(super) fn standbys(&self, now: Timestamp) -> (usize, u64) {
        let live = || self.askers.values().filter(|asker| now - asker.seen < INTERVAL * 10);
        let slowest = live().map(|asker| self.log.newest() - asker.after.min(self.log.newest())).max();
        (live().count(), slowest.unwrap_or(0))
    }
}
