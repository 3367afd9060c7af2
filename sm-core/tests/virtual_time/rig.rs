//! A simulated fabric with one or more subnet managers on it.

use std::time::Duration;

use mad::transport::Datagram;
use mad::types::{Guid, NodeType, PortNum, PortState, Timestamp};
use mad::wire::smp::{LinearForwardingTable, NodeDescription, NodeInfo, PortInfo, Smp, SwitchInfo};
use mad::wire::{Attribute, Mad, Method, MgmtClass};
use routing::fabric::{Fabric, Node, NodeId, PortRef};
use simulations::world::{Agent, AgentId, AgentOutput, Config, End, World};
use sm_core::settings::SmSettings;
use sm_core::sm::{Action, Event, Inline, Report, Role, Sm};
use sm_core::store::Restored;

pub(crate) struct SmAgent(pub(crate) Inline);

impl Agent for SmAgent {
    fn accepts(&self, mad: &Mad) -> bool {
        let class = mad.header.mgmt_class();
        class == MgmtClass::SUBN_LID || class == MgmtClass::SUBN_DR || class == MgmtClass::PERF
    }

    fn receive(&mut self, datagram: Datagram, now: Timestamp) {
        self.0.receive(datagram, now);
    }

    fn poll(&mut self, now: Timestamp) -> Option<AgentOutput> {
        loop {
            match self.0.poll(now)? {
                Action::Send(datagram, _) => return Some(AgentOutput::Send(datagram)),
                Action::SetIsSm(on) => return Some(AgentOutput::IsSm(on)),
                _ => {}
            }
        }
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.0.deadline()
    }
}

/// A fabric under construction: nodes by name.
#[derive(Default)]
pub(crate) struct Plan {
    pub(crate) fabric: Fabric,
}

impl Plan {
    pub(crate) fn switch(&mut self, name: &str, ports: u8) -> NodeId {
        let guid = Guid(0x5000 + self.fabric.node_count() as u64 * 0x10);
        self.fabric.add_node(Node::new(NodeType::Switch, guid, name, ports)).unwrap()
    }

    pub(crate) fn host(&mut self, name: &str, ports: u8) -> NodeId {
        let guid = Guid(0x1000 + self.fabric.node_count() as u64 * 0x10);
        self.fabric.add_node(Node::new(NodeType::Ca, guid, name, ports)).unwrap()
    }

    pub(crate) fn cable(&mut self, a: NodeId, a_port: u8, b: NodeId, b_port: u8) {
        let end = |node, port| PortRef { node, port: PortNum(port) };
        self.fabric.connect(end(a, a_port), end(b, b_port)).unwrap();
    }
}

/// Two switches of 8 ports joined by two cables (ports 7 and 8), hosts H0 and H1 on the first, H2 and H3 on the second.
pub(crate) fn two_switches() -> Fabric {
    let mut plan = Plan::default();
    let hosts: Vec<NodeId> = (0..4).map(|i| plan.host(&format!("H{i}"), 1)).collect();
    let switches = [plan.switch("S0", 8), plan.switch("S1", 8)];
    for (i, host) in hosts.into_iter().enumerate() {
        plan.cable(host, 1, switches[i / 2], (i % 2 + 1) as u8);
    }
    plan.cable(switches[0], 7, switches[1], 7);
    plan.cable(switches[0], 8, switches[1], 8);
    plan.fabric
}

/// `leaves` leaf switches with `hosts` hosts each, every leaf joined to each of `spines` spine switches.
pub(crate) fn tree(leaves: u8, spines: u8, hosts: u8) -> Fabric {
    let mut plan = Plan::default();
    let mut leaf_ids = Vec::new();
    for leaf in 0..leaves {
        let id = plan.switch(&format!("L{leaf}"), hosts + spines);
        for host in 0..hosts {
            let host_id = plan.host(&format!("H{}", u32::from(leaf) * u32::from(hosts) + u32::from(host)), 1);
            plan.cable(host_id, 1, id, host + 1);
        }
        leaf_ids.push(id);
    }
    for spine in 0..spines {
        let id = plan.switch(&format!("T{spine}"), leaves);
        for (leaf, leaf_id) in leaf_ids.iter().enumerate() {
            plan.cable(*leaf_id, hosts + spine + 1, id, leaf as u8 + 1);
        }
    }
    plan.fabric
}

pub(crate) struct Rig {
    pub(crate) world: World,
    pub(crate) sm: AgentId,
}

impl Rig {
    /// A fabric with a subnet manager on port 1 of H0.
    pub(crate) fn new(fabric: &Fabric) -> Self {
        Self::with(fabric, Config::default(), SmSettings::default(), |_| ())
    }

    pub(crate) fn with(
        fabric: &Fabric,
        config: Config,
        settings: SmSettings,
        prepare: impl FnOnce(&mut World),
    ) -> Self {
        let mut world = World::new(fabric, config);
        prepare(&mut world);
        let sm = attach(&mut world, "H0", settings, Restored::default());
        Self { world, sm }
    }

    /// With the manager on another port than H0's.
    pub(crate) fn on(fabric: &Fabric, name: &str, port: u8, settings: SmSettings) -> Self {
        let mut world = World::new(fabric, Config::default());
        let sm = attach_at(&mut world, name, port, settings, Restored::default());
        Self { world, sm }
    }

    pub(crate) fn inline(&self) -> &Inline {
        &self.world.agent::<SmAgent>(self.sm).unwrap().0
    }

    pub(crate) fn reports(&self) -> &[Report] {
        &self.inline().reports
    }

