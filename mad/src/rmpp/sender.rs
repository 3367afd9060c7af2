//! One message on its way out (specification volume 1, 13.6.6).

use std::time::Duration;

use super::RmppConfig;
use super::segment::{self, Layout};
use crate::transport::Address;
use crate::types::Timestamp;
use crate::wire::Mad;
use crate::wire::rmpp::{RmppHeader, RmppStatus};

/// The sending side of a transfer.
///
/// ```text
/// acked        every segment up to here has arrived
/// next         the next segment to hand out; what lies between is on its way
/// sent         the highest segment ever handed out
/// window_last  the last segment that the peer has room for
/// ```
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) address: Address,
    /// Whether the engine has it in its queue of those that are ready.
    pub(super) is_queued: bool,
    head: Mad,
    message: Vec<u8>,
    layout: Layout,
    segments: u32,
    acked: u32,
    next: u32,
    sent: u32,
    window_last: u32,
    /// For which `acked` the missing segment was sent again at once; a row of equal acknowledgements does so only once.
    resent_after: Option<u32>,
    /// Until when an answer waits for the direction to be turned.
    turn_deadline: Option<Timestamp>,
    timeout: Duration,
    retries_left: u32,
    deadline: Timestamp,
    give_up_at: Timestamp,
    probe: Probe,
}

/// When the window is sent again though the peer does not yet count as silent. All of it: a receiver that lacks the last segments says
/// nothing when it gets one before them again.
#[derive(Debug)]
struct Probe {
    /// Not to a peer that may know no RMPP.
    allowed: bool,
    wait: Duration,
    at: Timestamp,
    /// The mean round trip, once one was measured.
    round_trip: Option<Duration>,
    /// A segment whose acknowledgement tells the round trip, and when it was sent. None that was sent twice (Karn's rule).
    timed: Option<(u32, Timestamp)>,
}

impl Probe {
    fn new(allowed: bool, wait: Duration, now: Timestamp) -> Self {
        Self { allowed, wait, at: now + wait, round_trip: None, timed: None }
    }

    /// When it is due, if it will be.
    fn deadline(&self) -> Timestamp {
        if self.allowed { self.at } else { Timestamp::MAX }
    }

    /// A segment was sent, the highest so far if `new`.
    fn sent(&mut self, segment: u32, new: bool, now: Timestamp) {
        if new && self.timed.is_none() {
            self.timed = Some((segment, now));
        } else if !new {
            self.timed = None;
        }
        self.at = now + self.wait;
    }

    /// Everything up to `acked` has arrived.
    fn progress(&mut self, acked: u32, config: &RmppConfig, now: Timestamp) {
        self.allowed = true;
        if let Some((_, sent_at)) = self.timed.take_if(|(segment, _)| *segment <= acked) {
            let measured = now - sent_at;
            self.round_trip = Some(self.round_trip.map_or(measured, |mean| (mean * 7 + measured) / 8));
        }
        self.wait = self.round_trip.map_or(self.wait, |mean| (mean * 4).max(config.least_probe));
        self.at = now + self.wait;
    }
}

/// What an acknowledgement did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acked {
    /// There is more to do.
    Going,
    /// The message is with the peer.
    Done,
}

impl Sender {
    /// A message with its first window; `None` when it has too many segments.
    pub(super) fn new(
        address: Address,
        head: Mad,
        message: Vec<u8>,
        layout: Layout,
        config: &RmppConfig,
        acquainted: bool,
        now: Timestamp,
    ) -> Option<Self> {
        let segments = layout.segments(message.len())?;
        Some(Self {
            address,
            is_queued: false,
            head,
            message,
            layout,
            segments,
            acked: 0,
            next: 1,
            sent: 0,
            window_last: 1,
            resent_after: None,
            turn_deadline: None,
            timeout: config.response_timeout,
            retries_left: config.retries,
            deadline: now + config.response_timeout,
            give_up_at: now + config.total_timeout,
            probe: Probe::new(acquainted || config.retries_to_strangers > 0, config.probe_timeout, now),
        })
    }

    /// Starts with the window that the peer gave when it turned the direction.
    pub(super) fn with_window(mut self, window: u32) -> Self {
        self.window_last = window.max(1);
        self
    }

    /// Waits for the peer to turn the direction, but not beyond `deadline`.
    pub(super) fn wait_for_turn(mut self, deadline: Timestamp) -> Self {
        self.turn_deadline = Some(deadline);
        self
    }

    /// Whether the peer has yet to turn the direction.
    pub(super) const fn waits_for_turn(&self) -> bool {
        self.turn_deadline.is_some()
    }

    /// Whether all that the window allows is on its way and nothing was ever acknowledged.
    pub(super) fn is_unanswered(&self) -> bool {
        self.acked == 0 && self.sent > 0 && !self.is_ready()
    }

    /// Whether the whole wait for an acknowledgement is over, and how often it was before is as often as it may be.
    pub(super) fn has_waited(&self, times: u32, config: &RmppConfig, now: Timestamp) -> bool {
        now >= self.deadline.min(self.give_up_at) && config.retries.saturating_sub(self.retries_left) >= times
    }

    /// Whether this is the answer to the same request: the same headers and, as long as the peer has nothing of it, the
    /// same data.
    pub(super) fn is_for(&self, head: &Mad, data: &[u8]) -> bool {
        self.head == *head && (self.acked > 0 || self.message == data)
    }

