//! `rsm simulate`: exit codes, explanations, and that a seed decides everything.

use std::path::{Path, PathBuf};

use crate::rsm::rsm;

/// One of the project's scenarios.
fn own(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../simulations/scenarios").join(name);
    path.to_str().expect("text").to_owned()
}

fn written(folder: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    std::fs::write(&path, text).expect("file");
    path.to_str().expect("text").to_owned()
}

/// A fabric that comes up; what is expected of it follows.
const LINE: &str = "about = \"two switches\"\n[fabric]\nkind = \"line\"\nswitches = 2\nhosts = 1\n";

#[test]
fn a_scenario_that_holds_ends_with_0() {
    let said = rsm(&["simulate", "scenario", &own("silent-host.toml")]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    assert!(said.out.starts_with("seed 1, right at "), "{said:?}");
}

#[test]
fn one_that_does_not_is_explained_with_time_events_and_packets() {
    let folder = tempfile::tempdir().expect("folder");
    let file = written(
        &folder,
        "no-manager.toml",
        &format!("{LINE}[[step]]\nat_ms = 1\ndo = \"reset\"\nnode = \"S1\"\n"),
    );
    let said = rsm(&["simulate", "scenario", &file, "--seed", "7"]);
    assert_eq!((said.code, said.err.as_str()), (Some(1), ""), "{said:?}");
    assert!(said.out.starts_with("seed 7, wrong at 120.001000 s\n- NotActive"), "{}", said.out);
    assert!(said.out.contains("0.001000000 -- do = \"reset\", node = \"S1\"\n"), "{}", said.out);
    let packets =
        said.out.lines().last().and_then(|line| line.strip_prefix("Every packet: ")).map(PathBuf::from);
    let packets = packets.unwrap_or_else(|| panic!("{}", said.out));
    assert_eq!(packets.file_name().expect("a file").to_str(), Some("rsm-no-manager-seed-7.pcapng"));
    std::fs::remove_file(packets).expect("written");
}

#[test]
fn the_same_seed_leaves_the_same_bytes() {
    let folder = tempfile::tempdir().expect("folder");
    let play = |number: u8| {
        let place = |kind: &str| folder.path().join(format!("{kind}{number}"));
        let (trace, pcap) = (place("trace"), place("pcap"));
        let said = rsm(&[
            "simulate",
            "scenario",
            &own("all-lost-for-a-while.toml"),
            "--seed",
            "3",
            "--trace",
            trace.to_str().expect("text"),
            "--pcap",
            pcap.to_str().expect("text"),
        ]);
        assert_eq!(said.code, Some(0), "{said:?}");
        (std::fs::read(trace).expect("trace"), std::fs::read(pcap).expect("pcap"))
    };
    let (one, two) = (play(1), play(2));
    assert!(one == two, "two runs of one seed differ");
    let lines = one.0.iter().filter(|byte| **byte == b'\n').count();
    assert!(lines > 300, "{lines} events");
}

#[test]
fn drawn_scenarios_are_counted() {
    let said = rsm(&["simulate", "chaos", "--seeds", "3", "--from", "1"]);
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (Some(0), "0 of 3 seeds fail\n", ""));
    for kind in ["--clients", "--managers"] {
        let said = rsm(&["simulate", "chaos", kind, "--seeds", "3", "--from", "1"]);
        assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (Some(0), "0 of 3 seeds fail\n", ""));
    }
}

#[test]
fn files_that_are_no_scenario_are_refused_with_their_place() {
    let folder = tempfile::tempdir().expect("folder");
    for (name, text, said) in [
        ("empty", "".to_owned(), "empty:1:1: missing field `about`"),
        ("key", format!("{LINE}[expect]\nwithin = 3\n"), "key:7:1: unknown field `within`"),
        ("toml", "about = \"x\n".to_owned(), "toml:1:"),
        (
            "node",
            format!("{LINE}[[step]]\nat_ms = 5\ndo = \"reset\"\nnode = \"S9\"\n"),
            "step at 5 ms: no node is called `S9`",
        ),
        ("config", format!("{LINE}[[manager]]\nnode = \"H0\"\nconfig.lids.lmc = 9\n"), "lids.lmc"),
        (
            "net",
            "about = \"x\"\n[fabric]\nkind = \"net\"\nnet = \"\"\"\nHca 1 \"H\"\n[2] \"S\"[1]\n\"\"\"\n"
                .to_owned(),
            "net:2:1: port 2 of",
        ),
        ("nodes", LINE.replace("switches = 2", "switches = 60000"), "number of switches is 60000"),
    ] {
        let file = written(&folder, name, &text);
        let refused = rsm(&["simulate", "scenario", &file]);
        assert!(refused.refused(2).contains(said), "{refused:?}");
    }
    assert!(rsm(&["simulate", "scenario", "/nonexistent"]).refused(2).contains("/nonexistent"));
}
