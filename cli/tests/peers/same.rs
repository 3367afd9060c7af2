//! infiniband-diags print the same on the emulator as on ibsim after opensm has brought the same net file up, but for what is
//! listed in [`KNOWN`], each with its reason.

use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::emulator::Emulator;
use crate::harness::Harness;
use crate::net::Net;
use crate::sim::Sim;

/// Commands that are compared. LIDs are opensm's: it gives the same ones on both.
const COMMANDS: [&[&str]; 34] = [
    &["ibnetdiscover"],
    &["ibnetdiscover", "-p"],
    &["iblinkinfo"],
    &["ibhosts"],
    &["ibswitches"],
    &["ibtracert", "1", "8"],
    &["ibroute", "2"],
    &["dump_fts"],
    &["ibstat"],
    &["smpquery", "nodedesc", "2"],
    &["smpquery", "nodeinfo", "1"],
    &["smpquery", "nodeinfo", "2"],
    &["smpquery", "-D", "nodeinfo", "0,1"],
    &["smpquery", "portinfo", "1"],
    &["smpquery", "portinfo", "2", "0"],
    &["smpquery", "portinfo", "2", "1"],
    &["smpquery", "switchinfo", "2"],
    &["smpquery", "pkeys", "1"],
    &["smpquery", "pkeys", "2", "0"],
    &["smpquery", "sl2vl", "1"],
    &["smpquery", "sl2vl", "2"],
    &["smpquery", "vlarb", "1"],
    &["smpquery", "vlarb", "2", "1"],
    &["smpquery", "guidinfo", "1"],
    &["smpquery", "mepi", "1", "1"],
    &["saquery", "NR"],
    &["saquery", "NR", "2"],
    &["saquery", "PIR", "1"],
    &["saquery", "--src-to-dst", "1:5"],
    &["saquery", "--src-to-dst", "1:2"],
    &["perfquery"],
    &["perfquery", "2", "1"],
    &["perfquery", "-x"],
    &["ibqueryerrors"],
];

#[test]
fn infiniband_diags_see_what_they_see_on_ibsim() {
    let emulator = Emulator::start(Net::own("tree36.net"));
    let sim = Sim::start(Net::own("tree36.net"));
    let managers = (emulator.opensm("H0", &[]), sim.opensm("H0", &[]));
    managers.0.wait_until_up(&emulator);
    managers.1.wait_until_up(&sim);
    prepare(&emulator);
    prepare(&sim);
    let used = Used::default();
    let mut differences = String::new();
    for command in COMMANDS {
        let [program, args @ ..] = command else { panic!("a command without a program") };
        let ours = emulator.run("H1", program, args);
        let theirs = sim.run("H1", program, args);
        assert_eq!(ours.code, theirs.code, "{command:?}: {ours:?}\n{theirs:?}");
        let (ours, theirs) = (used.agreed(command, &ours.out), used.agreed(command, &theirs.out));
        let only = |a: &[String], b: &[String], mark: &str| -> String {
            a.iter().filter(|line| !b.contains(line)).map(|line| format!("  {mark} {line}\n")).collect()
        };
        if ours != theirs {
            differences += &format!("{command:?}\n{}", only(&ours, &theirs, "emulator:"));
            differences += &only(&theirs, &ours, "ibsim:   ");
        }
    }
    assert_eq!(differences, "");
    used.check();
    managers.1.end();
}

/// Counters of both simulators begin at the same values: what opensm's sweep has left in them goes, and one port has errors.
/// (opensm takes each adapter's link down on the emulator, as on real adapters, since their MTU changes from 2048 to 4096;
/// ibsim's ports have 2048 for ever.)
fn prepare(harness: &impl Harness) {
    harness.run("H1", "ibqueryerrors", &["-k", "-K"]);
    for counter in ["SymbolErrorCounter=100", "PortRcvErrors=7"] {
        harness.console(&format!("PerformanceSet \"H3\"[1] PortCounters.{counter}"));
    }
}

/// How lines of the same beginning are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Differs {
    /// One simulator may not have them at all.
    Line,
    /// The value: what follows the beginning.
    Value,
    /// What is in parentheses.
    Notes,
}

use Differs::{Line, Notes, Value};

/// A difference.
struct Known {
    /// The command's first words.
    command: &'static [&'static str],
    /// How its lines begin.
    starts: &'static [&'static str],
    differs: Differs,
    reason: &'static str,
}

const fn known(
    command: &'static [&'static str],
    starts: &'static [&'static str],
    differs: Differs,
    reason: &'static str,
) -> Known {
    Known { command, starts, differs, reason }
}

