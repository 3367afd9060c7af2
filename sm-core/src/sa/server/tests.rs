mod aliases;
mod bad_input;
mod hostile;
mod strangers;

use std::time::Duration;

use mad::rmpp::{Event, Message};
use mad::types::{PKey, PortNum, PortState, ServiceLevel};
use mad::wire::ids::sa;
use mad::wire::sa::{
    ClassPortInfo, InformInfo, McMemberRecord, MultiPathRecord, NodeRecord, PathRecord, Record, Report,
    ServiceRecord,
};
use mad::wire::smp::TrapDetails;
use mad::wire::{Attribute, Mad};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use zerocopy::FromZeros;

use super::*;
use crate::sa::registry::ipoib_broadcast;
use crate::testing::{Tree, freeze};

const TREE: Tree = Tree { leaves: 2, spines: 1, hosts: 3, lmc: 0 };

fn snapshot() -> Arc<Snapshot> {
    Arc::new(TREE.snapshot())
}

fn address(snapshot: &Snapshot, n: u8) -> Address {
    let port = snapshot.port_by_guid(Tree::host(n / 3, n % 3)).unwrap();
    Address::gsi(port.lid.get(), ServiceLevel(0))
}

fn request<A: Attribute>(method: Method, attribute: &A, mask: u64, tid: u64) -> SaMad {
    let mut mad = SaMad::request(method, A::ID, mask);
    mad.header.transaction_id.set(tid);
    assert!(attribute.encode(&mut mad.data));
    mad
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_start(Duration::from_millis(millis))
}

/// One request, and the single datagram that answers it.
fn ask(server: &mut Server, snapshot: &Arc<Snapshot>, n: u8, mad: SaMad, now: Timestamp) -> SaMad {
    server.receive(&Datagram { address: address(snapshot, n), mad: mad.into_mad() }, snapshot, now);
    let reply = server.poll_send(now).expect("an answer");
    assert_eq!(reply.address, address(snapshot, n));
    SaMad::from_mad(reply.mad)
}

fn member(snapshot: &Snapshot, n: u8, mgid: Gid, state: u8) -> (McMemberRecord, u64) {
    let mut record = McMemberRecord::new_zeroed();
    record.mgid.set(mgid.0);
    record.port_gid.set(Gid::new(snapshot.sm.gid_prefix, Tree::host(n / 3, n % 3)).0);
    record.set_join_state_raw(state);
    (record, McMemberRecord::MGID | McMemberRecord::PORT_GID | McMemberRecord::JOIN_STATE)
}

