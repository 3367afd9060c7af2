//! The database of a state directory: one file, a copy-on-write B-tree (crate `redb`) in which a commit is whole or
//! not there, whenever the process or the machine stops.
//!
//! ```text
//! state.redb   table "meta":    "format" = 1, "journal" = number of the last frame of the journal that it holds
//!              table "entries": key as Key::to_bytes = value
//! ```
//! The file has mode 0600: values may be keys. One process writes, others may read meanwhile. After a failed write the
//! file is opened again before the next one. Cost: one sync to disk a commit.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use redb::backends::FileBackend;
use redb::{ConcurrencyMode, Database, ReadOnlyDatabase, ReadableDatabase, ReadableTable, TableDefinition};

use super::entry::{Change, Entries, Key};
use super::{StateStore, StoreError, file};

const FILE: &str = "state.redb";
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const ENTRIES: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("entries");
const FORMAT: &str = "format";
const JOURNAL: &str = "journal";
/// The version that this program writes and the only one that it reads.
const VERSION: u64 = 1;
/// Bytes of the page cache: all that is read is read once.
const CACHE: usize = 4 << 20;

/// The database of a state directory.
#[derive(Debug)]
pub struct Embedded {
    path: PathBuf,
    /// `None` after a write that failed.
    database: Option<Database>,
}

impl Embedded {
    /// Opens the database of a state directory; directory and file are made when they are missing. A file that is damaged
    /// is set aside and a new one begun, one that can be read only is read; the lines for the log say so.
    ///
    /// # Errors
    /// The directory can't be made or read, or another process uses it.
    pub fn open(dir: &Path) -> Result<(Self, Entries, Vec<String>), StoreError> {
        file::make_dir(dir)?;
        let path = dir.join(FILE);
        let mut store = Self { path, database: None };
        let mut told = Vec::new();
        if !store.path.exists() {
            return Ok((store, Entries::new(), told));
        }
        match store.load() {
            Ok(entries) => Ok((store, entries, told)),
            Err(error @ StoreError::InUse { .. }) => Err(error),
            Err(error @ StoreError::File { .. }) => {
                let (entries, _) = peek(dir)?;
                told.push(format!("{error}; what it holds is used, and nothing can be saved"));
                Ok((store, entries, told))
            }
            Err(error) => {
                let why = if matches!(error, StoreError::Later { .. }) { "later" } else { "damaged" };
                told.push(error.to_string());
                let aside = store.set_aside(why)?;
                told.push(format!("{}: set aside as {aside}", store.path.display()));
                Ok((store, Entries::new(), told))
            }
        }
    }

    /// Whether there is a file at all.
    pub(super) fn exists(&self) -> bool {
        self.path.exists()
    }

    /// All entries, and the number of the last frame of the journal among them.
    ///
    /// # Errors
    /// The store can't be read.
    pub(super) fn load_with_sequence(&mut self) -> Result<(Entries, u64), StoreError> {
        let path = self.path.clone();
        let database = self.database()?;
        read_with_sequence(&path, database)
    }

    /// A commit of what a journal says up to a frame.
    ///
    /// # Errors
    /// As [`StateStore::commit`].
    pub(super) fn fold(&mut self, changes: &[Change], sequence: u64) -> Result<(), StoreError> {
        let path = self.path.clone();
        let database = self.database()?;
        let written = guarded(&path, "can't write", || write_frames(database, changes, sequence));
        if written.is_err() {
            self.database = None;
        }
        written
    }

    /// The open database, opened now if it is not.
    fn database(&mut self) -> Result<&Database, StoreError> {
        if self.database.is_none() {
            let (path, file) = (self.path.clone(), open_private(&self.path)?);
            let open =
                guarded(&path, "can't open", move || builder().create_with_backend(FileBackend::new(file)?));
            self.database = Some(open?);
        }
        // Set just above.
        self.database.as_ref().ok_or_else(|| database_error(&self.path, "can't open", "closed"))
    }
}

impl StateStore for Embedded {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn load(&mut self) -> Result<Entries, StoreError> {
        let path = self.path.clone();
        let database = self.database()?;
        read_all(&path, database)
    }

    fn commit(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        let path = self.path.clone();
        let database = self.database()?;
        let written = guarded(&path, "can't write", || write(database, changes));
        if written.is_err() {
            self.database = None;
        }
        written
    }

    fn set_aside(&mut self, why: &str) -> Result<String, StoreError> {
        self.database = None;
        file::set_aside(&self.path, why).map(|to| to.display().to_string())
    }
}

