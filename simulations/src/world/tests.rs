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
        for (block, entries) in routes.lfts.row(row).chunks_exact(64).enumerate() {
            tables.set_linear_block(block as u16, entries.try_into().unwrap());
        }
    }
}

#[test]
fn directed_routes_lead_hop_by_hop_and_back_and_bad_ones_get_lost() {
    let mut world = world(&Topology::tree(2, 1, 2));
    let agent = probe(&mut world, "H0");
    for (path, name, entry) in [
        (&[][..], "H0", 1),
        (&[1], "S1_0", 1),
        (&[1, 2], "H1", 1),
        (&[1, 3], "S2_0", 1),
        (&[1, 3, 2, 1], "H2", 1),
        (&[1, 3, 2, 3, 1], "S1_0", 3),
    ] {
        let answers = ask(&mut world, agent, directed(Method::GET, NodeInfo::ID, 0, path), Address::DIRECTED);
        let [smp] = answers[..] else { panic!("{path:?}: {} answers", answers.len()) };
        let info = NodeInfo::decode(&smp.data).unwrap();
        let node = world.find(info.node_guid()).unwrap();
        assert_eq!((world.device(node).name().as_str(), info.local_port_num().0), (name, entry), "{path:?}");
        assert!(smp.is_returning() && smp.header.status().is_ok());
        assert_eq!(smp.header.hop_pointer, 0);
    }
    // Out of the wrong port, through an adapter, a port that isn't there, a port without cable, port 0.
    for path in [&[2][..], &[1, 2, 1], &[1, 99], &[1, 3, 2, 99], &[1, 0]] {
        assert_eq!(node_info(&mut world, agent, path), None, "{path:?}");
    }
    let mut smp = directed(Method::GET, NodeInfo::ID, 0, &[1]);
    smp.header.hop_pointer = 1;
    assert!(ask(&mut world, agent, smp, Address::DIRECTED).is_empty());
    assert_eq!(world.stats().dropped(Drop::BadRoute), 6);
}

#[test]
fn lid_routed_packets_follow_the_tables_in_the_switches() {
    let mut world = world(&Topology::tree(4, 2, 2));
    configure(&mut world, 1);
    let agent = probe(&mut world, "H0");
    let count = world.device_count() as u16;
    for lid in 1..=count {
        let smp = Smp::lid_routed(Method::GET, NodeInfo::ID, 0);
        let answers = ask(&mut world, agent, smp, Address::smp(lid));
        assert_eq!(answers.len(), 1, "LID {lid}");
        let guid = NodeInfo::decode(&answers[0].data).unwrap().node_guid();
        let node = world.find(guid).unwrap();
        let port = usize::from(!world.device(node).is_switch());
        assert_eq!(world.device(node).ports[port].info.lid(), Lid::new(lid));
    }
    // The entry for H7 on the first leaf leads to the wrong host: the packet is refused there.
    let (leaf, h7) = (world.find_name("S1_0").unwrap(), 8);
    let mut block = world.device(leaf).switch.as_ref().unwrap().linear_block(0);
    block[h7] = 2;
    world.device_mut(leaf).switch.as_mut().unwrap().set_linear_block(0, &block);
    let smp = Smp::lid_routed(Method::GET, NodeInfo::ID, 0);
    assert!(ask(&mut world, agent, smp, Address::smp(h7 as u16)).is_empty());
    block[h7] = 255;
    world.device_mut(leaf).switch.as_mut().unwrap().set_linear_block(0, &block);
    assert!(ask(&mut world, agent, smp, Address::smp(h7 as u16)).is_empty());
    assert_eq!((world.stats().dropped(Drop::WrongLid), world.stats().dropped(Drop::NoEntry)), (1, 1));
}

