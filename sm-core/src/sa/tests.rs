use std::sync::Arc;

use mad::transport::{Address, Datagram};
use mad::types::{MulticastLid, NodeType, PKey, PortNum, ServiceLevel, Timestamp};
use mad::wire::ids::sa;
use mad::wire::sa::{
    ClassPortInfo, GuidInfoRecord, LinearForwardingTableRecord, LinkRecord, MulticastForwardingTableRecord,
    NodeRecord, PKeyTableRecord, PathRecord, PortInfoRecord, Record, SaMad, SmInfoRecord, SwitchInfoRecord,
};
use mad::wire::{Attribute, Method, Status};
use proptest::prelude::*;
use routing::multicast::{MulticastTables, PortSet};
use zerocopy::{FromBytes, FromZeros};

use super::*;
use crate::snapshot::Snapshot;
use crate::testing::Tree;

const TREE: Tree = Tree { leaves: 2, spines: 2, hosts: 3, lmc: 0 };

/// The fabric of these tests; capability masks and a speed differ from port to port.
fn snapshot() -> Snapshot {
    let mut fabric = TREE.fabric();
    let hosts: Vec<_> = fabric.nodes().filter(|(_, n)| n.kind == NodeType::Ca).map(|(id, _)| id).collect();
    for (id, mask) in hosts.into_iter().zip([0x0251_0868, 0x0010_0000, 0, 2, 0x0251_086a]) {
        fabric.node_mut(id).port_mut(PortNum(1)).unwrap().capability_mask = mask;
    }
    let snapshot = crate::testing::freeze(fabric);
    let mut tables = MulticastTables::new(snapshot.graph.switch_count());
    for switch in 0..2 {
        tables.set_ports(switch, MulticastLid::new(0xc021).unwrap(), PortSet::from_iter([1, 2]));
    }
    snapshot.with_multicast(1, Arc::new(tables))
}

fn ask<R: Attribute>(snapshot: &Snapshot, method: Method, template: &R, mask: u64, modifier: u32) -> Answer {
    let mut mad = SaMad::request(method, R::ID, mask);
    mad.header.attribute_modifier.set(modifier);
    mad.header.transaction_id.set(0x1234_5678_9abc_def0);
    assert!(template.encode(&mut mad.data));
    let source = Address::gsi(snapshot.sm.lid.get(), ServiceLevel(0));
    ask_as(snapshot, mad, source)
}

fn ask_as(snapshot: &Snapshot, mad: SaMad, source: Address) -> Answer {
    answer(snapshot, &Registry::default(), &Request::new(mad, source), Timestamp::ZERO)
}

fn get<R: Record>(snapshot: &Snapshot, template: &R, mask: u64) -> Result<R, Status> {
    match ask(snapshot, Method::GET, template, mask, 0) {
        Answer::Single(mad) if mad.header.status().is_ok() => {
            assert_eq!(
                (mad.attribute_offset.get(), mad.header.method()),
                (R::ATTRIBUTE_OFFSET, Method::GET_RESP)
            );
            assert!(!mad.rmpp.is_active(), "B44: a Get is answered without RMPP");
            Ok(R::decode(&mad.data).unwrap())
        }
        Answer::Single(mad) => Err(mad.header.status()),
        other => panic!("{other:?}"),
    }
}

fn table<R: Record>(snapshot: &Snapshot, template: &R, mask: u64, modifier: u32) -> Vec<R> {
    match ask(snapshot, Method::GET_TABLE, template, mask, modifier) {
        Answer::Table { head, records } => {
            assert_eq!(head.header.method(), Method::GET_TABLE_RESP);
            assert_eq!(head.header.transaction_id.get(), 0x1234_5678_9abc_def0);
            let offset = if records.is_empty() { 0 } else { R::ATTRIBUTE_OFFSET };
            assert_eq!(head.attribute_offset.get(), offset, "B44");
            assert_eq!(records.len() % R::TABLE_LEN, 0);
            records.chunks(R::TABLE_LEN).map(|bytes| R::decode(bytes).unwrap()).collect()
        }
        other => panic!("{other:?}"),
    }
}

fn all<R: Record>(snapshot: &Snapshot) -> Vec<R> {
    table(snapshot, &R::new_zeroed(), 0, 0)
}

