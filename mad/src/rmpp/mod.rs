//! RMPP, the reliable multi-packet protocol (specification volume 1, 13.6): messages longer than one datagram, in segments
//! with windows and acknowledgements. Sans-IO, both directions.
//!
//! [`Rmpp`] holds all transfers with all peers:
//!
//! ```text
//! receive(&datagram, now)                  every datagram of a class with RMPP; false: it is no part of a transfer
//! send(address, head, data, now)           a message, such as a table that answers SubnAdmGetTable
//! expect(address, head, now)               before a request whose answer may come in segments
//! while let Some(d) = poll_send(now)       after each of these and of expired()
//! while let Some(e) = poll_event()         messages that came, transfers that ended
//! expired(now)                             when `deadline()` has come
//! ```
//!
//! - A transfer is known by peer, class and transaction ID, and by which side began the transaction ([`TransferKey`]).
//! - **Sending**: the first window is one segment; each acknowledgement says how far to go on. What is not acknowledged in
//!   time is sent again from the first missing segment on; after too many tries the peer gets an ABORT. The first waits are some
//!   round trips long and count as no tries, so that a loss costs milliseconds and not half a second.
//! - **Receiving**: segments may come in any order within the window. An acknowledgement is sent in the middle of a window,
//!   so that a sender who is quick enough never stops, at the first gap in it, and for a repeated segment where the sender must have missed one. Memory grows
//!   with what came, never with what a length field promises.
//! - **Two-sided transfers** (a request in segments: SubnAdmGetMulti; B51): when the request is complete, its sender turns
//!   the direction with an acknowledgement of segment 0 that carries the window for the answer. The answer waits for
//!   it; from a peer that doesn't send it, the answer starts with a window of one segment.
//! - Every transfer ends: done, or failed on this side with a status that the peer is told where it can be. All memory has
//!   a bound ([`RmppConfig`]); beyond it the peer gets a STOP.
//!
//! Cost: O(log n) for each datagram, n transfers.

mod engine;
mod receiver;
mod segment;
mod sender;

use std::time::Duration;

use crate::transport::Address;
use crate::types::{Gid, Qpn};
pub use crate::wire::rmpp::RmppStatus;
use crate::wire::{Mad, MgmtClass};
pub use engine::Rmpp;

/// Windows, times and bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RmppConfig {
    /// Segments that a peer may send before it needs an acknowledgement; at least 1 is taken.
    pub window: u32,
    /// How long to wait for an acknowledgement or for the next segment, at first; doubled at each repetition.
    pub response_timeout: Duration,
    /// Longest such wait.
    pub max_response_timeout: Duration,
    /// Repetitions without progress before a transfer is given up.
    pub retries: u32,
    /// How long to wait for the first acknowledgement of a transfer before what is not acknowledged is sent once more; for later ones
    /// four times the measured round trip; doubled each time. This is no repetition in the sense of [`RmppConfig::retries`].
    pub probe_timeout: Duration,
    /// The least such wait: a host that is busy acknowledges within this.
    pub least_probe: Duration,
    /// The same as [`RmppConfig::retries`] for a peer that has never acknowledged anything; its transfer then ends silently. With 0
    /// the first segment is sent once, and the peer has to repeat its request: clients on a transport that knows no RMPP (a
    /// simulator's) would take repeated segments for the answers to later requests.
    pub retries_to_strangers: u32,
    /// Longest time for a whole transfer.
    pub total_timeout: Duration,
    /// How long an answer waits for the peer to turn the direction of a two-sided transfer.
    pub turn_timeout: Duration,
    /// How long the end of a transfer is remembered, to acknowledge once more what the peer repeats.
    pub linger: Duration,
    /// Most transfers at a time, remembered ones included.
    pub max_transfers: usize,
    /// Most requests in segments of one LID that are being taken in at a time; answers to requests of our own don't count.
    pub max_requests_of_lid: usize,
    /// Longest message that is taken in, in bytes.
    pub max_message: usize,
    /// Bytes of all messages under way together.
    pub max_bytes: usize,
}