/// A table reaches its reader whole, whatever of it is lost, repeated or comes out of order (B50).
#[test]
fn b50_tables_survive_loss_and_disorder() {
    for seed in 0..20_u64 {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let snapshot = snapshot();
        let mut server = Server::new(ServerConfig::default());
        let mut client = Rmpp::new(RmppConfig { window: random.random_range(1..6), ..RmppConfig::default() });
        let (me, sa) = (address(&snapshot, 1), address(&snapshot, 0));
        let ask = request(Method::GET_TABLE, &PathRecord::new_zeroed(), 0, 77).into_mad();
        client.expect(&sa, &ask, at(600_000)).unwrap();
        let mut wire: Vec<(Timestamp, bool, Mad)> = vec![(Timestamp::ZERO, true, ask)];
        let mut now = Timestamp::ZERO;
        let (mut got, mut heard): (Option<Message>, bool) = (None, false);
        for _ in 0..100_000 {
            let next =
                wire.iter().map(|(due, ..)| *due).chain(server.deadline()).chain(client.deadline()).min();
            let Some(next) = next else { break };
            now = now.max(next);
            while let Some(index) = wire.iter().position(|(due, ..)| *due <= now) {
                let (_, to_server, mad) = wire.swap_remove(index);
                if to_server {
                    server.receive(&Datagram { address: me, mad }, &snapshot, now);
                } else {
                    heard = true;
                    client.receive(&Datagram { address: sa, mad }, now);
                }
            }
            if client.deadline().is_some_and(|due| due <= now) {
                client.expired(now);
            }
            while let Some(event) = client.poll_event() {
                match event {
                    Event::Received(message) => got = Some(*message),
                    other => panic!("seed {seed}: {other:?}"),
                }
            }
            // As any client does: without an answer, ask again.
            if !heard && !wire.iter().any(|(_, to_server, _)| *to_server) {
                wire.push((now + Duration::from_millis(300), true, ask));
            }
            let sent: Vec<_> = std::iter::from_fn(|| server.poll_send(now)).map(|d| (false, d.mad)).collect();
            let acks: Vec<_> = std::iter::from_fn(|| client.poll_send(now)).map(|d| (true, d.mad)).collect();
            for (to_server, mad) in sent.into_iter().chain(acks) {
                for _ in 0..[1, 1, 1, 1, 1, 1, 2, 0][random.random_range(0..8)] {
                    wire.push((now + Duration::from_micros(random.random_range(10..2000)), to_server, mad));
                }
            }
        }
        let message = got.unwrap_or_else(|| panic!("seed {seed}: no table"));
        assert_eq!(message.data.len(), 9 * 9 * PathRecord::TABLE_LEN, "seed {seed}");
        let keys: Vec<_> =
            message.data.chunks(PathRecord::TABLE_LEN).map(|r| PathRecord::decode(r).unwrap()).collect();
        assert!(
            keys.windows(2).all(|w| (w[0].slid.get(), w[0].dlid.get()) < (w[1].slid.get(), w[1].dlid.get()))
        );
        assert_eq!(server.deadline(), None, "seed {seed}: nothing of the transfer stays");
    }
}

/// The first segment stands for itself: length of the whole, first flag, and whole records.
#[test]
fn first_segments_are_right_by_themselves() {
    let snapshot = snapshot();
    let mut server = Server::new(ServerConfig::default());
    let whole = request(Method::GET_TABLE, &NodeRecord::new_zeroed(), 0, 1);
    let first = ask(&mut server, &snapshot, 1, whole, Timestamp::ZERO);
    let segments = (9 * NodeRecord::TABLE_LEN).div_ceil(200);
    assert!(first.rmpp.is_active() && first.rmpp.is_first() && !first.rmpp.is_last());
    assert_eq!(first.rmpp.payload_length() as usize, segments * 20 + 9 * NodeRecord::TABLE_LEN);
    assert_eq!((first.rmpp.segment_number(), first.attribute_offset.get()), (1, 14));
    assert_eq!(NodeRecord::decode(&first.data).unwrap().lid.get(), 1);

    let mut nobody = NodeRecord::new_zeroed();
    nobody.lid.set(0x999);
    let empty = ask(&mut server, &snapshot, 1, request(Method::GET_TABLE, &nobody, 1, 2), Timestamp::ZERO);
    assert!(empty.rmpp.is_first() && empty.rmpp.is_last());
    assert_eq!(
        (empty.rmpp.payload_length(), empty.attribute_offset.get(), empty.header.status()),
        (20, 0, Status::OK)
    );
}

/// A reader that never acknowledges costs a bounded time and memory.
#[test]
fn transfers_without_acknowledgements_end() {
    let snapshot = snapshot();
    let mut server = Server::new(ServerConfig::default());
    for tid in 0..5000 {
        let mad = request(Method::GET_TABLE, &NodeRecord::new_zeroed(), 0, tid);
        server.receive(
            &Datagram { address: address(&snapshot, 1), mad: mad.into_mad() },
            &snapshot,
            Timestamp::ZERO,
        );
        while server.poll_send(Timestamp::ZERO).is_some() {}
    }
    let statistics = server.statistics();
    assert_eq!((statistics.busy, statistics.answered), (5000 - 512, 5000), "beyond the bound: BUSY");
    let other = request(Method::GET_TABLE, &NodeRecord::new_zeroed(), 0, 1);
    assert_eq!(
        ask(&mut server, &snapshot, 2, other, Timestamp::ZERO).header.status(),
        Status::OK,
        "others go on"
    );
    let mut rounds = 0;
    while let Some(deadline) = server.deadline() {
        while server.poll_send(deadline).is_some() {}
        rounds += 1;
        assert!(rounds < 100_000 && deadline < at(600_000), "never ends");
    }
}