/// The checker checked: what is planted in the switches is found.
#[test]
fn a_planted_loop_hole_shared_lid_and_wrong_mtu_are_each_found() {
    let build = || {
        let mut world = world(&Topology::tree(4, 2, 2));
        configure(&mut world, 1);
        world
    };
    let sound = build();
    let verdict = sound.check();
    assert!(verdict.is_right(true), "{verdict}");

    // A loop, by a MAD as a subnet manager would: leaf 0 and spine 0 point at each other for LID 8.
    let mut world = build();
    let agent = probe(&mut world, "H0");
    for (name, path, port) in [("S1_0", &[1][..], 3), ("S2_0", &[1, 3], 1)] {
        let node = world.find_name(name).unwrap();
        let mut smp = directed(Method::SET, ids::sm::LINEAR_FORWARDING_TABLE, 0, path);
        smp.data = world.device(node).switch.as_ref().unwrap().linear_block(0);
        smp.data[8] = port;
        assert_eq!(ask(&mut world, agent, smp, Address::DIRECTED).len(), 1);
    }
    let (loops, count) = world.loops();
    assert_eq!((count, loops[0].lid, loops[0].switches.len()), (1, 8, 2));
    assert!(!world.check().is_right(false));
    let smp = Smp::lid_routed(Method::GET, NodeInfo::ID, 0);
    assert!(ask(&mut world, agent, smp, Address::smp(8)).is_empty());
    assert_eq!(world.stats().dropped(Drop::TooManyHops), 1);

    let mut world = build();
    let leaf = world.find_name("S1_2").unwrap();
    let mut block = world.device(leaf).switch.as_ref().unwrap().linear_block(0);
    block[1] = 255;
    world.device_mut(leaf).switch.as_mut().unwrap().set_linear_block(0, &block);
    assert!(!world.check().routes.reaches_all());

    let mut world = build();
    let (a, b) = (world.find_name("H3").unwrap(), world.find_name("H5").unwrap());
    let lid = world.device(a).ports[1].info.base_lid;
    world.device_mut(b).ports[1].info.base_lid = lid;
    let shared = Finding::SharedLid(Lid::new(lid.get()).unwrap(), End::new(a, 1), End::new(b, 1));
    assert_eq!(world.check_ports(), [shared]);

    let mut world = build();
    world.device_mut(a).ports[1].info.set_neighbor_mtu_raw(1);
    assert!(matches!(world.check_ports()[..], [Finding::MtuMismatch(..)]));
    world.device_mut(a).ports[1].set_state(PortState::Armed, PortPhysState::LinkUp);
    assert_eq!(world.check_ports()[0], Finding::NotActive(End::new(a, 1), PortState::Armed));
}

/// A credit loop: minhop on a ring of switches makes one.
#[test]
fn a_credit_loop_in_the_switches_is_found() {
    let mut world = world(&Topology::Torus { dims: vec![6], hosts: 1 });
    configure(&mut world, 1);
    let verdict = world.check();
    assert!(verdict.is_right(false) && !verdict.is_right(true), "{verdict}");
}

#[test]
fn a_link_that_comes_up_can_close_a_loop_and_is_caught() {
    let mut world = world(&Topology::tree(2, 2, 1));
    configure(&mut world, 1);
    let (leaf, spine) = (world.find_name("S1_0").unwrap(), world.find_name("S2_0").unwrap());
    let end = End::new(leaf, 2);
    assert!(world.unlink(end).is_some());
    for (node, port) in [(leaf, 2), (spine, 1)] {
        let mut block = world.device(node).switch.as_ref().unwrap().linear_block(0);
        block[2] = port;
        world.device_mut(node).switch.as_mut().unwrap().set_linear_block(0, &block);
    }
    assert_eq!(world.loops().1, 0);
    assert!(world.relink(end));
    assert_eq!(world.loops().1, 0, "no data passes yet");
    let agent = probe(&mut world, "H0");
    for (path, node, port) in [(&[1][..], leaf, 2_u8), (&[1, 2], spine, 1)] {
        let mut info = world.device(node).ports[usize::from(port)].info;
        info.set_port_state_raw(PortState::Armed.to_wire());
        info.set_port_phys_state_raw(0);
        let mut smp = directed(Method::SET, PortInfo::ID, port.into(), path);
        assert!(info.encode(&mut smp.data));
        assert_eq!(ask(&mut world, agent, smp, Address::DIRECTED).len(), 1);
    }
    assert!(world.loops().1 > 0);
}

/// Both ends fall back to Init when one is set Down; a disabled one takes the link away until it is enabled.
#[test]
fn set_down_retrains_both_ends_and_disable_keeps_the_link_down() {
    let mut world = world(&Topology::tree(2, 1, 1));
    configure(&mut world, 1);
    let agent = probe(&mut world, "H0");
    let (host, leaf) = (world.find_name("H0").unwrap(), world.find_name("S1_0").unwrap());
    let spine = world.find_name("S2_0").unwrap();
    let state = |world: &World, node: u32, port: usize| {
        let port = &world.device(node).ports[port];
        (port.state(), port.info.port_phys_state().unwrap())
    };
    let set = |world: &mut World, port: u32, state: u8, phys: u8| {
        let mut info = world.device(leaf).ports[port as usize].info;
        info.set_port_state_raw(state);
        info.set_port_phys_state_raw(phys);
        let mut smp = directed(Method::SET, PortInfo::ID, port, &[1]);
        assert!(info.encode(&mut smp.data));
        ask(world, agent, smp, Address::DIRECTED)
    };
    let init = (PortState::Init, PortPhysState::LinkUp);
    assert_eq!(set(&mut world, 2, 1, 0).len(), 1);
    assert_eq!((state(&world, leaf, 2), state(&world, spine, 1)), (init, init));
    assert_eq!(world.device(leaf).switch.as_ref().unwrap().info.port_state_change(), 1);
    assert_eq!(set(&mut world, 2, 1, 3).len(), 1);
    assert_eq!(state(&world, leaf, 2), (PortState::Down, PortPhysState::Disabled));
    assert_eq!(state(&world, spine, 1), (PortState::Down, PortPhysState::Polling));
    assert_eq!(set(&mut world, 2, 1, 2).len(), 1);
    assert_eq!((state(&world, leaf, 2), state(&world, spine, 1)), (init, init));
    // The answer to what cuts the way back is lost.
    assert_eq!(set(&mut world, 1, 1, 3).len(), 0);
    assert_eq!(state(&world, host, 1), (PortState::Down, PortPhysState::Polling));
}

