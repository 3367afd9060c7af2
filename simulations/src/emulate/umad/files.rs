//! Opened umad descriptors, and the way of each datagram from a write to the fabric and from the fabric to a read.

use std::collections::VecDeque;

use mad::transport::{Address, Datagram};
use mad::types::{PortNum, Timestamp};
use mad::wire::{Mad, Method, MgmtClass, Status};
use rsm_preload_protocol::umad::{Header, MAD_LEN, MAX_AGENTS, RMPP_HEADER_LEN};
use rustc_hash::FxHashMap;
use rustix::io::Errno;

use super::super::backend::Endpoint;
use super::agent::{Registration, Services};
use super::layout::{self, address_of, data_offset, header_len, is_response, is_rmpp_class};
use super::outgoing::{Expired, Outgoing, Outstanding, SendKey};
use super::rmpp::{self, Engines};

/// Packets that wait in one descriptor, at most; the kernel's number. What comes then is lost.
const MAX_QUEUED: usize = 200_000;
/// Bytes that wait in one descriptor, at most.
const MAX_QUEUED_BYTES: usize = 256 << 20;

/// An opened umad descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(u32);

/// A datagram on its way into the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The port that sends.
    pub endpoint: Endpoint,
    /// The datagram.
    pub datagram: Datagram,
}

#[derive(Debug)]
struct Agent {
    registration: Registration,
    /// The upper half of the transaction IDs of its requests: unique in the emulator.
    high_tid: u32,
}

#[derive(Debug)]
struct File {
    endpoint: Endpoint,
    services: Services,
    /// Whether headers have the P_Key index.
    pkey_index: bool,
    /// Whether an agent was ever registered: the header's length is settled then.
    used: bool,
    agents: [Option<Agent>; MAX_AGENTS],
    queue: VecDeque<Vec<u8>>,
    queued_bytes: usize,
    /// Packets lost since the queue was full.
    lost: u64,
}

/// Who gets the requests of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct MethodKey {
    endpoint: Endpoint,
    class: u8,
    version: u8,
    oui: [u8; 3],
    method: u8,
}

/// All opened umad descriptors of an emulator.
#[derive(Debug, Default)]
pub struct Files {
    files: Vec<Option<File>>,
    /// By the upper half of transaction IDs.
    agents: FxHashMap<u32, (FileId, u32)>,
    methods: FxHashMap<MethodKey, u32>,
    pub(super) outgoing: Outgoing,
    pub(super) engines: Engines,
    pub(super) transmit: VecDeque<Transmit>,
    /// Descriptors whose queue was empty and has got something.
    ready: Vec<FileId>,
    last_high_tid: u32,
}

impl Files {
    /// Opens a descriptor on a port that does everything.
    pub fn open(&mut self, endpoint: Endpoint) -> FileId {
        self.open_for(endpoint, Services::All)
    }

    /// Opens a descriptor on a port, of a device that does these services of it.
    pub fn open_for(&mut self, endpoint: Endpoint, services: Services) -> FileId {
        let file = File {
            endpoint,
            services,
            pkey_index: false,
            used: false,
            agents: [const { None }; MAX_AGENTS],
            queue: VecDeque::new(),
            queued_bytes: 0,
            lost: 0,
        };
        let free = self.files.iter().position(Option::is_none).unwrap_or(self.files.len());
        if free == self.files.len() {
            self.files.push(None);
        }
        self.files[free] = Some(file);
        FileId(free as u32)
    }

    /// Closes a descriptor: its agents end, and what they had under way.
    pub fn close(&mut self, id: FileId) {
        for agent in 0..MAX_AGENTS as u32 {
            let _ = self.unregister(id, agent);
        }
        if let Some(slot) = self.files.get_mut(id.0 as usize) {
            *slot = None;
        }
    }

    fn file(&self, id: FileId) -> Option<&File> {
        self.files.get(id.0 as usize)?.as_ref()
    }

    fn file_mut(&mut self, id: FileId) -> Option<&mut File> {
        self.files.get_mut(id.0 as usize)?.as_mut()
    }

    /// Whether the descriptor's headers have the P_Key index.
    pub fn has_pkey_index(&self, id: FileId) -> bool {
        self.file(id).is_some_and(|file| file.pkey_index)
    }

