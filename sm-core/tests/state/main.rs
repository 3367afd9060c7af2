//! What ports registered outlives the manager that they told: over its restart, and in the standby that takes over.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod etcd;
mod server;

use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;
use mad::transport::{Address, Datagram, Received, Transport};
use mad::types::{Guid, NodeType, PortNum, ServiceLevel};
use mad::wire::sa::{SaMad, ServiceRecord};
use mad::wire::{Attribute, Method, MgmtClass, Status};
use routing::fabric::{Fabric, Node, PortRef};
use simulations::memory::{MemoryFabric, PortTransport};
use simulations::world::Config;
use sm_core::daemon::{Control, Hooks, Mirror, Setup, run};
use sm_core::replication::Secret;
use sm_core::sa::ServerConfig;
use sm_core::settings::SmSettings;
use sm_core::store::etcd::EtcdConfig;
use sm_core::store::{Kind, peek_entries};

/// Long enough for anything that is going to happen on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn four_hosts() -> MemoryFabric {
    let mut fabric = Fabric::new();
    let switch = fabric.add_node(Node::new(NodeType::Switch, Guid(0x10), "S0", 4)).unwrap();
    for n in 0..4_u8 {
        let node = Node::new(NodeType::Ca, Guid(0x100 + u64::from(n) * 0x10), format!("H{n}"), 1);
        let host = fabric.add_node(node).unwrap();
        let end = |node, port| PortRef { node, port: PortNum(port) };
        fabric.connect(end(host, 1), end(switch, n + 1)).unwrap();
    }
    MemoryFabric::new(&fabric, Config::default())
}

/// A running manager, and a state directory that outlives it.
struct Manager {
    control: Sender<Control>,
    thread: JoinHandle<()>,
}

/// A manager of this priority, whose other numbers follow from that.
fn setup(
    transport: Arc<PortTransport>,
    priority: u8,
    state: PathBuf,
    mirrors: bool,
    etcd: Option<EtcdConfig>,
) -> Setup {
    let mirror = Mirror {
        secret: Secret::new(b"a secret of some length").unwrap(),
        own: Guid(u64::from(priority)),
        incarnation: u64::from(priority) << 32,
        acknowledge: sm_core::config::Acknowledge::Mirrored,
    };
    Setup {
        transport,
        own: Guid::NONE,
        settings: SmSettings {
            priority,
            polling_interval: Duration::from_millis(50),
            polling_retries: 3,
            ..SmSettings::default()
        },
        state_dir: Some(state),
        state_sync: sm_core::config::StateSync::Grouped,
        reassign: false,
        sa: ServerConfig::default(),
        mirror: mirrors.then_some(mirror),
        etcd,
    }
}

impl Manager {
    fn start(fabric: &MemoryFabric, host: &str, priority: u8, state: PathBuf) -> Self {
        Self::start_with(fabric, host, priority, state, true, None)
    }

    fn start_with(
        fabric: &MemoryFabric,
        host: &str,
        priority: u8,
        state: PathBuf,
        mirrors: bool,
        etcd: Option<EtcdConfig>,
    ) -> Self {
        let (control, controls) = crossbeam_channel::bounded(1);
        let transport = Arc::new(fabric.attach(host, 1).unwrap());
        let held = Arc::clone(&transport);
        let setup = setup(transport, priority, state, mirrors, etcd);
        let (up_in, up) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let is_sm = move |on| {
                held.set_is_sm(on);
                Ok(())
            };
            let report = move |_: &_| {
                let _ = up_in.send(());
            };
            let hooks = Hooks { is_sm: Box::new(is_sm), report: Box::new(report), ..Hooks::default() };
            run(setup, hooks, &controls).unwrap();
        });
        up.recv_timeout(PATIENCE).unwrap();
        Self { control, thread }
    }

    fn stop(self) {
        self.control.send(Control::Stop).unwrap();
        self.thread.join().unwrap();
    }
}

/// A host that asks whoever its port takes for the subnet manager.
struct Host<'a> {
    fabric: &'a MemoryFabric,
    transport: PortTransport,
    tid: u64,
}