#[test]
fn each_table_holds_one_record_for_each_thing_of_the_fabric() {
    let snapshot = snapshot();
    let (hosts, switches) = (6, 4);
    assert_eq!(all::<NodeRecord>(&snapshot).len(), hosts + switches);
    assert_eq!(all::<SwitchInfoRecord>(&snapshot).len(), switches);
    assert_eq!(all::<LinearForwardingTableRecord>(&snapshot).len(), switches, "one block each");
    assert_eq!(all::<SmInfoRecord>(&snapshot).len(), 1);
    assert_eq!(all::<PathRecord>(&snapshot).len(), (hosts + switches) * (hosts + switches));
    let ports = hosts + 2 * (1 + 5) + 2 * (1 + 2);
    assert_eq!(all::<PortInfoRecord>(&snapshot).len(), ports);
    let links = all::<LinkRecord>(&snapshot);
    assert_eq!(links.len(), 2 * (hosts + 4));
    for link in &links {
        let back = LinkRecord {
            from_lid: link.to_lid,
            from_port: link.to_port,
            to_port: link.from_port,
            to_lid: link.from_lid,
        };
        assert!(links.contains(&back), "{link:?} has no way back");
    }
}

/// With any component mask, and a template taken from any record with any one byte changed, the answer is what a plain
/// scan of the whole table with the component table finds: indexed lookups change nothing.
fn masks_select_as_a_scan_does<R: Record + std::fmt::Debug + PartialEq>(
    snapshot: &Snapshot,
    (pick, mask, change): (usize, u64, (usize, u8)),
    ignored: u64,
) {
    let records = all::<R>(snapshot);
    let mut template = records[pick % records.len()];
    template.as_mut_bytes()[change.0 % size_of::<R>()] ^= change.1;
    let expected: Vec<&R> = records.iter().filter(|r| r.matches(&template, mask & !ignored)).collect();
    let found = table(snapshot, &template, mask, 0);
    assert!(
        expected.iter().all(|r| found.contains(r)) && found.len() == expected.len(),
        "{found:?}\n{expected:?}"
    );
    let one = get(snapshot, &template, mask);
    match expected[..] {
        [] => assert_eq!(one, Err(Status::SA_NO_RECORDS)),
        [record] => assert_eq!(one, Ok(*record)),
        _ => assert_eq!(one, Err(Status::SA_TOO_MANY_RECORDS)),
    }
}

/// Masks with few bits, since most records differ somewhere; and any bits at all.
fn masks() -> impl Strategy<Value = (usize, u64, (usize, u8))> {
    let few =
        proptest::collection::vec(0..64_u32, 0..4).prop_map(|bits| bits.iter().fold(0, |m, b| m | 1 << b));
    let change = (any::<usize>(), prop_oneof![3 => Just(0), 1 => any::<u8>()]);
    (any::<usize>(), prop_oneof![4 => few, 1 => any::<u64>()], change)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn component_masks_on_every_field(query in masks()) {
        let snapshot = snapshot();
        masks_select_as_a_scan_does::<NodeRecord>(&snapshot, query, 0);
        masks_select_as_a_scan_does::<PortInfoRecord>(&snapshot, query, 1 << 2);
        masks_select_as_a_scan_does::<SwitchInfoRecord>(&snapshot, query, 0);
        masks_select_as_a_scan_does::<LinearForwardingTableRecord>(&snapshot, query, 0);
        masks_select_as_a_scan_does::<LinkRecord>(&snapshot, query, 0);
        masks_select_as_a_scan_does::<SmInfoRecord>(&snapshot, query, 0);
        masks_select_as_a_scan_does::<GuidInfoRecord>(&snapshot, query, 0);
        masks_select_as_a_scan_does::<MulticastForwardingTableRecord>(&snapshot, query, 0);
    }

    /// B42: whatever stands in a request, for every attribute and method, it is answered or ignored, never a panic.
    #[test]
    fn b42_any_request_is_answered(
        bytes in proptest::collection::vec(any::<u8>(), 256),
        method in prop_oneof![Just(1_u8), Just(0x12), Just(2), Just(0x14), Just(0x15), any::<u8>()],
        attribute in prop_oneof![0x10_u16..0x40, Just(1), Just(3), Just(0xf3), any::<u16>()],
        lid in 0..20_u16,
        tell_key in any::<bool>(),
    ) {
        let snapshot = snapshot();
        let mut mad = SaMad::read_from_bytes(&bytes).unwrap();
        (mad.header.base_version, mad.header.mgmt_class, mad.header.class_version) = (1, 3, 2);
        mad.header.method = method;
        let forged = mad.sm_key.get() != 0 && tell_key;
        mad.sm_key.set(if forged { mad.sm_key.get() } else { 0 });
        mad.header.attribute_id.set(attribute);
        match ask_as(&snapshot, mad, Address::gsi(lid, ServiceLevel(0))) {
            Answer::Silence => prop_assert!(mad.header.method().is_response() || forged),
            Answer::Single(reply) | Answer::Table { head: reply, .. } => {
                prop_assert_eq!(reply.header.transaction_id, mad.header.transaction_id);
                prop_assert_eq!(reply.header.method(), mad.header.method().response());
                prop_assert_eq!(reply.sm_key.get(), 0, "SM_Key is not given away");
            }
        }
    }
}

