//! `rsm load`: many questions at once, storms of joins and leaves, registrations made anew, each answered rightly and none
//! lost; as ibsim's own client programs do it, with checks.

use crate::emulator::Emulator;
use crate::fabric::bring_up;
use crate::harness::Harness;
use crate::net::Net;
use crate::program::{Running, Said, wait_until};
use crate::sim::Sim;

/// The figures of a run that went well.
fn right(said: Said) -> u64 {
    let text = said.ok();
    let figures: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let count = |name: &str| figures[name].as_u64().expect("a count");
    assert_eq!((count("wrong"), count("refused"), count("lost")), (0, 0, 0), "{text}");
    assert_eq!(count("requests"), count("right"), "{text}");
    count("right")
}

const STORM: [&str; 10] =
    ["load", "mixed", "--clients", "3", "--window", "64", "--count", "4000", "--json", "--timeout=30000"];

/// Five hosts ask at once. No request is repeated: each reply that is lost is seen. Afterwards nothing is left behind.
#[test]
fn no_reply_is_lost_in_a_storm() {
    let emulator = Emulator::start(Net::own("tree36.net"));
    let _manager = bring_up(&emulator, "H0", &[]);
    let binary = env!("CARGO_BIN_EXE_rsm");
    let hosts = ["H1", "H2", "H3", "H4", "H5"];
    let clients: Vec<Running> = hosts.iter().map(|host| emulator.spawn(host, binary, &STORM)).collect();
    for client in clients {
        // What is begun is finished: left, withdrawn.
        assert!(right(client.finish()) >= 4000);
    }
    let left = emulator.run("H6", "saquery", &["SR"]).ok();
    assert!(!left.contains("ServiceRecord"), "{left}");
    let groups = emulator.run("H6", "saquery", &["-g"]).ok();
    assert!(!groups.contains("6c6f:6164"), "{groups}");
    let subscribe = ["load", "subscribe", "--window=64", "--count=1000", "--json", "--timeout=30000"];
    assert!(right(emulator.run("H1", binary, &subscribe)) >= 1000);
    assert_eq!(emulator.run("H6", "saquery", &["IIR"]).ok().matches("InformInfoRecord").count(), 0);
    assert!(
        right(emulator.run("H1", binary, &["load", "all-paths", "--window=2", "--count=6", "--json"])) == 6
    );
}

/// The same with both on ibsim. Its preload library is not made for several threads, so that there is one client.
#[test]
fn no_reply_is_lost_on_ibsim() {
    let sim = Sim::start(Net::own("two-switches.net"));
    let _manager = bring_up(&sim, "H0", &[]);
    let args = ["load", "mixed", "--window=64", "--count=4000", "--json", "--timeout=30000"];
    assert!(right(sim.run("H1", env!("CARGO_BIN_EXE_rsm"), &args)) >= 4000);
}

#[test]
fn what_goes_wrong_is_one_line_and_not_success() {
    let emulator = Emulator::start(Net::own("tree36.net"));
    let binary = env!("CARGO_BIN_EXE_rsm");
    let said = emulator.run("H1", binary, &["load", "path"]);
    assert_eq!((said.code, said.err.lines().count()), (Some(1), 1), "{said:?}");
    assert!(said.err.contains("no subnet manager"), "{said:?}");
    for (args, allowed) in [
        (&["load"][..], "<WORK>"),
        (&["load", "everything"], "path, all-paths, join, service, subscribe, mixed"),
        (&["load", "path", "--clients=0"], "1..=64"),
        (&["load", "path", "--window=5000"], "1..=4096"),
        (&["load", "path", "--count=3", "--seconds=2"], "cannot be used with"),
    ] {
        let said = emulator.run("H1", binary, args);
        assert_eq!(said.code, Some(2), "{args:?}: {said:?}");
        assert!(said.err.contains(allowed), "{args:?}: {said:?}");
    }
}

/// SIGTERM while five hosts ask as fast as they can (B71): what was acknowledged is kept, the port is no subnet manager's any
/// more, and the next run goes on.
#[test]
fn b71_it_ends_well_under_load() {
    let emulator = Emulator::start(Net::own("tree36.net"));
    let manager = bring_up(&emulator, "H0", &[]);
    let is_sm = || emulator.run("H0", "smpquery", &["-D", "portinfo", "0", "1"]).ok().contains("IsSM\n");
    assert!(is_sm());
    let binary = env!("CARGO_BIN_EXE_rsm");
    let args = ["load", "mixed", "--window=64", "--seconds=600", "--timeout=200", "--retries=0", "--json"];
    let clients: Vec<Running> =
        ["H1", "H2", "H3", "H4", "H5"].iter().map(|host| emulator.spawn(host, binary, &args)).collect();
    let services = || emulator.run("H6", "saquery", &["SR"]).ok().matches("ServiceRecord").count();
    wait_until("services are registered", || services() > 0);
    let said = manager.stop();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(!said.err.contains("ERROR"), "{}", said.err);
    assert!(!is_sm());
    // Who asks is not held up by who left.
    drop(clients);
    let again = bring_up(&emulator, "H0", &[]);
    assert!(services() > 0, "what was registered when it ended is still there");
    assert_eq!(again.stop().code, Some(0));
}
