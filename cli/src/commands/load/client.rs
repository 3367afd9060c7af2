//! One client: a window of requests over a transport of its own, until it is told to stop.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mad::sa_client::{QueryError, SaClient, SaClientConfig};
use mad::transport::{Transport, TransportError};
use mad::types::Timestamp;
use rand_pcg::Pcg64Mcg;

use super::figures::Tally;
use super::work::{Port, Slot};

/// When clients stop to begin anew.
pub(super) enum End {
    /// At an instant.
    At(Instant),
    /// When so many requests were begun, by all clients together.
    After {
        /// Requests begun.
        begun: AtomicU64,
        /// The most of them.
        count: u64,
    },
}

impl End {
    /// Takes leave to begin another request.
    fn begin(&self) -> bool {
        match self {
            Self::At(end) => Instant::now() < *end,
            Self::After { begun, count } => begun.fetch_add(1, Ordering::Relaxed) < *count,
        }
    }
}

/// Runs a client to its end. What was joined or registered is left or withdrawn even then.
///
/// # Errors
/// The device failed.
pub(super) fn run(
    transport: &dyn Transport,
    config: SaClientConfig,
    first_tid: u32,
    port: &Port,
    mut slots: Vec<Slot>,
    end: &End,
    mut random: Pcg64Mcg,
) -> Result<Tally, TransportError> {
    let start = Instant::now();
    let now = || Timestamp::from_start(start.elapsed());
    let mut client: SaClient<(usize, Instant)> = SaClient::new(config, first_tid);
    let mut tally = Tally::default();
    let mut ask = |client: &mut SaClient<_>, slots: &mut [Slot], at: usize| {
        if !slots[at].is_clean() || end.begin() {
            client.submit(slots[at].next(port, &mut random), (at, Instant::now()));
        }
    };
    for at in 0..slots.len() {
        ask(&mut client, &mut slots, at);
    }
    while client.outstanding() > 0 {
        while let Some((datagram, timeout)) = client.poll_send(now()) {
            transport.send(&datagram, timeout)?;
        }
        let wait = client.deadline().map_or(Duration::from_millis(100), |at| at.saturating_since(now()));
        match transport.receive(wait)? {
            Some(received) => {
                client.receive(&received, now());
            }
            None => client.expired(now()),
        }
        while let Some(((at, begun), result)) = client.poll_answer() {
            match result {
                Ok(answer) => {
                    tally.answered(begun.elapsed(), answer.data.len());
                    if let Err(what) = slots[at].judge(port, &answer) {
                        tally.wrong += 1;
                        tally.remember(what);
                    }
                }
                Err(error) => {
                    match error {
                        QueryError::Status(_) => tally.refused += 1,
                        _ => tally.lost += 1,
                    }
                    tally.remember(error.to_string());
                }
            }
            ask(&mut client, &mut slots, at);
        }
    }
    Ok(tally)
}
