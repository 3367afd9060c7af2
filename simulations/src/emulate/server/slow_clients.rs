//! Clients that are slow: what they do not take waits for them, in order, and nobody is cut off for it.

use std::collections::{BTreeSet, VecDeque};
use std::io::IoSlice;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use mad::transport::{Address, Datagram};
use mad::types::{PortNum, ServiceLevel, Timestamp};
use mad::wire::rmpp::RmppHeader;
use mad::wire::{Mad, Method, MgmtClass};
use rand::{RngExt as _, SeedableRng};
use rsm_preload_protocol::program;
use rsm_preload_protocol::ring::Rings;
use rsm_preload_protocol::socket::{ask, ask_for_file, connect_to, memory_file};
use rsm_preload_protocol::umad::{HEADER_LEN, Header, MAD_LEN, OLD_HEADER_LEN, RegisterAgent};
use rsm_preload_protocol::{
    DeviceKind, Frame, FrameKind, MAX_PACKET, Operation, Reply, Request, SOCKET_NAME,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SocketFlags, sockopt};
use zerocopy::IntoBytes;

use super::{Pace, Server};
use crate::emulate::backend::{Backend, DataHeader, Delivery, DeviceFacts, Endpoint, Key, NodeId, PortFacts};
use crate::emulate::console::Command;
use crate::emulate::fabric::EmulatedFabric;
use crate::emulate::sysfs::Presentation;
use crate::generate::{Options, Topology, generate};
use crate::world::{Config, Packet, World};

/// Where class-specific data of subnet administration begin.
const DATA: usize = 56;

/// A world with a wire of its own between QP1s: LID n is port 1 of node n.
struct Wire {
    world: EmulatedFabric,
    arrived: VecDeque<Delivery>,
}

impl Backend for Wire {
    fn inject(&mut self, endpoint: Endpoint, datagram: &Datagram, _: Timestamp) {
        let endpoint_there = Endpoint { node: NodeId(datagram.address.lid.into()), port: PortNum(1) };
        let address = Address::gsi(endpoint.node.0 as u16, ServiceLevel(0));
        let datagram = Datagram { address, mad: datagram.mad };
        self.arrived.push_back(Delivery { endpoint: endpoint_there, datagram });
    }

    fn poll(&mut self, _: Timestamp) -> Option<Delivery> {
        self.arrived.pop_front()
    }

    fn deadline(&self) -> Option<Timestamp> {
        None
    }

    fn find(&self, name: &str) -> Option<NodeId> {
        self.world.find(name)
    }

    fn default_node(&self) -> Option<NodeId> {
        self.world.default_node()
    }

    fn device(&self, node: NodeId) -> DeviceFacts {
        self.world.device(node)
    }

    fn port(&self, endpoint: Endpoint) -> PortFacts {
        self.world.port(endpoint)
    }

    fn attach(&mut self, endpoint: Endpoint) {
        self.world.attach(endpoint);
    }

    fn set_is_sm(&mut self, endpoint: Endpoint, is_sm: bool, now: Timestamp) {
        self.world.set_is_sm(endpoint, is_sm, now);
    }

    fn set_capabilities(&mut self, endpoint: Endpoint, set: u32, clear: u32, now: Timestamp) {
        self.world.set_capabilities(endpoint, set, clear, now);
    }

    fn describe(&mut self, node: NodeId, description: &str, now: Timestamp) {
        self.world.describe(node, description, now);
    }

    fn ask_agents(&mut self, endpoint: Endpoint, mad: &Mad, now: Timestamp) -> Option<Mad> {
        self.world.ask_agents(endpoint, mad, now)
    }

    fn carry(&mut self, from: Endpoint, header: &DataHeader, now: Timestamp) -> Vec<Endpoint> {
        self.world.carry(from, header, now)
    }

    fn refused(&mut self, endpoint: Endpoint, packet: &Packet, key: Key, now: Timestamp) {
        self.world.refused(endpoint, packet, key, now);
    }

    fn command(&mut self, command: &Command, now: Timestamp) -> Result<String, String> {
        self.world.command(command, now)
    }
}

/// A program with a descriptor, an agent of subnet administration whose RMPP the device does, and rings.
struct Program {
    socket: OwnedFd,
    session: String,
    path: PathBuf,
    rings: Rings,
    lid: u16,
}

