//! The state directory and the names in it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::StoreError;

pub(super) fn error<'a>(path: &'a Path, what: &'static str) -> impl FnOnce(io::Error) -> StoreError + 'a {
    move |source| StoreError::File { path: path.to_path_buf(), what, source }
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

/// Renames a file to the first free of `NAME.WHY`, `NAME.WHY.1`, …; returns the new name.
pub(super) fn set_aside(path: &Path, why: &str) -> Result<PathBuf, StoreError> {
    let candidate = |n: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(if n == 0 { format!(".{why}") } else { format!(".{why}.{n}") });
        PathBuf::from(name)
    };
    let free = (0..100).map(candidate).find(|to| !to.exists()).unwrap_or_else(|| candidate(0));
    fs::rename(path, &free).map_err(error(path, "can't be set aside"))?;
    Ok(free)
}
