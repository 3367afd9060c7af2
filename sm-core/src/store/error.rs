//! Why something could not be kept or read back.

use std::io;
use std::path::PathBuf;

/// A store could not be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file or directory could not be used.
    #[error("{}: {what}: {source}", .path.display())]
    File {
        /// File or directory.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The database refused.
    #[error("{}: {what}: {reason}", .path.display())]
    Database {
        /// The database file.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// Its error.
        reason: String,
    },
    /// A later version of the program wrote it.
    #[error("{}: written by a later version: format {found}, known is {known}", .path.display())]
    Later {
        /// The database file.
        path: PathBuf,
        /// The format that it says.
        found: u64,
        /// The format that is known.
        known: u64,
    },
    /// Another process has it open.
    #[error("{}: another subnet manager uses this state directory; give each its own (state.dir, --state-dir)", .path.display())]
    InUse {
        /// The database file.
        path: PathBuf,
    },
    /// A store that is reached over a network does not answer or can't do what it is asked.
    #[error("etcd at {store}: {what}: {reason}")]
    Remote {
        /// Where.
        store: String,
        /// What was seen.
        what: &'static str,
        /// Why.
        reason: String,
    },
    /// It does not take our credentials.
    #[error(
        "etcd at {store} refuses us: {reason}; look at etcd.user, etcd.password_file, etcd.ca_file and etcd's own rights"
    )]
    Refused {
        /// Where.
        store: String,
        /// What it says.
        reason: String,
    },
    /// Its certificate can't be trusted.
    #[error(
        "etcd at {store} shows a certificate that is not to be trusted: {reason}; look at etcd.ca_file and at the name in etcd.endpoints"
    )]
    Untrusted {
        /// Where.
        store: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Another manager writes, and its lease has not ended.
    #[error(
        "{store}: another subnet manager writes there: port GUID and run {by}; ours is written when its lease ends"
    )]
    Owned {
        /// Where.
        store: String,
        /// Its port GUID and incarnation.
        by: String,
    },
    /// It was changed, or wiped, since we read it: it has to be read again first.
    #[error("{store}: changed by another since it was read")]
    Changed {
        /// Where.
        store: String,
    },
}
