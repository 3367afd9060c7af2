//! "What bad input gets", where there is a device.

use crate::net::Net;
use crate::sim::{Said, Sim};

/// Exit code 1, one line that starts with `rsm: ` after the log's own lines, no panic.
fn refused(said: &Said, expected: &str) {
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(!said.err.contains("panicked") && !said.err.contains("RUST_BACKTRACE"), "{}", said.err);
    let complaints: Vec<&str> = said.err.lines().filter(|l| l.starts_with("rsm: ")).collect();
    assert_eq!(complaints.len(), 1, "{}", said.err);
    assert!(complaints[0].contains(expected), "{}", complaints[0]);
    assert_eq!(said.out, "");
}

#[test]
fn devices_and_ports_that_are_not_there_are_named_with_those_that_are() {
    let sim = Sim::start(Net::own("two-switches.net"));
    let run = |flags: &[&str]| sim.rsm("H0", &[&["run", "--once"], flags].concat());
    refused(&run(&["--device", "mlx5_0"]), "no device named `mlx5_0`; this host has: ibsim0");
    refused(&run(&["--device", "ibsim0", "--port", "7"]), "no port 7 on ibsim0; there are: ");
    refused(&run(&["--guid", "0x1234"]), "no port with GUID 0x0000000000001234; there are: ");
    refused(&sim.rsm("H0", &["discover", "--device", "nix"]), "no device named `nix`; this host has: ibsim0");
}

#[test]
fn a_port_without_a_link_is_refused_with_its_state() {
    let sim = Sim::start(Net::own("two-switches.net"));
    sim.console("Unlink \"H1\"[1]");
    for args in [&["run", "--once", "--device", "ibsim0"][..], &["discover", "--device", "ibsim0"]] {
        refused(&sim.rsm("H1", args), "its physical link is down");
    }
    let devices = sim.rsm("H1", &["devices"]).ok();
    assert!(devices.contains("Manageable: no: its physical link is down"), "{devices}");
}

#[test]
fn a_state_directory_that_is_none_is_named() {
    let sim = Sim::start(Net::own("two-switches.net"));
    let file = sim.dir.path().join("a-file");
    std::fs::write(&file, "not a directory").expect("file");
    let path = file.to_str().expect("text");
    let said = sim.rsm("H0", &["run", "--once", "--log-level", "error", "--state-dir", path]);
    refused(&said, path);
}

/// A corrupt file is set aside and reported, never obeyed and never fatal (B18).
#[test]
fn a_corrupt_state_file_is_set_aside() {
    let sim = Sim::start(Net::own("two-switches.net"));
    let (first, _) = crate::fabric::once(&sim, "H0", &[]);
    assert_eq!(first.code, Some(0), "{first:?}");
    let state = sim.dir.path().join("state-H0");
    let files = |name: &str| {
        let entries = std::fs::read_dir(&state).expect("state directory");
        entries.filter(|e| e.as_ref().expect("entry").file_name().to_string_lossy().starts_with(name)).count()
    };
    let name = "state.redb";
    assert_eq!(files(name), 1);
    std::fs::write(state.join(name), b"\xff\x00 this is no state file\n0x12zz 9\n").expect("damage");
    let (second, summary) = crate::fabric::once(&sim, "H0", &[]);
    assert_eq!(second.code, Some(0), "{second:?}");
    assert!(second.err.contains(name), "not reported:\n{}", second.err);
    assert!(files(name) >= 2, "the damaged file is kept beside the new one");
    assert_eq!(summary["lids_new"], 0, "the fabric still holds its LIDs: {summary}");
}

/// A wrong file at SIGHUP changes nothing, and the manager goes on (B69); a right one is taken; SIGUSR1 opens the log anew.
#[test]
fn signals_reload_and_reopen() {
    let sim = Sim::start(Net::own("two-switches.net"));
    let config = sim.dir.path().join("rsm.toml");
    let log = sim.dir.path().join("rsm.log");
    let moved = sim.dir.path().join("rsm.log.1");
    let write = |priority: &str| {
        let text = format!("[sm]\npriority = {priority}\n[log]\nfile = {log:?}\n");
        std::fs::write(&config, text).expect("configuration");
    };
    let lines = || std::fs::read_to_string(&log).unwrap_or_default();
    let priority =
        |expected: &str| sim.run("H1", "sminfo", &[]).ok().contains(&format!("priority {expected} "));
    write("3");
    let mut rsm = crate::fabric::bring_up(&sim, "H0", &["--config", config.to_str().expect("text")]);
    assert!(priority("3"));
    write("\"abc\"");
    rsm.signal("HUP");
    sim.wait_until("the refusal is in the log", || lines().contains("configuration not reloaded"));
    assert!(lines().contains(":2:12: sm.priority"), "{}", lines());
    assert!(rsm.alive() && priority("3"));
    write("5");
    rsm.signal("HUP");
    sim.wait_until("the new priority is answered", || priority("5"));
    std::fs::rename(&log, &moved).expect("rotation");
    rsm.signal("USR1");
    sim.wait_until("the log is there again", || log.exists());
    let ended = rsm.stop();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}
