//! Playing a scenario.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mad::types::{PortNum, PortPhysState, PortState, Timestamp};

use super::{Fault, ManagerSpec, Outcome, PortName, Scenario, Traced, What};
use crate::device::notices::Issuer;
use crate::device::{Counter, Misbehaviour, Quirk};
use crate::world::{Agent, AgentId, Config, End, World};

/// Events that an outcome shows.
const TRACED: usize = 40;

/// How a subnet manager is made; `now` is the virtual time of its start. Refused, with the reason, when the file says
/// something of it that can't be meant.
pub type MakeManager<'a> = dyn FnMut(&ManagerSpec, Timestamp) -> Result<Box<dyn Agent>, String> + 'a;

/// Is shown everything that happens, in its order.
pub type Watch = Box<dyn FnMut(&Traced) + Send>;

/// Plays a scenario: all steps in order, then the time that is allowed for repair.
///
/// # Errors
/// The fabric can't be generated, or a step names something that isn't there.
pub fn run(scenario: &Scenario, seed: u64, make: &mut MakeManager<'_>) -> Result<Outcome, String> {
    run_watched(scenario, seed, make, None)
}

/// The same, and shows everything that happens to `watch`.
///
/// # Errors
/// As [`run`].
pub fn run_watched(
    scenario: &Scenario,
    seed: u64,
    make: &mut MakeManager<'_>,
    watch: Option<Watch>,
) -> Result<Outcome, String> {
    let fabric = scenario.fabric.fabric(seed)?;
    let network = &scenario.network;
    let mut config = Config {
        seed,
        loss: network.loss,
        duplication: network.duplication,
        jitter: Duration::from_micros(network.jitter_us),
        training: Duration::from_millis(network.training_ms),
        ..Config::default()
    };
    if network.response_us > 0 {
        config.response_time = Duration::from_micros(network.response_us);
    }
    let world = World::new(&fabric, config);
    let mut names = BTreeMap::new();
    for (node, device) in world.devices().iter().enumerate() {
        names.entry(device.name()).or_insert(node as u32);
    }
    let mut play = Play {
        managers: vec![None; scenario.manager.len()],
        clients: vec![Vec::new(); scenario.clients.len()],
        scenario,
        split: Vec::new(),
        names,
        log: Arc::new(Mutex::new(Log { last: VecDeque::new(), watch })),
        before_loop: None,
        lids: BTreeMap::new(),
        first_lids: None,
        world,
    };
    let log = Arc::clone(&play.log);
    let names: Vec<Arc<str>> = play.world.devices().iter().map(|device| device.name().into()).collect();
    play.world.observe(Box::new(move |when, at, packet| {
        let node = names.get(at.node as usize).cloned().unwrap_or_else(|| "twin".into());
        let what = What::Packet { at, node, packet: *packet };
        log.lock().unwrap_or_else(PoisonError::into_inner).note(Traced { when, what });
    }));
    play.steps(make)?;
    play.world.reset_stats();
    let settle = play.world.now() + Duration::from_secs(scenario.expect.within_s);
    play.run_until(settle);
    let failures = play.failures();
    let before_loop = play.before_loop.is_some();
    let last = play.before_loop.take().unwrap_or_else(|| play.traced());
    Ok(Outcome { seed, failures, end: play.world.now(), last, before_loop, world: play.world })
}

/// What has happened.
struct Log {
    /// The last events.
    last: VecDeque<Traced>,
    watch: Option<Watch>,
}

impl Log {
    fn note(&mut self, event: Traced) {
        if let Some(watch) = &mut self.watch {
            watch(&event);
        }
        if self.last.len() == TRACED {
            self.last.pop_front();
        }
        self.last.push_back(event);
    }
}

/// A scenario under way.
pub(super) struct Play<'a> {
    pub(super) world: World,
    /// By number in the file; `None` while it doesn't run.
    pub(super) managers: Vec<Option<AgentId>>,
    /// By the number of their table in the file; none before they begin.
    pub(super) clients: Vec<Vec<AgentId>>,
    pub(super) scenario: &'a Scenario,
    split: Vec<(End, End)>,
    names: BTreeMap<String, u32>,
    log: Arc<Mutex<Log>>,
    /// The last events before the first forwarding loop.
    before_loop: Option<Vec<Traced>>,
    /// LIDs of end ports before the last step.
    lids: BTreeMap<End, u16>,
    /// Before the first one, managers' starts and clients' beginnings apart.
    first_lids: Option<BTreeMap<End, u16>>,
}

