//! The world as tests see it: what they share.

mod agents;
mod checks;
mod counters;
mod data;
mod forwarding;
mod links;
mod notices;

use std::sync::{Arc, Mutex};

use mad::transport::{Address, Datagram};
use mad::types::{DirectedPath, Lid, MulticastLid, PKey, PortPhysState, PortState, ServiceLevel};
use mad::wire::smp::{NodeInfo, Notice, PortInfo};
use mad::wire::{Attribute, Mad};
use routing::engines::{MinHop, RoutingEngine, RoutingInput};
use routing::fabric::SwitchGraph;

use super::*;
use crate::generate::{Options, Topology, assign_lids, generate};

/// Collects what comes in, and sends nothing by itself.
#[derive(Default)]
struct Probe(Vec<Datagram>);

impl Agent for Probe {
    fn receive(&mut self, datagram: Datagram, _now: Timestamp) {
        self.0.push(datagram);
    }

    fn poll(&mut self, _now: Timestamp) -> Option<AgentOutput> {
        None
    }

    fn deadline(&self) -> Option<Timestamp> {
        None
    }
}

fn world(topology: &Topology) -> World {
    World::new(&generate(topology, &Options::default()).unwrap(), Config::default())
}

fn probe(world: &mut World, node: &str) -> AgentId {
    let node = world.find_name(node).unwrap();
    let port = u8::from(!world.device(node).is_switch());
    world.attach(End::new(node, port), Box::new(Probe::default())).unwrap()
}

/// What an agent has received since the last call.
fn take(world: &mut World, agent: AgentId) -> Vec<Datagram> {
    let until = world.now() + Duration::from_millis(1);
    world.run_until(until);
    std::mem::take(&mut world.agent_mut::<Probe>(agent).unwrap().0)
}

fn directed(method: Method, attribute: u16, modifier: u32, path: &[u8]) -> Smp {
    Smp::directed(method, attribute, modifier, &DirectedPath::new(path).unwrap())
}

fn ask(world: &mut World, agent: AgentId, smp: Smp, address: Address) -> Vec<Smp> {
    world.send(agent, &Datagram { address, mad: smp.into_mad() });
    let answers = take(world, agent).into_iter().map(|datagram| Smp::from_mad(datagram.mad));
    answers.filter(|smp| smp.header.method() == Method::GET_RESP).collect()
}

fn node_info(world: &mut World, agent: AgentId, path: &[u8]) -> Option<NodeInfo> {
    let smp = directed(Method::GET, NodeInfo::ID, 0, path);
    let answers = ask(world, agent, smp, Address::DIRECTED);
    answers.first().and_then(|smp| NodeInfo::decode(&smp.data))
}

/// Writes LIDs, tables and states into the devices, as a subnet manager would have by MADs.
fn configure(world: &mut World, top_sm: u16) {
    let mut fabric = world.fabric();
    assign_lids(&mut fabric).unwrap();
    let graph = SwitchGraph::new(&fabric);
    let routes = MinHop.route(&graph, &RoutingInput::default()).unwrap();
    for (index, (_, node)) in fabric.nodes().enumerate() {
        let device = world.device_mut(index as u32);
        for number in device.end_ports() {
            let lid = node.ports[usize::from(number)].as_ref().unwrap().lid.unwrap();
            device.ports[usize::from(number)].info.base_lid.set(lid.get());
        }
        for port in device.ports.iter_mut().filter(|port| port.is_up()) {
            port.info.master_sm_lid.set(top_sm);
            port.set_state(PortState::Active, PortPhysState::LinkUp);
        }
    }
    for row in 0..graph.switch_count() as u32 {
        let node = world.find(graph.guid(row)).unwrap();
        let tables = world.device_mut(node).switch.as_mut().unwrap();
        tables.info.linear_fdb_top.set(graph.top_lid());
        for (block, entries) in routes.lfts.row(row).blocks().enumerate() {
            tables.set_linear_block(block as u16, entries);
        }
    }
}

fn gsi(method: Method) -> Mad {
    let mut mad = Mad::zeroed();
    mad.header.base_version = 1;
    mad.header.mgmt_class = MgmtClass::SUBN_ADM.0;
    mad.header.class_version = 2;
    mad.header.method = method.0;
    mad
}
