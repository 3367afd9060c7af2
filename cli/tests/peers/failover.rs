//! The master dies by SIGKILL: two managers on the emulator, looked at with stock tools; and one that is started again. On
//! the emulator alone, since copies of the state go by RMPP, of which ibsim's preload library cuts all but a datagram.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::emulator::Emulator;
use crate::harness::Harness;
use crate::net::Net;
use crate::program::{Running, wait_until};

const RSM: &str = env!("CARGO_BIN_EXE_rsm");

/// `rsm run` with a secret that all of them share.
fn manager(emulator: &Emulator, node: &str, priority: u8) -> Running {
    let mut command = emulator.command(node, RSM);
    let folder = command.get_current_dir().expect("a folder of its own").to_path_buf();
    let secret = folder.join("secret");
    fs::write(&secret, "the secret of this test\n").expect("secret");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).expect("mode");
    let config = format!(
        "[sm]\npriority = {priority}\npolling_interval_ms = 200\npolling_retries = 2\n\
         [failover]\nsecret_file = \"secret\"\n[state]\ndir = \"state\"\n"
    );
    fs::write(folder.join("rsm.toml"), config).expect("configuration");
    command.args(["run", "--config", "rsm.toml"]);
    Running::start(command)
}

#[test]
fn a_standby_takes_over_from_a_killed_master_with_its_state_and_sends_no_table() {
    let emulator = Emulator::start(Net::own("tree36.net"));
    let master = manager(&emulator, "H0", 5);
    wait_until("the fabric is up", || master.out().contains("fabric is up"));
    let standby = manager(&emulator, "H35", 3);
    wait_until("the standby has its copy", || {
        standby.err().contains("copy of the master's state is complete")
    });
    let groups = || emulator.run("H5", "saquery", &["-g"]).ok();
    let before = groups();
    assert!(before.contains("ff12:401b:ffff::ffff:ffff"), "{before}");
    master.signal("KILL");
    assert_eq!(master.finish().code, None);
    wait_until("the standby is master", || standby.out().contains("fabric is up"));
    let seen = emulator.run("H5", "sminfo", &[]).ok();
    assert!(seen.contains("priority 3 state 3 SMINFO_MASTER"), "{seen}");
    assert_eq!(groups(), before);
    // PortInfo of 36 hosts and 9 switches for the new SM LID, and nothing else.
    assert!(standby.out().contains("0 LIDs new, 45 Sets"), "{}", standby.out());
    assert!(standby.err().contains("taking over with the copy"), "{}", standby.err());
    assert_eq!(standby.stop().code, Some(0));
}

#[test]
fn a_killed_manager_starts_again_with_its_state_and_changes_nothing() {
    let emulator = Emulator::start(Net::own("tree36.net"));
    let mut command = emulator.command("H0", RSM);
    let folder = command.get_current_dir().expect("a folder of its own").to_path_buf();
    command.args(["run", "--state-dir", "state"]);
    let first = Running::start(command);
    wait_until("the fabric is up", || first.out().contains("fabric is up"));
    first.signal("KILL");
    first.finish();
    let mut command = emulator.command("H0", RSM);
    command.args(["run", "--once", "--json", "--state-dir"]).arg(folder.join("state"));
    let said = Running::start(command).finish().ok();
    let report: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!((&report["lids_new"], &report["sets"]), (&0.into(), &serde_json::json!({})), "{report}");
}

#[test]
fn a_secret_that_others_may_read_or_that_is_short_is_refused() {
    let emulator = Emulator::start(Net::own("two-switches.net"));
    for (mode, text, complaint) in
        [(0o644, "the secret of this test", "chmod 600"), (0o600, "short", "16 bytes or more")]
    {
        let mut command = emulator.command("H0", RSM);
        let folder = command.get_current_dir().expect("a folder of its own").to_path_buf();
        fs::write(folder.join("secret"), text).expect("secret");
        fs::set_permissions(folder.join("secret"), fs::Permissions::from_mode(mode)).expect("mode");
        fs::write(folder.join("rsm.toml"), "[failover]\nsecret_file = \"secret\"\n").expect("configuration");
        command.args(["run", "--once", "--config", "rsm.toml", "--state-dir", "state"]);
        let said = Running::start(command).finish();
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.err.contains("secret") && said.err.contains(complaint), "{said:?}");
        assert!(!said.err.contains(text), "never printed: {said:?}");
    }
}
