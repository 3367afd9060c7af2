use std::time::{Duration, Instant};

use mad::transactions::{Outcome, Request, TransactionConfig, Transactions};
use mad::transport::umad::{IsSm, OpenOptions, PortSelector, UmadTransport, devices, select};
use mad::transport::{Address, Datagram, Transport};
use mad::types::{DirectedPath, Guid, NodeType, Timestamp};
use mad::wire::smp::{NodeInfo, Smp};
use mad::wire::{Attribute, Method, Status};

use crate::ibsim::{Ibsim, is_child};

/// H1 and H2 at S1, S1 joined to S2, H3 at S2.
const NET: &str = r#"
Switch 8 "S1"
[1] "H1"[1] # lid 0 4xEDR
[2] "H2"[1] # lid 0 4xEDR
[8] "S2"[8] # lid 0 4xEDR

Switch 8 "S2"
[1] "H3"[1] # lid 0 4xEDR
[8] "S1"[8] # lid 0 4xEDR

Hca 1 "H1"
[1] "S1"[1] # lid 0 4xEDR

Hca 1 "H2"
[1] "S1"[2] # lid 0 4xEDR

Hca 1 "H3"
[1] "S2"[1] # lid 0 4xEDR
"#;

struct Clock(Instant);

impl Clock {
    fn now(&self) -> Timestamp {
        Timestamp::from_start(self.0.elapsed())
    }
}

fn node_info(path: &[u8]) -> Datagram {
    let path = DirectedPath::new(path).unwrap();
    let mad = Smp::directed(Method::GET, NodeInfo::ID, 0, &path).into_mad();
    Datagram { address: Address::DIRECTED, mad }
}

/// Runs all that was submitted to its end.
fn run<K>(transport: &dyn Transport, engine: &mut Transactions<K>) -> Vec<(K, Outcome)> {
    let clock = Clock(Instant::now());
    let mut ended = Vec::new();
    while !engine.is_idle() {
        while let Some((datagram, timeout)) = engine.poll_send(clock.now()) {
            if let Err(error) = transport.send(&datagram, Some(timeout)) {
                let tid = datagram.mad.header.transaction_id.get() as u32;
                ended.extend(engine.send_failed(tid, error.errno(), clock.now()));
            }
        }
        let wait = engine.deadline().map_or(Duration::ZERO, |deadline| deadline - clock.now());
        if let Some(received) = transport.receive(wait).unwrap() {
            ended.extend(engine.receive(&received, clock.now()));
        }
        ended.extend(engine.expired(clock.now()));
    }
    ended.into_iter().map(|completion| (completion.token, completion.outcome)).collect()
}

fn open(options: &OpenOptions) -> UmadTransport {
    let selected = select(&devices().unwrap(), &PortSelector::default()).unwrap();
    UmadTransport::open(&selected, options).unwrap()
}

fn node_info_of(outcome: &Outcome) -> NodeInfo {
    let Outcome::Reply(mad) = outcome else { panic!("{outcome:?}") };
    assert_eq!(mad.header.status(), Status::OK);
    NodeInfo::decode(&Smp::from_mad(*mad).data).unwrap()
}