    /// ioctl `ENABLE_PKEY`.
    ///
    /// # Errors
    /// `EINVAL` once an agent was registered.
    pub fn enable_pkey(&mut self, id: FileId) -> Result<(), Errno> {
        let file = self.file_mut(id).ok_or(Errno::BADF)?;
        if file.used {
            return Err(Errno::INVAL);
        }
        file.pkey_index = true;
        Ok(())
    }

    /// Registers an agent and gives its number. `second` says that the ioctl was `REGISTER_AGENT2`, which includes
    /// `ENABLE_PKEY` when it is the first.
    ///
    /// # Errors
    /// `EINVAL` for what the kernel refuses, methods of the class in another agent's hands included; `EPROTONOSUPPORT` for a
    /// queue pair that the device does not have; `ENOMEM` when the descriptor holds 32 agents.
    pub fn register(&mut self, id: FileId, registration: Registration, second: bool) -> Result<u32, Errno> {
        let file = self.file(id).ok_or(Errno::BADF)?;
        if registration.qpn > 1 {
            return Err(Errno::INVAL);
        }
        let number = file.agents.iter().position(Option::is_none).ok_or(Errno::NOMEM)? as u32;
        registration.check(file.services)?;
        let endpoint = file.endpoint;
        let keys: Vec<_> =
            registration.methods().map(|m| MethodKey::of(endpoint, &registration, m)).collect();
        if keys.iter().any(|key| self.methods.contains_key(key)) {
            return Err(Errno::INVAL);
        }
        let high_tid = self.unused_high_tid();
        self.methods.extend(keys.into_iter().map(|key| (key, high_tid)));
        self.agents.insert(high_tid, (id, number));
        if registration.kernel_rmpp() {
            self.engines.add(high_tid, endpoint);
        }
        let file = self.file_mut(id).ok_or(Errno::BADF)?;
        file.agents[number as usize] = Some(Agent { registration, high_tid });
        if !file.used {
            file.used = true;
            file.pkey_index |= second;
        }
        Ok(number)
    }

    /// A number that no agent has; never 0, which is what devices' own requests carry.
    fn unused_high_tid(&mut self) -> u32 {
        loop {
            self.last_high_tid = self.last_high_tid.wrapping_add(1);
            if self.last_high_tid != 0 && !self.agents.contains_key(&self.last_high_tid) {
                return self.last_high_tid;
            }
        }
    }

    /// Ends an agent, and silently what it has under way.
    ///
    /// # Errors
    /// `EINVAL` when there is none of the number.
    pub fn unregister(&mut self, id: FileId, number: u32) -> Result<(), Errno> {
        let file = self.file_mut(id).ok_or(Errno::BADF)?;
        let slot = file.agents.get_mut(number as usize).ok_or(Errno::INVAL)?;
        let agent = slot.take().ok_or(Errno::INVAL)?;
        let endpoint = file.endpoint;
        for method in agent.registration.methods() {
            self.methods.remove(&MethodKey::of(endpoint, &agent.registration, method));
        }
        self.agents.remove(&agent.high_tid);
        self.outgoing.remove_agent(agent.high_tid);
        self.engines.remove(agent.high_tid);
        Ok(())
    }

    /// A write: umad header and message.
    ///
    /// # Errors
    /// As the kernel: `EINVAL` for sizes and numbers that can't be, an RMPP agent's other classes, and a transaction
    /// ID that is under way; `EIO` for an agent that isn't there.
    pub fn write(&mut self, id: FileId, bytes: &[u8], now: Timestamp) -> Result<(), Errno> {
        let file = self.file(id).ok_or(Errno::BADF)?;
        let header_len = header_len(file.pkey_index);
        let endpoint = file.endpoint;
        if bytes.len() < header_len + RMPP_HEADER_LEN {
            return Err(Errno::INVAL);
        }
        let mut header = Header::decode(bytes, header_len).ok_or(Errno::INVAL)?;
        if header.id.get() >= MAX_AGENTS as u32 {
            return Err(Errno::INVAL);
        }
        let agent = file.agents[header.id.get() as usize].as_ref().ok_or(Errno::IO)?;
        let (high_tid, registration) = (agent.high_tid, agent.registration);
        if file.pkey_index {
            header.reserved = [0; 6];
        }
        let message = &bytes[header_len..];
        let mut datagram = layout::datagram(address_of(&header), message);
        let mad = &mut datagram.mad;
        check_written(&registration, mad, message.len(), endpoint.port)?;
        if !is_response(&mad.header) {
            let low = mad.header.transaction_id.get() & 0xffff_ffff;
            mad.header.transaction_id.set(u64::from(high_tid) << 32 | low);
        }
        let key = SendKey::of(high_tid, &mad.header);
        let is_under_way = self.outgoing.contains(&key);
        let own_rmpp = !registration.kernel_rmpp() && rmpp::active_header(mad).is_some();
        if is_under_way && !own_rmpp {
            return Err(Errno::INVAL);
        }
        if registration.kernel_rmpp() && rmpp::is_message(mad) {
            return self.write_message(id, high_tid, header, *mad, message, now);
        }
        let transmit = Transmit { endpoint, datagram };
        if header.timeout_ms.get() != 0 && !is_under_way {
            let send = Outstanding::new(id, header, transmit);
            if !key.is_response() {
                self.expect_message(high_tid, &send, now);
            }
            self.outgoing.insert(key, send, now);
        }
        self.transmit.push_back(transmit);
        Ok(())
    }

