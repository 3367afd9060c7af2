//! Stock programs on `rsm emulate`: opensm, infiniband-diags, and rsm itself; and the same as on ibsim, but for what is
//! listed.

use std::collections::BTreeSet;

use crate::emulator::{Emulator, prepare_opensm, wait_until};
use crate::net::Net;
use crate::sim::Sim;

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
        let emulator = Emulator::start(&Net::own(net));
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
    let emulator = Emulator::start(&net);
    let opensm = emulator.opensm("H0", &[]);
    opensm.wait_for("SUBNET UP");
    let count =
        |args: &[&str], record: &str| emulator.run("H300", "saquery", args).ok().matches(record).count();
    assert_eq!(count(&["-N"], "NodeRecord dump"), nodes);
    assert_eq!(count(&["-x"], "LinkRecord dump"), 2 * net.links());
    assert_eq!(count(&["-t", "200000", "-p"], "PathRecord dump"), nodes * nodes);
}

/// What infiniband-diags print on both simulators, after opensm has brought the same fabric up.
#[test]
fn infiniband_diags_see_what_they_see_on_ibsim() {
    let net = Net::own("tree36.net");
    let emulator = Emulator::start(&net);
    let opensm = emulator.opensm("H0", &[]);
    opensm.wait_for("SUBNET UP");
    let sim = Sim::start(net);
    let mut command = sim.command("H0", "opensm");
    let log = command.get_current_dir().expect("a folder").join("log");
    prepare_opensm(&mut command, &log);
    let ibsim_opensm = crate::sim::Running::start(command);
    wait_until("opensm has brought ibsim's fabric up", || {
        std::fs::read_to_string(&log).is_ok_and(|text| text.contains("SUBNET UP"))
    });
    for (program, args) in [
        ("ibnetdiscover", &[][..]),
        ("ibnetdiscover", &["-p"]),
        ("iblinkinfo", &[]),
        ("ibtracert", &["1", "8"]),
        ("ibroute", &["2"]),
        ("dump_fts", &[]),
        ("smpquery", &["nodedesc", "2"]),
        ("smpquery", &["nodeinfo", "1"]),
        ("smpquery", &["nodeinfo", "2"]),
        ("smpquery", &["portinfo", "1"]),
        ("smpquery", &["portinfo", "2", "1"]),
        ("smpquery", &["switchinfo", "2"]),
        ("smpquery", &["pkeys", "1"]),
        ("smpquery", &["guidinfo", "1"]),
    ] {
        let ours = emulator.run("H1", program, args).ok();
        let theirs = sim.run("H1", program, args).ok();
        assert_eq!(agreed(&ours), agreed(&theirs), "{program} {args:?}");
    }
    ibsim_opensm.signal("TERM");
    ibsim_opensm.finish();
}

/// The lines of a tool without what the two simulators are known to differ in.
fn agreed(text: &str) -> Vec<String> {
    text.lines()
        .filter(|line| !KNOWN.iter().any(|(start, _)| line.trim_start().starts_with(start)))
        .map(|line| {
            // iblinkinfo's note "Could be 12X": ibsim's ports say that they can do every width and HDR, whatever the link.
            let note = line.rfind(" (Could be").or_else(|| line.rfind(" ( )")).unwrap_or(line.len());
            line[..note].to_owned()
        })
        .collect()
}

