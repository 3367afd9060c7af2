//! Stock programs on `rsm emulate`: opensm, infiniband-diags, and rsm itself beside them.

use crate::emulator::Emulator;
use crate::fabric::bring_up;
use crate::harness::Harness;
use crate::net::Net;
use crate::program::wait_until;

#[test]
fn opensm_brings_the_fabric_up_with_every_engine() {
    for (net, engine) in [
        ("tree36.net", "minhop"),
        ("tree36.net", "updn"),
        ("tree36.net", "ftree"),
        ("torus4x4.net", "dor"),
        ("torus4x4.net", "lash"),
        ("torus4x4.net", "dfsssp"),
    ] {
        let emulator = Emulator::start(Net::own(net));
        let opensm = emulator.opensm("H0", &["-R", engine]);
        opensm.wait_for("SUBNET UP");
        let log = opensm.log();
        assert!(log.contains(&format!("{engine} tables configured on all switches")), "{engine}: {log}");
        let far = emulator.run("H5", "sminfo", &[]).ok();
        assert!(far.contains("SMINFO_MASTER"), "{engine}: {far}");
        let said = opensm.end();
        assert_eq!(said.code, Some(0), "{engine}: opensm ends in peace: {said:?}");
    }
}

/// Tables of the subnet administrator arrive whole: RMPP in both programs' place.
#[test]
fn saquery_gets_every_record_of_648_hosts() {
    let net = Net::own("tree648.net");
    let nodes = net.nodes.len();
    let emulator = Emulator::start(net.clone());
    let opensm = emulator.opensm("H0", &[]);
    opensm.wait_for("SUBNET UP");
    let count =
        |args: &[&str], record: &str| emulator.run("H300", "saquery", args).ok().matches(record).count();
    assert_eq!(count(&["-N"], "NodeRecord dump"), nodes);
    assert_eq!(count(&["-x"], "LinkRecord dump"), 2 * net.links());
    assert_eq!(count(&["-t", "200000", "-p"], "PathRecord dump"), nodes * nodes);
}

#[test]
fn performance_counters_are_read_set_and_cleared() {
    let mut emulator = Emulator::start(Net::own("two-switches.net"));
    let opensm = emulator.opensm("H0", &[]);
    opensm.wait_until_up(&emulator);
    let symbol_errors = |emulator: &Emulator| {
        let text = emulator.run("H0", "perfquery", &["1", "1"]).ok();
        let line =
            text.lines().find(|line| line.starts_with("SymbolErrorCounter")).expect("a counter").to_owned();
        line.rsplit('.').next().expect("a value").parse::<u32>().expect("a number")
    };
    assert_eq!(symbol_errors(&emulator), 0);
    emulator.type_line("PerformanceSet \"H0\"[1] PortCounters.SymbolErrorCounter=100");
    wait_until("the counter is set", || symbol_errors(&emulator) == 100);
    let errors = emulator.run("H1", "ibqueryerrors", &[]);
    assert!(errors.out.contains("SymbolErrorCounter == 100"), "{errors:?}");
    emulator.run("H1", "perfquery", &["-R", "1", "1"]).ok();
    assert_eq!(symbol_errors(&emulator), 0);
    emulator.run("H1", "perfquery", &["-x", "1", "1"]).ok();
    emulator.type_line("PerformanceSet \"H0\"[1] SymbolErrorCounter=+1000");
    wait_until("the counter grows", || symbol_errors(&emulator) > 100);
    emulator.type_line("PerformanceSet \"H0\"[1] SymbolErrorCounter=+0");
    wait_until("it has come to rest", || symbol_errors(&emulator) == symbol_errors(&emulator));
}

/// The MTU of an adapter's port changes from 2048 to 4096, for which opensm takes the port down ("Sending Link Down … due to
/// op_vls or mtu change" in its log) and a second sweep brings it up. On ibsim, whose ports have 2048 for ever, that never
/// happens. The adapter did as it was told; its switch lost a link. `rsm run` sets the MTU before the link is armed.
#[test]
fn a_link_that_opensm_takes_down_is_counted_by_the_switch_alone_and_rsm_takes_none_down() {
    let links_downed = |emulator: &Emulator, manager: &str| {
        let said = emulator.run("H1", "ibqueryerrors", &[]).out;
        let lines = said.lines().filter(|line| line.contains("LinkDownedCounter") && !line.contains(" ALL"));
        assert!(lines.clone().all(|line| line.contains("== 1 ")), "{manager}: {said}");
        let (switches, hosts): (Vec<_>, Vec<_>) = lines.partition(|line| line.contains("GUID 0x2"));
        (switches.len(), hosts.len())
    };
    let emulator = Emulator::start(Net::own("two-switches.net"));
    let opensm = emulator.opensm("H0", &[]);
    opensm.wait_until_up(&emulator);
    assert_eq!(links_downed(&emulator, "opensm"), (4, 0));
    let emulator = Emulator::start(Net::own("two-switches.net"));
    let _rsm = bring_up(&emulator, "H0", &[]);
    assert_eq!(links_downed(&emulator, "rsm"), (0, 0));
}

