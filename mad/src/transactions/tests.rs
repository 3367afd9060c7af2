use std::collections::{HashMap, HashSet, VecDeque};

use proptest::prelude::*;

use super::*;
use crate::transport::Address;
use crate::types::DirectedPath;
use crate::wire::header::Method;
use crate::wire::smp::Smp;

const T: Duration = Duration::from_millis(100);
const GRACE: Duration = Duration::from_millis(10);

fn config() -> TransactionConfig {
    TransactionConfig {
        window: 4,
        per_destination: 2,
        timeout: T,
        retries: 2,
        backoff: 2,
        max_timeout: Duration::from_millis(300),
        grace: GRACE,
    }
}

fn node_info_to(destination: u64) -> Request {
    let mad = Smp::directed(Method::GET, 0x0011, 0, &DirectedPath::LOCAL).into_mad();
    Request::new(Datagram { address: Address::DIRECTED, mad }, destination)
}

fn reply_to(request: &Datagram) -> Received {
    let mut reply = *request;
    reply.mad.header.method = request.mad.header.method().response().0;
    // The kernel owns the upper half: it must play no role.
    let tid = reply.mad.header.transaction_id.get() | 0xdead_beef_0000_0000;
    reply.mad.header.transaction_id.set(tid);
    Received::Datagram(reply)
}

fn returned(request: &Datagram, errno: i32) -> Received {
    Received::Returned { request: *request, errno }
}

fn tid(datagram: &Datagram) -> u32 {
    datagram.mad.header.transaction_id.get() as u32
}

fn ms(ms: u64) -> Timestamp {
    Timestamp::from_start(Duration::from_millis(ms))
}

#[test]
fn an_answer_ends_its_request_once_and_repeats_of_it_are_counted() {
    let mut engine = Transactions::new(config(), 77);
    assert_eq!(engine.submit(node_info_to(1), "a"), 77);
    let (sent, timeout) = engine.poll_send(ms(0)).unwrap();
    assert_eq!((timeout, engine.in_flight(), engine.queued()), (T, 1, 0));
    let done = engine.receive(&reply_to(&sent), ms(1)).unwrap();
    assert_eq!(done.token, "a");
    assert!(matches!(done.outcome, Outcome::Reply(mad) if mad.header.method() == Method::GET_RESP));
    assert_eq!(engine.receive(&reply_to(&sent), ms(2)), None);
    assert_eq!((engine.stats().answered, engine.stats().duplicate, engine.in_flight()), (1, 1, 0));
    assert_eq!(engine.deadline(), None);
}

#[test]
fn tries_back_off_up_to_the_longest_and_then_time_out() {
    let mut engine = Transactions::new(config(), 1);
    engine.submit(node_info_to(1), ());
    let mut at = ms(0);
    for expected in [100, 200, 300] {
        let (_, timeout) = engine.poll_send(at).unwrap();
        assert_eq!(timeout, Duration::from_millis(expected));
        assert_eq!(engine.expired(at + timeout), [], "the device has its grace");
        at = at + timeout + GRACE;
        assert_eq!(engine.deadline(), Some(at));
        let ended = engine.expired(at);
        assert_eq!(ended.len(), usize::from(expected == 300));
    }
    let stats = engine.stats();
    assert_eq!((stats.sent, stats.retried, stats.timed_out), (3, 2, 1));
    assert!(engine.is_idle());
}

/// B09: a reply that comes after its try was given up answers the repetition; the repetition's own reply is
/// dropped.
#[test]
fn b09_an_answer_to_an_earlier_try_counts() {
    let mut engine = Transactions::new(config(), 1);
    engine.submit(node_info_to(1), ());
    let (first, _) = engine.poll_send(ms(0)).unwrap();
    assert_eq!(engine.expired(ms(110)), []);
    // Both while the repetition is still queued and (here) after it has gone out.
    let (second, _) = engine.poll_send(ms(110)).unwrap();
    assert_eq!(tid(&first), tid(&second));
    assert!(engine.receive(&reply_to(&first), ms(120)).is_some());
    assert_eq!(engine.receive(&reply_to(&second), ms(130)), None);
    assert_eq!(engine.stats().duplicate, 1);

    engine.submit(node_info_to(1), ());
    let (first, _) = engine.poll_send(ms(200)).unwrap();
    assert_eq!(engine.expired(ms(310)), []);
    assert!(engine.receive(&reply_to(&first), ms(311)).is_some(), "queued for its repetition");
    assert_eq!(engine.poll_send(ms(312)), None);
    assert!(engine.is_idle());
}

