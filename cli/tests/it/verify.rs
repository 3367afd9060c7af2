//! `rsm verify` with what stands beside the unicast tables: SLs, SL-to-VL tables, multicast, roots.

use std::path::{Path, PathBuf};

use crate::rsm::{Said, rsm};

/// The tables of one engine, as `rsm route -o` writes them.
struct Written {
    folder: tempfile::TempDir,
}

impl Written {
    fn new(net: &str, engine: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/nets").join(net);
        Self::of(path.to_str().expect("text"), engine)
    }

    /// Of a topology anywhere; a credit loop is no matter here.
    fn of(path: &str, engine: &str) -> Self {
        let folder = tempfile::tempdir().expect("folder");
        let routed = rsm(&["route", path, "--engine", engine, "-o", folder.path().to_str().expect("text")]);
        assert!(routed.out.contains(" arrive from "), "{routed:?}");
        Self { folder }
    }

    /// Of a torus of 5 by 5 switches with a host each.
    fn of_torus(engine: &str) -> Self {
        let folder = tempfile::tempdir().expect("folder");
        let net = folder.path().join("net");
        let net = net.to_str().expect("text");
        assert_eq!(rsm(&["generate", "torus", "5x5", "--hosts", "1", "-o", net]).code, Some(0));
        Self::of(net, engine)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("a dump")
    }

    fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).expect("a file");
        self.path(name).to_str().expect("text").to_owned()
    }

    fn verify(&self, tables: &str, more: &[&str]) -> Said {
        let [topology, tables] = ["opensm-subnet.lst", tables].map(|name| self.path(name));
        let mut args =
            vec!["verify", topology.to_str().expect("text"), "--tables", tables.to_str().expect("text")];
        args.extend(more);
        rsm(&args)
    }
}

