//! `rsm query` beside saquery: the same records of the same subnet manager, rsm's and opensm's, on the emulator and ibsim.

use std::time::Duration;

use serde_json::Value;

use crate::emulator::Emulator;
use crate::fabric::bring_up;
use crate::harness::{Harness, on_both};
use crate::net::Net;
use crate::program::wait_until;

on_both!(tables_come_whole);

const RSM: &str = env!("CARGO_BIN_EXE_rsm");

/// Kinds of `rsm query` and of saquery, and the line that begins each record of the latter.
const KINDS: [(&str, &[&str], &str); 8] = [
    ("node", &["NR"], "NodeRecord dump"),
    ("port", &["PIR"], "PortInfoRecord dump"),
    ("link", &["LR"], "LinkRecord dump"),
    ("path", &["PR"], "PathRecord dump"),
    ("switch", &["SWIR"], "SwitchInfoRecord dump"),
    ("lft", &["LFTR"], "LFT Record dump"),
    ("mcast", &["-g"], "MCMemberRecord group dump"),
    ("sm", &["SMIR"], "SMInfoRecord dump"),
];

fn kinds_agree(emulator: &Emulator, manager: &str) {
    let ask = |args: &[&str]| {
        let said = emulator.run("H1", RSM, &[&["query"][..], args].concat()).ok();
        serde_json::from_str::<Value>(&said).expect("JSON")
    };
    for (kind, args, mark) in KINDS {
        let theirs = emulator.run("H1", "saquery", args).ok().matches(mark).count();
        let ours = ask(&[kind, "--json"]);
        assert_eq!(ours.as_array().map(Vec::len), Some(theirs), "{manager}: {kind}: {ours}");
        assert!(theirs > 0 || kind == "mcast", "{manager}: {kind}");
    }
    let named = ask(&["node", "--name", "H1", "--json"]);
    let guid = named[0]["NodeGUID"].as_str().expect("a GUID").to_owned();
    let lid = named[0]["LID"].to_string();
    assert_eq!(ask(&["node", "--guid", &guid, "--json"]), named, "{manager}");
    assert_eq!(ask(&["node", "--lid", &lid, "--json"]), named, "{manager}");
    let path = ask(&["path", "--from", "H1", "--to", &guid, "--json"]);
    assert_eq!((path[0]["SLID"].to_string(), path[0]["DLID"].to_string()), (lid.clone(), lid), "{manager}");
    let raw = emulator.run("H1", RSM, &["query", "node", "--name", "H1", "--raw"]).ok();
    assert_eq!(raw.trim().len(), 2 * 108, "{manager}: a NodeRecord has 108 bytes: {raw}");
    let class = ask(&["class-port-info", "--json"]);
    assert_eq!(class["ClassVersion"], 2, "{manager}");
}

#[test]
fn the_same_records_as_saquery_of_both_managers() {
    let emulator = Emulator::start(Net::own("two-switches.net"));
    let opensm = emulator.opensm("H0", &[]);
    opensm.wait_until_up(&emulator);
    kinds_agree(&emulator, "opensm");
    opensm.end();
    let _running = bring_up(&emulator, "H0", &[]);
    kinds_agree(&emulator, "rsm");
    let keys = emulator.run("H1", RSM, &["query", "pkey", "--sm-key", "0x1", "--json"]).ok();
    assert!(keys.contains("P_KeyTable") && keys.contains("ffff"), "{keys}");
}

/// Kinds whose records name a node by its LID, and the field that does.
const OF_NODES: [(&str, &str); 10] = [
    ("node", "LID"),
    ("port", "LID"),
    ("link", "FromLID"),
    ("switch", "LID"),
    ("lft", "LID"),
    ("mft", "LID"),
    ("slvl", "LID"),
    ("vlarb", "LID"),
    ("guids", "LID"),
    ("sm", "LID"),
];

