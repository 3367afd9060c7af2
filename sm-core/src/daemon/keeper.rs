//! The thread that keeps the state: it alone writes to stores.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use mad::types::Timestamp;

use super::{DaemonError, Setup};
use crate::apply::Quirks;
use crate::plan::lids::LidMemory;
use crate::store::{Change, Embedded, Entries, Epoch, Kind, Outbox, Restored, adopt, difference, typed};

/// Jobs that may wait; whoever brings more waits.
const JOBS: usize = 256;
const TURN: Duration = Duration::from_secs(1);

/// Something to keep.
pub(super) enum Job {
    /// All LIDs.
    Lids(Arc<LidMemory>),
    /// All fields that ports don't keep.
    NotKept(Arc<Quirks>),
    /// Registrations that changed, and who is told when they are written (or can't be).
    Registrations(Vec<Change>, Option<Sender<()>>),
    /// What was restored is of another fabric: it is set aside.
    AnotherFabric,
    /// Nothing more comes.
    End,
}

/// The thread; ends when it is dropped, after the jobs that wait.
pub(super) struct Keeper {
    jobs: Sender<Job>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    pub(super) fn start(book: Book, start: Instant) -> Result<Self, DaemonError> {
        let (jobs, waiting) = bounded(JOBS);
        let thread = std::thread::Builder::new()
            .name("state".into())
            .spawn(move || keep_all(book, &waiting, start))
            .map_err(DaemonError::Thread)?;
        Ok(Self { jobs, thread: Some(thread) })
    }

    /// Where jobs go.
    pub(super) fn jobs(&self) -> Sender<Job> {
        self.jobs.clone()
    }

    pub(super) fn keep(&self, job: Job) {
        let _ = self.jobs.send(job); // it ends only after this
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = self.jobs.send(Job::End);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// All entries, and the stores behind them.
pub(super) struct Book {
    entries: Entries,
    stores: Vec<Outbox>,
}

impl Book {
    /// Reads the state directory. Returns what the subnet manager begins with, and the entries of registrations.
    pub(super) fn open(setup: &Setup) -> Result<(Self, Restored, Entries), DaemonError> {
        let Some(dir) = &setup.state_dir else {
            return Ok((
                Self { entries: Entries::new(), stores: Vec::new() },
                Restored::default(),
                Entries::new(),
            ));
        };
        let (mut store, mut entries, mut complaints) = Embedded::open(dir)?;
        match adopt::adopt(dir, &mut store, &mut entries) {
            Ok(told) => complaints.extend(told),
            Err(error) => complaints.push(error.to_string()),
        }
        let mut restored = Restored::of(&entries);
        restored.complaints.splice(0..0, complaints);
        let book = Self { entries: entries.clone(), stores: vec![Outbox::new(Box::new(store))] };
        Ok((book, restored, entries))
    }

    fn change(&mut self, changes: Vec<Change>, now: Timestamp) {
        self.stores.iter_mut().for_each(|store| store.write(&changes, now));
        changes.into_iter().for_each(|change| change.apply_to(&mut self.entries));
    }

    /// Replaces all entries of one kind.
    fn replace(&mut self, kind: Kind, by: &Entries, now: Timestamp) {
        let of_kind = self.entries.iter().filter(|(key, _)| key.kind == kind);
        let old: Entries = of_kind.map(|(key, value)| (key.clone(), value.clone())).collect();
        self.change(difference(&old, by), now);
    }

    fn take(&mut self, job: Job, now: Timestamp) {
        match job {
            Job::Lids(lids) => self.replace(Kind::Lids, &typed::lid_entries(&lids), now),
            Job::NotKept(quirks) => self.replace(Kind::NotKept, &typed::quirk_entries(&quirks), now),
            Job::Registrations(changes, done) => {
                self.change(changes, now);
                drop(done);
            }
            Job::End => {}
            Job::AnotherFabric => {
                self.entries = BTreeMap::new();
                for store in &mut self.stores {
                    tracing::error!(
                        "no port of the saved state is on this fabric, it is not used: {}",
                        store.set_aside("another-fabric")
                    );
                }
            }
        }
    }
}

fn keep_all(mut book: Book, jobs: &Receiver<Job>, start: Instant) {
    loop {
        let job = jobs.recv_timeout(TURN);
        let now = Timestamp::from_start(start.elapsed());
        match job {
            Ok(Job::End) | Err(RecvTimeoutError::Disconnected) => return,
            Ok(job) => book.take(job, now),
            Err(RecvTimeoutError::Timeout) => book.stores.iter_mut().for_each(|store| store.write(&[], now)),
        }
    }
}

/// The UNIX time of a run's start.
pub(super) fn epoch(start: Instant) -> Epoch {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Epoch(u64::try_from(since.saturating_sub(start.elapsed()).as_millis()).unwrap_or(0))
}
