use crossbeam_channel::bounded;
use mad::rmpp::{Rmpp, RmppConfig};
use mad::transport::memory::{MemoryTransport, pair};
use mad::transport::{Address, Received};
use mad::types::{Gid, ServiceLevel};
use mad::wire::sa::{
    ClassPortInfo, GuidInfoRecord, InformInfo, McMemberRecord, NodeRecord, PathRecord, PortInfoRecord,
    Record, SaMad,
};
use mad::wire::{Attribute, Status};
use zerocopy::FromZeros;

use super::*;
use crate::testing::Tree;

const TREE: Tree = Tree { leaves: 2, spines: 1, hosts: 3, lmc: 0 };

/// A desk whose thread has not begun, and the other end of its device.
struct Place {
    desk: Desk,
    device: MemoryTransport,
    queries: Sender<Vec<Datagram>>,
    kept: Receiver<Job>,
    wishes: Receiver<Wish>,
    snapshot: Arc<Snapshot>,
}

impl Place {
    fn new(tree: Tree, config: ServerConfig) -> Self {
        let (transport, device) = pair(4096);
        let (queries_in, queries) = bounded(8);
        let (keeper, kept) = bounded(8);
        let (wishes_in, wishes) = bounded(1);
        let snapshot = Arc::new(tree.snapshot());
        let channels = Channels {
            queries,
            notices: bounded(1).1,
            wishes: wishes_in,
            restores: bounded(1).1,
            keeper,
            figures: bounded(1).0,
            standing: Arc::default(),
            epoch: Epoch(0),
            start: Instant::now(),
        };
        let desk = Desk {
            transport: Arc::new(transport),
            channels,
            snapshot: Arc::new(ArcSwapOption::from(Some(Arc::clone(&snapshot)))),
            workers: Workers::start(config.workers).unwrap(),
            state: Mutex::new(State::new(Server::new(config))),
        };
        desk.channels.standing.leads_until.store(u64::MAX, Ordering::Relaxed);
        // One turn of the thread, by which the picture is taken up; then it sleeps.
        desk.turn(&mut desk.state());
        // The partition's group is told and kept.
        assert_eq!((wishes.try_iter().count(), kept.try_iter().count()), (1, 1));
        desk.turn(&mut desk.state());
        desk.state().told.groups_at = Timestamp::ZERO;
        desk.prepare_to_sleep();
        Self { desk, device, queries: queries_in, kept, wishes, snapshot }
    }

    fn query<A: Attribute>(&self, method: Method, template: &A, mask: u64, tid: u64) -> Datagram {
        let mut mad = SaMad::request(method, A::ID, mask);
        mad.header.transaction_id.set(tid);
        assert!(template.encode(&mut mad.data));
        let host = self.snapshot.port_by_guid(Tree::host(0, 1)).unwrap();
        Datagram { address: Address::gsi(host.lid.get(), ServiceLevel(0)), mad: mad.into_mad() }
    }

    fn path(&self, tid: u64) -> Datagram {
        let lid = |leaf| self.snapshot.port_by_guid(Tree::host(leaf, 1)).unwrap().lid.get();
        let mut template = PathRecord::new_zeroed();
        template.slid.set(lid(0));
        template.dlid.set(lid(1));
        self.query(Method::GET, &template, PathRecord::SLID | PathRecord::DLID, tid)
    }

    /// What was sent.
    fn sent(&self) -> Vec<SaMad> {
        let next = || match self.device.receive(Duration::ZERO) {
            Ok(Some(Received::Datagram(datagram))) => Some(SaMad::from_mad(datagram.mad)),
            _ => None,
        };
        std::iter::from_fn(next).collect()
    }
}

