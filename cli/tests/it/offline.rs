//! `rsm route` and `rsm verify`: tables written by one are found right by the other, a planted fault is named.

use std::path::Path;

use crate::rsm::{Said, rsm};

/// A net file of ours.
fn net(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/nets").join(name);
    path.to_str().expect("text").to_owned()
}

/// Every dump is right with what lies beside it, and tables of several lanes are wrong without.
#[test]
fn tables_of_every_engine_are_written_and_found_right() {
    let folder = tempfile::tempdir().expect("folder");
    let torus = folder.path().join("torus.net").to_str().expect("text").to_owned();
    assert_eq!(rsm(&["generate", "torus", "5x5", "--hosts", "2", "-o", &torus]).code, Some(0));
    for (engine, file, lanes) in [
        ("minhop", net("tree36.net"), false),
        ("ftree", net("tree36.net"), false),
        ("updn", net("torus4x4.net"), false),
        ("dfsssp", net("torus4x4.net"), true),
        ("lash", torus.clone(), true),
        ("nue", torus.clone(), true),
        ("torus-2qos", torus.clone(), true),
    ] {
        let directory = folder.path().join(engine);
        let directory = directory.to_str().expect("text");
        let routed = rsm(&["route", &file, "--engine", engine, "-o", directory]);
        assert_eq!(routed.code, Some(0), "{routed:?}");
        assert!(routed.out.contains(&format!("{engine}: right:")), "{}", routed.out);
        let topology = format!("{directory}/opensm-subnet.lst");
        let levels = format!("{directory}/path-sl.dump");
        for dump in ["opensm.fdbs", "opensm-lfts.dump", "routes.json"] {
            let path = format!("{directory}/{dump}");
            let verified = rsm(&["verify", &topology, "--tables", &path]);
            assert_eq!(verified.code, Some(0), "{engine}, {dump}: {verified:?}");
            let from = if dump == "routes.json" { &path } else { &levels };
            assert!(verified.out.contains(&format!("\nservice levels: from {from}\n")), "{}", verified.out);
            let json = rsm(&["verify", &topology, "--tables", &path, "--json"]);
            let found: serde_json::Value = serde_json::from_str(&json.out).expect("JSON");
            assert_eq!(found["service_levels"], **from);
            // Elsewhere nothing lies beside the tables.
            let alone = folder.path().join("alone").join(dump);
            std::fs::create_dir_all(alone.parent().expect("a folder")).expect("folder");
            std::fs::copy(&path, &alone).expect("a copy");
            let verified = rsm(&["verify", &topology, "--tables", alone.to_str().expect("text")]);
            // On one lane the lanes of `nue` may close a circle or not.
            if engine != "nue" {
                let closes = lanes && dump != "routes.json";
                assert_eq!(verified.out.contains("credit loop: "), closes, "{engine}, {dump}: {verified:?}");
            }
            let told = verified.out.contains(
                "\nservice levels: none with these tables, so all paths are judged on one lane; --path-sl and --sl2vl, ",
            );
            assert_eq!(told, dump != "routes.json", "{}", verified.out);
        }
        // The engine `file` takes them along.
        let again =
            rsm(&["route", &topology, "--engine", "file", "--tables", &format!("{directory}/opensm.fdbs")]);
        assert_eq!(again.code, Some(0), "{engine}: {again:?}");
    }
    // SL-to-VL tables that the head of the SLs names have to be there.
    let directory = folder.path().join("torus-2qos");
    std::fs::remove_file(directory.join("opensm-sl2vl.dump")).expect("removed");
    let at = |name: &str| directory.join(name).to_str().expect("text").to_owned();
    let said = rsm(&["verify", &at("opensm-subnet.lst"), "--tables", &at("opensm.fdbs")]);
    assert!(said.refused(2).contains("opensm-sl2vl.dump: "), "{said:?}");
}

