//! The world: devices joined by cables, agents attached to their ports, and one event queue in virtual time.
//!
//! A datagram is walked to its destination at the moment it is sent (directed routes hop by hop, LID-routed ones by the
//! forwarding tables of the switches on the way, copied by the multicast ones) and arrives after the latency of its hops; what happens to a link
//! meanwhile doesn't touch what is already under way. Everything random comes from one seeded generator, so that the same
//! seed and the same calls give the same run, event by event.
//!
//! Cost: two events for a request with its answer, each O(log n) in the events that wait, and O(hops) for the walk.

mod agent;
mod check;
mod config;
mod data;
mod directed;
mod faults;
mod forward;
mod links;
mod loops;
mod loops_at_once;
mod multicast;
mod packet;
mod partition;
mod queue;
mod registration;
mod route;
mod stats;
mod traps;

#[cfg(test)]
mod tests;

use std::time::Duration;

use mad::transport::Address;
use mad::types::{Guid, PortNum, Timestamp};
use mad::wire::perf::PerfMad;
use mad::wire::smp::Smp;
use mad::wire::{Mad, MadHeader, Method, MgmtClass, ids};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use routing::fabric::Fabric;
use rustc_hash::FxHashMap;

use crate::device::{Answer, Device, Effect};

pub use agent::{Agent, AgentId, AgentOutput, PortEvent};
pub use check::{Finding, Verdict};
pub use config::{Config, LoopWatch};
pub use loops::ForwardingLoop;
pub use packet::Packet;
pub use queue::Action;
pub use registration::Registration;
pub use route::LocalRoute;
pub use stats::{Drop, Kind, Stats};

use agent::Attachment;
use loops::Watch;
use queue::{Event, Queue};
use traps::Pending;

/// A port of a device in a [`World`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct End {
    /// Index of the device.
    pub node: u32,
    /// The port.
    pub port: PortNum,
}

/// The simulated fabric.
pub struct World {
    devices: Vec<Device>,
    /// Where each device's ports begin in `peers` and `home`.
    base: Vec<u32>,
    /// The other end of each port's cable.
    peers: Vec<Option<End>>,
    /// The cable that a port was built with, for linking it again.
    home: Vec<Option<End>>,
    by_guid: FxHashMap<u64, u32>,
    config: Config,
    now: Timestamp,
    queue: Queue,
    rng: Pcg64Mcg,
    agents: Vec<Attachment>,
    /// Agents by their device.
    agents_of: FxHashMap<u32, Vec<AgentId>>,
    pending: Vec<Pending>,
    next_trap_tid: u32,
    watch: Watch,
    stats: Stats,
    effects: Vec<Effect>,
    observer: Option<Observer>,
}

/// Is shown every packet at its arrival: time, place, packet.
pub type Observer = Box<dyn FnMut(Timestamp, End, &Packet) + Send>;

impl World {
    /// Builds every node of `fabric` as a device, cables them and lets the links train. Node `n` of the fabric (in its
    /// order) is device `n`.
    pub fn new(fabric: &Fabric, config: Config) -> Self {
        let mut world = Self {
            devices: Vec::new(),
            base: Vec::new(),
            peers: Vec::new(),
            home: Vec::new(),
            by_guid: FxHashMap::default(),
            now: Timestamp::ZERO,
            queue: Queue::default(),
            rng: Pcg64Mcg::seed_from_u64(config.seed),
            agents: Vec::new(),
            agents_of: FxHashMap::default(),
            pending: Vec::new(),
            next_trap_tid: 1,
            watch: Watch::default(),
            stats: Stats::default(),
            effects: Vec::new(),
            observer: None,
            config,
        };
        let mut index_of = FxHashMap::default();
        for (id, node) in fabric.nodes() {
            index_of.insert(id, world.add_device(Device::new(node)));
        }
        for link in fabric.links() {
            let [a, b] = [link.a, link.b].map(|end| End { node: index_of[&end.node], port: end.port });
            let built = world.connect(a, b);
            debug_assert!(built, "a fabric's links join free ports");
        }
        world
    }

    /// Adds a device without cables; returns its index. Two devices may have the same GUID (B01): [`World::find`] then
    /// finds the first.
    pub fn add_device(&mut self, device: Device) -> u32 {
        let index = self.devices.len() as u32;
        self.by_guid.entry(device.guid().0).or_insert(index);
        self.base.push(self.peers.len() as u32);
        self.peers.resize(self.peers.len() + device.ports.len(), None);
        self.home.resize(self.peers.len(), None);
        self.devices.push(device);
        index
    }

    /// Virtual time.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// What the world was made with; loss and its like may be changed while it runs.
    pub fn config_mut(&mut self) -> &mut Config {
        &mut self.config
    }

    /// Counters.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Sets all counters to zero.
    pub fn reset_stats(&mut self) {
        self.stats = Stats::default();
    }

