//! One walk over the fabric that changes nothing: `rsm discover`, `rsm plan`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::RecvTimeoutError;
use mad::transactions::{TransactionConfig, Transactions};
use mad::transport::{Received, Transport, TransportError};
use mad::types::Timestamp;

use super::DaemonError;
use super::receiver::ReceiverThread;
use crate::request::Answer;
use crate::sweep::{Ask, Sweep, SweepProgress, SweepResult, SweepSettings};

/// Time between two reports of progress.
const PROGRESS: Duration = Duration::from_millis(100);

/// Walks the fabric once. Needs no running subnet manager, and sends Gets only as long as `settings` ask for no more.
///
/// # Errors
/// The device failed, or our own port does not answer.
pub fn discover(
    transport: &Arc<dyn Transport>,
    settings: SweepSettings,
    config: TransactionConfig,
    mut progress: impl FnMut(SweepProgress),
) -> Result<SweepResult, DaemonError> {
    let receiver = ReceiverThread::start(transport)?;
    let start = Instant::now();
    let mut shown = start;
    let mut walk =
        Walk { sweep: Sweep::full(settings), transactions: Transactions::new(config, first_tid()) };
    loop {
        let now = Timestamp::from_start(start.elapsed());
        walk.send(transport, now)?;
        if walk.sweep.is_done() {
            return Ok(walk.sweep.finish(None)?);
        }
        if shown.elapsed() >= PROGRESS {
            shown = Instant::now();
            progress(walk.sweep.progress());
        }
        let wait = walk.transactions.deadline().map_or(PROGRESS, |at| (at - now).min(PROGRESS));
        match receiver.smps.recv_timeout(wait) {
            Ok(received) => walk.receive(&received?, now),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(DaemonError::ThreadEnded("receiver")),
        }
        while let Ok(received) = receiver.smps.try_recv() {
            walk.receive(&received?, now);
        }
        let now = Timestamp::from_start(start.elapsed());
        for completion in walk.transactions.expired(now) {
            walk.sweep.answer(completion.token, &Answer::of(completion.outcome));
        }
    }
}

struct Walk {
    sweep: Sweep,
    transactions: Transactions<Ask>,
}

impl Walk {
    fn send(&mut self, transport: &Arc<dyn Transport>, now: Timestamp) -> Result<(), DaemonError> {
        loop {
            while self.transactions.is_hungry() {
                let Some((request, ask)) = self.sweep.next_request() else { break };
                self.transactions.submit(request.into_transaction(), ask);
            }
            let Some((datagram, timeout)) = self.transactions.poll_send(now) else { return Ok(()) };
            if let Err(error) = transport.send(&datagram, Some(timeout)) {
                let errno = errno(&error).ok_or(error)?;
                let tid = datagram.mad.header.transaction_id.get() as u32;
                if let Some(completion) = self.transactions.send_failed(tid, errno, now) {
                    self.sweep.answer(completion.token, &Answer::of(completion.outcome));
                }
            }
        }
    }

    fn receive(&mut self, batch: &[Received], now: Timestamp) {
        for received in batch {
            if let Some(completion) = self.transactions.receive(received, now) {
                self.sweep.answer(completion.token, &Answer::of(completion.outcome));
            }
        }
    }
}

/// The system's error number of a failed send; `None` when the device is gone for good.
pub(super) fn errno(error: &TransportError) -> Option<i32> {
    match error {
        TransportError::Io { source, .. } => source.raw_os_error(),
        // No agent for the class: as if the device had refused it.
        TransportError::NoAgent(_) => Some(1),
        TransportError::Closed => None,
    }
}

/// Differs from run to run, so that answers to a run before are not taken for ours.
pub(super) fn first_tid() -> u32 {
    use std::time::{SystemTime, UNIX_EPOCH};
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (time.as_micros() as u32) ^ std::process::id().rotate_left(16)
}
