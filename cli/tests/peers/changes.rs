//! What happens while `rsm run` runs: links that go and come, switches that leave, idle sweeps, lost datagrams; and what
//! ibsim saw on the wire of it.

use std::collections::BTreeMap;

use crate::fabric::{
    Lids, agreed_topology, bring_up, once, reached, rounds, trace, trace_all, wait_for_round,
};
use crate::harness::{Harness, on_both};
use crate::net::Net;
use crate::program::wait_until;
use crate::wire::WireLog;

on_both!(
    a_second_bring_up_sends_no_set,
    without_its_state_a_second_bring_up_honours_what_the_fabric_holds,
    idle_sweeps_send_no_set,
    a_link_goes_and_comes_back,
    a_switch_disappears_and_returns,
    a_lost_link_at_648_hosts_sets_the_blocks_that_change_and_nothing_else,
    ten_per_cent_of_datagrams_are_lost,
);

const LFT: u16 = 0x19;
const SWITCH_INFO: u16 = 0x12;

/// Until a trace between two LIDs works; the change before it may still be on its way.
fn wait_for_path(sim: &impl Harness, node: &str, from: u16, to: u16) {
    wait_until(&format!("{from} reaches {to}"), || reached(&trace(sim, node, from, to), to));
}

fn a_second_bring_up_sends_no_set<H: Harness>() {
    for net in ["two-switches.net", "tree36.net", "dual-port.net"] {
        let sim = H::start(Net::own(net));
        let (first, summary) = once(&sim, "H0", &[]);
        assert_eq!(first.code, Some(0), "{}\n{}", first.out, first.err);
        assert!(summary["failures"].as_array().expect("failures").is_empty(), "{summary}");
        let wire = WireLog::start(&sim);
        let (second, summary) = once(&sim, "H0", &[]);
        let seen = wire.stop();
        assert_eq!(second.code, Some(0), "{}\n{}", second.out, second.err);
        assert_eq!(seen.sets(), BTreeMap::new(), "{net}: Sets on the wire");
        assert!(summary["sets"].as_object().expect("sets").is_empty(), "{summary}");
        assert_eq!(summary["lids_new"], 0, "{summary}");
        assert_eq!(summary["lids_kept"], sim.net().host_ports() + sim.net().switches().count(), "{summary}");
    }
}

fn without_its_state_a_second_bring_up_honours_what_the_fabric_holds<H: Harness>() {
    let sim = H::start(Net::own("tree36.net"));
    let (_, _) = once(&sim, "H0", &[]);
    let before = Lids::read(&agreed_topology(&sim, "H0"));
    let other = sim.folder().join("another-state");
    let wire = WireLog::start(&sim);
    let said = sim.rsm("H0", &["run", "--once", "--state-dir", other.to_str().expect("text")]).ok();
    let seen = wire.stop();
    // What ports were seen not to keep is part of the state: it is tried once more, but no table, no LID.
    let sets = seen.sets();
    assert!(!sets.contains_key(&LFT) && !sets.contains_key(&SWITCH_INFO), "{sets:?}\n{said}");
    let after = Lids::read(&agreed_topology(&sim, "H0"));
    assert_eq!((before.hosts, before.switches), (after.hosts, after.switches));
}

fn idle_sweeps_send_no_set<H: Harness>() {
    let sim = H::start(Net::own("tree36.net"));
    let config = sim.folder().join("rsm.toml");
    std::fs::write(&config, "[sm]\nsweep_interval_s = 1\n").expect("configuration");
    let rsm = bring_up(&sim, "H0", &["--config", config.to_str().expect("text")]);
    let wire = WireLog::start(&sim);
    let switches = sim.net().switches().count();
    wait_until("three sweeps are over", || wire.seen().gets(SWITCH_INFO) >= 3 * switches);
    let seen = wire.stop();
    assert_eq!(seen.sets(), BTreeMap::new());
    assert_eq!(rsm.stop().code, Some(0));
}

fn a_link_goes_and_comes_back<H: Harness>() {
    let sim = H::start(Net::own("tree36.net"));
    let rsm = bring_up(&sim, "H0", &[]);
    let lids = Lids::read(&agreed_topology(&sim, "H0"));
    let lid = |name: &str| lids.hosts[&(name.to_owned(), 1)];
    // L0 has hosts on ports 1 to 6 and two cables to each of three spines.
    for change in ["Unlink \"L0\"[7]", "Unlink \"L0\"[8]", "ReLink \"L0\"[7]", "ReLink \"L0\"[8]"] {
        sim.console(change);
        // One host of each other leaf, both ways; then a sample of all pairs.
        for far in ["H6", "H12", "H18", "H24", "H30"] {
            let (near, far) = (lid("H0"), lid(far));
            wait_for_path(&sim, "H0", near, far);
            wait_for_path(&sim, "H0", far, near);
        }
        let pairs: Vec<(u16, u16)> = lids.pairs().into_iter().step_by(31).collect();
        trace_all(&sim, "H35", &pairs);
        let now = Lids::read(&agreed_topology(&sim, "H0"));
        assert_eq!(now.hosts, lids.hosts, "LIDs stay after {change}");
    }
    assert_eq!(rsm.stop().code, Some(0));
}