    /// The next datagram for the fabric.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmit.pop_front()
    }

    /// A datagram has come to a port.
    pub fn receive(&mut self, endpoint: Endpoint, datagram: &Datagram, now: Timestamp) {
        if is_response(&datagram.mad.header) {
            self.receive_response(endpoint, datagram, now);
        } else if let Some(high_tid) = self.agent_for_request(endpoint, &datagram.mad) {
            if !self.receive_segment(high_tid, datagram, now) {
                self.deliver(high_tid, &datagram.address, datagram.mad.bytes());
            }
        } else {
            self.refuse(endpoint, datagram);
        }
    }

    /// A response goes to the agent that its transaction ID names, if that still waits for it. An agent that does RMPP
    /// itself gets all segments.
    fn receive_response(&mut self, endpoint: Endpoint, datagram: &Datagram, now: Timestamp) {
        let mad = &datagram.mad;
        let high_tid = (mad.header.transaction_id.get() >> 32) as u32;
        let Some(&(id, number)) = self.agents.get(&high_tid) else { return };
        let Some(file) = self.file(id).filter(|file| file.endpoint == endpoint) else { return };
        let agent = file.agents.get(number as usize).and_then(Option::as_ref);
        let own_rmpp = agent.is_some_and(|agent| !agent.registration.kernel_rmpp());
        if self.receive_segment(high_tid, datagram, now) {
            return;
        }
        let asked = self.outgoing.remove(&SendKey::answered_by(high_tid, &mad.header));
        if let Some(send) = &asked {
            self.expect_no_message(high_tid, &send.transmit.datagram);
        }
        if asked.is_some() || (own_rmpp && rmpp::active_header(mad).is_some()) {
            self.deliver(high_tid, &datagram.address, mad.bytes());
        }
    }

    fn agent_for_request(&self, endpoint: Endpoint, mad: &Mad) -> Option<u32> {
        let header = &mad.header;
        let class = header.mgmt_class;
        // Vendor classes' OUI follows the RMPP header and a reserved byte.
        let oui = if layout::has_oui(class) { [mad.body[13], mad.body[14], mad.body[15]] } else { [0; 3] };
        let (version, method) = (header.class_version, header.method);
        self.methods.get(&MethodKey { endpoint, class, version, oui, method }).copied()
    }

    /// Puts a message into the queue of an agent's descriptor.
    pub(super) fn deliver(&mut self, high_tid: u32, address: &Address, message: &[u8]) {
        let Some(&(id, number)) = self.agents.get(&high_tid) else { return };
        let Some(file) = self.file(id) else { return };
        let packet = layout::received(address, number, header_len(file.pkey_index), message);
        self.queue(id, packet);
    }

    fn queue(&mut self, id: FileId, packet: Vec<u8>) {
        let Some(file) = self.file_mut(id) else { return };
        if file.queue.len() >= MAX_QUEUED || file.queued_bytes + packet.len() > MAX_QUEUED_BYTES {
            file.lost += 1;
            return;
        }
        let was_empty = file.queue.is_empty();
        file.queued_bytes += packet.len();
        file.queue.push_back(packet);
        if was_empty {
            self.ready.push(id);
        }
    }

    /// The kernel answers a Get or Set that no agent wants.
    fn refuse(&mut self, endpoint: Endpoint, datagram: &Datagram) {
        let mut answer = *datagram;
        let header = &mut answer.mad.header;
        if !matches!(header.method(), Method::GET | Method::SET) {
            return;
        }
        header.method = Method::GET_RESP.0;
        let direction = if header.mgmt_class() == MgmtClass::SUBN_DR { 0x8000 } else { 0 };
        header.status.set(Status::METHOD_ATTRIBUTE_NOT_SUPPORTED.0 | direction);
        self.transmit.push_back(Transmit { endpoint, datagram: answer });
    }

    /// When [`Files::expire`] has something to do.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.outgoing.deadline().into_iter().chain(self.engines.deadline()).min()
    }

    /// Repeats or gives back the requests whose time is over.
    pub fn expire(&mut self, now: Timestamp) {
        while let Some(expired) = self.outgoing.expired(now) {
            match expired {
                Expired::Again(transmit) => self.transmit.push_back(*transmit),
                Expired::GivenUp(key, send) => {
                    self.expect_no_message(key.agent, &send.transmit.datagram);
                    self.give_back(key.agent, &send);
                }
            }
        }
        self.expire_engines(now);
    }

    /// A request comes back to its program with the status `ETIMEDOUT`.
    pub(super) fn give_back(&mut self, agent: u32, send: &Outstanding) {
        if !self.agents.contains_key(&agent) {
            return;
        }
        let mut header = send.header;
        header.status.set(Errno::TIMEDOUT.raw_os_error() as u32);
        let header_len = header_len(self.has_pkey_index(send.file));
        self.queue(send.file, layout::packet(&header, header_len, send.returned()));
    }

    /// Descriptors whose queue is no longer empty since the last call.
    pub fn take_ready(&mut self) -> Vec<FileId> {
        std::mem::take(&mut self.ready)
    }

    /// The first packet in a descriptor's queue: frame prefix, umad header, message.
    pub fn front(&self, id: FileId) -> Option<&[u8]> {
        self.file(id)?.queue.front().map(Vec::as_slice)
    }

    /// Takes the first packet out of the queue.
    pub fn pop(&mut self, id: FileId) -> Option<Vec<u8>> {
        let file = self.file_mut(id)?;
        let packet = file.queue.pop_front()?;
        file.queued_bytes -= packet.len();
        Some(packet)
    }

    /// The port on which the descriptor was opened.
    pub fn endpoint(&self, id: FileId) -> Option<Endpoint> {
        self.file(id).map(|file| file.endpoint)
    }

    /// Agents, packets that wait, and packets that were lost since the queue was full.
    pub fn statistics(&self, id: FileId) -> (usize, usize, u64) {
        self.file(id)
            .map_or((0, 0, 0), |file| (file.agents.iter().flatten().count(), file.queue.len(), file.lost))
    }
}