impl Program {
    fn start(path: PathBuf, node: &str, lid: u16, methods: &[Method]) -> Self {
        let (socket, session) = connect_to(&path, true, SocketFlags::CLOEXEC).unwrap();
        let open = Request::Open { kind: DeviceKind::Umad, number: 0, nonblocking: true, node };
        assert_eq!(ask(socket.as_fd(), &open).unwrap(), Reply::ok([1]));
        rustix::io::ioctl_fionbio(&socket, true).unwrap();
        let (asking, _) = connect_to(&path, false, SocketFlags::CLOEXEC).unwrap();
        let request = Request::Operation { operation: Operation::Rings, session: &session, payload: &[] };
        let (reply, file) = ask_for_file(asking.as_fd(), &request).unwrap();
        assert_eq!(reply.errno, 0);
        let rings = Rings::open(&file.unwrap()).unwrap();
        let program = Self { socket, session, path, rings, lid };
        let mut agent: RegisterAgent = zerocopy::FromZeros::new_zeroed();
        agent.qpn = 1;
        agent.mgmt_class = MgmtClass::SUBN_ADM.0;
        agent.mgmt_class_version = 2;
        agent.rmpp_version = 1;
        agent.method_mask[0].set(methods.iter().fold(0, |mask, method| mask | 1 << method.0));
        assert_eq!(program.operation(Operation::RegisterAgent, agent.as_bytes()).errno, 0);
        program
    }

    fn operation(&self, operation: Operation, payload: &[u8]) -> Reply {
        let (socket, _) = connect_to(&self.path, false, SocketFlags::CLOEXEC).unwrap();
        ask(socket.as_fd(), &Request::Operation { operation, session: &self.session, payload }).unwrap()
    }

    /// Writes as the preload library does.
    fn write(&self, bytes: &[u8]) {
        let length = bytes.len() as u32;
        if bytes.len() <= HEADER_LEN + MAD_LEN {
            program::write(self.socket.as_fd(), &self.rings, bytes).unwrap();
        } else if bytes.len() + Frame::LEN <= MAX_PACKET {
            let prefix = Frame { kind: FrameKind::Whole, length }.encode();
            let parts = [IoSlice::new(&prefix), IoSlice::new(bytes)];
            program::send_all(self.socket.as_fd(), &parts, None).unwrap();
        } else {
            let prefix = Frame { kind: FrameKind::InFile, length }.encode();
            let file = memory_file(&[bytes]).unwrap();
            let parts = [IoSlice::new(&prefix), IoSlice::new(&bytes[..HEADER_LEN + MAD_LEN])];
            program::send_all(self.socket.as_fd(), &parts, Some(file.as_fd())).unwrap();
        }
    }

    fn is_readable(&self, wait: bool) -> bool {
        let timeout = (!wait).then(Timespec::default);
        let mut set = [PollFd::new(&self.socket, PollFlags::IN)];
        rustix::io::retry_on_intr(|| poll(&mut set, timeout.as_ref())).unwrap();
        let flags = set[0].revents();
        assert!(!flags.intersects(PollFlags::HUP | PollFlags::ERR), "LID {} was cut off", self.lid);
        flags.contains(PollFlags::IN)
    }

    fn read(&self, buffer: &mut [u8]) -> Result<usize, Errno> {
        program::read(self.socket.as_fd(), &self.rings, buffer, OLD_HEADER_LEN)
    }
}

/// A message for a LID: what a program writes.
fn message(to: u16, method: Method, number: u32, length: usize) -> Vec<u8> {
    let mut header = Header::zeroed();
    header.lid.set(to);
    header.qpn.set(1);
    let mut mad = Mad::zeroed();
    mad.header.base_version = 1;
    mad.header.mgmt_class = MgmtClass::SUBN_ADM.0;
    mad.header.class_version = 2;
    mad.header.method = method.0;
    mad.header.transaction_id.set(number.into());
    mad.body[2] = if length > MAD_LEN { RmppHeader::FLAG_ACTIVE } else { 0 };
    let mut bytes = header.as_bytes()[..OLD_HEADER_LEN].to_vec();
    bytes.extend_from_slice(&mad.bytes()[..DATA]);
    bytes.extend((DATA..length).map(|at| content(number, at)));
    bytes
}

fn content(number: u32, at: usize) -> u8 {
    (number as usize * 31 + at + at / 251) as u8
}