fn a_switch_disappears_and_returns<H: Harness>() {
    let sim = H::start(Net::own("tree36.net"));
    let mut rsm = bring_up(&sim, "H0", &[]);
    let lids = Lids::read(&agreed_topology(&sim, "H0"));
    let lid = |name: &str| lids.hosts[&(name.to_owned(), 1)];
    let before = rounds(&rsm);
    sim.console("Unlink \"L5\"");
    wait_for_round(&mut rsm, before + 1);
    wait_for_path(&sim, "H0", lid("H0"), lid("H29"));
    assert!(!reached(&trace(&sim, "H0", lid("H0"), lid("H30")), lid("H30")), "H30 is behind L5");
    sim.console("ReLink \"L5\"");
    wait_for_path(&sim, "H0", lid("H0"), lid("H30"));
    wait_for_path(&sim, "H0", lid("H35"), lid("H0"));
    let now = Lids::read(&agreed_topology(&sim, "H0"));
    assert_eq!((&now.hosts, &now.switches), (&lids.hosts, &lids.switches), "LIDs stay");
    let pairs: Vec<(u16, u16)> = lids.pairs().into_iter().step_by(11).collect();
    trace_all(&sim, "H35", &pairs);
    assert_eq!(rsm.stop().code, Some(0));
}

fn a_lost_link_at_648_hosts_sets_the_blocks_that_change_and_nothing_else<H: Harness>() {
    let sim = H::start(Net::own("tree648.net"));
    let tables = sim.folder().join("tables");
    let args = ["--dump-dir", tables.to_str().expect("text")];
    let mut rsm = bring_up(&sim, "H0", &args);
    let lids = Lids::read(&sim.run("H0", "ibnetdiscover", &[]).ok());
    let before = routes(&sim, &lids);
    let rounds_before = rounds(&rsm);
    let wire = WireLog::start(&sim);
    // L3 has hosts on ports 1 to 18 and one cable to each spine.
    sim.console("Unlink \"L3\"[25]");
    wait_for_round(&mut rsm, rounds_before + 1);
    let seen = wire.stop();
    let after = routes(&sim, &lids);
    let changed: usize = before
        .iter()
        .map(|(switch, old)| {
            let new = &after[switch];
            (0..old.len().max(new.len()).div_ceil(64)).filter(|b| block(old, *b) != block(new, *b)).count()
        })
        .sum();
    let sets = seen.sets();
    assert!(changed > 0, "{sets:?}");
    // The two switches at the link's ends are told that their change was seen; nothing else but tables is set.
    assert_eq!(sets.keys().copied().filter(|a| ![LFT, SWITCH_INFO].contains(a)).count(), 0, "{sets:?}");
    assert!(sets.get(&SWITCH_INFO).copied().unwrap_or(0) <= 2, "{sets:?}");
    let blocks = sets[&LFT];
    assert_eq!(blocks, changed, "blocks sent and blocks that differ");
    let pairs: Vec<(u16, u16)> = lids.pairs().into_iter().step_by(2111).collect();
    trace_all(&sim, "H1", &pairs);
    assert_eq!(rsm.stop().code, Some(0));
}

/// Output ports by LID of each switch, as ibroute reads them from the switches.
fn routes(sim: &impl Harness, lids: &Lids) -> BTreeMap<u16, Vec<u8>> {
    let read = |lid: &u16| {
        let said = sim.run("H1", "ibroute", &["-n", &lid.to_string()]).ok();
        let mut table = Vec::new();
        for line in said.lines().filter(|l| l.starts_with("0x")) {
            let mut words = line.split_whitespace();
            let lid = usize::from_str_radix(&words.next().expect("LID")[2..], 16).expect("LID");
            let port = words.next().expect("port").parse().expect("port");
            table.resize(table.len().max(lid + 1), 255);
            table[lid] = port;
        }
        (*lid, table)
    };
    lids.switches.values().map(read).collect()
}

/// The 64 entries of a block; what the tool left out counts as 255.
fn block(table: &[u8], number: usize) -> Vec<u8> {
    let mut entries: Vec<u8> = table.iter().skip(64 * number).take(64).copied().collect();
    entries.resize(64, 255);
    entries
}

fn ten_per_cent_of_datagrams_are_lost<H: Harness>() {
    let sim = H::start(Net::own("tree36.net"));
    for node in sim.net().nodes.clone() {
        sim.console(&format!("Error \"{}\" 10", node.name));
    }
    let rsm = bring_up(&sim, "H0", &[]);
    for node in sim.net().nodes.clone() {
        sim.console(&format!("Error \"{}\" 0", node.name));
    }
    let lids = Lids::read(&agreed_topology(&sim, "H0"));
    lids.check();
    assert_eq!(lids.hosts.len(), 36);
    let pairs: Vec<(u16, u16)> = lids.pairs().into_iter().step_by(7).collect();
    trace_all(&sim, "H35", &pairs);
    assert_eq!(rsm.stop().code, Some(0));
}
