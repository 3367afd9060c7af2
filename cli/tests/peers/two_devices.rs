//! B14: subnet management and general services of a port on different devices, as adapters of XDR have them.

use crate::emulator::Emulator;
use crate::fabric::{Lids, bring_up, once};
use crate::harness::Harness;
use crate::net::Net;

#[test]
fn b14_rsm_run_works_where_subnet_management_has_a_device_of_its_own() {
    let emulator = Emulator::start_with(Net::own("two-switches.net"), &["--smi-device"]);
    // `rsm0` comes first and has no queue pair 0; named or not, the other device comes along.
    for device in ["rsm0", "smi0"] {
        let (said, summary) = once(&emulator, "H2", &["--device", device]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(summary["failures"].as_array().expect("failures").is_empty(), "{summary}");
    }
    let rsm = bring_up(&emulator, "H0", &[]);

    // Stock tools need the device that has what they ask for; those that ask for both find none that will do.
    let found = emulator.run("H1", "ibnetdiscover", &["-C", "smi0"]).ok();
    let lids = Lids::read(&found);
    lids.check();
    assert_eq!(lids.hosts.len() + lids.switches.len(), emulator.net().nodes.len(), "{found}");
    let ports = emulator.run("H1", "saquery", &["-C", "rsm0", "PIR"]).ok();
    let active = ports.lines().filter(|line| line.contains("LinkState:") && line.ends_with("Active")).count();
    assert!(active >= 2 * emulator.net().links(), "{ports}");
    let records = emulator.run("H1", "saquery", &["-C", "rsm0", "NR"]).ok();
    assert_eq!(records.matches("NodeRecord dump").count(), emulator.net().nodes.len());
    for device in ["rsm0", "smi0"] {
        let both = emulator.run("H1", "smpquery", &["-C", device, "nodeinfo", "1"]);
        assert_ne!(both.code, Some(0), "{both:?}");
    }

    // IsSM is set by way of the device that has an issm, and is seen on both.
    for device in ["rsm0", "smi0"] {
        let said = emulator.run("H0", "ibstat", &[device]).ok();
        let mask = said.split("Capability mask: 0x").nth(1).and_then(|rest| rest.split_whitespace().next());
        let mask = u32::from_str_radix(mask.expect("a mask"), 16).expect("hexadecimal");
        assert_ne!(mask & 2, 0, "{said}");
    }
    let nodes = emulator.rsm("H3", &["query", "node", "--json"]).ok();
    let nodes: serde_json::Value = serde_json::from_str(&nodes).expect("JSON");
    assert_eq!(nodes.as_array().map(Vec::len), Some(emulator.net().nodes.len()));
    assert_eq!(rsm.stop().code, Some(0));
}
