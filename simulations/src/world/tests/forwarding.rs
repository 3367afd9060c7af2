//! Packets go by the route that they carry, or by the tables in the switches.

use super::*;

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
