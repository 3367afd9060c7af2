//! What `rsm generate` writes, in ibsim: stock ibnetdiscover finds the same nodes and cables there, in our emulator, and in
//! what we wrote. And tshark reads what a scenario leaves.

use std::path::Path;
use std::process::Command;

use crate::emulator::Emulator;
use crate::harness::Harness;
use crate::net::Net;
use crate::sim::Sim;

fn rsm(arguments: &str) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_rsm")).args(arguments.split_whitespace()).output().expect("rsm");
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Node lines and port lines of an ibnetdiscover output, sorted.
fn lines(text: &str) -> Vec<&str> {
    let node = |line: &&str| ["Switch", "Ca\t", "["].iter().any(|word| line.starts_with(word));
    let mut lines: Vec<&str> = text.lines().filter(node).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn ibsim_loads_every_kind_and_ibnetdiscover_finds_what_was_written() {
    let folder = tempfile::tempdir().expect("folder");
    for (index, kind) in [
        "pgft -m 3,3 -w 1,2 -p 1,2 --dual-port",
        "full-tree 4 --missing-links 5",
        "torus 3x3x2",
        "hyperx 3x2 --hosts 2 --dual-rail",
        "dragonfly -p 1 -a 3 --global 1",
        "dragonfly-plus -p 2 --leaves 2 --spines 2 --global 1 -g 3",
        "kautz --degree 2 --diameter 2",
        "random-regular --switches 10 --degree 3 --degraded-links 20",
    ]
    .into_iter()
    .enumerate()
    {
        let path = folder.path().join(format!("{index}.net"));
        rsm(&format!("generate {kind} -o {}", path.display()));
        let net = Net::read(&path);
        let sim = Sim::start(net);
        let first = sim.net().attachable().remove(0);
        let found = sim.run(&first, "ibnetdiscover", &[]).ok();
        let (nodes, links) = (sim.net().nodes.len(), sim.net().links());
        let count = |start: &str| lines(&found).iter().filter(|line| line.starts_with(start)).count();
        assert_eq!((count("S") + count("C"), count("[")), (nodes, 2 * links), "{kind}");
        let ours = Emulator::start(sim.net().clone()).run(&first, "ibnetdiscover", &[]).ok();
        assert_eq!(lines(&found), lines(&ours), "{kind}");
    }
}

#[test]
fn wireshark_dissects_what_a_scenario_leaves() {
    let folder = tempfile::tempdir().expect("folder");
    let pcap = folder.path().join("packets.pcapng");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../simulations/scenarios/master-dies.toml");
    rsm(&format!("simulate scenario {} --pcap {}", file.display(), pcap.display()));
    let output = Command::new("tshark").args(["-r", pcap.to_str().expect("text")]).output().expect("tshark");
    let text = String::from_utf8_lossy(&output.stdout);
    for expected in
        ["SubnSet(LinearForwardingTable)", "SubnGetResp(NodeInfo)", "SubnGet(SMInfo)", "SubnTrap(Notice)"]
    {
        assert!(text.contains(expected), "no {expected}");
    }
    assert!(!text.contains("Malformed"), "{text}");
}