#[test]
fn traps_are_sent_to_the_sm_and_again_until_they_are_repressed() {
    let mut world = world(&Topology::tree(2, 3, 1));
    configure(&mut world, 1);
    let agent = probe(&mut world, "H0");
    let (near, leaf) = (world.find_name("S1_0").unwrap(), world.find_name("S1_1").unwrap());
    // The uplink that neither the trap nor its repress takes: both leaves have spine n on port n + 2.
    let lid = world.device(leaf).ports[0].info.base_lid.get();
    let exit = |node, lid| world.device(node).switch.as_ref().unwrap().exit(lid);
    let used = [exit(leaf, 1), exit(near, lid)];
    let spare = (2..=4).find(|port| !used.contains(port)).unwrap();
    world.unlink(End::new(leaf, spare)).unwrap();
    let first = take(&mut world, agent);
    assert_eq!(first.len(), 2, "both ends of the link are switches");
    let notices: Vec<Notice> =
        first.iter().map(|d| Notice::decode(&Smp::from_mad(d.mad).data).unwrap()).collect();
    assert!(notices.iter().all(|notice| notice.trap_number() == Some(128)));
    let again = world.after_trap_period(End::new(leaf, 0));
    world.run_until(again);
    assert_eq!(take(&mut world, agent).len(), 2);
    for datagram in &first {
        let mut mad = datagram.mad;
        mad.header.method = Method::TRAP_REPRESS.0;
        world.send(agent, &Datagram { address: Address::smp(datagram.address.lid), mad });
    }
    assert!(take(&mut world, agent).is_empty());
    assert_eq!(world.pending_traps(), 0);
    let again = world.after_trap_period(End::new(leaf, 0));
    world.run_until(again + Duration::from_secs(60));
    assert!(take(&mut world, agent).is_empty());

    world.set_is_sm(agent, true);
    world.rename(leaf, "new name");
    let numbers: Vec<_> = take(&mut world, agent)
        .iter()
        .map(|d| Notice::decode(&Smp::from_mad(d.mad).data).unwrap().trap_number().unwrap())
        .collect();
    assert_eq!(numbers, [144, 144]);
}

#[test]
fn two_agents_on_one_port_get_their_own_answers_and_a_frozen_one_finds_its_later() {
    let mut world = world(&Topology::tree(2, 1, 1));
    configure(&mut world, 1);
    let (one, two) = (probe(&mut world, "H0"), probe(&mut world, "H0"));
    world.freeze(two, true);
    for agent in [one, two] {
        let mad = directed(Method::GET, NodeInfo::ID, 0, &[1]).into_mad();
        world.send(agent, &Datagram { address: Address::DIRECTED, mad });
    }
    assert_eq!((take(&mut world, one).len(), take(&mut world, two).len()), (1, 0));
    world.freeze(two, false);
    assert_eq!(take(&mut world, two).len(), 1);
    assert!(world.detach(two).is_some());
    assert!(world.agent::<Probe>(two).is_none());
    // SMInfo goes to an agent, by whichever way; who has none on the port hears nothing.
    let other = probe(&mut world, "H1");
    let sm_info = Smp::lid_routed(Method::GET, ids::sm::SM_INFO, 0);
    world.send(other, &Datagram { address: Address::smp(1), mad: sm_info.into_mad() });
    let got = take(&mut world, one);
    assert_eq!((got.len(), got[0].address.lid), (1, 2));
    let mut reply = got[0].mad;
    reply.header.method = Method::GET_RESP.0;
    world.send(one, &Datagram { address: got[0].address, mad: reply });
    assert_eq!(take(&mut world, other).len(), 1);
}

fn gsi(method: Method) -> Mad {
    let mut mad = Mad::zeroed();
    mad.header.base_version = 1;
    mad.header.mgmt_class = MgmtClass::SUBN_ADM.0;
    mad.header.class_version = 2;
    mad.header.method = method.0;
    mad
}