#[test]
fn single_questions_are_answered_without_the_thread() {
    let place = Place::new(TREE, ServerConfig::default());
    let lid = place.snapshot.sm.lid.get();
    let (mut node, mut port) = (NodeRecord::new_zeroed(), PortInfoRecord::new_zeroed());
    node.lid.set(lid);
    port.lid.set(lid);
    let queries = [
        place.path(1),
        place.query(Method::GET, &ClassPortInfo::new_zeroed(), 0, 2),
        place.query(Method::GET, &node, 1, 3),
        place.query(Method::GET, &port, 1, 4),
    ];
    assert_eq!(place.desk.serve_at_once(&queries), AtOnce::Done);
    let sent = place.sent();
    let tids: Vec<u64> = sent.iter().map(|mad| mad.header.transaction_id.get()).collect();
    assert_eq!(tids, [1, 2, 3, 4]);
    assert!(sent.iter().all(|mad| mad.header.status().is_ok()), "{sent:?}");
}

/// What may take long, and more than a few: all that is the thread's.
#[test]
fn what_takes_time_is_left_to_the_thread() {
    let place = Place::new(TREE, ServerConfig::default());
    let no_end = place.query(Method::GET, &PathRecord::new_zeroed(), 0, 1);
    let all_nodes = place.query(Method::GET, &NodeRecord::new_zeroed(), 0, 2);
    let table = place.query(Method::GET_TABLE, &PathRecord::new_zeroed(), 0, 3);
    let alias = place.query(Method::SET, &GuidInfoRecord::new_zeroed(), 0, 4);
    for query in [no_end, all_nodes, table, alias] {
        assert_eq!(place.desk.serve_at_once(&[place.path(9), query]), AtOnce::NotTaken, "{query:?}");
    }
    let many: Vec<_> = (0..=AT_ONCE as u64).map(|tid| place.path(tid)).collect();
    assert_eq!(place.desk.serve_at_once(&many), AtOnce::NotTaken);
    assert_eq!(place.sent().len(), 0);
    assert_eq!(place.desk.state().server.statistics().received, 0);
}

/// Nobody is overtaken, and nobody waits: where others wait, where the thread is at work or a new picture is to be taken up,
/// the question goes the common way.
#[test]
fn nobody_is_overtaken() {
    let place = Place::new(TREE, ServerConfig::default());
    place.queries.send(vec![place.path(1)]).unwrap();
    assert_eq!(place.desk.serve_at_once(&[place.path(2)]), AtOnce::NotTaken, "one waits already");
    assert_eq!(place.desk.channels.queries.try_iter().count(), 1);
    {
        let _at_work = place.desk.state();
        assert_eq!(place.desk.serve_at_once(&[place.path(3)]), AtOnce::NotTaken);
    }
    place.desk.state().more = true;
    assert_eq!(place.desk.serve_at_once(&[place.path(4)]), AtOnce::NotTaken, "answers are being sent");
    place.desk.state().more = false;
    place.desk.snapshot.store(Some(Arc::new(TREE.snapshot())));
    assert_eq!(place.desk.serve_at_once(&[place.path(5)]), AtOnce::NotTaken, "another picture");
    place.desk.turn(&mut place.desk.state());
    assert_eq!(place.desk.serve_at_once(&[place.path(6)]), AtOnce::Done);
    place.desk.snapshot.store(None);
    assert_eq!(place.desk.serve_at_once(&[place.path(7)]), AtOnce::NotTaken, "no picture any more");
    assert_eq!(place.sent().len(), 1);
}