/// B42: LIDs, ports and blocks at and beyond their ends give records or none.
#[test]
fn b42_numbers_from_the_wire() {
    let snapshot = snapshot();
    let switch = all::<SwitchInfoRecord>(&snapshot)[0].lid;
    let mut lft = LinearForwardingTableRecord::new_zeroed();
    lft.lid = switch;
    for (block, found) in [(0, true), (1, false), (767, false), (768, false), (0xffff, false)] {
        lft.block_num.set(block);
        assert_eq!(get(&snapshot, &lft, 0b11).is_ok(), found, "block {block}");
    }
    let mut port = PortInfoRecord::new_zeroed();
    port.lid = switch;
    for (number, found) in [(0, true), (5, true), (6, false), (255, false)] {
        port.port_num = number;
        assert_eq!(get(&snapshot, &port, 0b11).is_ok(), found, "port {number}");
    }
    for lid in [0, 0xbfff, 0xc000, 0xffff] {
        lft.lid.set(lid);
        port.lid.set(lid);
        assert_eq!(get(&snapshot, &lft, 1), Err(Status::SA_NO_RECORDS));
        assert_eq!(get(&snapshot, &port, 1), Err(Status::SA_NO_RECORDS));
        assert!(table(&snapshot, &port, 1, 0).is_empty());
    }
}

/// Modifier bit 31: ports that have all the bits of CapabilityMask set.
#[test]
fn capability_mask_match() {
    let snapshot = snapshot();
    let component = PortInfoRecord::component_mask(&["CapabilityMask"]).unwrap();
    let mut template = PortInfoRecord::new_zeroed();
    for (bits, with_all, exactly) in [(2, 2, 1), (0x0010_0000, 3, 1), (0x0251_0868, 2, 1), (0, 24, 20)] {
        template.port_info.capability_mask.set(bits);
        assert_eq!(table(&snapshot, &template, component, 1 << 31).len(), with_all, "{bits:#x}");
        assert_eq!(table(&snapshot, &template, component, 0).len(), exactly, "{bits:#x}");
    }
}

#[test]
fn lmc_ports_are_found_by_any_of_their_lids() {
    let snapshot = Tree { lmc: 2, ..TREE }.snapshot();
    let mut template = NodeRecord::new_zeroed();
    for offset in 0..4 {
        template.lid.set(8 + offset);
        assert_eq!(get(&snapshot, &template, 1).map(|record| record.lid.get()), Ok(8));
    }
}

#[test]
fn m_key_and_sm_key_are_for_trusted_requesters() {
    let mut snapshot = snapshot();
    snapshot.sm.sm_key = 7;
    let observed = Arc::make_mut(&mut snapshot.observed);
    for node in observed.nodes.values_mut() {
        node.ports.iter_mut().flatten().for_each(|port| port.m_key.set(99));
    }
    let source = Address::gsi(snapshot.sm.lid.get(), ServiceLevel(0));
    for (key, shown) in [(0, false), (7, true)] {
        for attribute in [sa::PORT_INFO_RECORD, sa::SM_INFO_RECORD] {
            let mut mad = SaMad::request(Method::GET_TABLE, attribute, 0);
            mad.sm_key.set(key);
            let Answer::Table { records, head } = ask_as(&snapshot, mad, source) else { panic!() };
            assert_eq!(head.sm_key.get(), 0);
            let secret = if attribute == sa::PORT_INFO_RECORD {
                PortInfoRecord::decode(&records).unwrap().port_info.m_key.get() == 99
            } else {
                SmInfoRecord::decode(&records).unwrap().sm_info.sm_key.get() == 7
            };
            assert_eq!(secret, shown, "attribute {attribute:#x} with key {key}");
        }
    }
    let mut mad = SaMad::request(Method::GET_TABLE, sa::NODE_RECORD, 0);
    mad.sm_key.set(6);
    assert_eq!(ask_as(&snapshot, mad, source), Answer::Silence, "who tries keys is told nothing");
}

