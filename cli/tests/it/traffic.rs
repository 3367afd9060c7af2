//! `rsm simulate traffic`: figures that are known, the same as JSON and as a picture, and what is refused.

use std::path::Path;

use serde_json::Value;

use crate::rsm::rsm;

fn net(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/nets").join(name);
    path.to_str().expect("text").to_owned()
}

fn json(args: &[&str]) -> Value {
    let said = rsm(&[&["simulate", "traffic"], args, &["--json"]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    serde_json::from_str(&said.out).expect("JSON")
}

#[test]
fn engines_and_a_dump_are_compared_and_drawn() {
    let folder = tempfile::tempdir().expect("folder");
    let at = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
    let tree = net("tree36.net");
    assert_eq!(rsm(&["route", &tree, "--engine", "ftree", "-o", &at("")]).code, Some(0));
    let (topology, dump, picture) = (at("opensm-subnet.lst"), at("opensm.fdbs"), at("load.svg"));
    let said = rsm(&[
        "simulate",
        "traffic",
        &topology,
        "--engine",
        "ftree,sssp",
        "--tables",
        &dump,
        "--pattern",
        "shift",
        "--svg",
        &picture,
    ]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let rows: Vec<&str> = said.out.lines().filter(|line| line.contains(" 35 ")).collect();
    assert_eq!(rows.len(), 3, "{}", said.out);
    // D-mod-K carries every shift of a whole tree without contention, and the dump holds the same tables.
    let figures = |row: &str| row.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(figures(rows[0]), figures(rows[2]));
    assert_eq!(figures(rows[0])[3..6], ["1.0000", "0.0000", "1.0000"]);
    let picture = std::fs::read_to_string(picture).expect("picture");
    assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"));
    assert_eq!(picture.matches("<text").count(), 3 + 3, "heading, ends of the scale, a title for each panel");
}

#[test]
fn seeds_decide_and_flows_come_from_a_file() {
    let torus = net("torus4x4.net");
    let bisection = |seed| json(&[&torus, "--rounds", "20", "--seed", seed]);
    assert_eq!(bisection("1"), bisection("1"));
    assert_ne!(bisection("1"), bisection("2"));

    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("flows");
    std::fs::write(&file, "H0 H1 3\nH2 H1\n").expect("flows");
    let file = file.to_str().expect("text");
    let found = json(&[&torus, "--pattern", file]);
    let congestion = &found[0]["congestion"];
    assert_eq!(congestion["flows"], 2);
    // Both share the link to H1, in proportion to their weights.
    assert_eq!(congestion["bandwidth"]["mean"], (0.75 + 0.25) / 2.0);
    assert_eq!(congestion["histogram"]["counts"], serde_json::json!([0, 0, 0, 2]));
    assert!(found[0]["busiest"][0]["load"].as_u64() >= Some(3), "{found}");
}

#[test]
fn what_cannot_be_used_is_refused_with_its_place() {
    let torus = net("torus4x4.net");
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("flows");
    std::fs::write(&file, "H0 H1\nH0 H9999\n").expect("flows");
    let file = file.to_str().expect("text");
    let said = rsm(&["simulate", "traffic", &torus, "--pattern", file]);
    assert_eq!(
        said.refused(2),
        format!(
            "rsm: {file}:2:4: found `H9999`, expected the node name, GUID or LID of a host of this topology"
        )
    );
    let said = rsm(&["simulate", "traffic", &torus, "--pattern", "shifts"]);
    assert!(said.refused(2).contains("expected shift, alltoall, bisection, hotspot or a file"), "{said:?}");
    let said = rsm(&["simulate", "traffic", &torus, "--engine", "ftree,minhop", "--rounds", "5"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.out.contains("refused: ftree: "), "{}", said.out);
}

/// Alone and in a list, as `rsm route` does it; the others are measured all the same.
#[test]
fn too_few_lanes_are_input_that_cannot_be_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let torus = folder.path().join("torus5x5.net").to_str().expect("text").to_owned();
    assert_eq!(rsm(&["generate", "torus", "5x5", "-o", &torus]).code, Some(0));
    let with = |engines: &str| {
        let said =
            rsm(&["simulate", "traffic", &torus, "--engine", engines, "--rounds", "5", "--data-vls", "1"]);
        said.lacks_lanes("--data-vls", "lash");
        said
    };
    with("lash").refused(2);
    for list in ["updn,lash", "lash,updn"] {
        let said = with(list);
        assert!(said.out.lines().any(|line| line.trim_start().starts_with("updn ")), "{}", said.out);
        assert!(said.out.contains("refused: lash: needs "), "{}", said.out);
    }
}
