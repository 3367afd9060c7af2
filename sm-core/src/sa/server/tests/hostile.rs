//! What a host may do to the others by asking: nothing. Each of these worked once.

use mad::rmpp::RmppStatus;
use mad::types::Qpn;
use mad::wire::rmpp::{RmppHeader, RmppType};
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

/// Requests in segments that are begun and never ended take no room from others.
#[test]
fn b51_open_requests_of_one_host_leave_room_for_others() {
    let snapshot = snapshot();
    let mut server = Server::new(ServerConfig::default());
    for tid in 0..20_000_u64 {
        let mut mad = request(Method::GET_MULTI, &MultiPathRecord::new_zeroed(), 0, tid);
        mad.rmpp = RmppHeader::new(RmppType::Data, 0b011, RmppStatus(0), 1, 0);
        send(&mut server, &snapshot, address(&snapshot, 1), mad);
        while server.poll_send(at(1)).is_some() {}
    }
    assert!(server.rmpp.len() <= 64 && server.rmpp.bytes() <= 64 * 256, "{}", server.rmpp.len());
    let table = request(Method::GET_TABLE, &NodeRecord::new_zeroed(), 0, 1);
    assert_eq!(ask(&mut server, &snapshot, 2, table, at(2)).header.status(), Status::OK);
}

/// A service that another registered for a port, under a key of its own, does not keep that port from it.
#[test]
fn a_port_has_its_own_services_whoever_was_first() {
    let snapshot = snapshot();
    let mut server = Server::new(ServerConfig::default());
    let mut record = ServiceRecord::new_zeroed();
    record.service_id.set(7);
    record.service_gid.set(Gid::new(snapshot.sm.gid_prefix, Tree::host(0, 2)).0);
    let named = ServiceRecord::SERVICE_ID | ServiceRecord::SERVICE_GID | ServiceRecord::SERVICE_KEY;
    let mut act = |n: u8, method, key: u8, tid| {
        record.service_key = [key; 16];
        ask(&mut server, &snapshot, n, request(method, &record, named, tid), at(tid)).header.status()
    };
    assert_eq!(act(1, Method::SET, 9, 1), Status::OK);
    assert_eq!(act(3, Method::SET, 8, 2), Status::SA_REQ_DENIED, "a third one");
    assert_eq!(act(2, Method::SET, 5, 3), Status::OK, "the port itself");
    assert_eq!(act(1, Method::DELETE, 9, 4), Status::SA_REQ_DENIED, "it is that one's now");
    assert_eq!(act(2, Method::DELETE, 5, 5), Status::OK);
}

/// What a port registered goes with it, also when that was services only.
#[test]
fn services_of_ports_that_are_gone_go_too() {
    let whole = snapshot();
    let mut server = Server::new(ServerConfig::default());
    let mut record = ServiceRecord::new_zeroed();
    record.service_gid.set(Gid::new(whole.sm.gid_prefix, Tree::host(0, 1)).0);
    let named = ServiceRecord::SERVICE_ID | ServiceRecord::SERVICE_GID;
    ask(&mut server, &whole, 1, request(Method::SET, &record, named, 1), at(1));
    let mut fabric = whole.observed.fabric.clone();
    fabric.remove_node(fabric.find(Guid(Tree::host(0, 1).0 - 1)).unwrap());
    server.set_snapshot(&Arc::new(freeze(fabric)), at(1000));
    while server.poll_send(at(50_000)).is_some() {}
    assert_eq!(server.registry().services.len(), 1, "it may be only restarting");
    while server.poll_send(at(70_000)).is_some() {}
    assert_eq!(server.registry().services.len(), 0);
}