impl Play<'_> {
    fn traced(&self) -> Vec<Traced> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).last.iter().cloned().collect()
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
        let joins = scenario.clients.iter().enumerate();
        all.extend(joins.map(|(clients, spec)| (spec.at_ms, Fault::Join { clients })));
        all.extend(scenario.step.iter().map(|step| (step.at_ms, step.fault.clone())));
        all.sort_by_key(|(at, _)| *at);
        let count = all.len();
        for (number, (at, fault)) in all.into_iter().enumerate() {
            self.run_until(Timestamp::from_start(Duration::from_millis(at)));
            let first = scenario.step.iter().map(|step| step.at_ms).min();
            if self.first_lids.is_none() && first.is_some_and(|first| at >= first) {
                self.first_lids = Some(self.end_port_lids());
            }
            if number + 1 == count {
                self.lids = self.end_port_lids();
            }
            let words = toml::to_string(&fault).unwrap_or_default();
            let what = What::Step(words.trim_end().replace('\n', ", "));
            let step = Traced { when: self.world.now(), what };
            self.log.lock().unwrap_or_else(PoisonError::into_inner).note(step);
            self.carry_out(&fault, make).map_err(|error| format!("step at {at} ms: {error}"))?;
        }
        Ok(())
    }

    pub(super) fn node(&self, name: &str) -> Result<u32, String> {
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
            Fault::Connect { a, b } => {
                let (a, b) = (self.end(a)?, self.end(b)?);
                if !self.world.connect(a, b) {
                    return Err("both ports must be free, and not the same".into());
                }
            }
            Fault::Move { from, to } => {
                let (from, to) = (self.end(from)?, self.end(to)?);
                if !self.world.move_cable(from, to) {
                    return Err("the first port must have a cable, the second must be free".into());
                }
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
            Fault::Twin { of, at } => {
                let (node, at) = (self.node(of)?, self.end(at)?);
                self.twin(node, at)?;
            }
            Fault::Flood { nodes, times, within_ms } => self.flood(nodes, *times, *within_ms)?,
            Fault::Babble { node, trap, port, times, within_ms } => {
                self.babble(node, (*trap, PortNum(*port)), *times, *within_ms)?;
            }
            Fault::Rename { node, name } => self.world.rename(self.node(node)?, name),
            Fault::Loss { share } => self.world.config_mut().loss = *share,
            Fault::Reorder { by_us } => self.world.config_mut().jitter = Duration::from_micros(*by_us),
            Fault::Split { nodes } => {
                let part: Vec<u32> = nodes.iter().map(|name| self.node(name)).collect::<Result<_, _>>()?;
                self.split.extend(self.world.split(|node| part.contains(&node)));
            }
            Fault::Merge => {
                let cables = std::mem::take(&mut self.split);
                self.world.merge(&cables);
            }
            Fault::Hold { port, lid } => {
                let end = self.end_port(port)?;
                let device = self.world.device_mut(end.node);
                device.ports[end.port.index()].info.base_lid.set(*lid);
            }
            Fault::Grow { port, counter, per_second } => {
                let (end, counter) = (self.end(port)?, Counter::named(counter)?);
                let now = self.world.now();
                let port = &mut self.world.device_mut(end.node).ports[end.port.index()];
                port.counters.grow(counter, f64::from(*per_second), now);
            }
            Fault::VirtualPorts { port } => {
                let end = self.end_port(port)?;
                if self.world.device(end.node).is_switch() {
                    return Err(format!("`{}` is a switch: adapters have virtual ports", port.0));
                }
                self.world.let_have_virtual_ports(end);
            }
            Fault::Stray { node, lid, port } => {
                let (index, block) = (self.node(node)?, lid / 64);
                let switch = self.world.device_mut(index).switch.as_mut();
                let switch = switch.ok_or_else(|| format!("`{node}` is no switch"))?;
                let mut entries = switch.linear_block(block);
                entries[usize::from(lid % 64)] = *port;
                switch.set_linear_block(block, &entries);
                let top = switch.info.linear_fdb_top.get();
                switch.info.linear_fdb_top.set(top.max(*lid));
            }
            Fault::Lock { port, key, protect, lease_s } => {
                let end = self.end_port(port)?;
                let digits = key.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
                let info = &mut self.world.device_mut(end.node).ports[end.port.index()].info;
                info.m_key.set(digits.ok_or("an M_Key is hexadecimal text such as \"0x1\"")?);
                info.set_m_key_protect_bits(*protect);
                info.m_key_lease_period.set(*lease_s);
            }
            Fault::Misbehave { node, how } => self.quirk(node, how.quirk())?,
            Fault::Silence { port } => {
                self.end(port)?;
                let quirk = Quirk { in_port: Some(port.1), ..Quirk::always(Misbehaviour::Silence) };
                self.quirk(&port.0, quirk)?;
            }
            Fault::Tell { node, field, value, port } => {
                let quirk = Quirk { modifier: port.map(u16::from), ..field.told(*value) };
                self.quirk(node, quirk)?;
            }
            Fault::ExtendedSpeeds { node, how } => {
                let node = self.node(node)?;
                self.world.device_mut(node).extended_speeds = how.of_device();
            }
            Fault::Delay { node, by_ms } => {
                self.quirk(node, Quirk::always(Misbehaviour::Late(Duration::from_millis(*by_ms))))?;
            }
            Fault::Behave { node } => {
                let node = self.node(node)?;
                self.world.device_mut(node).quirks.clear();
            }
            Fault::Heal => self.heal(),
            Fault::Join { clients } => self.join(*clients)?,
            Fault::Leave { clients } => self.leave(*clients)?,
            Fault::Kill { .. }
            | Fault::Restart { .. }
            | Fault::Freeze { .. }
            | Fault::Thaw { .. }
            | Fault::Reconfigure { .. } => self.manage(fault, make)?,
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
                let agent = make(spec, self.world.now())?;
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
            Fault::Reconfigure { manager, config } => {
                if let Some(id) = self.manager(*manager)? {
                    let text = config.to_string();
                    let now = self.world.now();
                    let agent = self.world.any_agent_mut(id).ok_or("the manager is gone")?;
                    agent.configure(&text, now)?;
                    self.world.pump(id);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// An end port: port 0 of a switch, else the port that is named.
    fn end_port(&self, (name, port): &PortName) -> Result<End, String> {
        let node = self.node(name)?;
        let range = self.world.device(node).end_ports();
        if range.contains(port) {
            return Ok(End::new(node, *port));
        }
        Err(format!("`{name}` has no end port {port}: expected {} to {}", range.start(), range.end()))
    }

    fn quirk(&mut self, node: &str, quirk: Quirk) -> Result<(), String> {
        let node = self.node(node)?;
        self.world.device_mut(node).quirks.push(quirk);
        Ok(())
    }

    /// Plugs a second device with the identity of `node` in at `at`.
    fn twin(&mut self, node: u32, at: End) -> Result<(), String> {
        let mut twin = self.world.device(node).clone();
        twin.ports.iter_mut().for_each(|port| port.set_state(PortState::Down, PortPhysState::Polling));
        let port = *twin.end_ports().start().max(&1);
        let twin = self.world.add_device(twin);
        if self.world.connect(End::new(twin, port), at) {
            Ok(())
        } else {
            Err("the port must be free".into())
        }
    }

    fn flood(&mut self, nodes: &[String], times: u32, within_ms: u64) -> Result<(), String> {
        let nodes: Vec<u32> = nodes.iter().map(|name| self.node(name)).collect::<Result<_, _>>()?;
        let count = u64::from(times) * nodes.len() as u64;
        let (start, gap) = (self.world.now(), Duration::from_millis(within_ms) / count.max(1) as u32);
        let all = (0..times).flat_map(|_| nodes.iter().copied());
        for (number, node) in all.enumerate() {
            self.world.at(start + gap * number as u32, move |world| {
                let name = world.device(node).name();
                world.rename(node, &name);
            });
        }
        Ok(())
    }

    /// Traps of a threshold that a port has reached, spread over time.
    fn babble(&mut self, node: &str, what: (u16, PortNum), times: u32, within_ms: u64) -> Result<(), String> {
        let (trap, port) = what;
        if !(129..=131).contains(&trap) {
            return Err(format!("trap {trap} tells of no threshold: expected 129 to 131"));
        }
        let node = self.node(node)?;
        let (start, gap) = (self.world.now(), Duration::from_millis(within_ms) / times.max(1));
        for number in 0..times {
            self.world.at(start + gap * number, move |world| {
                let end = End { node, port: world.device(node).end_port(port) };
                let issuer = Issuer::of(world.device(node), end.port);
                world.raise_trap(end, issuer.threshold(trap, port));
            });
        }
        Ok(())
    }

    /// End ports that have other LIDs than before.
    fn moved(&self, before: &BTreeMap<End, u16>) -> Vec<String> {
        let now = self.end_port_lids();
        let moved =
            before.iter().filter_map(|(end, lid)| Some((end, lid, now.get(end).filter(|new| *new != lid)?)));
        let words = moved.map(|(end, lid, new)| {
            let name = self.world.device(end.node).name();
            format!("{name}[{}] had LID {lid} and has LID {new}", end.port)
        });
        words.collect()
    }

    /// LIDs of all end ports that have one.
    fn end_port_lids(&self) -> BTreeMap<End, u16> {
        let mut lids = BTreeMap::new();
        for (node, device) in self.world.devices().iter().enumerate() {
            for number in device.end_ports() {
                let end = End::new(node as u32, number);
                let lid = device.ports[end.port.index()].info.lid();
                lids.extend(lid.map(|lid| (end, lid.get())));
            }
        }
        lids
    }

    fn heal(&mut self) {
        self.world.config_mut().loss = 0.0;
        self.world.config_mut().jitter = Duration::from_micros(self.scenario.network.jitter_us);
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
    fn failures(&mut self) -> Vec<String> {
        let expect = &self.scenario.expect;
        let mut failures = Vec::new();
        if expect.right {
            failures.extend(self.wrong());
        }
        if expect.same_lids {
            failures.extend(self.moved(&self.lids));
        }
        if let Some(first) = self.first_lids.as_ref().filter(|_| expect.kept_lids) {
            let managers: Vec<u32> =
                self.scenario.manager.iter().filter_map(|manager| self.node(&manager.node).ok()).collect();
            let others = first.iter().filter(|(end, _)| !managers.contains(&end.node));
            failures.extend(self.moved(&others.map(|(end, lid)| (*end, *lid)).collect()));
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
        let told = self.world.stats().client_reregisters;
        if told < expect.least_reregisters {
            failures.push(format!(
                "{told} ports told to register anew after the last step, at least {} expected",
                expect.least_reregisters
            ));
        }
        let sent = self.world.stats().total_sent();
        if let Some(most) = expect.most_sent.filter(|most| sent > *most) {
            failures.push(format!("{sent} datagrams sent after the last step, at most {most} expected"));
        }
        if expect.one_master {
            failures.extend(self.masters());
        }
        if expect.clients {
            failures.extend(self.unserved());
        }
        failures
    }

    /// What is wrong with ports, LIDs and tables, apart from the nodes that need not be up.
    fn wrong(&mut self) -> Vec<String> {
        let apart: Vec<u32> = self
            .scenario
            .expect
            .apart_from
            .iter()
            .flat_map(|name| {
                let devices = self.world.devices().iter().enumerate();
                devices
                    .filter(|(_, device)| device.name() == *name)
                    .map(|(node, _)| node as u32)
                    .collect::<Vec<_>>()
            })
            .collect();
        // As if they were gone; the ports that face them don't count either.
        let mut facing = Vec::new();
        for (a, b) in self.world.cables() {
            facing.extend(
                [(a, b), (b, a)]
                    .into_iter()
                    .filter(|(_, far)| apart.contains(&far.node))
                    .map(|(near, _)| near),
            );
        }
        for node in &apart {
            self.world.device_mut(*node).dead = true;
        }
        let mut verdict = self.world.check();
        verdict.findings.retain(|finding| !finding.ends().iter().any(|end| facing.contains(end)));
        for node in &apart {
            self.world.device_mut(*node).dead = false;
        }
        if verdict.is_right(false) {
            Vec::new()
        } else {
            verdict.to_string().lines().map(str::to_owned).collect()
        }
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
            // Whose port has no link can't know of anybody, and need not rule itself.
            if !self.world.device(end.node).ports[end.port.index()].is_up() {
                continue;
            }
            let here = masters.entry(parts[end.node as usize]).or_default();
            if agent.is_master() {
                here.push(&spec.node);
            }
        }
        let wrong = masters.into_values().filter(|here| here.len() != 1);
        wrong.map(|here| format!("{} masters in one part: {here:?}", here.len())).collect()
    }
}