/// Beginnings of lines in which the emulator differs from ibsim, and why.
const KNOWN: [(&str, &str); 35] = [
    ("# Topology file: generated", "the time"),
    ("vendid=", "ibsim's devices have no vendor"),
    ("VendorId", "ibsim's devices have no vendor"),
    ("DevId", "ibsim's devices have no device ID"),
    ("LocalPort", "ibsim answers 0 in a switch for LID-routed queries, the emulator the port of entry"),
    ("PartCap", "switches of ibsim have 8 P_Keys, the emulator's 64"),
    ("PartEnforceCap", "as the emulator's P_Key tables"),
    ("PartEnforceInb", "ibsim does not keep partition enforcement"),
    ("PartEnforceOutb", "ibsim does not keep partition enforcement"),
    ("InboundPartEnf", "the emulator's switches can enforce partitions"),
    ("OutboundPartEnf", "the emulator's switches can enforce partitions"),
    ("FilterRawInb", "ibsim's default differs by port"),
    ("FilterRawOutb", "ibsim's default differs by port"),
    ("LinearFdbCap", "49152 is what switches have; ibsim takes it from an option"),
    ("CapMask", "the emulator's ports can do client reregistration and more"),
    ("Is", "the names of the bits of the capability masks"),
    ("CapabilityMask2", "ibsim's ports claim HDR and 2x whatever the link is"),
    ("GidPrefix", "ibsim has none on external switch ports"),
    ("MkeyLeasePeriod", "ibsim does not keep it"),
    ("LinkWidthSupported", "ibsim's ports claim every width"),
    ("LinkWidthEnabled", "ibsim's ports claim every width"),
    ("LinkSpeedExtSupported", "ibsim's ports claim HDR"),
    ("LinkSpeedExtEnabled", "ibsim's ports claim HDR"),
    ("NeighborMTU", "ibsim has 2048 everywhere and does not keep a Set"),
    ("MtuCap", "ibsim has 2048 everywhere"),
    ("VLStallCount", "ibsim does not keep it"),
    ("HoqLife", "ibsim's default differs by port"),
    ("SMSL", "ibsim does not keep it"),
    ("SubnetTimeout", "ibsim does not keep it"),
    ("RespTimeVal", "ibsim has none"),
    ("LocalPhysErr", "ibsim does not keep it"),
    ("OverrunErr", "ibsim does not keep it"),
    ("InitReply", "ibsim does not keep it"),
    ("ProtectBits", "ibsim does not keep it"),
    ("MaxCreditHint", "ibsim has none"),
];

#[test]
fn known_differences_are_each_listed_once_with_a_reason() {
    let starts: BTreeSet<_> = KNOWN.iter().map(|(start, _)| start).collect();
    assert_eq!(starts.len(), KNOWN.len());
    assert!(KNOWN.iter().all(|(_, reason)| !reason.is_empty()));
}

#[test]
fn performance_counters_are_read_set_and_cleared() {
    let mut emulator = Emulator::start(&Net::own("two-switches.net"));
    let opensm = emulator.opensm("H0", &[]);
    opensm.wait_for("SUBNET UP");
    let symbol_errors = |emulator: &Emulator| {
        let text = emulator.run("H0", "perfquery", &["1", "1"]).ok();
        let line =
            text.lines().find(|line| line.starts_with("SymbolErrorCounter")).expect("a counter").to_owned();
        line.rsplit('.').next().expect("a value").parse::<u32>().expect("a number")
    };
    assert_eq!(symbol_errors(&emulator), 0);
    emulator.console("PerformanceSet \"H0\"[1] PortCounters.SymbolErrorCounter=100");
    wait_until("the counter is set", || symbol_errors(&emulator) == 100);
    let errors = emulator.run("H1", "ibqueryerrors", &[]);
    assert!(errors.out.contains("SymbolErrorCounter == 100"), "{errors:?}");
    emulator.run("H1", "perfquery", &["-R", "1", "1"]).ok();
    assert_eq!(symbol_errors(&emulator), 0);
    emulator.run("H1", "perfquery", &["-x", "1", "1"]).ok();
}

/// A cable that is pulled on the console is noticed by trap, and everything is as before when it is plugged in.
#[test]
fn opensm_follows_cables_that_are_pulled_on_the_console() {
    let mut emulator = Emulator::start(&Net::own("two-switches.net"));
    let opensm = emulator.opensm("H0", &["-s", "0"]);
    opensm.wait_for("SUBNET UP");
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
    let emulator = Emulator::start(&Net::own("two-switches.net"));
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
    let emulator = Emulator::start(&Net::own("two-switches.net"));
    let opensm = emulator.opensm("H0", &["-p", "9"]);
    opensm.wait_for("SUBNET UP");
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
fn rsm_brings_the_fabric_up_on_the_emulator_too() {
    let emulator = Emulator::start(&Net::own("tree36.net"));
    let out = emulator.run("H0", env!("CARGO_BIN_EXE_rsm"), &["run", "--once", "--state-dir", "state"]).ok();
    assert!(out.contains("45 nodes (9 switches, 36 hosts)"), "{out}");
    let links = emulator.run("H7", "iblinkinfo", &["-l"]).ok();
    assert!(!links.contains("Initialize") && links.contains("Active"), "{links}");
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