/// B47: a full queue answers BUSY to the flood and everything to the others; the same request twice is one.
#[test]
fn b47_floods_and_repetitions() {
    let snapshot = snapshot();
    let mut server =
        Server::new(ServerConfig { queue: 64, queue_per_requester: 32, ..ServerConfig::default() });
    let send = |server: &mut Server, n, tid| {
        let mad = request(Method::GET, &ClassPortInfo::new_zeroed(), 0, tid);
        server.receive(
            &Datagram { address: address(&snapshot, n), mad: mad.into_mad() },
            &snapshot,
            Timestamp::ZERO,
        );
    };
    for tid in 0..1000 {
        send(&mut server, 1, tid);
    }
    for _ in 0..10 {
        send(&mut server, 2, 5);
    }
    assert_eq!((server.statistics().busy, server.statistics().duplicates), (1000 - 32, 9));
    let replies: Vec<_> = std::iter::from_fn(|| server.poll_send(Timestamp::ZERO)).collect();
    let good = |n| {
        let lid = address(&snapshot, n).lid;
        replies.iter().filter(|d| d.address.lid == lid && d.mad.header.status().is_ok()).count()
    };
    assert_eq!((replies.len(), good(1), good(2)), (1001, 32, 1));
}

/// The IPoIB way: join the broadcast group with no more than the kernel knows, look at it, leave.
#[test]
fn ipoib_hosts_join_the_broadcast_group() {
    let snapshot = snapshot();
    let mut server = Server::new(ServerConfig::default());
    let mgid = ipoib_broadcast(2, PKey::DEFAULT_FULL);
    let (mut record, mask) = member(&snapshot, 1, mgid, 1);
    record.pkey.set(0xffff);
    let joined =
        ask(&mut server, &snapshot, 1, request(Method::SET, &record, mask | McMemberRecord::PKEY, 1), at(0));
    assert_eq!((joined.header.status(), joined.header.method()), (Status::OK, Method::GET_RESP));
    let group = McMemberRecord::decode(&joined.data).unwrap();
    assert_eq!(
        (group.mlid.get(), group.qkey.get(), group.join_state_raw(), group.scope()),
        (0xc000, 0xb1b, 1, 2)
    );
    assert_eq!((group.mtu_raw(), group.rate_raw(), group.pkey.get()), (4, 3, 0xffff));

    let path = {
        let mut path = PathRecord::new_zeroed();
        path.dgid.set(mgid.0);
        path.sgid = record.port_gid;
        ask(
            &mut server,
            &snapshot,
            1,
            request(Method::GET, &path, PathRecord::DGID | PathRecord::SGID, 2),
            at(0),
        )
    };
    let path = PathRecord::decode(&path.data).unwrap();
    assert_eq!((path.dlid.get(), path.mtu_raw(), path.rate_raw()), (0xc000, 4, 3));

    let (seen, _) = member(&snapshot, 1, mgid, 0);
    let seen = ask(&mut server, &snapshot, 2, request(Method::GET, &seen, McMemberRecord::MGID, 3), at(0));
    let seen = McMemberRecord::decode(&seen.data).unwrap();
    assert_eq!((seen.port_gid.get(), seen.join_state_raw()), (0, 0), "members are for trusted requesters");

    let left = ask(&mut server, &snapshot, 1, request(Method::DELETE, &record, mask, 4), at(0));
    assert_eq!((left.header.status(), left.header.method()), (Status::OK, Method::DELETE_RESP));
    assert!(server.registry().groups.get(mgid).unwrap().members().is_empty());
}

fn subscribe(server: &mut Server, snapshot: &Arc<Snapshot>, n: u8, subscribe: u8) -> Status {
    let mut inform = InformInfo::new_zeroed();
    inform.lid_range_begin.set(InformInfo::ALL);
    (inform.is_generic, inform.subscribe) = (1, subscribe);
    inform.notice_type.set(InformInfo::ALL);
    inform.trap_number_or_device_id.set(InformInfo::ALL);
    inform.set_producer_type_or_vendor_id(InformInfo::ALL_PRODUCERS);
    inform.set_qpn(1);
    ask(server, snapshot, n, request(Method::SET, &inform, 0, 9), at(0)).header.status()
}