/// General services cross Active links only, and need a common P_Key; a violation is counted and told by trap 257.
#[test]
fn b45_general_services_need_active_links_and_a_common_p_key() {
    let mut world = world(&Topology::tree(2, 1, 1));
    configure(&mut world, 1);
    let (one, two) = (probe(&mut world, "H0"), probe(&mut world, "H1"));
    let to = Address::gsi(1, ServiceLevel(0));
    world.send(two, &Datagram { address: to, mad: gsi(Method::GET) });
    let got = take(&mut world, one);
    assert_eq!((got.len(), got[0].address.lid, got[0].address.qpn.0), (1, 2, 1));

    let (h0, h1) = (world.find_name("H0").unwrap(), world.find_name("H1").unwrap());
    world.device_mut(h0).ports[1].p_keys = vec![PKey(0x8001), PKey(0x7fff)];
    world.send(two, &Datagram { address: to, mad: gsi(Method::GET) });
    assert_eq!(take(&mut world, one)[0].address.pkey_index, 1);
    world.device_mut(h1).ports[1].p_keys = vec![PKey(0x7fff)];
    world.send(two, &Datagram { address: to, mad: gsi(Method::GET) });
    let got = take(&mut world, one);
    assert_eq!(Notice::decode(&Smp::from_mad(got[0].mad).data).unwrap().trap_number(), Some(257));
    assert_eq!(world.device(h0).ports[1].info.p_key_violations.get(), 1);

    world.device_mut(h1).ports[1].set_state(PortState::Armed, PortPhysState::LinkUp);
    world.send(two, &Datagram { address: to, mad: gsi(Method::GET) });
    assert_eq!(world.stats().dropped(Drop::LinkDown), 1);
}

/// Puts ports of a switch into a multicast LID's entry.
fn set_multicast(world: &mut World, switch: &str, mlid: u16, ports: &[u8]) {
    let node = world.find_name(switch).unwrap();
    let (block, slot) = (usize::from(mlid - 0xc000) / 32, usize::from(mlid - 0xc000) % 32);
    for position in 0..16_u8 {
        let inside = ports.iter().filter(|port| **port / 16 == position);
        let mask = inside.fold(0_u16, |mask, port| mask | 1 << (port % 16));
        let tables = world.device_mut(node).switch.as_mut().unwrap();
        tables.mft.entry((position, block as u16)).or_insert([0; 32])[slot] = mask;
    }
}

/// Multicast packets are copied along the multicast tables, never back; members get one each and others none.
#[test]
fn multicast_packets_follow_the_multicast_tables() {
    const MLID: u16 = 0xc021;
    let mut world = world(&Topology::tree(3, 1, 2));
    configure(&mut world, 1);
    let agents: Vec<_> = (0..6).map(|n| probe(&mut world, &format!("H{n}"))).collect();
    let spine = probe(&mut world, "S2_0");
    // Members are H0, H1, H2 and the spine itself; H5 sends without being one. Hosts are on ports 1 and 2, the spine on 3.
    for (switch, ports) in
        [("S1_0", &[1_u8, 2, 3][..]), ("S1_1", &[1, 3]), ("S1_2", &[3]), ("S2_0", &[0, 1, 2, 3])]
    {
        set_multicast(&mut world, switch, MLID, ports);
    }
    let send = |world: &mut World, from: usize| {
        let address = Address::gsi(MLID, ServiceLevel(0));
        world.send(agents[from], &Datagram { address, mad: gsi(Method::GET) });
        let counts: Vec<_> = agents.iter().map(|agent| take(world, *agent)).collect();
        assert!(counts.iter().flatten().all(|datagram| datagram.address.lid == 1 + from as u16));
        (counts.iter().map(Vec::len).collect::<Vec<_>>(), take(world, spine).len())
    };
    assert_eq!(send(&mut world, 5), (vec![1, 1, 1, 0, 0, 0], 1));
    assert_eq!(send(&mut world, 0), (vec![0, 1, 1, 0, 0, 0], 1));
    let leaf = world.find_name("S1_1").unwrap();
    let counted = |port: usize, counter| world.device(leaf).ports[port].counters.get(counter);
    use crate::device::Counter;
    assert_eq!(counted(1, Counter::PortMulticastXmitPkts), 2);
    assert_eq!(counted(3, Counter::PortMulticastRcvPkts), 2);
    assert_eq!(counted(2, Counter::PortXmitPkts), 0);
    // MFTTop below the group: the default port gets the packet, here host H3's.
    let leaf = world.device_mut(leaf).switch.as_mut().unwrap();
    leaf.info.multicast_fdb_top.set(0xbfff);
    leaf.info.default_multicast_primary_port = 2;
    assert_eq!(send(&mut world, 5), (vec![1, 1, 0, 1, 0, 0], 1));
    // SMPs are never multicast.
    let smp = Smp::lid_routed(Method::GET, NodeInfo::ID, 0);
    assert!(ask(&mut world, agents[0], smp, Address::smp(MLID)).is_empty());
}

