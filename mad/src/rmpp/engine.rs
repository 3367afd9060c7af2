//! All transfers of this side, by key; which datagram belongs to which, timers, bounds.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::time::Duration;

use super::receiver::{Receiver, Taken};
use super::segment::{self, Layout, rmpp};
use super::sender::{Acked, Sender};
use super::{Direction, Event, Failure, Peer, RmppConfig, SendError, TransferKey};
use crate::transport::{Address, Datagram};
use crate::types::Timestamp;
use crate::wire::Mad;
use crate::wire::rmpp::{RmppHeader, RmppStatus, RmppType};

/// What is known of a transfer.
#[derive(Debug)]
enum Phase {
    /// An answer to a request of ours may come in segments.
    Expecting {
        until: Timestamp,
        /// The request went out in segments: what turns the direction, for when the peer asks again.
        turn: Option<Box<(Address, Mad)>>,
    },
    /// A message comes in.
    Receiving(Box<Receiver>),
    /// A message came; kept to acknowledge what is repeated, and for the window of the answer.
    Received { address: Address, ack: Box<Mad>, reply_window: Option<u32>, until: Timestamp },
    /// A message goes out; when it answers a request that came in segments, with the last acknowledgement of that.
    Sending { sender: Box<Sender>, request_ack: Option<Box<Mad>> },
}

impl Phase {
    fn deadline(&self) -> Timestamp {
        match self {
            Self::Expecting { until, .. } | Self::Received { until, .. } => *until,
            Self::Receiving(receiver) => receiver.deadline(),
            Self::Sending { sender, .. } => sender.deadline(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Expecting { .. } | Self::Received { .. } => 0,
            Self::Receiving(receiver) => receiver.bytes(),
            Self::Sending { sender, .. } => sender.bytes(),
        }
    }
}

/// Whether a transfer is a request of the peer that is being taken in.
const fn is_request(key: &TransferKey, phase: &Phase) -> bool {
    !key.ours && matches!(phase, Phase::Receiving(_))
}

/// A transfer, and for when its timer is set. Handing out a segment puts the deadline off and leaves the timer: it is set
/// anew when it goes off too early.
#[derive(Debug)]
struct Transfer {
    phase: Phase,
    timer: Timestamp,
}

/// The engine; see the [module](super).
#[derive(Debug)]
pub struct Rmpp {
    config: RmppConfig,
    transfers: BTreeMap<TransferKey, Transfer>,
    timers: BTreeSet<(Timestamp, TransferKey)>,
    /// Transfers in [`Phase::Received`], the first to be forgotten when there is no room.
    lingering: BTreeSet<(Timestamp, TransferKey)>,
    /// Senders that may have a segment to hand out, in turn.
    ready: VecDeque<TransferKey>,
    /// Acknowledgements and ends, sent before any segment.
    control: VecDeque<Datagram>,
    events: VecDeque<Event>,
    bytes: usize,
    /// Requests of each LID that are being taken in.
    requests: HashMap<u16, usize>,
    /// Peers that have acknowledged something.
    acquainted: HashSet<Peer>,
}

/// Peers that are remembered to speak RMPP; beyond, all are forgotten, which costs each a repeated request at most.
const MOST_ACQUAINTED: usize = 65_536;

impl Rmpp {
    /// An engine without transfers. Times below a millisecond are taken as a millisecond.
    pub fn new(mut config: RmppConfig) -> Self {
        let least = Duration::from_millis(1);
        for time in [&mut config.response_timeout, &mut config.total_timeout, &mut config.turn_timeout] {
            *time = (*time).max(least);
        }
        Self {
            config,
            transfers: BTreeMap::new(),
            timers: BTreeSet::new(),
            lingering: BTreeSet::new(),
            ready: VecDeque::new(),
            control: VecDeque::new(),
            events: VecDeque::new(),
            bytes: 0,
            requests: HashMap::new(),
            acquainted: HashSet::new(),
        }
    }

