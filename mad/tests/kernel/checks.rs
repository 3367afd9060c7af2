//! What is checked inside the machine.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use mad::transactions::{Outcome, Request, TransactionConfig, Transactions};
use mad::transport::umad::{
    AgentSpec, Device, IsSm, LinkLayer, OpenError, OpenOptions, PortSelector, Registration, SelectError,
    Selected, UmadTransport, devices, select,
};
use mad::transport::{Address, Datagram, GlobalRoute, Received, Transport};
use mad::types::{Gid, PortNum, ServiceLevel, Timestamp};
use mad::wire::{Mad, Method, MgmtClass, Status};

const LONG: Duration = Duration::from_secs(60);

pub(crate) fn all() {
    let devices = devices().unwrap();
    soft_roce_is_listed_and_refused(&devices);
    as_an_ordinary_user();
    let port = Selected { port: devices[0].ports[0].clone(), siblings: Vec::new(), skipped: Vec::new() };
    for registration in [Registration::Agent2, Registration::Agent, Registration::Newest] {
        a_request_to_ourselves_is_answered(&port, registration);
        a_class_that_another_program_serves_is_held(&port, registration);
        queue_pair_0_is_refused(&port, registration);
    }
    the_kernel_answers_what_nobody_serves(&port);
    a_request_without_answer_comes_back_in_its_time(&port);
    an_id_that_the_kernel_holds_is_refused(&port);
    the_engine_repeats_when_the_kernel_gives_up(&port);
    a_wake_up_ends_a_wait(&port);
    the_sm_flag_has_one_holder(&port);
    #[cfg(feature = "verbs")]
    verbs_and_sysfs_agree(&devices);
}

#[cfg(feature = "verbs")]
fn verbs_and_sysfs_agree(devices: &[Device]) {
    let listing = mad::verbs::devices();
    assert_eq!(listing.why_none, None);
    assert_eq!(listing.devices.len(), devices.len());
    for (verbs, sysfs) in listing.devices.iter().zip(devices) {
        assert_eq!((&verbs.name, Some(verbs.node_guid)), (&sysfs.name, sysfs.node_guid));
        let attributes = verbs.attributes.as_ref().unwrap();
        let [Ok(port)] = attributes.ports.as_slice() else { panic!("{attributes:?}") };
        assert_eq!((port.number, port.state), (PortNum(1), sysfs.ports[0].state));
        assert_eq!(port.phys_state, sysfs.ports[0].phys_state);
        assert_eq!((port.active_mtu, port.max_mtu), (Some(1024), Some(4096)), "of an Ethernet MTU of 1500");
        assert!(attributes.max_qp > 0 && attributes.max_mr_size > 0 && attributes.max_pkeys > 0);
    }
}

/// B13: RoCE ports are no candidates.
fn soft_roce_is_listed_and_refused(devices: &[Device]) {
    let names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
    assert_eq!(names, ["rxe0", "rxe1"]);
    let port = &devices[1].ports[0];
    assert_eq!((port.number, &port.link_layer), (PortNum(1), &LinkLayer::Ethernet));
    assert_eq!(port.umad.as_deref(), Some("/dev/infiniband/umad1"));
    assert_eq!(port.issm.as_deref(), Some("/dev/infiniband/issm1"));
    let Err(SelectError::NoUsablePort(skipped)) = select(devices, &PortSelector::default()) else {
        panic!("an Ethernet port was taken")
    };
    assert_eq!(skipped.len(), 2);
    let named = PortSelector { device: Some("rxe0".into()), ..PortSelector::default() };
    let error = select(devices, &named).unwrap_err().to_string();
    assert!(error.contains("Ethernet"), "{error}");
}

/// Starts the test once more as user nobody.
fn as_an_ordinary_user() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "umad_on_a_real_kernel", "--nocapture", "--test-threads=1"])
        .env("RSM_TEST_IN_VM", "nobody")
        .uid(65534)
        .gid(65534)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