/// A loop in multicast tables ends, and is counted.
#[test]
fn a_multicast_loop_ends() {
    const MLID: u16 = 0xc000;
    let mut world = world(&Topology::Torus { dims: vec![4], hosts: 1 });
    configure(&mut world, 1);
    let agent = probe(&mut world, "H0");
    let names: Vec<String> =
        world.devices().iter().filter(|device| device.is_switch()).map(|device| device.name()).collect();
    for name in &names {
        set_multicast(&mut world, name, MLID, &[1, 2, 3]);
    }
    world.send(agent, &Datagram { address: Address::gsi(MLID, ServiceLevel(0)), mad: gsi(Method::GET) });
    assert_eq!(world.stats().dropped(Drop::TooManyHops), 1);
}

/// DrSLID and DrDLID other than permissive: a LID-routed part before and after the part that goes hop by hop.
#[test]
fn directed_routes_may_begin_and_end_with_a_lid_routed_part() {
    let mut world = world(&Topology::tree(2, 1, 2));
    configure(&mut world, 1);
    let agent = probe(&mut world, "H0");
    let lid_of = |world: &World, name: &str| {
        let device = world.device(world.find_name(name).unwrap());
        device.ports[usize::from(!device.is_switch())].info.base_lid.get()
    };
    let own = lid_of(&world, "H0");
    for (start, path, end, name) in [
        (Some("S2_0"), &[2, 1][..], None, "H2"),
        (Some("S1_1"), &[], None, "S1_1"),
        (Some("S1_1"), &[2], None, "H3"),
        (None, &[1], Some("H3"), "H3"),
        (Some("S1_1"), &[3], Some("H1"), "H1"),
        (None, &[], Some("S1_1"), "S1_1"),
    ] {
        let mut smp = directed(Method::GET, NodeInfo::ID, 0, path);
        let address = start.map_or(Address::DIRECTED, |start| Address::smp(lid_of(&world, start)));
        if start.is_some() {
            smp.dr_slid.set(own);
        }
        if let Some(end) = end {
            smp.dr_dlid.set(lid_of(&world, end));
        }
        let answers = ask(&mut world, agent, smp, address);
        let [answer] = answers[..] else { panic!("{start:?} {path:?} {end:?}: no answer") };
        let guid = NodeInfo::decode(&answer.data).unwrap().node_guid();
        assert_eq!(world.device(world.find(guid).unwrap()).name(), name, "{start:?} {path:?} {end:?}");
        assert_eq!((answer.header.hop_pointer, answer.is_returning()), (0, true));
    }
    // A start that no table knows.
    let mut smp = directed(Method::GET, NodeInfo::ID, 0, &[1]);
    smp.dr_slid.set(own);
    assert!(ask(&mut world, agent, smp, Address::smp(0x0bad)).is_empty());
}

/// Switches enforce partitions at their external ports both ways, count what they drop and tell it by trap 259; a wrong
/// Q_Key is told by trap 258; raw packets are filtered.
#[test]
fn switches_enforce_partitions_and_wrong_q_keys_are_told() {
    use crate::device::Counter;
    use mad::types::Mtu;
    let mut world = world(&Topology::tree(2, 1, 2));
    configure(&mut world, 1);
    let (one, two) = (probe(&mut world, "H0"), probe(&mut world, "H1"));
    let leaf = world.find_name("S1_0").unwrap();
    let to_one = Datagram { address: Address::gsi(1, ServiceLevel(0)), mad: gsi(Method::GET) };
    let traps = |got: Vec<Datagram>| -> Vec<_> {
        got.iter().filter_map(|d| Notice::decode(&Smp::from_mad(d.mad).data)?.trap_number()).collect()
    };
    for (port, inbound, counter) in
        [(2, true, Counter::PortRcvConstraintErrors), (1, false, Counter::PortXmitConstraintErrors)]
    {
        let enforce = |world: &mut World, on: u8, key: u16| {
            let port = &mut world.device_mut(leaf).ports[port];
            port.p_keys = vec![PKey(key)];
            if inbound {
                port.info.set_partition_enforcement_inbound(on);
            } else {
                port.info.set_partition_enforcement_outbound(on);
            }
        };
        enforce(&mut world, 1, 0x8001);
        world.send(two, &to_one);
        assert_eq!(traps(take(&mut world, one)), [259]);
        assert_eq!(world.device(leaf).ports[port].counters.get(counter), 1);
        // The host is a limited member: its own key passes.
        enforce(&mut world, 1, 0x7fff);
        world.send(two, &to_one);
        assert_eq!(take(&mut world, one).len(), 1);
        // Management passes whatever the table says.
        enforce(&mut world, 1, 0x8001);
        assert!(node_info(&mut world, two, &[1, 1]).is_some());
        enforce(&mut world, 0, 0x8001);
        world.send(two, &to_one);
        assert_eq!(take(&mut world, one).len(), 1);
    }
    let mut wrong = to_one;
    wrong.address.qkey = mad::types::QKey(7);
    world.send(two, &wrong);
    assert_eq!(traps(take(&mut world, one)), [258]);
    let h0 = world.find_name("H0").unwrap();
    assert_eq!(world.device(h0).ports[1].info.q_key_violations.get(), 1);

    let raw = LocalRoute { slid: 2, dlid: 1, vl15: false, p_key: None, words: 10, mtu: Mtu::M256 };
    let from = world.agent_end(two).unwrap();
    assert_eq!(world.carry_packet(from, &raw).len(), 1);
    world.device_mut(leaf).ports[2].info.set_filter_raw_inbound(1);
    assert_eq!(world.carry_packet(from, &raw).len(), 0);
    assert_eq!(world.stats().dropped(Drop::Raw), 1);
}