/// The number of a message that a program has read, which is as it was written.
fn number_of(message: &[u8]) -> u32 {
    let mad = &message[OLD_HEADER_LEN..];
    let number = u32::from_be_bytes(mad[12..16].try_into().unwrap());
    let spoilt = (DATA..mad.len()).find(|at| mad[*at] != content(number, *at));
    assert_eq!(spoilt, None, "message {number} of {} bytes", mad.len());
    number
}

/// Sends messages of all lengths to a program that reads with pauses, while other threads of it write and ask; with sockets
/// of the emulator that hold `socket_bytes`.
fn play(seed: u64, socket_bytes: Option<usize>) {
    const MESSAGES: u32 = 4000;
    let directory = tempfile::tempdir().unwrap();
    let fabric = generate(&Topology::tree(2, 1, 2), &Options::default()).unwrap();
    let world = EmulatedFabric::new(World::new(&fabric, Config::instant()));
    let lid = |name: &str| world.find(name).unwrap().0 as u16;
    let (here, there) = (lid("H0"), lid("H1"));
    let backend = Box::new(Wire { world, arrived: VecDeque::new() });
    let mut server = Server::bind(directory.path(), backend, Presentation::default()).unwrap();
    let handle = server.handle();
    let thread = std::thread::spawn(move || {
        let mut pace = Pace::new();
        while !server.stopping {
            server.round(&mut pace).unwrap();
            for connection in server.connections.values() {
                if let Some(bytes) = socket_bytes {
                    sockopt::set_socket_send_buffer_size(&connection.socket, bytes).unwrap();
                }
            }
        }
    });
    let path = directory.path().join(SOCKET_NAME);
    let slow = Program::start(path.clone(), "H0", here, &[Method::GET_MULTI, Method::GET_TABLE]);
    let fast = Program::start(path, "H1", there, &[]);
    let random = |part: u64| rand_pcg::Pcg64Mcg::seed_from_u64(seed << 8 | part);
    let read = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = random(1);
            for number in 0..MESSAGES {
                let length = match random.random_range(0..20) {
                    0..12 => MAD_LEN,
                    12..17 => random.random_range(MAD_LEN + 1..14_000),
                    _ => random.random_range(14_000..60_000),
                };
                let method = if length > MAD_LEN { Method::GET_MULTI } else { Method::GET_TABLE };
                fast.write(&message(here, method, number, length));
            }
        });
        // Requests that nobody answers: what matters is that they pass beside what comes.
        scope.spawn(|| {
            for number in 0..MESSAGES {
                slow.write(&message(there, Method::GET_TABLE, number, MAD_LEN));
            }
        });
        scope.spawn(|| {
            for number in 0..MESSAGES / 4 {
                let bytes = message(there, Method::GET_TABLE, MESSAGES + number, MAD_LEN);
                assert_eq!(slow.operation(Operation::Write, &bytes).errno, 0);
            }
        });
        let mut random = random(2);
        let mut buffer = vec![0; 1 << 16];
        let mut read = BTreeSet::new();
        std::thread::sleep(Duration::from_millis(random.random_range(0..300)));
        while read.len() < MESSAGES as usize {
            if random.random_ratio(1, 100) {
                std::thread::sleep(Duration::from_micros(random.random_range(0..20_000)));
            }
            assert!(slow.is_readable(true));
            let length = slow.read(&mut buffer).expect("a descriptor that is readable has something to read");
            assert!(read.insert(number_of(&buffer[..length])), "twice");
        }
        read
    });
    assert!(read.into_iter().eq(0..MESSAGES));
    assert!(!slow.is_readable(false));
    assert_eq!(slow.read(&mut [0; 400]), Err(Errno::AGAIN));
    let attached = handle.command("Attached").unwrap();
    assert_eq!(attached.matches("0 queued, 0 lost").count(), 2, "{attached}");
    handle.stop();
    thread.join().unwrap();
}

/// The timing is the machine's, so that each run is another one in any case.
fn seed() -> u64 {
    let seed = std::env::var("RSM_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(17);
    println!("RSM_SEED={seed}");
    seed
}

#[test]
fn a_slow_program_gets_everything_beside_what_it_writes_and_asks() {
    for round in 0..3 {
        let seed = seed() + round;
        play(seed, None);
    }
}

/// Sockets in which a message of some kilobytes leaves no room, for the token neither.
#[test]
fn a_socket_that_is_full_delays_its_program_and_does_not_cut_it_off() {
    for round in 0..3 {
        let seed = seed() + round;
        play(seed, Some(if round == 0 { 1 } else { 16_384 << round }));
    }
}
