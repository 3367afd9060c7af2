//! Drawn scenarios with clients of subnet administration: those of [`random`] and, from a stream of their own, clients that
//! join, register and leave, managers that remember, more of them that die, freeze and are restarted, swapped cables and
//! packets that overtake each other. What [`random`] draws stays as it is, seed by seed.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use routing::fabric::{Fabric, PortRef};

use super::random::{FAULTS_MS, Names};
use super::{ClientSpec, Fault, ManagerSpec, Membership, PortName, Scenario, Step, random};

/// What tells this stream from that of [`random`].
const STREAM: u64 = 0x0063_6c69_656e_7473;
/// Groups that are joined: IPoIB's, and two of programs.
const GROUPS: [&str; 3] = ["ff12:401b:ffff::16", "ff15:a01b::7", "ff15:a01b::8"];
pub(super) const SECRET: &str = "drawn managers' secret";

/// The scenario of a seed; the same on every machine.
pub fn random_with_clients(seed: u64) -> Scenario {
    let mut scenario = random(seed);
    let mut rng = Pcg64Mcg::seed_from_u64(seed ^ STREAM);
    let names = Names::of(&scenario.fabric);
    managers(&mut rng, &names, &mut scenario);
    scenario.clients = clients(&mut rng, &names);
    let mut steps = scenario.step.clone();
    for _ in 0..rng.random_range(1..=4) {
        let clients = rng.random_range(0..scenario.clients.len());
        let join = rng.random_bool(0.5);
        let fault = if join { Fault::Join { clients } } else { Fault::Leave { clients } };
        steps.push(Step { at_ms: rng.random_range(2_000..FAULTS_MS), fault });
    }
    for _ in 0..rng.random_range(1..=4) {
        let manager = rng.random_range(0..scenario.manager.len());
        let fault = match rng.random_range(0..5) {
            0 => Fault::Kill { manager },
            1 | 2 => Fault::Restart { manager },
            3 => Fault::Freeze { manager },
            _ => Fault::Thaw { manager },
        };
        steps.push(Step { at_ms: rng.random_range(2_000..FAULTS_MS), fault });
    }
    if rng.random_bool(0.3) {
        let by_us = [50, 1_000, 20_000, 300_000][rng.random_range(0..4)];
        steps.push(Step { at_ms: rng.random_range(0..FAULTS_MS), fault: Fault::Reorder { by_us } });
    }
    if rng.random_bool(0.4)
        && let Some((a, b)) = swap(&mut rng, &names, &scenario)
    {
        steps.push(Step { at_ms: rng.random_range(0..FAULTS_MS), fault: Fault::Swap { a, b } });
    }
    let restarted = |steps: &[Step], number| {
        let again = Step { at_ms: FAULTS_MS + 1, fault: Fault::Restart { manager: number } };
        steps.contains(&again)
    };
    for number in 0..scenario.manager.len() {
        let killed = steps.iter().any(|s| s.fault == Fault::Kill { manager: number });
        if killed && !restarted(&steps, number) {
            steps.push(Step { at_ms: FAULTS_MS + 1, fault: Fault::Restart { manager: number } });
        }
    }
    steps.sort_by_key(|step| step.at_ms);
    scenario.step = steps;
    scenario.about = format!("drawn from seed {seed}, with clients");
    scenario
}

/// Up to three managers; in half of the scenarios each with a state directory, in half they mirror their state.
fn managers(rng: &mut Pcg64Mcg, names: &Names, scenario: &mut Scenario) {
    let count = rng.random_range(1..=3.min(names.hosts as usize));
    while scenario.manager.len() < count {
        let free = |node: &String| scenario.manager.iter().all(|manager| manager.node != *node);
        let hosts: Vec<String> = (0..names.hosts).map(|n| format!("H{n}")).filter(free).collect();
        let node = hosts[rng.random_range(0..hosts.len())].clone();
        let start_ms = rng.random_range(0..FAULTS_MS / 2);
        let priority = rng.random_range(0..=10);
        scenario.manager.push(ManagerSpec { node, priority, start_ms, ..ManagerSpec::default() });
    }
    let (store, mirror) = (rng.random_bool(0.5), rng.random_bool(0.5));
    for manager in &mut scenario.manager {
        (manager.store, manager.secret) = (store, mirror.then(|| SECRET.into()));
    }
}

/// Some hosts that join groups, and some that offer services and listen.
pub(super) fn clients(rng: &mut Pcg64Mcg, names: &Names) -> Vec<ClientSpec> {
    let mut tables = Vec::new();
    let draw = |rng: &mut Pcg64Mcg, share: f64| -> Vec<String> {
        (0..names.hosts).filter(|_| rng.random_bool(share)).map(|n| format!("H{n}")).collect()
    };
    for group in GROUPS {
        let hosts = draw(rng, 0.6);
        let full_sender = rng.random_bool(0.2);
        tables.push(ClientSpec {
            hosts,
            at_ms: rng.random_range(0..FAULTS_MS / 2),
            within_ms: rng.random_range(0..2_000),
            groups: vec![group.into()],
            membership: if full_sender { Membership::SendOnlyFull } else { Membership::Full },
            ..ClientSpec::default()
        });
    }
    tables.push(ClientSpec {
        hosts: draw(rng, 0.5),
        at_ms: rng.random_range(0..FAULTS_MS / 2),
        within_ms: rng.random_range(0..2_000),
        services: vec![0x1000, 0x1001],
        lease_s: if rng.random_bool(0.5) { Some(60) } else { None },
        traps: vec![64, 65, 128],
        paths: vec![format!("H{}", rng.random_range(0..names.hosts))],
        ..ClientSpec::default()
    });
    tables
}

/// Two cables whose far ends may be exchanged so that the fabric stays in one piece, and no switch is joined to itself.
fn swap(rng: &mut Pcg64Mcg, names: &Names, scenario: &Scenario) -> Option<(PortName, PortName)> {
    let fabric = scenario.fabric.fabric(1).ok()?;
    for _ in 0..8 {
        let a = names.ports[rng.random_range(0..names.ports.len())].clone();
        let b = names.ports[rng.random_range(0..names.ports.len())].clone();
        if stays_whole(&fabric, &a, &b) == Some(true) {
            return Some((a, b));
        }
    }
    None
}

fn stays_whole(fabric: &Fabric, a: &PortName, b: &PortName) -> Option<bool> {
    let end = |(name, port): &PortName| {
        let (node, _) = fabric.nodes().find(|(_, node)| node.description == *name)?;
        Some(PortRef { node, port: mad::types::PortNum(*port) })
    };
    let (a, b) = (end(a)?, end(b)?);
    let (far_a, far_b) = (fabric.peer(a)?, fabric.peer(b)?);
    if a == b || far_a == b || a.node == far_b.node || b.node == far_a.node {
        return Some(false);
    }
    let mut links: Vec<(PortRef, PortRef)> = fabric.links().map(|link| (link.a, link.b)).collect();
    links.retain(|(one, two)| ![a, b].contains(one) && ![a, b].contains(two));
    links.extend([(a, far_b), (b, far_a)]);
    let mut reached = vec![a.node];
    let mut next = 0;
    while let Some(at) = reached.get(next).copied() {
        next += 1;
        for (one, two) in &links {
            for (from, to) in [(one.node, two.node), (two.node, one.node)] {
                if from == at && !reached.contains(&to) {
                    reached.push(to);
                }
            }
        }
    }
    Some(reached.len() == fabric.node_count())
}
