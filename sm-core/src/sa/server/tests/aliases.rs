//! Alias GUIDs: who may have which, and what they are good for.

use mad::transport::GlobalRoute;
use mad::wire::smp::GuidInfo;
use zerocopy::big_endian::U64;

use super::*;
use crate::sa::Complaint;
use crate::store::Kind;

const KEY: u64 = 0x1234;
const RECORD: u64 = GuidInfoRecord::LID | GuidInfoRecord::BLOCK_NUM;

fn trusting() -> Arc<Snapshot> {
    let mut snapshot = TREE.snapshot();
    snapshot.sm.sm_key = KEY;
    Arc::new(snapshot)
}

fn places(indices: &[usize]) -> u64 {
    indices.iter().fold(RECORD, |mask, index| mask | GuidInfoRecord::GUID_0 << index)
}

/// A record of host `n` that wants these GUIDs in these places.
fn wanted(snapshot: &Snapshot, n: u8, block: u8, guids: &[(usize, u64)]) -> GuidInfoRecord {
    let lid = Lid::new(address(snapshot, n).lid).unwrap();
    let mut info = GuidInfo::new_zeroed();
    guids.iter().for_each(|(index, guid)| info.guids[*index] = U64::new(*guid));
    GuidInfoRecord::new(lid, block, info)
}

fn guids(mad: &SaMad) -> [u64; 8] {
    GuidInfoRecord::decode(&mad.data).unwrap().guid_info.guids.map(U64::get)
}

/// Set or Delete by host `from`, who may know the SM_Key; answers status and block.
fn change(
    server: &mut Server,
    snapshot: &Arc<Snapshot>,
    (from, key): (u8, u64),
    method: Method,
    (record, mask): (GuidInfoRecord, u64),
) -> Result<[u64; 8], Status> {
    let mut mad = request(method, &record, mask, 1);
    mad.sm_key.set(key);
    let reply = ask(server, snapshot, from, mad, at(1));
    if reply.header.status().is_ok() { Ok(guids(&reply)) } else { Err(reply.header.status()) }
}

fn set(
    server: &mut Server,
    snapshot: &Arc<Snapshot>,
    n: u8,
    wants: &[(usize, u64)],
) -> Result<[u64; 8], Status> {
    let mask = places(&wants.iter().map(|(index, _)| *index).collect::<Vec<_>>());
    change(server, snapshot, (n, 0), Method::SET, (wanted(snapshot, n, 0, wants), mask))
}

fn port(n: u8) -> u64 {
    Tree::host(n / 3, n % 3).0
}

fn gid(snapshot: &Snapshot, guid: u64) -> Gid {
    Gid::new(snapshot.sm.gid_prefix, Guid(guid))
}

/// The same again is a success without effect, with the same TID and with another; another port's is refused and stays where it
/// is; what was freed can be claimed.
#[test]
fn b49_the_same_again_is_no_error_and_a_foreign_claim_is_one() {
    let snapshot = snapshot();
    let mut server = Server::new(ServerConfig::default());
    let held = [port(1), 0xa1, 0xa2, 0, 0, 0, 0, 0];
    assert_eq!(set(&mut server, &snapshot, 1, &[(1, 0xa1), (2, 0xa2)]), Ok(held));
    let written = server.take_changes(Epoch::default());
    assert_eq!(written.iter().filter(|change| change.key.kind == Kind::Aliases).count(), 1);
    let generation = server.registry().aliases.table().generation();
    for tid in [1, 1, 2, 3] {
        let record = wanted(&snapshot, 1, 0, &[(1, 0xa1), (2, 0xa2)]);
        let again = request(Method::SET, &record, places(&[1, 2]), tid);
        assert_eq!(guids(&ask(&mut server, &snapshot, 1, again, at(2))), held, "TID {tid}");
    }
    assert_eq!(server.registry().aliases.table().generation(), generation);
    assert!(server.take_changes(Epoch::default()).is_empty(), "nothing to write");

    let theirs = set(&mut server, &snapshot, 2, &[(1, 0xa1), (3, 0xb3), (4, port(5)), (5, 0xb3)]);
    assert_eq!(theirs, Ok([port(2), 0, 0, 0xb3, 0, 0, 0, 0]), "0: held by others, by a port itself, twice");
    assert_eq!(server.registry().aliases.table().holder(Guid(0xa1)), Some(Guid(port(1))));

    let freed = (wanted(&snapshot, 1, 0, &[]), places(&[1]));
    let left = change(&mut server, &snapshot, (1, 0), Method::DELETE, freed);
    assert_eq!(left, Ok([port(1), 0, 0xa2, 0, 0, 0, 0, 0]));
    assert_eq!(change(&mut server, &snapshot, (1, 0), Method::DELETE, freed), left, "again");
    assert_eq!(set(&mut server, &snapshot, 2, &[(1, 0xa1)]), Ok([port(2), 0xa1, 0, 0xb3, 0, 0, 0, 0]));
}

