//! What came of it: counts and latencies, as a table or as JSON.

use std::fmt::Write;
use std::time::Duration;

use serde::Serialize;

/// What one client counted.
#[derive(Default)]
pub(super) struct Tally {
    /// Microseconds from the first send to the answer, for each request that got one.
    pub(super) latencies: Vec<u32>,
    /// Bytes of the answers' data.
    pub(super) bytes: u64,
    pub(super) wrong: u64,
    pub(super) refused: u64,
    pub(super) lost: u64,
    /// What the first failure was.
    pub(super) first: Option<String>,
}

impl Tally {
    pub(super) fn answered(&mut self, latency: Duration, bytes: usize) {
        self.latencies.push(u32::try_from(latency.as_micros()).unwrap_or(u32::MAX));
        self.bytes += bytes as u64;
    }

    pub(super) fn remember(&mut self, what: String) {
        self.first.get_or_insert(what);
    }

    pub(super) fn add(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.bytes += other.bytes;
        self.wrong += other.wrong;
        self.refused += other.refused;
        self.lost += other.lost;
        if self.first.is_none() {
            self.first = other.first;
        }
    }
}

/// The figures of all clients.
#[derive(Serialize)]
pub(super) struct Figures {
    /// Requests that ended.
    requests: u64,
    /// Of these, with the answer that was asked for.
    right: u64,
    /// With another one.
    wrong: u64,
    /// Refused with a status, BUSY among them.
    refused: u64,
    /// Without any.
    lost: u64,
    seconds: f64,
    per_second: f64,
    answer_bytes: u64,
    /// Of the answers that came, in milliseconds.
    median_ms: f64,
    p99_ms: f64,
    most_ms: f64,
    /// What the first failure was.
    first_failure: Option<String>,
}

impl Figures {
    pub(super) fn new(mut tally: Tally, took: Duration) -> Self {
        tally.latencies.sort_unstable();
        let came = tally.latencies.len() as u64;
        let at = |share: f64| {
            let last = tally.latencies.len().saturating_sub(1);
            let index = (last as f64 * share).round() as usize;
            f64::from(tally.latencies.get(index).copied().unwrap_or(0)) / 1000.0
        };
        let seconds = took.as_secs_f64();
        Self {
            requests: came + tally.refused + tally.lost,
            right: came - tally.wrong,
            wrong: tally.wrong,
            refused: tally.refused,
            lost: tally.lost,
            seconds,
            per_second: came as f64 / seconds.max(1e-9),
            answer_bytes: tally.bytes,
            median_ms: at(0.5),
            p99_ms: at(0.99),
            most_ms: at(1.0),
            first_failure: tally.first.take(),
        }
    }

    /// What went wrong, in one line.
    pub(super) fn complaint(&self) -> Option<String> {
        let failed = self.wrong + self.refused + self.lost;
        let first = self.first_failure.as_deref().unwrap_or("none was asked");
        (failed > 0 || self.requests == 0).then(|| {
            format!(
                "{failed} of {} requests without the right answer ({} lost, {} refused, {} wrong); the first: {first}",
                self.requests, self.lost, self.refused, self.wrong
            )
        })
    }

    pub(super) fn table(&self) -> String {
        let mut text = String::new();
        let _ = writeln!(
            text,
            "{} requests in {:.3} s: {:.0} answers a second, {:.1} MB\n\
             right {}, wrong {}, refused {}, lost {}\n\
             latency: median {:.3} ms, 99% within {:.3} ms, most {:.3} ms",
            self.requests,
            self.seconds,
            self.per_second,
            self.answer_bytes as f64 / 1e6,
            self.right,
            self.wrong,
            self.refused,
            self.lost,
            self.median_ms,
            self.p99_ms,
            self.most_ms,
        );
        text
    }
}