/// One exit code for an engine, whether it is asked for alone, in a list or as the whole of a chain.
#[test]
fn an_engine_gives_the_same_exit_code_in_a_list() {
    let folder = tempfile::tempdir().expect("a folder");
    // Shortest paths over rings of four need no second lane if they are chosen well.
    let odd = folder.path().join("torus5x5.net").to_str().expect("text").to_owned();
    assert_eq!(rsm(&["generate", "torus", "5x5", "-o", &odd]).code, Some(0));
    let even = net("torus4x4.net");
    for (torus, engine, more, code) in [
        (&even, "updn", &[][..], 0),
        (&even, "minhop", &[], 1),
        (&even, "ftree", &[], 1),
        (&even, "dfsssp", &["--data-vls", "1"], 2),
        (&odd, "lash", &["--max-vls", "1"], 2),
    ] {
        let with = |engines: &str, chain: &[&str]| {
            let said = rsm(&[&["route", torus, "--engine", engines], more, chain].concat());
            assert_eq!(said.code, Some(code), "{engines}: {said:?}");
            said
        };
        let alone = with(engine, &[]);
        let chained = with(&format!("{engine},no_fallback"), &["--chain"]);
        let mut said = vec![alone, chained];
        said.extend([format!("updn,{engine}"), format!("{engine},updn")].map(|list| with(&list, &[])));
        for said in said.iter().filter(|_| code == 2) {
            said.lacks_lanes(more[0], engine);
        }
    }
    for list in ["no_fallback", "no_fallback,updn", "updn,no_fallback,minhop"] {
        let said = rsm(&["route", &even, "--chain", "--engine", list]);
        let text = format!("rsm: --engine {list}: no_fallback stands at the end, after an engine");
        assert_eq!(said.refused(2), text);
    }
}

/// Lanes that are just enough for unicast are enough for the multicast group of all hosts too.
#[test]
fn a_group_of_all_hosts_needs_no_lane_more() {
    let folder = tempfile::tempdir().expect("folder");
    let at = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
    let torus = at("torus.net");
    assert_eq!(rsm(&["generate", "torus", "5x5", "-o", &torus]).code, Some(0));
    for engine in ["dfsssp", "lash", "torus-2qos", "nue"] {
        let out = at(engine);
        let with = |vls: &&str| rsm(&["route", &torus, "--engine", engine, "--data-vls", vls, "-o", &out]);
        let enough = |said: &Said| said.code != Some(2);
        let (vls, said) = ["1", "2", "3", "4", "5", "6", "7", "8"]
            .iter()
            .map(|vls| (*vls, with(vls)))
            .find(|(_, said)| enough(said))
            .expect("eight lanes are enough");
        assert!(said.code == Some(0) && said.err.is_empty(), "{engine}: {said:?}");
        let inside = |name: &str| format!("{out}/{name}");
        let [topology, tables, multicast] = ["opensm-subnet.lst", "opensm.fdbs", "opensm.mcfdbs"].map(inside);
        let args = ["verify", &topology, "--tables", &tables, "--multicast", &multicast, "--data-vls", vls];
        let said = rsm(&args);
        assert_eq!(said.code, Some(0), "{engine}: {said:?}");
        assert!(
            said.out.contains("\nmulticast: right: 1 groups, 625 of 625 pairs"),
            "{engine}: {}",
            said.out
        );
        assert!(said.out.contains("no credit loop with unicast"), "{engine}: {}", said.out);
    }
}

