//! General services, data packets and multicast.

use super::*;

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
