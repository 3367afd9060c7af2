//! Links train, fall, come back and change places as the specification and the fault say.

use super::*;

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
