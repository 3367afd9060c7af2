//! Walks a fabric over a transport and returns what it found: for commands that only look, without the daemon's threads.
//! Blocks until the walk is over. Cost: one round trip for each window of requests.

use std::time::{Duration, Instant};

use mad::transactions::{TransactionConfig, Transactions};
use mad::transport::{Transport, TransportError};
use mad::types::Timestamp;

use crate::request::Answer;
use crate::sweep::{Ask, Sweep, SweepError, SweepProgress, SweepResult, SweepSettings};

/// Longest wait in one go, so that progress is shown while nothing comes.
const SLICE: Duration = Duration::from_millis(100);

/// Why nothing was found.
#[derive(Debug, thiserror::Error)]
pub enum SurveyError {
    /// The device failed.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// Our own port did not answer.
    #[error(transparent)]
    Sweep(#[from] SweepError),
}

/// Walks the whole fabric. `first_tid` should differ from run to run. `progress` is called often.
///
/// # Errors
/// The device failed, or not even our own port answers.
pub fn survey(
    transport: &dyn Transport,
    settings: SweepSettings,
    config: TransactionConfig,
    first_tid: u32,
    mut progress: impl FnMut(SweepProgress),
) -> Result<SweepResult, SurveyError> {
    let start = Instant::now();
    let now = || Timestamp::from_start(start.elapsed());
    let window = config.window.max(1);
    let mut sweep = Sweep::full(settings);
    let mut transactions: Transactions<Ask> = Transactions::new(config, first_tid);
    loop {
        // As many as fit the window, and some more so that a node whose share is used up holds up nobody else.
        while transactions.in_flight() + transactions.queued() < 4 * window {
            let Some((request, ask)) = sweep.next_request() else { break };
            transactions.submit(request.into_transaction(), ask);
        }
        let mut ended = Vec::new();
        while let Some((datagram, timeout)) = transactions.poll_send(now()) {
            if let Err(error) = transport.send(&datagram, Some(timeout)) {
                let TransportError::Io { source, .. } = &error else { return Err(error.into()) };
                let Some(errno) = source.raw_os_error() else { return Err(error.into()) };
                let tid = datagram.mad.header.transaction_id.get() as u32;
                ended.extend(transactions.send_failed(tid, errno, now()));
            }
        }
        if ended.is_empty() {
            if transactions.is_idle() && sweep.is_done() {
                return Ok(sweep.finish(None)?);
            }
            let wait = transactions.deadline().map_or(SLICE, |at| at.saturating_since(now()).min(SLICE));
            if let Some(received) = transport.receive(wait)? {
                ended.extend(transactions.receive(&received, now()));
            }
            ended.extend(transactions.expired(now()));
        }
        for completion in ended {
            sweep.answer(completion.token, &Answer::of(completion.outcome));
        }
        progress(sweep.progress());
    }
}