/// GUID 0 asks for any: always the same for one place, different for each.
#[test]
fn the_sa_assigns_guids_that_nobody_has() {
    let snapshot = snapshot();
    let mut server = Server::new(ServerConfig::default());
    let all: Vec<(usize, u64)> = (1..8).map(|index| (index, 0)).collect();
    let mut seen = BTreeSet::new();
    for n in 1..6 {
        let given = set(&mut server, &snapshot, n, &all).unwrap();
        assert_eq!(given[0], port(n));
        assert!(given[1..].iter().all(|guid| guid >> 40 == 0x1405 && seen.insert(*guid)), "{given:x?}");
        assert_eq!(set(&mut server, &snapshot, n, &[(3, 0)]), Ok(given), "what it has is kept");
        let freed = (wanted(&snapshot, n, 0, &[]), places(&[2]));
        change(&mut server, &snapshot, (n, 0), Method::DELETE, freed).unwrap();
        assert_eq!(set(&mut server, &snapshot, n, &[(2, 0)]), Ok(given), "the same as before");
    }
    let mut other = Server::new(ServerConfig::default());
    let again = set(&mut other, &snapshot, 5, &all).unwrap();
    assert!(again[1..].iter().all(|guid| seen.contains(guid)), "after a restart without state, too");
    // Where it is taken, another.
    let first = again[1];
    let mut third = Server::new(ServerConfig::default());
    set(&mut third, &snapshot, 1, &[(1, first)]).unwrap();
    let given = set(&mut third, &snapshot, 5, &[(1, 0)]).unwrap()[1];
    assert!(given != first && given != 0);
}

#[test]
fn only_its_own_port_and_who_knows_the_key_may_change_them() {
    let snapshot = trusting();
    let mut server = Server::new(ServerConfig::default());
    let foreign = (wanted(&snapshot, 2, 0, &[(1, 0xa1)]), places(&[1]));
    for method in [Method::SET, Method::DELETE] {
        let status = change(&mut server, &snapshot, (1, 0), method, foreign);
        assert_eq!(status, Err(Status::SA_REQ_DENIED), "{method:?}");
        let mut nobody = foreign;
        nobody.0.lid.set(0x999);
        assert_eq!(change(&mut server, &snapshot, (1, 0), method, nobody), Err(Status::SA_REQ_DENIED));
        assert_eq!(change(&mut server, &snapshot, (1, KEY), method, nobody), Err(Status::SA_NO_RECORDS));
    }
    assert_eq!(server.complaints(Complaint::Denied), 4);
    assert!(server.registry().aliases.table().is_empty());
    let given = change(&mut server, &snapshot, (1, KEY), Method::SET, foreign);
    assert_eq!(given, Ok([port(2), 0xa1, 0, 0, 0, 0, 0, 0]));
}