/// A cable that is pulled on the console is noticed by trap, and everything is as before when it is plugged in.
#[test]
fn opensm_follows_cables_that_are_pulled_on_the_console() {
    let emulator = Emulator::start(Net::own("two-switches.net"));
    let opensm = emulator.opensm("H0", &["-s", "0"]);
    opensm.wait_until_up(&emulator);
    let hosts =
        |emulator: &Emulator| emulator.run("H0", "saquery", &["-N"]).out.matches("Channel Adapter").count();
    let before = hosts(&emulator);
    assert_eq!(before, 4);
    emulator.console("Unlink \"H3\"[1]");
    wait_until("the host is gone", || hosts(&emulator) == before - 1);
    emulator.console("ReLink \"H3\"[1]");
    wait_until("the host is back", || hosts(&emulator) == before);
}

/// Two subnet managers, two programs: one of them is master, and the other takes over.
#[test]
fn one_of_two_opensms_is_master_and_the_other_takes_over() {
    let emulator = Emulator::start(Net::own("two-switches.net"));
    let first = emulator.opensm("H0", &["-p", "5"]);
    first.wait_for("SUBNET UP");
    let second = emulator.opensm("H3", &["-p", "3"]);
    second.wait_for("Entering STANDBY state");
    let masters = || {
        ["H0", "H3"]
            .iter()
            .filter(|node| {
                // From each node about itself, by directed route.
                emulator.run(node, "smpquery", &["-D", "portinfo", "0"]).out.contains("IsSM")
            })
            .count()
    };
    assert_eq!(masters(), 2, "both ports say that a subnet manager is there");
    let lid = emulator.run("H2", "sminfo", &[]).ok();
    assert!(lid.contains("priority 5") && lid.contains("SMINFO_MASTER"), "{lid}");
    drop(first);
    second.wait_for("SUBNET UP");
    wait_until("the second one is master", || {
        let said = emulator.run("H2", "sminfo", &[]).out;
        said.contains("priority 3") && said.contains("SMINFO_MASTER")
    });
    assert_eq!(masters(), 1, "IsSM went with the first one's process");
}

/// One subnet manager is opensm and the other one ours: exactly one of them is master.
#[test]
fn rsm_stands_by_where_opensm_is_master() {
    let emulator = Emulator::start(Net::own("two-switches.net"));
    let opensm = emulator.opensm("H0", &["-p", "9"]);
    opensm.wait_until_up(&emulator);
    let rsm = env!("CARGO_BIN_EXE_rsm");
    let args = ["run", "--priority", "3", "--state-dir", "state", "--log-level", "info"];
    let ours = emulator.spawn("H3", rsm, &args);
    wait_until("rsm stands by", || ours.err().contains("Standby"));
    let said = emulator.run("H1", "sminfo", &[]).ok();
    assert!(said.contains("0x100001") && said.contains("SMINFO_MASTER"), "{said}");
    assert!(!ours.err().contains("role=Master"), "{}", ours.err());
    ours.stop();
}

#[test]
fn a_command_inside_gives_its_exit_code() {
    let net = Net::own("two-switches.net");
    let run = |node: &str, command: &[&str]| {
        let mut rsm = std::process::Command::new(env!("CARGO_BIN_EXE_rsm"));
        rsm.arg("emulate").arg(&net.path).args(["--node", node, "--"]).args(command);
        rsm.env("RSM_PRELOAD", crate::emulator::library()).output().expect("rsm")
    };
    assert_eq!(run("H2", &["sh", "-c", "exit 7"]).status.code(), Some(7));
    let ibstat = run("H2", &["ibstat"]);
    let text = String::from_utf8_lossy(&ibstat.stdout).into_owned();
    assert!(text.contains("Initializing") && text.contains("Link layer: InfiniBand"), "{text}");
    assert_eq!(run("H2", &["/nonexistent"]).status.code(), Some(1));
}
