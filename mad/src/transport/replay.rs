//! Plays a capture back: a transport that answers requests as they were answered when the capture was made.
//!
//! A request is known again by its bytes and its destination, its transaction ID apart. Asked several times, it
//! gets the answers of the capture one after the other, and the last of them from then on; what was not asked
//! or not answered in the capture gets no answer. What came unasked (traps, other managers' requests) comes
//! again once the answer before which it came has been taken.

use std::collections::{HashMap, VecDeque};
use std::io::Read;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::{Block, PcapNgReader};

use super::capture::{OUTBOUND, to_io};
use super::frame::{self, Direction};
use super::{Datagram, Received, Transport, TransportError};

/// A request without what changes from run to run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Question {
    lid: u16,
    qpn: u32,
    mad: Vec<u8>,
}

impl Question {
    fn new(request: &Datagram) -> Self {
        let mut mad = request.mad;
        mad.header.transaction_id.set(0);
        Self { lid: request.address.lid, qpn: request.address.qpn.0, mad: mad.bytes().to_vec() }
    }
}

/// An answer, and what came unasked right after it.
#[derive(Clone, Debug)]
struct Answer {
    datagram: Datagram,
    unasked: Vec<Datagram>,
}

#[derive(Debug, Default)]
struct Script {
    answers: HashMap<Question, VecDeque<Answer>>,
    ready: VecDeque<Datagram>,
}

/// A transport over a capture.
#[derive(Debug)]
pub struct Replay {
    script: Mutex<Script>,
    /// Holds a message while something may be ready.
    signal: (Sender<()>, Receiver<()>),
}

impl Replay {
    /// Reads a capture that [`super::capture`] wrote.
    ///
    /// # Errors
    /// The file can't be read or is no pcapng file. Packets in it that are no management datagrams are passed over.
    pub fn read(file: impl Read) -> std::io::Result<Self> {
        let mut reader = PcapNgReader::new(file).map_err(to_io)?;
        let mut packets = Vec::new();
        while let Some(block) = reader.next_block() {
            let Block::EnhancedPacket(packet) = block.map_err(to_io)? else { continue };
            let outbound = packet
                .options
                .iter()
                .any(|option| matches!(option, EnhancedPacketOption::Flags(flags) if flags & 3 == OUTBOUND));
            let direction = if outbound { Direction::Outbound } else { Direction::Inbound };
            packets.extend(frame::decode(&packet.data, direction).map(|datagram| (direction, datagram)));
        }
        let replay = Self { script: Mutex::new(Script::new(packets)), signal: bounded(1) };
        replay.notify();
        Ok(replay)
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notify(&self) {
        // Full means that it is signalled already.
        let _ = self.signal.0.try_send(());
    }
}

impl Script {
    fn new(packets: Vec<(Direction, Datagram)>) -> Self {
        let mut script = Self::default();
        let mut open: HashMap<u32, Question> = HashMap::new();
        let mut last: Option<Question> = None;
        for (direction, datagram) in packets {
            let header = &datagram.mad.header;
            let tid = header.transaction_id.get() as u32;
            match (direction, header.method().is_response()) {
                (Direction::Outbound, false) => {
                    open.insert(tid, Question::new(&datagram));
                }
                (Direction::Outbound, true) => {}
                (Direction::Inbound, true) => {
                    // A repeated answer is left out with its request.
                    if let Some(question) = open.remove(&tid) {
                        let answer = Answer { datagram, unasked: Vec::new() };
                        script.answers.entry(question.clone()).or_default().push_back(answer);
                        last = Some(question);
                    }
                }
                (Direction::Inbound, false) => {
                    let before =
                        last.as_ref().and_then(|question| script.answers.get_mut(question)?.back_mut());
                    match before {
                        Some(answer) => answer.unasked.push(datagram),
                        None => script.ready.push_back(datagram),
                    }
                }
            }
        }
        script
    }

    fn ask(&mut self, request: &Datagram) {
        let Some(answers) = self.answers.get_mut(&Question::new(request)) else { return };
        let answer = if answers.len() > 1 {
            answers.pop_front()
        } else {
            // The last one stays, but what came unasked after it comes once.
            answers
                .front_mut()
                .map(|last| Answer { unasked: std::mem::take(&mut last.unasked), ..last.clone() })
        };
        let Some(mut answer) = answer else { return };
        answer.datagram.mad.header.transaction_id = request.mad.header.transaction_id;
        self.ready.push_back(answer.datagram);
        self.ready.extend(answer.unasked);
    }
}

impl Transport for Replay {
    fn send(&self, datagram: &Datagram, _timeout: Option<Duration>) -> Result<(), TransportError> {
        self.script().ask(datagram);
        self.notify();
        Ok(())
    }

    fn receive(&self, timeout: Duration) -> Result<Option<Received>, TransportError> {
        if let Some(datagram) = self.script().ready.pop_front() {
            return Ok(Some(Received::Datagram(datagram)));
        }
        // Both kinds of end are fine: a signal, be it a wake-up or an answer, and the end of the time.
        let _ = self.signal.1.recv_timeout(timeout);
        Ok(self.script().ready.pop_front().map(Received::Datagram))
    }

    fn wake(&self) {
        self.notify();
    }

    fn owns_only_lower_tid(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
