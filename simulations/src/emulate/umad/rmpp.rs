//! RMPP on behalf of agents that asked for it: programs write and read whole messages, the fabric carries segments.
//!
//! Each such agent has an engine of [`mad::rmpp`]. What the kernel does besides: a request in one datagram may be
//! answered in many; a request in many is only then waited for when it has arrived; a transfer that fails on this side
//! comes back with `ETIMEDOUT`. Other than the kernel, a request does not time out while its answer is coming in.

use std::collections::BTreeSet;

use mad::rmpp::{Direction, Event, Failure, Message, Rmpp, RmppConfig, SendError, TransferKey};
use mad::transport::Datagram;
use mad::types::Timestamp;
use mad::wire::Mad;
use mad::wire::rmpp::RmppHeader;
use rsm_preload_protocol::umad::{Header, MAD_LEN};
use rustc_hash::FxHashMap;
use rustix::io::Errno;
use zerocopy::FromBytes as _;

use super::files::{FileId, Files, Transmit};
use super::layout::{address_of, data_offset, is_response, is_rmpp_class};
use super::outgoing::{Outstanding, SendKey};
use crate::emulate::backend::Endpoint;

/// The longest message, either way; RMPP's own limit is sixteen times as much.
pub(super) const MAX_MESSAGE: usize = 256 << 20;

/// The RMPP header of a datagram of a class with RMPP, when it is part of a transfer.
pub(super) fn active_header(mad: &Mad) -> Option<RmppHeader> {
    if !is_rmpp_class(mad.header.mgmt_class()) {
        return None;
    }
    let (header, _) = RmppHeader::read_from_prefix(&mad.body).ok()?;
    header.is_active().then_some(header)
}

/// Whether a written message is to be cut into segments: marked as active. The header's other fields are the device's
/// (opensm leaves the type 0).
pub(super) fn is_message(mad: &Mad) -> bool {
    active_header(mad).is_some()
}

/// The engines of all agents for which the device does RMPP.
#[derive(Debug, Default)]
pub(super) struct Engines {
    by_agent: FxHashMap<u32, Engine>,
    deadlines: BTreeSet<(Timestamp, u32)>,
}

#[derive(Debug)]
struct Engine {
    rmpp: Rmpp,
    endpoint: Endpoint,
    /// What is noted in [`Engines::deadlines`].
    deadline: Option<Timestamp>,
    /// Messages that go out, with what is needed when they have arrived or failed.
    sending: FxHashMap<TransferKey, (FileId, Header, Mad)>,
}

impl Engines {
    pub(super) fn add(&mut self, agent: u32, endpoint: Endpoint) {
        let config =
            RmppConfig { max_message: MAX_MESSAGE, max_bytes: 2 * MAX_MESSAGE, ..RmppConfig::default() };
        let rmpp = Rmpp::new(config);
        self.by_agent.insert(agent, Engine { rmpp, endpoint, deadline: None, sending: FxHashMap::default() });
    }

    pub(super) fn remove(&mut self, agent: u32) {
        if let Some(engine) = self.by_agent.remove(&agent)
            && let Some(deadline) = engine.deadline
        {
            self.deadlines.remove(&(deadline, agent));
        }
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// The agents whose engines have something to do at `now`.
    fn due(&self, now: Timestamp) -> Vec<u32> {
        self.deadlines.iter().take_while(|(deadline, _)| *deadline <= now).map(|(_, agent)| *agent).collect()
    }

    /// Notes an engine's deadline after it was called.
    fn note_deadline(&mut self, agent: u32) {
        let Some(engine) = self.by_agent.get_mut(&agent) else { return };
        let deadline = engine.rmpp.deadline();
        if deadline == engine.deadline {
            return;
        }
        if let Some(old) = std::mem::replace(&mut engine.deadline, deadline) {
            self.deadlines.remove(&(old, agent));
        }
        self.deadlines.extend(deadline.map(|deadline| (deadline, agent)));
    }
}

impl Files {
    /// A program writes a message that goes in segments.
    pub(super) fn write_message(
        &mut self,
        id: FileId,
        agent: u32,
        header: Header,
        head: Mad,
        message: &[u8],
        now: Timestamp,
    ) -> Result<(), Errno> {
        let class = head.header.mgmt_class();
        let data = message.get(data_offset(class)..).ok_or(Errno::INVAL)?.to_vec();
        let engine = self.engines.by_agent.get_mut(&agent).ok_or(Errno::INVAL)?;
        let address = address_of(&header);
        if engine.sending.contains_key(&TransferKey::of_sent(&address, &head)) {
            return Err(Errno::INVAL);
        }
        let key = engine.rmpp.send(address, &head, data, now).map_err(|error| match error {
            SendError::Full => Errno::NOMEM,
            SendError::Class(_) | SendError::UnderWay | SendError::TooLong(_) => Errno::INVAL,
        })?;
        engine.sending.insert(key, (id, header, head));
        self.run_engine(agent, now);
        Ok(())
    }

