//! The default store: a database ([`Embedded`]) with a journal before it (form in `journal`).
//!
//! A commit is one `write` at the end of the journal: it survives the end of the process at once. That it survives a power cut
//! too is seen to by [`StateStore::settle`], once for all commits of a while and in a thread of its own, so that nobody who
//! registers waits for the disk, or with [`Sync::Each`] by each commit itself.
//! When the journal is long and nothing is under way, and at the end, what it says is written to the database in one transaction,
//! and it begins anew; the database remembers the number of the last frame that it holds.
//!
//! ```text
//! state.redb      the database
//! state.journal   what was changed since
//! ```
//! Cost of a commit: its bytes. Memory: the changes that are not in the database yet.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use super::entry::{Change, Entries, Key};
use super::journal::{self, HEAD};
use super::{Embedded, StateStore, StoreError, embedded, file};
pub use crate::config::StateSync as Sync;

const FILE: &str = "state.journal";
/// Bytes of a journal that goes to the database as soon as nothing is committed for a while: that takes as long as the disk
/// likes, and in a storm of registrations everybody would wait for it.
const LONG: u64 = 1 << 20;
/// Bytes at which it goes there at once. To read so much at the start takes about a second.
const LONGEST: u64 = 256 << 20;

/// The state directory's store.
#[derive(Debug)]
pub struct Journaled {
    database: Embedded,
    path: PathBuf,
    sync: Sync,
    /// `None` before the first commit, and after one that failed.
    file: Option<File>,
    /// Bytes of it that count.
    length: u64,
    /// Lengths at which it goes to the database: in a quiet moment, and at once.
    long: u64,
    longest: u64,
    /// Number of the last frame.
    sequence: u64,
    /// What it says, merged by key.
    pending: BTreeMap<Key, Option<Vec<u8>>>,
    /// Whether a power cut may take what was committed, and nobody sees to it.
    unsettled: bool,
    /// Somebody does for what was committed before.
    syncing: Option<JoinHandle<io::Result<()>>>,
}

impl Journaled {
    /// Opens the store of a state directory, as [`Embedded::open`]; what the journal says is taken over.
    ///
    /// # Errors
    /// As [`Embedded::open`].
    pub fn open(dir: &Path, sync: Sync) -> Result<(Self, Entries, Vec<String>), StoreError> {
        let (database, mut entries, mut told) = Embedded::open(dir)?;
        let path = dir.join(FILE);
        let lost = !told.is_empty() && !database.exists();
        let mut store = Self {
            database,
            path,
            sync,
            file: None,
            length: HEAD.len() as u64,
            long: LONG,
            longest: LONGEST,
            sequence: 0,
            pending: BTreeMap::new(),
            unsettled: false,
            syncing: None,
        };
        if lost && store.path.exists() {
            // Changes of what is not there any more.
            let aside = file::set_aside(&store.path, "damaged")?;
            told.push(format!("{}: set aside as {}", store.path.display(), aside.display()));
        }
        match store.load() {
            Ok(all) => entries = all,
            Err(error) => told.push(error.to_string()),
        }
        Ok((store, entries, told))
    }

    /// Has the database hold everything, and begins the journal anew.
    fn fold(&mut self) -> Result<(), StoreError> {
        let changes: Vec<Change> = self
            .pending
            .iter()
            .map(|(key, value)| Change { key: key.clone(), value: value.clone() })
            .collect();
        self.database.fold(&changes, self.sequence)?;
        self.pending.clear();
        (self.length, self.unsettled) = (HEAD.len() as u64, false);
        (self.long, self.longest) = (LONG, LONGEST);
        if let Some(file) = &self.file {
            // What stays behind counts no more by its numbers.
            let _ = file.set_len(self.length);
        }
        Ok(())
    }

    /// Folds, or lets the journal go on growing for a while: the changes are there.
    fn try_to_fold(&mut self) {
        if let Err(error) = self.fold() {
            (self.long, self.longest) = (self.length * 2, self.length.saturating_mul(2).max(LONGEST));
            tracing::warn!(%error, "the journal of the state stays as it is");
        }
    }

    fn append(&mut self, frame: &[u8]) -> Result<(), StoreError> {
        let file = match self.file.take() {
            Some(file) => file,
            None => {
                let file = embedded::open_private(&self.path)?;
                file.write_all_at(HEAD, 0).map_err(file::error(&self.path, "can't write"))?;
                file
            }
        };
        // A frame of which only a part was written is overwritten by the next.
        file.write_all_at(frame, self.length).map_err(file::error(&self.path, "can't write"))?;
        if self.sync == Sync::Each {
            file.sync_data().map_err(file::error(&self.path, "can't sync"))?;
        }
        self.length += frame.len() as u64;
        self.file = Some(file);
        Ok(())
    }
}

impl StateStore for Journaled {
    fn name(&self) -> String {
        self.database.name()
    }

    fn load(&mut self) -> Result<Entries, StoreError> {
        let (mut entries, folded) = self.database.load_with_sequence()?;
        self.sequence = folded;
        self.pending.clear();
        for (sequence, changes) in new_frames(file::read(&self.path)?.as_deref(), folded) {
            self.sequence = sequence;
            for change in changes {
                self.pending.insert(change.key.clone(), change.value.clone());
                change.apply_to(&mut entries);
            }
        }
        self.fold()?;
        Ok(entries)
    }

