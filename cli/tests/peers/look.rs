//! Commands that only look: `rsm plan`, `rsm discover` in other forms, captures.

use std::process::Command;

use crate::fabric::once;
use crate::harness::{Harness, on_both};
use crate::net::Net;
use crate::wire::WireLog;

on_both!(
    plan_lists_what_run_then_sets_and_sets_nothing_itself,
    discover_has_other_forms,
    wireshark_dissects_a_capture_of_a_bring_up,
);

fn plan_lists_what_run_then_sets_and_sets_nothing_itself<H: Harness>() {
    let sim = H::start(Net::own("tree36.net"));
    let state = sim.folder().join("state-H0");
    let args = ["plan", "--json", "--state-dir", state.to_str().expect("text")];
    let wire = WireLog::start(&sim);
    let planned: serde_json::Value = serde_json::from_str(&sim.rsm("H0", &args).ok()).expect("JSON");
    assert!(wire.stop().sets().is_empty(), "plan has set something");
    assert!(!state.exists(), "plan has made a state directory");
    let planned = planned["sets"].as_array().expect("sets").len();

    let wire = WireLog::start(&sim);
    let (said, _) = once(&sim, "H0", &[]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let sent: usize = wire.stop().sets().values().sum();
    assert_eq!(planned, sent, "Sets planned and Sets seen on the wire");

    let after: serde_json::Value = serde_json::from_str(&sim.rsm("H0", &args).ok()).expect("JSON");
    assert_eq!(after["sets"].as_array().expect("sets").len(), 0, "{after}");
    let text = sim.rsm("H0", &["plan", "--state-dir", state.to_str().expect("text")]).ok();
    assert!(text.contains("0 Sets would be sent."), "{text}");
}

fn discover_has_other_forms<H: Harness>() {
    let sim = H::start(Net::own("torus4x4.net"));
    let json: serde_json::Value =
        serde_json::from_str(&sim.rsm("H0", &["discover", "--format", "json"]).ok()).expect("JSON");
    assert_eq!(json["nodes"].as_array().expect("nodes").len(), 32);
    assert_eq!(json["links"].as_array().expect("links").len(), 48);
    let dot = sim.rsm("H0", &["discover", "--format", "dot"]).ok();
    assert!(dot.starts_with("graph"), "{dot}");
    assert_eq!(dot.matches(" -- ").count(), 48, "{dot}");
}

fn wireshark_dissects_a_capture_of_a_bring_up<H: Harness>() {
    let sim = H::start(Net::own("two-switches.net"));
    let file = sim.folder().join("bring-up.pcapng");
    let path = file.to_str().expect("text");
    let (said, summary) = once(&sim, "H0", &["--capture", path]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let count = |filter: &str| {
        let output = Command::new("tshark").args(["-r", path, "-Y", filter]).output().expect("tshark");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).lines().count() as u64
    };
    let sent = summary["mads"]["sent"].as_u64().expect("a count");
    assert_eq!(count("infiniband.mad.method == 0x01 || infiniband.mad.method == 0x02"), sent);
    let sets: u64 = summary["sets"].as_object().expect("sets").values().filter_map(|v| v.as_u64()).sum();
    assert_eq!(count("infiniband.mad.method == 0x02"), sets);
    assert_eq!(count("infiniband.mad.method == 0x81"), sent);
    assert_eq!(count("_ws.malformed"), 0);
}