const PORT_INFO: &[&str] = &["smpquery", "portinfo"];
const PORT_INFO_RECORD: &[&str] = &["saquery", "PIR"];
const PORT_0: &[&str] = &["smpquery", "portinfo", "2", "0"];
const SWITCH_PORT: &[&str] = &["smpquery", "portinfo", "2", "1"];
const SWITCH_PORTS: &[&str] = &["smpquery", "portinfo", "2"];
const ADAPTER_PORT: &[&str] = &["smpquery", "portinfo", "1"];
const TOPOLOGY: &[&str] = &["ibnetdiscover"];
const IBSTAT: &[&str] = &["ibstat"];
const PERF_EXTENDED: &[&str] = &["perfquery", "-x"];

/// Values of PortInfo of which ibsim keeps nothing that is set, or has none to begin with.
const NOT_KEPT: &[&str] = &["SubnetTimeout", "RespTimeVal", "LocalPhysErr", "OverrunErr"];
/// Values that tell what a port can do.
const CAN_DO: &[&str] = &[
    "CapMask:",
    "LinkWidthSupported",
    "NeighborMTU",
    "MtuCap",
    "CapabilityMask2",
    "LinkSpeedExtSupported",
    "LinkSpeedExtEnabled",
];
const CAN_DO_REASON: &str = "ibsim's ports claim 12X, 2x and HDR whatever the link is, and 2048 bytes; the emulator's are made \
                             from the link, have 4096 bytes, and the management that adapters have";

/// Where the emulator differs from ibsim, and why.
const KNOWN: &[Known] = &[
    known(TOPOLOGY, &["# Topology file: generated"], Value, "the time"),
    known(TOPOLOGY, &["vendid="], Value, "ibsim's devices have no vendor"),
    known(&["iblinkinfo"], &[""], Notes, "what a link could be: ibsim's ports can do 12X and HDR"),
    known(IBSTAT, &["CA '", "CA type", "Firmware version"], Value, "each simulator's own names"),
    known(IBSTAT, &["Rate"], Value, "4X EDR is 100 Gb/s in the kernel's sysfs, ibsim multiplies lanes by 26"),
    known(IBSTAT, &["Capability mask"], Value, CAN_DO_REASON),
    known(IBSTAT, &["Link layer"], Value, "the kernel says InfiniBand, ibsim IB"),
    known(&["smpquery", "nodeinfo"], &["VendorId"], Value, "ibsim's devices have no vendor"),
    known(
        &["smpquery", "nodeinfo", "2"],
        &["PartCap"],
        Value,
        "ibsim's switches have 8 P_Keys, the emulator's 64",
    ),
    known(
        &["smpquery", "nodeinfo", "2"],
        &["LocalPort"],
        Value,
        "the port of entry; ibsim says 0 in a switch to LID-routed queries",
    ),
    known(&["smpquery", "-D", "nodeinfo"], &["VendorId"], Value, "ibsim's devices have no vendor"),
    known(
        &["smpquery", "-D", "nodeinfo"],
        &["PartCap"],
        Value,
        "ibsim's switches have 8 P_Keys, the emulator's 64",
    ),
    known(PORT_INFO, CAN_DO, Value, CAN_DO_REASON),
    known(PORT_INFO, &["Is"], Line, "names of bits of CapMask and CapabilityMask2"),
    known(PORT_INFO, NOT_KEPT, Value, "ibsim keeps none of what is set there"),
    known(ADAPTER_PORT, &["MkeyLeasePeriod"], Value, "nobody has set one; ibsim has 4089"),
    known(ADAPTER_PORT, &["VLStallCount"], Value, "ibsim does not keep it"),
    known(SWITCH_PORTS, &["LocalPort"], Value, "the port of entry; ibsim says 0 to LID-routed queries"),
    known(PORT_0, &["MkeyLeasePeriod"], Value, "nobody has set one; ibsim has 4089"),
    known(
        PORT_0,
        &["LinkWidthEnabled", "LinkSpeedActive", "LinkSpeedEnabled"],
        Value,
        "a port without a link: ibsim has the lowest values, the emulator what the switch can do",
    ),
    known(
        SWITCH_PORT,
        &["GidPrefix"],
        Value,
        "the emulator's ports all have the default one; ibsim's of switches none",
    ),
    known(SWITCH_PORT, &["PartEnforce"], Value, "ibsim's switches cannot enforce partitions"),
    known(
        &["smpquery", "switchinfo"],
        &["InboundPartEnf", "OutboundPartEnf"],
        Value,
        "ibsim's switches cannot enforce",
    ),
    known(
        &["smpquery", "switchinfo"],
        &["LinearFdbCap"],
        Value,
        "49152 is what switches have; ibsim takes an option",
    ),
    known(
        &["smpquery", "pkeys", "2", "0"],
        &["8:", "16:", "24:", "32:", "40:", "48:", "56:", "8 pkeys", "64 pkeys"],
        Line,
        "ibsim's switches have 8 P_Keys, the emulator's 64",
    ),
    known(
        &["smpquery", "sl2vl"],
        &["ports:"],
        Value,
        "before any Set: the emulator spreads SLs over the 8 lanes there are, ibsim names lanes that its ports do not have",
    ),
    known(
        &["smpquery", "vlarb"],
        &["VL ", "WEIGHT"],
        Value,
        "before any Set: the emulator's tables are empty, ibsim has weights of its own",
    ),
    known(&["saquery", "NR"], &["vendor_id"], Value, "ibsim's devices have no vendor"),
    known(
        &["saquery", "NR", "2"],
        &["partition_cap"],
        Value,
        "ibsim's switches have 8 P_Keys, the emulator's 64",
    ),
    known(PORT_INFO_RECORD, CAN_DO, Value, CAN_DO_REASON),
    known(PORT_INFO_RECORD, &["Is"], Line, "names of bits of CapMask and CapabilityMask2"),
    known(PORT_INFO_RECORD, NOT_KEPT, Value, "ibsim keeps none of what is set there"),
    known(PORT_INFO_RECORD, &["MkeyLeasePeriod", "VLStallCount"], Value, "as in smpquery portinfo 1"),
    known(&["saquery", "--src-to-dst"], &["mtu"], Value, CAN_DO_REASON),
    known(&["saquery", "--src-to-dst", "1:2"], &["rate"], Value, "ends in port 0: see LinkSpeedActive there"),
    known(&["perfquery"], &["# Port"], Notes, "ClassPortInfo: the emulator's PMA has more attributes"),
    known(
        &["perfquery"],
        &["PortXmitData", "PortRcvData", "PortXmitPkts", "PortRcvPkts"],
        Value,
        "ibsim counts no SMPs in switches, and steps of its own elsewhere",
    ),
    known(
        PERF_EXTENDED,
        &["PortUnicastXmitPkts", "PortUnicastRcvPkts"],
        Value,
        "ibsim counts neither unicast nor multicast packets",
    ),
    known(
        PERF_EXTENDED,
        &[
            "CounterSelect2",
            "SymbolErrorCounter",
            "LinkErrorRecoveryCounter",
            "LinkDownedCounter",
            "PortRcvErrors",
            "PortRcvRemotePhysicalErrors",
            "PortRcvSwitchRelayErrors",
            "PortXmitDiscards",
            "PortXmitConstraintErrors",
            "PortRcvConstraintErrors",
            "LocalLinkIntegrityErrors",
            "ExcessiveBufferOverrunErrors",
            "VL15Dropped",
            "PortXmitWait",
            "QP1Dropped",
        ],
        Line,
        "the emulator's PMA has the error counters of 64 bits, as devices since EDR",
    ),
    known(&["ibqueryerrors"], &["GUID"], Notes, "values of counters of 64 bits are printed twice"),
];