/// With an LMC the LIDs of one port take different ways, by every engine that is asked; the tables are right again when they are
/// read for a topology that has no room for an LMC.
#[test]
fn lids_of_one_port_take_different_ways() {
    let folder = tempfile::tempdir().expect("folder");
    let torus = folder.path().join("torus.net").to_str().expect("text").to_owned();
    assert_eq!(rsm(&["generate", "torus", "4x4", "--hosts", "2", "-o", &torus]).code, Some(0));
    for (engine, file) in [
        ("minhop", net("tree36.net")),
        ("ftree", net("tree36.net")),
        ("updn", torus.clone()),
        ("dor", torus.clone()),
        ("torus-2qos", torus.clone()),
        ("dfsssp", torus.clone()),
        ("lash", torus.clone()),
        ("nue", torus.clone()),
    ] {
        let directory = folder.path().join(engine);
        let at = |name: &str| directory.join(name).to_str().expect("text").to_owned();
        let said = rsm(&["route", &file, "--engine", engine, "--lmc", "2", "-o", &at(""), "--json"]);
        let found: serde_json::Value = serde_json::from_str(&said.out).expect("JSON");
        let ways = found[0]["lmc"]["paths"]["mean"].as_f64().expect("a number");
        assert!(ways > 1.3, "{engine}: {}", found[0]["lmc"]);
        if engine == "ftree" {
            assert_eq!(found[0]["lmc"]["disjoint"], found[0]["lmc"]["pairs"], "four cables to four ways");
        }
        let verified =
            rsm(&["verify", &at("opensm-subnet.lst"), "--tables", &at("opensm.fdbs"), "--lmc", "2"]);
        assert_eq!(verified.code, said.code, "{engine}: {verified:?}");
        assert_eq!(verified.code, Some(i32::from(engine == "dor")), "{engine}: {verified:?}");
        assert!(
            verified.out.contains(&format!("\nLMC: {} of ", found[0]["lmc"]["disjoint"])),
            "{verified:?}"
        );
        assert_eq!(verified.err, "", "no LID is nobody's");
    }
    let topology = folder.path().join("updn/opensm-subnet.lst");
    let topology = topology.to_str().expect("text");
    let tables = folder.path().join("updn/opensm.fdbs");
    let said = rsm(&["verify", topology, "--tables", tables.to_str().expect("text"), "--lmc", "3"]);
    assert!(said.refused(2).starts_with(&format!("rsm: --lmc 3: {topology}: ")), "{said:?}");
    let said = rsm(&["route", &net("tree648.net"), "--lmc", "7"]);
    assert!(said.refused(2).contains("tree648.net with LMC 7: "), "{said:?}");
}

#[test]
fn a_planted_hole_is_named_with_the_lid() {
    let folder = tempfile::tempdir().expect("folder");
    let directory = folder.path().to_str().expect("text");
    assert_eq!(rsm(&["route", &net("tree36.net"), "-o", directory]).code, Some(0));
    let dump = folder.path().join("opensm-lfts.dump");
    let text = std::fs::read_to_string(&dump).expect("dump");
    let victim = text.lines().position(|line| line.starts_with("0x0007")).expect("LID 7");
    let holed: Vec<_> =
        text.lines().enumerate().filter(|(n, _)| *n != victim).map(|(_, line)| line).collect();
    std::fs::write(&dump, holed.join("\n") + "\n").expect("dump");
    let topology = format!("{directory}/opensm-subnet.lst");
    let verified = rsm(&["verify", &topology, "--tables", dump.to_str().expect("text")]);
    assert_eq!(verified.code, Some(1), "{verified:?}");
    assert!(
        verified.out.contains("WRONG") && verified.out.contains("first fault: LID 7"),
        "{}",
        verified.out
    );
}

