//! `rsm run` on each net, judged by stock tools.

use rand::SeedableRng;
use rand::seq::SliceRandom;

use crate::fabric::{Lids, agreed_topology, bring_up, reached, trace, trace_all};
use crate::harness::{Harness, on_both};
use crate::ibdmchk;
use crate::net::Net;
use crate::sa;

on_both!(
    two_switches,
    tree_of_36_hosts,
    torus_4_by_4,
    adapters_with_two_ports,
    tree_of_648_hosts,
    ibsims_own_examples,
    a_wrong_table_fails_the_trace,
);

/// Brings a net up and asks every tool. At most `most` pairs are traced, picked at random.
fn check<H: Harness>(net: Net, most: usize) {
    let sim = H::start(net);
    let nodes = sim.net().attachable();
    let (manager, other) = (&nodes[0], nodes.last().expect("a host"));
    let tables = sim.folder().join("tables");
    let rsm = bring_up(&sim, manager, &["--dump-dir", tables.to_str().expect("text")]);

    let topology = agreed_topology(&sim, manager);
    assert_eq!(agreed_topology(&sim, other).lines().count(), topology.lines().count());
    let lids = Lids::read(&topology);
    lids.check();
    assert_eq!(lids.hosts.len(), sim.net().host_ports());
    assert_eq!(lids.switches.len(), sim.net().switches().count());

    let master = sim.run(other, "sminfo", &[]).ok();
    assert!(master.contains("SMINFO_MASTER"), "{master}");
    let own = lids.hosts[&(manager.clone(), 1)];
    assert!(master.contains(&format!("sm lid {own} ")), "{master} should name lid {own}");

    let mut pairs = lids.pairs();
    if pairs.len() > most {
        let seed = crate::seed();
        let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(seed);
        pairs = pairs.partial_shuffle(&mut random, most).0.to_vec();
    }
    trace_all(&sim, other, &pairs);

    sa::check(&sim, other, &lids);
    ibdmchk::check(&tables, lids.hosts.len());
    let ended = rsm.stop();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
}

fn two_switches<H: Harness>() {
    check::<H>(Net::own("two-switches.net"), usize::MAX);
}

fn tree_of_36_hosts<H: Harness>() {
    check::<H>(Net::own("tree36.net"), 300);
}

fn torus_4_by_4<H: Harness>() {
    check::<H>(Net::own("torus4x4.net"), usize::MAX);
}

fn adapters_with_two_ports<H: Harness>() {
    check::<H>(Net::own("dual-port.net"), usize::MAX);
}

fn tree_of_648_hosts<H: Harness>() {
    check::<H>(Net::own("tree648.net"), 200);
}

fn ibsims_own_examples<H: Harness>() {
    for name in ["net", "net.1", "net.2sw2path", "net.2sw2path4hca", "net.2sw2path4hca2port"] {
        check::<H>(Net::example(name), usize::MAX);
    }
}

/// The traces above prove something only if a wrong table fails them.
fn a_wrong_table_fails_the_trace<H: Harness>() {
    let sim = H::start(Net::own("two-switches.net"));
    let _rsm = bring_up(&sim, "H0", &[]);
    let lids = Lids::read(&agreed_topology(&sim, "H0"));
    let lid = |host: &str| lids.hosts[&(host.to_owned(), 1)];
    assert!(reached(&trace(&sim, "H2", lid("H2"), lid("H1")), lid("H1")));
    // S0 is the switch of H0 and H2; its port 2 leads to H2.
    let spoilt = sim.run("H0", &crate::example("set_lft"), &[&lid("H1").to_string(), "2", "1"]);
    assert_eq!(spoilt.code, Some(0), "{}", spoilt.err);
    let said = trace(&sim, "H2", lid("H2"), lid("H1"));
    assert!(!reached(&said, lid("H1")), "{}", said.out);
}
