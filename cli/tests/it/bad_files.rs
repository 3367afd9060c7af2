//! Topology files that can't be used: file, line, column, what was found, what is allowed; never a panic, never a long wait.

use std::fs::File;
use std::io::{BufWriter, Write};

use crate::rsm::rsm;

/// The commands that read a topology, and how they are called.
fn commands(file: &str) -> [Vec<String>; 2] {
    [vec!["route", file], vec!["emulate", file, "--", "true"]]
        .map(|words| words.into_iter().map(str::to_owned).collect())
}

fn refused(file: &str, said: &str) {
    for command in commands(file) {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let refused = rsm(&words);
        assert!(refused.refused(2).contains(said), "{refused:?}\nexpected: {said}");
    }
}

#[test]
fn a_malformed_topology_is_refused_with_line_and_column() {
    let folder = tempfile::tempdir().expect("folder");
    let switch =
        |ports: &str, lines: &str| format!("Switch {ports} \"S\"\n{lines}\nHca 2 \"H\"\n[1] \"S\"[1]\n");
    for (name, text, said) in [
        ("empty", String::new(), "empty: the file is empty, expected ibnetdiscover output"),
        ("blank", "\n \n".into(), "blank: the file is empty"),
        ("prose", "Dear reader,\nthis is a letter.\n".into(), "prose: no line that belongs to a topology"),
        ("binary", "Switch\0\x01\x02".into(), "binary: the file is binary"),
        ("count", switch("300", ""), "count:1:8: found `300 \"S\"`, expected the number of ports"),
        ("beyond", switch("4", "[5] \"H\"[2]"), "beyond:2:"),
        ("peer", switch("4", "[2] \"X\"[1]"), "peer:2:1: peer \"X\", expected the name of a node"),
        ("far", switch("4", "[2] \"H\"[3]"), "far:2:"),
        ("twice", switch("4", "[2] \"H\"[1]"), "twice:"),
        (
            "name",
            "Switch 4 \"S\"\nSwitch 4 \"S\"\n".into(),
            "name:2:10: \"S\" a second time, expected each name once",
        ),
        (
            "guid",
            "switchguid=0x7\nSwitch 4 \"S\"\nswitchguid=0x7\nSwitch 4 \"T\"\n".into(),
            "guid:4:10: node GUID 0x0000000000000007 is there twice, expected each GUID once",
        ),
        ("hex", "switchguid=0xzz\nSwitch 4 \"S\"\n".into(), "hex:1:12: "),
        ("json", "{\"version\": 1, \"nodes\": 3}".into(), "json:1:"),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("file");
        refused(path.to_str().expect("text"), said);
    }
    refused("/nonexistent/net", "/nonexistent/net");
    refused(folder.path().to_str().expect("text"), "expected a file that can be read");
}

/// A capture whose two ends name each other differently: not a line of a switch agrees with the line of its host.
#[test]
fn a_link_whose_ends_disagree_is_told_with_its_line() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("net");
    std::fs::write(
        &path,
        "Switch 4 \"S\"\n[1] \"H\"[1]\n[2] \"H\"[2]\nHca 2 \"H\"\n[1] \"S\"[2]\n[2] \"S\"[1]\n",
    )
    .expect("file");
    refused(path.to_str().expect("text"), "net:");
}