/// A topology in which a LID is there twice is refused; ports that have none are told, in words and as JSON.
#[test]
fn lids_that_are_there_twice_or_not_at_all_are_told() {
    let folder = tempfile::tempdir().expect("folder");
    let directory = folder.path().to_str().expect("text");
    assert_eq!(rsm(&["route", &net("tree36.net"), "-o", directory]).code, Some(0));
    let text = std::fs::read_to_string(folder.path().join("opensm-subnet.lst")).expect("topology");
    let tables = folder.path().join("opensm.fdbs");
    let tables = tables.to_str().expect("text");
    let host = text.lines().find(|line| line.starts_with("{ CA ")).expect("a host");
    let word = |line: &str| {
        let place = line.find("} LID:").expect("a LID") + "} ".len();
        line[place..].split_whitespace().next().expect("a LID").to_owned()
    };
    let with = |from: &str, to: &str| {
        let path = folder.path().join("odd.lst");
        std::fs::write(&path, text.replace(&format!("}} {from} "), &format!("}} {to} "))).expect("file");
        let path = path.to_str().expect("text").to_owned();
        [vec!["route", &path], vec!["verify", &path, "--tables", tables]]
            .map(|args| (rsm(&args), args.join(" ")))
    };
    let other = text.lines().filter(|line| line.starts_with("{ CA ")).nth(1).expect("another host");
    for (said, args) in with(&word(other), &word(host)) {
        assert!(said.refused(2).starts_with("rsm: "), "{args}");
        assert!(said.refused(2).contains("odd.lst:") && said.refused(2).contains(" in line "), "{said:?}");
        assert_eq!(said.refused(2).matches("] has LID ").count(), 2, "{said:?}");
    }
    for (said, _) in with(&word(host), "LID:C350") {
        assert!(
            said.refused(2).contains("LID 50000, expected 1 to 49151, or 0 or 65535 for none"),
            "{said:?}"
        );
    }
    for none in ["LID:0000", "LID:FFFF"] {
        for (said, args) in with(&word(host), none) {
            assert_eq!(said.code, Some(0), "{said:?}");
            let told = "\n1 ports have no LID and are not checked: the first is \"H";
            assert!(said.out.contains(told), "{args}: {said:?}");
            let args: Vec<&str> = args.split(' ').chain(["--json"]).collect();
            let found: serde_json::Value = serde_json::from_str(&rsm(&args).out).expect("JSON");
            let found = if args[0] == "route" { &found[0] } else { &found };
            assert_eq!(found["without_lid"]["ports"], 1, "{found}");
            assert!(
                found["without_lid"]["first"].as_str().is_some_and(|name| name.ends_with("[1]")),
                "{found}"
            );
        }
    }
}

/// A LID twice in one table, a list of SLs of the wrong length: refused. What is odd is told with the file's name, once.
#[test]
fn tables_that_contradict_themselves_or_end_too_soon_are_refused() {
    let folder = tempfile::tempdir().expect("folder");
    let directory = folder.path().to_str().expect("text");
    let tree = net("tree36.net");
    assert_eq!(rsm(&["route", &tree, "-o", directory]).code, Some(0));
    let topology = format!("{directory}/opensm-subnet.lst");
    let with = |name: &str, from: &str, to: &str| {
        let text = std::fs::read_to_string(folder.path().join(name)).expect("tables");
        assert!(text.contains(from), "{from}");
        let path = folder.path().join(format!("odd-{name}"));
        std::fs::write(&path, text.replacen(from, to, 1)).expect("file");
        (rsm(&["verify", &topology, "--tables", path.to_str().expect("text")]), path.display().to_string())
    };
    let (said, path) = with("opensm.fdbs", "0x0002 :", "0x0001 :");
    assert!(said.refused(2).starts_with(&format!("rsm: {path}:")), "{said:?}");
    assert!(said.refused(2).contains("LID 1 a second time for switch"), "{said:?}");
    let (said, _) = with("opensm-lfts.dump", "0x0002 ", "0x0001 ");
    assert!(said.refused(2).contains("expected each LID once in a table"), "{said:?}");
    let (said, path) = with("routes.json", "\"default\"", "{\"by-destination\":[0,1]}");
    assert!(
        said.refused(2).starts_with(&format!("rsm: {path}: sl, a list of 2 SLs, expected one")),
        "{said:?}"
    );
    let (said, path) = with("opensm.fdbs", "0x0002 :", "0x0BAD :");
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.starts_with(&format!("rsm: {path}: 1 entries are for LIDs")), "{said:?}");
    assert_eq!(said.err.matches(&path).count(), 1, "{said:?}");
}