/// B32: creation and deletion of a group are told to subscribers, by Reports that are repeated until answered.
#[test]
fn b32_group_events_are_reported() {
    let snapshot = snapshot();
    let mut server = Server::new(ServerConfig::default());
    assert_eq!(subscribe(&mut server, &snapshot, 2, 1), Status::OK);
    assert_eq!(subscribe(&mut server, &snapshot, 2, 1), Status::OK, "twice is once");
    let (record, mask) = member(&snapshot, 1, ipoib_broadcast(2, PKey::DEFAULT_FULL), 1);
    for (method, trap) in [(Method::SET, 66), (Method::DELETE, 67)] {
        ask(&mut server, &snapshot, 1, request(method, &record, mask, 1), at(0));
        let sent = server.poll_send(at(0)).unwrap();
        assert_eq!(server.poll_send(at(0)), None, "one report");
        assert_eq!(sent.address.lid, address(&snapshot, 2).lid);
        let report = Report::decode(&SaMad::from_mad(sent.mad).data).unwrap();
        assert_eq!(report.notice.trap_number(), Some(trap));
        let (TrapDetails::MulticastGroupCreated(data) | TrapDetails::MulticastGroupDeleted(data)) =
            report.notice.details()
        else {
            panic!("{report:?}");
        };
        assert_eq!((data.gid(), report.issuer_gid().guid()), (record.mgid(), snapshot.sm.guid));
        assert_eq!(server.poll_send(at(1100)), Some(sent), "not answered: once more");
        let mut answer = sent.mad;
        answer.header.method = Method::REPORT_RESP.0;
        server.receive(&Datagram { address: sent.address, mad: answer }, &snapshot, at(1200));
        assert_eq!((server.poll_send(at(9000)), server.deadline()), (None, None));
    }
    assert_eq!(subscribe(&mut server, &snapshot, 2, 0), Status::OK);
    assert_eq!(subscribe(&mut server, &snapshot, 2, 0), Status::SA_REQ_INVALID, "nothing to end");
}

/// B46: a subscriber that drops its Reports loses its subscription; nothing waits for it for ever.
#[test]
fn b46_silent_subscribers_are_removed() {
    let snapshot = snapshot();
    let mut server = Server::new(ServerConfig::default());
    subscribe(&mut server, &snapshot, 2, 1);
    // Two bursts of events, each at one moment; the subscription outlives the first.
    for tid in 0..400 {
        if tid == 200 {
            silent_until_done(&mut server);
            assert_eq!(server.registry().subscriptions.iter().count(), 1);
        }
        let now = at(if tid < 200 { 0 } else { 70_000 });
        let (record, mask) = member(&snapshot, 1, ipoib_broadcast(2, PKey::DEFAULT_FULL), 1);
        let method = if tid % 2 == 0 { Method::SET } else { Method::DELETE };
        server.receive(
            &Datagram { address: address(&snapshot, 1), mad: request(method, &record, mask, tid).into_mad() },
            &snapshot,
            now,
        );
        while server.poll_send(now).is_some() {}
    }
    assert!(silent_until_done(&mut server) < 64 * 3);
    assert_eq!(server.registry().subscriptions.iter().count(), 0);
    assert!(server.statistics().reports_lost > 0);
}

/// Sends all that is due until nothing is left to wait for; how many datagrams that were.
fn silent_until_done(server: &mut Server) -> usize {
    let mut sent = 0;
    while let Some(deadline) = server.deadline() {
        while server.poll_send(deadline).is_some() {
            sent += 1;
        }
        assert!(deadline < at(130_000));
    }
    sent
}