/// B09: after a time-out an answer is late; it is counted and meets no newer request.
#[test]
fn b09_late_answers_are_dropped() {
    let mut engine = Transactions::new(TransactionConfig { retries: 0, ..config() }, u32::MAX);
    engine.submit(node_info_to(1), 1);
    let (first, _) = engine.poll_send(ms(0)).unwrap();
    assert_eq!(engine.expired(ms(110)).len(), 1);
    engine.submit(node_info_to(1), 2);
    let (second, _) = engine.poll_send(ms(111)).unwrap();
    assert_eq!((tid(&first), tid(&second)), (u32::MAX, 1), "never 0");
    assert_eq!(engine.receive(&reply_to(&first), ms(112)), None);
    assert_eq!(engine.stats().late, 1);
    assert_eq!(engine.receive(&reply_to(&second), ms(113)).unwrap().token, 2);
}

#[test]
fn what_is_no_answer_to_the_request_is_left_alone() {
    let mut engine = Transactions::new(config(), 9);
    engine.submit(node_info_to(1), ());
    let (sent, _) = engine.poll_send(ms(0)).unwrap();
    assert_eq!(engine.receive(&Received::Datagram(sent), ms(1)), None, "a request of somebody's with our ID");
    for change in [0, 1, 2, 3] {
        let Received::Datagram(mut reply) = reply_to(&sent) else { unreachable!() };
        match change {
            0 => reply.mad.header.mgmt_class = 0x03,
            1 => reply.mad.header.attribute_id.set(0x0015),
            2 => reply.mad.header.method = Method::TRAP_REPRESS.0,
            _ => reply.mad.header.transaction_id.set(0),
        }
        assert_eq!(engine.receive(&Received::Datagram(reply), ms(1)), None);
    }
    assert_eq!((engine.stats().unmatched, engine.in_flight()), (4, 1));
    assert!(engine.receive(&reply_to(&sent), ms(2)).is_some());
}

#[test]
fn a_returned_request_ends_its_try_and_not_the_next_one() {
    let mut engine = Transactions::new(TransactionConfig { retries: 1, ..config() }, 1);
    engine.submit(node_info_to(1), ());
    let (first, _) = engine.poll_send(ms(0)).unwrap();
    assert_eq!(engine.receive(&returned(&first, libc::ETIMEDOUT), ms(100)), None);
    assert_eq!((engine.in_flight(), engine.queued()), (0, 1));
    assert_eq!(engine.receive(&returned(&first, libc::ETIMEDOUT), ms(100)), None, "already given up");
    let (second, _) = engine.poll_send(ms(100)).unwrap();
    let done = engine.receive(&returned(&second, libc::ETIMEDOUT), ms(300)).unwrap();
    assert_eq!(done.outcome, Outcome::Timeout);

    engine.submit(node_info_to(1), ());
    let (third, _) = engine.poll_send(ms(301)).unwrap();
    let done = engine.receive(&returned(&third, libc::EHOSTUNREACH), ms(302)).unwrap();
    assert_eq!(done.outcome, Outcome::SendError(libc::EHOSTUNREACH));
    assert!(engine.is_idle());
}

/// The kernel refuses (EINVAL) a repetition whose earlier try it still holds: that is no end, its answer may
/// yet come.
#[test]
fn a_repetition_that_the_device_still_holds_stays_in_flight() {
    let mut engine = Transactions::new(config(), 1);
    engine.submit(node_info_to(1), ());
    let (first, _) = engine.poll_send(ms(0)).unwrap();
    assert_eq!(engine.expired(ms(110)), []);
    let (second, _) = engine.poll_send(ms(110)).unwrap();
    assert_eq!(engine.send_failed(tid(&second), libc::EINVAL, ms(110)), None);
    assert_eq!(engine.in_flight(), 1);
    assert_eq!(engine.deadline(), Some(ms(310)));
    assert!(engine.receive(&reply_to(&first), ms(120)).is_some());
    assert_eq!(engine.stats().send_errors, 1);
    assert_eq!(engine.deadline(), None);
}

#[test]
fn lack_of_memory_passes_and_other_errors_do_not() {
    let mut engine = Transactions::new(config(), 1);
    engine.submit(node_info_to(1), ());
    for try_number in 0..3 {
        let now = ms(1000 * try_number);
        let (sent, _) = engine.poll_send(now).unwrap();
        let ended = engine.send_failed(tid(&sent), libc::ENOMEM, now);
        assert_eq!(ended.is_some(), try_number == 2);
        assert_eq!(engine.expired(now + Duration::from_millis(999)), []);
    }
    for errno in [libc::EIO, libc::ENODEV, libc::EINVAL] {
        engine.submit(node_info_to(1), ());
        let (sent, _) = engine.poll_send(ms(5000)).unwrap();
        let ended = engine.send_failed(tid(&sent), errno, ms(5000)).unwrap();
        assert_eq!(ended.outcome, Outcome::SendError(errno));
    }
    assert!(engine.is_idle());
}

