use std::fs;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use mad::types::DirectedPath;
use mad::wire::smp::{NodeInfo, PortInfo, Smp};
use mad::wire::{Attribute, Method, MgmtClass};
use rsm_preload_protocol::ring::{Rings, SLOTS};
use rsm_preload_protocol::socket::{ask, ask_for_file, connect_to, memory_file, receive, send};
use rsm_preload_protocol::umad::{HEADER_LEN, Header, OLD_HEADER_LEN, RegisterAgent};
use rsm_preload_protocol::{DeviceKind, Frame, FrameKind, Operation, Reply, Request, SOCKET_NAME};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketFlags};
use tempfile::TempDir;
use zerocopy::IntoBytes;

use crate::emulate::fabric::EmulatedFabric;
use crate::emulate::run::Emulation;
use crate::generate::{Options, Topology, generate};
use crate::world::{Config, World};

/// An emulator of a small tree: hosts H0 to H3, switches S1_0, S1_1 and two above.
pub(super) struct Bench {
    pub(super) emulation: Emulation,
    directory: TempDir,
}

/// An opened umad descriptor without the preload library.
pub(super) struct Client {
    pub(super) socket: OwnedFd,
    session: String,
    path: PathBuf,
}

impl Bench {
    pub(super) fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let fabric = generate(&Topology::tree(2, 1, 2), &Options::default()).unwrap();
        let backend = EmulatedFabric::new(World::new(&fabric, Config::instant()));
        let emulation = Emulation::start(directory.path(), Box::new(backend)).unwrap();
        Self { emulation, directory }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join(SOCKET_NAME)
    }

    pub(super) fn connect(&self) -> OwnedFd {
        connect_to(&self.path(), false, SocketFlags::CLOEXEC).unwrap().0
    }

    fn open(&self, kind: DeviceKind, node: &str, nonblocking: bool) -> (Client, Reply) {
        let (socket, session) = connect_to(&self.path(), true, SocketFlags::CLOEXEC).unwrap();
        let reply = ask(socket.as_fd(), &Request::Open { kind, number: 0, nonblocking, node }).unwrap();
        (Client { socket, session, path: self.path() }, reply)
    }

    /// A descriptor on H0 with one agent for directed-route SMPs.
    pub(super) fn client(&self) -> Client {
        let (client, reply) = self.open(DeviceKind::Umad, "H0", false);
        assert_eq!(reply, Reply::ok([1]));
        assert_eq!(client.register(MgmtClass::SUBN_DR, 0).errno, 0);
        client
    }

    /// A file of H0's tree, which is brought up to date first.
    fn sysfs(&self, file: &str) -> String {
        let reply = ask(self.connect().as_fd(), &Request::Refresh { node: "H0" }).unwrap();
        let root = PathBuf::from(String::from_utf8(reply.payload).unwrap());
        fs::read_to_string(root.join(file)).unwrap()
    }
}

impl Client {
    pub(super) fn operation(&self, operation: Operation, payload: &[u8]) -> Reply {
        let (socket, _) = connect_to(&self.path, false, SocketFlags::CLOEXEC).unwrap();
        ask(socket.as_fd(), &Request::Operation { operation, session: &self.session, payload }).unwrap()
    }

    /// The client's rings.
    pub(super) fn rings(&self) -> Rings {
        let (socket, _) = connect_to(&self.path, false, SocketFlags::CLOEXEC).unwrap();
        let request =
            Request::Operation { operation: Operation::Rings, session: &self.session, payload: &[] };
        let (reply, file) = ask_for_file(socket.as_fd(), &request).unwrap();
        assert_eq!(reply.errno, 0);
        Rings::open(&file.unwrap()).unwrap()
    }

    fn register(&self, class: MgmtClass, methods: u64) -> Reply {
        let mut request: RegisterAgent = zerocopy::FromZeros::new_zeroed();
        request.mgmt_class = class.0;
        request.mgmt_class_version = 1;
        request.method_mask[0].set(methods);
        self.operation(Operation::RegisterAgent, request.as_bytes())
    }

    /// A directed NodeInfo request to H0's switch, as a program writes it.
    pub(super) fn request(tid: u64) -> Vec<u8> {
        let mut smp = Smp::directed(Method::GET, NodeInfo::ID, 0, &DirectedPath::new(&[1]).unwrap());
        smp.header.transaction_id.set(tid);
        let mut header = Header::zeroed();
        header.timeout_ms.set(10_000);
        header.lid.set(0xffff);
        let mut bytes = header.as_bytes()[..OLD_HEADER_LEN].to_vec();
        bytes.extend_from_slice(smp.into_mad().bytes());
        bytes
    }

