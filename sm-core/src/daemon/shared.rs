//! The thread at a store that managers share (etcd), so that one which answers late or never holds nobody up.
//! What it does there and when: [`SharedStore`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError, bounded};
use mad::types::Timestamp;

use super::DaemonError;
use super::unwritten::Commit;
use crate::store::etcd::Etcd;
use crate::store::{Change, Clock, Entries, SharedStore};

/// Jobs that may wait. When there are more, all entries are handed over anew instead.
const JOBS: usize = 1024;

enum Job {
    /// The manager is master, and this is the state.
    Master(Entries),
    /// The state changed; whoever waits for that to be written is told by the sender's end.
    Change(Vec<Change>, Option<Commit>),
    /// The manager is not master any more.
    Release,
    /// What the store holds, where it answers.
    Read(Sender<Option<(Entries, bool)>>),
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
        let work = Work { store: SharedStore::new(Box::new(store), lease), adopted: adopted_in, start };
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
    pub(super) fn change(&self, changes: &[Change], done: Option<Commit>, entries: &Entries) {
        if !self.is_master {
            return;
        }
        if self.behind.swap(false, Ordering::Relaxed) {
            self.hand_on(Job::Master(entries.clone()));
        } else {
            self.hand_on(Job::Change(changes.to_vec(), done));
        }
    }

    /// What the store holds, and whether that can be trusted to be all that a master acknowledged; `None` when it does not
    /// answer in time.
    pub(super) fn read(&self) -> Option<(Entries, bool)> {
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
    store: SharedStore,
    adopted: Sender<Entries>,
    start: Instant,
}

impl Work {
    fn run(mut self, jobs: &Receiver<Job>) {
        let start = self.start;
        let clock = move || Timestamp::from_start(start.elapsed());
        loop {
            match jobs.recv_timeout(self.store.deadline() - clock()) {
                Ok(job) => self.take(job, &clock),
                Err(RecvTimeoutError::Timeout) => self.store.turn(&clock),
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if let Some(entries) = self.store.take_adopted() {
                let _ = self.adopted.try_send(entries); // full: an older one is under way, and is followed by what changes next
            }
        }
        self.store.end(&clock);
    }

    fn take(&mut self, job: Job, clock: Clock<'_>) {
        match job {
            Job::Master(entries) => self.store.lead(entries, clock),
            Job::Change(changes, done) => {
                self.store.change(&changes, clock);
                drop(done);
            }
            Job::Release => self.store.release(clock),
            Job::Read(reply) => {
                let _ = reply.send(self.store.read(clock));
            }
            Job::SetAside => self.store.set_aside(clock),
        }
    }
}
