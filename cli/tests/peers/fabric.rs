//! What stock tools say of a fabric, and whether it works by their account.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use crate::harness::Harness;
use crate::program::{LIMIT, Running, Said};

/// Runs `rsm run` on a node until its first round is over and good. Ends with the value.
pub(crate) fn bring_up(sim: &impl Harness, node: &str, args: &[&str]) -> Running {
    let state = sim.folder().join(format!("state-{node}"));
    let state = state.to_str().expect("text");
    let args = [&["run", "--state-dir", state], args].concat();
    let mut rsm = sim.spawn(node, env!("CARGO_BIN_EXE_rsm"), &args);
    wait_for_round(&mut rsm, 1);
    rsm
}

/// Rounds that changed something and ended well so far.
pub(crate) fn rounds(rsm: &Running) -> usize {
    rsm.out().matches("fabric is up").count()
}

/// Waits for the end of a round.
pub(crate) fn wait_for_round(rsm: &mut Running, number: usize) {
    let end = Instant::now() + LIMIT;
    while rounds(rsm) < number {
        assert!(rsm.alive(), "rsm ended\n{}\n{}", rsm.out(), rsm.err());
        assert!(Instant::now() < end, "the fabric is not up\n{}\n{}", rsm.out(), rsm.err());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// `rsm run --once --json` on a node, with a state folder of its own: the parsed summary.
pub(crate) fn once(sim: &impl Harness, node: &str, args: &[&str]) -> (Said, serde_json::Value) {
    let state = sim.folder().join(format!("state-{node}"));
    let args = [&["run", "--once", "--json", "--state-dir", state.to_str().expect("text")], args].concat();
    let said = sim.rsm(node, &args);
    let summary = serde_json::from_str(&said.out)
        .unwrap_or_else(|e| panic!("{}: not one JSON object: {e}\n{}\n{}", said.program, said.out, said.err));
    (said, summary)
}

/// A topology without the line that says when it was made.
pub(crate) fn undated(text: &str) -> String {
    let kept: Vec<&str> = text.lines().filter(|l| !l.starts_with("# Topology file: generated on ")).collect();
    assert_eq!(kept.len() + 1, text.lines().count(), "not one date line:\n{text}");
    kept.join("\n")
}

/// ibnetdiscover and `rsm discover` must agree byte for byte; returns what both say.
pub(crate) fn agreed_topology(sim: &impl Harness, node: &str) -> String {
    let theirs = undated(&sim.run(node, "ibnetdiscover", &[]).ok());
    let ours = undated(&sim.rsm(node, &["discover"]).ok());
    if theirs != ours {
        let (a, b) =
            theirs.lines().zip(ours.lines()).find(|(a, b)| a != b).unwrap_or(("(length)", "(length)"));
        panic!("ibnetdiscover and rsm discover differ, first in\n  {a}\n  {b}");
    }
    theirs
}

/// LIDs of host ports by (name, port) and of switches by name, out of ibnetdiscover's text.
#[derive(Debug, Default)]
pub(crate) struct Lids {
    pub(crate) hosts: BTreeMap<(String, u8), u16>,
    pub(crate) switches: BTreeMap<String, u16>,
}

impl Lids {
    pub(crate) fn read(topology: &str) -> Self {
        let mut lids = Self::default();
        let mut name = String::new();
        let mut host = false;
        for line in topology.lines() {
            let number = |after: &str| -> Option<u16> {
                line.split(after).nth(1)?.split_whitespace().next()?.parse().ok()
            };
            if line.starts_with("Switch") || line.starts_with("Ca") {
                host = line.starts_with("Ca");
                name = line.split("# \"").nth(1).and_then(|r| r.split('"').next()).expect("name").to_owned();
                if !host {
                    lids.switches.insert(name.clone(), number(" lid ").expect("lid of a switch"));
                }
            } else if host && line.starts_with('[') {
                let port = line[1..].split(']').next().and_then(|p| p.parse().ok()).expect("port");
                lids.hosts.insert((name.clone(), port), number("# lid ").expect("lid of a host port"));
            }
        }
        lids
    }

    /// All LIDs must be set and different.
    pub(crate) fn check(&self) {
        let mut by_lid = HashMap::new();
        let all = self.hosts.iter().map(|((n, p), l)| (format!("{n} port {p}"), *l));
        for (name, lid) in all.chain(self.switches.iter().map(|(n, l)| (n.clone(), *l))) {
            assert_ne!(lid, 0, "{name} has no LID");
            if let Some(other) = by_lid.insert(lid, name.clone()) {
                panic!("{name} and {other} both have LID {lid}");
            }
        }
    }

    /// All ordered pairs of different host ports.
    pub(crate) fn pairs(&self) -> Vec<(u16, u16)> {
        let lids: Vec<u16> = self.hosts.values().copied().collect();
        lids.iter().flat_map(|a| lids.iter().map(move |b| (*a, *b))).filter(|(a, b)| a != b).collect()
    }
}

/// ibtracert must find a way for every pair; four at a time, since ibsim takes ten clients.
pub(crate) fn trace_all(sim: &impl Harness, node: &str, pairs: &[(u16, u16)]) {
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((from, to)) =
                    pairs.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                {
                    let said = trace(sim, node, *from, *to);
                    assert!(reached(&said, *to), "no way from {from} to {to}\n{}\n{}", said.out, said.err);
                }
            });
        }
    });
}

/// One ibtracert by LIDs.
pub(crate) fn trace(sim: &impl Harness, node: &str, from: u16, to: u16) -> Said {
    sim.run(node, "ibtracert", &[&from.to_string(), &to.to_string()])
}

/// Whether a trace ended where it should.
pub(crate) fn reached(said: &Said, to: u16) -> bool {
    let last = said.out.lines().last().unwrap_or("");
    said.code == Some(0) && last.starts_with("To ") && last.contains(&format!("lid {to}-"))
}
