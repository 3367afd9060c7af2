use mad::types::{PortPhysState, QKey};
use mad::wire::smp::{Notice, NoticeType};

use super::*;
use crate::generate::{Options, Topology, generate};
use crate::world::{Config, World};

const GROUP: Gid = Gid(0xff15_a01b << 96 | 7);
const BROADCAST: Gid = Gid(0xff12_401b_ffff << 80 | 0xffff_ffff);
const IPOIB_GROUP: Gid = Gid(0xff12_401b_ffff << 80 | 1);

fn at(ms: u64) -> Timestamp {
    Timestamp::from_start(Duration::from_millis(ms))
}

/// A port that is Active with LID 5 and the subnet manager at LID 1.
fn port() -> DevicePort {
    let fabric = generate(&Topology::line(2), &Options::default()).unwrap();
    let world = World::new(&fabric, Config::default());
    let mut port = world.device(world.find_name("H0").unwrap()).ports[1].clone();
    port.info.base_lid.set(5);
    port.info.master_sm_lid.set(1);
    port.set_state(PortState::Active, PortPhysState::LinkUp);
    port
}

fn client(habits: Habits) -> Client {
    let mut client = Client::new(habits);
    client.port_event(&port(), PortEvent::Changed, at(0));
    client
}

fn asked(client: &mut Client, now: Timestamp) -> Vec<SaMad> {
    let sent = std::iter::from_fn(|| client.poll(now)).map(|output| match output {
        AgentOutput::Send(datagram) => {
            assert_eq!(datagram.address.lid, 1);
            SaMad::from_mad(datagram.mad)
        }
        AgentOutput::IsSm(_) => panic!("a client is no subnet manager"),
    });
    sent.collect()
}

fn answer(client: &mut Client, request: &SaMad, status: Status, now: Timestamp) {
    let mut mad = SaMad::response_to(request, status);
    mad.data = request.data;
    client.receive(Datagram { address: Address::gsi(1, ServiceLevel(0)), mad: mad.into_mad() }, now);
}

fn groups(groups: &[Gid]) -> Habits {
    Habits {
        groups: groups.iter().map(|mgid| (*mgid, JoinState::FULL_MEMBER)).collect(),
        ..Habits::default()
    }
}

#[test]
fn an_unanswered_request_is_repeated_under_a_new_id_after_longer_and_longer_pauses() {
    let mut client = client(groups(&[GROUP]));
    let mut now = at(0);
    let mut pauses = Vec::new();
    let first = asked(&mut client, now)[0];
    let mut last = first;
    for _ in 0..7 {
        now = client.deadline().unwrap();
        assert_eq!(asked(&mut client, now), [], "given up");
        let then = client.deadline().unwrap();
        pauses.push((then - now).as_secs());
        now = then;
        let [again] = asked(&mut client, now)[..] else { panic!("one request") };
        assert_ne!(again.header.transaction_id, last.header.transaction_id);
        assert_eq!(again.data, first.data);
        last = again;
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 16, 16]);
    answer(&mut client, &first, Status::OK, now);
    assert_eq!(client.acknowledged().count(), 0, "the kernel forgot that request");
    answer(&mut client, &last, Status::OK, now);
    assert_eq!(client.acknowledged().count(), 1);
    assert_eq!((client.deadline(), client.open().count()), (None, 0));
    assert_eq!(client.counts, Counts { asked: 8, granted: 1, unanswered: 7, ..Counts::default() });
}

#[test]
fn everything_is_registered_anew_when_that_is_told_but_not_by_the_deaf() {
    for deaf in [false, true] {
        let habits =
            Habits { services: vec![9], traps: vec![64], paths: vec![Guid(3)], deaf, ..groups(&[GROUP]) };
        let mut client = client(habits);
        for event in [None, Some(PortEvent::Changed), Some(PortEvent::Reregister)] {
            if let Some(event) = event {
                client.port_event(&port(), event, at(10));
            }
            let requests = asked(&mut client, at(10));
            let again = event.is_none() || (event == Some(PortEvent::Reregister) && !deaf);
            assert_eq!(requests.len(), if again { 4 } else { 0 }, "{event:?}, deaf: {deaf}");
            requests.iter().for_each(|request| answer(&mut client, request, Status::OK, at(11)));
            assert_eq!((client.acknowledged().count(), client.open().count()), (3, 0));
        }
        // Another LID, and a link that was away.
        let (mut other, mut down) = (port(), port());
        other.info.base_lid.set(6);
        down.set_state(PortState::Down, PortPhysState::Polling);
        client.port_event(&other, PortEvent::Changed, at(20));
        assert_eq!(asked(&mut client, at(20)).len(), if deaf { 0 } else { 4 });
        client.port_event(&down, PortEvent::Changed, at(30));
        client.port_event(&other, PortEvent::Changed, at(40));
        assert_eq!(asked(&mut client, at(40)).len(), if deaf { 0 } else { 4 });
    }
}

