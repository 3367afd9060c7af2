//! The standby's side: asks, and puts pages together.

use mad::types::{Guid, Lid, Timestamp};

use super::message::{Answer, Request};
use super::{AGAIN, CopyState, INTERVAL, Learnt, PATIENCE, RETRY};
use crate::store::Entries;

/// Everything that a standby knows of its copy.
#[derive(Debug)]
pub(super) struct Standby {
    pub(super) master: Lid,
    stream: u64,
    after: u64,
    number: u64,
    pub(super) next: Timestamp,
    /// When the last request was made.
    asked: Timestamp,
    /// It is a repetition if it is made now: the last one has no answer.
    unanswered: bool,
    /// What came since the last beginning from 0, until the copy is complete.
    collected: Entries,
    pub(super) complete: bool,
    /// What the master last said of us.
    in_step: bool,
    pub(super) behind: u64,
    pub(super) last_answer: Option<Timestamp>,
    /// When the last request that has an answer was made.
    reached: Option<Timestamp>,
}

impl Standby {
    pub(super) const fn new(master: Lid, now: Timestamp) -> Self {
        Self {
            master,
            stream: 0,
            after: 0,
            number: 0,
            next: now,
            asked: now,
            unanswered: false,
            collected: Entries::new(),
            complete: false,
            in_step: false,
            behind: 0,
            last_answer: None,
            reached: None,
        }
    }

    /// A request, when it is time.
    pub(super) fn next_request(&mut self, own: Guid, incarnation: u64, now: Timestamp) -> Option<Request> {
        if self.next > now {
            return None;
        }
        self.next = now + if self.unanswered { AGAIN } else { RETRY };
        self.asked = now;
        self.unanswered = true;
        self.number += 1;
        let Self { stream, after, number, .. } = *self;
        Some(Request { sender: own, incarnation, number, stream, after })
    }

    /// Whether this answers the last request, and nothing else.
    pub(super) const fn expects(&self, answer: &Answer, incarnation: u64) -> bool {
        answer.to.0 == incarnation && answer.to.1 == self.number
    }

    pub(super) fn take(&mut self, answer: Answer, now: Timestamp) -> Option<Learnt> {
        (self.last_answer, self.reached) = (Some(now), Some(self.asked));
        self.unanswered = false;
        self.in_step = answer.in_step;
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
        // Who is in step, or may be now, confirms at once.
        let at_once = answer.in_step || (self.behind == 0 && !answer.changes.is_empty());
        self.next = if at_once { now } else { (self.asked + INTERVAL).max(now) };
        if self.complete {
            return (!answer.changes.is_empty()).then_some(Learnt::Changes(answer.changes));
        }
        answer.changes.into_iter().for_each(|change| change.apply_to(&mut self.collected));
        self.complete = self.behind == 0;
        self.complete.then(|| Learnt::Complete(std::mem::take(&mut self.collected)))
    }

    /// What is known of the copy. The master goes on without us only [`PATIENCE`] after it last heard of us, which was later than we
    /// made that request: if it was seen alive after that, it may have.
    pub(super) fn copy_state(&self, heard: Option<Timestamp>) -> CopyState {
        let given_up = self.reached.is_none_or(|at| heard.is_some_and(|heard| heard - at >= PATIENCE));
        match (self.complete, self.in_step && !given_up) {
            (false, _) => CopyState::Incomplete,
            (true, false) => CopyState::Doubtful,
            (true, true) => CopyState::Confirmed,
        }
    }
}
