//! A standby whose priority is raised says so to a running master of the other make by trap 144, in both roles. No manager sweeps by
//! itself here, so that nothing else brings the handover about.

use std::fs;

use crate::emulator::Emulator;
use crate::harness::{Harness, on_both};
use crate::net::Net;
use crate::program::{Running, wait_until};

on_both!(opensm_hands_over_to_ours_when_that_is_raised);

fn config(priority: u8) -> String {
    format!("[sm]\npriority = {priority}\nsweep_interval_s = 0\n[state]\ndir = \"state\"\n")
}

fn opensm_options(priority: u8) -> String {
    format!("sm_priority {priority}\nsweep_interval 0\n")
}

fn ours(harness: &impl Harness, node: &str, priority: u8) -> (Running, std::path::PathBuf) {
    let mut command = harness.command(node, env!("CARGO_BIN_EXE_rsm"));
    let file = command.get_current_dir().expect("a folder of its own").join("rsm.toml");
    fs::write(&file, config(priority)).expect("configuration");
    command.args(["run", "--config", "rsm.toml"]);
    (Running::start(command), file)
}

fn opensm_hands_over_to_ours_when_that_is_raised<H: Harness>() {
    let harness = H::start(Net::own("two-switches.net"));
    let opensm = harness.opensm_with("H0", &[], &opensm_options(5));
    opensm.wait_until_up(&harness);
    let (standby, file) = ours(&harness, "H3", 3);
    wait_until("it stands by", || standby.err().contains("our role role=Standby"));
    harness.wait_for_master("H1", 5);
    fs::write(file, config(8)).expect("configuration");
    standby.signal("HUP");
    harness.wait_for_master("H1", 8);
    opensm.wait_for("Entering STANDBY state");
    assert_eq!(standby.stop().code, Some(0));
}

/// On the emulator alone. On ibsim opensm sends trap 144, ours hands over within milliseconds, and opensm becomes MASTER; but ibsim drops
/// the TrapRepress on its way ("got trap repress - dropping" in its output), opensm goes on counting the trap among what is
/// unanswered, and its sweep waits for that: it configures nothing, and hosts go on asking the manager that stepped back.
#[test]
fn ours_hands_over_to_opensm_when_that_is_raised() {
    let harness = Emulator::start(Net::own("two-switches.net"));
    let (master, _) = ours(&harness, "H0", 5);
    wait_until("the fabric is up", || master.out().contains("fabric is up"));
    let opensm = harness.opensm_with("H3", &[], &opensm_options(3));
    opensm.wait_for("Entering STANDBY state");
    harness.wait_for_master("H1", 5);
    opensm.reconfigure(&opensm_options(8));
    harness.wait_for_master("H1", 8);
    wait_until("ours stands by", || master.err().contains("our role role=Standby"));
    assert_eq!(master.stop().code, Some(0));
}