pub(crate) fn an_ordinary_user_is_told() {
    let port = devices().unwrap()[0].ports[0].clone();
    let selected = Selected { port: port.clone(), siblings: Vec::new(), skipped: Vec::new() };
    let error = UmadTransport::open(&selected, &OpenOptions::client()).unwrap_err();
    assert!(matches!(error, OpenError::Permission { .. }), "{error}");
    assert!(error.to_string().contains("run as root"), "{error}");
    assert!(matches!(IsSm::set(&port), Err(OpenError::Permission { .. })));
}

fn open(port: &Selected, agents: Vec<AgentSpec>, registration: Registration) -> UmadTransport {
    UmadTransport::open(port, &OpenOptions { agents, registration }).unwrap()
}

fn client(port: &Selected) -> UmadTransport {
    open(port, vec![AgentSpec::client(MgmtClass::SUBN_ADM, true)], Registration::Newest)
}

/// A subnet administration request to our own port.
fn to_ourselves(method: Method, tid: u64) -> Datagram {
    let mut mad = Mad::zeroed();
    mad.header.base_version = 1;
    mad.header.mgmt_class = MgmtClass::SUBN_ADM.0;
    mad.header.class_version = 2;
    mad.header.method = method.0;
    mad.header.attribute_id.set(0x0001);
    mad.header.transaction_id.set(tid);
    mad.body[100] = 0x5a;
    let grh = GlobalRoute {
        gid: Gid(0xfd00_0000_0000_0000_0000_0000_0000_0001),
        gid_index: 1,
        hop_limit: 64,
        traffic_class: 0,
        flow_label: 0,
    };
    Datagram { address: Address { grh: Some(grh), ..Address::gsi(0, ServiceLevel(0)) }, mad }
}

fn receive(transport: &UmadTransport) -> Received {
    let end = Instant::now() + LONG;
    while Instant::now() < end {
        if let Some(received) = transport.receive(LONG).unwrap() {
            return received;
        }
    }
    panic!("nothing came")
}

fn receive_datagram(transport: &UmadTransport) -> Datagram {
    match receive(transport) {
        Received::Datagram(datagram) => datagram,
        Received::Returned { errno, .. } => panic!("came back with error {errno}"),
    }
}

fn a_request_to_ourselves_is_answered(port: &Selected, registration: Registration) {
    let methods = [Method::GET, Method::GET_TABLE];
    let server = open(port, vec![AgentSpec::server(MgmtClass::SUBN_ADM, &methods)], registration);
    let client = open(port, vec![AgentSpec::client(MgmtClass::SUBN_ADM, true)], registration);
    assert!(!client.is_simulator());
    assert_eq!(client.header_len(), 64);
    // An ID each: the kernel lets go of one only after it has handed up the answer.
    for (tid, method) in (0x8000_0001..).zip(methods) {
        client.send(&to_ourselves(method, tid), Some(LONG)).unwrap();
        let request = receive_datagram(&server);
        assert_eq!((request.mad.header.method(), request.mad.body[100]), (method, 0x5a));
        let on_wire = request.mad.header.transaction_id.get();
        assert_eq!(on_wire & 0xffff_ffff, tid, "the lower half is ours");
        assert_ne!(on_wire >> 32, 0, "the upper half is the kernel's");
        let grh = request.address.grh.expect("RoCE always has a global route header");
        assert_eq!(grh.gid, Gid(0xfd00_0000_0000_0000_0000_0000_0000_0001));

        let mut answer = request;
        answer.mad.header.method = method.response().0;
        answer.mad.body[100] = 0xa5;
        server.send(&answer, None).unwrap();
        let answer = receive_datagram(&client);
        assert_eq!(answer.mad.header.method(), method.response());
        assert_eq!((answer.mad.header.transaction_id.get(), answer.mad.body[100]), (on_wire, 0xa5));
    }
}

fn a_class_that_another_program_serves_is_held(port: &Selected, registration: Registration) {
    let agents = vec![AgentSpec::server(MgmtClass::SUBN_ADM, &[Method::GET])];
    let _first = open(port, agents.clone(), registration);
    let error = UmadTransport::open(port, &OpenOptions { agents, registration }).unwrap_err();
    assert!(matches!(error, OpenError::Held { .. }), "{error}");
    // A program that only asks runs beside it.
    open(port, vec![AgentSpec::client(MgmtClass::SUBN_ADM, true)], registration);
}