impl MethodKey {
    fn of(endpoint: Endpoint, registration: &Registration, method: u8) -> Self {
        Self {
            endpoint,
            class: registration.mgmt_class,
            version: registration.class_version,
            oui: registration.effective_oui(),
            method,
        }
    }
}

/// Whether the kernel's device takes a message of this length that begins like this.
fn check_written(registration: &Registration, mad: &Mad, length: usize, port: PortNum) -> Result<(), Errno> {
    let class = mad.header.mgmt_class();
    let may_be_long = registration.kernel_rmpp() && rmpp::is_message(mad);
    if length > if may_be_long { rmpp::MAX_MESSAGE } else { MAD_LEN }
        || length < data_offset(class)
        || (registration.rmpp_version != 0 && !is_rmpp_class(class))
    {
        return Err(Errno::INVAL);
    }
    check_directed_route(mad, port)
}

/// A directed route that cannot start from here is refused when it is written (specification volume 1, 14.2.2); one with a
/// LID-routed part ahead starts elsewhere.
fn check_directed_route(mad: &Mad, port: PortNum) -> Result<(), Errno> {
    const DR_SLID: usize = 32 - 24;
    const INITIAL_PATH: usize = 128 - 24;
    const MAX_HOPS: u8 = 63;
    let header = &mad.header;
    if header.mgmt_class() != MgmtClass::SUBN_DR {
        return Ok(());
    }
    let outgoing = header.status.get() & 0x8000 == 0;
    let starts_elsewhere = outgoing
        && port != PortNum::MANAGEMENT
        && mad.body[DR_SLID..DR_SLID + 2] == [0xff; 2]
        && header.hop_count != 0
        && header.hop_pointer == 0
        && mad.body[INITIAL_PATH + 1] != port.0;
    if header.hop_count > MAX_HOPS || starts_elsewhere { Err(Errno::INVAL) } else { Ok(()) }
}
