//! Entries in order of the version at which they last changed: whoever knows everything up to a version gets what is after
//! it, whether that is one change or all.
//!
//! Removals are kept as entries without a value, up to a bound; whoever knows only what is before the oldest that was
//! forgotten has to begin from 0. Cost: O(log entries) a change; O(page) a page.

use std::collections::BTreeMap;

use crate::store::{Change, Entries, Key};

/// Removals that are remembered.
const REMOVALS: usize = 10_000;
/// What an entry costs besides key and value in a page.
const OVERHEAD: usize = 16;

/// The log.
#[derive(Clone, Debug, Default)]
pub struct Log {
    entries: BTreeMap<Key, (u64, Option<Vec<u8>>)>,
    by_version: BTreeMap<u64, Key>,
    newest: u64,
    /// Removals up to this version may be forgotten.
    floor: u64,
    removals: BTreeMap<u64, Key>,
}

impl Log {
    /// A log of entries that exist.
    pub fn new(entries: &Entries) -> Self {
        let mut log = Self::default();
        for (key, value) in entries {
            log.change(&Change { key: key.clone(), value: Some(value.clone()) });
        }
        log
    }

    /// Notes a change.
    pub fn change(&mut self, change: &Change) {
        self.newest += 1;
        let new = (self.newest, change.value.clone());
        if let Some((old, _)) = self.entries.insert(change.key.clone(), new) {
            self.by_version.remove(&old);
            self.removals.remove(&old);
        }
        self.by_version.insert(self.newest, change.key.clone());
        if change.value.is_none() {
            self.removals.insert(self.newest, change.key.clone());
            if self.removals.len() > REMOVALS
                && let Some((version, key)) = self.removals.pop_first()
            {
                self.by_version.remove(&version);
                self.entries.remove(&key);
                self.floor = version;
            }
        }
    }

    /// The version of the last change.
    pub const fn newest(&self) -> u64 {
        self.newest
    }

    /// Whether everything after a version is still known.
    pub const fn reaches(&self, after: u64) -> bool {
        after == 0 || (after >= self.floor && after <= self.newest)
    }

    /// What follows a version, about `bytes` of it and at least one change where there is one; and the version up to which
    /// that goes. From 0 on, removals are left out.
    pub fn page(&self, after: u64, bytes: usize) -> (Vec<Change>, u64) {
        let (mut changes, mut until, mut size) = (Vec::new(), after, 0);
        for (version, key) in self.by_version.range(after + 1..) {
            let Some((_, value)) = self.entries.get(key) else { continue };
            size += key.id.len() + value.as_ref().map_or(0, Vec::len) + OVERHEAD;
            if size > bytes && !changes.is_empty() {
                return (changes, until);
            }
            until = *version;
            changes.push(Change { key: key.clone(), value: value.clone() });
        }
        (changes, self.newest.max(after))
    }
}