#[test]
fn multicast_tables_are_judged_with_and_without_a_list_of_members() {
    let written = Written::new("tree36.net", "updn");
    let dump = written.path("opensm.mcfdbs");
    let dump = dump.to_str().expect("text");
    let said = written.verify("opensm.fdbs", &["--multicast", dump]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("multicast: right: 1 groups"));

    // The last switch loses its entry: its hosts are members of the list only.
    let text = written.read("opensm.mcfdbs");
    let cut = text.trim_end().rfind("0xC000").expect("an entry");
    let broken = written.write("broken.mcfdbs", &format!("{}# end\n", &text[..cut]));
    let guids: Vec<String> = written
        .read("opensm-subnet.lst")
        .lines()
        .filter(|line| line.starts_with("{ CA"))
        .filter_map(|line| line.split("PortGUID:").nth(1)?.get(..16).map(str::to_owned))
        .collect();
    assert_eq!(guids.len(), 36);
    let list: String = guids.iter().map(|guid| format!("0xC000 0x{guid}\n")).collect();
    let members = written.write("members", &list);
    let said = written.verify("opensm.fdbs", &["--multicast", &broken, "--members", &members]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.out.contains("members not reached") && said.out.contains("first fault: MLID 0xC000"),
        "{}",
        said.out
    );
    let json = written.verify("opensm.fdbs", &["--multicast", &broken, "--members", &members, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!(json["multicast"]["first_fault"]["kind"], "missing");

    let odd = written.write("odd", "0xC000 0x99\n");
    let said = written.verify("opensm.fdbs", &["--multicast", dump, "--members", &odd]);
    assert!(
        said.refused(2).ends_with(":1:8: `0x99`, expected the GUID of a port of this topology, or sl"),
        "{said:?}"
    );
    let beyond = written.write("beyond", &text.replacen("0xC000 :", "0xC000 : 0x0FD ", 1));
    let said = written.verify("opensm.fdbs", &["--multicast", &beyond]);
    assert!(said.refused(2).contains("port 253 of switch"), "{said:?}");
}

#[test]
fn tables_of_lanes_are_taken_from_dumps() {
    let written = Written::of_torus("torus-2qos");
    assert_eq!(written.verify("routes.json", &[]).code, Some(0));
    let dump = written.path("opensm-sl2vl.dump");
    let said = written.verify("routes.json", &["--sl2vl", dump.to_str().expect("text")]);
    assert_eq!(said.code, Some(0), "{said:?}");
    // All on one lane.
    let one: String = written
        .read("opensm-sl2vl.dump")
        .lines()
        .map(|line| match line.split_once(':') {
            Some((ports, _)) if ports.starts_with(|c: char| c.is_ascii_digit()) => {
                format!("{ports}: {}\n", ["0"; 16].join(" "))
            }
            _ => format!("{line}\n"),
        })
        .collect();
    let one = written.write("one", &one);
    let said = written.verify("routes.json", &["--sl2vl", &one]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.out.contains("; credit loop: "), "{}", said.out);
    // Rows of the last switch are missing, few or many: the first is named. So is a 17th VL.
    let text = written.read("opensm-sl2vl.dump");
    let rows: Vec<&str> = text.lines().collect();
    for less in [3, 5, 8, 20] {
        let torn = written.write("torn", &(rows[..rows.len() - less].join("\n") + "\n"));
        let said = written.verify("routes.json", &["--sl2vl", &torn]);
        let line = said.refused(2);
        assert!(
            line.contains(" lines of switch \"") && line.contains(" are missing, the first that of "),
            "{line}"
        );
        assert!(
            line.ends_with("expected a line for each pair of its linked ports, as input port 0 too"),
            "{line}"
        );
    }
    let wide = written.write("wide", &text.replacen("\n0   1   : ", "\n0   1   : 0 ", 1));
    let said = written.verify("routes.json", &["--sl2vl", &wide]);
    assert!(said.refused(2).contains("expected the end of the line after 16 VLs"), "{said:?}");
    let torn = written.write("torn", "Switch 0x0000000000000001, base LID 1\n");
    let said = written.verify("routes.json", &["--sl2vl", &torn]);
    assert!(
        said.refused(2).contains(":1:10: switch 0x0000000000000001, expected the GUID of a switch"),
        "{said:?}"
    );
}

#[test]
fn turns_are_judged_by_roots_and_balance_is_shown_by_tier() {
    let written = Written::new("torus4x4.net", "minhop");
    let json: serde_json::Value = serde_json::from_str(&written.read("routes.json")).expect("JSON");
    let guid = json["switches"][0]["guid"].as_str().expect("a GUID");
    let roots = written.write("roots", guid);
    let said = written.verify("opensm.fdbs", &["--root-guids", &roots, "--tiers"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.out.contains("turns from down to up, first: LID") && said.out.contains("(down, then up)"),
        "{}",
        said.out
    );
    assert!(said.out.contains("\nlevel 0 to 0: 64 links"), "{}", said.out);
    // Roots that say nothing here are refused by both commands in the same words, whatever the engine.
    let topology = written.path("opensm-subnet.lst");
    let topology = topology.to_str().expect("text");
    let binary = written.path("binary");
    std::fs::write(&binary, b"\x7fELF\0\xff\xfe").expect("a file");
    let binary = binary.to_str().expect("text");
    for (list, said) in [
        (
            written.write("none", "0x99\n0x77\n").as_str(),
            ": none of the 2 GUIDs is a switch of this topology, the first is 0x0000000000000099",
        ),
        (&written.write("empty", ""), ": the list is empty, expected a line for each that is meant"),
        (
            &written.write("comments", "# to come\n"),
            ": the list is empty, expected a line for each that is meant",
        ),
        (binary, ":1:1: `\u{fffd}ELF\u{fffd}\u{fffd}\u{fffd}`, expected a GUID such as 0x0002c90300a1b2c1"),
        ("/nonexistent/roots", ": No such file or directory (os error 2), expected a file that can be read"),
        ("/tmp", ": Is a directory (os error 21), expected a file that can be read"),
    ] {
        let line = format!("rsm: {list}{said}");
        assert_eq!(written.verify("opensm.fdbs", &["--root-guids", list]).refused(2), line);
        for engine in ["minhop", "updn", "updn,minhop"] {
            let routed = rsm(&["route", topology, "--engine", engine, "--root-guids", list]);
            assert_eq!(routed.refused(2), line);
        }
    }
}

#[test]
fn input_that_is_torn_off_or_of_another_fabric_is_refused_with_its_place() {
    let written = Written::new("tree36.net", "minhop");
    for (name, tail) in
        [("opensm.fdbs", "LIDs up to"), ("opensm-lfts.dump", "lids dumped"), ("routes.json", "routes.json")]
    {
        let text = written.read(name);
        let lines: Vec<&str> = text.lines().collect();
        let torn = if lines.len() > 1 {
            lines[..lines.len() - 5].join("\n")
        } else {
            text[..text.len() / 2].to_owned()
        };
        written.write("torn", &torn);
        let said = written.verify("torn", &[]);
        let line = said.refused(2);
        let place = line.split("torn:").nth(1).and_then(|rest| rest.split(':').next()?.parse::<usize>().ok());
        assert!(place.is_some() && line.contains(tail), "{line}");
    }
    let text = written.read("opensm.fdbs").replacen(" : 001 ", " : 201 ", 1);
    written.write("port", &text);
    assert!(written.verify("port", &[]).refused(2).contains("port 201 of switch"));
    // LIDs that nobody has do no harm, but are told.
    let text = written.read("opensm-lfts.dump").replacen("0x0001 ", "0x7001 ", 1);
    written.write("lid", &text);
    let said = written.verify("lid", &[]);
    assert!(
        said.err.contains(
            "1 entries are for LIDs that nobody has in this topology, first LID 28673 of switch \"L"
        ) && said.err.contains("\" in line "),
        "{said:?}"
    );
    let json = written.verify("lid", &["--json"]);
    let found: serde_json::Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!(format!("rsm: {}\n", found["notes"][0].as_str().expect("a note")), said.err);
}

/// Files that are empty or can't be read, for every flag of the two commands that takes one: one line that says so, and what is
/// expected.
#[test]
fn empty_and_missing_files_are_refused_for_every_flag() {
    let written = Written::new("tree36.net", "updn");
    let [topology, tables, multicast] = ["opensm-subnet.lst", "opensm.fdbs", "opensm.mcfdbs"]
        .map(|name| written.path(name).to_str().expect("text").to_owned());
    let verify = ["verify", &topology, "--tables", &tables];
    let route = ["route", &topology, "--engine", "updn"];
    let adaptive = ["route", &topology, "--engine", "adaptive-minhop"];
    let members = ["verify", &topology, "--tables", &tables, "--multicast", &multicast];
    let cases: [(&[&str], &str); 16] = [
        (&["verify", &topology], "--tables"),
        (&verify, "--multicast"),
        (&members, "--members"),
        (&verify, "--path-sl"),
        (&verify, "--sl2vl"),
        (&verify, "--root-guids"),
        (&route, "--root-guids"),
        (&route, "--cn-guids"),
        (&route, "--io-guids"),
        (&route, "--ids"),
        (&route, "--hop-weights"),
        (&route, "--port-order"),
        (&route, "--torus-conf"),
        (&route, "--tables"),
        (&adaptive, "--tables"),
        (&adaptive, "--load"),
    ];
    let empty = written.write("empty", "");
    let folder = written.folder.path().to_str().expect("text");
    for (args, flag) in cases {
        for (file, said) in [
            (empty.as_str(), "empty"),
            ("/dev/null", "empty"),
            (
                "/nonexistent/file",
                ": No such file or directory (os error 2), expected a file that can be read",
            ),
            (folder, ": Is a directory (os error 21), expected a file that can be read"),
        ] {
            let refused = rsm(&[args, &[flag, file]].concat());
            let line = refused.refused(2);
            let found =
                line.strip_prefix(&format!("rsm: {file}")).unwrap_or_else(|| panic!("{flag}: {line}"));
            assert!(found.contains(said) && found.contains("expected "), "{flag}: {line}");
        }
    }
}

/// Cut between two tables: a dump of unicast tables may have been written without the switch, so it is judged, and its holes are
/// faults (1); the note says both. A multicast dump of ours has an end (2); in one of opensm's the copies to the switches
/// without a table are faults (1).
#[test]
fn dumps_that_are_cut_between_tables_are_told() {
    let written = Written::new("tree36.net", "updn");
    let text = written.read("opensm.fdbs");
    let places: Vec<usize> = text.match_indices("dump_ucast_routes").map(|(place, _)| place).collect();
    for place in &places[1..] {
        written.write("cut", &text[..*place]);
        let said = written.verify("cut", &[]);
        assert_eq!(said.code, Some(1), "{said:?}");
        assert!(said.err.contains(" switches have no table, the first is \""), "{said:?}");
        assert!(said.err.contains("or it was cut off between two tables"), "{said:?}");
        let json = written.verify("cut", &["--json"]);
        let found: serde_json::Value = serde_json::from_str(&json.out).expect("JSON");
        assert!(json.err.contains(found["notes"][0].as_str().expect("a note")), "{json:?}");
    }
    let text = written.read("opensm.mcfdbs");
    let opensm: String = text.lines().filter(|l| !l.starts_with('#')).map(|l| format!("{l}\n")).collect();
    let whole = written.write("whole", &opensm);
    assert_eq!(written.verify("opensm.fdbs", &["--multicast", &whole]).code, Some(0));
    for (text, ours) in [(&text, true), (&opensm, false)] {
        for (place, _) in text.match_indices("\nSwitch").skip(1) {
            let cut = written.write("cut", &text[..=place]);
            let said = written.verify("opensm.fdbs", &["--multicast", &cut]);
            if ours {
                assert!(said.refused(2).contains("the dump ends too soon, expected `# end`"), "{said:?}");
                continue;
            }
            assert_eq!(said.code, Some(1), "{said:?}");
            assert!(
                said.out.contains(" copies to switches without an entry; first fault: MLID 0xC000, "),
                "{said:?}"
            );
        }
    }
}

/// A walk by more hops than there have to be is no fault, but the first is named, in words and as JSON.
#[test]
fn the_first_detour_is_named_with_its_path() {
    let written = Written::of_torus("updn");
    let said = written.verify("opensm.fdbs", &[]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let json = written.verify("opensm.fdbs", &["--json"]);
    let found: serde_json::Value = serde_json::from_str(&json.out).expect("JSON");
    assert!(found["hops"]["detours"].as_u64().is_some_and(|detours| detours > 0), "{found}");
    let first = &found["first_detour"];
    let (hops, fewest) = (first["hops"].as_u64().expect("hops"), first["fewest"].as_u64().expect("hops"));
    let path = first["path"].as_array().expect("a path");
    assert!(hops > fewest && path.len() as u64 == hops + 1, "{first}");
    let text = format!(" detours, the first: LID {}, {hops} hops where {fewest} suffice: \"", first["lid"]);
    assert!(said.out.contains(&text), "{}", said.out);
    let straight = Written::new("tree36.net", "updn").verify("opensm.fdbs", &["--json"]);
    let found: serde_json::Value = serde_json::from_str(&straight.out).expect("JSON");
    assert_eq!((&found["hops"]["detours"], &found["first_detour"]), (&0.into(), &serde_json::Value::Null));
}

/// VLs are those that packets go on, not those that tables have room for: torus-2qos on eight lanes has tables for a second level
/// of service that no path has.
#[test]
fn lanes_are_counted_where_packets_use_them() {
    let written = Written::of_torus("torus-2qos");
    for (vls, right) in [("8", true), ("4", true), ("2", true), ("1", false)] {
        let said = written.verify("routes.json", &["--data-vls", vls]);
        assert_eq!(said.code, Some(i32::from(!right)), "{said:?}");
        assert!(said.out.contains("; VLs in use: 2"), "{said:?}");
        assert_eq!(said.out.contains("hops on a VL that the links do not have"), !right, "{said:?}");
    }
}

#[test]
fn an_engine_that_needs_more_lanes_says_how_many() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/nets/torus4x4.net");
    let said = rsm(&["route", path.to_str().expect("text"), "--engine", "dfsssp", "--data-vls", "1"]);
    let line = said.refused(2);
    assert!(
        line.starts_with("rsm: --data-vls 1: dfsssp: needs ")
            && line.ends_with("virtual lanes, the links have 1"),
        "{line}"
    );
}

/// The exit code of `rsm route` is what `rsm verify` says of the tables that it wrote, those of the group of all hosts included.
#[test]
fn route_and_verify_agree_on_the_group_of_all_hosts() {
    let folder = tempfile::tempdir().expect("folder");
    let at = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
    let net = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/nets/torus4x4.net");
    for engine in ["dfsssp", "lash", "nue"] {
        let routed = rsm(&["route", net.to_str().expect("text"), "--engine", engine, "-o", &at("")]);
        let (topology, tables, groups) = (at("opensm-subnet.lst"), at("routes.json"), at("opensm.mcfdbs"));
        let verified = rsm(&["verify", &topology, "--tables", &tables, "--multicast", &groups]);
        assert_eq!(routed.code, verified.code, "{routed:?}\n{verified:?}");
        let named = format!("rsm: {engine}: multicast group 0x");
        assert_eq!(routed.code == Some(1), routed.err.starts_with(&named), "{routed:?}");
    }
}

/// Engines that promise nothing may leave no room for a tree where they happen to close no credit loop: `rsm route` names the group
/// of all hosts and ends with 1, though the unicast tables are right. Others keep room on the same fabric.
#[test]
fn a_group_without_a_tree_is_named_and_ends_with_1() {
    let folder = tempfile::tempdir().expect("folder");
    let at = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
    let random = ["generate", "random-regular", "--switches", "8", "--degree", "4", "-o", &at("net")];
    assert_eq!(rsm(&random).code, Some(0));
    let route = |engine| rsm(&["route", &at("net"), "--engine", engine, "-o", &at("")]);
    let narrow = route("dor");
    assert_eq!(narrow.code, Some(1), "{narrow:?}");
    assert!(narrow.out.contains("dor: right:"), "{narrow:?}");
    let named =
        "rsm: dor: multicast group 0xc000: no tree was found that closes no credit loop with unicast: ";
    assert!(narrow.err.starts_with(named), "{narrow:?}");
    let files = ["opensm-subnet.lst", "opensm.fdbs", "opensm.mcfdbs"].map(at);
    let verify = |more: &[&str]| rsm(&[&["verify", &files[0], "--tables", &files[1]], more].concat());
    assert_eq!(verify(&[]).code, Some(0), "unicast alone");
    let both = verify(&["--multicast", &files[2]]);
    assert_eq!(both.code, Some(1), "{both:?}");
    assert!(both.out.contains("credit loop with unicast: "), "{both:?}");
    for engine in ["updn", "dfsssp", "lash", "nue"] {
        let wide = route(engine);
        assert_eq!((wide.code, wide.err.as_str()), (Some(0), ""), "{wide:?}");
    }
}
