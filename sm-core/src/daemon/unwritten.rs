//! Answers that acknowledge registrations wait here until those are written (B48); what only reads goes out at once, so that no
//! path is waited for while a store writes. In order of the changes; a store that hangs delays them by [`KEEP_WAIT`] at most.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded, never};
use mad::transport::Datagram;
use mad::wire::ids::sa;

use super::keeper::Job;
use crate::store::Change;

/// The longest that an answer waits for the store.
const KEEP_WAIT: Duration = Duration::from_secs(1);

struct Waiting {
    answers: Vec<Datagram>,
    /// Its end is the word that all is written.
    written: Receiver<()>,
    until: Instant,
}

/// The answers that wait, those of one commit together.
#[derive(Default)]
pub(super) struct Unwritten(VecDeque<Waiting>);

impl Unwritten {
    /// Has changes written, those of a batch with one commit, and gives back the answers that need not wait for it.
    pub(super) fn keep(
        &mut self,
        mut answers: Vec<Datagram>,
        changes: Vec<Change>,
        keeper: &Sender<Job>,
    ) -> Vec<Datagram> {
        if !changes.is_empty() {
            let (done, written) = bounded(0);
            if keeper.send(Job::Registrations(changes, Some(done))).is_ok() {
                self.0.push_back(Waiting { answers: Vec::new(), written, until: Instant::now() + KEEP_WAIT });
            }
        }
        if let Some(last) = self.0.back_mut() {
            last.answers.extend(answers.extract_if(.., |answer| is_of_registrations(answer)));
        }
        answers
    }

    /// Tells when there may be something for [`Unwritten::take_written`].
    pub(super) fn next(&self) -> Receiver<()> {
        self.0.front().map_or_else(never, |front| front.written.clone())
    }

    /// How long the first ones wait yet at most.
    pub(super) fn patience(&self) -> Option<Duration> {
        Some(self.0.front()?.until.saturating_duration_since(Instant::now()))
    }

    /// The answers whose changes are written, or wait no longer.
    pub(super) fn take_written(&mut self) -> Vec<Datagram> {
        let mut answers = Vec::new();
        while let Some(front) = self.0.front_mut() {
            let pending = front.written.try_recv() == Err(TryRecvError::Empty);
            if pending && front.until > Instant::now() {
                break;
            }
            answers.append(&mut front.answers);
            self.0.pop_front();
        }
        answers
    }
}

/// Whether an answer may acknowledge what a port registered.
fn is_of_registrations(answer: &Datagram) -> bool {
    let attribute = answer.mad.header.attribute_id.get();
    [sa::MC_MEMBER_RECORD, sa::SERVICE_RECORD, sa::INFORM_INFO, sa::GUID_INFO_RECORD].contains(&attribute)
}

#[cfg(test)]
mod tests {
    use mad::transport::Address;
    use mad::types::ServiceLevel;
    use mad::wire::Mad;
    use zerocopy::FromZeros;

    use super::*;
    use crate::store::{Key, Kind};

    fn answer(attribute: u16) -> Datagram {
        let mut mad = Mad::new_zeroed();
        mad.header.attribute_id.set(attribute);
        Datagram { address: Address::gsi(5, ServiceLevel(0)), mad }
    }

    /// A path is answered while a store writes; joins in order of their commits, each after its own, also one that changes
    /// nothing because it is the same again.
    #[test]
    fn b48_what_acknowledges_waits_for_its_commit_and_nothing_else_does() {
        let (keeper, jobs) = bounded(9);
        let mut unwritten = Unwritten::default();
        let (path, join, service) =
            (answer(sa::PATH_RECORD), answer(sa::MC_MEMBER_RECORD), answer(sa::SERVICE_RECORD));
        let change = || vec![Change { key: Key::new(Kind::Member, vec![1]), value: None }];
        assert_eq!(unwritten.keep(vec![join, path], Vec::new(), &keeper), [join, path], "nothing changed");
        assert_eq!(unwritten.keep(vec![join, path], change(), &keeper), [path]);
        assert_eq!(unwritten.keep(vec![join, path], Vec::new(), &keeper), [path], "the same join again");
        assert_eq!(unwritten.keep(vec![service], change(), &keeper), []);
        assert_eq!(unwritten.take_written(), []);
        let Ok(Job::Registrations(_, first)) = jobs.recv() else { panic!("a job") };
        let Ok(Job::Registrations(_, second)) = jobs.recv() else { panic!("a job") };
        drop(second);
        assert_eq!(unwritten.take_written(), [], "not before the first");
        drop(first);
        assert!(unwritten.next().recv().is_err());
        assert_eq!(unwritten.take_written(), [join, join, service]);
        assert_eq!(unwritten.patience(), None);
    }
}