/// B44: the reply mirrors P_Key index, service level, path bits and global route, and repeats the transaction ID.
#[test]
fn b44_replies_go_back_the_way_the_request_came() {
    let snapshot = Arc::new(snapshot());
    let mut server = Server::new(ServerConfig::default());
    let mut address = Address::gsi(snapshot.sm.lid.get(), ServiceLevel(5));
    (address.pkey_index, address.path_bits) = (3, 1);
    let mad = SaMad::request(Method::GET, sa::CLASS_PORT_INFO, 0);
    server.receive(&Datagram { address, mad: mad.into_mad() }, &snapshot, Timestamp::ZERO);
    let reply = server.poll_send(Timestamp::ZERO).unwrap();
    assert_eq!(reply.address, address);
    let info = ClassPortInfo::decode(&SaMad::from_mad(reply.mad).data).unwrap();
    assert_eq!((info.base_version, info.class_version), (1, 2));
    assert_eq!(server.poll_send(Timestamp::ZERO), None);
}

#[test]
fn statuses_of_what_is_not_supported() {
    let snapshot = snapshot();
    let status = |method: u8, attribute, version, lid| {
        let mut mad = SaMad::request(Method(method), attribute, 0);
        mad.header.class_version = version;
        match ask_as(&snapshot, mad, Address::gsi(lid, ServiceLevel(0))) {
            Answer::Single(mad) => Some(mad.header.status()),
            Answer::Silence => None,
            Answer::Table { .. } => Some(Status::OK),
        }
    };
    let me = snapshot.sm.lid.get();
    assert_eq!(status(0x12, sa::NODE_RECORD, 2, me), Some(Status::OK));
    assert_eq!(status(0x12, sa::NODE_RECORD, 1, me), Some(Status::BAD_VERSION));
    assert_eq!(status(0x12, 0x7777, 2, me), Some(Status::METHOD_ATTRIBUTE_NOT_SUPPORTED));
    assert_eq!(status(0x02, sa::NODE_RECORD, 2, me), Some(Status::METHOD_ATTRIBUTE_NOT_SUPPORTED));
    assert_eq!(status(0x12, sa::CLASS_PORT_INFO, 2, me), Some(Status::METHOD_ATTRIBUTE_NOT_SUPPORTED));
    assert_eq!(status(0x44, sa::NODE_RECORD, 2, me), Some(Status::METHOD_NOT_SUPPORTED));
    assert_eq!(status(0x12, sa::NODE_RECORD, 2, 0x999), Some(Status::BUSY), "not in the picture yet");
    assert_eq!(status(0x92, sa::NODE_RECORD, 2, me), None, "a response is no request");
}

/// Only the master answers.
#[test]
fn a_standby_is_silent() {
    let mut snapshot = snapshot();
    snapshot.sm.state = 2;
    let reply = ask(&snapshot, Method::GET_TABLE, &NodeRecord::new_zeroed(), 0, 0);
    assert_eq!(reply, Answer::Silence);
}

/// Half of ServiceID, no paths at all, unknown codes: refused; what the path leaves free comes back as asked.
#[test]
fn path_record_components() {
    let snapshot = snapshot();
    let mut record = PathRecord::new_zeroed();
    record.dlid.set(2);
    let with = |record: &PathRecord, mask| get(&snapshot, record, mask | PathRecord::DLID);
    for half in [1, 2] {
        assert_eq!(with(&record, half), Err(Status::SA_INSUFFICIENT_COMPONENTS));
    }
    assert!(with(&record, PathRecord::NUMB_PATH).is_ok(), "one path, whatever is asked");
    let mask = PathRecord::DLID | PathRecord::NUMB_PATH;
    let Answer::Single(table) = ask(&snapshot, Method::GET_TABLE, &record, mask, 0) else {
        panic!("a refusal")
    };
    assert_eq!(table.header.status(), Status::SA_REQ_INVALID, "a table of no path");
    assert_eq!(with(&record, PathRecord::RATE | PathRecord::RATE_SELECTOR), Err(Status::SA_REQ_INVALID));
    assert!(with(&record, PathRecord::RATE).is_ok(), "no selector, no bound");
    record.service_id.set(77);
    record.tclass = 9;
    record.set_flow_label(0x54321);
    record.set_qos_class(0x123);
    let free = PathRecord::SERVICE_ID | PathRecord::TCLASS | PathRecord::FLOW_LABEL | PathRecord::QOS_CLASS;
    let path = with(&record, free).unwrap();
    assert_eq!((path.service_id.get(), path.tclass), (77, 9));
    assert_eq!((path.flow_label(), path.qos_class(), path.hop_limit()), (0x54321, 0x123, 0));
    let path = with(&record, 0).unwrap();
    assert_eq!((path.service_id.get(), path.tclass, path.flow_label(), path.qos_class()), (0, 0, 0, 0));
    assert_eq!((path.mtu_raw(), path.rate_raw(), path.packet_life_time()), (5, 16, 18));
    assert_eq!((path.mtu_selector_raw(), path.reversible(), path.pkey.get()), (2, 1, 0xffff));
}

