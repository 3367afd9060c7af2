//! What survives a restart: the LIDs that were given, and the fields that ports don't keep.
//!
//! Two text files in the state directory, one line an entry, the version in the first line. Writing goes to a temporary
//! name, is synced, renamed over the old file, and the directory is synced: after a power cut there is the old or the new
//! file. A file is written only when its content changes. A damaged one is set aside under a name that says so and its
//! good lines are used; nothing in it is obeyed that does not fit, and nothing is fatal (B18).

mod file;
mod lids;
mod quirks;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

pub use file::StoreError;

use crate::apply::Quirks;
use crate::plan::lids::LidMemory;

/// The state directory.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    lids: String,
    quirks: String,
}

/// What was read at the start.
#[derive(Debug, Default)]
pub struct Restored {
    /// LIDs by port GUID.
    pub lids: LidMemory,
    /// Fields that ports don't keep.
    pub quirks: Quirks,
    /// Lines that could not be used, and files set aside: for the log.
    pub complaints: Vec<String>,
}

impl Store {
    /// Opens a state directory, made when it is missing, and reads what is there.
    ///
    /// # Errors
    /// The directory can't be made or read. A directory that can't be written shows at the first write only.
    pub fn open(dir: &Path) -> Result<(Self, Restored), StoreError> {
        file::make_dir(dir)?;
        let mut restored = Restored::default();
        let lids = file::read(&dir.join(lids::FILE))?;
        let quirks = file::read(&dir.join(quirks::FILE))?;
        let mut store = Self { dir: dir.to_path_buf(), lids: String::new(), quirks: String::new() };
        if let Some(bytes) = lids {
            let parsed = lids::parse(&bytes);
            store.lids = store.accept(lids::FILE, &bytes, &parsed.complaints, &mut restored);
            restored.lids = parsed.entries;
        }
        if let Some(bytes) = quirks {
            let parsed = quirks::parse(&bytes);
            store.quirks = store.accept(quirks::FILE, &bytes, &parsed.complaints, &mut restored);
            restored.quirks = parsed.entries;
        }
        Ok((store, restored))
    }

    /// The text that a file counts as holding: none when it was damaged, so that it is written anew.
    fn accept(&self, name: &str, bytes: &[u8], complaints: &[String], restored: &mut Restored) -> String {
        if complaints.is_empty() {
            return String::from_utf8_lossy(bytes).into_owned();
        }
        let path = self.dir.join(name);
        restored.complaints.extend(complaints.iter().map(|c| format!("{}: {c}", path.display())));
        restored.complaints.push(file::set_aside(&path));
        String::new()
    }

    /// Writes the LIDs, if they differ from what the file holds. Says whether it wrote.
    ///
    /// # Errors
    /// The file could not be written; the old one is still there.
    pub fn save_lids(&mut self, memory: &LidMemory) -> Result<bool, StoreError> {
        let text = lids::render(memory);
        let wrote = text != self.lids;
        if wrote {
            file::replace(&self.dir, lids::FILE, &text)?;
            self.lids = text;
        }
        Ok(wrote)
    }

    /// Writes the fields that ports don't keep, if they differ from what the file holds. Says whether it wrote.
    ///
    /// # Errors
    /// The file could not be written; the old one is still there.
    pub fn save_quirks(&mut self, quirks: &Quirks) -> Result<bool, StoreError> {
        let text = quirks::render(quirks);
        let wrote = text != self.quirks && !(self.quirks.is_empty() && quirks.is_empty());
        if wrote {
            file::replace(&self.dir, quirks::FILE, &text)?;
            self.quirks = text;
        }
        Ok(wrote)
    }
}
