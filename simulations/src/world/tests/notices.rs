//! What devices tell the subnet manager unasked, and until when.

use mad::wire::Status;
use mad::wire::smp::NoticeType;

use super::*;

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

/// A port that can keep notices keeps what it has to tell, whether a subnet manager is there to hear a trap or not, until that is
/// read and taken away.
#[test]
fn notices_wait_in_their_port_until_they_are_taken_away() {
    let mut world = world(&Topology::tree(2, 1, 1));
    let agent = probe(&mut world, "H0");
    let (leaf, other) = (world.find_name("S1_0").unwrap(), world.find_name("S1_1").unwrap());
    let ask = |world: &mut World, method: Method, toggle: u16, count: u16| {
        let mut smp = Smp::directed(method, Notice::ID, 0, &DirectedPath::new(&[1]).unwrap());
        let mut notice = Notice::generic(NoticeType::Empty, 0, 0, None);
        notice.set_notice_toggle(toggle);
        notice.set_notice_count(count);
        assert!(method == Method::GET || notice.encode(&mut smp.data));
        world.send(agent, &Datagram { address: Address::DIRECTED, mad: smp.into_mad() });
        let answer = Smp::from_mad(take(world, agent)[0].mad);
        (answer.header.status(), Notice::decode(&answer.data).unwrap())
    };
    assert_eq!(ask(&mut world, Method::GET, 0, 0).0, Status::METHOD_ATTRIBUTE_NOT_SUPPORTED);

    world.set_capabilities(End::new(leaf, 0), PortInfo::CAP_IS_NOTICE_SUPPORTED, 0);
    let (status, first) = ask(&mut world, Method::GET, 0, 0);
    assert!(status.is_ok());
    // That its own capabilities changed is its first notice.
    assert_eq!((first.trap_number(), first.notice_count(), first.notice_toggle()), (Some(144), 1, 0));
    world.unlink(End::new(other, 2)).unwrap();
    world.rename(leaf, "new name");
    let (_, first) = ask(&mut world, Method::GET, 0, 0);
    assert_eq!((first.trap_number(), first.notice_count()), (Some(144), 2), "the link is of other switches");
    let (_, wrong) = ask(&mut world, Method::SET, 1, 1);
    assert_eq!(wrong, first, "another toggle");
    let (_, second) = ask(&mut world, Method::SET, 0, 1);
    assert_eq!((second.trap_number(), second.notice_count(), second.notice_toggle()), (Some(144), 1, 1));
    let (_, again) = ask(&mut world, Method::SET, 0, 1);
    assert_eq!(again, second, "the same Set twice takes one away");
    let (_, none) = ask(&mut world, Method::SET, 1, 7);
    assert_eq!((none.notice_type(), none.notice_count()), (Some(NoticeType::Empty), 0));

    for number in 0..40 {
        world.set_system_image(leaf, Guid(number));
    }
    assert_eq!(ask(&mut world, Method::GET, 0, 0).1.notice_count(), 16);
    world.power_off(leaf);
    world.power_on(leaf);
    let (_, fresh) = ask(&mut world, Method::GET, 0, 0);
    assert!(fresh.trap_number() != Some(145), "a restart forgets: {fresh:?}");
    assert_eq!(world.stats().traps, 0, "nobody is there to be told");
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