fn queue_pair_0_is_refused(port: &Selected, registration: Registration) {
    let mut options = OpenOptions { registration, ..OpenOptions::subnet_manager() };
    let error = UmadTransport::open(port, &options).unwrap_err();
    assert!(matches!(error, OpenError::Refused { class: 0x81, .. }), "{error}");
    options.agents.retain(|agent| !agent.is_subnet_management());
    UmadTransport::open(port, &options).unwrap();
}

fn the_kernel_answers_what_nobody_serves(port: &Selected) {
    let client = client(port);
    client.send(&to_ourselves(Method::GET, 7), Some(LONG)).unwrap();
    let answer = receive_datagram(&client).mad.header;
    assert_eq!(
        (answer.method(), answer.status()),
        (Method::GET_RESP, Status::METHOD_ATTRIBUTE_NOT_SUPPORTED)
    );
}

/// Serves GetTable and never answers.
fn silent_server(port: &Selected) -> UmadTransport {
    open(port, vec![AgentSpec::server(MgmtClass::SUBN_ADM, &[Method::GET_TABLE])], Registration::Newest)
}

fn a_request_without_answer_comes_back_in_its_time(port: &Selected) {
    let (_silent, client) = (silent_server(port), client(port));
    client.send(&to_ourselves(Method::GET_TABLE, 9), Some(Duration::from_millis(1))).unwrap();
    let Received::Returned { request, errno } = receive(&client) else { panic!("an answer") };
    assert_eq!(errno, libc::ETIMEDOUT);
    assert_eq!(request.mad.header.transaction_id.get() as u32, 9);
    assert_eq!(request.mad.header.method(), Method::GET_TABLE);
}

/// Why repetitions wait for the kernel's time-out and the engine takes EINVAL for one as "still held".
fn an_id_that_the_kernel_holds_is_refused(port: &Selected) {
    let (_silent, client) = (silent_server(port), client(port));
    client.send(&to_ourselves(Method::GET_TABLE, 10), Some(LONG)).unwrap();
    let error = client.send(&to_ourselves(Method::GET_TABLE, 10), Some(LONG)).unwrap_err();
    assert_eq!(error.errno(), libc::EINVAL);
}

fn the_engine_repeats_when_the_kernel_gives_up(port: &Selected) {
    let (silent, client) = (silent_server(port), client(port));
    let config = TransactionConfig {
        timeout: Duration::from_millis(20),
        retries: 2,
        grace: LONG,
        ..TransactionConfig::default()
    };
    let mut engine = Transactions::new(config, 0xffff_fffe);
    for token in 0..4 {
        engine.submit(Request::new(to_ourselves(Method::GET_TABLE, 0), token), token);
    }
    let start = Instant::now();
    let now = || Timestamp::from_start(start.elapsed());
    let mut ended = Vec::new();
    while !engine.is_idle() {
        while let Some((datagram, timeout)) = engine.poll_send(now()) {
            client.send(&datagram, Some(timeout)).unwrap();
        }
        if let Some(received) = client.receive(LONG).unwrap() {
            ended.extend(engine.receive(&received, now()));
        }
    }
    assert!(ended.iter().all(|completion| completion.outcome == Outcome::Timeout), "{ended:?}");
    let stats = engine.stats();
    assert_eq!((stats.sent, stats.retried, stats.timed_out), (12, 8, 4), "{stats:?}");
    for _ in 0..12 {
        receive_datagram(&silent);
    }
}

fn a_wake_up_ends_a_wait(port: &Selected) {
    let client = client(port);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| client.receive(Duration::from_secs(3600)).unwrap());
        client.wake();
        assert_eq!(waiting.join().unwrap(), None);
    });
}

fn the_sm_flag_has_one_holder(port: &Selected) {
    let first = IsSm::set(&port.port).unwrap();
    let error = IsSm::set(&port.port).unwrap_err();
    assert!(matches!(error, OpenError::Held { .. }), "{error}");
    drop(first);
    IsSm::set(&port.port).unwrap();
}