/// A table reaches its reader though the thread never wakes after the first segment: acknowledgements are answered at once. A
/// window beyond what is sent at once is the thread's to go on with.
#[test]
fn acknowledgements_are_answered_without_the_thread() {
    let large = Tree { leaves: 4, spines: 1, hosts: 10, lmc: 0 };
    for (window, most) in [(64, AtOnce::Done), (2 * AT_ONCE_ANSWERS as u32, AtOnce::GoOn)] {
        let mut config = ServerConfig::default();
        // Else the thread would be woken to set its clock for the first of them.
        (config.rmpp.probe_timeout, config.rmpp.least_probe) = (TURN * 2, TURN * 2);
        let place = Place::new(large, config);
        let ask = place.query(Method::GET_TABLE, &PathRecord::new_zeroed(), 0, 1);
        let mut client = Rmpp::new(RmppConfig { window, ..RmppConfig::default() });
        client.expect(&ask.address, &ask.mad, Timestamp::MAX).unwrap();
        place.desk.take(&mut place.desk.state().server, &[ask]);
        place.desk.turn(&mut place.desk.state());
        let (mut message, mut seen) = (None, AtOnce::Done);
        while message.is_none() {
            for mad in place.sent() {
                client.receive(&Datagram { address: ask.address, mad: mad.into_mad() }, Timestamp::ZERO);
            }
            while let Some(ack) = client.poll_send(Timestamp::ZERO) {
                match place.desk.serve_at_once(&[ack]) {
                    AtOnce::Done => {}
                    AtOnce::GoOn => {
                        seen = AtOnce::GoOn;
                        place.desk.turn(&mut place.desk.state());
                    }
                    AtOnce::NotTaken => panic!("nobody else is here"),
                }
            }
            while let Some(event) = client.poll_event() {
                let mad::rmpp::Event::Received(whole) = event else { panic!("{event:?}") };
                message = Some(whole.data);
            }
        }
        let ports = place.snapshot.end_ports().len();
        assert_eq!(message.unwrap().len(), ports * ports * PathRecord::TABLE_LEN);
        assert_eq!(seen, most);
    }
}

/// A refusal is an answer too, and a bad question is counted as by the thread.
#[test]
fn bounds_and_counters_are_those_of_the_thread() {
    let place =
        Place::new(TREE, ServerConfig { queue: 2, queue_per_requester: 2, ..ServerConfig::default() });
    let queries = [1, 2, 3].map(|tid| place.path(tid));
    assert_eq!(place.desk.serve_at_once(&queries), AtOnce::Done);
    let sent: Vec<Status> = place.sent().iter().map(|mad| mad.header.status()).collect();
    assert_eq!(sent.iter().filter(|status| **status == Status::BUSY).count(), 1, "{sent:?}");
    let statistics = place.desk.state().server.statistics();
    assert_eq!((statistics.received, statistics.answered, statistics.busy), (3, 3, 1));
}

impl Place {
    /// The join of a host of leaf 0 to a group of the application, which it creates.
    fn join(&self, group: u128, tid: u64) -> Datagram {
        let mut record = McMemberRecord::new_zeroed();
        record.mgid.set(0xff12_0000_0000_0000_0000_0000_0000_0000 | group);
        record.port_gid.set(Gid::new(self.snapshot.sm.gid_prefix, Tree::host(0, 1)).0);
        record.set_join_state_raw(1);
        record.pkey.set(0xffff);
        let mask = McMemberRecord::MGID | McMemberRecord::PORT_GID | McMemberRecord::JOIN_STATE;
        let mask = mask | McMemberRecord::PKEY | McMemberRecord::QKEY | McMemberRecord::SL;
        let mask = mask | McMemberRecord::TCLASS | McMemberRecord::FLOW_LABEL;
        self.query(Method::SET, &record, mask, tid)
    }
}

/// B48 in the receiver's thread too: an answer to a join waits for its commit, a path beside it does not; then the thread, though
/// asleep when the commit began, hears of its end.
#[test]
fn b48_joins_are_taken_without_the_thread_and_acknowledged_when_they_are_written() {
    let place = Place::new(TREE, ServerConfig::default());
    let (hears, _) = place.desk.prepare_to_sleep();
    assert_ne!(hears, Duration::ZERO);
    let (_, written) = place.desk.prepare_to_sleep();
    assert_eq!(place.desk.serve_at_once(&[place.join(1, 1), place.path(2)]), AtOnce::Done);
    let tids = |sent: Vec<SaMad>| -> Vec<(u64, Status)> {
        sent.iter().map(|mad| (mad.header.transaction_id.get(), mad.header.status())).collect()
    };
    assert_eq!(tids(place.sent()), [(2, Status::OK)]);
    let Ok(Job::Registrations(changes, commit)) = place.kept.try_recv() else { panic!("something is kept") };
    assert!(!changes.is_empty());
    assert_eq!(written.try_recv().ok(), None, "not written yet");
    drop(commit);
    let commit = written.try_recv().unwrap();
    let state = &mut *place.desk.state();
    state.unwritten.written(commit);
    place.desk.turn(state);
    assert_eq!(tids(place.sent()), [(1, Status::OK)]);
    let Ok(Wish::Multicast(demand)) = place.wishes.try_recv() else { panic!("the switches are to carry it") };
    assert_eq!(demand.groups.len(), 1);
}

