//! The thread that keeps the state: it alone writes to stores.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crossbeam_channel::{Receiver, Sender, bounded, never, select};
use mad::types::{Guid, Lid, Timestamp};

use super::mirroring::Mirroring;
use super::priority::run_before_others;
use super::shared::Shared;
use super::unwritten::Commit;
use super::{DaemonError, Setup};
use crate::apply::Quirks;
use crate::keys::KeyMemory;
use crate::plan::lids::LidMemory;
use crate::replication::CopyState;
use crate::store::etcd::{Etcd, EtcdConfig};
use crate::store::{
    Change, Entries, Epoch, Journaled, Kind, Outbox, Restored, StateStore, StoreError, adopt, difference,
    next_version, typed, version,
};

/// Jobs that may wait; whoever brings more waits.
const JOBS: usize = 256;
const TURN: Duration = Duration::from_secs(1);

/// Something to keep.
pub(super) enum Job {
    /// All LIDs.
    Lids(Arc<LidMemory>),
    /// All fields that ports don't keep.
    NotKept(Arc<Quirks>),
    /// All keys of ports.
    Keys(Arc<KeyMemory>),
    /// All ports whose registrations are among those kept.
    Served(Arc<BTreeSet<Guid>>),
    /// Registrations that changed, and who is told when they are written (or can't be).
    Registrations(Vec<Change>, Option<Commit>),
    /// A standby begins to take over, and what is kept of registrations is out of date: what is left without them.
    ForgetRegistrations(Sender<Entries>),
    /// What was restored is of another fabric: it is set aside.
    AnotherFabric,
    /// What the manager is now.
    Part(Part),
    /// A standby begins to take over: what its copy says, where there is one, and what is known of that.
    TakeOver {
        /// When the master was last seen alive.
        heard: Option<Timestamp>,
        reply: Sender<Option<(Copy, CopyState)>>,
    },
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
    /// `adopted` gets states that a running master takes over from a store that managers share.
    pub(super) fn start(
        book: Book,
        mirroring: Mirroring,
        adopted: Sender<Copy>,
        start: Instant,
    ) -> Result<Self, DaemonError> {
        let (jobs, waiting) = bounded(JOBS);
        let Book { entries, stores, etcd, is_etcds } = book;
        let shared = etcd.map(|(store, c)| Shared::start(store, c.lease, c.timeout, start)).transpose()?;
        let book = Book { entries, stores, etcd: None, is_etcds };
        let work =
            Work { book, mirroring, shared, adopted, part: Part::None, unconfirmed: VecDeque::new(), start };
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

/// A state as the state machine and as subnet administration need it.
pub(super) type Copy = Box<(Restored, Entries)>;

/// All entries, and the stores behind them.
pub(super) struct Book {
    entries: Entries,
    stores: Vec<Outbox>,
    /// The store that managers share, until it has a thread.
    etcd: Option<(Etcd, EtcdConfig)>,
    /// Whether the entries are what it held at the start.
    pub(super) is_etcds: bool,
}

impl Book {
    /// Reads the state directory. Returns what the subnet manager begins with, and the entries of registrations.
    pub(super) fn open(setup: &Setup) -> Result<(Self, Restored, Entries), DaemonError> {
        let mut book = Self { entries: Entries::new(), stores: Vec::new(), etcd: None, is_etcds: false };
        let mut complaints = Vec::new();
        if let Some(dir) = &setup.state_dir {
            let (mut store, mut entries, told) = Journaled::open(dir, setup.state_sync)?;
            complaints = told;
            match adopt::adopt(dir, &mut store, &mut entries) {
                Ok(told) => complaints.extend(told),
                Err(error) => complaints.push(error.to_string()),
            }
            (book.entries, book.stores) = (entries, vec![Outbox::new(Box::new(store))]);
        }
        if let Some(config) = &setup.etcd {
            complaints.extend(book.open_etcd(config)?);
        }
        let mut restored = Restored::of(&book.entries);
        restored.complaints.splice(0..0, complaints);
        let entries = book.entries.clone();
        Ok((book, restored, entries))
    }

    /// Takes what etcd holds where that is newer. That it is away is only told; that it refuses us ends the start, since
    /// waiting will not mend it.
    fn open_etcd(&mut self, config: &EtcdConfig) -> Result<Option<String>, StoreError> {
        let mut store = Etcd::new(config)?;
        let told = match store.load() {
            Ok(held) => {
                if version(&held) > version(&self.entries) {
                    self.change(difference(&self.entries, &held), Timestamp::ZERO);
                    self.is_etcds = true;
                }
                None
            }
            Err(error @ (StoreError::Refused { .. } | StoreError::Untrusted { .. })) => return Err(error),
            Err(error) => Some(format!("{error}; the subnet manager goes on without it, and tries again")),
        };
        self.etcd = Some((store, config.clone()));
        Ok(told)
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
    shared: Option<Shared>,
    adopted: Sender<Copy>,
    part: Part,
    /// Whom to tell when standbys have confirmed what was written, with the version that they have to reach.
    unconfirmed: VecDeque<(u64, Commit)>,
    start: Instant,
}

impl Work {
    fn now(&self) -> Timestamp {
        Timestamp::from_start(self.start.elapsed())
    }

    fn run(mut self, jobs: &Receiver<Job>) {
        run_before_others(); // whoever registers waits for it
        let adopted = self.shared.as_ref().map_or_else(never, |shared| shared.adopted.clone());
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
                recv(adopted) -> entries => {
                    if let Ok(entries) = entries {
                        self.adopt(&entries);
                    }
                }
                default(next) => {}
            }
            let now = self.now();
            for changes in self.mirroring.learn(&self.book.entries) {
                self.book.change(changes, now);
            }
            self.mirroring.send(now);
            let confirmed = self.mirroring.confirmed();
            while self.unconfirmed.pop_front_if(|(version, _)| *version <= confirmed).is_some() {}
            self.book.stores.iter_mut().for_each(|store| store.write(&[], now));
        }
    }

    fn take(&mut self, job: Job) {
        match job {
            Job::Lids(lids) => {
                self.change(self.book.replacing(Kind::Lids, &typed::lid_entries(&lids)), None);
            }
            Job::NotKept(quirks) => {
                self.change(self.book.replacing(Kind::NotKept, &typed::quirk_entries(&quirks)), None);
            }
            Job::Keys(keys) => {
                self.change(self.book.replacing(Kind::MKey, &typed::key_entries(&keys)), None);
            }
            Job::Served(ports) => {
                self.change(self.book.replacing(Kind::Served, &typed::served_entries(&ports)), None);
            }
            Job::Registrations(changes, done) => self.change(changes, done),
            Job::ForgetRegistrations(reply) => {
                let left = typed::without_registrations(&self.book.entries);
                let mut changes = difference(&self.book.entries, &left);
                changes.push(next_version(&self.book.entries));
                self.book.change(changes, self.now());
                let _ = reply.send(left);
            }
            Job::AnotherFabric => {
                self.book.set_aside();
                if let Some(shared) = &self.shared {
                    shared.set_aside();
                }
            }
            Job::Part(part) => {
                self.part = part;
                self.unconfirmed.clear();
                self.mirroring.play(part, &self.book.entries, self.now());
                if let Some(shared) = &mut self.shared {
                    shared.play(part == Part::Master, &self.book.entries);
                }
            }
            Job::TakeOver { heard, reply } => {
                let mut state = self.mirroring.copy_state(heard);
                if let Some((held, trusted)) = self.shared.as_ref().and_then(Shared::read) {
                    let (own, held_version) = (version(&self.book.entries), version(&held));
                    if held_version > own {
                        self.book.change(difference(&self.book.entries, &held), self.now());
                    }
                    state = state.with_shared(trusted, held_version, own);
                }
                let copy = (state != CopyState::Incomplete).then(|| (self.copy(), state));
                let _ = reply.send(copy);
            }
            Job::End => {}
        }
    }

    /// What changed here. A standby's state is its copy of the master's: it changes nothing itself.
    /// Whoever waits for the writing is told by the end of `done`.
    fn change(&mut self, mut changes: Vec<Change>, done: Option<Commit>) {
        if matches!(self.part, Part::Standby(_)) || changes.is_empty() {
            return;
        }
        changes.push(next_version(&self.book.entries));
        let (version, now) = (self.mirroring.change(&changes, self.now()), self.now());
        self.book.change(changes.clone(), now);
        if let Some(done) = done.clone().filter(|_| version > self.mirroring.confirmed()) {
            self.unconfirmed.push_back((version, done));
        }
        if let Some(shared) = &self.shared {
            shared.change(&changes, done, &self.book.entries);
        }
    }

    fn copy(&self) -> Copy {
        Box::new((Restored::of(&self.book.entries), self.book.entries.clone()))
    }

    /// A master goes on with what a shared store holds.
    fn adopt(&mut self, entries: &Entries) {
        let changes = difference(&self.book.entries, entries);
        self.mirroring.change(&changes, self.now());
        self.book.change(changes, self.now());
        let _ = self.adopted.try_send(self.copy()); // full: an older one is not yet taken; what changes next follows it
    }
}

/// The UNIX time of a run's start.
pub(super) fn epoch(start: Instant) -> Epoch {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Epoch(u64::try_from(since.saturating_sub(start.elapsed()).as_millis()).unwrap_or(0))
}