#[test]
fn input_that_is_no_topology_and_engines_that_are_none_are_refused() {
    let folder = tempfile::tempdir().expect("folder");
    let empty = folder.path().join("empty");
    std::fs::write(&empty, "").expect("file");
    let empty = empty.to_str().expect("text");
    assert!(rsm(&["route", empty]).refused(2).contains(empty));
    assert!(rsm(&["route", "/nonexistent/net"]).refused(2).contains("/nonexistent/net"));
    assert!(rsm(&["route", &net("tree36.net"), "--engine", "foo"]).refused(2).contains("there are: minhop"));
    assert!(rsm(&["verify", &net("tree36.net"), "--tables", empty]).refused(2).contains("LID"));
}

/// Two heavy flows that `minhop` sends over one cable of a torus are told apart, and little else moves.
#[test]
fn a_measured_load_moves_a_few_entries() {
    let folder = tempfile::tempdir().expect("folder");
    let at = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
    let torus = net("torus4x4.net");
    // minhop has a credit loop on a torus, so the exit code is 1; the tables are written all the same.
    assert_eq!(rsm(&["route", &torus, "-o", &at("")]).code, Some(1));
    let (topology, dump) = (at("opensm-subnet.lst"), at("opensm-lfts.dump"));
    let flows: String = (1..16).map(|i| format!("H0 H{i} {}\n", 10 * i)).collect();
    std::fs::write(at("flows"), flows).expect("flows");
    let worst = |dump: &str| {
        let said =
            rsm(&["simulate", "traffic", &topology, "--tables", dump, "--pattern", &at("flows"), "--json"]);
        let found: serde_json::Value = serde_json::from_str(&said.out).expect("JSON");
        found[0]["congestion"]["worst"]["max"].as_f64().expect("a number")
    };
    let said = rsm(&[
        "route",
        &topology,
        "--engine",
        "adaptive-minhop,minhop",
        "--tables",
        &dump,
        "--load",
        &at("flows"),
        "-o",
        &at("new"),
        "--json",
    ]);
    let judged: serde_json::Value = serde_json::from_str(&said.out).expect("JSON");
    let moved = judged[0]["moved"].as_u64().expect("a number");
    assert!((1..=16 * 16 / 20).contains(&moved), "{moved}");
    assert_eq!(judged[1]["moved"], 0, "minhop's own");
    assert!(worst(&at("new/opensm-lfts.dump")) < worst(&dump));

    let counters = "# Port counters: Lid 1 port 1\n";
    let load = |text: &str| {
        std::fs::write(at("counters"), text).expect("counters");
        rsm(&["route", &topology, "--engine", "adaptive-minhop", "--load", &at("counters")])
    };
    let row = "\nPortXmitData:..9\n";
    let foreign = format!("# Port counters: Lid 999 port 1{row}");
    assert!(
        load(&foreign).refused(2).contains("counters of no switch of this topology, the first of LID 999")
    );
    let lfts = std::fs::read_to_string(&dump).expect("tables");
    let own = lfts.split("switch Lid ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a LID");
    let said = load(&format!("{foreign}# Port counters: Lid {own} port 1{row}"));
    assert!(said.code != Some(2), "{said:?}");
    let note = "1 of 2 ports are of LIDs that nobody has in this topology, first LID 999 in line 1\n";
    assert!(said.err.contains(note), "{said:?}");
    let said = load(counters);
    assert!(said.refused(2).contains("counters:1:1: found `# Port counters: Lid 1 port 1`"), "{said:?}");
}

