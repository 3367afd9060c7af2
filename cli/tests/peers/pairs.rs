//! A master that dies by SIGKILL beside a standby of the other make, in both roles, and two of ours: stock tools see the new
//! master and get answers from it.

use std::fs;

use crate::harness::{Harness, on_both};
use crate::net::Net;
use crate::program::{Running, wait_until};

const RSM: &str = env!("CARGO_BIN_EXE_rsm");
/// The same polling for both makes.
const OPENSM: &str = "sminfo_polling_timeout 200\npolling_retry_number 2\n";

on_both!(
    two_of_ours_change_over_when_the_master_is_killed,
    ours_takes_over_from_a_killed_opensm,
    opensm_takes_over_from_ours_when_that_is_killed,
);

fn ours(harness: &impl Harness, node: &str, priority: u8) -> Running {
    let mut command = harness.command(node, RSM);
    let folder = command.get_current_dir().expect("a folder of its own").to_path_buf();
    let config = format!(
        "[sm]\npriority = {priority}\npolling_interval_ms = 200\npolling_retries = 2\n[state]\ndir = \"state\"\n"
    );
    fs::write(folder.join("rsm.toml"), config).expect("configuration");
    command.args(["run", "--config", "rsm.toml"]);
    Running::start(command)
}

fn kill(manager: Running) {
    manager.signal("KILL");
    assert_eq!(manager.finish().code, None);
}

/// Waits until a host's own port leads to a master of this priority, and asks that for something.
fn master_is(harness: &impl Harness, priority: u8) {
    let says = format!("priority {priority} state 3 SMINFO_MASTER");
    wait_until(&says, || harness.run("H1", "sminfo", &[]).out.contains(&says));
    wait_until("saquery is answered", || {
        let said = harness.run("H1", "saquery", &["NR"]);
        said.code == Some(0) && said.out.matches("NodeRecord dump").count() == 6
    });
}

fn two_of_ours_change_over_when_the_master_is_killed<H: Harness>() {
    let harness = H::start(Net::own("two-switches.net"));
    let master = ours(&harness, "H0", 5);
    wait_until("the fabric is up", || master.out().contains("fabric is up"));
    let standby = ours(&harness, "H3", 3);
    wait_until("it stands by", || standby.err().contains("our role role=Standby"));
    master_is(&harness, 5);
    kill(master);
    master_is(&harness, 3);
    assert_eq!(standby.stop().code, Some(0));
}

fn ours_takes_over_from_a_killed_opensm<H: Harness>() {
    let harness = H::start(Net::own("two-switches.net"));
    let master = harness.opensm_with("H0", &["-p", "5"], OPENSM);
    master.wait_until_up(&harness);
    let standby = ours(&harness, "H3", 3);
    wait_until("it stands by", || standby.err().contains("our role role=Standby"));
    master_is(&harness, 5);
    drop(master); // SIGKILL
    master_is(&harness, 3);
    assert!(standby.out().contains("0 LIDs new"), "{}", standby.out());
    assert_eq!(standby.stop().code, Some(0));
}

fn opensm_takes_over_from_ours_when_that_is_killed<H: Harness>() {
    let harness = H::start(Net::own("two-switches.net"));
    let master = ours(&harness, "H0", 5);
    wait_until("the fabric is up", || master.out().contains("fabric is up"));
    let standby = harness.opensm_with("H3", &["-p", "3"], OPENSM);
    standby.wait_for("Entering STANDBY state");
    master_is(&harness, 5);
    kill(master);
    master_is(&harness, 3);
}