    /// Number of devices.
    pub fn device_count(&self) -> usize {
        self.devices.len()
    }

    /// A device.
    ///
    /// # Panics
    /// No device has this index.
    pub fn device(&self, node: u32) -> &Device {
        &self.devices[node as usize]
    }

    /// A device, to change.
    ///
    /// # Panics
    /// No device has this index.
    pub fn device_mut(&mut self, node: u32) -> &mut Device {
        &mut self.devices[node as usize]
    }

    /// All devices.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// The device with this NodeGUID.
    pub fn find(&self, guid: Guid) -> Option<u32> {
        self.by_guid.get(&guid.0).copied()
    }

    /// The first device with this NodeDescription, else with this NodeGUID as text. Linear in the devices.
    pub fn find_name(&self, name: &str) -> Option<u32> {
        let by_name = self.devices.iter().position(|d| d.name() == name).map(|n| n as u32);
        by_name.or_else(|| self.find(name.parse().ok()?))
    }

    /// Shows every packet at its arrival to `observer`, from now on.
    pub fn observe(&mut self, observer: Observer) {
        self.observer = Some(observer);
    }

    /// When the next event is due; `None` when nothing will ever happen by itself.
    pub fn next_event(&self) -> Option<Timestamp> {
        self.queue.next()
    }

    /// Does at `when` (at once when that is past) what `action` says.
    pub fn at(&mut self, when: Timestamp, action: impl FnOnce(&mut Self) + Send + 'static) {
        self.queue.push(when.max(self.now), Event::Action(Box::new(action)));
    }

    /// Handles all events up to and at `until`, and sets the clock to it.
    pub fn run_until(&mut self, until: Timestamp) {
        while self.queue.next().is_some_and(|due| due <= until) {
            self.step();
        }
        self.now = self.now.max(until);
    }

    /// Handles events until `done` says so after one of them, or `until` is reached; returns whether `done` said so.
    pub fn run_while(&mut self, until: Timestamp, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        loop {
            if done(self) {
                return true;
            }
            if self.queue.next().is_none_or(|due| due > until) {
                self.now = self.now.max(until);
                return false;
            }
            self.step();
        }
    }

    /// Handles the next event; false when there is none.
    pub fn step(&mut self) -> bool {
        let Some((when, event)) = self.queue.pop() else { return false };
        self.now = when;
        match event {
            Event::Arrive { at, packet } => self.arrive(at, *packet),
            Event::Wake(agent) => self.wake(agent),
            Event::Port(agent, event) => self.tell_agent(agent, event),
            Event::RepeatTrap { id } => self.repeat_trap(id),
            Event::Train(end) => self.train(end),
            Event::Action(action) => action(self),
        }
        true
    }

    /// A packet has reached the port that it is for.
    fn arrive(&mut self, at: End, packet: Packet) {
        if self.devices[at.node as usize].dead {
            self.stats.drop(Drop::Dead);
            return;
        }
        if let Some(observer) = &mut self.observer {
            observer(self.now, at, &packet);
        }
        let subnet = packet.is_smp();
        let index = if subnet { Some(0) } else { self.admit(at, &packet) };
        let Some(p_key_index) = index else { return };
        let header = &packet.mad.header;
        let (class, method) = (header.mgmt_class(), header.method());
        if is_for_sma(header) && self.asked_by(at, &packet).is_none() {
            self.subnet_management(at, &packet);
        } else if class == MgmtClass::PERF && matches!(method, Method::GET | Method::SET) {
            self.performance_management(at, &packet);
        } else {
            self.deliver(at, packet, p_key_index);
        }
    }

    /// What the agents of a port's own device say to a MAD from a program there, without any wire between (a directed route
    /// without hops, counters). `None` when it is not for them, or they give no answer.
    pub fn ask_agents(&mut self, at: End, mad: &Mad) -> Option<Mad> {
        if self.devices[at.node as usize].dead {
            return None;
        }
        let header = &mad.header;
        if is_for_sma(header) {
            let packet = self.packet(at, &Address::DIRECTED, *mad);
            let mut smp = self.ask_sma(at, &packet)?.smp;
            if packet.is_directed() {
                smp.set_returning();
                smp.header.hop_pointer = 0;
            }
            return Some(smp.into_mad());
        }
        let for_pma =
            header.mgmt_class() == MgmtClass::PERF && matches!(header.method(), Method::GET | Method::SET);
        for_pma.then(|| {
            self.stats.count_answered(header);
            let device = &mut self.devices[at.node as usize];
            device.performance_management(&PerfMad::from_mad(*mad), self.now).into_mad()
        })
    }

    /// The device's own agent answers.
    fn subnet_management(&mut self, at: End, packet: &Packet) {
        if let Some(answer) = self.ask_sma(at, packet) {
            let delay = self.config.response_time + answer.delay;
            self.answer(at, packet, answer.smp.into_mad(), delay);
        }
    }

