//! "What bad input gets", where there is a device.

use crate::harness::{Harness, on_both};
use crate::net::Net;
use crate::program::{Said, wait_until};

on_both!(
    devices_and_ports_that_are_not_there_are_named_with_those_that_are,
    a_port_without_a_link_is_refused_with_its_state,
    a_state_directory_that_is_none_is_named,
    a_corrupt_state_file_is_set_aside,
    signals_reload_and_reopen,
);

/// Exit code 1, one line that starts with `rsm: ` after the log's own lines, no panic.
fn refused(said: &Said, expected: &str) {
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(!said.err.contains("panicked") && !said.err.contains("RUST_BACKTRACE"), "{}", said.err);
    let complaints: Vec<&str> = said.err.lines().filter(|l| l.starts_with("rsm: ")).collect();
    assert_eq!(complaints.len(), 1, "{}", said.err);
    assert!(complaints[0].contains(expected), "{}", complaints[0]);
    assert_eq!(said.out, "");
}

fn devices_and_ports_that_are_not_there_are_named_with_those_that_are<H: Harness>() {
    let sim = H::start(Net::own("two-switches.net"));
    let own = H::DEVICE;
    let run = |flags: &[&str]| sim.rsm("H0", &[&["run", "--once"], flags].concat());
    let not_there = |name: &str| format!("no device named `{name}`; this host has: {own}");
    refused(&run(&["--device", "mlx5_0"]), &not_there("mlx5_0"));
    refused(&run(&["--device", own, "--port", "7"]), &format!("no port 7 on {own}; there are: "));
    refused(&run(&["--guid", "0x1234"]), "no port with GUID 0x0000000000001234; there are: ");
    refused(&sim.rsm("H0", &["discover", "--device", "nix"]), &not_there("nix"));
}

fn a_port_without_a_link_is_refused_with_its_state<H: Harness>() {
    let sim = H::start(Net::own("two-switches.net"));
    sim.console("Unlink \"H1\"[1]");
    for args in [&["run", "--once", "--device", H::DEVICE][..], &["discover", "--device", H::DEVICE]] {
        refused(&sim.rsm("H1", args), "its physical link is down");
    }
    let devices = sim.rsm("H1", &["devices"]).ok();
    assert!(devices.contains("Manageable: no: its physical link is down"), "{devices}");
}

fn a_state_directory_that_is_none_is_named<H: Harness>() {
    let sim = H::start(Net::own("two-switches.net"));
    let file = sim.folder().join("a-file");
    std::fs::write(&file, "not a directory").expect("file");
    let path = file.to_str().expect("text");
    let said = sim.rsm("H0", &["run", "--once", "--log-level", "error", "--state-dir", path]);
    refused(&said, path);
}

/// A corrupt file is set aside and reported, never obeyed and never fatal (B18).
fn a_corrupt_state_file_is_set_aside<H: Harness>() {
    let sim = H::start(Net::own("two-switches.net"));
    let (first, _) = crate::fabric::once(&sim, "H0", &[]);
    assert_eq!(first.code, Some(0), "{first:?}");
    let state = sim.folder().join("state-H0");
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
fn signals_reload_and_reopen<H: Harness>() {
    let sim = H::start(Net::own("two-switches.net"));
    let config = sim.folder().join("rsm.toml");
    let log = sim.folder().join("rsm.log");
    let moved = sim.folder().join("rsm.log.1");
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
    wait_until("the refusal is in the log", || lines().contains("configuration not reloaded"));
    assert!(lines().contains(":2:12: sm.priority"), "{}", lines());
    assert!(rsm.alive() && priority("3"));
    write("5");
    rsm.signal("HUP");
    wait_until("the new priority is answered", || priority("5"));
    std::fs::rename(&log, &moved).expect("rotation");
    rsm.signal("USR1");
    wait_until("the log is there again", || log.exists());
    let ended = rsm.stop();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}