/// Torn, garbled and binary files of every format that `rsm route` writes: an exit code of 0, 1 or 2, never more than one line
/// where it is 2, and nothing that moves a terminal's cursor. Marks before the text and lines of DOS do no harm.
#[test]
fn garbled_files_of_every_format_get_one_line() {
    let folder = tempfile::tempdir().expect("folder");
    let at = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
    assert_eq!(rsm(&["generate", "torus", "3x3", "--hosts", "1", "-o", &at("net")]).code, Some(0));
    assert_eq!(rsm(&["route", &at("net"), "--engine", "torus-2qos", "-o", &at("")]).code, Some(0));
    let (topology, tables) = (at("opensm-subnet.lst"), at("routes.json"));
    let seed = std::env::var("SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1_u64);
    let mut state = seed;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut refused = 0;
    for name in [
        "net",
        "opensm-subnet.lst",
        "opensm.fdbs",
        "opensm-lfts.dump",
        "routes.json",
        "opensm.mcfdbs",
        "path-sl.dump",
        "opensm-sl2vl.dump",
    ] {
        let whole = std::fs::read(at(name)).expect("a file");
        let mut odd: Vec<(String, Vec<u8>)> = vec![
            ("binary".into(), (0..2000).map(|_| random(256) as u8).collect()),
            ("dos".into(), String::from_utf8_lossy(&whole).replace('\n', "\r\n").into_bytes()),
            ("mark".into(), [b"\xef\xbb\xbf", &whole[..]].concat()),
        ];
        for number in 0..6 {
            let place = random(whole.len());
            odd.push((format!("torn {number}"), whole[..place].to_vec()));
            for (what, by) in [
                ("zero", &b"\0\0"[..]),
                ("bell", b"\x07\x1b[2J"),
                ("huge", b"99999999999999999999"),
                ("minus", b"-1"),
            ] {
                odd.push((format!("{what} {number}"), [&whole[..place], by, &whole[place..]].concat()));
            }
        }
        for (what, bytes) in odd {
            let file = at("odd");
            std::fs::write(&file, bytes).expect("file");
            let said = match name {
                "net" | "opensm-subnet.lst" => rsm(&["route", &file, "--engine", "updn"]),
                "opensm.mcfdbs" => rsm(&["verify", &topology, "--tables", &tables, "--multicast", &file]),
                "path-sl.dump" => {
                    rsm(&["verify", &topology, "--tables", &at("opensm.fdbs"), "--path-sl", &file])
                }
                "opensm-sl2vl.dump" => rsm(&["verify", &topology, "--tables", &tables, "--sl2vl", &file]),
                _ => rsm(&["verify", &topology, "--tables", &file]),
            };
            let text = format!("SEED={seed}, {name}, {what}: {said:?}");
            assert!(matches!(said.code, Some(0..=2)) && !said.err.contains("panicked"), "{text}");
            assert!(!said.err.contains(|c: char| c.is_control() && !['\n', '\t'].contains(&c)), "{text}");
            if said.code == Some(2) {
                refused += 1;
                // What is odd may be told before, each on its line.
                assert!(said.err.lines().all(|line| line.starts_with("rsm: ")), "{text}");
                assert!(said.err.contains(&file), "{text}");
            }
            assert!(said.code != Some(2) || !["dos", "mark"].contains(&what.as_str()), "{text}");
        }
    }
    assert!(refused > 100, "SEED={seed}: {refused}");
}

/// 200 MB that begin with nothing of a topology are not read to their end; those that do are read once, without copies of
/// their lines. Memory is bounded by `ulimit -v`: a command that needs more ends without its line.
#[test]
fn a_file_of_200_megabytes_takes_bounded_memory() {
    let folder = tempfile::tempdir().expect("folder");
    for (name, first, line) in [
        ("letters", "", "all work and no play makes a dull fabric\n"),
        ("zeros", "", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
        ("net", "Switch 4 \"S\"\n", "# all work and no play makes a dull fabric\n"),
    ] {
        let path = folder.path().join(name);
        let mut file = BufWriter::new(File::create(&path).expect("file"));
        file.write_all(first.as_bytes()).expect("room");
        let last = "\n[9] \"S\"[1]\n";
        (0..(200 << 20) / line.len()).for_each(|_| file.write_all(line.as_bytes()).expect("room"));
        file.write_all(last.as_bytes()).expect("room");
        file.flush().expect("room");
        let script =
            format!("ulimit -v 1000000; exec {} route {}", env!("CARGO_BIN_EXE_rsm"), path.display());
        let output = std::process::Command::new("sh").args(["-c", &script]).output().expect("sh");
        let said = crate::rsm::said(output);
        assert!(said.refused(2).contains(&path.display().to_string()), "{said:?}");
        std::fs::remove_file(path).expect("removed");
    }
    let path = folder.path().join("longer");
    let file = File::create(&path).expect("file");
    (&file).write_all(b"Switch 4 \"S\"\n").expect("room");
    file.set_len(300 << 20).expect("a hole");
    let said = rsm(&["route", path.to_str().expect("text")]);
    assert!(
        said.refused(2).contains("binary") || said.refused(2).contains("longer than any fabric"),
        "{said:?}"
    );
}
