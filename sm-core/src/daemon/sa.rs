//! The thread that answers subnet administration from the last snapshot.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError};
use mad::transport::{Datagram, Transport};
use mad::types::Timestamp;
use mad::wire::Method;
use mad::wire::smp::Notice;

use super::DaemonError;
use crate::multicast::MulticastDemand;
use crate::sa::{Server, ServerConfig};
use crate::snapshot::Snapshot;

/// Queries taken in before answers are sent; keeps the device's queue short.
const TAKEN_IN: usize = 4096;
/// Answers sent before queries are taken in again.
const BATCH: usize = 256;
const TURN: Duration = Duration::from_millis(200);

/// How long the device waits for the answer to a Report.
const REPORT_TIMEOUT: Duration = Duration::from_secs(1);

/// What the thread shares with the others.
pub(super) struct Channels {
    /// Datagrams of the class.
    pub(super) queries: Receiver<Datagram>,
    /// Traps that subscribers may want to hear of. Those too many are dropped.
    pub(super) notices: Receiver<Notice>,
    /// The groups to carry, whenever they changed. One waits at most; what changes meanwhile is in the next.
    pub(super) demands: Sender<Arc<MulticastDemand>>,
}

/// The thread; ends when it is dropped.
pub(super) struct SaThread {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl SaThread {
    pub(super) fn start(
        transport: &Arc<dyn Transport>,
        channels: Channels,
        snapshot: &Arc<ArcSwapOption<Snapshot>>,
        config: ServerConfig,
    ) -> Result<Self, DaemonError> {
        let stop = Arc::new(AtomicBool::new(false));
        let work = Work {
            transport: Arc::clone(transport),
            channels,
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
    channels: Channels,
    snapshot: Arc<ArcSwapOption<Snapshot>>,
    stop: Arc<AtomicBool>,
    start: Instant,
}

impl Work {
    fn now(&self) -> Timestamp {
        Timestamp::from_start(self.start.elapsed())
    }

    fn run(self, mut server: Server) {
        let (mut sent, mut more) = (0, false);
        while !self.stop.load(Ordering::Acquire) {
            let idle = server.deadline().map_or(TURN, |at| (at - self.now()).min(TURN));
            let wait = if more { Duration::ZERO } else { idle };
            match self.channels.queries.recv_timeout(wait) {
                Ok(query) => self.take(&mut server, &query),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            for query in self.channels.queries.try_iter().take(TAKEN_IN) {
                self.take(&mut server, &query);
            }
            if let Some(snapshot) = self.snapshot.load_full() {
                server.set_snapshot(&snapshot, self.now());
            }
            for notice in self.channels.notices.try_iter().take(BATCH) {
                server.notice(&notice);
            }
            more = self.send(&mut server);
            self.demand(&server, &mut sent);
        }
    }

    /// Sends a batch of answers. Whether there are more: then queries are taken in between, so that those beyond the
    /// server's bounds get BUSY and not silence (B47).
    fn send(&self, server: &mut Server) -> bool {
        for _ in 0..BATCH {
            let Some(answer) = server.poll_send(self.now()) else { return false };
            let timeout = (answer.mad.header.method() == Method::REPORT).then_some(REPORT_TIMEOUT);
            if let Err(error) = self.transport.send(&answer, timeout) {
                tracing::debug!(lid = answer.address.lid, %error, "an SA answer was not sent");
            }
        }
        true
    }

    /// Tells which groups there are, when that has changed. While the last demand still waits, the next turn tells it.
    fn demand(&self, server: &Server, sent: &mut u64) {
        let generation = server.registry().groups.generation();
        if generation != *sent {
            match self.channels.demands.try_send(Arc::new(server.demand())) {
                Ok(()) | Err(TrySendError::Disconnected(_)) => *sent = generation,
                Err(TrySendError::Full(_)) => {}
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
