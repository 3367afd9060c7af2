//! Scenarios drawn from a seed: faults for half a minute, then everything is healed and must come right.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{Expect, FabricSpec, Fault, How, ManagerSpec, Network, PortName, Scenario, Step};

/// Milliseconds in which faults fall.
pub(super) const FAULTS_MS: u64 = 30_000;

/// The scenario of a seed; the same on every machine.
pub fn random(seed: u64) -> Scenario {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let fabric = fabric(&mut rng);
    let names = Names::of(&fabric);
    let mut manager = vec![ManagerSpec { node: "H0".into(), priority: 5, ..ManagerSpec::default() }];
    if rng.random_bool(0.5) && names.hosts > 1 {
        let node = format!("H{}", rng.random_range(1..names.hosts));
        let start_ms = rng.random_range(0..FAULTS_MS);
        manager.push(ManagerSpec {
            node,
            priority: rng.random_range(0..=10),
            start_ms,
            ..ManagerSpec::default()
        });
    }
    let count = rng.random_range(2..=8);
    let mut step: Vec<Step> = (0..count)
        .map(|_| Step { at_ms: rng.random_range(0..FAULTS_MS), fault: names.fault(&mut rng, manager.len()) })
        .collect();
    step.sort_by_key(|step| step.at_ms);
    step.push(Step { at_ms: FAULTS_MS, fault: Fault::Heal });
    for number in 0..manager.len() {
        let killed = step.iter().any(|s| s.fault == Fault::Kill { manager: number });
        if killed {
            step.push(Step { at_ms: FAULTS_MS + 1, fault: Fault::Restart { manager: number } });
        }
    }
    let network = Network {
        loss: if rng.random_bool(0.3) { 0.01 } else { 0.0 },
        duplication: if rng.random_bool(0.3) { 0.01 } else { 0.0 },
        jitter_us: if rng.random_bool(0.5) { 200 } else { 0 },
        training_ms: if rng.random_bool(0.5) { 50 } else { 0 },
        ..Network::default()
    };
    let expect = Expect { within_s: 180, ..Expect::default() };
    let about = format!("drawn from seed {seed}");
    Scenario { about, fabric, network, manager, clients: Vec::new(), step, expect }
}

pub(super) fn fabric(rng: &mut Pcg64Mcg) -> FabricSpec {
    match rng.random_range(0..5) {
        0 => FabricSpec::Line { switches: rng.random_range(2..5), hosts: rng.random_range(1..3) },
        1 | 2 => FabricSpec::Tree {
            leaves: rng.random_range(2..6),
            spines: rng.random_range(1..4),
            hosts: rng.random_range(1..4),
        },
        3 => FabricSpec::Torus { dims: vec![rng.random_range(2..4), rng.random_range(2..4)], hosts: 1 },
        _ => FabricSpec::RandomRegular { switches: 8, degree: 3, hosts: rng.random_range(1..3) },
    }
}

/// What a fabric has to break.
pub(super) struct Names {
    pub(super) switches: Vec<String>,
    /// Ports of switches with a cable.
    pub(super) ports: Vec<PortName>,
    pub(super) hosts: u32,
}

impl Names {
    pub(super) fn of(spec: &FabricSpec) -> Self {
        let mut names = Self { switches: Vec::new(), ports: Vec::new(), hosts: 0 };
        // Every specification made here generates a fabric; one that doesn't has nothing to break.
        let Ok(fabric) = spec.fabric(1) else { return names };
        for (id, node) in fabric.nodes() {
            if !node.is_switch() {
                names.hosts += 1;
                continue;
            }
            names.switches.push(node.description.clone());
            for (port, _) in node.numbered_ports() {
                if fabric.peer(routing::fabric::PortRef { node: id, port }).is_some() {
                    names.ports.push((node.description.clone(), port.0));
                }
            }
        }
        names
    }

    fn node(&self, rng: &mut Pcg64Mcg) -> String {
        if rng.random_bool(0.5) {
            self.switches[rng.random_range(0..self.switches.len())].clone()
        } else {
            format!("H{}", rng.random_range(0..self.hosts))
        }
    }

    fn port(&self, rng: &mut Pcg64Mcg) -> PortName {
        self.ports[rng.random_range(0..self.ports.len())].clone()
    }

    fn fault(&self, rng: &mut Pcg64Mcg, managers: usize) -> Fault {
        match rng.random_range(0..14) {
            0 | 1 => Fault::Unlink { port: self.port(rng) },
            2 => Fault::Relink { port: self.port(rng) },
            3 => Fault::PowerOff { node: self.node(rng) },
            4 | 5 => Fault::Reset { node: self.node(rng) },
            6 => Fault::Rename { node: self.node(rng), name: "renamed".into() },
            7 => Fault::Loss { share: [0.0, 0.02, 0.3, 1.0][rng.random_range(0..4)] },
            8 => Fault::Split { nodes: vec![self.node(rng), self.node(rng)] },
            9 => Fault::Merge,
            10 => Fault::Kill { manager: rng.random_range(0..managers) },
            11 => Fault::Freeze { manager: rng.random_range(0..managers) },
            12 => Fault::Thaw { manager: rng.random_range(0..managers) },
            _ => {
                // Who claims to have written a table and has not can't be seen through: not drawn.
                let how = [How::Silent, How::RefusePortInfo, How::DropPortInfo, How::WrongLocalPort];
                Fault::Misbehave { node: self.node(rng), how: how[rng.random_range(0..how.len())] }
            }
        }
    }
}
