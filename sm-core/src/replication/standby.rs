//! The standby's side: asks, and puts pages together.

use mad::types::{Guid, Lid, Timestamp};

use super::message::{Answer, Request};
use super::{INTERVAL, Learnt};
use crate::store::Entries;

/// Everything that a standby knows of its copy.
#[derive(Debug)]
pub(super) struct Standby {
    pub(super) master: Lid,
    stream: u64,
    after: u64,
    number: u64,
    pub(super) next: Timestamp,
    /// What came since the last beginning from 0, until the copy is complete.
    collected: Entries,
    pub(super) complete: bool,
    pub(super) behind: u64,
    pub(super) last_answer: Option<Timestamp>,
}

impl Standby {
    pub(super) const fn new(master: Lid, now: Timestamp) -> Self {
        Self {
            master,
            stream: 0,
            after: 0,
            number: 0,
            next: now,
            collected: Entries::new(),
            complete: false,
            behind: 0,
            last_answer: None,
        }
    }

    /// A request, when it is time.
    pub(super) fn next_request(&mut self, own: Guid, incarnation: u64, now: Timestamp) -> Option<Request> {
        if self.next > now {
            return None;
        }
        self.next = now + INTERVAL;
        self.number += 1;
        let Self { stream, after, number, .. } = *self;
        Some(Request { sender: own, incarnation, number, stream, after })
    }

    /// Whether this answers the last request, and nothing else.
    pub(super) const fn expects(&self, answer: &Answer, incarnation: u64) -> bool {
        answer.to.0 == incarnation && answer.to.1 == self.number
    }

    pub(super) fn take(&mut self, answer: Answer, now: Timestamp) -> Option<Learnt> {
        self.last_answer = Some(now);
        if answer.hello || answer.stream != self.stream {
            (self.stream, self.after, self.complete) = (answer.stream, 0, false);
            self.collected.clear();
            self.next = now; // the real question at once
            return None;
        }
        if answer.since == 0 && self.after != 0 {
            self.complete = false;
            self.collected.clear();
        } else if answer.since != self.after {
            return None;
        }
        self.after = answer.until;
        self.behind = answer.newest.saturating_sub(answer.until);
        if self.complete {
            return (!answer.changes.is_empty()).then_some(Learnt::Changes(answer.changes));
        }
        answer.changes.into_iter().for_each(|change| change.apply_to(&mut self.collected));
        self.complete = self.behind == 0;
        self.complete.then(|| Learnt::Complete(std::mem::take(&mut self.collected)))
    }
}