/// Traps 129 to 131 come with the counter of the port, from the switch's own LID.
#[test]
fn thresholds_that_are_reached_are_told() {
    use crate::device::Counter;
    let mut world = world(&Topology::tree(2, 1, 1));
    configure(&mut world, 1);
    let agent = probe(&mut world, "H0");
    let leaf = world.find_name("S1_0").unwrap();
    let port = End::new(leaf, 2);
    world.count_error(port, Counter::SymbolErrorCounter);
    assert!(take(&mut world, agent).is_empty());
    world.count_error(port, Counter::LocalLinkIntegrityErrors);
    world.count_error(port, Counter::ExcessiveBufferOverrunErrors);
    world.expire_flow_control(port);
    let got = take(&mut world, agent);
    let told: Vec<_> = got
        .iter()
        .map(|d| Smp::from_mad(d.mad).data)
        // DataDetails begin at byte 10, the port there at 4.
        .map(|data| (Notice::decode(&data).unwrap().trap_number().unwrap(), data[14]))
        .collect();
    assert_eq!(told, [(129, 2), (130, 2), (131, 2)]);
    assert_eq!(world.device(leaf).ports[2].counters.get(Counter::LocalLinkIntegrityErrors), 1);
}

/// The same seed gives the same run, byte for byte; another seed another one.
#[test]
fn a_seed_decides_loss_duplication_and_order() {
    let run = |seed| {
        let fabric = generate(&Topology::tree(3, 2, 2), &Options::default()).unwrap();
        let config = Config {
            seed,
            loss: 0.1,
            duplication: 0.1,
            jitter: Duration::from_micros(50),
            ..Config::default()
        };
        let mut world = World::new(&fabric, config);
        let trace = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&trace);
        world.observe(Box::new(move |now, at, packet| sink.lock().unwrap().push((now, at, packet.mad))));
        let agent = probe(&mut world, "H0");
        for round in 0..200 {
            let path: &[u8] = [&[1][..], &[1, 3], &[1, 3, 2], &[1, 4, 3, 1]][round % 4];
            let mad = directed(Method::GET, NodeInfo::ID, 0, path).into_mad();
            world.send(agent, &Datagram { address: Address::DIRECTED, mad });
        }
        let answers = take(&mut world, agent).len();
        drop(world);
        (Arc::into_inner(trace).unwrap().into_inner().unwrap(), answers)
    };
    let seed = 3;
    println!("seed {seed}");
    let (first, answers) = run(seed);
    assert!(answers > 50 && answers < 200, "{answers}");
    assert_eq!(run(seed).0, first);
    assert_ne!(run(seed + 1).0, first);
}