impl Default for RmppConfig {
    fn default() -> Self {
        Self {
            window: 32,
            response_timeout: Duration::from_millis(500),
            max_response_timeout: Duration::from_secs(4),
            retries: 6,
            probe_timeout: Duration::from_millis(100),
            least_probe: Duration::from_millis(20),
            retries_to_strangers: 6,
            total_timeout: Duration::from_secs(120),
            turn_timeout: Duration::from_millis(200),
            linger: Duration::from_secs(5),
            max_transfers: 4096,
            max_requests_of_lid: 64,
            max_message: 64 << 20,
            max_bytes: 256 << 20,
        }
    }
}

/// The other end of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Peer {
    /// LID as on the wire.
    pub lid: u16,
    /// Queue pair.
    pub qpn: Qpn,
    /// GID, where there is a global route header.
    pub gid: Option<Gid>,
}

impl From<&Address> for Peer {
    fn from(address: &Address) -> Self {
        Self { lid: address.lid, qpn: address.qpn, gid: address.grh.map(|grh| grh.gid) }
    }
}

/// What tells transfers apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TransferKey {
    /// The other end.
    pub peer: Peer,
    /// Management class.
    pub class: MgmtClass,
    /// Transaction ID; only the lower 32 bits of those of this side, since the kernel owns the upper ones.
    pub tid: u64,
    /// Whether this side made the request.
    pub ours: bool,
}

impl TransferKey {
    /// The key of a datagram that this side sends.
    pub fn of_sent(address: &Address, mad: &Mad) -> Self {
        Self::new(address, mad, !has_response_bit(mad))
    }

    /// The key of a datagram that came: with the R bit it belongs to a transaction of this side, acknowledgements included.
    pub fn of_received(address: &Address, mad: &Mad) -> Self {
        Self::new(address, mad, has_response_bit(mad))
    }

    fn new(address: &Address, mad: &Mad, ours: bool) -> Self {
        let tid = mad.header.transaction_id.get();
        let tid = if ours { tid & u64::from(u32::MAX) } else { tid };
        Self { peer: address.into(), class: mad.header.mgmt_class(), tid, ours }
    }
}

fn has_response_bit(mad: &Mad) -> bool {
    mad.header.method & crate::wire::Method::RESPONSE != 0
}

/// A message that came whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Where from.
    pub address: Address,
    /// The first segment: its headers are the message's.
    pub head: Mad,
    /// The segments' data, joined.
    pub data: Vec<u8>,
}

/// Which way a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// To the peer.
    Sending,
    /// From the peer.
    Receiving,
}

/// Why a transfer ended before its message was whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Failure {
    /// The peer ended it (STOP or ABORT).
    #[error("the peer ended the transfer with RMPP status {}", .0.0)]
    ByPeer(RmppStatus),
    /// This side ended it, and told the peer.
    #[error("the transfer was ended with RMPP status {}", .0.0)]
    ByUs(RmppStatus),
}

/// What the engine has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A message came.
    Received(Box<Message>),
    /// The peer has acknowledged all of a message.
    Sent(TransferKey),
    /// A transfer failed; nothing of it remains.
    Failed {
        /// Which.
        key: TransferKey,
        /// What it was doing.
        direction: Direction,
        /// Why.
        failure: Failure,
    },
}

/// Why a message can't be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum SendError {
    /// The class has no RMPP, or its layout is not known here.
    #[error("management class 0x{0:02x} has no RMPP here")]
    Class(u8),
    /// The same answer is being sent already (the peer repeated its request).
    #[error("a transfer with this peer and transaction ID is under way")]
    UnderWay,
    /// Too many transfers or bytes are under way: answer with BUSY.
    #[error("too many transfers are under way")]
    Full,
    /// The message needs more segments than can be numbered.
    #[error("a message of {0} bytes is too long")]
    TooLong(usize),
}

#[cfg(test)]
mod tests;
