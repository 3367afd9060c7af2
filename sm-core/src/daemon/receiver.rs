//! The thread that reads the device.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use mad::transport::{Datagram, Received, Transport, TransportError};
use mad::wire::MgmtClass;
use mad::wire::vendor::mirror;

use super::DaemonError;
use super::priority::run_before_others;
use super::sa::{AtOnce, Desk};

/// Datagrams handed on at once: under load one wake-up of the other thread serves them all.
const BATCH: usize = 64;
/// Batches: more than any window, so that answers always have room even one by one.
const SMP_QUEUE: usize = 1024;
const MIRROR_QUEUE: usize = 1024;
/// Batches of queries: as many datagrams as a device can hand up while the other thread is at work on one batch.
const SA_QUEUE: usize = 1024;
/// How often the thread looks whether it shall end, if it is not woken.
const TURN: Duration = Duration::from_millis(200);

/// The thread, and what comes from it.
pub(super) struct ReceiverThread {
    transport: Arc<dyn Transport>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    desk: Arc<OnceLock<Arc<Desk>>>,
    /// Subnet management, as many at a time as lay ready.
    pub(super) smps: Receiver<Result<Vec<Received>, TransportError>>,
    /// Subnet administration, the same way.
    pub(super) queries: Receiver<Vec<Datagram>>,
    /// State that managers mirror.
    pub(super) mirror: Receiver<Datagram>,
}

impl ReceiverThread {
    pub(super) fn start(transport: &Arc<dyn Transport>) -> Result<Self, DaemonError> {
        let (smps_in, smps) = bounded(SMP_QUEUE);
        let (queries_in, queries) = bounded(SA_QUEUE);
        let (mirror_in, mirror) = bounded(MIRROR_QUEUE);
        let stop = Arc::new(AtomicBool::new(false));
        let desk = Arc::new(OnceLock::new());
        let work = Work {
            transport: Arc::clone(transport),
            stop: Arc::clone(&stop),
            smps: smps_in,
            queries: queries_in,
            mirror: mirror_in,
            desk: Arc::clone(&desk),
            dropped: 0,
        };
        let thread = std::thread::Builder::new()
            .name("receiver".into())
            .spawn(move || work.run())
            .map_err(DaemonError::Thread)?;
        let transport = Arc::clone(transport);
        Ok(Self { transport, stop, thread: Some(thread), desk, smps, queries, mirror })
    }

    /// From now on queries that take no time are answered in this thread.
    pub(super) fn serve_at(&self, desk: Arc<Desk>) {
        let _ = self.desk.set(desk); // it is told once
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
    smps: Sender<Result<Vec<Received>, TransportError>>,
    queries: Sender<Vec<Datagram>>,
    mirror: Sender<Datagram>,
    /// Where queries are answered, once there is such a place.
    desk: Arc<OnceLock<Arc<Desk>>>,
    /// Queries dropped since the channel was full.
    dropped: u64,
}

impl Work {
    fn run(mut self) {
        run_before_others();
        while !self.stop.load(Ordering::Acquire) {
            let Err(error) = self.take_in() else { continue };
            let closed = matches!(error, TransportError::Closed);
            if self.smps.send(Err(error)).is_err() || closed {
                return;
            }
            std::thread::sleep(TURN);
        }
    }

    /// Waits for a datagram and takes what lies ready behind it.
    fn take_in(&mut self) -> Result<(), TransportError> {
        let (mut smps, mut queries) = (Vec::new(), Vec::new());
        let mut next = self.transport.receive(TURN);
        for _ in 1..BATCH {
            let Ok(Some(received)) = next else { break };
            self.sort(received, &mut smps, &mut queries);
            next = self.transport.receive(Duration::ZERO);
        }
        let next = next.map(|last| {
            if let Some(last) = last {
                self.sort(last, &mut smps, &mut queries);
            }
        });
        if !smps.is_empty() {
            let _ = self.smps.send(Ok(smps));
        }
        self.hand_on(queries);
        next
    }

    fn hand_on(&mut self, queries: Vec<Datagram>) {
        if queries.is_empty() {
            return;
        }
        match self.desk.get().map_or(AtOnce::NotTaken, |desk| desk.serve_at_once(&queries)) {
            AtOnce::NotTaken => {}
            AtOnce::Done => return,
            AtOnce::GoOn => {
                let _ = self.queries.try_send(Vec::new()); // full: the thread is awake
                return;
            }
        }
        if let Err(TrySendError::Full(queries)) = self.queries.try_send(queries) {
            let before = self.dropped;
            self.dropped += queries.len() as u64;
            // A line for each power of two that is passed.
            if self.dropped.ilog2() > before.checked_ilog2().unwrap_or(0) || before == 0 {
                tracing::warn!(dropped = self.dropped, "queries come faster than they can be taken in");
            }
        }
    }

    /// Sorts by class. A request of ours that came back unanswered is of no use to subnet administration or the mirror.
    fn sort(&self, received: Received, smps: &mut Vec<Received>, queries: &mut Vec<Datagram>) {
        let mad = match &received {
            Received::Datagram(datagram) => &datagram.mad,
            Received::Returned { request, .. } => &request.mad,
        };
        let class = mad.header.mgmt_class();
        match received {
            Received::Datagram(datagram) if class == MgmtClass::SUBN_ADM => queries.push(datagram),
            Received::Datagram(datagram) if class == mirror::CLASS => {
                let _ = self.mirror.try_send(datagram); // full: it is asked for again
            }
            Received::Returned { .. } if class == MgmtClass::SUBN_ADM || class == mirror::CLASS => {}
            received => smps.push(received),
        }
    }
}