#[test]
fn a_silent_node_holds_only_its_share() {
    let mut engine = Transactions::new(config(), 1);
    for n in 0..10 {
        engine.submit(node_info_to(0xdead), n);
    }
    for n in 10..20 {
        engine.submit(node_info_to(n), n);
    }
    let mut answered = Vec::new();
    let mut silent = 0;
    while let Some((sent, _)) = engine.poll_send(ms(0)) {
        if tid(&sent) <= 10 {
            silent += 1;
            continue;
        }
        answered.push(engine.receive(&reply_to(&sent), ms(0)).unwrap().token);
    }
    assert_eq!(silent, 2);
    assert_eq!(answered, (10..20).collect::<Vec<_>>());
    let cancelled = engine.cancel_all();
    assert_eq!(cancelled.len(), 10);
    assert!(engine.is_idle() && engine.deadline().is_none());
}

#[test]
fn more_is_wanted_until_the_window_is_full_twice_whatever_waits_for_its_share() {
    let mut engine = Transactions::new(config(), 1);
    for token in 0..20 {
        assert!(engine.is_hungry(), "one destination may have 2 in flight of a window of 4");
        engine.submit(node_info_to(7), token);
        while engine.poll_send(ms(0)).is_some() {}
    }
    assert_eq!((engine.in_flight(), engine.queued()), (2, 18));
    for destination in 8..14 {
        assert!(engine.is_hungry());
        engine.submit(node_info_to(destination), 0);
    }
    assert!(!engine.is_hungry(), "2 in flight and 6 that could follow");
    engine.cancel_all();
    while engine.is_hungry() {
        engine.submit(node_info_to(7), 0);
    }
    assert_eq!(engine.queued(), MOST_WAITING * 4, "and there is an end to waiting");
}

/// Whoever needs to know that a request may arrive after its end is told so: where more copies were sent than answered.
#[test]
fn b08_copies_that_may_still_be_under_way_are_told_with_the_end() {
    let mut engine = Transactions::new(config(), 1);
    for token in 0..4 {
        engine.submit(node_info_to(token), token);
    }
    let sent: Vec<Datagram> = std::iter::from_fn(|| engine.poll_send(ms(0)).map(|(sent, _)| sent)).collect();
    let answered_at_once = engine.receive(&reply_to(&sent[0]), ms(1)).unwrap();
    assert_eq!(answered_at_once.stray, None);
    assert_eq!(engine.expired(ms(110)), []);
    while engine.poll_send(ms(115)).is_some() {}
    let answered_late = engine.receive(&reply_to(&sent[1]), ms(120)).unwrap();
    let stray = answered_late.stray.unwrap();
    assert_eq!((stray.datagram, stray.destination, stray.last_sent), (sent[1], 1, ms(115)));
    engine.submit(node_info_to(9), 9);
    let cancelled = engine.cancel_all();
    let under_way = cancelled.iter().filter(|end| end.stray.is_some()).map(|end| end.token);
    assert_eq!(under_way.collect::<Vec<_>>(), [2, 3], "one was never sent");
}

#[test]
fn per_request_time_and_repetitions_win() {
    let mut engine = Transactions::new(config(), 1);
    let timeout = Duration::from_secs(5);
    engine.submit(Request { timeout: Some(timeout), retries: Some(1), ..node_info_to(1) }, ());
    let (_, first) = engine.poll_send(ms(0)).unwrap();
    assert_eq!(engine.expired(ms(5010)), []);
    let (_, second) = engine.poll_send(ms(5010)).unwrap();
    assert_eq!((first, second), (timeout, timeout), "beyond the longest: kept, not lengthened");
    assert_eq!(engine.expired(ms(20_000)).len(), 1);
}

/// What may happen in any order; numbers choose among what is possible at that moment.
#[derive(Clone, Debug)]
enum Event {
    Submit(u64),
    Send,
    SendFails(usize),
    Reply(usize),
    Return(usize, bool),
    OldReply(usize),
    Pass(u64),
    Cancel(usize),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0..5_u64).prop_map(Event::Submit),
        6 => Just(Event::Send),
        1 => (0..4_usize).prop_map(Event::SendFails),
        4 => any::<usize>().prop_map(Event::Reply),
        1 => (any::<usize>(), any::<bool>()).prop_map(|(n, timeout)| Event::Return(n, timeout)),
        2 => any::<usize>().prop_map(Event::OldReply),
        2 => (1..400_u64).prop_map(Event::Pass),
        1 => any::<usize>().prop_map(Event::Cancel),
    ]
}