/// Reads the database of a state directory that another process may be writing; nothing when there is none.
///
/// # Errors
/// It can't be read.
pub(super) fn peek(dir: &Path) -> Result<(Entries, u64), StoreError> {
    let path = dir.join(FILE);
    if !path.exists() {
        return Ok((Entries::new(), 0));
    }
    let open = || builder().open_read_only(&path);
    let database: ReadOnlyDatabase = guarded(&path, "can't open", open)?;
    read_with_sequence(&path, &database)
}

fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE).set_concurrency_mode(ConcurrencyMode::SingleWriter);
    builder
}

/// A file that only its owner reads, whatever it was before.
pub(super) fn open_private(path: &Path) -> Result<File, StoreError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(path).map_err(file::error(path, "can't open"))?;
    let mode = file.metadata().map_err(file::error(path, "can't read"))?.permissions().mode();
    if mode & 0o077 != 0 {
        let only_owner = Permissions::from_mode(0o600);
        file.set_permissions(only_owner).map_err(file::error(path, "can't change its mode"))?;
    }
    Ok(file)
}

pub(super) fn write(database: &Database, changes: &[Change]) -> Result<(), redb::Error> {
    write_all(database, changes, None)
}

/// The same with the number of the last frame of the journal that is in it then.
pub(super) fn write_frames(
    database: &Database,
    changes: &[Change],
    sequence: u64,
) -> Result<(), redb::Error> {
    write_all(database, changes, Some(sequence))
}

fn write_all(database: &Database, changes: &[Change], sequence: Option<u64>) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut meta = transaction.open_table(META)?;
        meta.insert(FORMAT, VERSION)?;
        if let Some(sequence) = sequence {
            meta.insert(JOURNAL, sequence)?;
        }
        let mut entries = transaction.open_table(ENTRIES)?;
        for Change { key, value } in changes {
            match value {
                Some(value) => drop(entries.insert(&key.to_bytes()[..], &value[..])?),
                None => drop(entries.remove(&key.to_bytes()[..])?),
            }
        }
    }
    transaction.commit()?;
    Ok(())
}

pub(super) fn read_all(path: &Path, database: &impl ReadableDatabase) -> Result<Entries, StoreError> {
    read_with_sequence(path, database).map(|(entries, _)| entries)
}

/// The same with the number of the last frame of the journal that is in it.
pub(super) fn read_with_sequence(
    path: &Path,
    database: &impl ReadableDatabase,
) -> Result<(Entries, u64), StoreError> {
    guarded(path, "can't read", || read(database))?.map_err(|found| StoreError::Later {
        path: path.to_path_buf(),
        found,
        known: VERSION,
    })
}

/// All entries and the journal's number, or the version where that is not ours.
fn read(database: &impl ReadableDatabase) -> Result<Result<(Entries, u64), u64>, redb::Error> {
    let transaction = database.begin_read()?;
    let (version, sequence) = match transaction.open_table(META) {
        Ok(meta) => {
            let number = |name| meta.get(name).map(|found| found.map(|number| number.value()));
            (number(FORMAT)?, number(JOURNAL)?.unwrap_or(0))
        }
        Err(redb::TableError::TableDoesNotExist(_)) => (None, 0),
        Err(error) => return Err(error.into()),
    };
    match version {
        None => return Ok(Ok((Entries::new(), 0))),
        Some(VERSION) => {}
        Some(other) => return Ok(Err(other)),
    }
    let table = transaction.open_table(ENTRIES)?;
    let mut entries = Entries::new();
    for entry in table.iter()? {
        let (key, value) = entry?;
        if let Some(key) = Key::from_bytes(key.value()) {
            entries.insert(key, value.value().to_vec());
        }
    }
    Ok(Ok((entries, sequence)))
}

/// Calls the database. A damaged file can make it panic; that is an error like others.
fn guarded<T, E: Into<redb::Error>>(
    path: &Path,
    what: &'static str,
    call: impl FnOnce() -> Result<T, E>,
) -> Result<T, StoreError> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(match error.into() {
            redb::Error::DatabaseAlreadyOpen => StoreError::InUse { path: path.to_path_buf() },
            redb::Error::Io(error) if is_damage(&error) => database_error(path, what, &error.to_string()),
            redb::Error::Io(source) => StoreError::File { path: path.to_path_buf(), what, source },
            other => database_error(path, what, &other.to_string()),
        }),
        Err(_) => Err(database_error(path, what, "its content is damaged")),
    }
}

/// Whether the content is to blame and not the system.
fn is_damage(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}

fn database_error(path: &Path, what: &'static str, reason: &str) -> StoreError {
    StoreError::Database { path: path.to_path_buf(), what, reason: reason.to_owned() }
}
