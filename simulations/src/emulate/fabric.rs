//! The simulated world as the emulator's fabric: one agent on each port where a program sits, standing for the kernel's
//! MAD layer there.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use mad::transport::Datagram;
use mad::types::{Gid, Guid, PKey, Timestamp};
use mad::wire::Mad;
use mad::wire::smp::PortInfo;
use rustc_hash::FxHashMap;

use super::backend::{Backend, DataHeader, Delivery, DeviceFacts, Endpoint, Key, NodeId, PortFacts};
use super::commands;
use super::console::Command;
use crate::world::{Agent, AgentId, AgentOutput, End, Packet, World};

/// What has come to all ports with programs, in the order in which it came.
type Arrivals = Arc<Mutex<VecDeque<Delivery>>>;

/// A world that programs attach to.
pub struct EmulatedFabric {
    world: World,
    agents: FxHashMap<Endpoint, AgentId>,
    arrivals: Arrivals,
    by_name: FxHashMap<String, u32>,
}

impl EmulatedFabric {
    /// Puts a world into the emulator.
    pub fn new(world: World) -> Self {
        let mut by_name = FxHashMap::default();
        for (index, device) in world.devices().iter().enumerate() {
            by_name.entry(device.name()).or_insert(index as u32);
        }
        Self { world, agents: FxHashMap::default(), arrivals: Arrivals::default(), by_name }
    }

    /// The agent of a port, which is attached when it is first needed; `None` where no program can sit.
    fn agent(&mut self, endpoint: Endpoint) -> Option<AgentId> {
        if let Some(agent) = self.agents.get(&endpoint) {
            return Some(*agent);
        }
        let layer = MadLayer { endpoint, arrivals: Arc::clone(&self.arrivals) };
        let agent = self.world.attach(endpoint.into(), Box::new(layer))?;
        self.agents.insert(endpoint, agent);
        Some(agent)
    }
}

impl From<Endpoint> for End {
    fn from(endpoint: Endpoint) -> Self {
        Self { node: endpoint.node.0, port: endpoint.port }
    }
}

/// Collects what comes to a port; what is made of it is decided by the emulator's umad layer.
struct MadLayer {
    endpoint: Endpoint,
    arrivals: Arrivals,
}

impl Agent for MadLayer {
    fn owns_port(&self) -> bool {
        true
    }

    fn receive(&mut self, datagram: Datagram, _now: Timestamp) {
        let delivery = Delivery { endpoint: self.endpoint, datagram };
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner).push_back(delivery);
    }

    fn poll(&mut self, _now: Timestamp) -> Option<AgentOutput> {
        None
    }

    fn deadline(&self) -> Option<Timestamp> {
        None
    }
}

impl Backend for EmulatedFabric {
    fn find(&self, name: &str) -> Option<NodeId> {
        let known = self.by_name.get(name).copied();
        // A name that was given since the start, or a GUID.
        let index = known.filter(|index| self.world.device(*index).name() == name);
        index.or_else(|| self.world.find_name(name)).map(NodeId)
    }

    fn default_node(&self) -> Option<NodeId> {
        let first =
            |switch: bool| self.world.devices().iter().position(|device| device.is_switch() == switch);
        first(false).or_else(|| first(true)).map(|index| NodeId(index as u32))
    }

    fn device(&self, node: NodeId) -> DeviceFacts {
        let device = self.world.device(node.0);
        let info = &device.node_info;
        DeviceFacts {
            node_type: device.kind(),
            node_guid: device.guid(),
            system_image_guid: Guid(info.system_image_guid.get()),
            device_id: info.device_id.get(),
            vendor_id: info.vendor_id(),
            revision: info.revision.get(),
            description: device.name(),
            ports: device.end_ports().map(mad::types::PortNum).collect(),
        }
    }

    fn port(&self, endpoint: Endpoint) -> PortFacts {
        let device = self.world.device(endpoint.node.0);
        let port = &device.ports[endpoint.port.index()];
        let prefix = port.info.gid_prefix.get();
        let guids = std::iter::once(port.guid).chain(port.alias_guids.iter().copied());
        let mut gids: Vec<Gid> = guids.map(|guid| Gid::new(prefix, Guid(guid))).collect();
        gids.resize(usize::from(port.info.guid_cap).max(1), Gid(0));
        let mut p_keys = port.p_keys.clone();
        p_keys.resize(usize::from(port.p_key_cap).max(1), PKey(0));
        PortFacts { info: port.info, gids, p_keys, client_reregisters: port.client_reregisters }
    }

    fn inject(&mut self, endpoint: Endpoint, datagram: &Datagram, now: Timestamp) {
        self.world.run_until(now);
        if let Some(agent) = self.agent(endpoint) {
            self.world.send(agent, datagram);
        }
    }

    fn poll(&mut self, now: Timestamp) -> Option<Delivery> {
        self.world.run_until(now);
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.world.next_event()
    }

    fn set_is_sm(&mut self, endpoint: Endpoint, is_sm: bool, now: Timestamp) {
        self.world.run_until(now);
        if let Some(agent) = self.agent(endpoint) {
            self.world.set_is_sm(agent, is_sm);
        }
    }

    fn set_capabilities(&mut self, endpoint: Endpoint, set: u32, clear: u32, now: Timestamp) {
        if (set | clear) & PortInfo::CAP_IS_SM != 0 {
            self.set_is_sm(endpoint, set & PortInfo::CAP_IS_SM != 0, now);
        }
        self.world.run_until(now);
        self.world.set_capabilities(
            endpoint.into(),
            set & !PortInfo::CAP_IS_SM,
            clear & !PortInfo::CAP_IS_SM,
        );
    }

    fn describe(&mut self, node: NodeId, description: &str, now: Timestamp) {
        self.world.run_until(now);
        self.world.rename(node.0, description);
    }

    fn ask_agents(&mut self, endpoint: Endpoint, mad: &Mad, now: Timestamp) -> Option<Mad> {
        self.world.run_until(now);
        self.world.ask_agents(endpoint.into(), mad)
    }

    fn carry(&mut self, from: Endpoint, header: &DataHeader, now: Timestamp) -> Vec<Endpoint> {
        self.world.run_until(now);
        let reached = self.world.carry_data(from.into(), header.dlid, header.p_key, header.bytes);
        reached.into_iter().map(|end| Endpoint { node: NodeId(end.node), port: end.port }).collect()
    }

    fn refused(&mut self, endpoint: Endpoint, packet: &Packet, key: Key, now: Timestamp) {
        self.world.run_until(now);
        match key {
            Key::P => self.world.refuse_p_key(endpoint.into(), packet),
            Key::Q => self.world.refuse_q_key(endpoint.into(), packet),
        }
    }

    fn attach(&mut self, endpoint: Endpoint) {
        let _ = self.agent(endpoint);
    }

    fn command(&mut self, command: &Command, now: Timestamp) -> Result<String, String> {
        self.world.run_until(now);
        commands::carry_out(&mut self.world, command)
    }
}
