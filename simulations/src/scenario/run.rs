//! Playing a scenario.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mad::types::Timestamp;
use mad::wire::Mad;

use super::{Fault, ManagerSpec, PortName, Scenario};
use crate::world::{Agent, AgentId, Config, End, World};

/// Packets that an outcome shows.
const TRACED: usize = 40;

/// A packet at its arrival.
#[derive(Clone, Debug)]
pub struct Traced {
    /// When.
    pub when: Timestamp,
    /// Where.
    pub at: End,
    /// The datagram.
    pub mad: Mad,
}

/// What came of a scenario.
#[derive(Debug)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// What does not hold; empty when all is right.
    pub failures: Vec<String>,
    /// Virtual time at the end.
    pub end: Timestamp,
    /// The last packets before the end, or before the first forwarding loop.
    pub last: Vec<Traced>,
    /// The world as it was at the end.
    pub world: World,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "World of {} devices at {}", self.device_count(), self.now())
    }
}

impl Outcome {
    /// Whether everything holds.
    pub fn is_right(&self) -> bool {
        self.failures.is_empty()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {}, {} at {} s",
            self.seed,
            if self.is_right() { "right" } else { "wrong" },
            self.end
        )?;
        self.failures.iter().try_for_each(|failure| writeln!(f, "- {failure}"))?;
        if self.is_right() {
            return Ok(());
        }
        for traced in &self.last {
            let header = &traced.mad.header;
            let name = self.world.device(traced.at.node).name();
            writeln!(
                f,
                "{} {name} port {}: class 0x{:02x} method 0x{:02x} attribute 0x{:04x} modifier 0x{:x} status {:?}",
                traced.when,
                traced.at.port,
                header.mgmt_class,
                header.method,
                header.attribute_id,
                header.attribute_modifier,
                header.status(),
            )?;
        }
        Ok(())
    }
}

/// How a subnet manager is made; `now` is the virtual time of its start.
pub type MakeManager<'a> = dyn FnMut(&ManagerSpec, Timestamp) -> Box<dyn Agent> + 'a;

/// Plays a scenario: all steps in order, then the time that is allowed for repair.
///
/// # Errors
/// The fabric can't be generated, or a step names something that isn't there.
pub fn run(scenario: &Scenario, seed: u64, make: &mut MakeManager<'_>) -> Result<Outcome, String> {
    let fabric = scenario.fabric.fabric(seed).map_err(|error| error.to_string())?;
    let network = &scenario.network;
    let config = Config {
        seed,
        loss: network.loss,
        duplication: network.duplication,
        jitter: Duration::from_micros(network.jitter_us),
        training: Duration::from_millis(network.training_ms),
        ..Config::default()
    };
    let mut play = Play {
        world: World::new(&fabric, config),
        managers: vec![None; scenario.manager.len()],
        scenario,
        split: Vec::new(),
        names: BTreeMap::new(),
        last: Arc::default(),
        before_loop: None,
    };
    play.names = play.world.devices().iter().enumerate().map(|(node, d)| (d.name(), node as u32)).collect();
    let sink = Arc::clone(&play.last);
    play.world.observe(Box::new(move |when, at, packet| {
        let mut last = sink.lock().unwrap_or_else(PoisonError::into_inner);
        if last.len() == TRACED {
            last.pop_front();
        }
        last.push_back(Traced { when, at, mad: packet.mad });
    }));
    play.steps(make)?;
    play.world.reset_stats();
    let settle = play.world.now() + Duration::from_secs(scenario.expect.within_s);
    play.run_until(settle);
    let failures = play.failures();
    let last = play.before_loop.take().unwrap_or_else(|| play.traced());
    Ok(Outcome { seed, failures, end: play.world.now(), last, world: play.world })
}

/// A scenario under way.
struct Play<'a> {
    world: World,
    /// By number in the file; `None` while it doesn't run.
    managers: Vec<Option<AgentId>>,
    scenario: &'a Scenario,
    split: Vec<(End, End)>,
    names: BTreeMap<String, u32>,
    /// The last packets.
    last: Arc<Mutex<VecDeque<Traced>>>,
    /// Those before the first forwarding loop.
    before_loop: Option<Vec<Traced>>,
}