#[test]
fn bounds_of_the_table() {
    let snapshot = snapshot();
    let mut server = Server::new(ServerConfig::default());
    let me = |block, guids: &[(usize, u64)]| wanted(&snapshot, 1, block, guids);
    for (name, record, mask, status) in [
        (
            "without a block",
            me(0, &[(1, 7)]),
            places(&[1]) & !GuidInfoRecord::BLOCK_NUM,
            Status::SA_INSUFFICIENT_COMPONENTS,
        ),
        (
            "without a LID",
            me(0, &[(1, 7)]),
            places(&[1]) & !GuidInfoRecord::LID,
            Status::SA_INSUFFICIENT_COMPONENTS,
        ),
        ("the port's own GUID", me(0, &[(0, 7)]), places(&[0, 1]), Status::SA_REQ_INVALID),
        ("the block behind the last", me(1, &[(0, 7)]), places(&[0]), Status::SA_NO_RECORDS),
        ("the last block there can be", me(255, &[(0, 7)]), places(&[0]), Status::SA_NO_RECORDS),
    ] {
        for method in [Method::SET, Method::DELETE] {
            assert_eq!(
                change(&mut server, &snapshot, (1, 0), method, (record, mask)),
                Err(status),
                "{name}, {method:?}"
            );
        }
    }
    let nothing = change(&mut server, &snapshot, (1, 0), Method::SET, (me(0, &[]), places(&[])));
    assert_eq!(nothing, Ok([port(1), 0, 0, 0, 0, 0, 0, 0]), "no place is named");
    assert!(server.registry().aliases.table().is_empty());

    // Three entries only: what lies beyond is refused, the rest given.
    let mut observed = (*snapshot.observed).clone();
    let end = snapshot.port_by_guid(Guid(port(1))).unwrap().end;
    let info = &mut observed.nodes.get_mut(&end.node).unwrap().ports[end.port.index()];
    info.as_mut().unwrap().guid_cap = 3;
    let mut small = (*snapshot).clone();
    small.observed = Arc::new(observed);
    let given = set(&mut server, &Arc::new(small), 1, &[(2, 0xa2), (3, 0xa3), (4, 0)]);
    assert_eq!(given, Ok([port(1), 0, 0xa2, 0, 0, 0, 0, 0]));
}

