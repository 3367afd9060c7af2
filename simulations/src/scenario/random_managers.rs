//! Drawn scenarios in which only subnet managers and the cables between them fail: several managers, with and without state
//! directories, mirrored state and an etcd, that are killed, stopped, cut off with their cable or their node, split from each other and
//! joined again, while clients are registered. Since no other port loses anything, all of them must keep their LIDs.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::random::{FAULTS_MS, Names, fabric};
use super::random_clients::{SECRET, clients};
use super::{EtcdSpec, EtcdTrouble, Expect, Fault, ManagerSpec, Network, Scenario, Step};

/// What tells this stream from others.
const STREAM: u64 = 0x6d61_6e61_6765_7273;
/// The same for what becomes of etcd.
const ETCD_STREAM: u64 = 0x6574_6364;
const LEAST_TROUBLE_MS: u64 = 2_500;
/// Milliseconds in which the fabric comes up undisturbed.
const CALM_MS: u64 = 8_000;
/// Hosts at least: a manager can be elsewhere than the clients.
const LEAST_HOSTS: u32 = 4;

/// The scenario of a seed; the same on every machine.
pub fn random_with_managers(seed: u64) -> Scenario {
    let mut rng = Pcg64Mcg::seed_from_u64(seed ^ STREAM);
    let (fabric, names) = loop {
        let fabric = fabric(&mut rng);
        let names = Names::of(&fabric);
        if names.hosts >= LEAST_HOSTS {
            break (fabric, names);
        }
    };
    let mut manager = managers(&mut rng, &names);
    let etcd = etcd(seed);
    manager.iter_mut().for_each(|manager| manager.etcd.clone_from(&etcd));
    let mut step: Vec<Step> = (0..rng.random_range(3..=10))
        .map(|_| Step {
            at_ms: rng.random_range(CALM_MS..FAULTS_MS),
            fault: fault(&mut rng, &names, &manager),
        })
        .collect();
    step.sort_by_key(|step| step.at_ms);
    step.push(Step { at_ms: FAULTS_MS, fault: Fault::Heal });
    for number in 0..manager.len() {
        if step.iter().any(|step| step.fault == Fault::Kill { manager: number }) {
            step.push(Step { at_ms: FAULTS_MS + 1, fault: Fault::Restart { manager: number } });
        }
    }
    let network = Network {
        jitter_us: if rng.random_bool(0.5) { 200 } else { 0 },
        training_ms: if rng.random_bool(0.5) { 50 } else { 0 },
        ..Network::default()
    };
    Scenario {
        about: format!("drawn from seed {seed}, managers fail"),
        fabric,
        network,
        clients: clients(&mut rng, &names),
        manager,
        step,
        expect: Expect { within_s: 180, kept_lids: true, ..Expect::default() },
    }
}

/// Two or three, with the same habits.
fn managers(rng: &mut Pcg64Mcg, names: &Names) -> Vec<ManagerSpec> {
    let mut hosts: Vec<u32> = (0..names.hosts).collect();
    let (store, mirror) = (rng.random_bool(0.5), rng.random_bool(0.5));
    let mut config = toml::Table::new();
    let mut section = |name: &str, key: &str, value: toml::Value| {
        config.insert(name.into(), toml::Table::from_iter([(key.to_owned(), value)]).into());
    };
    if rng.random_bool(0.3) {
        section("sm", "sticky", true.into());
    }
    if rng.random_bool(0.3) {
        section("failover", "lid_takeover", "never".into());
    }
    (0..rng.random_range(2..=3))
        .map(|_| ManagerSpec {
            node: format!("H{}", hosts.swap_remove(rng.random_range(0..hosts.len()))),
            priority: rng.random_range(0..=10),
            start_ms: rng.random_range(0..3_000),
            store,
            secret: mirror.then(|| SECRET.into()),
            etcd: None,
            config: config.clone(),
        })
        .collect()
}

/// In half of the scenarios the managers share an etcd, which in most of these is away, late or wiped now and then. From a stream of its
/// own: what else a seed draws stays as it is.
fn etcd(seed: u64) -> Option<EtcdSpec> {
    let mut rng = Pcg64Mcg::seed_from_u64(seed ^ ETCD_STREAM);
    if rng.random_bool(0.5) {
        return None;
    }
    let mut at_ms = rng.random_range(0..FAULTS_MS / 2);
    let mut trouble = Vec::new();
    for _ in 0..rng.random_range(0..4) {
        // Long enough for standbys, which look every other second, to know of it.
        let until_ms = at_ms + rng.random_range(LEAST_TROUBLE_MS..8_000);
        if until_ms > FAULTS_MS {
            break;
        }
        trouble.push(match rng.random_range(0..4) {
            0 => EtcdTrouble::Refusing { at_ms, until_ms },
            1 => EtcdTrouble::Silent { at_ms, until_ms },
            2 => EtcdTrouble::Late { at_ms, until_ms, by_ms: [30, 300, 900, 2_000][rng.random_range(0..4)] },
            _ => EtcdTrouble::Wiped { at_ms },
        });
        at_ms = until_ms + rng.random_range(1..10_000);
    }
    Some(EtcdSpec { answer_us: [300, 5_000][rng.random_range(0..2)], trouble })
}

fn fault(rng: &mut Pcg64Mcg, names: &Names, managers: &[ManagerSpec]) -> Fault {
    let manager = rng.random_range(0..managers.len());
    let node = managers[manager].node.clone();
    match rng.random_range(0..12) {
        0 | 1 => Fault::Kill { manager },
        2 | 3 => Fault::Restart { manager },
        4 => Fault::Freeze { manager },
        5 => Fault::Thaw { manager },
        6 => Fault::Unlink { port: (node, 1) },
        7 => Fault::Relink { port: (node, 1) },
        8 => {
            let switch = names.switches[rng.random_range(0..names.switches.len())].clone();
            Fault::Split { nodes: vec![node, switch] }
        }
        9 => Fault::Merge,
        10 => Fault::Loss { share: [0.0, 0.02, 0.3][rng.random_range(0..3)] },
        _ => Fault::Reorder { by_us: [50, 1_000, 20_000][rng.random_range(0..3)] },
    }
}
