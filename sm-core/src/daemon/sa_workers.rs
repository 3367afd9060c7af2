//! Threads that compute long tables, so that the thread that answers queries goes on answering.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded};
use mad::types::Timestamp;

use super::DaemonError;
use crate::sa::{Answer, Registry, Request, answer};
use crate::snapshot::Snapshot;

/// The threads; each ends when the value is dropped and its work is done.
pub(super) struct Workers {
    /// Requests, and the picture to answer each from. As many wait as there are threads.
    pub(super) jobs: Sender<(Arc<Snapshot>, Request)>,
    /// Their answers.
    pub(super) done: Receiver<(Request, Answer)>,
}

impl Workers {
    pub(super) fn start(count: usize) -> Result<Self, DaemonError> {
        let (jobs, jobs_out) = bounded::<(Arc<Snapshot>, Request)>(count.max(1));
        let (done_in, done) = bounded(count.max(1));
        for _ in 0..count {
            let (jobs, done) = (jobs_out.clone(), done_in.clone());
            let work = move || {
                for (snapshot, request) in jobs {
                    // These tables depend on the picture alone, neither on registrations nor on the time.
                    let answer = answer(&snapshot, &Registry::default(), &request, Timestamp::ZERO);
                    if done.send((request, answer)).is_err() {
                        return;
                    }
                }
            };
            std::thread::Builder::new().name("sa-worker".into()).spawn(work).map_err(DaemonError::Thread)?;
        }
        Ok(Self { jobs, done })
    }
}
