//! The threads around the state machine, for any [`Transport`].
//!
//! | thread | does | hands on by |
//! | --- | --- | --- |
//! | receiver | reads the device, sorts datagrams; answers queries that take no time, where `sa` is idle | a channel to `sm`, one to `sa` |
//! | sm (the caller's) | runs [`Sm`](crate::sm::Sm), sends | snapshots swapped in at once |
//! | planner | one `plan::plan` at a time | a channel back to `sm` |
//! | sa | answers queries from the last snapshot | straight to the transport |
//! | sa-worker | computes one long table at a time from the snapshot | a channel back to `sa` |
//! | state | writes what changed to the stores, mirrors it between managers | tells `sa` when it is written |
//! | etcd | the same for a store that managers share and that may answer late | the state that another wrote |
//!
//! All channels are bounded. When the one to `sm` is full the receiver waits, which can't last: the window is smaller than
//! the channel, so only traps can fill it. When the one to `sa` is full the datagram is dropped and counted; its sender
//! asks again. A registration is acknowledged when it is written; other answers don't wait for that.

mod error;
mod keeper;
mod log;
mod mirroring;
mod perform;
mod priority;
mod receiver;
mod run;
mod sa;
mod sa_workers;
mod shared;
mod unwritten;
mod walk;

use std::path::PathBuf;
use std::sync::Arc;

use mad::transport::Transport;
use mad::types::Guid;

pub use error::DaemonError;
pub use run::{Control, run, run_once};
pub use walk::discover;

use crate::config::{Acknowledge, StateSync};
use crate::replication::Secret;
use crate::sa::{Figures, ServerConfig};
use crate::settings::SmSettings;
use crate::sm::{Progress, Report};
use crate::snapshot::Snapshot;
use crate::store::etcd::EtcdConfig;

/// What a subnet manager is started with.
pub struct Setup {
    /// The device.
    pub transport: Arc<dyn Transport>,
    /// PortGUID of the port, where it is known: a port that is locked doesn't tell it.
    pub own: Guid,
    /// Settings.
    pub settings: SmSettings,
    /// Where state is kept; `None`: nowhere.
    pub state_dir: Option<PathBuf>,
    /// When what is kept survives a power cut.
    pub state_sync: StateSync,
    /// Whether all LIDs are given anew at the first sweep.
    pub reassign: bool,
    /// Bounds of subnet administration.
    pub sa: ServerConfig,
    /// What is needed to mirror the state between managers; `None`: it is not mirrored.
    pub mirror: Option<Mirror>,
    /// A store that managers share; `None`: there is none.
    pub etcd: Option<EtcdConfig>,
}

/// What is needed to mirror the state between managers.
#[derive(Clone, Debug)]
pub struct Mirror {
    /// The secret that they share.
    pub secret: Secret,
    /// PortGUID of the port.
    pub own: Guid,
    /// A number that differs from run to run and can't be guessed.
    pub incarnation: u64,
    /// When a master acknowledges registrations.
    pub acknowledge: Acknowledge,
}

/// What is told while it runs. All are called from the caller's thread.
pub struct Hooks<'a> {
    /// Shows or hides the port's IsSM bit; the error is a line for the log.
    pub is_sm: Box<dyn FnMut(bool) -> Result<(), String> + 'a>,
    /// How far it is; called at most some ten times a second.
    pub progress: Box<dyn FnMut(Progress) + 'a>,
    /// A round is over.
    pub report: Box<dyn FnMut(&Report) + 'a>,
    /// There is a new picture to answer from.
    pub published: Box<dyn FnMut(&Snapshot) + 'a>,
    /// What subnet administration came to; about once a second.
    pub figures: Box<dyn FnMut(&Figures) + 'a>,
}

impl Default for Hooks<'_> {
    fn default() -> Self {
        Self {
            is_sm: Box::new(|_| Ok(())),
            progress: Box::new(|_| ()),
            report: Box::new(|_| ()),
            published: Box::new(|_| ()),
            figures: Box::new(|_| ()),
        }
    }
}