impl Host<'_> {
    fn ask(&mut self, method: Method, record: &ServiceRecord) -> Option<(Status, ServiceRecord)> {
        let named = ServiceRecord::SERVICE_ID | ServiceRecord::SERVICE_GID | ServiceRecord::SERVICE_NAME;
        let mask = if method == Method::GET { ServiceRecord::SERVICE_ID } else { named };
        let mut asked = SaMad::request(method, ServiceRecord::ID, mask);
        self.tid += 1;
        asked.header.transaction_id.set(self.tid);
        assert!(record.encode(&mut asked.data));
        let sm = self.fabric.with(|world| {
            let host = world.find_name("H1").unwrap();
            world.device(host).ports[1].info.master_sm_lid.get()
        });
        let address = Address::gsi(sm, ServiceLevel(0));
        self.transport.send(&Datagram { address, mad: asked.into_mad() }, None).unwrap();
        let end = Instant::now() + Duration::from_millis(200);
        while Instant::now() < end {
            let Ok(Some(Received::Datagram(came))) = self.transport.receive(Duration::from_millis(20)) else {
                continue;
            };
            let header = &came.mad.header;
            if header.mgmt_class() == MgmtClass::SUBN_ADM
                && header.transaction_id.get() as u32 == self.tid as u32
            {
                let answer = SaMad::from_mad(came.mad);
                return Some((answer.header.status(), ServiceRecord::decode(&answer.data)?));
            }
        }
        None
    }

    /// Asks until there is an answer.
    fn insist(&mut self, method: Method, record: &ServiceRecord) -> (Status, ServiceRecord) {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(answer) = self.ask(method, record) {
                return answer;
            }
            assert!(Instant::now() < end, "no answer");
        }
    }
}

fn service() -> ServiceRecord {
    let mut record = <ServiceRecord as zerocopy::FromZeros>::new_zeroed();
    record.service_id.set(0x1234);
    record.service_gid.set(0xfe80_0000_0000_0000_0000_0000_0000_0111);
    record.service_name[..4].copy_from_slice(b"name");
    record
}

fn holds_service(state: &Path) -> bool {
    peek_entries(state).is_ok_and(|entries| entries.keys().any(|key| key.kind == Kind::Service))
}

#[test]
fn b48_a_service_outlives_a_restart_and_is_written_when_it_is_acknowledged() {
    let fabric = four_hosts();
    let dir = tempfile::tempdir().unwrap();
    let manager = Manager::start(&fabric, "H0", 5, dir.path().to_path_buf());
    let transport = fabric.attach("H1", 1).unwrap();
    let mut host = Host { fabric: &fabric, transport, tid: 0 };
    assert_eq!(host.insist(Method::SET, &service()).0, Status::OK);
    assert!(holds_service(dir.path()), "acknowledged, so it is written");
    manager.stop();
    let manager = Manager::start(&fabric, "H0", 5, dir.path().to_path_buf());
    let (status, found) = host.insist(Method::GET, &service());
    assert_eq!((status, &found.service_name[..4]), (Status::OK, &b"name"[..]));
    manager.stop();
}

#[test]
fn a_standby_that_takes_over_answers_with_what_the_master_was_told() {
    let fabric = four_hosts();
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let master = Manager::start(&fabric, "H0", 5, first.path().to_path_buf());
    let standby = Manager::start(&fabric, "H3", 3, second.path().to_path_buf());
    let transport = fabric.attach("H1", 1).unwrap();
    let mut host = Host { fabric: &fabric, transport, tid: 0 };
    assert_eq!(host.insist(Method::SET, &service()).0, Status::OK);
    let end = Instant::now() + PATIENCE;
    while !holds_service(second.path()) {
        assert!(Instant::now() < end, "the standby has no copy");
        std::thread::sleep(Duration::from_millis(5));
    }
    master.stop();
    let (status, found) = host.insist(Method::GET, &service());
    assert_eq!((status, &found.service_name[..4]), (Status::OK, &b"name"[..]));
    standby.stop();
}
