//! The thread that keeps the state: it alone writes to stores.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crossbeam_channel::{Receiver, Sender, bounded, never, select};
use mad::types::{Lid, Timestamp};

use super::mirroring::Mirroring;
use super::{DaemonError, Setup};
use crate::apply::Quirks;
use crate::plan::lids::LidMemory;
use crate::store::{Change, Entries, Epoch, Journaled, Kind, Outbox, Restored, adopt, difference, typed};

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
    /// What the manager is now.
    Part(Part),
    /// A standby begins to take over: what its copy says, where that is complete.
    TakeOver(Sender<Option<Box<(Restored, Entries)>>>),
    /// Nothing more comes.
    End,
}

/// What the manager is to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Its state is the one that counts.
    Master,
    /// It follows the master at this LID, where it knows one.
    Standby(Option<Lid>),
    /// Neither.
    None,
}

/// The thread; ends when it is dropped, after the jobs that wait.
pub(super) struct Keeper {
    jobs: Sender<Job>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    pub(super) fn start(book: Book, mirroring: Mirroring, start: Instant) -> Result<Self, DaemonError> {
        let (jobs, waiting) = bounded(JOBS);
        let work = Work { book, mirroring, part: Part::None, start };
        let thread = std::thread::Builder::new()
            .name("state".into())
            .spawn(move || work.run(&waiting))
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
        let (mut store, mut entries, mut complaints) = Journaled::open(dir, setup.state_sync)?;
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

    /// The changes that replace all entries of one kind.
    fn replacing(&self, kind: Kind, by: &Entries) -> Vec<Change> {
        let of_kind = self.entries.iter().filter(|(key, _)| key.kind == kind);
        let old: Entries = of_kind.map(|(key, value)| (key.clone(), value.clone())).collect();
        difference(&old, by)
    }

    fn set_aside(&mut self) {
        self.entries = BTreeMap::new();
        for store in &mut self.stores {
            tracing::error!(
                "no port of the saved state is on this fabric, it is not used: {}",
                store.set_aside("another-fabric")
            );
        }
    }
}

struct Work {
    book: Book,
    mirroring: Mirroring,
    part: Part,
    start: Instant,
}

impl Work {
    fn now(&self) -> Timestamp {
        Timestamp::from_start(self.start.elapsed())
    }

    fn run(mut self, jobs: &Receiver<Job>) {
        loop {
            let stores = self.book.stores.iter().filter_map(Outbox::deadline);
            let next = stores.chain(self.mirroring.deadline()).min();
            let next = next.map_or(TURN, |at| (at - self.now()).min(TURN));
            select! {
                recv(jobs) -> job => match job {
                    Ok(Job::End) | Err(_) => return,
                    Ok(job) => self.take(job),
                },
                recv(self.mirroring.datagrams) -> datagram => match datagram {
                    Ok(datagram) => self.mirroring.receive(&datagram, self.start),
                    Err(_) => self.mirroring.datagrams = never(),
                },
                default(next) => {}
            }
            let now = self.now();
            for changes in self.mirroring.turn(&self.book.entries, now) {
                self.book.change(changes, now);
            }
            self.book.stores.iter_mut().for_each(|store| store.write(&[], now));
        }
    }

    fn take(&mut self, job: Job) {
        match job {
            Job::Lids(lids) => {
                self.change(self.book.replacing(Kind::Lids, &typed::lid_entries(&lids)));
            }
            Job::NotKept(quirks) => {
                self.change(self.book.replacing(Kind::NotKept, &typed::quirk_entries(&quirks)));
            }
            Job::Registrations(changes, done) => {
                self.change(changes);
                drop(done);
            }
            Job::AnotherFabric => self.book.set_aside(),
            Job::Part(part) => {
                self.part = part;
                self.mirroring.play(part, &self.book.entries, self.now());
            }
            Job::TakeOver(reply) => {
                let copy = || Box::new((Restored::of(&self.book.entries), self.book.entries.clone()));
                let _ = reply.send(self.mirroring.is_complete(self.now()).then(copy));
            }
            Job::End => {}
        }
    }

    /// What changed here. A standby's state is its copy of the master's: it changes nothing itself.
    fn change(&mut self, changes: Vec<Change>) {
        if !matches!(self.part, Part::Standby(_)) {
            self.mirroring.change(&changes);
            self.book.change(changes, self.now());
        }
    }
}

/// The UNIX time of a run's start.
pub(super) fn epoch(start: Instant) -> Epoch {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Epoch(u64::try_from(since.saturating_sub(start.elapsed()).as_millis()).unwrap_or(0))
}