    /// Lets the subnet management agent do what an SMP asks.
    fn ask_sma(&mut self, at: End, packet: &Packet) -> Option<Answer> {
        let mut effects = std::mem::take(&mut self.effects);
        let request = Smp::from_mad(packet.mad);
        if request.header.method() == Method::SET && changes_entries(request.header.attribute_id.get()) {
            self.check_new_links();
        }
        self.stats.count_answered(&packet.mad.header);
        let device = &mut self.devices[at.node as usize];
        let answer = device.subnet_management(at.port, &request, self.now, &mut effects);
        for effect in effects.drain(..) {
            self.carry_out(at, packet, effect);
        }
        self.effects = effects;
        if request.header.method() == Method::SET {
            self.tell_agents(
                End { node: at.node, port: self.device(at.node).end_port(at.port) },
                PortEvent::Changed,
            );
        }
        answer
    }

    /// The device's performance agent answers.
    fn performance_management(&mut self, at: End, packet: &Packet) {
        self.stats.count_answered(&packet.mad.header);
        let device = &mut self.devices[at.node as usize];
        let answer = device.performance_management(&PerfMad::from_mad(packet.mad), self.now);
        self.answer(at, packet, answer.into_mad(), self.config.response_time);
    }

    fn carry_out(&mut self, at: End, packet: &Packet, effect: Effect) {
        let end = |port| End { node: at.node, port };
        match effect {
            Effect::Retrain(port) => self.retrain(end(port)),
            Effect::Disable(port) => self.disable(end(port)),
            Effect::Armed(port) => self.check_link(end(port)),
            Effect::LinearBlock { first, old } => self.check_block(at.node, first, &old),
            Effect::LinearTopRaised { from } => self.check_top(at.node, from),
            Effect::Repress(trap) => self.repress(at.node, &trap),
            Effect::MKeyViolation { port } => self.raise_m_key_trap(end(port), packet),
            Effect::ClientReregister(port) => {
                self.stats.client_reregisters += 1;
                self.tell_agents(end(port), PortEvent::Reregister);
            }
        }
    }

    /// Sends the answer to `request` back to where it came from.
    fn answer(&mut self, at: End, request: &Packet, mad: Mad, delay: Duration) {
        let mut packet = request.answered(mad);
        if packet.is_directed() {
            let mut smp = Smp::from_mad(packet.mad);
            smp.set_returning();
            packet.mad = smp.into_mad();
        }
        self.emit(at, packet, delay);
    }

    /// Walks a packet from `from` to where it goes and lets it arrive there.
    fn emit(&mut self, from: End, mut packet: Packet, delay: Duration) {
        let walked = if packet.is_directed() {
            self.walk_directed(from, &mut packet)
        } else {
            let route = LocalRoute::from(&packet);
            match route.multicast() {
                // SMPs are unicast.
                Some(_) if route.vl15 => Err(Drop::WrongLid),
                Some(mlid) => {
                    for (at, hops) in self.replicate(from, &route, mlid) {
                        self.post(at, hops, packet, delay);
                    }
                    return;
                }
                None => self.walk_by_lid(from, &route),
            }
        };
        match walked {
            Ok((at, hops)) => self.post(at, hops, packet, delay),
            Err(reason) => self.stats.drop(reason),
        }
    }

    /// Lets a packet arrive that has been walked.
    fn post(&mut self, at: End, hops: u32, packet: Packet, delay: Duration) {
        let copies =
            1 + u32::from(self.config.duplication > 0.0 && self.rng.random_bool(self.config.duplication));
        for _ in 0..copies {
            let mut when = self.now + delay + self.config.hop_latency * hops;
            if !self.config.jitter.is_zero() {
                when += Duration::from_nanos(self.rng.random_range(0..=self.config.jitter.as_nanos() as u64));
            }
            self.queue.push(when, Event::Arrive { at, packet: Box::new(packet) });
        }
    }
}

/// Whether a Set of an attribute may change where a switch sends a LID.
const fn changes_entries(attribute: u16) -> bool {
    matches!(
        attribute,
        ids::sm::LINEAR_FORWARDING_TABLE
            | ids::sm::SWITCH_INFO
            | ids::vendor::ADAPTIVE_ROUTING_LINEAR_FORWARDING_TABLE
    )
}

/// Whether a MAD is one that a device's subnet management agent takes, and no subnet manager on it.
fn is_for_sma(header: &MadHeader) -> bool {
    let class = header.mgmt_class();
    (class == MgmtClass::SUBN_DR || class == MgmtClass::SUBN_LID)
        && matches!(header.method(), Method::GET | Method::SET | Method::TRAP_REPRESS)
        && header.attribute_id.get() != ids::sm::SM_INFO
}
