//! The harness itself, with stock tools only.

use crate::net::Net;
use crate::sim::Sim;
use crate::wire::WireLog;

#[test]
fn a_stock_tool_talks_to_a_simulated_switch_and_the_wire_log_counts_it() {
    let sim = Sim::start(Net::own("two-switches.net"));
    let wire = WireLog::start(&sim);
    let out = sim.run("H0", "smpquery", &["-D", "nodeinfo", "0,1"]).ok();
    assert!(out.contains("Switch"), "{out}");
    let seen = wire.stop();
    assert!(seen.iter().any(|s| s.attribute == 0x11 && s.method == 1), "{seen:?}");
    assert!(!seen.iter().any(|s| s.is_set()));
}

#[test]
fn net_files_hold_what_their_names_say() {
    for (name, hosts, switches, links) in [
        ("two-switches.net", 4, 2, 7),
        ("tree36.net", 36, 9, 36 + 36),
        ("torus4x4.net", 16, 16, 16 + 32),
        ("dual-port.net", 6, 2, 11 + 2),
        ("tree648.net", 648, 54, 648 + 648),
    ] {
        let net = Net::own(name);
        assert_eq!(
            (net.hosts().count(), net.switches().count(), net.links()),
            (hosts, switches, links),
            "{name}"
        );
    }
}