    pub(super) fn send(&self, bytes: &[u8], flags: SendFlags) -> Result<(), Errno> {
        let prefix = Frame { kind: FrameKind::Whole, length: bytes.len() as u32 }.encode();
        send(self.socket.as_fd(), &[IoSlice::new(&prefix), IoSlice::new(bytes)], None, flags)
    }

    /// The lower half of the next answer's transaction ID; waits for it.
    fn answer(&self) -> Option<u32> {
        let mut packet = [0; Frame::LEN + HEADER_LEN + 256];
        let parts = &mut [IoSliceMut::new(&mut packet)];
        let (length, _) = receive(self.socket.as_fd(), parts, RecvFlags::empty()).ok()?;
        let tid = Frame::LEN + OLD_HEADER_LEN + 12;
        (length > 0).then(|| u32::from_be_bytes(packet[tid..tid + 4].try_into().unwrap()))
    }

    /// Whether a request is answered.
    pub(super) fn works(&self, tid: u32) -> bool {
        self.send(&Self::request(tid.into()), SendFlags::empty()).unwrap();
        self.answer() == Some(tid)
    }
}

#[test]
fn clients_that_send_rubbish_are_cut_off_and_others_are_not_disturbed() {
    let bench = Bench::start();
    let good = bench.client();
    let cut_off = |socket: &OwnedFd| {
        let mut byte = [0; 1];
        let parts = &mut [IoSliceMut::new(&mut byte)];
        matches!(receive(socket.as_fd(), parts, RecvFlags::empty()), Ok((0, _)) | Err(_))
    };
    for first in [&b"GET / HTTP/1.1"[..], &[0xff; 4000], b"rsm1", &[0; 12]] {
        let socket = bench.connect();
        send(socket.as_fd(), &[IoSlice::new(first)], None, SendFlags::empty()).unwrap();
        assert!(cut_off(&socket), "{first:?}");
        assert!(good.works(1));
    }
    let wrong_length = Frame { kind: FrameKind::Whole, length: 5000 }.encode();
    for frame in [&b"xx"[..], &[0; 8], &wrong_length, &[7; 400]] {
        let bad = bench.client();
        send(bad.socket.as_fd(), &[IoSlice::new(frame)], None, SendFlags::empty()).unwrap();
        assert!(cut_off(&bad.socket), "{frame:?}");
        assert!(good.works(2));
    }
    // A file that its owner could still cut short, one shorter than promised, and one longer than anybody may send.
    let open = memfd_create("open", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    let short = memory_file(&[&[0; 100]]).unwrap();
    for (file, length) in [(&open, 0), (&short, 101), (&short, u32::MAX)] {
        let bad = bench.client();
        let prefix = Frame { kind: FrameKind::InFile, length }.encode();
        send(bad.socket.as_fd(), &[IoSlice::new(&prefix)], Some(file.as_fd()), SendFlags::empty()).unwrap();
        assert!(cut_off(&bad.socket), "{length}");
        assert!(good.works(3));
    }
}

/// A client fills the memory that it shares with the emulator with rubbish: packets, flags, positions. Where the positions are
/// such that no honest writer can have left them, it is cut off; rubbish packets are refused one by one.
#[test]
fn who_spoils_shared_memory_is_cut_off_and_others_are_not_disturbed() {
    /// Words of the first ring: how many packets were taken, how many written (`rsm_preload_protocol::ring`).
    const POSITIONS: [u64; 2] = [0, 8];
    let bench = Bench::start();
    let good = bench.client();
    let positions = [(0, 1025), (1, 0), (u64::MAX, 1024), (7, u64::MAX - 7), (0, 1024), (5, 5)];
    for (round, (taken, written)) in (1_u64..).zip(positions) {
        let bad = bench.client();
        let request = Request::Operation { operation: Operation::Rings, session: &bad.session, payload: &[] };
        let (reply, file) = ask_for_file(bench.connect().as_fd(), &request).unwrap();
        assert_eq!(reply.errno, 0);
        let file = fs::File::from(file.unwrap());
        let words = file.metadata().unwrap().len() / 8;
        let mut rubbish: Vec<u64> = (0..words).map(|word| word.wrapping_mul(round << 7)).collect();
        rubbish[POSITIONS[0] as usize] = taken;
        rubbish[POSITIONS[1] as usize] = written;
        let rubbish: Vec<u8> = rubbish.into_iter().flat_map(u64::to_ne_bytes).collect();
        file.write_all_at(&rubbish, 0).unwrap();
        assert!(file.set_len(4096).is_err(), "nobody can take the memory away");
        // Who is cut off may be so before it rings the bell.
        let _ = bad.send(&Client::request(1), SendFlags::empty());
        assert!(good.works(round as u32));
        if written.wrapping_sub(taken) > SLOTS {
            while bad.answer().is_some() {}
        }
        assert!(good.works(round as u32), "after {taken}, {written}");
    }
    assert!(good.works(99));
    assert_eq!(bench.emulation.handle().command("Attached").unwrap().lines().count(), 1, "who left is gone");
}

/// Who asks something about a descriptor makes the emulator read what that descriptor has written. It read into the buffer
/// that held the question already, so into none, and took the packet of no bytes for the end of the connection.
#[test]
fn a_question_about_a_descriptor_finds_what_that_has_written() {
    let bench = Bench::start();
    let client = bench.client();
    let asking = bench.connect();
    // Both answers say that the connection that asks is known.
    assert!(client.works(1) && client.works(2));
    // While the emulator stands still, the question comes, and the packet after it.
    bench.emulation.handle().command("Wait 1").unwrap();
    let question = Request::Operation { operation: Operation::State, session: &client.session, payload: &[] };
    send(asking.as_fd(), &[IoSlice::new(&question.encode())], None, SendFlags::empty()).unwrap();
    client.send(&Client::request(3), SendFlags::empty()).unwrap();
    let mut reply = [0; 64];
    let (length, _) =
        receive(asking.as_fd(), &mut [IoSliceMut::new(&mut reply)], RecvFlags::empty()).unwrap();
    assert_eq!(Reply::decode(&reply[..length]), Some(Reply::ok([0])));
    assert_eq!(client.answer(), Some(3));
    assert!(client.works(4));
}

/// A bell can come while a program takes the last packet and has not yet taken its token: another token would lie there with
/// nothing to read, and a read of a descriptor that is readable would wait.
#[test]
fn a_bell_brings_no_token_that_is_not_missing() {
    let bench = Bench::start();
    let (client, other) = (bench.client(), bench.client());
    let rings = client.rings();
    let ring = rings.to_program();
    client.send(&Client::request(1), SendFlags::empty()).unwrap();
    while !ring.flag() {
        std::thread::yield_now();
    }
    assert!(ring.len() == 1 && ring.set_flag(false));
    let bell = Frame { kind: FrameKind::Bell, length: 0 }.encode();
    let ring_bell = || send(client.socket.as_fd(), &[IoSlice::new(&bell)], None, SendFlags::empty()).unwrap();
    let is_heard = || other.works(1) && other.works(2);
    ring_bell();
    assert!(is_heard() && !ring.flag());
    // The program took the token with a packet that lay behind it.
    ring.miss_token();
    ring_bell();
    assert!(is_heard() && ring.flag());
    ring.pop();
    ring.miss_token();
    ring_bell();
    assert!(is_heard() && !ring.flag(), "nothing waits");
    let mut tokens = 0;
    let mut token = [0; Frame::LEN];
    while receive(client.socket.as_fd(), &mut [IoSliceMut::new(&mut token)], RecvFlags::DONTWAIT).is_ok() {
        tokens += 1;
    }
    assert_eq!(tokens, 2);
}

#[test]
fn who_leaves_half_way_leaves_nothing_behind() {
    let bench = Bench::start();
    let good = bench.client();
    for tid in 0..200 {
        drop(bench.connect());
        let leaver = bench.client();
        assert_eq!(leaver.register(MgmtClass::SUBN_LID, 1 << Method::TRAP.0).errno, 0, "round {tid}");
        leaver.send(&Client::request(tid), SendFlags::empty()).unwrap();
        let session = leaver.session.clone();
        drop(leaver);
        // The emulator sees the end before it takes the next request; the class is free again.
        assert!(good.works(tid as u32));
        let gone = ask(
            bench.connect().as_fd(),
            &Request::Operation { operation: Operation::State, session: &session, payload: &[] },
        );
        assert_eq!(gone.unwrap(), Reply::error(Errno::BADF.raw_os_error()));
    }
    assert_eq!(bench.emulation.handle().command("Attached").unwrap().lines().count(), 1);
}

#[test]
fn a_client_that_floods_and_never_reads_does_not_stop_the_others() {
    let bench = Bench::start();
    let (flooder, good) = (bench.client(), bench.client());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for tid in 0..20_000 {
                flooder.send(&Client::request(tid), SendFlags::empty()).unwrap();
            }
        });
        for tid in 0..200 {
            assert!(good.works(tid));
        }
    });
    let answered = (0..20_000).filter(|tid| flooder.answer() == Some(*tid)).count();
    assert_eq!(answered, 20_000, "nothing is lost, and the order is kept");
}

