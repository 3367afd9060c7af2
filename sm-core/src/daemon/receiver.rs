//! The thread that reads the device.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use mad::transport::{Datagram, Received, Transport, TransportError};
use mad::wire::MgmtClass;

use super::DaemonError;

/// More than any window, so that answers always have room.
const SMP_QUEUE: usize = 8192;
const SA_QUEUE: usize = 8192;
/// How often the thread looks whether it shall end, if it is not woken.
const TURN: Duration = Duration::from_millis(200);

/// The thread, and what comes from it.
pub(super) struct ReceiverThread {
    transport: Arc<dyn Transport>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// Subnet management.
    pub(super) smps: Receiver<Result<Received, TransportError>>,
    /// Subnet administration.
    pub(super) queries: Receiver<Datagram>,
}

impl ReceiverThread {
    pub(super) fn start(transport: &Arc<dyn Transport>) -> Result<Self, DaemonError> {
        let (smps_in, smps) = bounded(SMP_QUEUE);
        let (queries_in, queries) = bounded(SA_QUEUE);
        let stop = Arc::new(AtomicBool::new(false));
        let work = Work {
            transport: Arc::clone(transport),
            stop: Arc::clone(&stop),
            smps: smps_in,
            queries: queries_in,
            dropped: 0,
        };
        let thread = std::thread::Builder::new()
            .name("receiver".into())
            .spawn(move || work.run())
            .map_err(DaemonError::Thread)?;
        Ok(Self { transport: Arc::clone(transport), stop, thread: Some(thread), smps, queries })
    }
}

impl Drop for ReceiverThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.transport.wake();
        // A full channel must not keep the thread from seeing that it shall end.
        while self.thread.as_ref().is_some_and(|t| !t.is_finished()) {
            while self.smps.try_recv().is_ok() {}
            std::thread::sleep(Duration::from_millis(1));
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Work {
    transport: Arc<dyn Transport>,
    stop: Arc<AtomicBool>,
    smps: Sender<Result<Received, TransportError>>,
    queries: Sender<Datagram>,
    /// Queries dropped since the channel was full.
    dropped: u64,
}

impl Work {
    fn run(mut self) {
        while !self.stop.load(Ordering::Acquire) {
            match self.transport.receive(TURN) {
                Ok(Some(received)) => self.sort(received),
                Ok(None) => {}
                Err(error) => {
                    let closed = matches!(error, TransportError::Closed);
                    if self.smps.send(Err(error)).is_err() || closed {
                        return;
                    }
                    std::thread::sleep(TURN);
                }
            }
        }
    }

    fn sort(&mut self, received: Received) {
        let mad = match &received {
            Received::Datagram(datagram) => &datagram.mad,
            Received::Returned { request, .. } => &request.mad,
        };
        if mad.header.mgmt_class() != MgmtClass::SUBN_ADM {
            let _ = self.smps.send(Ok(received));
            return;
        }
        let Received::Datagram(datagram) = received else { return };
        if let Err(TrySendError::Full(_)) = self.queries.try_send(datagram) {
            self.dropped += 1;
            if self.dropped.is_power_of_two() {
                tracing::warn!(dropped = self.dropped, "queries come faster than they can be taken in");
            }
        }
    }
}