    /// Starts to send a message: `head` gives the headers of every segment (the RMPP header is written here), `data` what
    /// follows the class's own header. A request is then expected to be answered, as after [`Self::expect`].
    ///
    /// # Errors
    /// Nothing was sent and nothing changed; but a request that is repeated while nothing of its answer was acknowledged
    /// has the first segment sent again.
    pub fn send(
        &mut self,
        address: Address,
        head: &Mad,
        data: Vec<u8>,
        now: Timestamp,
    ) -> Result<TransferKey, SendError> {
        let layout = Layout::of(head.header.mgmt_class()).ok_or(SendError::Class(head.header.mgmt_class))?;
        let key = TransferKey::of_sent(&address, head);
        if let Some(Phase::Sending { sender, .. }) = self.phase(&key) {
            if sender.is_for(head, &data) {
                self.begin_again(key, now);
                return Err(SendError::UnderWay);
            }
            // The peer began anew and counts its transactions from the start: nobody waits for the old answer.
            self.take(&key);
            self.events.push_back(Event::Failed {
                key,
                direction: Direction::Sending,
                failure: Failure::ByUs(RmppStatus::UNSPECIFIED),
            });
        }
        if !matches!(self.phase(&key), None | Some(Phase::Received { .. })) {
            return Err(SendError::UnderWay);
        }
        let bytes = data.len();
        let acquainted = self.acquainted.contains(&key.peer);
        let sender = Sender::new(address, *head, data, layout, &self.config, acquainted, now)
            .ok_or(SendError::TooLong(bytes))?;
        if self.bytes.saturating_add(bytes) > self.config.max_bytes {
            return Err(SendError::Full);
        }
        let (sender, request_ack) = match self.take(&key) {
            Some(Phase::Received { ack, reply_window, .. }) if !key.ours => {
                let sender = match reply_window {
                    Some(window) => sender.with_window(window),
                    None => sender.wait_for_turn(now + self.config.turn_timeout),
                };
                (sender, Some(ack))
            }
            _ if self.make_room() => (sender, None),
            _ => return Err(SendError::Full),
        };
        self.put(key, Phase::Sending { sender: Box::new(sender), request_ack });
        Ok(key)
    }

    /// A peer repeats its request: the answer's first segment seems to be lost.
    fn begin_again(&mut self, key: TransferKey, now: Timestamp) {
        if let Some(Phase::Sending { .. }) = self.phase(&key)
            && let Some(Phase::Sending { mut sender, request_ack }) = self.take(&key)
        {
            sender.begin_again(now);
            self.put(key, Phase::Sending { sender, request_ack });
        }
    }

    /// Says that a request, about to be sent by other means, may be answered in segments until then. Answers that nobody
    /// expects are dropped. The caller ends its interest with [`Self::cancel`].
    ///
    /// # Errors
    /// There is no room, or the key is in use.
    pub fn expect(
        &mut self,
        address: &Address,
        request: &Mad,
        until: Timestamp,
    ) -> Result<TransferKey, SendError> {
        let key = TransferKey::of_sent(address, request);
        match self.phase(&key) {
            None | Some(Phase::Received { .. } | Phase::Expecting { turn: None, .. }) => {}
            Some(_) => return Err(SendError::UnderWay),
        }
        if self.take(&key).is_none() && !self.make_room() {
            return Err(SendError::Full);
        }
        self.put(key, Phase::Expecting { until, turn: None });
        Ok(key)
    }

    /// Forgets a transfer; a peer that is in the middle of it gets an ABORT. No event follows.
    pub fn cancel(&mut self, key: &TransferKey) {
        match self.take(key) {
            Some(Phase::Receiving(receiver)) => {
                self.push_control(receiver.address, receiver.end(RmppStatus::UNSPECIFIED));
            }
            Some(Phase::Sending { sender, .. }) => {
                self.push_control(sender.address, sender.end(RmppStatus::UNSPECIFIED));
            }
            Some(Phase::Expecting { .. } | Phase::Received { .. }) | None => {}
        }
    }

    /// Takes a datagram that came. False when it is no part of a transfer, and somebody else's to handle.
    pub fn receive(&mut self, datagram: &Datagram, now: Timestamp) -> bool {
        let mad = &datagram.mad;
        let Some(layout) = Layout::of(mad.header.mgmt_class()) else { return false };
        let header = rmpp(mad);
        if !header.is_active() || header.rmpp_type() == Some(RmppType::None) {
            return false;
        }
        let key = TransferKey::of_received(&datagram.address, mad);
        match header.rmpp_type() {
            Some(RmppType::Stop | RmppType::Abort) => self.on_end(key, header.status()),
            _ if header.version != RmppHeader::VERSION => {
                self.refuse(key, datagram, RmppStatus::UNSUPPORTED_VERSION);
            }
            Some(RmppType::Data) => self.on_data(key, datagram, layout, now),
            Some(RmppType::Ack) => self.on_ack(key, datagram, &header, now),
            Some(RmppType::None) | None => self.refuse(key, datagram, RmppStatus::BAD_TYPE),
        }
        true
    }