/// A GID of an alias stands for its port wherever one of the PortGUID does, at once.
#[test]
fn an_alias_is_good_for_paths_groups_services_and_subscriptions() {
    let snapshot = snapshot();
    let mut server = Server::new(ServerConfig::default());
    set(&mut server, &snapshot, 1, &[(1, 0xa1)]).unwrap();
    set(&mut server, &snapshot, 2, &[(1, 0xb1)]).unwrap();
    let (a, b) = (gid(&snapshot, 0xa1), gid(&snapshot, 0xb1));

    let mut path = PathRecord::new_zeroed();
    path.sgid.set(a.0);
    path.dgid.set(b.0);
    let ends = PathRecord::SGID | PathRecord::DGID;
    let reply = ask(&mut server, &snapshot, 1, request(Method::GET, &path, ends, 2), at(2));
    let found = PathRecord::decode(&reply.data).unwrap();
    assert_eq!((found.sgid(), found.dgid()), (a, b));
    assert_eq!((found.slid.get(), found.dlid.get()), (address(&snapshot, 1).lid, address(&snapshot, 2).lid));
    // It tells forgeries from others, too.
    let route = GlobalRoute { gid: b, gid_index: 0, hop_limit: 0, traffic_class: 0, flow_label: 0 };
    let forged = Address { grh: Some(route), ..address(&snapshot, 1) };
    let mad = request(Method::GET, &path, ends, 20).into_mad();
    server.receive(&Datagram { address: forged, mad }, &snapshot, at(2));
    assert_eq!(server.poll_send(at(2)).map(|d| d.mad.header.status()), Some(Status::SA_REQ_DENIED));
    // From an open end each GID of a port has its path.
    let all = ask(&mut server, &snapshot, 1, request(Method::GET_TABLE, &path, PathRecord::DGID, 3), at(2));
    let bytes = (9 + 2) * PathRecord::TABLE_LEN;
    assert_eq!(all.rmpp.payload_length() as usize, bytes + bytes.div_ceil(200) * 20);
    while server.poll_send(at(2)).is_some() {}

    let mgid = ipoib_broadcast(2, PKey(0xffff));
    let (mut join, mask) = member(&snapshot, 1, mgid, 1);
    join.port_gid.set(a.0);
    join.qkey.set(0xb1b);
    join.pkey.set(0xffff);
    let traits = McMemberRecord::QKEY
        | McMemberRecord::PKEY
        | McMemberRecord::TCLASS
        | McMemberRecord::SL
        | McMemberRecord::FLOW_LABEL;
    let status = |server: &mut Server, n, mad| ask(server, &snapshot, n, mad, at(3)).header.status();
    assert_eq!(status(&mut server, 1, request(Method::SET, &join, mask | traits, 4)), Status::OK);
    // The port itself joins beside its alias, and leaves without taking the alias along.
    let (own, mask) = member(&snapshot, 1, mgid, 1);
    assert_eq!(status(&mut server, 1, request(Method::SET, &own, mask, 5)), Status::OK);
    let group = |server: &Server| {
        let groups = server.demand().groups;
        groups.into_iter().map(|group| group.members).collect::<Vec<_>>()
    };
    assert_eq!(group(&server), [[(Guid(port(1)), true)]], "one port for the switches");
    assert_eq!(status(&mut server, 1, request(Method::DELETE, &own, mask, 6)), Status::OK);
    assert_eq!(group(&server), [[(Guid(port(1)), true)]]);
    assert_eq!(status(&mut server, 2, request(Method::DELETE, &join, mask, 7)), Status::SA_REQ_DENIED);
    // It can't go while it is a member.
    let freed = (wanted(&snapshot, 1, 0, &[]), places(&[1]));
    let deleted = change(&mut server, &snapshot, (1, 0), Method::DELETE, freed);
    assert_eq!(deleted, Err(Status::SA_REQ_DENIED));
    assert_eq!(set(&mut server, &snapshot, 1, &[(1, 0xa9)]).unwrap()[1], 0, "nor be replaced");
    assert_eq!(status(&mut server, 1, request(Method::DELETE, &join, mask, 8)), Status::OK);
    let deleted = change(&mut server, &snapshot, (1, 0), Method::DELETE, freed);
    assert_eq!(deleted, Ok([port(1), 0, 0, 0, 0, 0, 0, 0]));
    assert_eq!(
        status(&mut server, 1, request(Method::GET, &path, ends, 9)),
        Status::SA_NO_RECORDS,
        "nobody has it any more"
    );

    let mut service = ServiceRecord::new_zeroed();
    service.service_gid.set(b.0);
    let named = ServiceRecord::SERVICE_ID | ServiceRecord::SERVICE_GID;
    assert_eq!(status(&mut server, 2, request(Method::SET, &service, named, 10)), Status::OK);
    let mut inform = InformInfo::new_zeroed();
    inform.subscribe = 1;
    inform.is_generic = 1;
    inform.notice_type.set(InformInfo::ALL);
    inform.trap_number_or_device_id.set(InformInfo::ALL);
    inform.set_producer_type_or_vendor_id(InformInfo::ALL_PRODUCERS);
    inform.gid.set(b.0);
    assert_eq!(status(&mut server, 1, request(Method::SET, &inform, 0, 11)), Status::OK);
    let lid = Lid::new(address(&snapshot, 2).lid);
    server.notice(&Notice::generic(NoticeType::Urgent, 1, 129, lid));
    let report = server.poll_send(at(4)).expect("a report of the port that has the alias");
    assert_eq!(report.mad.header.method(), Method::REPORT);
}

/// The capability is claimed, and it is there.
#[test]
fn b40_the_capability_is_claimed() {
    let snapshot = snapshot();
    let mut server = Server::new(ServerConfig::default());
    let mad = request(Method::GET, &ClassPortInfo::new_zeroed(), 0, 1);
    let reply = ask(&mut server, &snapshot, 1, mad, at(1));
    let info = ClassPortInfo::decode(&reply.data).unwrap();
    assert!(info.capability_mask2() & ClassPortInfo::SA_CAP2_ADDITIONAL_GUID != 0);
}