#[test]
fn power_cycles_swaps_splits_and_merges_do_what_they_say() {
    let mut world = world(&Topology::tree(4, 2, 2));
    configure(&mut world, 1);
    let agent = probe(&mut world, "H0");
    let leaf = world.find_name("S1_0").unwrap();
    assert!(node_info(&mut world, agent, &[1]).is_some());
    world.power_off(leaf);
    assert!(node_info(&mut world, agent, &[1]).is_none());
    world.power_on(leaf);
    assert!(node_info(&mut world, agent, &[1, 3]).is_some());
    assert_eq!(world.device(leaf).switch.as_ref().unwrap().exit(1), 255);
    assert_eq!(world.device(leaf).ports[0].info.lid(), None);

    let (h2, h4) = (world.find_name("H2").unwrap(), world.find_name("H4").unwrap());
    let before = [h2, h4].map(|host| world.peer(End::new(host, 1)).unwrap());
    assert!(world.swap_cables(End::new(h2, 1), End::new(h4, 1)));
    let after = [h4, h2].map(|host| world.peer(End::new(host, 1)).unwrap());
    assert_eq!(before, after);

    let names = ["S1_0", "H0", "H1", "S2_0"];
    let part: Vec<u32> = names.iter().map(|name| world.find_name(name).unwrap()).collect();
    let inside = part.clone();
    let cut = world.split(move |node| inside.contains(&node));
    assert_eq!(cut.len(), 1 + 3);
    let parts = world.parts();
    assert!(part.iter().all(|node| parts[*node as usize] == parts[part[0] as usize]));
    assert_ne!(parts[h2 as usize], parts[part[0] as usize]);
    assert_eq!(world.merge(&cut), 4);
    assert!(world.parts().iter().all(|part| *part == 0));

    let spare = End::new(world.find_name("S2_1").unwrap(), 1);
    let far = world.unlink(spare).unwrap();
    assert!(world.move_cable(End::new(h2, 1), spare));
    assert_eq!(world.peer(far), None);
}

/// B01, B02: two devices with one GUID, a cable from a switch to itself.
#[test]
fn b01_duplicate_guids_and_loopback_cables_can_be_built() {
    let mut world = world(&Topology::line(2));
    let twin = world.device(world.find_name("H0").unwrap()).clone();
    let index = world.add_device(twin.clone());
    assert_ne!(world.find(twin.guid()), Some(index));
    let mut switch = world.device(world.find_name("S0").unwrap()).clone();
    switch.set_name("extra");
    let extra = world.add_device(switch);
    assert!(world.connect(End::new(extra, 1), End::new(extra, 2)));
    assert!(!world.connect(End::new(extra, 1), End::new(index, 1)));
    assert!(world.device(extra).ports[1].is_up() && world.device(extra).ports[2].is_up());
}

#[test]
fn links_train_at_what_ends_and_cable_allow() {
    use mad::types::{LinkSpeed, LinkWidth};
    for (speed, width) in
        [(LinkSpeed::Ndr, LinkWidth::X4), (LinkSpeed::Xdr, LinkWidth::X4), (LinkSpeed::Hdr, LinkWidth::X2)]
    {
        let options = Options { speed, width, ..Options::default() };
        let mut world = World::new(&generate(&Topology::line(2), &options).unwrap(), Config::default());
        let h0 = End::new(world.find_name("H0").unwrap(), 1);
        let active = |world: &World| {
            let port = &world.device(h0.node).ports[1];
            (port.info.link_speed(port.fdr10).unwrap(), port.info.link_width().unwrap())
        };
        assert_eq!(active(&world), (speed, width));
        // One end enables less: the link trains lower at the next occasion.
        world.device_mut(h0.node).ports[1].info.set_link_speed_ext_enabled(2);
        world.device_mut(h0.node).ports[1].info.set_link_speed_ext2(0, 0, 0);
        world.device_mut(h0.node).ports[1].info.link_width_enabled = 1;
        world.unlink(h0);
        world.relink(h0);
        assert_eq!(active(&world), (LinkSpeed::Edr, LinkWidth::X1));
    }
}