    /// The next datagram to send.
    pub fn poll_send(&mut self, now: Timestamp) -> Option<Datagram> {
        if let Some(datagram) = self.control.pop_front() {
            return Some(datagram);
        }
        while let Some(key) = self.ready.pop_front() {
            let Some(Transfer { phase: Phase::Sending { sender, .. }, timer }) = self.transfers.get_mut(&key)
            else {
                continue;
            };
            let segment = sender.poll(now);
            debug_assert!(sender.deadline() >= *timer, "a segment puts the deadline off");
            sender.is_queued = sender.is_ready();
            if sender.is_queued {
                self.ready.push_back(key);
            }
            if let Some(mad) = segment {
                return Some(Datagram { address: sender.address, mad });
            }
        }
        None
    }

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`Self::expired`] is to be called. It may then have nothing to do yet.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Lets time pass.
    pub fn expired(&mut self, now: Timestamp) {
        while let Some(&(at, key)) = self.timers.first()
            && at <= now
        {
            match self.take(&key) {
                Some(phase) if phase.deadline() > now => self.put(key, phase),
                None | Some(Phase::Expecting { .. } | Phase::Received { .. }) => {}
                Some(Phase::Receiving(mut receiver)) => {
                    let taken = receiver.on_deadline(&self.config, now);
                    self.after_segment(key, receiver, taken, now);
                }
                Some(Phase::Sending { sender, .. }) if self.gives_up_stranger(&key, &sender, now) => {
                    let failure = Failure::ByUs(RmppStatus::TIME_TOO_LONG);
                    self.events.push_back(Event::Failed { key, direction: Direction::Sending, failure });
                }
                Some(Phase::Sending { mut sender, request_ack }) => {
                    if let (true, Some(ack)) = (sender.waits_for_turn(), &request_ack) {
                        self.push_control(sender.address, **ack);
                    }
                    match sender.on_deadline(&self.config, now) {
                        Ok(()) => self.put(key, Phase::Sending { sender, request_ack }),
                        Err(status) => self.fail_sending(key, &sender, status),
                    }
                }
            }
        }
    }

    /// Whether a message is coming in with this key.
    pub fn is_receiving(&self, key: &TransferKey) -> bool {
        matches!(self.phase(key), Some(Phase::Receiving(_)))
    }

    fn phase(&self, key: &TransferKey) -> Option<&Phase> {
        self.transfers.get(key).map(|transfer| &transfer.phase)
    }

    /// Transfers that are known, remembered ones included.
    pub fn len(&self) -> usize {
        self.transfers.len()
    }

    /// Whether no transfer is known.
    pub fn is_empty(&self) -> bool {
        self.transfers.is_empty()
    }

