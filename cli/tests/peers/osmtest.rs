//! osmtest, the conformance test of opensm's authors, against subnet administration of `rsm run`, on the emulator.
//!
//! opensm 3.3.23 passes flows c, a, v, s, e, m and q there, and so do we. On ibsim its preload library cuts every table
//! after the first datagram, so that opensm itself fails: `osmtest -f s` ends with "Services Registration" FAIL
//! ("ERR 4A1C: Could not find the service by name" after a cut answer), `-f m` with "Multicast" FAIL, for opensm as for us.
//! So the emulator is the place for this test.

use crate::emulator::Emulator;
use crate::fabric::bring_up;
use crate::harness::Harness;
use crate::net::Net;

/// Flows, with the name of each test and its further arguments; `c` writes the inventory that others read. Of the flow `f`
/// (flood) those with tables: the other two ask 100,000 single questions one after the other, which takes too long here. By hand,
/// against a program built without optimisation on a machine with other work, both passed with every answer right: `-s 1` (single
/// PortInfoRecords) in 65 s, `-s 4` (single PathRecords) in 50 s. no_reply_is_lost_in_a_storm asks more at once.
const FLOWS: [(&str, &str, &[&str]); 9] = [
    ("c", "Create Inventory", &[]),
    ("a", "All Validations", &[]),
    ("v", "Validate Inventory", &[]),
    ("s", "Services Registration", &[]),
    ("e", "Event Forwarding", &[]),
    ("m", "Multicast", &[]),
    ("q", "QoS: VLArb and SLtoVL", &[]),
    ("f", "Stress SA", &["-s", "2"]),
    ("f", "Stress SA", &["-s", "3"]),
];

#[test]
fn osmtest_passes_every_flow() {
    let emulator = Emulator::start(Net::own("two-switches.net"));
    let _running = bring_up(&emulator, "H0", &[]);
    let folder = tempfile::tempdir().expect("temporary folder");
    for (flow, name, more) in FLOWS {
        let mut command = emulator.command("H1", "osmtest");
        command.args(["-f", flow, "-i", "osmtest.dat", "-l", &format!("osmtest-{flow}.log")]).args(more);
        command.current_dir(folder.path());
        let output = command.output().expect("osmtest; the README's second command installs it");
        let said = String::from_utf8_lossy(&output.stdout);
        let log =
            std::fs::read_to_string(folder.path().join(format!("osmtest-{flow}.log"))).unwrap_or_default();
        assert!(said.contains(&format!("TEST \"{name}\" PASS")), "flow {flow}: {said}\n{log}");
    }
}