#[test]
fn hundreds_of_clients_are_served_at_once() {
    let bench = Bench::start();
    let clients: Vec<_> = (0..300).map(|_| bench.client()).collect();
    for (tid, client) in clients.iter().enumerate() {
        client.send(&Client::request(tid as u64), SendFlags::empty()).unwrap();
    }
    for (tid, client) in clients.iter().enumerate().rev() {
        assert_eq!(client.answer(), Some(tid as u32));
    }
}

#[test]
fn a_write_with_an_answer_tells_the_kernels_error_numbers() {
    let bench = Bench::start();
    let client = bench.client();
    let write = |bytes: &[u8]| Errno::from_raw_os_error(client.operation(Operation::Write, bytes).errno);
    let mut request = Client::request(7);
    assert_eq!(client.operation(Operation::Write, &request).errno, 0);
    assert_eq!(client.answer(), Some(7));
    request[0] = 5;
    assert_eq!(write(&request), Errno::IO);
    request[0] = 40;
    assert_eq!(write(&request), Errno::INVAL);
    assert_eq!(write(&request[..60]), Errno::INVAL);
    assert_eq!(client.operation(Operation::EnablePkey, &[]).errno, Errno::INVAL.raw_os_error());
    assert_eq!(client.operation(Operation::UnregisterAgent, &9_u32.to_ne_bytes()).errno, 22);
}

