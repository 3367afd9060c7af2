//! Why a subnet manager could not start or go on.

use mad::transport::TransportError;

use crate::store::StoreError;
use crate::sweep::SweepError;

/// Why it ended.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The state directory can't be used.
    #[error(transparent)]
    State(#[from] StoreError),
    /// The device failed for good.
    #[error("the device can't be used any more: {0}")]
    Transport(#[from] TransportError),
    /// Nothing was found, not even ourselves.
    #[error(transparent)]
    Sweep(#[from] SweepError),
    /// A thread could not be started.
    #[error("can't start a thread: {0}")]
    Thread(std::io::Error),
    /// A thread ended that must not.
    #[error("the {0} thread has ended unexpectedly")]
    ThreadEnded(&'static str),
}