/// What a port held that is gone can be claimed by another, as a virtual machine that moves does; a port that comes back with a
/// PortGUID that was claimed meanwhile has it again; both are still told to forget.
#[test]
fn aliases_of_ports_that_are_gone_are_free() {
    let whole = snapshot();
    let mut server = Server::new(ServerConfig::default());
    set(&mut server, &whole, 1, &[(1, 0xa1)]).unwrap();
    let mut fabric = whole.observed.fabric.clone();
    for n in [1, 4] {
        fabric.remove_node(fabric.find(Guid(port(n) - 1)).unwrap());
    }
    let without = Arc::new(freeze(fabric));
    server.set_snapshot(&without, at(10_000));
    assert_eq!(set(&mut server, &without, 2, &[(1, 0xa1)]).unwrap()[1], 0, "it may be only restarting");
    while server.poll_send(at(80_000)).is_some() {}
    assert_eq!(
        set(&mut server, &without, 2, &[(1, 0xa1), (2, port(4))]).unwrap()[..3],
        [port(2), 0xa1, port(4)]
    );
    let table = server.registry().aliases.table();
    assert!(table.has_block(Guid(port(1)), 0), "to be told so, should it come back");
    server.set_snapshot(&whole, at(90_000));
    let table = server.registry().aliases.table();
    assert_eq!((table.holder(Guid(port(4))), table.holder(Guid(0xa1))), (None, Some(Guid(port(2)))));
}

/// Whoever subscribed hears of the GID of each alias: as it is given, replaced and freed, and as its port goes and comes.
#[test]
fn traps_64_and_65_tell_of_aliases() {
    let whole = snapshot();
    let mut server = Server::new(ServerConfig::default());
    assert_eq!(subscribe(&mut server, &whole, 2, 1), Status::OK);
    // What the subscriber hears, which answers each report.
    let heard = |server: &mut Server, picture: &Arc<Snapshot>, now: Timestamp| {
        let mut heard = Vec::new();
        while let Some(report) = server.poll_send(now) {
            let notice = Report::decode(&SaMad::from_mad(report.mad).data).unwrap().notice;
            if let TrapDetails::GidInService(data) | TrapDetails::GidOutOfService(data) = notice.details() {
                heard.push((notice.trap_number().unwrap(), data.gid().guid().0));
            }
            let mut answer = report.mad;
            answer.header.method = Method::REPORT_RESP.0;
            server.receive(&Datagram { address: report.address, mad: answer }, picture, now);
        }
        heard
    };
    set(&mut server, &whole, 1, &[(1, 0xa1), (2, 0xa2)]).unwrap();
    assert_eq!(heard(&mut server, &whole, at(2)), [(64, 0xa1), (64, 0xa2)]);
    set(&mut server, &whole, 1, &[(1, 0xa1)]).unwrap();
    assert_eq!(heard(&mut server, &whole, at(3)), [], "the same again is no news");
    set(&mut server, &whole, 1, &[(1, 0xa3)]).unwrap();
    assert_eq!(heard(&mut server, &whole, at(4)), [(65, 0xa1), (64, 0xa3)]);
    let freed = (wanted(&whole, 1, 0, &[]), places(&[2]));
    change(&mut server, &whole, (1, 0), Method::DELETE, freed).unwrap();
    assert_eq!(heard(&mut server, &whole, at(5)), [(65, 0xa2)]);

    let mut fabric = whole.observed.fabric.clone();
    fabric.remove_node(fabric.find(Guid(port(1) - 1)).unwrap());
    let without = Arc::new(freeze(fabric));
    server.set_snapshot(&without, at(10));
    let told: BTreeSet<_> = heard(&mut server, &without, at(11)).into_iter().collect();
    assert_eq!(told, BTreeSet::from([(65, port(1)), (65, 0xa3)]));
    server.set_snapshot(&whole, at(20));
    let told: BTreeSet<_> = heard(&mut server, &whole, at(21)).into_iter().collect();
    assert_eq!(told, BTreeSet::from([(64, port(1)), (64, 0xa3)]));
    server.set_snapshot(&without, at(30));
    heard(&mut server, &without, at(31));
    assert_eq!(
        heard(&mut server, &without, at(200_000)),
        [],
        "what went is not told again when it is forgotten"
    );
    assert_eq!(server.registry().aliases.table().of_port(Guid(port(1))).count(), 0);
}