    /// A request leaves in one datagram; its answer may come in many.
    pub(super) fn expect_message(&mut self, agent: u32, send: &Outstanding, now: Timestamp) {
        let Some(engine) = self.engines.by_agent.get_mut(&agent) else { return };
        let datagram = &send.transmit.datagram;
        let until = now + send.timeout * (send.retries_left.saturating_add(1));
        // Without room for it, an answer in segments is not taken, and the request times out.
        let _ = engine.rmpp.expect(&datagram.address, &datagram.mad, until);
        self.engines.note_deadline(agent);
    }

    /// A request is over: nothing of its answer is taken any more.
    pub(super) fn expect_no_message(&mut self, agent: u32, datagram: &Datagram) {
        let Some(engine) = self.engines.by_agent.get_mut(&agent) else { return };
        engine.rmpp.cancel(&TransferKey::of_sent(&datagram.address, &datagram.mad));
        self.engines.note_deadline(agent);
    }

    /// A datagram for an agent. True when it is part of a transfer, and taken.
    pub(super) fn receive_segment(&mut self, agent: u32, datagram: &Datagram, now: Timestamp) -> bool {
        let Some(engine) = self.engines.by_agent.get_mut(&agent) else { return false };
        if active_header(&datagram.mad).is_none() || !engine.rmpp.receive(datagram, now) {
            return false;
        }
        if is_response(&datagram.mad.header) {
            self.outgoing.postpone(&SendKey::answered_by(agent, &datagram.mad.header), now);
        }
        self.run_engine(agent, now);
        true
    }

    /// Lets the engines repeat or give up what is due.
    pub(super) fn expire_engines(&mut self, now: Timestamp) {
        for agent in self.engines.due(now) {
            if let Some(engine) = self.engines.by_agent.get_mut(&agent) {
                engine.rmpp.expired(now);
            }
            self.run_engine(agent, now);
        }
    }

    /// Takes out of an engine what it has to send and to say.
    fn run_engine(&mut self, agent: u32, now: Timestamp) {
        let Some(engine) = self.engines.by_agent.get_mut(&agent) else { return };
        let endpoint = engine.endpoint;
        while let Some(datagram) = engine.rmpp.poll_send(now) {
            self.transmit.push_back(Transmit { endpoint, datagram });
        }
        while let Some(event) = self.engines.by_agent.get_mut(&agent).and_then(|e| e.rmpp.poll_event()) {
            match event {
                Event::Received(message) => self.message_came(agent, &message),
                Event::Sent(key) => self.message_sent(agent, &key, now),
                Event::Failed { key, direction: Direction::Sending, failure } => {
                    self.message_failed(agent, &key, failure);
                }
                // The request's own timeout tells the program.
                Event::Failed { direction: Direction::Receiving, .. } => {}
            }
        }
        self.engines.note_deadline(agent);
    }

    /// A message is whole: the answer to a request that is still waited for, or a request itself.
    fn message_came(&mut self, agent: u32, message: &Message) {
        let header = &message.head.header;
        if is_response(header) && self.outgoing.remove(&SendKey::answered_by(agent, header)).is_none() {
            return;
        }
        let offset = data_offset(header.mgmt_class());
        let first = MAD_LEN - offset;
        let mut bytes = message.head.bytes()[..MAD_LEN.min(offset + message.data.len())].to_vec();
        bytes.extend_from_slice(message.data.get(first..).unwrap_or_default());
        self.deliver(agent, &message.address, &bytes);
    }

    /// A message has arrived. When it is a request, the wait for its answer begins.
    fn message_sent(&mut self, agent: u32, key: &TransferKey, now: Timestamp) {
        let Some(engine) = self.engines.by_agent.get_mut(&agent) else { return };
        let Some((id, header, head)) = engine.sending.remove(key) else { return };
        if key.ours && header.timeout_ms.get() != 0 {
            let datagram = Datagram { address: address_of(&header), mad: head };
            let mut send = Outstanding::new(id, header, Transmit { endpoint: engine.endpoint, datagram });
            // The whole message is not sent again when only its answer is missing.
            send.timeout *= send.retries_left.saturating_add(1);
            send.retries_left = 0;
            self.outgoing.insert(SendKey::of(agent, &head.header), send, now);
        }
    }

    /// A message could not be delivered.
    fn message_failed(&mut self, agent: u32, key: &TransferKey, failure: Failure) {
        let Some(engine) = self.engines.by_agent.get_mut(&agent) else { return };
        let Some((id, header, head)) = engine.sending.remove(key) else { return };
        if matches!(failure, Failure::ByUs(_)) {
            let datagram = Datagram { address: address_of(&header), mad: head };
            let send = Outstanding::new(id, header, Transmit { endpoint: engine.endpoint, datagram });
            self.give_back(agent, &send);
        }
    }
}