/// B37: a port that is missing from one picture keeps its memberships; one that is gone for a minute loses them, and
/// subscribers hear of both ways (traps 64 and 65).
#[test]
fn b37_one_missing_picture_costs_nothing() {
    let whole = snapshot();
    let mut fabric = TREE.fabric();
    let gone = fabric.find(Guid(Tree::host(0, 1).0 - 1)).unwrap();
    fabric.node_mut(gone).port_mut(PortNum(1)).unwrap().state = PortState::Down;
    fabric.node_mut(gone).port_mut(PortNum(1)).unwrap().lid = None;
    let without = Arc::new(freeze(fabric));
    let mut server = Server::new(ServerConfig::default());
    let mgid = ipoib_broadcast(2, PKey::DEFAULT_FULL);
    let (record, mask) = member(&whole, 1, mgid, 1);
    ask(&mut server, &whole, 1, request(Method::SET, &record, mask, 1), at(0));
    subscribe(&mut server, &whole, 2, 1);
    let members = |server: &Server| server.registry().groups.get(mgid).unwrap().members().len();
    let trap = |server: &mut Server, now| {
        let report = server.poll_send(now).map(|d| Report::decode(&SaMad::from_mad(d.mad).data).unwrap());
        report.and_then(|report| report.notice.trap_number())
    };
    server.set_snapshot(&without, at(1000));
    assert_eq!(trap(&mut server, at(1000)), Some(65));
    server.set_snapshot(&whole, at(30_000));
    assert_eq!(members(&server), 1);
    server.set_snapshot(&without, at(40_000));
    assert_eq!(server.deadline().map(|deadline| deadline <= at(100_000)), Some(true));
    while server.poll_send(at(99_000)).is_some() {}
    assert_eq!(members(&server), 1);
    while server.poll_send(at(100_000)).is_some() {}
    assert_eq!(members(&server), 0);
}

/// Services: registered with a lease, found by name, renewed, ended by its owner only, gone when the lease ends.
#[test]
fn services_and_their_leases() {
    let snapshot = snapshot();
    let mut server = Server::new(ServerConfig::default());
    let mut service = ServiceRecord::new_zeroed();
    service.service_id.set(0x1000);
    service.service_gid.set(Gid::new(snapshot.sm.gid_prefix, Tree::host(0, 1)).0);
    service.service_lease.set(60);
    service.service_name[..4].copy_from_slice(b"disk");
    let mask = ServiceRecord::SERVICE_ID
        | ServiceRecord::SERVICE_GID
        | ServiceRecord::SERVICE_LEASE
        | ServiceRecord::SERVICE_NAME;
    let status = |server: &mut Server, n, method, mask, now| {
        ask(server, &snapshot, n, request(method, &service, mask, 1), now).header.status()
    };
    let incomplete = ServiceRecord::SERVICE_ID;
    assert_eq!(status(&mut server, 1, Method::SET, incomplete, at(0)), Status::SA_INSUFFICIENT_COMPONENTS);
    assert_eq!(status(&mut server, 1, Method::SET, mask, at(0)), Status::OK);
    assert_eq!(status(&mut server, 2, Method::SET, mask, at(0)), Status::SA_REQ_DENIED);
    assert_eq!(status(&mut server, 2, Method::DELETE, mask, at(0)), Status::SA_REQ_DENIED);
    assert_eq!(server.deadline(), Some(at(60_000)));
    let by_name = request(Method::GET, &service, ServiceRecord::SERVICE_NAME, 2);
    let found = ask(&mut server, &snapshot, 2, by_name, at(20_500));
    let found = ServiceRecord::decode(&found.data).unwrap();
    assert_eq!(
        (found.service_id.get(), found.service_lease.get(), found.service_pkey.get()),
        (0x1000, 40, 0xffff)
    );
    assert_eq!(status(&mut server, 1, Method::SET, mask, at(50_000)), Status::OK);
    assert_eq!(ask(&mut server, &snapshot, 2, by_name, at(109_999)).header.status(), Status::OK);
    assert_eq!(ask(&mut server, &snapshot, 2, by_name, at(110_000)).header.status(), Status::SA_NO_RECORDS);
    assert_eq!((server.registry().services.len(), server.deadline()), (0, None));
    assert_eq!(status(&mut server, 1, Method::DELETE, mask, at(110_000)), Status::SA_NO_RECORDS);
    assert_eq!(by_name.header.attribute_id.get(), sa::SERVICE_RECORD);
}

