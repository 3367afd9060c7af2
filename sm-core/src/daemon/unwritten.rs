//! Answers that acknowledge registrations wait here until those are written (B48) and we are certainly master; what only reads
//! goes out at once, so that no path is waited for while a store writes. In order of the changes; a store that hangs delays
//! them by [`KEEP_WAIT`] at most. A manager that was stopped for so long that another may rule gives no promise when it
//! wakes: what it can't vouch for within [`KEEP_WAIT`] is never sent, and asked again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, never, unbounded};
use mad::transport::Datagram;

use super::keeper::Job;
use crate::sa::acknowledges;
use crate::store::Change;

/// The longest that an answer waits for the store.
const KEEP_WAIT: Duration = Duration::from_secs(1);

/// Whoever has to write a commit holds this; the end of the last copy is the word that all is written.
#[derive(Clone)]
pub(super) struct Commit(#[expect(dead_code, reason = "held for its end")] Arc<Word>);

struct Word {
    number: u64,
    tell: Sender<u64>,
}

impl Drop for Word {
    fn drop(&mut self) {
        let _ = self.tell.send(self.number); // nobody waits any more
    }
}

struct Waiting {
    answers: Vec<Datagram>,
    /// The commit's number; `None`: they wait for it to be certain that we are master, and no longer.
    commit: Option<u64>,
    until: Instant,
}

/// The answers that wait, those of one commit together.
pub(super) struct Unwritten {
    waiting: VecDeque<Waiting>,
    commits: u64,
    /// One way for all commits: so a thread that sleeps hears of those too that begin meanwhile.
    tell: Sender<u64>,
    told: Receiver<u64>,
}

impl Default for Unwritten {
    fn default() -> Self {
        let (tell, told) = unbounded();
        Self { waiting: VecDeque::new(), commits: 0, tell, told }
    }
}

impl Unwritten {
    /// Has changes written, those of a batch with one commit, and gives back the answers that need not wait for it, or
    /// for it to be certain that we are master (`leads`).
    pub(super) fn keep(
        &mut self,
        mut answers: Vec<Datagram>,
        changes: Vec<Change>,
        keeper: &Sender<Job>,
        leads: bool,
    ) -> Vec<Datagram> {
        if !changes.is_empty() {
            self.commits += 1;
            let word = Arc::new(Word { number: self.commits, tell: self.tell.clone() });
            if keeper.send(Job::Registrations(changes, Some(Commit(word)))).is_ok() {
                self.wait_for(Some(self.commits));
            }
        }
        if !leads && self.waiting.is_empty() && answers.iter().any(acknowledges) {
            self.wait_for(None);
        }
        if let Some(last) = self.waiting.back_mut() {
            last.answers.extend(answers.extract_if(.., |answer| acknowledges(answer)));
        }
        answers
    }

    fn wait_for(&mut self, commit: Option<u64>) {
        let until = Instant::now() + KEEP_WAIT;
        self.waiting.push_back(Waiting { answers: Vec::new(), commit, until });
    }

    /// Answers that wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.iter().map(|waiting| waiting.answers.len()).sum()
    }

    /// Gives the number of a commit that is written, for [`Unwritten::written`]: of one that begins while somebody waits here, too.
    pub(super) fn next(&self, leads: bool) -> Receiver<u64> {
        if leads { self.told.clone() } else { never() }
    }

    /// Takes note that a commit is written.
    pub(super) fn written(&mut self, commit: u64) {
        // One that was waited for too long is not here any more.
        if let Some(waiting) = self.waiting.iter_mut().find(|waiting| waiting.commit == Some(commit)) {
            waiting.commit = None;
        }
    }

    /// How long the first ones wait yet at most.
    pub(super) fn patience(&self) -> Option<Duration> {
        Some(self.waiting.front()?.until.saturating_duration_since(Instant::now()))
    }

    /// The answers whose changes are written, or wait no longer.
    pub(super) fn take_written(&mut self, leads: bool) -> Vec<Datagram> {
        let mut answers = Vec::new();
        while let Ok(commit) = self.told.try_recv() {
            self.written(commit);
        }
        while let Some(front) = self.waiting.front_mut() {
            if (front.commit.is_some() || !leads) && front.until > Instant::now() {
                break;
            }
            if leads {
                answers.append(&mut front.answers);
            }
            self.waiting.pop_front();
        }
        answers
    }
}

#[cfg(test)]
mod tests {
    use crossbeam_channel::bounded;
    use mad::transport::Address;
    use mad::types::ServiceLevel;
    use mad::wire::Mad;
    use mad::wire::ids::sa;
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
        assert_eq!(
            unwritten.keep(vec![join, path], Vec::new(), &keeper, true),
            [join, path],
            "nothing changed"
        );
        assert_eq!(unwritten.keep(vec![join, path], change(), &keeper, true), [path]);
        assert_eq!(
            unwritten.keep(vec![join, path], Vec::new(), &keeper, true),
            [path],
            "the same join again"
        );
        assert_eq!(unwritten.keep(vec![service], change(), &keeper, true), []);
        assert_eq!(unwritten.take_written(true), []);
        let Ok(Job::Registrations(_, first)) = jobs.recv() else { panic!("a job") };
        let Ok(Job::Registrations(_, second)) = jobs.recv() else { panic!("a job") };
        drop(second);
        assert_eq!(unwritten.take_written(true), [], "not before the first");
        drop(first);
        let told = unwritten.next(true).recv().unwrap();
        unwritten.written(told);
        assert_eq!(unwritten.take_written(true), [join, join, service]);
        assert_eq!(unwritten.patience(), None);
    }
    /// Who was stopped, and wakes, doesn't know yet whether another rules: it promises nothing until that is certain.
    #[test]
    fn nothing_is_acknowledged_while_another_may_rule() {
        let (keeper, _jobs) = bounded(9);
        let mut unwritten = Unwritten::default();
        let (path, join) = (answer(sa::PATH_RECORD), answer(sa::MC_MEMBER_RECORD));
        assert_eq!(unwritten.keep(vec![join, path], Vec::new(), &keeper, false), [path]);
        assert_eq!(unwritten.take_written(false), []);
        assert_eq!(unwritten.take_written(true), [join]);
        assert_eq!(unwritten.keep(vec![join], Vec::new(), &keeper, false), []);
        unwritten.waiting[0].until = Instant::now();
        assert_eq!(unwritten.take_written(false), [], "and not for ever");
        assert_eq!(unwritten.take_written(true), []);
    }
}
