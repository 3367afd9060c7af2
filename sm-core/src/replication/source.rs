//! The master's side: answers requests, and knows how far each standby is.

use std::collections::BTreeMap;

use mad::types::{Guid, Timestamp};

use super::log::Log;
use super::message::{Answer, Request};
use super::{INTERVAL, PAGE};
use crate::store::Entries;

/// Standbys, or lives of them, that are remembered.
const STANDBYS: usize = 64;

#[derive(Debug)]
struct Asker {
    number: u64,
    after: u64,
    seen: Timestamp,
}

/// Everything that a master serves.
#[derive(Debug)]
pub(super) struct Source {
    stream: u64,
    /// Answers so far.
    answers: u64,
    pub(super) log: Log,
    /// By GUID and incarnation.
    askers: BTreeMap<(Guid, u64), Asker>,
}

impl Source {
    pub(super) fn new(stream: u64, entries: &Entries) -> Self {
        Self { stream, answers: 0, log: Log::new(entries), askers: BTreeMap::new() }
    }

    /// The answer; `None` for a request that came before.
    pub(super) fn answer(&mut self, request: &Request, own: Guid, now: Timestamp) -> Option<Answer> {
        self.answers += 1;
        let mut answer = Answer {
            sender: own,
            stream: self.stream,
            to: (request.incarnation, request.number),
            since: request.after,
            until: request.after,
            newest: self.log.newest(),
            serial: self.answers,
            changes: Vec::new(),
            hello: false,
        };
        if request.stream != self.stream {
            // Nothing but our stream's number, and nothing is remembered: this may be an old request sent again.
            return Some(Answer { hello: true, newest: 0, since: 0, until: 0, ..answer });
        }
        let name = (request.sender, request.incarnation);
        if self.askers.get(&name).is_some_and(|asker| request.number <= asker.number) {
            return None;
        }
        if self.askers.len() >= STANDBYS && !self.askers.contains_key(&name) {
            let oldest = self.askers.iter().min_by_key(|(_, asker)| asker.seen).map(|(name, _)| *name)?;
            self.askers.remove(&oldest);
        }
        if !self.log.reaches(request.after) {
            answer.since = 0;
        }
        self.askers.insert(name, Asker { number: request.number, after: answer.since, seen: now });
        (answer.changes, answer.until) = self.log.page(answer.since, PAGE);
        Some(answer)
    }

    /// Standbys that still ask, and how far the slowest is behind.
    pub(super) fn standbys(&self, now: Timestamp) -> (usize, u64) {
        let live = || self.askers.values().filter(|asker| now - asker.seen < INTERVAL * 10);
        let slowest = live().map(|asker| self.log.newest() - asker.after.min(self.log.newest())).max();
        (live().count(), slowest.unwrap_or(0))
    }
}