/// B79: what newer libibumad looks for is there, and it is alive.
#[test]
fn b79_sysfs_is_complete_and_follows_the_fabric() {
    let bench = Bench::start();
    let port = |file: &str| bench.sysfs(&format!("sys/class/infiniband/rsm0/ports/1/{file}"));
    assert_eq!(port("state"), "2: INIT\n");
    assert_eq!(port("phys_state"), "5: LinkUp\n");
    assert_eq!(port("rate"), "100 Gb/sec (4X EDR)\n");
    assert_eq!(port("link_layer"), "InfiniBand\n");
    assert_eq!(port("lid"), "0x0\n");
    assert_eq!(port("pkeys/0"), "0xffff\n");
    assert!(port("gids/0").starts_with("fe80:0000:0000:0000:"));
    for file in ["lid_mask_count", "sm_lid", "sm_sl", "cap_mask", "gids/1", "pkeys/1"] {
        assert!(port(file).ends_with('\n'), "{file}");
    }
    for file in
        ["node_type", "node_guid", "sys_image_guid", "fw_ver", "hw_rev", "hca_type", "board_id", "node_desc"]
    {
        assert!(!bench.sysfs(&format!("sys/class/infiniband/rsm0/{file}")).trim().is_empty(), "{file}");
    }
    assert_eq!(bench.sysfs("sys/class/infiniband_mad/abi_version"), "5\n");
    assert_eq!(bench.sysfs("sys/class/infiniband_mad/umad0/ibdev"), "rsm0\n");
    assert_eq!(bench.sysfs("sys/class/infiniband_mad/issm0/port"), "1\n");
    let handle = bench.emulation.handle();
    assert_eq!(handle.command("Baselid H0 17 2"), Ok(String::new()));
    assert_eq!((port("lid"), port("lid_mask_count")), ("0x11\n".into(), "2\n".into()));
    assert_eq!(handle.command("Unlink H0[1]"), Ok(String::new()));
    assert_eq!(port("state"), "1: DOWN\n");
    assert_eq!(handle.command("Description H0 \"other name\""), Ok(String::new()));
}

