//! The checker checked: what is planted in the simulated switches is found.

use super::*;

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
    for watch in [LoopWatch::EachChange, LoopWatch::Batches] {
        let mut world = loop_closed_by_a_link(watch);
        // Batches are looked at before anything that could end the loop.
        assert_eq!(world.loops().1 > 0, watch == LoopWatch::EachChange);
        assert!(world.check().loops > 0);
        let leaf = world.find_name("S1_0").unwrap();
        world.unlink(End::new(leaf, 2));
        let (loops, count) = world.loops();
        assert!(count > 0 && loops[0].lid == 2 && loops[0].switches.len() == 2, "{loops:?}");
        assert_eq!(world.check().loops, count);
    }
}

/// A leaf and a spine that point at each other for LID 2, and are told to raise the link between them.
fn loop_closed_by_a_link(watch: LoopWatch) -> World {
    let mut world = world(&Topology::tree(2, 2, 1));
    world.config_mut().watch_loops = watch;
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
    world
}