    /// Sends the first segment once more, unless something was acknowledged.
    pub(super) fn begin_again(&mut self, now: Timestamp) {
        if self.is_unanswered() {
            self.next = 1;
            self.deadline = now + self.timeout;
        }
    }

    /// Bytes held.
    pub(super) const fn bytes(&self) -> usize {
        self.message.len()
    }

    /// When [`Self::on_deadline`] is due.
    pub(super) fn deadline(&self) -> Timestamp {
        self.turn_deadline.unwrap_or_else(|| self.deadline.min(self.probe.deadline())).min(self.give_up_at)
    }

    /// The next segment that the window has room for.
    pub(super) fn poll(&mut self, now: Timestamp) -> Option<Mad> {
        if self.waits_for_turn() || self.next > self.segments.min(self.window_last) {
            return None;
        }
        let mad = self.layout.segment(&self.head, &self.message, self.next, self.segments);
        self.probe.sent(self.next, self.next > self.sent, now);
        self.sent = self.sent.max(self.next);
        self.next += 1;
        self.deadline = now + self.timeout;
        Some(mad)
    }

    /// Whether [`Self::poll`] has something.
    pub(super) fn is_ready(&self) -> bool {
        !self.waits_for_turn() && self.next <= self.segments.min(self.window_last)
    }

    /// Takes an acknowledgement.
    ///
    /// # Errors
    /// The status with which the transfer ends.
    pub(super) fn on_ack(
        &mut self,
        header: &RmppHeader,
        config: &RmppConfig,
        now: Timestamp,
    ) -> Result<Acked, RmppStatus> {
        let (segment, window_last) = (header.segment_number(), header.new_window_last());
        if header.status() != RmppStatus::OK {
            return Err(RmppStatus::ILLEGAL_STATUS);
        }
        if window_last < segment {
            return Err(RmppStatus::WINDOW_TOO_SMALL);
        }
        if segment == 0 && self.waits_for_turn() {
            self.start(window_last, now);
            return Ok(Acked::Going);
        }
        if segment > self.sent {
            // It acknowledges what was never sent.
            return Err(RmppStatus::SEGMENT_TOO_BIG);
        }
        if segment < self.acked {
            // Overtaken by a newer one.
            return Ok(Acked::Going);
        }
        let repeated = segment == self.acked && window_last == self.window_last;
        self.window_last = self.window_last.max(window_last);
        if segment > self.acked {
            self.acked = segment;
            self.retries_left = config.retries;
            self.timeout = response_time(header).map_or(config.response_timeout, |peer| {
                peer.clamp(config.response_timeout, config.max_response_timeout.max(config.response_timeout))
            });
            self.deadline = now + self.timeout;
            self.probe.progress(segment, config, now);
        }
        if self.acked == self.segments {
            return Ok(Acked::Done);
        }
        self.next = self.next.max(self.acked + 1);
        if repeated && self.next > self.acked + 1 && self.resent_after != Some(self.acked) {
            self.resent_after = Some(self.acked);
            self.next = self.acked + 1;
        }
        Ok(Acked::Going)
    }

    /// Time has come: sends again what is not acknowledged.
    ///
    /// # Errors
    /// The status with which the transfer ends.
    pub(super) fn on_deadline(&mut self, config: &RmppConfig, now: Timestamp) -> Result<(), RmppStatus> {
        if now >= self.give_up_at {
            return Err(RmppStatus::TIME_TOO_LONG);
        }
        if self.waits_for_turn() {
            self.start(1, now);
            return Ok(());
        }
        if now >= self.probe.deadline() {
            if !self.is_ready() && now < self.deadline {
                self.probe.wait *= 2;
                self.next = self.acked + 1;
                self.resent_after = None;
            }
            self.probe.at = now + self.probe.wait;
        }
        if now < self.deadline {
            return Ok(());
        }
        if self.is_ready() {
            // Nothing was late: the segments were not fetched.
            self.deadline = now + self.timeout;
            return Ok(());
        }
        self.retries_left = self.retries_left.checked_sub(1).ok_or(RmppStatus::TOO_MANY_RETRIES)?;
        self.timeout = (self.timeout * 2).min(config.max_response_timeout.max(config.response_timeout));
        self.deadline = now + self.timeout;
        self.next = self.acked + 1;
        self.resent_after = None;
        Ok(())
    }

    /// Whether the message is a request of this side, to be answered by the peer.
    pub(super) const fn is_request(&self) -> bool {
        self.head.header.method & crate::wire::Method::RESPONSE == 0
    }

    /// A STOP or ABORT to the peer.
    pub(super) fn end(&self, status: RmppStatus) -> Mad {
        segment::end(&self.head, false, status)
    }

    fn start(&mut self, window: u32, now: Timestamp) {
        self.turn_deadline = None;
        self.window_last = window.max(1);
        self.deadline = now + self.timeout;
        self.probe.at = now + self.probe.wait;
    }
}

/// RRespTime, where the peer gave one.
fn response_time(header: &RmppHeader) -> Option<Duration> {
    let code = header.response_time();
    (code != RmppHeader::NO_RESPONSE_TIME).then(|| Duration::from_nanos(4096) * (1 << code.min(30)))
}
