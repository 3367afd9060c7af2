//! Secrets from files that only their owner may read.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, anyhow};
use sm_core::replication::Secret;

use crate::failure::{Failure, Outcome};

/// The secret in a file, without the line end at its end.
///
/// # Errors
/// It can't be read, others may read it, or it is too short.
pub(crate) fn read(path: &Path) -> Outcome<Secret> {
    let short =
        || Failure::Usage(format!("{}: a secret needs {} bytes or more", path.display(), Secret::LEAST));
    Secret::new(&private(path)?).ok_or_else(short)
}

/// What a file that only its owner may read holds, without the line end at its end.
///
/// # Errors
/// It can't be read, or others may read it.
pub(crate) fn private(path: &Path) -> Outcome<Vec<u8>> {
    let file = path.display();
    let metadata = fs::metadata(path).with_context(|| format!("{file}: can't read the secret"))?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let advice =
            format!("{file}: others than its owner may read the secret (mode {mode:04o}): chmod 600 {file}");
        return Err(Failure::Usage(advice));
    }
    let bytes = fs::read(path).with_context(|| format!("{file}: can't read the secret"))?;
    Ok(bytes.trim_ascii_end().to_vec())
}

/// A number from the system that nobody can guess.
///
/// # Errors
/// The system has none.
pub(crate) fn unguessable() -> Outcome<u64> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|error| anyhow!("/dev/urandom: {error}"))?;
    Ok(u64::from_ne_bytes(bytes))
}