/// P_Key tables are for trusted requesters, with every key at its index (B42: blocks beyond the table are none).
#[test]
fn pkey_tables() {
    let mut snapshot = snapshot();
    snapshot.sm.sm_key = 7;
    let port = snapshot.port_by_guid(Tree::host(0, 1)).unwrap().clone();
    let mut keys = vec![PKey(0); 64];
    (keys[0], keys[33]) = (PKey(0xffff), PKey(0x8005));
    let snapshot = snapshot.with_pkeys(&std::collections::HashMap::from([(port.end, keys)]));
    let ask = |key: u64, block: u16| {
        let mut template = PKeyTableRecord::new_zeroed();
        template.lid.set(port.lid.get());
        template.block_num.set(block);
        let mut mad = SaMad::request(Method::GET, PKeyTableRecord::ID, 0b11);
        mad.sm_key.set(key);
        assert!(template.encode(&mut mad.data));
        match ask_as(&snapshot, mad, Address::gsi(snapshot.sm.lid.get(), ServiceLevel(0))) {
            Answer::Single(mad) if mad.header.status().is_ok() => {
                Ok(PKeyTableRecord::decode(&mad.data).unwrap())
            }
            Answer::Single(mad) => Err(mad.header.status()),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ask(0, 0).err(), Some(Status::SA_REQ_INVALID));
    assert_eq!(ask(7, 0).unwrap().table.pkeys[0].get(), 0xffff);
    let second = ask(7, 1).unwrap();
    assert_eq!((second.table.pkeys[0].get(), second.table.pkeys[1].get(), second.port_num), (0, 0x8005, 1));
    for block in [2, 0xffff] {
        assert_eq!(ask(7, block).err(), Some(Status::SA_NO_RECORDS));
    }
}

/// Each port has a GUIDInfo record with its own GUID first.
#[test]
fn guid_info() {
    let snapshot = snapshot();
    let records = all::<GuidInfoRecord>(&snapshot);
    assert_eq!(records.len(), snapshot.end_ports().len());
    for record in records {
        let port = snapshot.port_at(record.lid().unwrap()).unwrap();
        assert_eq!(
            (record.guid_info.guid(0), record.guid_info.guid(1)),
            (Some(port.guid), Some(mad::types::Guid(0)))
        );
    }
}

proptest! {
    /// Whatever is asked to be changed, in any order, is answered or ignored, and what is kept stays bounded by what was
    /// asked for.
    #[test]
    fn any_change_is_answered(
        steps in proptest::collection::vec(
            (
                proptest::collection::vec(any::<u8>(), 200),
                prop_oneof![Just(Method::SET), Just(Method::DELETE), Just(Method::GET_TABLE), Just(Method::GET_MULTI)],
                prop_oneof![
                    Just(sa::MC_MEMBER_RECORD), Just(sa::SERVICE_RECORD), Just(sa::INFORM_INFO),
                    Just(sa::INFORM_INFO_RECORD), Just(sa::MULTI_PATH_RECORD),
                    Just(sa::GUID_INFO_RECORD)
                ],
                prop_oneof![Just(u64::MAX), any::<u64>()],
                0..8_u16,
                any::<bool>(),
            ),
            1..40,
        ),
    ) {
        let snapshot = snapshot();
        let mut registry = Registry::default();
        let count = steps.len();
        for (mut bytes, method, attribute, mask, lid, plausible) in steps {
            if plausible {
                // A port GID where a record has one, so that requests get further than the first check.
                let gid = snapshot.gid_of(&snapshot.end_ports()[0]).0.to_be_bytes();
                let place = if attribute == sa::SERVICE_RECORD { 8..24 } else { 16..32 };
                bytes[place].copy_from_slice(&gid);
            }
            let mut mad = SaMad::request(method, attribute, mask);
            mad.data.copy_from_slice(&bytes);
            let request = Request::new(mad, Address::gsi(lid, ServiceLevel(0)));
            match serve(&snapshot, &mut registry, &request, Timestamp::ZERO) {
                Answer::Silence => prop_assert!(false, "a request of the master's subnet is answered"),
                Answer::Single(reply) | Answer::Table { head: reply, .. } => {
                    prop_assert_eq!(reply.header.method(), method.response());
                }
            }
        }
        prop_assert!(registry.groups.iter().count() <= count);
        prop_assert!(registry.services.len() + registry.subscriptions.iter().count() <= count);
    }
}
