//! `rsm generate`: every kind in every form is read back to the same fabric, and other commands take it.

use std::collections::BTreeSet;

use routing::fabric::{Fabric, PortRef};
use routing::formats;

use crate::rsm::rsm;

/// Every kind, with parameters of a small one, and how many nodes and links it has.
const KINDS: [(&str, usize, usize); 10] = [
    ("xgft -m 4,5 -w 1,2", 20 + 5 + 2, 20 + 10),
    ("pgft -m 4,5 -w 1,2 -p 1,2", 20 + 5 + 2, 20 + 20),
    ("full-tree 4", 16 + 20, 16 + 32),
    ("torus 4x3 --hosts 2", 24 + 12, 24 + 24),
    ("torus 3x3x3", 27 + 27, 27 + 81),
    ("hyperx 3x3 --hosts 2", 18 + 9, 18 + 18),
    ("dragonfly -p 2 -a 4 --global 2 -g 5", 40 + 20, 40 + 30 + 20),
    ("dragonfly-plus -p 2 --leaves 2 --spines 2 --global 1 -g 3", 12 + 12, 12 + 12 + 3),
    ("kautz --degree 2 --diameter 2", 12 + 12, 12 + 21),
    ("random-regular --switches 12 --degree 4", 12 + 12, 12 + 24),
];

/// Each cable as its two ends, by GUID and port.
fn cables(fabric: &Fabric) -> BTreeSet<[(u64, u8); 2]> {
    let end = |end: PortRef| (fabric.node(end.node).guid.0, end.port.0);
    fabric
        .links()
        .map(|link| {
            let mut ends = [end(link.a), end(link.b)];
            ends.sort_unstable();
            ends
        })
        .collect()
}

fn generate(arguments: &str) -> String {
    let mut words = vec!["generate"];
    words.extend(arguments.split_whitespace());
    let said = rsm(&words);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{arguments}");
    said.out
}

#[test]
fn every_kind_in_every_form_is_read_back_to_the_same_fabric() {
    for (kind, nodes, links) in KINDS {
        let json =
            formats::parse("json", &generate(&format!("{kind} --lids --format json"))).expect(kind).fabric;
        assert_eq!((json.node_count(), json.link_count()), (nodes, links), "{kind}");
        for format in ["ibsim", "text"] {
            let text = generate(&format!("{kind} --lids --format {format}"));
            let fabric =
                formats::parse(format, &text).unwrap_or_else(|error| panic!("{kind}: {error}")).fabric;
            assert_eq!(cables(&fabric), cables(&json), "{kind} as {format}");
            for (_, node) in json.nodes() {
                let other = fabric.node(fabric.find(node.guid).expect("the same GUIDs"));
                assert_eq!((node.kind, &node.description), (other.kind, &other.description), "{kind}");
                let lids = |n: &routing::fabric::Node| {
                    n.end_ports().map(|(_, p)| (p.lid, p.speed)).collect::<Vec<_>>()
                };
                assert_eq!(lids(node), lids(other), "{kind} as {format}: {}", node.description);
            }
        }
    }
}

#[test]
fn what_is_generated_is_routed_and_the_same_command_writes_the_same_bytes() {
    let folder = tempfile::tempdir().expect("folder");
    for (index, (kind, ..)) in KINDS.iter().enumerate() {
        let path = folder.path().join(index.to_string());
        let path = path.to_str().expect("text");
        assert_eq!(generate(&format!("{kind} -o {path}")), "");
        assert_eq!(std::fs::read_to_string(path).expect("written"), generate(kind));
        let routed = rsm(&["route", path, "--engine", "updn"]);
        assert_eq!(routed.code, Some(0), "{kind}: {routed:?}");
    }
}

