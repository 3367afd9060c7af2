//! Hosts that don't know the SM_Key: whatever they ask, in whosever name, they change nothing of what others have, and of those
//! with whom they share no partition they learn nothing.

use std::collections::{BTreeMap, HashMap};

use mad::transport::GlobalRoute;
use rand::seq::IndexedRandom;

use super::*;
use crate::sa::{Request, answer};

/// Hosts 1 and 2 have everything; 3, 4 and 5 want it. On host 0 sits the subnet manager, whom everybody may know.
const OWNERS: [u8; 2] = [1, 2];
const STRANGERS: [u8; 3] = [3, 4, 5];

fn random() -> Pcg64Mcg {
    let seed = std::env::var("RSM_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(11);
    println!("RSM_SEED={seed}");
    Pcg64Mcg::seed_from_u64(seed)
}

fn guid(n: u8) -> Guid {
    Tree::host(n / 3, n % 3)
}

/// Strangers share a partition with the owners, or not.
fn fabric(shared: bool) -> Arc<Snapshot> {
    let mut snapshot = TREE.snapshot();
    snapshot.sm.sm_key = 0x5ec2e7;
    let key = |n: u8| if STRANGERS.contains(&n) && !shared { PKey(0x8002) } else { PKey(0x8001) };
    let end = |n: u8| snapshot.port_by_guid(guid(n)).map(|port| port.end);
    let tables: HashMap<_, _> = (0..6).filter_map(|n| Some((end(n)?, vec![key(n)]))).collect();
    Arc::new(snapshot.with_pkeys(&tables))
}

fn mgid(n: u8) -> Gid {
    Gid(0xff15_a01b << 96 | u128::from(n))
}

fn alias(n: u8) -> u64 {
    0xa11a_5000_0000_0000 | u64::from(n)
}

/// A server with a group, a service, a subscription and an alias of each owner.
fn furnished(snapshot: &Arc<Snapshot>) -> Server {
    let mut server = Server::new(ServerConfig::default());
    for n in OWNERS {
        let (mut join, mask) = member(snapshot, n, mgid(n), 1);
        join.qkey.set(0xb1b);
        join.pkey.set(0x8001);
        let traits = McMemberRecord::QKEY
            | McMemberRecord::PKEY
            | McMemberRecord::TCLASS
            | McMemberRecord::SL
            | McMemberRecord::FLOW_LABEL;
        let mut service = ServiceRecord::new_zeroed();
        service.service_id.set(n.into());
        service.service_gid.set(Gid::new(snapshot.sm.gid_prefix, guid(n)).0);
        service.service_pkey.set(0x8001);
        service.service_key = [n; 16];
        let named = ServiceRecord::SERVICE_ID
            | ServiceRecord::SERVICE_GID
            | ServiceRecord::SERVICE_PKEY
            | ServiceRecord::SERVICE_KEY;
        let mut inform = InformInfo::new_zeroed();
        inform.subscribe = 1;
        inform.is_generic = 1;
        inform.lid_range_begin.set(InformInfo::ALL);
        inform.notice_type.set(InformInfo::ALL);
        inform.trap_number_or_device_id.set(64);
        let mut wanted = GuidInfoRecord::new_zeroed();
        wanted.lid.set(address(snapshot, n).lid);
        wanted.guid_info.guids[1].set(alias(n));
        let place = GuidInfoRecord::LID | GuidInfoRecord::BLOCK_NUM | GuidInfoRecord::GUID_0 << 1;
        for mad in [
            request(Method::SET, &join, mask | traits, 1),
            request(Method::SET, &service, named, 2),
            request(Method::SET, &inform, 0, 3),
            request(Method::SET, &wanted, place, 4),
        ] {
            assert_eq!(ask(&mut server, snapshot, n, mad, at(1)).header.status(), Status::OK, "{mad:?}");
        }
    }
    server
}

/// What the owners have.
fn belongings(server: &Server) -> impl PartialEq + std::fmt::Debug + use<> {
    let registry = server.registry();
    let of_owner = |port: Guid| OWNERS.iter().any(|n| guid(*n) == port);
    let members: Vec<_> = registry
        .groups
        .iter()
        .flat_map(|group| group.members().iter().map(move |(guid, member)| (group.mgid, *guid, *member)))
        .filter(|(_, _, member)| of_owner(member.port) && !member.proxy)
        .collect();
    let services: Vec<ServiceRecord> = registry.services.records(at(1)).collect();
    let of_owner_too = |s: &ServiceRecord| {
        let owner = OWNERS.iter().find(|n| guid(**n) == s.service_gid().guid());
        owner.is_some_and(|n| s.service_id.get() == u64::from(*n)) && s.service_pkey.get() == 0x8001
    };
    let services: Vec<_> = services.into_iter().filter(of_owner_too).collect();
    let subscriptions: Vec<_> = registry
        .subscriptions
        .iter()
        .filter(|(_, s)| of_owner(s.port))
        .map(|(id, s)| (id, s.inform))
        .collect();
    let aliases: Vec<_> = OWNERS.map(|n| registry.aliases.table().block(guid(n), 0)).to_vec();
    (members, services, subscriptions, aliases)
}

const ATTRIBUTES: [u16; 19] = [
    sa::NODE_RECORD,
    sa::PORT_INFO_RECORD,
    sa::SL_TO_VL_MAPPING_TABLE_RECORD,
    sa::SWITCH_INFO_RECORD,
    sa::LINEAR_FORWARDING_TABLE_RECORD,
    sa::MULTICAST_FORWARDING_TABLE_RECORD,
    sa::SM_INFO_RECORD,
    sa::LINK_RECORD,
    sa::GUID_INFO_RECORD,
    sa::SERVICE_RECORD,
    sa::PKEY_TABLE_RECORD,
    sa::PATH_RECORD,
    sa::VL_ARBITRATION_TABLE_RECORD,
    sa::MC_MEMBER_RECORD,
    sa::MULTI_PATH_RECORD,
    sa::TRACE_RECORD,
    sa::INFORM_INFO_RECORD,
    sa::INFORM_INFO,
    sa::CLASS_PORT_INFO,
];

/// Bytes that are of interest where they lie in some record: GIDs, GUIDs, LIDs and keys of owners.
fn bait(snapshot: &Snapshot, random: &mut Pcg64Mcg) -> Vec<u8> {
    let owner = OWNERS[random.random_range(0..2)];
    let prefix = snapshot.sm.gid_prefix;
    match random.random_range(0..9) {
        0..=2 => Gid::new(prefix, guid(owner)).0.to_be_bytes().to_vec(),
        3 => Gid::new(prefix, Guid(alias(owner))).0.to_be_bytes().to_vec(),
        4 => mgid(owner).0.to_be_bytes().to_vec(),
        5 => guid(owner).0.to_be_bytes().to_vec(),
        6 => alias(owner).to_be_bytes().to_vec(),
        7 => u64::from(owner).to_be_bytes().to_vec(),
        _ => address(snapshot, owner).lid.to_be_bytes().to_vec(),
    }
}

/// Something that a stranger may think of.
fn thought(snapshot: &Snapshot, random: &mut Pcg64Mcg, methods: &[Method], attributes: &[u16]) -> Request {
    let attribute = *attributes.choose(random).unwrap();
    let mut mad = SaMad::request(*methods.choose(random).unwrap(), attribute, 0);
    mad.header.transaction_id.set(random.random_range(0..1 << 40));
    let mask = [0, 1, random.random(), random.random::<u64>() & random.random::<u64>(), u64::MAX];
    mad.component_mask.set(*mask.choose(random).unwrap());
    if random.random_bool(0.2) {
        random.fill(&mut mad.data[..]);
    }
    for _ in 0..random.random_range(0..4) {
        let bytes = bait(snapshot, random);
        let place = random.random_range(0..48) / 2 * 2;
        let place = if random.random_bool(0.7) { place / 8 * 8 } else { place };
        mad.data[place..place + bytes.len()].copy_from_slice(&bytes);
    }
    // Registrations that get further than the first check.
    if random.random_bool(0.5) {
        match attribute {
            sa::MC_MEMBER_RECORD => {
                let owner = OWNERS[random.random_range(0..2)];
                let (mut record, mask) = member(snapshot, owner, mgid(owner), random.random_range(0..16));
                record.pkey.set(*[0x8001, 0x8002, 0xffff].choose(random).unwrap());
                record.qkey.set(0xb1b);
                mad.component_mask.set(mask | random.random_range(0..1 << 18));
                assert!(record.encode(&mut mad.data));
            }
            sa::SERVICE_RECORD => {
                let owner = OWNERS[random.random_range(0..2)];
                let mut record = ServiceRecord::new_zeroed();
                record.service_id.set(owner.into());
                record.service_gid.set(Gid::new(snapshot.sm.gid_prefix, guid(owner)).0);
                record.service_pkey.set(*[0x8001, 0x0001, 0x8002].choose(random).unwrap());
                mad.component_mask.set(7 | u64::from(random.random::<u16>()));
                assert!(record.encode(&mut mad.data));
            }
            sa::GUID_INFO_RECORD => {
                let owner = OWNERS[random.random_range(0..2)];
                let mut record = GuidInfoRecord::new_zeroed();
                let whose = if random.random_bool(0.5) { owner } else { STRANGERS[0] };
                record.lid.set(address(snapshot, whose).lid);
                record.guid_info.guids[random.random_range(0..8)].set(alias(owner));
                mad.component_mask.set(3 | u64::from(random.random::<u8>()) << 4);
                assert!(record.encode(&mut mad.data));
            }
            _ => {}
        }
    }
    if random.random_bool(0.05) {
        mad.sm_key.set(*[1, 0x5ec2e6, random.random()].choose(random).unwrap());
    }
    let mut source = address(snapshot, STRANGERS[random.random_range(0..3)]);
    if random.random_bool(0.2) {
        let gid = Gid::new(snapshot.sm.gid_prefix, Guid(alias(OWNERS[0])));
        source.grh = Some(GlobalRoute { gid, gid_index: 0, hop_limit: 0, traffic_class: 0, flow_label: 0 });
    }
    Request::new(mad, source)
}

#[test]
fn strangers_change_nothing_of_what_others_have() {
    let mut random = random();
    for shared in [false, true] {
        let snapshot = fabric(shared);
        let mut server = furnished(&snapshot);
        let before = belongings(&server);
        let methods = [Method::SET, Method::DELETE];
        let attributes = [
            sa::MC_MEMBER_RECORD,
            sa::SERVICE_RECORD,
            sa::INFORM_INFO,
            sa::GUID_INFO_RECORD,
            sa::PATH_RECORD,
        ];
        for n in 0..20_000_u64 {
            let request = thought(&snapshot, &mut random, &methods, &attributes);
            server.receive(
                &Datagram { address: request.source, mad: request.mad.into_mad() },
                &snapshot,
                at(n / 10),
            );
            while server.poll_send(at(n / 10)).is_some() {}
        }
        assert_eq!(belongings(&server), before, "a partition in common: {shared}");
        let statistics = server.statistics();
        assert!(
            statistics.answered - statistics.refused > 100,
            "some are done, of their own: {statistics:?}"
        );
    }
}

#[test]
fn strangers_learn_nothing_of_others() {
    let mut random = random();
    let snapshot = fabric(false);
    let server = furnished(&snapshot);
    let aliases = Arc::clone(server.registry().aliases.table());
    let snapshot = Arc::new((*snapshot).clone().with_aliases(aliases));
    let methods =
        [Method::GET, Method::GET_TABLE, Method::GET_TABLE, Method::GET_TRACE_TABLE, Method::GET_MULTI];
    let mut secrets: Vec<Vec<u8>> = Vec::new();
    for n in OWNERS {
        let port = guid(n).0;
        secrets.extend([port, port - 1, alias(n)].map(|guid| guid.to_be_bytes().to_vec()));
        secrets.push(mgid(n).0.to_be_bytes().to_vec());
    }
    let mut told = 0;
    for _ in 0..20_000 {
        let request = thought(&snapshot, &mut random, &methods, &ATTRIBUTES);
        let mut shown = match answer(&snapshot, server.registry(), &request, at(1)) {
            Answer::Silence => continue,
            Answer::Single(mad) => mad.data.to_vec(),
            Answer::Table { records, .. } => records,
        };
        // A path comes back with the ServiceID that it was asked for with.
        if [sa::PATH_RECORD, sa::MULTI_PATH_RECORD].contains(&request.mad.header.attribute_id.get()) {
            shown
                .chunks_mut(PathRecord::TABLE_LEN)
                .filter(|record| record.len() >= 8)
                .for_each(|record| record[..8].fill(0));
        }
        told += usize::from(shown.iter().any(|byte| *byte != 0));
        for secret in &secrets {
            let found = shown.windows(secret.len()).any(|window| window == secret);
            assert!(!found, "{secret:02x?} is shown to {:?}", request.mad);
        }
    }
    assert!(told > 1000, "they do see what is theirs: {told}");
}

/// Reports of ports and groups that come and go are for those who may know of them.
#[test]
fn strangers_hear_nothing_of_others() {
    let parted = fabric(false);
    let keys = |n: u8| if STRANGERS.contains(&n) { vec![PKey(0x8002)] } else { vec![PKey(0x8001)] };
    let mut server = Server::new(ServerConfig::default());
    server.set_snapshot(&parted, at(0));
    for n in [2, 3] {
        let mut inform = InformInfo::new_zeroed();
        inform.subscribe = 1;
        inform.is_generic = 1;
        inform.lid_range_begin.set(InformInfo::ALL);
        inform.notice_type.set(InformInfo::ALL);
        inform.trap_number_or_device_id.set(InformInfo::ALL);
        inform.set_producer_type_or_vendor_id(InformInfo::ALL_PRODUCERS);
        let mad = request(Method::SET, &inform, 0, n.into());
        assert_eq!(ask(&mut server, &parted, n, mad, at(1)).header.status(), Status::OK);
    }
    while server.poll_send(at(1)).is_some() {}
    // The manager's own port is in both partitions, as it usually is; then host 1 makes a group, leaves it, and goes.
    let with_keys = |fabric: routing::fabric::Fabric| {
        let snapshot = freeze(fabric);
        let end = |n: u8| snapshot.port_by_guid(guid(n)).map(|port| port.end);
        let of = |n: u8| if n == 0 { vec![PKey(0x8001), PKey(0x8002)] } else { keys(n) };
        let tables: HashMap<_, _> = (0..6).filter_map(|n| Some((end(n)?, of(n)))).collect();
        Arc::new(snapshot.with_pkeys(&tables))
    };
    let whole = with_keys(parted.observed.fabric.clone());
    let (mut join, mask) = member(&whole, 1, mgid(1), 1);
    join.pkey.set(0x8001);
    let traits = McMemberRecord::QKEY
        | McMemberRecord::PKEY
        | McMemberRecord::TCLASS
        | McMemberRecord::SL
        | McMemberRecord::FLOW_LABEL;
    let mut heard: BTreeMap<u16, BTreeSet<u16>> = BTreeMap::new();
    let mut listen = |server: &mut Server, now: Timestamp| {
        while let Some(sent) = server.poll_send(now) {
            if sent.mad.header.method() == Method::REPORT {
                let report = Report::decode(&SaMad::from_mad(sent.mad).data).unwrap();
                let trap = report.notice.trap_number_or_device_id.get();
                heard.entry(sent.address.lid).or_default().insert(trap);
            }
        }
    };
    for (method, more, tid) in [(Method::SET, traits, 10), (Method::DELETE, 0, 11)] {
        let mad = request(method, &join, mask | more, tid).into_mad();
        server.receive(&Datagram { address: address(&whole, 1), mad }, &whole, at(2));
        listen(&mut server, at(2));
    }
    let mut fabric = whole.observed.fabric.clone();
    fabric.remove_node(fabric.find(Guid(guid(1).0 - 1)).unwrap());
    server.set_snapshot(&with_keys(fabric), at(3));
    listen(&mut server, at(3));
    server.set_snapshot(&whole, at(4));
    listen(&mut server, at(4));
    assert_eq!(heard.get(&address(&whole, 2).lid), Some(&BTreeSet::from([64, 65, 66, 67])));
    assert_eq!(heard.get(&address(&whole, 3).lid), None, "a stranger");
}
