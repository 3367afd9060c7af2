//! Files that are replaced as a whole.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A state file or its directory could not be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {what}: {source}", .path.display())]
pub struct StoreError {
    /// File or directory.
    pub path: PathBuf,
    /// What was tried.
    pub what: &'static str,
    /// The system's error.
    pub source: io::Error,
}

fn error<'a>(path: &'a Path, what: &'static str) -> impl FnOnce(io::Error) -> StoreError + 'a {
    move |source| StoreError { path: path.to_path_buf(), what, source }
}

pub(super) fn make_dir(dir: &Path) -> Result<(), StoreError> {
    fs::create_dir_all(dir).map_err(error(dir, "can't make the state directory"))?;
    fs::read_dir(dir).map_err(error(dir, "can't read the state directory")).map(drop)
}

/// The bytes of a file; `None` when there is none.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(error(path, "can't read")(e)),
    }
}

/// Renames a damaged file to the first free of `NAME.damaged`, `NAME.damaged.1`, …; says what happened.
pub(super) fn set_aside(path: &Path) -> String {
    let candidate = |n: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(if n == 0 { ".damaged".into() } else { format!(".damaged.{n}") });
        PathBuf::from(name)
    };
    let free = (0..100).map(candidate).find(|to| !to.exists()).unwrap_or_else(|| candidate(0));
    match fs::rename(path, &free) {
        Ok(()) => format!("{}: set aside as {}", path.display(), free.display()),
        Err(e) => format!("{}: damaged, and can't be renamed to {}: {e}", path.display(), free.display()),
    }
}

/// Writes a file under a temporary name, syncs it, renames it over the old one and syncs the directory.
pub(super) fn replace(dir: &Path, name: &str, text: &str) -> Result<(), StoreError> {
    let path = dir.join(name);
    let mut temporary = tempfile::Builder::new()
        .prefix(name)
        .suffix(".new")
        .tempfile_in(dir)
        .map_err(error(&path, "can't write"))?;
    temporary.write_all(text.as_bytes()).map_err(error(&path, "can't write"))?;
    temporary.as_file().sync_all().map_err(error(&path, "can't sync"))?;
    temporary.persist(&path).map_err(|e| error(&path, "can't rename")(e.error))?;
    File::open(dir).and_then(|d| d.sync_all()).map_err(error(dir, "can't sync the state directory"))
}
