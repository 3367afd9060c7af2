//! `rsm simulate failures`: every case in three forms, and what is refused.

use std::path::Path;

use serde_json::Value;

use crate::rsm::{Said, rsm};

fn failures(args: &[&str]) -> Said {
    rsm(&[&["simulate", "failures"], args].concat())
}

fn net(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/nets").join(name);
    path.to_str().expect("text").to_owned()
}

#[test]
fn each_link_of_a_tree_is_played() {
    let tree = net("tree36.net");
    let said = failures(&[&tree, "--engine", "ftree", "--each-link", "--json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let rows: Vec<Value> = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!(rows.len(), 36);
    for row in &rows {
        let cost = &row["cost"];
        assert!(cost["connected"] == true && cost["right"] == true && cost["credit_loop"] == false, "{row}");
        assert!(cost["moved"].as_u64() >= cost["must_move"].as_u64(), "{row}");
        assert!(cost["must_move"].as_u64() > Some(0), "{row}");
        assert_eq!(
            row["moved_from_nothing"], cost["moved"],
            "the engine goes to the tables from nothing: {row}"
        );
        assert!(
            row["milliseconds"].as_f64() > Some(0.0)
                && row["milliseconds_from_standing"].as_f64() > Some(0.0)
        );
    }
    assert_eq!(said.err, "", "no progress bar where no terminal is");
}

/// Engines that repair move what they must, where tables from nothing have little in common with those before.
#[test]
fn what_is_moved_is_told_beside_what_routing_from_nothing_moves() {
    for engine in ["sssp", "nue"] {
        let said = failures(&[&net("torus4x4.net"), "--engine", engine, "--each-link", "--json"]);
        let rows: Vec<Value> = serde_json::from_str(&said.out).expect("JSON");
        assert_eq!(rows.len(), 32);
        let sum = |of: &dyn Fn(&Value) -> Option<u64>| {
            rows.iter().map(|row| of(row).expect("a number")).sum::<u64>()
        };
        let moved = sum(&|row| row["cost"]["moved"].as_u64());
        let from_nothing = sum(&|row| row["moved_from_nothing"].as_u64());
        assert!(moved >= sum(&|row| row["cost"]["must_move"].as_u64()));
        assert!(3 * moved < from_nothing, "{engine}: {moved} moved, {from_nothing} from nothing");
    }
}

#[test]
fn drawn_cases_are_the_same_in_a_table_and_as_values_with_commas() {
    let torus = net("torus4x4.net");
    let args = [&torus[..], "--engine", "updn,dfsssp", "--switches", "2", "--cases", "3", "--seed", "9"];
    let table = failures(&args);
    assert_eq!(table.code, Some(0), "{table:?}");
    assert!(table.out.contains("updn: 3 cases, 0 refused,"), "{}", table.out);
    let csv = failures(&[&args[..], &["--csv"]].concat());
    let lines: Vec<&str> = csv.out.lines().collect();
    assert_eq!(lines.len(), 1 + 6);
    assert!(
        lines[0].starts_with("engine,failed,connected,hosts lost,right,ms,ms from standing,"),
        "{}",
        lines[0]
    );
    for line in &lines[1..] {
        let failed = line.split('"').nth(1).expect("two names in quotes");
        assert!(table.out.contains(failed), "{failed}: {}", table.out);
    }
}

#[test]
fn what_cannot_be_played_is_refused() {
    let torus = net("torus4x4.net");
    let said = failures(&[&torus, "--links", "1000"]);
    assert!(
        said.refused(2).ends_with("1000 links between switches are to fail, the fabric has 32"),
        "{said:?}"
    );
    let said = failures(&[&torus, "--switches", "16"]);
    assert!(
        said.refused(2).ends_with("all 16 switches are to fail, one at least has to be left"),
        "{said:?}"
    );
    assert_eq!(failures(&[&torus]).code, Some(2));
    assert_eq!(failures(&[&torus, "--links", "1", "--each-link"]).code, Some(2));
    let said = failures(&[&torus, "--links", "1", "--engine", "ftree"]);
    assert!(said.refused(1).contains("no level of switches lies above those with hosts"), "{said:?}");
}

/// Alone and in a list, as `rsm route` does it; who routes is played all the same.
#[test]
fn too_few_lanes_are_input_that_cannot_be_used() {
    let torus = net("torus4x4.net");
    let with = |engines: &str| {
        let args = ["--links", "1", "--cases", "2", "--data-vls", "1", "--engine", engines];
        let said = failures(&[&[&torus[..]], &args[..]].concat());
        said.lacks_lanes("--data-vls", "dfsssp");
        said
    };
    with("dfsssp").refused(2);
    for list in ["updn,dfsssp", "dfsssp,updn"] {
        let said = with(list);
        assert!(said.out.contains("updn: 2 cases, 0 refused,"), "{}", said.out);
    }
    // What is no matter of lanes fails, and others are played.
    let said = failures(&[&torus, "--links", "1", "--cases", "2", "--engine", "ftree,updn"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.starts_with("rsm: ftree: no level of switches") && said.err.lines().count() == 1);
    assert!(said.out.contains("updn: 2 cases, 0 refused,"), "{}", said.out);
}
