//! The daemon's threads around the state machine, in real time against a simulated fabric in the same process.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use mad::types::{Guid, NodeType, PortNum};
use routing::fabric::{Fabric, Node, PortRef};
use simulations::memory::MemoryFabric;
use simulations::world::Config;
use sm_core::daemon::{Control, Hooks, Setup, run, run_once};
use sm_core::sa::ServerConfig;
use sm_core::settings::SmSettings;
use sm_core::sm::{Report, Role};

/// Long enough for anything that is going to happen on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Two switches with two cables between them and two hosts on each.
fn two_switches() -> Fabric {
    let mut fabric = Fabric::new();
    let mut add =
        |kind, guid, name: &str, ports| fabric.add_node(Node::new(kind, Guid(guid), name, ports)).unwrap();
    let switches = [add(NodeType::Switch, 0x10, "S0", 4), add(NodeType::Switch, 0x20, "S1", 4)];
    let hosts =
        [0x100, 0x110, 0x120, 0x130].map(|guid| add(NodeType::Ca, guid, &format!("H{}", guid >> 4 & 3), 1));
    let end = |node, port| PortRef { node, port: PortNum(port) };
    for (i, host) in hosts.into_iter().enumerate() {
        fabric.connect(end(host, 1), end(switches[i / 2], (i % 2 + 1) as u8)).unwrap();
    }
    for port in [3, 4] {
        fabric.connect(end(switches[0], port), end(switches[1], port)).unwrap();
    }
    fabric
}

fn setup(fabric: &MemoryFabric, state_dir: Option<&Path>) -> (Setup, Hooks<'static>) {
    let transport = Arc::new(fabric.attach("H0", 1).unwrap());
    let setup = Setup {
        transport: Arc::clone(&transport) as Arc<_>,
        own: Guid::NONE,
        settings: SmSettings { sweep_interval: Duration::from_secs(1), ..SmSettings::default() },
        state_dir: state_dir.map(Path::to_path_buf),
        state_sync: sm_core::config::StateSync::Grouped,
        reassign: false,
        sa: ServerConfig::default(),
        mirror: None,
        etcd: None,
    };
    let is_sm = move |on| {
        transport.set_is_sm(on);
        Ok(())
    };
    (setup, Hooks { is_sm: Box::new(is_sm), ..Hooks::default() })
}

#[test]
fn a_fabric_comes_up_once_and_needs_no_set_the_second_time() {
    let fabric = MemoryFabric::new(&two_switches(), Config::default());
    let dir = tempfile::tempdir().unwrap();
    let (first, hooks) = setup(&fabric, Some(dir.path()));
    let report = run_once(first, hooks).unwrap();
    assert!(report.is_complete(), "{:?}", report.failures);
    assert_eq!((report.nodes, report.lids_new, report.role), (6, 6, Role::Master));
    fabric.with(|world| assert!(world.check().is_right(false), "{}", world.check()));
    assert!(dir.path().join("state.redb").exists());

    fabric.reset_stats();
    let (second, hooks) = setup(&fabric, Some(dir.path()));
    let report = run_once(second, hooks).unwrap();
    assert!(report.is_complete(), "{:?}", report.failures);
    assert_eq!((fabric.stats().sets(), report.lids_kept), (0, 6));
}

#[test]
fn b18_a_state_that_can_not_be_written_is_no_reason_to_stop() {
    let fabric = MemoryFabric::new(&two_switches(), Config::default());
    let dir = tempfile::tempdir().unwrap();
    let (mut first, hooks) = setup(&fabric, Some(&dir.path().join("state")));
    // The directory is there at the start and gone when the LIDs are to be written.
    let gone = dir.path().join("state");
    let hooks = Hooks {
        is_sm: Box::new(move |on| {
            if on {
                std::fs::remove_dir_all(&gone).unwrap();
            }
            Ok(())
        }),
        ..hooks
    };
    first.settings.sweep_interval = Duration::ZERO;
    assert!(run_once(first, hooks).unwrap().is_complete());
}

#[test]
fn a_state_directory_that_can_not_be_made_is_named() {
    let fabric = MemoryFabric::new(&two_switches(), Config::default());
    let file = tempfile::NamedTempFile::new().unwrap();
    let (first, hooks) = setup(&fabric, Some(&file.path().join("state")));
    let error = run_once(first, hooks).unwrap_err().to_string();
    assert!(error.contains("state directory") && error.contains(file.path().to_str().unwrap()), "{error}");
}

#[test]
fn changes_are_followed_until_it_is_told_to_stop() {
    let fabric = MemoryFabric::new(&two_switches(), Config::default());
    let (control, controls) = crossbeam_channel::bounded(4);
    let (reports_in, reports) = mpsc::channel::<Report>();
    let of_thread = fabric.clone();
    let thread = std::thread::spawn(move || {
        let (start, hooks) = setup(&of_thread, None);
        let report = Box::new(move |report: &Report| drop(reports_in.send(report.clone())));
        run(start, Hooks { report, ..hooks }, &controls).unwrap();
    });
    let until = |what: &str, done: &dyn Fn(&Report) -> bool| loop {
        let report =
            reports.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{what}: nothing more was reported"));
        if done(&report) {
            return;
        }
    };
    until("bring-up", &|r| r.is_complete() && r.links == 6);
    assert!(fabric.unlink("S0", 3));
    until("a cable pulled", &|r| r.is_complete() && r.links == 5);
    fabric.with(|world| assert!(world.check().is_right(false), "{}", world.check()));
    assert!(fabric.relink("S0", 3));
    until("the cable back", &|r| r.is_complete() && r.links == 6);
    fabric.with(|world| assert!(world.check().is_right(false), "{}", world.check()));
    control.send(Control::Sweep).unwrap();
    until("a sweep on demand", &|r| r.verdict.is_some() && r.nodes == 6);
    control.send(Control::Stop).unwrap();
    thread.join().unwrap();
    let is_sm = fabric.with(|world| {
        let host = world.find_name("H0").unwrap();
        world.device(host).ports[1].info.has_capability(mad::wire::smp::PortInfo::CAP_IS_SM)
    });
    assert!(!is_sm, "cleared at the end");
}
