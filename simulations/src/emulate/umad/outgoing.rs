//! Requests under way: what is sent again when no answer comes, and what goes back to the program when that was in vain.

use std::collections::BTreeSet;
use std::time::Duration;

use mad::types::Timestamp;
use mad::wire::MadHeader;
use rsm_preload_protocol::umad::{Header, MAD_HEADER_LEN};
use rustc_hash::FxHashMap;

use super::files::{FileId, Transmit};
use super::layout::is_response;

/// Names a send: the kernel allows one of a kind and transaction ID under way per agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct SendKey {
    /// The agent's upper half of transaction IDs.
    pub(super) agent: u32,
    /// The transaction ID as it goes over the wire.
    pub(super) tid: u64,
    /// Management class.
    pub(super) class: u8,
    /// Whether it is a response itself.
    pub(super) response: bool,
}

impl SendKey {
    /// The key of a datagram that this agent sends.
    pub(super) fn of(agent: u32, header: &MadHeader) -> Self {
        let (tid, class) = (header.transaction_id.get(), header.mgmt_class);
        Self { agent, tid, class, response: is_response(header) }
    }

    /// Whether it names a response.
    pub(super) const fn is_response(&self) -> bool {
        self.response
    }

    /// The key of the request that this response answers.
    pub(super) fn answered_by(agent: u32, response: &MadHeader) -> Self {
        Self { response: false, ..Self::of(agent, response) }
    }
}

/// One send that waits for its answer.
#[derive(Clone, Debug)]
pub(super) struct Outstanding {
    pub(super) file: FileId,
    /// The header as it was written, for the return.
    pub(super) header: Header,
    /// The datagram, for repetition and return.
    pub(super) transmit: Transmit,
    pub(super) timeout: Duration,
    pub(super) retries_left: u32,
    deadline: Timestamp,
}

impl Outstanding {
    pub(super) fn new(file: FileId, header: Header, transmit: Transmit) -> Self {
        let timeout = Duration::from_millis(header.timeout_ms.get().into());
        let retries_left = header.retries.get();
        Self { file, header, transmit, timeout, retries_left, deadline: Timestamp::default() }
    }

    /// What goes back with the status `ETIMEDOUT`: the common header alone, as the kernel does it.
    pub(super) fn returned(&self) -> &[u8] {
        &self.transmit.datagram.mad.bytes()[..MAD_HEADER_LEN]
    }
}

/// What became of a send whose time was over.
pub(super) enum Expired {
    /// Sent once more.
    Again(Box<Transmit>),
    /// Given up.
    GivenUp(SendKey, Box<Outstanding>),
}

/// All sends that wait, ordered by their deadlines.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    sends: FxHashMap<SendKey, Outstanding>,
    deadlines: BTreeSet<(Timestamp, SendKey)>,
}

impl Outgoing {
    pub(super) fn contains(&self, key: &SendKey) -> bool {
        self.sends.contains_key(key)
    }

    /// Starts the wait. Nothing of the key may be under way.
    pub(super) fn insert(&mut self, key: SendKey, mut send: Outstanding, now: Timestamp) {
        send.deadline = now + send.timeout;
        self.deadlines.insert((send.deadline, key));
        self.sends.insert(key, send);
    }

    /// Ends the wait.
    pub(super) fn remove(&mut self, key: &SendKey) -> Option<Outstanding> {
        let send = self.sends.remove(key)?;
        self.deadlines.remove(&(send.deadline, *key));
        Some(send)
    }

    /// Lets the wait begin anew, where there is one: the answer has begun to come.
    pub(super) fn postpone(&mut self, key: &SendKey, now: Timestamp) {
        if let Some(send) = self.remove(key) {
            self.insert(*key, send, now);
        }
    }

    /// Forgets everything of an agent.
    pub(super) fn remove_agent(&mut self, agent: u32) {
        let keys: Vec<_> = self.sends.keys().filter(|key| key.agent == agent).copied().collect();
        for key in keys {
            self.remove(&key);
        }
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// The next send whose time is over at `now`.
    pub(super) fn expired(&mut self, now: Timestamp) -> Option<Expired> {
        let &(deadline, key) = self.deadlines.first()?;
        if deadline > now {
            return None;
        }
        let mut send = self.remove(&key)?;
        let Some(left) = send.retries_left.checked_sub(1) else {
            return Some(Expired::GivenUp(key, Box::new(send)));
        };
        send.retries_left = left;
        let transmit = send.transmit;
        self.insert(key, send, now);
        Some(Expired::Again(Box::new(transmit)))
    }
}
