//! A master that dies by SIGKILL beside a standby of the other make, in both roles, and two of ours: stock tools see the new
//! master and get answers from it.

use std::collections::BTreeMap;
use std::fs;

use crate::harness::{Harness, on_both};
use crate::net::Net;
use crate::program::{Running, wait_until};
use crate::sim::Sim;
use crate::wire::WireLog;

const RSM: &str = env!("CARGO_BIN_EXE_rsm");
const SWITCH_INFO: u16 = 0x12;
const PORT_INFO: u16 = 0x15;
const LFT: u16 = 0x19;
/// The same polling as ours.
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
    harness.wait_for_master("H1", priority);
    // One datagram: ibsim's preload library cuts what is longer.
    wait_until("saquery is answered", || {
        let said = harness.run("H1", "saquery", &["-c"]);
        said.code == Some(0) && said.out.contains("SA ClassPortInfo")
    });
}

fn two_of_ours_change_over_when_the_master_is_killed<H: Harness>() {
    // The dead one's port stays: every end port is told the new SM LID, and nothing else is sent. Or it is gone: then the new
    // one takes its LID, and the entries of one destination change. These two keep no copies of each other's state: what hosts
    // had registered is lost, so that all end ports, but for the new manager's own, are asked to register anew all the same.
    let told = BTreeMap::from([(PORT_INFO, 6)]);
    let taken_over = BTreeMap::from([(PORT_INFO, 5), (LFT, 2), (SWITCH_INFO, 1)]);
    for (gone, expected) in [(false, told), (true, taken_over)] {
        let harness = H::start(Net::own("two-switches.net"));
        let master = ours(&harness, "H0", 5);
        wait_until("the fabric is up", || master.out().contains("fabric is up"));
        let standby = ours(&harness, "H3", 3);
        wait_until("it stands by", || standby.err().contains("our role role=Standby"));
        master_is(&harness, 5);
        let wire = WireLog::start(&harness);
        kill(master);
        if gone {
            harness.console("Unlink \"H0\"[1]");
        }
        wait_until("the standby is master", || standby.out().contains("fabric is up"));
        let mut sets = wire.stop().sets();
        if H::DEVICE == Sim::DEVICE {
            // Its ports don't keep all fields, which a manager without the other's state tries once.
            sets.insert(PORT_INFO, expected[&PORT_INFO]);
        }
        assert_eq!(sets, expected, "{}\n{}", standby.out(), standby.err());
        master_is(&harness, 3);
        assert_eq!(standby.stop().code, Some(0));
    }
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
