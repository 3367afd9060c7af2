//! The thread that answers subnet administration from the last snapshot.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use mad::transport::{Datagram, Transport};
use mad::types::Timestamp;

use super::DaemonError;
use crate::sa::{Server, ServerConfig};
use crate::snapshot::Snapshot;

/// Queries taken in before the first of them is answered; keeps the device's queue short.
const BATCH: usize = 256;
const TURN: Duration = Duration::from_millis(200);

/// The thread; ends when it is dropped.
pub(super) struct SaThread {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl SaThread {
    pub(super) fn start(
        transport: &Arc<dyn Transport>,
        queries: Receiver<Datagram>,
        snapshot: &Arc<ArcSwapOption<Snapshot>>,
        config: ServerConfig,
    ) -> Result<Self, DaemonError> {
        let stop = Arc::new(AtomicBool::new(false));
        let work = Work {
            transport: Arc::clone(transport),
            queries,
            snapshot: Arc::clone(snapshot),
            stop: Arc::clone(&stop),
            start: Instant::now(),
        };
        let thread = std::thread::Builder::new()
            .name("sa".into())
            .spawn(move || work.run(Server::new(config)))
            .map_err(DaemonError::Thread)?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for SaThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Work {
    transport: Arc<dyn Transport>,
    queries: Receiver<Datagram>,
    snapshot: Arc<ArcSwapOption<Snapshot>>,
    stop: Arc<AtomicBool>,
    start: Instant,
}

impl Work {
    fn now(&self) -> Timestamp {
        Timestamp::from_start(self.start.elapsed())
    }

    fn run(self, mut server: Server) {
        while !self.stop.load(Ordering::Acquire) {
            let wait = server.deadline().map_or(TURN, |at| (at - self.now()).min(TURN));
            match self.queries.recv_timeout(wait) {
                Ok(query) => self.take(&mut server, &query),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            for query in self.queries.try_iter().take(BATCH) {
                self.take(&mut server, &query);
            }
            while let Some(answer) = server.poll_send(self.now()) {
                if let Err(error) = self.transport.send(&answer, None) {
                    tracing::debug!(lid = answer.address.lid, %error, "an SA answer was not sent");
                }
            }
        }
    }

    /// Before the first snapshot there is nothing to answer from: the sender asks again.
    fn take(&self, server: &mut Server, query: &Datagram) {
        if let Some(snapshot) = self.snapshot.load_full() {
            server.receive(query, &snapshot, self.now());
        }
    }
}