    pub(crate) fn last(&self) -> &Report {
        self.reports().last().expect("no round has ended yet")
    }

    pub(crate) fn role(&self) -> Role {
        self.inline().sm.role()
    }

    /// Runs for so long.
    pub(crate) fn run(&mut self, time: Duration) {
        let until = self.world.now() + time;
        self.world.run_until(until);
    }

    /// Runs until the manager has nothing left to do in a hurry. Panics when that takes more than an hour.
    pub(crate) fn settle(&mut self) -> Report {
        let until = self.world.now() + Duration::from_secs(3600);
        let sm = self.sm;
        let done = self.world.run_while(until, |world| {
            let inline = &world.agent::<SmAgent>(sm).unwrap().0;
            inline.sm.is_settled() && !inline.reports.is_empty()
        });
        assert!(done, "not settled: {:?}", self.inline().sm.progress());
        self.last().clone()
    }

    /// Hands the manager an event.
    pub(crate) fn tell(&mut self, event: Event) {
        let now = self.world.now();
        self.world.agent_mut::<SmAgent>(self.sm).unwrap().0.handle(event, now);
        self.world.pump(self.sm);
    }

    pub(crate) fn node(&self, name: &str) -> u32 {
        self.world.find_name(name).unwrap_or_else(|| panic!("no node {name}"))
    }

    pub(crate) fn end(&self, name: &str, port: u8) -> End {
        End::new(self.node(name), port)
    }

    pub(crate) fn port_info(&self, name: &str, port: u8) -> PortInfo {
        self.world.device(self.node(name)).port(PortNum(port)).unwrap().info
    }

    pub(crate) fn port_guid(&self, name: &str, port: u8) -> Guid {
        Guid(self.world.device(self.node(name)).port(PortNum(port)).unwrap().guid)
    }

    pub(crate) fn state(&self, name: &str, port: u8) -> Option<PortState> {
        self.port_info(name, port).port_state()
    }

    pub(crate) fn lid(&self, name: &str, port: u8) -> u16 {
        self.port_info(name, port).base_lid.get()
    }

    /// Everything in the simulated devices is right.
    #[track_caller]
    pub(crate) fn assert_right(&self) {
        let verdict = self.world.check();
        assert!(verdict.is_right(false), "{verdict}");
    }

    /// A further full sweep sends no Set.
    #[track_caller]
    pub(crate) fn assert_quiet(&mut self) {
        self.world.reset_stats();
        let rounds = self.reports().len();
        self.tell(Event::SweepRequested);
        self.settle();
        assert!(self.reports().len() > rounds);
        assert_eq!(self.world.stats().sets(), 0, "Sets on an unchanged fabric: {:?}", self.last().sets);
        assert_eq!(self.world.stats().client_reregisters, 0);
    }

    pub(crate) fn sets(&self, attribute: u16) -> u64 {
        self.world.stats().sent_smps(Method::SET, attribute)
    }

    pub(crate) fn gets(&self, attribute: u16) -> u64 {
        self.world.stats().sent_smps(Method::GET, attribute)
    }
}

/// Puts a subnet manager on port 1 of a node.
pub(crate) fn attach(world: &mut World, name: &str, settings: SmSettings, restored: Restored) -> AgentId {
    attach_at(world, name, 1, settings, restored)
}

fn attach_at(world: &mut World, name: &str, port: u8, settings: SmSettings, restored: Restored) -> AgentId {
    let node = world.find_name(name).unwrap();
    let own = world.device(node).port(PortNum(port)).map_or(Guid::NONE, |port| Guid(port.guid));
    let sm = Sm::new(settings, restored, false, 0x1000 * (node + 1)).on_port(own);
    world.attach(End::new(node, port), Box::new(SmAgent(Inline::new(sm)))).unwrap()
}

pub(crate) const NODE_INFO: u16 = NodeInfo::ID;
pub(crate) const NODE_DESCRIPTION: u16 = NodeDescription::ID;
pub(crate) const PORT_INFO: u16 = PortInfo::ID;
pub(crate) const SWITCH_INFO: u16 = SwitchInfo::ID;
pub(crate) const LFT: u16 = LinearForwardingTable::ID;

/// A stranger with a port and a guess.
#[derive(Default)]
pub(crate) struct Stranger {
    to_send: Vec<Datagram>,
    came: Vec<Datagram>,
}

impl Agent for Stranger {
    fn accepts(&self, mad: &Mad) -> bool {
        mad.header.transaction_id.get() == 0x5157
    }

    fn receive(&mut self, datagram: Datagram, _: Timestamp) {
        self.came.push(datagram);
    }

    fn poll(&mut self, _: Timestamp) -> Option<AgentOutput> {
        self.to_send.pop().map(AgentOutput::Send)
    }

    fn deadline(&self) -> Option<Timestamp> {
        None
    }
}

/// Asks a LID; the answers.
pub(crate) fn ask(rig: &mut Rig, stranger: AgentId, lid: u16, mut smp: Smp) -> Vec<Smp> {
    smp.header.transaction_id.set(0x5157);
    let address = mad::transport::Address { lid, ..mad::transport::Address::DIRECTED };
    let agent = rig.world.agent_mut::<Stranger>(stranger).unwrap();
    agent.came.clear();
    agent.to_send.push(Datagram { address, mad: smp.into_mad() });
    rig.world.pump(stranger);
    rig.run(Duration::from_millis(50));
    let came = &rig.world.agent::<Stranger>(stranger).unwrap().came;
    came.iter().map(|datagram| Smp::from_mad(datagram.mad)).collect()
}