/// A plain account of what the engine owes.
#[derive(Default)]
struct Ledger {
    open: HashSet<u32>,
    destination: HashMap<u32, u64>,
    ended: usize,
    submitted: u32,
    sent: VecDeque<Datagram>,
}

impl Ledger {
    fn close(&mut self, completions: impl IntoIterator<Item = Completion<u32>>) {
        for completion in completions {
            assert!(self.open.remove(&completion.token), "{} ended twice", completion.token);
            self.ended += 1;
        }
    }

    fn pick(&self, n: usize) -> Option<Datagram> {
        (!self.sent.is_empty()).then(|| self.sent[n % self.sent.len()])
    }
}

fn step(engine: &mut Transactions<u32>, ledger: &mut Ledger, now: &mut Timestamp, event: &Event) {
    match *event {
        Event::Submit(destination) => {
            let token = ledger.submitted;
            ledger.submitted += 1;
            ledger.open.insert(token);
            let tid = engine.submit(node_info_to(destination), token);
            assert_ne!(tid, 0);
            ledger.destination.insert(tid, destination);
        }
        Event::Send => {
            if let Some((datagram, timeout)) = engine.poll_send(*now) {
                assert!(timeout >= T && timeout <= Duration::from_millis(300));
                ledger.sent.push_back(datagram);
            }
        }
        Event::SendFails(kind) => {
            if let Some((datagram, _)) = engine.poll_send(*now) {
                let errno = [libc::EIO, libc::ENOMEM, libc::EINVAL, libc::EAGAIN][kind];
                ledger.close(engine.send_failed(tid(&datagram), errno, *now));
            }
        }
        Event::Reply(n) | Event::OldReply(n) => {
            if let Some(datagram) = ledger.pick(n) {
                ledger.close(engine.receive(&reply_to(&datagram), *now));
            }
        }
        Event::Return(n, timeout) => {
            if let Some(datagram) = ledger.pick(n) {
                let errno = if timeout { libc::ETIMEDOUT } else { libc::EIO };
                ledger.close(engine.receive(&returned(&datagram, errno), *now));
            }
        }
        Event::Pass(millis) => {
            *now += Duration::from_millis(millis);
            ledger.close(engine.expired(*now));
        }
        Event::Cancel(n) => {
            if let Some(datagram) = ledger.pick(n) {
                ledger.close(engine.cancel(tid(&datagram)));
            }
        }
    }
}

fn check(engine: &Transactions<u32>, ledger: &Ledger) {
    assert_eq!(engine.in_flight() + engine.queued(), ledger.open.len());
    assert!(engine.in_flight() <= config().window);
    let mut shares: HashMap<u64, usize> = HashMap::new();
    for entry in engine.slots.iter().flatten().filter(|entry| entry.deadline.is_some()) {
        *shares.entry(ledger.destination[&entry.tid]).or_default() += 1;
    }
    assert!(shares.values().all(|share| *share <= config().per_destination));
    assert_eq!(shares.values().sum::<usize>(), engine.in_flight());
    let earliest = engine.slots.iter().flatten().filter_map(|entry| entry.deadline).min();
    assert_eq!(engine.deadline(), earliest);
}

proptest! {
    /// B08: whatever happens in whatever order, each request ends exactly once, and afterwards the window is
    /// whole: as many can be sent as at the start.
    #[test]
    fn b08_each_request_ends_once_and_the_window_is_restored(
        events in prop::collection::vec(event(), 1..300),
        first_tid in prop_oneof![Just(0_u32), Just(0x7fff_fffe), Just(0xffff_fff0), any::<u32>()],
    ) {
        let mut engine = Transactions::new(config(), first_tid);
        let mut ledger = Ledger::default();
        let mut now = Timestamp::ZERO;
        for event in &events {
            step(&mut engine, &mut ledger, &mut now, event);
            check(&engine, &ledger);
        }
        // Total loss from here on: it ends all the same.
        let mut rounds = 0;
        while !engine.is_idle() {
            while engine.poll_send(now).is_some() {}
            now = engine.deadline().unwrap();
            ledger.close(engine.expired(now));
            check(&engine, &ledger);
            rounds += 1;
            prop_assert!(rounds < 10_000);
        }
        prop_assert_eq!(ledger.ended as u32, ledger.submitted);
        prop_assert!(ledger.open.is_empty());
        for n in 0..10 {
            engine.submit(node_info_to(n), ledger.submitted + n as u32);
        }
        let sendable = std::iter::from_fn(|| engine.poll_send(now)).count();
        prop_assert_eq!(sendable, config().window);
        prop_assert_eq!(engine.cancel_all().len(), 10);
    }
}