#[test]
fn issm_sets_is_sm_for_one_holder_at_a_time() {
    let bench = Bench::start();
    let is_sm = || {
        let text = bench.sysfs("sys/class/infiniband/rsm0/ports/1/cap_mask");
        let mask = u32::from_str_radix(text.trim().trim_start_matches("0x"), 16).unwrap();
        mask & PortInfo::CAP_IS_SM != 0
    };
    assert!(!is_sm());
    let (holder, reply) = bench.open(DeviceKind::Issm, "H0", true);
    assert_eq!(reply.errno, 0);
    assert!(is_sm());
    let (_, busy) = bench.open(DeviceKind::Issm, "H0", true);
    assert_eq!(busy.errno, Errno::AGAIN.raw_os_error());
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| bench.open(DeviceKind::Issm, "H0", false));
        // Whether the waiter has asked already or asks later, it gets the device when the holder leaves.
        drop(holder);
        let (next, reply) = waiter.join().unwrap();
        assert_eq!(reply.errno, 0);
        assert!(is_sm());
        drop(next);
    });
    assert!(!is_sm());
}

#[test]
fn nodes_and_devices_that_are_not_there_are_refused() {
    let bench = Bench::start();
    let open = |node: &str, number: u32| {
        let (socket, _) = connect_to(&bench.path(), true, SocketFlags::CLOEXEC).unwrap();
        let request = Request::Open { kind: DeviceKind::Umad, number, nonblocking: false, node };
        ask(socket.as_fd(), &request).unwrap().errno
    };
    assert_eq!(open("nobody", 0), Errno::NODEV.raw_os_error());
    assert_eq!(open("H0", 1), Errno::NXIO.raw_os_error());
    assert_eq!(open("H0,H1", 1), 0, "the second node's port");
    let (_, switch) = bench.open(DeviceKind::Umad, "S1_0", false);
    assert_eq!(switch, Reply::ok([0]), "a switch has its port 0");
}

#[test]
fn a_deserted_socket_is_replaced_and_one_in_use_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(SOCKET_NAME);
    let fabric = generate(&Topology::tree(2, 1, 2), &Options::default()).unwrap();
    let start = || {
        let backend = EmulatedFabric::new(World::new(&fabric, Config::instant()));
        Emulation::start(directory.path(), Box::new(backend))
    };
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let first = start().unwrap();
    assert!(start().is_err_and(|error| error.to_string().contains("in use")));
    drop(first);
    assert!(!path.exists());
}

#[test]
fn console_commands_change_the_fabric_or_say_what_is_wrong() {
    let bench = Bench::start();
    let say = |line: &str| bench.emulation.handle().command(line);
    assert!(say("Dump \"S1_0\"").unwrap().contains("\"H0\"[1]"));
    assert_eq!(say("Unlink S1_0[1]"), Ok(String::new()));
    assert!(say("Unlink S1_0[1]").unwrap_err().contains("no cable"));
    assert!(!say("Dump \"S1_0\"").unwrap().contains("\"H0\"[1]"));
    assert_eq!(say("ReLink S1_0[1]"), Ok(String::new()));
    assert!(say("Dump S1_0").unwrap().contains("\"H0\"[1]"));
    assert!(say("Link S1_0[1] S1_1[1]").unwrap_err().contains("has a cable already"));
    assert!(say("Unlink S1_0[77]").unwrap_err().contains("ports 1 to"));
    assert!(say("Unlink nobody").unwrap_err().contains("no node"));
    assert!(say("Route H0 H1").unwrap_err().contains("no LID"));
    assert!(say("Help").unwrap().contains("Unlink"));
    assert!(say("sing").unwrap_err().contains("unknown command"));
    assert_eq!(say("Error S1_0[1] 100%"), Ok(String::new()));
    let client = bench.client();
    client.send(&Client::request(1), SendFlags::empty()).unwrap();
    assert_eq!(say("Error S1_0[1] 0%"), Ok(String::new()));
    assert!(client.works(2), "the first request was lost, the second one is answered");
    let script = bench.directory.path().join("script");
    fs::write(&script, "# faults\nUnlink S1_0\nUnlink nobody\n").unwrap();
    let error = say(&format!("!{}", script.display())).unwrap_err();
    assert!(error.contains(":3: no node"), "{error}");
    assert_eq!(say("Quit"), Ok(String::new()));
    bench.emulation.wait().unwrap();
}
