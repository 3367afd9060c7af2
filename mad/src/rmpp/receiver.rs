//! One message on its way in (specification volume 1, 13.6.6).

use std::collections::BTreeMap;
use std::time::Duration;

use super::RmppConfig;
use super::segment::{self, Layout, rmpp};
use crate::transport::Address;
use crate::types::Timestamp;
use crate::wire::Mad;
use crate::wire::rmpp::RmppStatus;

/// The receiving side of a transfer.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) address: Address,
    /// The first segment.
    head: Mad,
    layout: Layout,
    /// Data of segments 1 to `received`.
    data: Vec<u8>,
    /// Every segment up to here has come.
    received: u32,
    /// Segments beyond a gap; at most a window.
    early: BTreeMap<u32, Mad>,
    window_last: u32,
    /// What was acknowledged last.
    told: (u32, u32),
    /// Number of the last segment, once it has come.
    last: Option<u32>,
    /// Reports of a gap after segment `.0`. The second one is what the sender sees as repeated, and takes for a loss.
    gap_reports: (u32, u8),
    timeout: Duration,
    retries_left: u32,
    deadline: Timestamp,
    give_up_at: Timestamp,
}

/// What a segment did.
#[derive(Debug)]
pub(super) enum Taken {
    /// Nothing to say yet.
    Quiet,
    /// Acknowledge with [`Receiver::ack`].
    Ack,
    /// The message is whole; acknowledge it.
    Whole,
}

impl Receiver {
    /// A transfer that starts with this first segment, which is then given to [`Self::take`].
    /// The sender has been given a window up to `window_last`.
    pub(super) fn new(
        address: Address,
        head: Mad,
        layout: Layout,
        window_last: u32,
        config: &RmppConfig,
        now: Timestamp,
    ) -> Self {
        Self {
            address,
            head,
            layout,
            data: Vec::new(),
            received: 0,
            early: BTreeMap::new(),
            window_last: window_last.max(1),
            told: (0, 0),
            last: None,
            gap_reports: (0, 0),
            timeout: config.response_timeout,
            retries_left: config.retries,
            deadline: now + config.response_timeout,
            give_up_at: now + config.total_timeout,
        }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.data.len() + self.early.len() * size_of::<Mad>()
    }

    /// When [`Self::on_deadline`] is due.
    pub(super) fn deadline(&self) -> Timestamp {
        self.deadline.min(self.give_up_at)
    }

    /// Takes a segment.
    ///
    /// # Errors
    /// The status with which the transfer ends.
    pub(super) fn take(
        &mut self,
        mad: &Mad,
        config: &RmppConfig,
        now: Timestamp,
    ) -> Result<Taken, RmppStatus> {
        let header = rmpp(mad);
        let segment = header.segment_number();
        if header.status() != RmppStatus::OK {
            return Err(RmppStatus::ILLEGAL_STATUS);
        }
        if segment == 0 || header.is_first() != (segment == 1) {
            return Err(RmppStatus::INCONSISTENT_FIRST_AND_SEGMENT);
        }
        if segment > self.window_last || self.last.is_some_and(|last| segment > last) {
            return Err(RmppStatus::SEGMENT_TOO_BIG);
        }
        if segment <= self.received {
            // Repeated. The sender goes on to the end of its window, so one acknowledgement there is enough.
            return Ok(if segment == self.received { Taken::Ack } else { Taken::Quiet });
        }
        if header.is_last() {
            if self.layout.last_data(mad).is_none() || self.last.is_some_and(|last| last != segment) {
                return Err(RmppStatus::INCONSISTENT_LAST_AND_LENGTH);
            }
            if self.early.last_key_value().is_some_and(|(highest, _)| *highest > segment) {
                return Err(RmppStatus::INCONSISTENT_LAST_AND_LENGTH);
            }
            self.last = Some(segment);
        }
        self.early.insert(segment, *mad);
        self.retries_left = config.retries;
        self.timeout = config.response_timeout;
        self.deadline = now + self.timeout;
        self.join(config)?;
        if self.last == Some(self.received) {
            self.window_last = self.window_last.max(self.received);
            return Ok(Taken::Whole);
        }
        // In the middle of a window, so that the sender need not stop at its end.
        if self.window_last - self.received <= config.window / 2 {
            self.window_last = self.received.saturating_add(config.window.max(1));
            return Ok(Taken::Ack);
        }
        // The first segment is always acknowledged: its sender may know of no window beyond it.
        Ok(if segment == 1 || self.must_report_gap() { Taken::Ack } else { Taken::Quiet })
    }

    fn must_report_gap(&mut self) -> bool {
        if self.early.is_empty() {
            return false;
        }
        if self.gap_reports.0 != self.received {
            self.gap_reports = (self.received, 0);
        }
        self.gap_reports.1 = self.gap_reports.1.saturating_add(1);
        // What was said of the segment before the gap counts as the first report.
        let told = self.gap_reports.1 == 1 && self.told == (self.received, self.window_last);
        self.gap_reports.1 <= 2 && !told
    }

    /// Joins the segments that follow without a gap.
    fn join(&mut self, config: &RmppConfig) -> Result<(), RmppStatus> {
        while let Some(mad) = self.early.remove(&(self.received + 1)) {
            let is_last = self.last == Some(self.received + 1);
            let data = if is_last { self.layout.last_data(&mad) } else { Some(self.layout.data(&mad)) };
            let data = data.ok_or(RmppStatus::INCONSISTENT_LAST_AND_LENGTH)?;
            if self.data.len() + data.len() > config.max_message {
                return Err(RmppStatus::RESOURCES_EXHAUSTED);
            }
            self.data.extend_from_slice(data);
            self.received += 1;
        }
        Ok(())
    }

    /// Time has come: says once more what has come.
    ///
    /// # Errors
    /// The status with which the transfer ends.
    pub(super) fn on_deadline(&mut self, config: &RmppConfig, now: Timestamp) -> Result<Taken, RmppStatus> {
        if now >= self.give_up_at {
            return Err(RmppStatus::TIME_TOO_LONG);
        }
        if now < self.deadline {
            return Ok(Taken::Quiet);
        }
        self.retries_left = self.retries_left.checked_sub(1).ok_or(RmppStatus::TIME_TOO_LONG)?;
        self.timeout = (self.timeout * 2).min(config.max_response_timeout.max(config.response_timeout));
        self.deadline = now + self.timeout;
        Ok(Taken::Ack)
    }

    /// The acknowledgement of what has come.
    pub(super) fn ack(&mut self) -> Mad {
        self.told = (self.received, self.window_last);
        segment::ack(&self.head, self.received, self.window_last)
    }

    /// A STOP or ABORT to the peer.
    pub(super) fn end(&self, status: RmppStatus) -> Mad {
        segment::end(&self.head, true, status)
    }

    /// The whole message.
    pub(super) fn into_message(self) -> super::Message {
        super::Message { address: self.address, head: self.head, data: self.data }
    }
}