impl Play<'_> {
    fn traced(&self) -> Vec<Traced> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Runs, and keeps what led to the first forwarding loop.
    fn run_until(&mut self, until: Timestamp) {
        if self.before_loop.is_none() && self.world.run_while(until, |world| world.loops().1 > 0) {
            self.before_loop = Some(self.traced());
        }
        self.world.run_until(until);
    }

    /// Starts managers and carries out steps, in the order of time.
    fn steps(&mut self, make: &mut MakeManager<'_>) -> Result<(), String> {
        let scenario = self.scenario;
        let starts =
            scenario.manager.iter().enumerate().map(|(n, m)| (m.start_ms, Fault::Restart { manager: n }));
        let mut all: Vec<(u64, Fault)> = starts.collect();
        all.extend(scenario.step.iter().map(|step| (step.at_ms, step.fault.clone())));
        all.sort_by_key(|(at, _)| *at);
        for (at, fault) in all {
            self.run_until(Timestamp::from_start(Duration::from_millis(at)));
            self.carry_out(&fault, make).map_err(|error| format!("step at {at} ms: {error}"))?;
        }
        Ok(())
    }

    fn node(&self, name: &str) -> Result<u32, String> {
        self.names.get(name).copied().ok_or_else(|| format!("no node is called `{name}`"))
    }

    fn end(&self, (name, port): &PortName) -> Result<End, String> {
        let node = self.node(name)?;
        let ports = self.world.device(node).num_ports();
        if *port == 0 || *port > ports {
            return Err(format!("`{name}` has no port {port}: expected 1 to {ports}"));
        }
        Ok(End::new(node, *port))
    }

    fn manager(&self, number: usize) -> Result<Option<AgentId>, String> {
        let count = self.managers.len();
        self.managers
            .get(number)
            .copied()
            .ok_or_else(|| format!("no manager {number}: the file has {count}, from 0"))
    }

    fn carry_out(&mut self, fault: &Fault, make: &mut MakeManager<'_>) -> Result<(), String> {
        match fault {
            Fault::Unlink { port } => {
                let end = self.end(port)?;
                self.world.unlink(end);
            }
            Fault::Relink { port } => {
                let end = self.end(port)?;
                self.world.relink(end);
            }
            Fault::PowerOff { node } => self.world.power_off(self.node(node)?),
            Fault::PowerOn { node } => self.world.power_on(self.node(node)?),
            Fault::Reset { node } => {
                let node = self.node(node)?;
                self.world.power_off(node);
                self.world.power_on(node);
            }
            Fault::Swap { a, b } => {
                let (a, b) = (self.end(a)?, self.end(b)?);
                self.world.swap_cables(a, b);
            }
            Fault::Rename { node, name } => self.world.rename(self.node(node)?, name),
            Fault::Loss { share } => self.world.config_mut().loss = *share,
            Fault::Split { nodes } => {
                let part: Vec<u32> = nodes.iter().map(|name| self.node(name)).collect::<Result<_, _>>()?;
                self.split.extend(self.world.split(|node| part.contains(&node)));
            }
            Fault::Merge => {
                let cables = std::mem::take(&mut self.split);
                self.world.merge(&cables);
            }
            Fault::Misbehave { node, how } => {
                let node = self.node(node)?;
                self.world.device_mut(node).quirks.push(how.quirk());
            }
            Fault::Behave { node } => {
                let node = self.node(node)?;
                self.world.device_mut(node).quirks.clear();
            }
            Fault::Heal => self.heal(),
            Fault::Kill { .. } | Fault::Restart { .. } | Fault::Freeze { .. } | Fault::Thaw { .. } => {
                self.manage(fault, make)?;
            }
        }
        Ok(())
    }

    /// The steps that are about managers.
    fn manage(&mut self, fault: &Fault, make: &mut MakeManager<'_>) -> Result<(), String> {
        match fault {
            Fault::Restart { manager } => {
                if let Some(id) = self.manager(*manager)? {
                    self.world.detach(id);
                }
                let spec = &self.scenario.manager[*manager];
                let node = self.node(&spec.node)?;
                let port = *self.world.device(node).end_ports().start();
                let agent = make(spec, self.world.now());
                self.managers[*manager] = self.world.attach(End::new(node, port), agent);
            }
            Fault::Kill { manager } => {
                if let Some(id) = self.manager(*manager)? {
                    self.world.detach(id);
                    self.managers[*manager] = None;
                }
            }
            Fault::Freeze { manager } | Fault::Thaw { manager } => {
                if let Some(id) = self.manager(*manager)? {
                    self.world.freeze(id, matches!(fault, Fault::Freeze { .. }));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn heal(&mut self) {
        self.world.config_mut().loss = 0.0;
        let cables = std::mem::take(&mut self.split);
        self.world.merge(&cables);
        for node in 0..self.world.device_count() as u32 {
            self.world.device_mut(node).quirks.clear();
            if self.world.device(node).dead {
                self.world.power_on(node);
            }
            self.world.relink_node(node);
        }
        for id in self.managers.clone().into_iter().flatten() {
            self.world.freeze(id, false);
        }
    }

    /// What does not hold.
    fn failures(&self) -> Vec<String> {
        let expect = &self.scenario.expect;
        let mut failures = Vec::new();
        if expect.right {
            let verdict = self.world.check();
            if !verdict.is_right(false) {
                failures.extend(verdict.to_string().lines().map(str::to_owned));
            }
        }
        let loops = self.world.loops().0;
        failures.extend(
            loops.iter().map(|l| format!("forwarding loop at {}: LID {} by {:?}", l.when, l.lid, l.switches)),
        );
        let spins = self.world.stats().idle_wakes;
        if spins > 0 {
            failures
                .push(format!("a manager's deadline lay in the past {spins} times although it was asked"));
        }
        if let Some(most) = expect.most_sets.filter(|most| self.world.stats().sets() > *most) {
            failures.push(format!(
                "{} Sets after the last step, at most {most} expected",
                self.world.stats().sets()
            ));
        }
        if expect.one_master {
            failures.extend(self.masters());
        }
        failures
    }

    /// Parts with a manager that don't have exactly one master.
    fn masters(&self) -> Vec<String> {
        let parts = self.world.parts();
        let mut masters: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
        for (id, spec) in self.managers.iter().zip(&self.scenario.manager) {
            let Some((agent, end)) =
                id.and_then(|id| Some((self.world.any_agent(id)?, self.world.agent_end(id)?)))
            else {
                continue;
            };
            let here = masters.entry(parts[end.node as usize]).or_default();
            if agent.is_master() {
                here.push(&spec.node);
            }
        }
        let wrong = masters.into_values().filter(|here| here.len() != 1);
        wrong.map(|here| format!("{} masters in one part: {here:?}", here.len())).collect()
    }
}