/// Where it is not certain that we are master the thread sleeps without an ear for commits: it is woken to set its clock.
#[test]
fn a_thread_that_hears_no_commits_is_woken() {
    let place = Place::new(TREE, ServerConfig::default());
    place.desk.channels.standing.leads_until.store(0, Ordering::Relaxed);
    place.desk.prepare_to_sleep();
    assert_eq!(place.desk.serve_at_once(&[place.join(1, 1)]), AtOnce::GoOn);
    assert_eq!(place.sent().len(), 0);
}

/// Whoever reads the device waits neither for a store that is slow nor to tell many of a new group.
#[test]
fn joins_that_may_take_long_are_the_threads() {
    let place = Place::new(TREE, ServerConfig::default());
    for _ in 0..4 {
        place.desk.channels.keeper.send(Job::AnotherFabric).unwrap();
    }
    assert_eq!(place.desk.serve_at_once(&[place.join(1, 1)]), AtOnce::NotTaken, "a slow store");
    while place.kept.try_recv().is_ok() {}
    let mut inform = InformInfo::new_zeroed();
    (inform.is_generic, inform.subscribe) = (1, 1);
    inform.lid_range_begin.set(InformInfo::ALL);
    inform.notice_type.set(InformInfo::ALL);
    inform.set_producer_type_or_vendor_id(InformInfo::ALL_PRODUCERS);
    for number in 0..=FEW_TO_TELL as u16 {
        inform.trap_number_or_device_id.set(number);
        let subscription = place.query(Method::SET, &inform, 0, 10 + u64::from(number));
        assert_ne!(place.desk.serve_at_once(&[subscription]), AtOnce::NotTaken, "{number}");
        drop(place.kept.try_recv());
        place.desk.turn(&mut place.desk.state());
        place.desk.prepare_to_sleep();
    }
    assert_eq!(place.sent().len(), FEW_TO_TELL + 1);
    assert_eq!(place.desk.serve_at_once(&[place.join(1, 1)]), AtOnce::NotTaken, "many to tell");
}

/// B38: the first join is told at once, those of the next moments together.
#[test]
fn b38_a_storm_of_joins_is_told_in_few_pieces() {
    let place = Place::new(TREE, ServerConfig::default());
    let join = |group: u128| {
        place.desk.take(&mut place.desk.state().server, &[place.join(group, group as u64)]);
        place.desk.turn(&mut place.desk.state());
        place.kept.try_iter().for_each(drop);
    };
    join(1);
    let told = |place: &Place| match place.wishes.try_recv() {
        Ok(Wish::Multicast(demand)) => Some(demand.groups.len()),
        _ => None,
    };
    assert_eq!(told(&place), Some(1));
    place.desk.state().told.groups_at = place.desk.now() + Duration::from_secs(3600);
    (2..50).for_each(join);
    assert_eq!(told(&place), None);
    assert!(place.desk.prepare_to_sleep().0 > Duration::ZERO);
    place.desk.state().told.groups_at = Timestamp::ZERO;
    assert_eq!(place.desk.prepare_to_sleep().0, Duration::ZERO, "what is due is told");
    place.desk.turn(&mut place.desk.state());
    assert_eq!(told(&place), Some(49));
}