/// A place that can't be written to is told before anything is routed; what a run does not write of earlier tables is removed, and
/// nothing else.
#[test]
fn tables_are_written_whole_or_not_at_all() {
    let folder = tempfile::tempdir().expect("folder");
    let at = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
    let torus = net("torus4x4.net");
    std::fs::write(at("file"), "mine").expect("file");
    for (place, said) in [
        (at("file"), "File exists (os error 17)"),
        (at("file/below"), "Not a directory (os error 20)"),
        ("/proc/none".to_owned(), "No such file or directory (os error 2)"),
    ] {
        let refused = rsm(&["route", &torus, "-o", &place]);
        assert_eq!(refused.refused(2), format!("rsm: {place}: {said}, expected a directory to write into"));
    }
    assert_eq!(std::fs::read_to_string(at("file")).expect("file"), "mine");

    std::fs::create_dir(at("out")).expect("folder");
    std::fs::write(at("out/notes"), "mine").expect("file");
    let engine = |name: &str| rsm(&["route", &torus, "--engine", name, "-o", &at("out")]);
    let listed = || {
        let entries = std::fs::read_dir(at("out")).expect("folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text"));
        names.collect::<std::collections::BTreeSet<String>>()
    };
    assert_eq!(engine("torus-2qos").code, Some(0));
    let lanes = "opensm-sl2vl.dump".to_owned();
    let with_lanes = listed();
    assert!(with_lanes.contains(&lanes) && with_lanes.contains("notes"), "{with_lanes:?}");
    assert_eq!(engine("updn").code, Some(0));
    let without: std::collections::BTreeSet<String> =
        with_lanes.into_iter().filter(|name| *name != lanes).collect();
    assert_eq!(listed(), without);
    let verified = rsm(&["verify", &at("out/opensm-subnet.lst"), "--tables", &at("out/opensm.fdbs")]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    // One of the files can't be written: the judgement is there all the same.
    std::fs::remove_file(at("out/routes.json")).expect("removed");
    std::fs::create_dir(at("out/routes.json")).expect("folder");
    let said = engine("updn");
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.out.contains("updn: right: ") && said.err.contains("routes.json: Is a directory"),
        "{said:?}"
    );
}

/// What adaptive-minhop moves is tables in force, and a load moves it: without both it would be minhop by another name.
#[test]
fn adaptive_minhop_without_tables_and_load_is_refused() {
    for engines in ["adaptive-minhop", "minhop,adaptive-minhop"] {
        let said = rsm(&["route", &net("tree36.net"), "--engine", engines]);
        assert_eq!(
            said.refused(2),
            "rsm: --engine adaptive-minhop: give the tables in force (--tables) or a load (--load); without both it is minhop"
        );
    }
}

