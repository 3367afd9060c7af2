//! The daemon's thread for a store that managers share, without the thread: jobs in order, each of which takes as long as the cluster
//! takes to answer. What came of one is known when that time has passed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mad::types::{Guid, Timestamp};
use sm_core::store::etcd::{Etcd, EtcdConfig};
use sm_core::store::{Change, Entries, SharedStore, StateStore};

use crate::cluster::{Calls, Cluster, TIMEOUT};

const LEASE: Duration = Duration::from_secs(5);

enum Job {
    Lead(Entries),
    Change(Vec<Change>, u64),
    Release,
    SetAside,
}

/// A manager's side of the cluster.
pub(crate) struct Shared {
    store: SharedStore,
    cluster: Arc<Mutex<Cluster>>,
    jobs: VecDeque<Job>,
    /// When what is under way is done.
    busy_until: Timestamp,
    /// What it comes to: the last change that is written or can't be, and a state to go on with.
    outcome: Option<(u64, Option<Entries>)>,
    is_master: bool,
    /// Changes handed over, and done.
    given: u64,
    done: u64,
}

impl Shared {
    /// What the cluster holds at the start, where it answers, and the store. `life` tells this life of the manager from all others.
    pub(crate) fn start(cluster: &Arc<Mutex<Cluster>>, life: u64, now: Timestamp) -> (Option<Entries>, Self) {
        let config = EtcdConfig {
            endpoints: Vec::new(),
            prefix: "/rsm".into(),
            user: None,
            ca: None,
            lease: LEASE,
            timeout: TIMEOUT,
            own: Guid(life),
            incarnation: life,
        };
        let mut etcd = Etcd::with_gateway(Box::new(Calls(Arc::clone(cluster))), &config);
        lock(cluster).begin(now);
        let held = etcd.load().ok();
        let shared = Self {
            store: SharedStore::new(Box::new(etcd), LEASE),
            cluster: Arc::clone(cluster),
            jobs: VecDeque::new(),
            busy_until: now + lock(cluster).spent(),
            outcome: None,
            is_master: false,
            given: 0,
            done: 0,
        };
        (held, shared)
    }

    pub(crate) fn play(&mut self, is_master: bool, entries: &Entries) {
        if is_master != self.is_master {
            self.is_master = is_master;
            self.jobs.push_back(if is_master { Job::Lead(entries.clone()) } else { Job::Release });
        }
    }

    /// A master's state changed; the number that [`Shared::done`] reaches when that is written or can't be.
    pub(crate) fn change(&mut self, changes: &[Change]) -> u64 {
        if !self.is_master {
            return 0;
        }
        self.given += 1;
        self.jobs.push_back(Job::Change(changes.to_vec(), self.given));
        self.given
    }

    pub(crate) const fn done(&self) -> u64 {
        self.done
    }

    pub(crate) fn set_aside(&mut self) {
        self.jobs.push_back(Job::SetAside);
    }

    /// What a standby that takes over reads, and whether that is all that the master acknowledged; nothing where that takes too long.
    pub(crate) fn read(&mut self, now: Timestamp) -> Option<(Entries, bool)> {
        if self.busy_until > now + TIMEOUT * 2 {
            return None;
        }
        lock(&self.cluster).begin(now.max(self.busy_until));
        let cluster = Arc::clone(&self.cluster);
        let read = self.store.read(&|| lock(&cluster).time());
        read.filter(|_| lock(&cluster).spent() <= TIMEOUT * 2)
    }

    /// Goes on; a state that the manager takes over.
    pub(crate) fn turn(&mut self, now: Timestamp) -> Option<Entries> {
        let mut adopted = None;
        while now >= self.busy_until {
            if let Some((done, taken)) = self.outcome.take() {
                self.done = done;
                adopted = taken.or(adopted);
            }
            if self.jobs.is_empty() && self.store.deadline() > now {
                break;
            }
            self.work(now);
        }
        adopted
    }

    fn work(&mut self, now: Timestamp) {
        lock(&self.cluster).begin(now);
        let (cluster, mut done) = (Arc::clone(&self.cluster), self.done);
        let clock = || lock(&cluster).time();
        match self.jobs.pop_front() {
            Some(Job::Lead(entries)) => self.store.lead(entries, &clock),
            Some(Job::Change(changes, number)) => {
                self.store.change(&changes, &clock);
                done = number;
            }
            Some(Job::Release) => self.store.release(&clock),
            Some(Job::SetAside) => self.store.set_aside(&clock),
            None => self.store.turn(&clock),
        }
        self.busy_until = clock();
        self.outcome = Some((done, self.store.take_adopted()));
    }

    pub(crate) fn deadline(&self) -> Timestamp {
        let next = if self.outcome.is_some() || !self.jobs.is_empty() {
            Timestamp::ZERO
        } else {
            self.store.deadline()
        };
        next.max(self.busy_until)
    }
}

fn lock(cluster: &Mutex<Cluster>) -> MutexGuard<'_, Cluster> {
    cluster.lock().unwrap_or_else(PoisonError::into_inner)
}
