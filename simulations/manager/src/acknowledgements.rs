//! Answers that acknowledge registrations wait until standbys in step have confirmed these: what the daemon does with channels.

use std::collections::VecDeque;

use mad::transport::Datagram;
use sm_core::sa::acknowledges;

/// In order, with the version that is to be confirmed first.
#[derive(Default)]
pub(crate) struct Acknowledgements {
    waiting: VecDeque<(u64, Datagram)>,
    /// The highest version so far: an answer that changes nothing may repeat one that waits.
    version: u64,
}

impl Acknowledgements {
    /// Keeps what acknowledges `version` or what came before (0: nothing changed); the others come back.
    pub(crate) fn keep(&mut self, mut answers: Vec<Datagram>, version: u64) -> Vec<Datagram> {
        if version > 0 {
            self.version = version;
        }
        let kept = answers.extract_if(.., |answer| acknowledges(answer));
        self.waiting.extend(kept.map(|answer| (self.version, answer)));
        answers
    }

    /// Those that may go. Where we may be master no more (`leads`), nothing is acknowledged: whoever asked asks again.
    pub(crate) fn release(&mut self, confirmed: u64, leads: bool) -> Vec<Datagram> {
        if !leads {
            *self = Self::default();
        }
        std::iter::from_fn(|| self.waiting.pop_front_if(|(version, _)| *version <= confirmed))
            .map(|(_, answer)| answer)
            .collect()
    }
}
