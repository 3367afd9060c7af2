//! What a host may do to the others by asking: nothing. Each of these worked once.

use mad::types::Qpn;
use mad::wire::sa::SlToVlMappingTableRecord;
use mad::wire::smp::SlToVlMappingTable;

use super::*;

fn send(server: &mut Server, snapshot: &Arc<Snapshot>, source: Address, mad: SaMad) {
    server.receive(&Datagram { address: source, mad: mad.into_mad() }, snapshot, at(1));
}

/// B47: turns are given to ports, not to queue pairs and LIDs, of which a host has as many as it likes.
#[test]
fn b47_a_host_with_many_queue_pairs_has_one_turn() {
    let snapshot = Arc::new(Tree { lmc: 2, ..TREE }.snapshot());
    let mut server = Server::new(ServerConfig::default());
    let get = |tid| request(Method::GET, &ClassPortInfo::new_zeroed(), 0, tid);
    let (flood, other) = (address(&snapshot, 1), address(&snapshot, 2));
    for n in 0..400 {
        let source = Address { qpn: Qpn(n), lid: flood.lid + n as u16 % 4, ..flood };
        send(&mut server, &snapshot, source, get(u64::from(n)));
    }
    send(&mut server, &snapshot, other, get(1));
    let answers: Vec<u16> =
        std::iter::from_fn(|| server.poll_send(at(1))).map(|datagram| datagram.address.lid).collect();
    let place = answers.iter().position(|lid| *lid == other.lid);
    assert_eq!((answers.len(), place), (401, Some(1)));
}

/// Tables that are not read yet: who asks for too many is told so, and not that there are none; others have their place.
#[test]
fn b47_who_waits_for_tables_leaves_room_for_others() {
    let snapshot = snapshot();
    let mut server = Server::new(ServerConfig::default());
    let table = SlToVlMappingTable::new_zeroed();
    let lid = Lid::new(address(&snapshot, 1).lid).unwrap();
    let record = SlToVlMappingTableRecord::new(lid, PortNum(0), PortNum(0), table);
    let ask = |tid| request(Method::GET_TABLE, &record, 1, tid);
    for tid in 0..300 {
        send(&mut server, &snapshot, address(&snapshot, 1), ask(tid));
    }
    let answers: Vec<Datagram> = std::iter::from_fn(|| server.poll_send(at(1))).collect();
    assert_eq!((answers.len(), server.held.len()), (300 - HELD_OF_ONE, HELD_OF_ONE));
    assert!(answers.iter().all(|answer| answer.mad.header.status() == Status::BUSY));
    send(&mut server, &snapshot, address(&snapshot, 2), ask(1));
    assert!(server.poll_send(at(1)).is_none());
    assert_eq!(server.held.len(), HELD_OF_ONE + 1, "it waits");
}

/// One port can't fill what all share.
#[test]
fn services_of_one_port_are_bounded() {
    let snapshot = snapshot();
    let mut server = Server::new(ServerConfig::default());
    let mut register = |n: u8, id: u64| {
        let mut record = ServiceRecord::new_zeroed();
        record.service_id.set(id);
        record.service_gid.set(Gid::new(snapshot.sm.gid_prefix, Tree::host(n / 3, n % 3)).0);
        let named = ServiceRecord::SERVICE_ID | ServiceRecord::SERVICE_GID;
        ask(&mut server, &snapshot, n, request(Method::SET, &record, named, id), at(1)).header.status()
    };
    let accepted = (0..20_000).take_while(|id| register(1, *id) == Status::OK).count();
    assert_eq!(accepted, 8192);
    assert_eq!(register(1, 20_000), Status::SA_NO_RESOURCES);
    assert_eq!(register(1, 5), Status::OK, "again one that it has");
    assert_eq!(register(2, 1 << 40), Status::OK, "others go on");
}

/// B46: a subscriber that never acknowledges takes part of the window, and the others hear at once.
#[test]
fn b46_silent_subscribers_hold_up_nobody_else() {
    let snapshot = snapshot();
    let mut server = Server::new(ServerConfig::default());
    let mut inform = InformInfo::new_zeroed();
    inform.subscribe = 1;
    inform.is_generic = 1;
    inform.lid_range_begin.set(InformInfo::ALL);
    inform.notice_type.set(InformInfo::ALL);
    inform.trap_number_or_device_id.set(InformInfo::ALL);
    inform.set_producer_type_or_vendor_id(InformInfo::ALL_PRODUCERS);
    let (silent, other) = (address(&snapshot, 1), address(&snapshot, 2));
    for n in 0..250 {
        let source = Address { qpn: Qpn(n + 2), ..silent };
        send(&mut server, &snapshot, source, request(Method::SET, &inform, 0, u64::from(n)));
    }
    send(&mut server, &snapshot, other, request(Method::SET, &inform, 0, 1));
    while server.poll_send(at(1)).is_some() {}
    assert_eq!(server.registry().subscriptions.iter().count(), 251);
    let mut to_silent = BTreeSet::new();
    for second in 2..60 {
        server.notice(&Notice::generic(NoticeType::Urgent, 1, 128, Lid::new(1)));
        let mut heard = 0;
        while let Some(sent) = server.poll_send(at(second * 1000)) {
            if sent.address.lid == other.lid {
                let mut reply = sent;
                reply.mad.header.method = Method::REPORT_RESP.0;
                server.receive(&reply, &snapshot, at(second * 1000));
                heard += 1;
            } else {
                to_silent.insert(sent.address.qpn);
            }
        }
        assert_eq!(heard, 1, "second {second}");
    }
    assert!(to_silent.len() > 32, "the silent one is tried all the while: {}", to_silent.len());
    assert!(server.registry().subscriptions.iter().any(|(_, s)| s.address.lid == other.lid));
}