    fn commit(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        self.append(&journal::frame(self.sequence + 1, changes))?;
        self.sequence += 1;
        self.pending.extend(changes.iter().map(|change| (change.key.clone(), change.value.clone())));
        self.unsettled = self.sync == Sync::Grouped;
        if self.length > self.longest {
            self.try_to_fold();
        }
        Ok(())
    }

    fn is_settled(&self) -> bool {
        !self.unsettled && self.syncing.is_none() && self.length <= self.long
    }

    fn settle(&mut self) -> Result<(), StoreError> {
        if self.syncing.as_ref().is_some_and(|sync| !sync.is_finished()) {
            return Ok(());
        }
        if let Some(sync) = self.syncing.take() {
            let done = sync.join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")));
            if let Err(error) = done {
                self.unsettled = true;
                return Err(file::error(&self.path, "can't sync")(error));
            }
        }
        if let Some(file) = self.file.as_ref().filter(|_| self.unsettled) {
            let begun = file
                .try_clone()
                .and_then(|file| thread::Builder::new().name("sync".into()).spawn(move || file.sync_data()));
            self.syncing = Some(begun.map_err(file::error(&self.path, "can't sync"))?);
        } else if self.length > self.long {
            // Nothing was committed since the last call.
            self.try_to_fold();
        }
        self.unsettled = false;
        Ok(())
    }

    fn set_aside(&mut self, why: &str) -> Result<String, StoreError> {
        self.file = None;
        if self.path.exists() {
            file::set_aside(&self.path, why)?;
        }
        self.pending.clear();
        (self.length, self.sequence, self.unsettled) = (HEAD.len() as u64, 0, false);
        (self.long, self.longest) = (LONG, LONGEST);
        self.database.set_aside(why)
    }
}

impl Drop for Journaled {
    fn drop(&mut self) {
        if !self.pending.is_empty()
            && let Err(error) = self.fold()
        {
            tracing::warn!(%error, "the journal of the state stays as it is");
        }
    }
}

/// Frames that a database with everything up to `folded` does not hold yet.
fn new_frames(bytes: Option<&[u8]>, folded: u64) -> impl Iterator<Item = journal::Frame> {
    let frames = bytes.map(journal::read).unwrap_or_default();
    frames.into_iter().filter(move |(sequence, _)| *sequence > folded)
}

/// Reads the state of a directory that another process may be writing; nothing when there is none.
///
/// # Errors
/// It can't be read.
pub(super) fn peek(dir: &Path) -> Result<Entries, StoreError> {
    // The journal first: what is moved from it to the database meanwhile is then seen there, by its numbers.
    let journal = file::read(&dir.join(FILE))?;
    let (mut entries, folded) = embedded::peek(dir)?;
    let frames = new_frames(journal.as_deref(), folded);
    frames.flat_map(|(_, changes)| changes).for_each(|change| change.apply_to(&mut entries));
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::store::Kind;

    fn change(n: u8) -> Vec<Change> {
        vec![Change { key: Key::new(Kind::Lids, vec![n]), value: Some(vec![n]) }]
    }

    /// Settles until it is done.
    fn settle(store: &mut Journaled) -> Result<(), StoreError> {
        while !store.is_settled() {
            store.settle()?;
            thread::yield_now();
        }
        Ok(())
    }

    /// In a storm nobody waits for the database; when it is over, or the journal too long, the database gets it all.
    #[test]
    fn a_long_journal_waits_for_a_quiet_moment_but_not_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let journal = dir.path().join(FILE);
        let length = || std::fs::metadata(&journal).unwrap().len();
        let (mut store, ..) = Journaled::open(dir.path(), Sync::Grouped).unwrap();
        let large = |n: u8| {
            vec![Change { key: Key::new(Kind::Lids, vec![n]), value: Some(vec![n; LONG as usize / 4]) }]
        };
        for n in 0..9 {
            store.commit(&large(n)).unwrap();
            store.settle().unwrap();
        }
        assert!(length() > 2 * LONG);
        settle(&mut store).unwrap();
        assert!(length() < 100 && peek(dir.path()).unwrap().len() == 9);
        store.longest = 2 * LONG;
        let mut longest = 0;
        for n in 9..40 {
            store.commit(&large(n)).unwrap();
            longest = longest.max(length());
            assert_eq!(peek(dir.path()).unwrap().len(), usize::from(n) + 1);
            store.longest = 2 * LONG;
        }
        assert!((LONG..3 * LONG).contains(&longest), "{longest}");
    }

    #[test]
    fn a_disk_that_takes_its_time_holds_up_no_commit() {
        let dir = tempfile::tempdir().unwrap();
        let (mut store, ..) = Journaled::open(dir.path(), Sync::Grouped).unwrap();
        let (slow_disk, done) = channel::<io::Result<()>>();
        store.syncing = Some(thread::spawn(move || done.recv().unwrap()));
        for n in 0..9 {
            store.commit(&change(n)).unwrap();
            store.settle().unwrap();
            assert!(!store.is_settled());
        }
        assert_eq!(peek(dir.path()).unwrap().len(), 9);
        // What it fails to take is tried again, not forgotten.
        slow_disk.send(Err(io::Error::other("no medium"))).unwrap();
        let error = settle(&mut store).unwrap_err().to_string();
        assert!(error.contains("can't sync") && !store.is_settled(), "{error}");
        settle(&mut store).unwrap();
    }
}