/// B51: a request that comes by RMPP gets an answer too, be it that its attribute is not supported.
#[test]
fn b51_a_request_in_segments_is_answered() {
    let snapshot = snapshot();
    let mut server = Server::new(ServerConfig::default());
    let (me, sa, now) = (address(&snapshot, 1), address(&snapshot, 0), Timestamp::ZERO);
    let mut client = Rmpp::new(RmppConfig::default());
    let mut head = SaMad::request(Method::GET_MULTI, sa::SERVICE_ASSOCIATION_RECORD, 0);
    head.header.transaction_id.set(5);
    client.send(sa, &head.into_mad(), vec![7; 900], now).unwrap();
    let mut answers = Vec::new();
    loop {
        let mut quiet = true;
        while let Some(datagram) = client.poll_send(now) {
            quiet = false;
            server.receive(&Datagram { address: me, mad: datagram.mad }, &snapshot, now);
        }
        while let Some(datagram) = server.poll_send(now) {
            quiet = false;
            assert_eq!(datagram.address, me);
            if !client.receive(&Datagram { address: sa, mad: datagram.mad }, now) {
                answers.push(SaMad::from_mad(datagram.mad));
            }
        }
        if quiet {
            break;
        }
    }
    assert!(matches!(client.poll_event(), Some(Event::Sent(_))));
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].header.method(), Method::GET_MULTI_RESP);
    assert_eq!(answers[0].header.status(), Status::METHOD_ATTRIBUTE_NOT_SUPPORTED);
}

/// B51: a query for paths between 300 GIDs comes in segments and is answered in segments, by the two-sided transfer.
#[test]
fn b51_queries_of_many_gids() {
    let snapshot = snapshot();
    let mut server = Server::new(ServerConfig::default());
    let mut client = Rmpp::new(RmppConfig::default());
    let (me, manager) = (address(&snapshot, 1), address(&snapshot, 0));
    let gid = |n: u8| Gid::new(snapshot.sm.gid_prefix, Tree::host(n / 3 % 2, n % 3));
    let from: Vec<Gid> = (0..150).map(gid).collect();
    let to: Vec<Gid> = (50..200).map(gid).collect();
    let query = MultiPathRecord::new_zeroed();
    let counts = MultiPathRecord::component_mask(&["SGIDCount", "DGIDCount"]).unwrap();
    let head = request(Method::GET_MULTI, &query, counts, 5).into_mad();
    client.send(manager, &head, query.with_gids(&from, &to).unwrap(), at(0)).unwrap();
    let mut got = None;
    for _ in 0..1000 {
        while let Some(sent) = client.poll_send(at(0)) {
            server.receive(&Datagram { address: me, mad: sent.mad }, &snapshot, at(0));
        }
        while let Some(sent) = server.poll_send(at(0)) {
            client.receive(&Datagram { address: manager, mad: sent.mad }, at(0));
        }
        while let Some(event) = client.poll_event() {
            if let Event::Received(message) = event {
                got = Some(message);
            }
        }
    }
    let message = got.expect("an answer");
    assert_eq!(message.head.header.attribute_id.get(), sa::PATH_RECORD);
    assert_eq!(message.head.header.method(), Method::GET_MULTI_RESP);
    assert_eq!(message.data.len(), 127 * PathRecord::TABLE_LEN);
}

/// ActCount is that of the moment, not that of the picture.
#[test]
fn the_managers_own_act_count_goes_on() {
    let snapshot = snapshot();
    let mut server = Server::new(ServerConfig::default());
    for (tid, count) in [(1, 11), (2, 12)] {
        server.set_act_count(count);
        let mad = request(Method::GET, &SmInfoRecord::new_zeroed(), 0, tid);
        let reply = ask(&mut server, &snapshot, 1, mad, at(tid));
        assert_eq!(SmInfoRecord::decode(&reply.data).unwrap().sm_info.act_count.get(), count);
    }
}