/// Which of [`KNOWN`] were needed: one that never is has no place in the list.
#[derive(Default)]
struct Used(RefCell<BTreeSet<(usize, usize)>>);

impl Used {
    /// The lines of a tool without what the two simulators are known to differ in.
    fn agreed(&self, command: &[&str], text: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for line in text.lines() {
            let found = KNOWN.iter().enumerate().find_map(|(number, known)| {
                let starts = |start: &&str| line.trim_start().starts_with(start);
                let fits = command.starts_with(known.command);
                known.starts.iter().position(|start| fits && starts(start)).map(|start| (number, start))
            });
            let Some((number, start)) = found else {
                lines.push(line.to_owned());
                continue;
            };
            self.0.borrow_mut().insert((number, start));
            let known = &KNOWN[number];
            match known.differs {
                Line => {}
                Value => {
                    let blanks = line.len() - line.trim_start().len();
                    lines.push(line[..blanks + known.starts[start].len()].to_owned());
                }
                Notes => lines.push(without_notes(line)),
            }
        }
        if command == ["saquery", "NR"] {
            // ibsim's preload library cuts tables after their first record.
            let second = lines.iter().enumerate().skip(1).find(|(_, line)| line.contains("dump:"));
            lines.truncate(second.map_or(lines.len(), |(index, _)| index));
        }
        lines
    }

    fn check(&self) {
        for (number, known) in KNOWN.iter().enumerate() {
            assert!(!known.reason.is_empty(), "{:?} has no reason", known.starts);
            for (index, start) in known.starts.iter().enumerate() {
                let used = self.0.borrow().contains(&(number, index));
                assert!(used, "{:?} never prints {start:?}", known.command);
            }
        }
    }
}

/// A line without what is in parentheses after a blank.
fn without_notes(line: &str) -> String {
    let mut kept = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once(" (") {
        kept += before;
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    kept + rest
}

#[test]
fn what_is_in_parentheses_goes() {
    assert_eq!(without_notes("a (b) c [d == 1 (1.000)]"), "a c [d == 1]");
}