    /// Bytes of messages under way.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    fn on_data(&mut self, key: TransferKey, datagram: &Datagram, layout: Layout, now: Timestamp) {
        let mad = &datagram.mad;
        let segment = rmpp(mad).segment_number();
        match self.take(&key) {
            None if key.ours => {}
            None => self.begin(key, datagram, layout, 1, now),
            Some(phase @ Phase::Expecting { .. }) if segment != 1 => self.put(key, phase),
            Some(Phase::Expecting { turn, .. }) => {
                let window_last = if turn.is_some() { self.config.window } else { 1 };
                self.begin(key, datagram, layout, window_last, now);
            }
            Some(Phase::Receiving(mut receiver)) => {
                let taken = receiver.take(mad, &self.config, now);
                self.after_segment(key, receiver, taken, now);
            }
            Some(Phase::Received { address, ack, reply_window, until }) => {
                if rmpp(&ack).segment_number() == segment {
                    self.push_control(address, *ack);
                }
                self.put(key, Phase::Received { address, ack, reply_window, until });
            }
            Some(Phase::Sending { sender, .. }) if key.ours && sender.is_request() && segment == 1 => {
                // The answer says that the request came whole; its acknowledgement was lost.
                self.events.push_back(Event::Sent(key));
                self.begin(key, datagram, layout, 1, now);
            }
            Some(Phase::Sending { sender, request_ack }) => {
                if let Some(ack) = &request_ack
                    && rmpp(ack).segment_number() == segment
                {
                    self.push_control(sender.address, **ack);
                }
                self.put(key, Phase::Sending { sender, request_ack });
            }
        }
    }

    /// Starts to receive with a first segment; the key is free.
    fn begin(
        &mut self,
        key: TransferKey,
        datagram: &Datagram,
        layout: Layout,
        window_last: u32,
        now: Timestamp,
    ) {
        let header = rmpp(&datagram.mad);
        if header.segment_number() != 1 && !header.is_first() {
            // The middle of a transfer that is over or was never known here. The sender gives up by itself.
            return;
        }
        // What the first segment announces is looked at only to refuse early what could never be taken.
        let announced = layout.data_of(header.payload_length());
        let open = self.requests.get(&key.peer.lid).copied().unwrap_or(0);
        let too_many = !key.ours && open >= self.config.max_requests_of_lid;
        if too_many || !self.make_room() || announced > self.config.max_message.max(layout.data_len()) {
            self.push_control(
                datagram.address,
                segment::end(&datagram.mad, true, RmppStatus::RESOURCES_EXHAUSTED),
            );
            return self.events.push_back(Event::Failed {
                key,
                direction: Direction::Receiving,
                failure: Failure::ByUs(RmppStatus::RESOURCES_EXHAUSTED),
            });
        }
        let mut receiver =
            Box::new(Receiver::new(datagram.address, datagram.mad, layout, window_last, &self.config, now));
        let taken = receiver.take(&datagram.mad, &self.config, now);
        self.after_segment(key, receiver, taken, now);
    }

    fn after_segment(
        &mut self,
        key: TransferKey,
        mut receiver: Box<Receiver>,
        taken: Result<Taken, RmppStatus>,
        now: Timestamp,
    ) {
        let over = self.bytes.saturating_add(receiver.bytes()) > self.config.max_bytes;
        match taken {
            Ok(Taken::Quiet | Taken::Ack) if over => {
                self.fail_receiving(key, &receiver, RmppStatus::RESOURCES_EXHAUSTED);
            }
            Ok(Taken::Quiet) => self.put(key, Phase::Receiving(receiver)),
            Ok(Taken::Ack) => {
                let ack = receiver.ack();
                self.push_control(receiver.address, ack);
                self.put(key, Phase::Receiving(receiver));
            }
            Ok(Taken::Whole) => {
                let (address, ack) = (receiver.address, Box::new(receiver.ack()));
                self.push_control(address, *ack);
                let until = now + self.config.linger;
                self.put(key, Phase::Received { address, ack, reply_window: None, until });
                self.events.push_back(Event::Received(Box::new(receiver.into_message())));
            }
            Err(status) => self.fail_receiving(key, &receiver, status),
        }
    }

    /// Whether a transfer whose time has come is to end silently, see [`RmppConfig::retries_to_strangers`].
    fn gives_up_stranger(&self, key: &TransferKey, sender: &Sender, now: Timestamp) -> bool {
        let tries = self.config.retries_to_strangers.min(self.config.retries);
        sender.is_unanswered()
            && sender.has_waited(tries, &self.config, now)
            && !self.acquainted.contains(&key.peer)
            && tries < self.config.retries
    }

    fn on_ack(&mut self, key: TransferKey, datagram: &Datagram, header: &RmppHeader, now: Timestamp) {
        match self.take(&key) {
            None => {}
            Some(Phase::Sending { mut sender, request_ack }) => {
                if self.acquainted.len() >= MOST_ACQUAINTED {
                    self.acquainted.clear();
                }
                self.acquainted.insert(key.peer);
                match sender.on_ack(header, &self.config, now) {
                    Ok(Acked::Going) => self.put(key, Phase::Sending { sender, request_ack }),
                    Ok(Acked::Done) => {
                        self.events.push_back(Event::Sent(key));
                        if key.ours && sender.is_request() {
                            let turn = segment::ack(&datagram.mad, 0, self.config.window);
                            self.push_control(sender.address, turn);
                            let until = now + self.config.total_timeout;
                            self.put(
                                key,
                                Phase::Expecting { until, turn: Some(Box::new((sender.address, turn))) },
                            );
                        }
                    }
                    Err(status) => self.fail_sending(key, &sender, status),
                }
            }
            Some(Phase::Received { address, ack, mut reply_window, until }) => {
                if !key.ours && header.segment_number() == 0 && header.status() == RmppStatus::OK {
                    reply_window = Some(header.new_window_last());
                }
                self.put(key, Phase::Received { address, ack, reply_window, until });
            }
            Some(Phase::Expecting { until, turn }) => {
                if let Some((address, turn)) = turn.as_deref() {
                    self.push_control(*address, *turn);
                }
                self.put(key, Phase::Expecting { until, turn });
            }
            Some(phase @ Phase::Receiving(_)) => self.put(key, phase),
        }
    }

    /// The peer ends the transfer. It is over in any case, even with an illegal status; an answer could start a row.
    fn on_end(&mut self, key: TransferKey, status: RmppStatus) {
        let direction = match self.take(&key) {
            None | Some(Phase::Received { .. }) => return,
            Some(Phase::Sending { .. }) => Direction::Sending,
            Some(Phase::Receiving(_) | Phase::Expecting { .. }) => Direction::Receiving,
        };
        self.events.push_back(Event::Failed { key, direction, failure: Failure::ByPeer(status) });
    }

    /// Ends a transfer, if there is one, for a datagram that can't be understood.
    fn refuse(&mut self, key: TransferKey, datagram: &Datagram, status: RmppStatus) {
        match self.take(&key) {
            Some(Phase::Sending { sender, .. }) => self.fail_sending(key, &sender, status),
            Some(Phase::Receiving(receiver)) => self.fail_receiving(key, &receiver, status),
            Some(phase @ (Phase::Expecting { .. } | Phase::Received { .. })) => {
                self.put(key, phase);
                self.push_control(datagram.address, segment::end(&datagram.mad, true, status));
            }
            None => self.push_control(datagram.address, segment::end(&datagram.mad, true, status)),
        }
    }

    fn fail_sending(&mut self, key: TransferKey, sender: &Sender, status: RmppStatus) {
        self.push_control(sender.address, sender.end(status));
        let failure = Failure::ByUs(status);
        self.events.push_back(Event::Failed { key, direction: Direction::Sending, failure });
    }

    fn fail_receiving(&mut self, key: TransferKey, receiver: &Receiver, status: RmppStatus) {
        self.push_control(receiver.address, receiver.end(status));
        let failure = Failure::ByUs(status);
        self.events.push_back(Event::Failed { key, direction: Direction::Receiving, failure });
    }

    /// Queues a datagram without data. One too many is dropped, as the fabric might: the protocol repeats it.
    fn push_control(&mut self, address: Address, mad: Mad) {
        if self.control.len() < 2 * self.config.max_transfers + 64 {
            self.control.push_back(Datagram { address, mad });
        }
    }

    /// Makes room for one more transfer, if need be by forgetting one that is over.
    fn make_room(&mut self) -> bool {
        if self.transfers.len() < self.config.max_transfers {
            return true;
        }
        let Some(&(_, oldest)) = self.lingering.first() else { return false };
        self.take(&oldest);
        true
    }

    fn take(&mut self, key: &TransferKey) -> Option<Phase> {
        let Transfer { phase, timer } = self.transfers.remove(key)?;
        self.bytes -= phase.bytes();
        if is_request(key, &phase)
            && let Some(open) = self.requests.get_mut(&key.peer.lid)
        {
            *open -= 1;
            if *open == 0 {
                self.requests.remove(&key.peer.lid);
            }
        }
        let timer = (timer, *key);
        self.timers.remove(&timer);
        self.lingering.remove(&timer);
        Some(phase)
    }

    fn put(&mut self, key: TransferKey, mut phase: Phase) {
        self.bytes += phase.bytes();
        if is_request(&key, &phase) {
            *self.requests.entry(key.peer.lid).or_default() += 1;
        }
        let timer = (phase.deadline(), key);
        self.timers.insert(timer);
        match &mut phase {
            Phase::Received { .. } => {
                self.lingering.insert(timer);
            }
            // One place in the queue for each sender, so that they take turns.
            Phase::Sending { sender, .. } if sender.is_ready() && !sender.is_queued => {
                sender.is_queued = true;
                self.ready.push_back(key);
            }
            Phase::Sending { .. } | Phase::Receiving(_) | Phase::Expecting { .. } => {}
        }
        self.transfers.insert(key, Transfer { phase, timer: timer.0 });
    }
}