/// Runs `work` in a child on node H1 and passes if the child does.
fn on_h1(test: &str, work: impl FnOnce()) {
    if is_child() {
        work();
        return;
    }
    let output = Ibsim::start(NET).run_on("H1", test);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn sysfs_and_node_info_agree_under_the_preload_library() {
    on_h1("umad::sysfs_and_node_info_agree_under_the_preload_library", || {
        let devices = devices().unwrap();
        let [device] = devices.as_slice() else { panic!("{devices:?}") };
        assert_eq!((device.name.as_str(), device.node_type), ("ibsim0", Some(NodeType::Ca)));
        assert_eq!(device.ports[0].umad.as_deref(), Some("/dev/infiniband/umad0"));

        let transport = open(&OpenOptions::subnet_manager());
        assert!(transport.is_simulator());
        assert_eq!(transport.header_len(), 56, "the trap: it stays short whatever ENABLE_PKEY answers");
        let mut engine = Transactions::new(TransactionConfig::default(), 1);
        for path in [&[][..], &[1], &[1, 2], &[1, 8], &[1, 8, 1]] {
            engine.submit(Request::new(node_info(path), 0), path.len());
        }
        let infos: Vec<NodeInfo> =
            run(&transport, &mut engine).iter().map(|(_, outcome)| node_info_of(outcome)).collect();
        assert_eq!(Some(infos[0].node_guid()), device.node_guid);
        assert_eq!(Some(infos[0].port_guid()), device.ports[0].port_guid);
        let types: Vec<_> = infos.iter().map(|info| info.node_type().unwrap()).collect();
        assert_eq!(types, [NodeType::Ca, NodeType::Switch, NodeType::Ca, NodeType::Switch, NodeType::Ca]);
        let mut guids: Vec<Guid> = infos.iter().map(NodeInfo::node_guid).collect();
        guids.sort();
        guids.dedup();
        assert_eq!(guids.len(), 5);
        assert_eq!(infos[3].local_port_num().0, 8);
    });
}

#[test]
fn a_full_window_is_answered_and_a_path_that_leads_nowhere_ends() {
    on_h1("umad::a_full_window_is_answered_and_a_path_that_leads_nowhere_ends", || {
        let transport = open(&OpenOptions::client());
        let config = TransactionConfig {
            window: 256,
            per_destination: 256,
            timeout: Duration::from_millis(500),
            ..TransactionConfig::default()
        };
        let mut engine = Transactions::new(config, 0xffff_ff00);
        for n in 0..2000 {
            engine.submit(Request::new(node_info(&[1, 8]), n % 7), true);
        }
        engine.submit(Request::new(node_info(&[1, 5]), 9), false);
        let ended = run(&transport, &mut engine);
        assert_eq!(ended.len(), 2001);
        for (reachable, outcome) in &ended {
            match reachable {
                true => assert_eq!(node_info_of(outcome).node_type(), Some(NodeType::Switch)),
                false => assert_eq!(*outcome, Outcome::Timeout),
            }
        }
        let stats = engine.stats();
        assert_eq!((stats.answered, stats.timed_out, stats.send_errors), (2000, 1, 0), "{stats:?}");
    });
}

#[test]
fn is_sm_shows_in_the_ports_capabilities_while_it_is_held() {
    on_h1("umad::is_sm_shows_in_the_ports_capabilities_while_it_is_held", || {
        let transport = open(&OpenOptions::subnet_manager());
        let capability = |transport: &UmadTransport| {
            let mad = Smp::directed(Method::GET, 0x0015, 0, &DirectedPath::LOCAL).into_mad();
            let mut engine = Transactions::new(TransactionConfig::default(), 1);
            engine.submit(Request::new(Datagram { address: Address::DIRECTED, mad }, 0), ());
            let ended = run(transport, &mut engine);
            let Outcome::Reply(mad) = ended[0].1 else { panic!("{ended:?}") };
            u32::from_be_bytes(Smp::from_mad(mad).data[20..24].try_into().unwrap())
        };
        const IS_SM: u32 = 1 << 1;
        assert_eq!(capability(&transport) & IS_SM, 0);
        let is_sm = IsSm::set(transport.smi_port()).unwrap();
        assert_eq!(capability(&transport) & IS_SM, IS_SM);
        drop(is_sm);
        assert_eq!(capability(&transport) & IS_SM, 0);
    });
}

#[test]
fn a_wake_up_ends_a_wait_and_an_unregistered_class_is_refused() {
    on_h1("umad::a_wake_up_ends_a_wait_and_an_unregistered_class_is_refused", || {
        let transport = open(&OpenOptions::client());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| transport.receive(Duration::from_secs(3600)).unwrap());
            transport.wake();
            assert_eq!(waiting.join().unwrap(), None);
        });
        let mut datagram = node_info(&[]);
        datagram.mad.header.mgmt_class = 0x07;
        let error = transport.send(&datagram, None).unwrap_err();
        assert_eq!(error.to_string(), "no agent is registered for management class 0x07");
    });
}