/// Counts, sums and clears like an adapter; B78: all ports at once.
#[test]
fn performance_counters_count_saturate_grow_and_are_cleared_by_selection() {
    use crate::device::Counter;
    use mad::wire::perf::{ALL_PORTS, PerfMad, PortCounters, PortCountersExtended};
    let mut world = world(&Topology::tree(2, 1, 1));
    configure(&mut world, 1);
    let agent = probe(&mut world, "H0");
    let leaf = world.find_name("S1_0").unwrap();
    let lid = world.device(leaf).ports[0].info.base_lid.get();
    let ask = |world: &mut World, method: Method, attribute: u16, data: &[u8]| {
        let mut request = PerfMad::request(method, attribute);
        request.data[..data.len()].copy_from_slice(data);
        let address = Address::gsi(lid, ServiceLevel(0));
        world.send(agent, &Datagram { address, mad: request.into_mad() });
        let [answer] = take(world, agent)[..] else { panic!("no answer") };
        PerfMad::from_mad(answer.mad)
    };
    let select = |port: u8| [0, port, 0, 0];
    let before = ask(&mut world, Method::GET, PortCounters::ID, &select(1));
    let before = PortCounters::decode(&before.data).unwrap();
    assert_eq!((before.port_select, before.port_rcv_pkts.get(), before.port_rcv_data.get()), (1, 1, 72));
    let counters = &mut world.device_mut(leaf).ports[2].counters;
    counters.set(Counter::SymbolErrorCounter, 70_000);
    counters.set(Counter::LinkDownedCounter, 3);
    counters.grow(Counter::PortXmitWait, 10.0, Timestamp::ZERO);
    let start = world.now();
    world.run_until(Timestamp::from_start(Duration::from_millis(1_050)).max(start));
    let got = PortCounters::decode(&ask(&mut world, Method::GET, PortCounters::ID, &select(2)).data).unwrap();
    assert_eq!(
        (got.symbol_error_counter.get(), got.link_downed_counter, got.port_xmit_wait.get()),
        (0xffff, 3, 10)
    );
    let wide = ask(&mut world, Method::GET, PortCountersExtended::ID, &select(ALL_PORTS));
    let wide = PortCountersExtended::decode(&wide.data).unwrap();
    assert_eq!((wide.symbol_error_counter.get(), wide.port_xmit_wait.get()), (70_000, 10));
    assert!(wide.port_rcv_pkts.get() >= 3);
    // Only SymbolErrorCounter is selected.
    let cleared = ask(&mut world, Method::SET, PortCounters::ID, &[0, 2, 0, 1]);
    let cleared = PortCounters::decode(&cleared.data).unwrap();
    assert_eq!((cleared.symbol_error_counter.get(), cleared.link_downed_counter), (0, 3));
    let refused = ask(&mut world, Method::GET, PortCounters::ID, &select(77));
    assert_eq!(refused.header.status(), mad::wire::Status::INVALID_FIELD);
    assert_eq!(Counter::from_name("portxmitwait"), Some(Counter::PortXmitWait));
    // What the tables can't forward is counted where it came in.
    let mut smp = Smp::lid_routed(Method::GET, NodeInfo::ID, 0);
    smp.header.transaction_id.set(9);
    world.send(agent, &Datagram { address: Address::smp(500), mad: smp.into_mad() });
    assert_eq!(world.device(leaf).ports[1].counters.get(Counter::PortRcvSwitchRelayErrors), 1);
}

#[test]
fn data_packets_follow_the_tables_and_multicast_is_copied_to_the_members() {
    let mut world = world(&Topology::tree(2, 2, 2));
    configure(&mut world, 1);
    let hosts: Vec<End> = (0..world.device_count() as u32)
        .filter(|node| !world.device(*node).is_switch())
        .map(|node| End::new(node, 1))
        .collect();
    let lid = |world: &World, end: End| world.device(end.node).ports[end.port.index()].info.base_lid.get();
    for (a, b) in hosts.iter().flat_map(|a| hosts.iter().map(move |b| (*a, *b))) {
        let dlid = lid(&world, b);
        assert_eq!(world.carry(a, dlid, 2048), [b], "{a:?} to {b:?}");
    }
    // Members: all but the last host; the tree: every switch passes on by every port that leads to one, over one spine.
    let members = &hosts[..hosts.len() - 1];
    let mlid = MulticastLid::new(0xc003).unwrap();
    assert_eq!(world.carry(hosts[0], mlid.get(), 40), [hosts[0]], "no table holds the group");
    let spine = (0..world.device_count() as u32)
        .find(|node| {
            let device = world.device(*node);
            let mut peers = (1..=device.num_ports()).filter_map(|port| world.peer(End::new(*node, port)));
            device.is_switch() && peers.all(|peer| world.device(peer.node).is_switch())
        })
        .unwrap();
    for node in 0..world.device_count() as u32 {
        if !world.device(node).is_switch() {
            continue;
        }
        let mut ports = 0_u16;
        for port in 1..=world.device(node).num_ports() {
            let peer = world.peer(End::new(node, port));
            let in_tree = peer.is_some_and(|p| node == spine || p.node == spine || members.contains(&p));
            ports |= u16::from(in_tree) << port;
        }
        let mut block = [0; 32];
        block[mlid.index()] = ports;
        world.device_mut(node).switch.as_mut().unwrap().mft.insert((0, 0), block);
    }
    for from in &hosts {
        let mut reached = world.carry(*from, mlid.get(), 2048);
        assert_eq!(reached.remove(0), *from, "the sender's own copy comes first");
        reached.sort_unstable();
        let others: Vec<End> = members.iter().filter(|end| *end != from).copied().collect();
        assert_eq!(reached, others, "from {from:?}");
    }
    // Longer than the MTU of the sender's link.
    world.device_mut(hosts[0].node).ports[1].info.set_neighbor_mtu_raw(4);
    let (dlid, before) = (lid(&world, hosts[1]), world.stats().dropped(Drop::TooLong));
    assert_eq!(world.carry(hosts[0], dlid, 2049), []);
    assert_eq!(world.stats().dropped(Drop::TooLong), before + 1);
}