/// Port groups for adaptive routing: all cables to the spines of a tree as one group, proved; a torus' shortest ways are
/// refused.
#[test]
fn groups_are_formed_within_the_limit_and_judged() {
    let tree = net("tree36.net");
    let said = rsm(&["route", &tree, "--engine", "ftree,updn,minhop", "--adaptive", "--json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let found: serde_json::Value = serde_json::from_str(&said.out).expect("JSON");
    for engine in found.as_array().expect("engines") {
        // A spine has two cables to each of six leaves.
        assert_eq!(engine["summary"]["most_groups"], 6, "{engine}");
        assert_eq!(engine["report"]["credit_loop"], serde_json::Value::Null);
        let leaf = engine["switches"].as_array().expect("switches").iter().find(|s| s["name"] == "L0");
        assert_eq!(leaf.expect("L0")["groups"][0]["lids"].as_array().expect("LIDs").len(), 30);
    }
    let said = rsm(&["route", &net("torus4x4.net"), "--engine", "updn,minhop,dfsssp", "--adaptive"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.out.contains("right: all choices arrive, no credit loop"), "{}", said.out);
    assert!(
        said.out.contains("refused: minhop: the static tables, the escape of the groups"),
        "{}",
        said.out
    );
    assert!(said.out.contains("refused: dfsssp: it has no adaptive form"), "{}", said.out);
    assert_eq!(rsm(&["route", &tree, "--adaptive", "--group-cap", "0"]).code, Some(2));
}

/// opensm's torus-2QoS.conf says where coordinates begin; one that does not fit the fabric or can't be meant is named.
#[test]
fn a_torus_is_routed_by_the_operators_seeds() {
    let folder = tempfile::tempdir().expect("folder");
    let torus = net("torus4x4.net");
    let directory = folder.path().to_str().expect("text");
    assert_eq!(rsm(&["route", &torus, "-o", directory]).code, Some(1));
    let dump = std::fs::read_to_string(folder.path().join("opensm-lfts.dump")).expect("dump");
    let guid = |name: &str| {
        let line = dump.lines().find(|line| line.contains(&format!("({name})"))).expect("a switch");
        line.split_whitespace()
            .find(|word| word.starts_with("0x000") && word.len() == 18)
            .expect("its GUID")
            .to_owned()
    };
    let file = folder.path().join("torus-2QoS.conf");
    let file = file.to_str().expect("text");
    std::fs::write(file, "torus 4 4 1\nxp_link 0x1 0x2\nyp_link 0x1 0x3\n").expect("file");
    let away = rsm(&["route", &torus, "--engine", "torus-2qos", "--torus-conf", file]);
    assert_eq!(away.code, Some(1), "{away:?}");
    assert!(format!("{away:?}").contains("seed 1: switch 0x0000000000000001 is not there"), "{away:?}");
    let (origin, mut seeds) = (guid("S0_0"), "torus 4 4 1\n".to_owned());
    for (side, name) in [("xp", "S1_0"), ("xm", "S3_0"), ("yp", "S0_1"), ("ym", "S0_3")] {
        seeds += &format!("{side}_link {origin} {}\n", guid(name));
    }
    std::fs::write(file, seeds).expect("file");
    let routed = rsm(&["route", &torus, "--engine", "torus-2qos", "--torus-conf", file]);
    assert_eq!(routed.code, Some(0), "{routed:?}");
    std::fs::write(file, "torus 4 x 1\n").expect("file");
    let wrong = rsm(&["route", &torus, "--engine", "torus-2qos", "--torus-conf", file]);
    let refused = wrong.refused(2);
    assert!(refused.contains("torus-2QoS.conf:1:9: `x`, expected a number of switches"), "{refused}");
}

/// Detours of a dragonfly+ are formed and judged; they take a second lane, and no other engine has any.
#[test]
fn detours_of_a_dragonfly_plus_are_judged() {
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("dfp.net");
    let file = file.to_str().expect("text");
    let made = rsm(&[
        "generate",
        "dragonfly-plus",
        "-p",
        "2",
        "--leaves",
        "2",
        "--spines",
        "2",
        "--global",
        "2",
        "-g",
        "5",
        "-o",
        file,
    ]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let route = |more: &[&str]| {
        rsm(&[&["route", file, "--engine", "dragonfly-plus", "--adaptive", "--detours"], more].concat())
    };
    let routed = route(&[]);
    assert_eq!(routed.code, Some(0), "{routed:?}");
    assert!(routed.out.contains("right: all choices arrive, no credit loop"), "{}", routed.out);
    // A detour offers a leaf more exits than the direct links alone.
    let members = |out: &str| {
        let found: serde_json::Value = serde_json::from_str(out).expect("JSON");
        found[0]["summary"]["adaptive"].as_f64().expect("a share")
    };
    let direct = rsm(&["route", file, "--engine", "dragonfly-plus", "--adaptive", "--json"]);
    let detours = route(&["--json"]);
    assert!(members(&detours.out) > members(&direct.out), "{} {}", detours.out, direct.out);
    let narrow = route(&["--data-vls", "1"]);
    assert_eq!(narrow.code, Some(1), "{narrow:?}");
    assert!(format!("{narrow:?}").contains("needs 2 virtual lanes, the links have 1"), "{narrow:?}");
}
