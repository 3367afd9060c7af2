//! What stands before a store: changes that could not be written wait, merged by key, and are written with the next ones.
//!
//! Sans-IO but for the store itself: time is an argument. Cost: O(changes · log) and one commit.

use std::collections::BTreeMap;
use std::time::Duration;

use mad::types::Timestamp;

use super::entry::{Change, Entries, Key};
use super::{StateStore, StoreError};

/// Time after a failed write before the next.
const PAUSE: Duration = Duration::from_secs(2);

/// How long commits may be exposed to the end of the machine; then all of them are settled together.
const EXPOSED: Duration = Duration::from_millis(100);

/// A store and what waits for it.
pub struct Outbox {
    store: Box<dyn StateStore>,
    waiting: BTreeMap<Key, Option<Vec<u8>>>,
    failed_at: Option<Timestamp>,
    /// When it was last found away.
    last_failure: Option<Timestamp>,
    told: Option<String>,
    /// When the first commit was made that is not settled.
    exposed_since: Option<Timestamp>,
    /// Whether the store was changed by another since we read it.
    must_read: bool,
}

impl Outbox {
    /// Nothing waits.
    pub fn new(store: Box<dyn StateStore>) -> Self {
        Self {
            store,
            waiting: BTreeMap::new(),
            failed_at: None,
            last_failure: None,
            told: None,
            exposed_since: None,
            must_read: false,
        }
    }

    /// Takes changes, and writes them with those that wait. While the store fails, at most one write in two seconds is
    /// tried; each cause is logged once, and so is the recovery.
    pub fn write(&mut self, changes: &[Change], now: Timestamp) {
        self.settle(now);
        self.waiting.extend(changes.iter().map(|change| (change.key.clone(), change.value.clone())));
        if self.waiting.is_empty() || self.must_read || self.failed_at.is_some_and(|at| now < at + PAUSE) {
            return;
        }
        let all = self.pending();
        match self.store.commit(&all) {
            Ok(()) => {
                self.waiting.clear();
                self.failed_at = None;
                if !self.store.is_settled() {
                    self.exposed_since.get_or_insert(now);
                }
                if self.told.take().is_some() {
                    tracing::info!(
                        store = self.store.name(),
                        entries = all.len(),
                        "the state is saved again"
                    );
                }
            }
            Err(error) => self.fail(&error, now),
        }
    }

    fn fail(&mut self, error: &StoreError, now: Timestamp) {
        if matches!(error, StoreError::Changed { .. }) {
            self.must_read = true;
        } else {
            self.failed_at = Some(now);
            if !matches!(error, StoreError::Owned { .. }) {
                self.last_failure = Some(now);
            }
            self.tell(error);
        }
    }

    /// When the store was last found away, or could not do what it was asked.
    pub const fn last_failure(&self) -> Option<Timestamp> {
        self.last_failure
    }

    /// Whether another changed the store, so that it is to be read, and what it holds merged, before anything is written.
    pub const fn must_read(&self) -> bool {
        self.must_read
    }

    /// Reads the store; at most once in two seconds while it fails.
    pub fn read(&mut self, now: Timestamp) -> Option<Entries> {
        if self.failed_at.is_some_and(|at| now < at + PAUSE) {
            return None;
        }
        match self.store.load() {
            Ok(entries) => {
                (self.must_read, self.failed_at) = (false, None);
                Some(entries)
            }
            Err(error) => {
                self.fail(&error, now);
                None
            }
        }
    }

    /// Settles what was committed a while ago.
    fn settle(&mut self, now: Timestamp) {
        if self.exposed_since.is_some_and(|since| now >= since + EXPOSED) {
            if let Err(error) = self.store.settle() {
                self.tell(&error);
            }
            self.exposed_since = (!self.store.is_settled()).then_some(now);
        }
    }

    /// The store is read before anything is written.
    pub fn require_read(&mut self) {
        self.must_read = true;
    }

    /// Where a store is shared: a master keeps others from writing, a standby looks whether it answers.
    pub fn keep_alive(&mut self, is_master: bool, now: Timestamp) {
        if self.failed_at.is_some_and(|at| now < at + PAUSE) {
            return;
        }
        match if is_master { self.store.keep_alive() } else { self.store.probe() } {
            Ok(()) => self.failed_at = None,
            Err(error) => self.fail(&error, now),
        }
        if !is_master && self.failed_at.is_none() && self.told.take().is_some() {
            tracing::info!(store = self.store.name(), "answers again");
        }
    }

    /// Lets others write, where a store is shared.
    pub fn release(&mut self, now: Timestamp) {
        if let Err(error) = self.store.release() {
            self.fail(&error, now);
        }
    }

    /// What waits is these changes from now on.
    pub fn replace(&mut self, changes: Vec<Change>) {
        self.waiting = changes.into_iter().map(|change| (change.key, change.value)).collect();
    }

    /// What waits.
    pub fn pending(&self) -> Vec<Change> {
        self.waiting.iter().map(|(key, value)| to_change(key, value)).collect()
    }

    fn tell(&mut self, error: &StoreError) {
        let text = error.to_string();
        if self.told.as_ref() != Some(&text) {
            tracing::error!(%error, "the state is not saved; the subnet manager goes on and tries again");
            self.told = Some(text);
        }
    }

    /// Sets the store aside and forgets what waits for it. Returns a line for the log.
    pub fn set_aside(&mut self, why: &str) -> String {
        self.waiting.clear();
        let name = self.store.name();
        match self.store.set_aside(why) {
            Ok(to) => format!("{name}: set aside as {to}"),
            Err(error) => error.to_string(),
        }
    }

    /// Entries that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Why the last write failed; `None` when it did not.
    pub fn trouble(&self) -> Option<&str> {
        self.told.as_deref()
    }

    /// When [`Outbox::write`] has something to do although there are no new changes.
    pub fn deadline(&self) -> Option<Timestamp> {
        let again = self.failed_at.map(|at| at + PAUSE);
        let settle = self.exposed_since.map(|since| since + EXPOSED);
        again.into_iter().chain(settle).min()
    }
}

fn to_change(key: &Key, value: &Option<Vec<u8>>) -> Change {
    Change { key: key.clone(), value: value.clone() }
}
