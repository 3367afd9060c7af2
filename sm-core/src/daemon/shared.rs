//! The thread at a store that managers share (etcd), so that one which answers late or never holds nobody up.
//!
//! | when | what happens |
//! | --- | --- |
//! | it is away | changes wait, merged by key; the manager goes on; the next answer gets all that waits |
//! | it was wiped | all is written again |
//! | another wrote meanwhile | what it holds is read, what waits here is laid over it, and the result is taken over here |
//! | another still writes | ours waits until the other's lease ends |
//! | a standby takes over | it reads once what is there, unless it is known to be away |

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded};
use mad::types::Timestamp;

use super::DaemonError;
use crate::store::etcd::Etcd;
use crate::store::{Change, Entries, Outbox, difference, version};

/// Jobs that may wait. When there are more, all entries are handed over anew instead.
const JOBS: usize = 1024;

enum Job {
    /// The manager is master, and this is the state.
    Master(Entries),
    /// The state changed; whoever waits for that to be written is told by the sender's end.
    Change(Vec<Change>, Option<Sender<()>>),
    /// The manager is not master any more.
    Release,
    /// What the store holds, where it answers.
    Read(Sender<Option<Entries>>),
    /// The state is of another fabric.
    SetAside,
}

/// The thread; ends when it is dropped, after one more try to write what waits.
pub(super) struct Shared {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    /// Whether jobs were lost, so that all entries have to be handed over.
    behind: Arc<AtomicBool>,
    /// States that the manager takes over from the store while it is master.
    pub(super) adopted: Receiver<Entries>,
    patience: Duration,
    is_master: bool,
}

impl Shared {
    /// `lease` is the store's, `timeout` how long it may take to answer.
    pub(super) fn start(
        store: Etcd,
        lease: Duration,
        timeout: Duration,
        start: Instant,
    ) -> Result<Self, DaemonError> {
        let (jobs, waiting) = bounded(JOBS);
        let (adopted_in, adopted) = bounded(1);
        let work = Work {
            outbox: Outbox::new(Box::new(store)),
            entries: Entries::new(),
            is_master: false,
            is_based: false,
            adopted: adopted_in,
            turn: lease / 3,
            next: Timestamp::ZERO,
            start,
        };
        let thread = std::thread::Builder::new()
            .name("etcd".into())
            .spawn(move || work.run(&waiting))
            .map_err(DaemonError::Thread)?;
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
            behind: Arc::default(),
            adopted,
            patience: timeout * 2,
            is_master: false,
        })
    }

    /// Says what the manager is, and what the state is where it is master.
    pub(super) fn play(&mut self, is_master: bool, entries: &Entries) {
        if is_master == self.is_master {
            return;
        }
        self.is_master = is_master;
        self.hand_on(if is_master { Job::Master(entries.clone()) } else { Job::Release });
    }

    /// The state changed, and is now `entries`. Only a master's is handed on.
    pub(super) fn change(&self, changes: &[Change], done: Option<Sender<()>>, entries: &Entries) {
        if !self.is_master {
            return;
        }
        if self.behind.swap(false, Ordering::Relaxed) {
            self.hand_on(Job::Master(entries.clone()));
        } else {
            self.hand_on(Job::Change(changes.to_vec(), done));
        }
    }

    /// What the store holds; `None` when it does not answer in time.
    pub(super) fn read(&self) -> Option<Entries> {
        let (reply, answer) = bounded(1);
        self.hand_on(Job::Read(reply));
        answer.recv_timeout(self.patience).ok().flatten()
    }

    pub(super) fn set_aside(&self) {
        self.hand_on(Job::SetAside);
    }

    fn hand_on(&self, job: Job) {
        let full = self.jobs.as_ref().map(|jobs| jobs.try_send(job));
        if matches!(full, Some(Err(TrySendError::Full(_)))) {
            self.behind.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Work {
    outbox: Outbox,
    /// What the store is to hold.
    entries: Entries,
    is_master: bool,
    /// Whether the store was read since we are master.
    is_based: bool,
    adopted: Sender<Entries>,
    /// Time between two signs of life.
    turn: Duration,
    next: Timestamp,
    start: Instant,
}

impl Work {
    fn now(&self) -> Timestamp {
        Timestamp::from_start(self.start.elapsed())
    }

    fn run(mut self, jobs: &Receiver<Job>) {
        loop {
            let retry = self.outbox.deadline().filter(|_| self.is_master && self.outbox.waiting() > 0);
            let due = retry.map_or(self.next, |at| at.min(self.next));
            match jobs.recv_timeout(due - self.now()) {
                Ok(job) => self.take(job),
                Err(RecvTimeoutError::Timeout) => self.turn(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        if self.is_master {
            self.write(&[]);
            self.outbox.release(self.now());
        }
    }

    fn turn(&mut self) {
        let now = self.now();
        if now >= self.next {
            self.next = now + self.turn;
            self.outbox.keep_alive(self.is_master, now);
        }
        if self.is_master {
            self.write(&[]);
        }
    }

    fn take(&mut self, job: Job) {
        match job {
            Job::Master(entries) => {
                (self.entries, self.is_master, self.is_based) = (entries, true, false);
                self.outbox.replace(difference(&Entries::new(), &self.entries));
                self.outbox.require_read();
                self.write(&[]);
            }
            Job::Change(changes, done) => {
                changes.iter().cloned().for_each(|change| change.apply_to(&mut self.entries));
                self.write(&changes);
                drop(done);
            }
            Job::Release => {
                self.is_master = false;
                self.outbox.replace(Vec::new());
                self.outbox.release(self.now());
            }
            Job::Read(reply) => {
                let _ = reply.send(self.outbox.read(self.now()));
            }
            Job::SetAside => {
                tracing::error!("{}", self.outbox.set_aside("another-fabric"));
                self.entries.clear();
                if !self.is_master {
                    self.outbox.release(self.now());
                }
            }
        }
    }

    fn write(&mut self, changes: &[Change]) {
        self.outbox.write(changes, self.now());
        // Whoever changed it once may have done so again meanwhile; the next turn goes on.
        if self.outbox.must_read() && self.merge() {
            self.outbox.write(&[], self.now());
        }
    }

    /// Lays what waits here over what is there now; at a master's first look the newer of both copies counts. `false` when
    /// the store can't be read.
    fn merge(&mut self) -> bool {
        let Some(held) = self.outbox.read(self.now()) else { return false };
        if !std::mem::replace(&mut self.is_based, true) {
            let newer = version(&held) > version(&self.entries);
            self.outbox.replace(if newer { Vec::new() } else { difference(&held, &self.entries) });
            if newer {
                self.adopt(held);
            }
            return true;
        }
        if held.is_empty() {
            tracing::warn!("etcd holds nothing of the state any more: all is written again");
            self.outbox.replace(difference(&held, &self.entries));
            return true;
        }
        let mut merged = held.clone();
        self.outbox.pending().into_iter().for_each(|change| change.apply_to(&mut merged));
        self.outbox.replace(difference(&held, &merged));
        if merged != self.entries {
            self.adopt(merged);
        }
        true
    }

    fn adopt(&mut self, entries: Entries) {
        tracing::warn!(
            entries = entries.len(),
            "etcd holds what another subnet manager wrote: it is taken over"
        );
        self.entries = entries.clone();
        let _ = self.adopted.try_send(entries); // full: an older one is under way, and is followed by what changes next
    }
}
