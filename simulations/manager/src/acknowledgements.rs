//! Answers that acknowledge registrations wait until standbys in step and etcd have these: what the daemon does with channels.

use std::collections::VecDeque;
use std::time::Duration;

use mad::transport::Datagram;
use mad::types::Timestamp;
use sm_core::sa::acknowledges;

use crate::state::Version;

/// The longest that an answer waits for etcd.
const PATIENCE: Duration = Duration::from_secs(1);

/// In order, with what is to be reached first, and until when etcd is waited for.
#[derive(Default)]
pub(crate) struct Acknowledgements {
    waiting: VecDeque<(Version, Option<Timestamp>, Datagram)>,
    /// Of the last change: an answer that changes nothing may repeat one that waits.
    last: Version,
}

impl Acknowledgements {
    /// Keeps what acknowledges a change, or what came before; the others come back.
    pub(crate) fn keep(
        &mut self,
        mut answers: Vec<Datagram>,
        version: Option<Version>,
        now: Timestamp,
    ) -> Vec<Datagram> {
        self.last = version.unwrap_or(self.last);
        let kept = answers.extract_if(.., |answer| acknowledges(answer));
        self.waiting.extend(kept.map(|answer| (self.last, Some(now + PATIENCE), answer)));
        answers
    }

    /// Those that may go. Where we may be master no more (`leads`), nothing is acknowledged: whoever asked asks again.
    pub(crate) fn release(&mut self, reached: Version, leads: bool, now: Timestamp) -> Vec<Datagram> {
        if !leads {
            *self = Self::default();
        }
        let next = || {
            let (_, until, _) = self.waiting.front_mut()?;
            *until = until.filter(|until| *until > now);
            self.waiting.pop_front_if(|(version, until, _)| version.is_reached(reached, until.is_some()))
        };
        std::iter::from_fn(next).map(|(.., answer)| answer).collect()
    }

    /// When etcd is waited for no longer.
    pub(crate) fn deadline(&self) -> Option<Timestamp> {
        self.waiting.front().and_then(|(_, until, _)| *until)
    }
}