/// Every kind that hosts registered something of, and every way to name a node. What a client that is killed had joined and
/// registered stays.
#[test]
fn registrations_and_filters() {
    let emulator = Emulator::start(Net::own("two-switches.net"));
    let _running = bring_up(&emulator, "H0", &[]);
    let ask = |args: &[&str]| {
        let said = emulator.run("H1", RSM, &[&["query"][..], args, &["--json"]].concat()).ok();
        serde_json::from_str::<Value>(&said).expect("JSON")
    };
    let count = |args: &[&str]| ask(args).as_array().map_or(0, Vec::len);
    // Each ends without notice and leaves what it had not taken back by then, which may be nothing: again.
    for (work, kind) in [("join", "mft"), ("service", "service"), ("subscribe", "inform")] {
        let leaves_something = || {
            let storm = emulator.spawn("H2", RSM, &["load", work, "--window=64", "--seconds=600"]);
            wait_until(kind, || count(&[kind]) > 0);
            storm.signal("KILL");
            drop(storm);
            std::thread::sleep(Duration::from_millis(500)); // what is under way is answered, and tables are programmed
            count(&[kind]) > 0
        };
        assert!((0..40).any(|_| leaves_something()), "{work}");
    }
    // What was under way when they ended may still be programmed.
    let marks = [
        ("mcast", &["-g"][..], "MCMemberRecord group dump"),
        ("mft", &["MFTR"], "MFT Record dump"),
        ("service", &["SR"], "ServiceRecord dump"),
        ("slvl", &["SL2VL"], "SL2VLTableRecord dump"),
        ("vlarb", &["VLAR"], "VLArbTableRecord dump"),
        ("guids", &["GIR"], "GUIDInfo Record dump"),
        ("inform", &["IIR"], "InformInfoRecord dump"),
    ];
    for (kind, args, mark) in marks {
        wait_until(kind, || {
            let theirs = emulator.run("H1", "saquery", args).ok().matches(mark).count();
            theirs == count(&[kind]) && theirs > 0
        });
    }
    let services = ask(&["service"]);
    let name = services[0]["ServiceName"].as_str().expect("a name");
    let named = ask(&["service", "--name", name]);
    assert!(
        named
            .as_array()
            .is_some_and(|named| !named.is_empty() && named.len() <= services.as_array().map_or(0, Vec::len))
    );
    let group = ask(&["mcast"])[0]["MGID"].as_str().expect("an MGID").to_owned();
    assert_eq!(count(&["mcast", "--mgid", &group]), 1);
    let mlid = ask(&["mcast", "--mgid", &group])[0]["MLID"].clone();
    let mlid = mlid.as_str().map_or_else(|| mlid.to_string(), str::to_owned);
    let of_mlid = ask(&["mcast", "--mlid", &mlid]);
    assert!(of_mlid.as_array().is_some_and(|found| found.iter().any(|r| r["MGID"] == *group)), "{of_mlid}");
    // H2 joined them, S0 none; to whom is not trusted, nothing of members is said.
    let trusted = |more: &[&str]| count(&[&["mcast", "--sm-key", "0x1"], more].concat());
    assert!(trusted(&["--name", "H2"]) > 0 && trusted(&["--name", "H2"]) <= trusted(&[]));
    assert_eq!((trusted(&["--name", "S0"]), trusted(&["--name", "S0", "--mlid", &mlid])), (0, 0));
    let own = &ask(&["node", "--name", "H2"])[0];
    let (lid, guid) = (own["LID"].to_string(), own["PortGUID"].as_str().expect("a GUID"));
    assert_eq!(trusted(&["--lid", &lid]), trusted(&["--name", "H2"]));
    let (by_mgid, by_mlid) = (["--guid", guid, "--mgid", &group], ["--guid", guid, "--mlid", &mlid]);
    assert!(trusted(&by_mgid) <= trusted(&by_mlid) && trusted(&by_mlid) <= trusted(&["--lid", &lid]));
    let said = emulator.run("H1", RSM, &["query", "mcast", "--lid", &lid]);
    assert_eq!((said.code, said.err.lines().count()), (Some(2), 1), "{said:?}");
    assert!(said.err.contains("need --sm-key"), "{said:?}");
    // ActCount goes on counting.
    let managers_by = |args: &[&str]| {
        let mut managers = ask(&[&["sm"], args].concat());
        managers.as_array_mut().expect("records").iter_mut().for_each(|record| record["ActCount"] = 0.into());
        managers
    };
    let managers = managers_by(&[]);
    let lid = managers[0]["LID"].to_string();
    assert_eq!(managers_by(&["--name", "H0"]), managers);
    assert_eq!(managers_by(&["--lid", &lid]), managers);
    for (kind, field) in OF_NODES {
        for node in ["S0", "H3"] {
            let own = &ask(&["node", "--name", node])[0];
            let (lid, guid) = (own["LID"].to_string(), own["NodeGUID"].as_str().expect("a GUID"));
            let named = ask(&[kind, "--name", node]);
            assert_eq!(ask(&[kind, "--lid", &lid]), named, "{kind} {node}");
            assert_eq!(ask(&[kind, "--guid", guid]), named, "{kind} {node}");
            let records = named.as_array().expect("records");
            assert!(records.iter().all(|record| record[field] == own["LID"]), "{kind} {node}: {named}");
            // The manager sits at another node.
            let none = kind == "sm" || ["switch", "lft", "mft"].contains(&kind) && node == "H3";
            assert_eq!(records.is_empty(), none, "{kind} {node}: {named}");
        }
    }
}

/// Whole tables by RMPP of our own, where ibsim's preload library cuts those of others.
fn tables_come_whole<H: Harness>() {
    let sim = H::start(Net::own("tree36.net"));
    let _running = bring_up(&sim, "H0", &[]);
    let nodes = sim.rsm("H1", &["query", "node", "--json"]).ok();
    let nodes: Value = serde_json::from_str(&nodes).expect("JSON");
    assert_eq!(nodes.as_array().map(Vec::len), Some(sim.net().nodes.len()));
}

#[test]
fn what_is_not_there_is_one_clear_line() {
    let emulator = Emulator::start(Net::own("two-switches.net"));
    let refused = |args: &[&str]| {
        let said = emulator.run("H1", RSM, &[&["query"][..], args].concat());
        assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{said:?}");
        assert_eq!(said.err.lines().count(), 1, "{said:?}");
        said.err
    };
    assert!(refused(&["node"]).contains("has no subnet manager yet"));
    let _running = bring_up(&emulator, "H0", &[]);
    assert!(refused(&["node", "--name", "nobody"]).contains("no node is called \"nobody\""));
    assert!(refused(&["lft", "--guid", "0x77"]).contains("no node or port has GUID 0x0000000000000077"));
    assert!(refused(&["pkey"]).contains("needs --sm-key"));
    assert!(refused(&["node", "--sm-key", "77"]).contains("a wrong --sm-key is not answered"));
}