/// B75: nobody joins by a port that is not Active.
#[test]
fn b75_nothing_is_asked_before_the_port_is_active_and_knows_the_subnet_manager() {
    let (mut down, mut lost) = (port(), port());
    down.set_state(PortState::Armed, PortPhysState::LinkUp);
    lost.info.master_sm_lid.set(0);
    let mut client = Client::new(groups(&[GROUP]));
    for port in [down, lost] {
        client.port_event(&port, PortEvent::Changed, at(0));
        assert_eq!((asked(&mut client, at(9)).len(), client.deadline()), (0, None));
    }
    client.port_event(&port(), PortEvent::Changed, at(10));
    assert_eq!(asked(&mut client, at(10)).len(), 1);
}

/// B75: an IPoIB group has the properties of its broadcast group, which is joined before.
#[test]
fn b75_ipoib_groups_wait_for_their_broadcast_group_and_take_over_its_properties() {
    let mut client = client(groups(&[IPOIB_GROUP]));
    let [broadcast] = asked(&mut client, at(0))[..] else { panic!("one request") };
    let mut record = McMemberRecord::decode(&broadcast.data).unwrap();
    assert_eq!((record.mgid(), broadcast.component_mask.get() & McMemberRecord::QKEY), (BROADCAST, 0));
    record.qkey.set(0xb1b);
    record.set_hop_limit(3);
    let mut granted = broadcast;
    let _fits = record.encode(&mut granted.data);
    answer(&mut client, &granted, Status::OK, at(1));
    let [group] = asked(&mut client, at(1))[..] else { panic!("one request") };
    let record = McMemberRecord::decode(&group.data).unwrap();
    assert_eq!((record.mgid(), record.qkey(), record.hop_limit()), (IPOIB_GROUP, QKey(0xb1b), 3));
    let named = McMemberRecord::QKEY | McMemberRecord::MTU | McMemberRecord::RATE | McMemberRecord::HOP_LIMIT;
    assert_eq!(group.component_mask.get() & named, named);
}

#[test]
fn what_was_asked_for_is_given_back_and_nothing_else() {
    let mut client = client(Habits { services: vec![9], ..groups(&[GROUP]) });
    client.want(false, at(0));
    assert_eq!(asked(&mut client, at(0)), [], "nobody knows of it");
    client.want(true, at(1));
    let joins = asked(&mut client, at(1));
    assert_eq!(joins.len(), 2);
    answer(&mut client, &joins[0], Status::OK, at(1));
    client.want(false, at(2));
    let leaves = asked(&mut client, at(2));
    assert!(leaves.iter().all(|mad| mad.header.method() == Method::DELETE) && leaves.len() == 2);
    answer(&mut client, &joins[1], Status::OK, at(2));
    answer(&mut client, &leaves[0], Status::OK, at(2));
    answer(&mut client, &leaves[1], Status::BUSY, at(2));
    let next = client.deadline().unwrap();
    let again = asked(&mut client, next);
    answer(&mut client, &again[0], Status::SA_REQ_INVALID, at(1002));
    assert_eq!((client.deadline(), client.acknowledged().count(), client.open().count()), (None, 0, 0));
}

/// The broadcast group's leaving was answered first, and the other's answer was lost.
#[test]
fn a_group_is_left_when_its_broadcast_group_was_left_before() {
    let mut client = client(groups(&[IPOIB_GROUP]));
    for time in [0, 1] {
        let [join] = asked(&mut client, at(time))[..] else { panic!("one request") };
        answer(&mut client, &join, Status::OK, at(time));
    }
    client.want(false, at(2));
    let leaves = asked(&mut client, at(2));
    assert_eq!(leaves.len(), 2);
    answer(&mut client, &leaves[0], Status::OK, at(2));
    let lost = client.deadline().unwrap();
    assert_eq!(asked(&mut client, lost), []);
    let next = client.deadline().unwrap();
    let [again] = asked(&mut client, next)[..] else { panic!("one request") };
    assert_eq!(again.header.method(), Method::DELETE);
    let record = McMemberRecord::decode(&again.data).unwrap();
    assert_eq!(record.mgid(), IPOIB_GROUP);
}

#[test]
fn a_lease_is_renewed_and_a_report_answered() {
    let mut client = client(Habits { services: vec![9], lease: Some(60), ..Habits::default() });
    let [first] = asked(&mut client, at(0))[..] else { panic!("one request") };
    answer(&mut client, &first, Status::OK, at(0));
    assert_eq!(client.deadline(), Some(at(30_000)));
    assert_eq!(asked(&mut client, at(30_000)).len(), 1);
    let mut report = SaMad::request(Method::REPORT, Report::ID, 0);
    report.header.transaction_id.set(77);
    let notice = Notice::generic(NoticeType::Informational, 4, 64, None);
    let _fits = Report::new(notice, Gid(0)).encode(&mut report.data);
    assert!(client.accepts(&report.into_mad()));
    let address = Address::gsi(1, ServiceLevel(0));
    client.receive(Datagram { address, mad: report.into_mad() }, at(30_001));
    let [reply] = asked(&mut client, at(30_001))[..] else { panic!("one answer") };
    assert_eq!((reply.header.method(), reply.header.transaction_id.get()), (Method::REPORT_RESP, 77));
    assert_eq!(client.counts.reports, 1);
}