#[test]
fn variations_change_what_they_say() {
    let links = |options: &str| {
        let text = generate(&format!("xgft -m 4,8 -w 1,6 --format json {options}"));
        let fabric = formats::parse("json", &text).expect("JSON").fabric;
        (fabric.node_count(), fabric.link_count())
    };
    assert_eq!(links(""), (32 + 14, 32 + 48));
    assert_eq!(links("--missing-switches 2"), (32 + 12, 32 + 32));
    assert_eq!(links("--dual-port"), (32 + 14, 64 + 48));
    assert_eq!(links("--dual-rail"), (64 + 14, 64 + 48));
    let (_, some) = links("--missing-links 20 --seed 5");
    assert!((32 + 20..32 + 48).contains(&some), "{some}");
    let slow = generate("xgft -m 4,8 -w 1,6 --degraded-links 50");
    assert!(slow.contains("1xSDR") && slow.contains("4xEDR"));
    let odd = generate("xgft -m 4,8 -w 1,6 --odd-names --format text");
    assert!(odd.contains("'quoted'") && odd.contains(" - spare"), "{odd}");
}

/// With whatever options: names that trip parsers over, some of which an ibsim net file can't have, two rails, what is missing.
#[test]
fn b76_what_options_make_is_read_back_from_every_form() {
    for kind in ["full-tree 4", "torus 4x3 --hosts 2", "random-regular --switches 8 --degree 3"] {
        for options in [
            "--odd-names",
            "--dual-rail --odd-names",
            "--dual-port",
            "--missing-links 10 --degraded-links 20",
        ] {
            let made = |format: &str| {
                let text = generate(&format!("{kind} {options} --format {format}"));
                formats::parse(format, &text)
                    .unwrap_or_else(|error| panic!("{kind} {options}: {error}"))
                    .fabric
            };
            let json = made("json");
            let ascii =
                |text: &str| text.bytes().map(|b| if b.is_ascii() { char::from(b) } else { ' ' }).collect();
            let names = |fabric: &Fabric, format: &str| -> BTreeSet<(u64, String)> {
                // ibnetdiscover prints blanks for what is not ASCII.
                let name = |text: &String| if format == "text" { ascii(text) } else { text.clone() };
                fabric.nodes().map(|(_, node)| (node.guid.0, name(&node.description))).collect()
            };
            for format in ["ibsim", "text"] {
                let fabric = made(format);
                assert_eq!(cables(&fabric), cables(&json), "{kind} {options} as {format}");
                assert_eq!(names(&fabric, format), names(&json, format), "{kind} {options} as {format}");
            }
        }
    }
}

#[test]
fn parameters_that_make_no_network_are_refused_in_one_line() {
    for (arguments, said) in [
        ("full-tree 60", "58500 end ports are needed, but there are only 49151 unicast LIDs"),
        ("torus 40x40x40", "number of switches is 64000: expected 1 to 49151"),
        ("xgft -m 4,4 -w 1", "m has 2 levels, w has 1"),
        ("random-regular --switches 5 --degree 3", "5"),
        ("hyperx 300 --hosts 1", "size of a dimension is 300: expected 1 to 255"),
        ("kautz --degree 60 --diameter 9", "expected"),
        ("torus 4x4 --missing-switches 3", "3 missing switches: only 0 switches have no hosts"),
    ] {
        let mut words = vec!["generate"];
        words.extend(arguments.split_whitespace());
        let line = rsm(&words);
        assert!(line.refused(2).contains(said), "{arguments}: {line:?}");
    }
    for (arguments, said) in [
        ("torus 4xfour", "`four`: expected numbers"),
        ("full-tree 7", "expected an even number from 2 to 254"),
        ("torus 4 --missing-links 101", "expected 0 to 100"),
        ("cube 3", "unrecognized subcommand 'cube'"),
    ] {
        let mut words = vec!["generate"];
        words.extend(arguments.split_whitespace());
        let refused = rsm(&words);
        assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{refused:?}");
        assert!(refused.err.lines().next().is_some_and(|line| line.contains(said)), "{refused:?}");
    }
    let folder = rsm(&["generate", "line", "2", "-o", "/nonexistent/folder/file"]);
    assert!(folder.refused(1).contains("/nonexistent/folder/file"));
}
