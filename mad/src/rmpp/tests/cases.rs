//! Single cases: what each wrong datagram leads to, bounds, and peers that behave otherwise than we do.

use proptest::prelude::*;
use zerocopy::{FromBytes, IntoBytes};

use super::*;
use crate::wire::rmpp::{RmppHeader, RmppType};

fn header(mad: &Mad) -> RmppHeader {
    RmppHeader::read_from_prefix(&mad.body).unwrap().0
}

fn with_header(mut mad: Mad, header: &RmppHeader) -> Mad {
    mad.body[..12].copy_from_slice(header.as_bytes());
    mad
}

/// A datagram of a peer, by hand.
fn made(method: Method, kind: u8, flags: u8, data1: u32, data2: u32) -> Mad {
    let mut header = RmppHeader::new(RmppType::Data, flags, RmppStatus::OK, data1, data2);
    header.rmpp_type = kind;
    with_header(head(method, 9), &header)
}

const FIRST: u8 = RmppHeader::FLAG_FIRST;
const LAST: u8 = RmppHeader::FLAG_LAST;

/// What an engine says next: type, status, segment number, NewWindowLast.
fn said(engine: &mut Rmpp, now: Timestamp) -> Option<(RmppType, u8, u32, u32)> {
    let header = header(&engine.poll_send(now)?.mad);
    Some((header.rmpp_type()?, header.status, header.data1.get(), header.data2.get()))
}

fn give(engine: &mut Rmpp, mad: Mad, now: Timestamp) -> bool {
    engine.receive(&Datagram { address: other(1), mad }, now)
}

fn end_of(engine: &mut Rmpp) -> Option<Failure> {
    match engine.poll_event() {
        Some(Event::Failed { failure, .. }) => Some(failure),
        _ => None,
    }
}

/// Without losses, every segment goes out once, and there is one acknowledgement for the first segment, the middle of each
/// window and the end.
#[test]
fn a_perfect_link_carries_each_segment_once() {
    for len in [0, 1, 200, 201, 2_000, 20_000] {
        let mut ends = Ends::new(RmppConfig { window: 10, ..RmppConfig::default() }, PERFECT, 1);
        ends.faults.delay = Duration::ZERO;
        ends.engines[1].send(other(1), &head(Method::GET_TABLE, 7), vec![5; len], Timestamp::ZERO).unwrap();
        ends.run(&mut everything);
        let segments = len.div_ceil(200).max(1) as u64;
        // The request's sender also turns the direction, with one datagram.
        assert_eq!(ends.sent[1], segments + 1, "{len}");
        assert_eq!(ends.sent[0], 1 + (segments - 1).div_ceil(5), "{len}");
        assert_eq!(ends.received(0)[0].data, vec![5; len]);
    }
}

/// B50: a table of 300 service records for a client whose window is one segment, with every second acknowledgement lost.
#[test]
fn b50_a_window_of_one_and_lost_acknowledgements() {
    let mut ends = Ends::new(RmppConfig { window: 1, ..RmppConfig::default() }, PERFECT, 2);
    let table: Vec<u8> = (0..300 * 176).map(|i| (i / 176) as u8).collect();
    ends.engines[0].expect(&other(0), &head(Method::GET_TABLE, 7), Timestamp::MAX).unwrap();
    ends.engines[1].send(other(1), &head(Method::GET_TABLE_RESP, 7), table.clone(), Timestamp::ZERO).unwrap();
    let (mut acks, mut acknowledged, mut furthest) = (0, 0, 0);
    ends.run(&mut |to, mad| {
        let number = header(mad).segment_number();
        if to == 0 {
            furthest = furthest.max(number - acknowledged);
            return true;
        }
        acks += 1;
        if acks % 2 == 0 {
            acknowledged = acknowledged.max(number);
        }
        acks % 2 == 0
    });
    assert!(ends.was_sent(1));
    assert_eq!(ends.received(0)[0].data, table);
    assert_eq!(furthest, 1, "one segment beyond what is acknowledged");
}

/// B51: the answer to a request in segments waits for the direction to be turned; without that it starts with one segment.
#[test]
fn b51_peers_that_do_not_turn_the_direction_get_a_window_of_one() {
    for turned in [true, false] {
        let config = RmppConfig { window: 16, ..RmppConfig::default() };
        let mut b = Rmpp::new(config);
        let mut now = Timestamp::ZERO;
        assert!(give(&mut b, made(Method::GET_MULTI, 1, FIRST | LAST, 1, 220), now));
        assert_eq!(said(&mut b, now), Some((RmppType::Ack, 0, 1, 1)));
        assert!(matches!(b.poll_event(), Some(Event::Received(m)) if m.data.len() == 200));
        if turned {
            give(&mut b, made(Method::GET_MULTI, 2, 0, 0, 3), now);
        }
        b.send(other(1), &head(Method::GET_MULTI_RESP, 9), vec![1; 1000], now).unwrap();
        if !turned {
            assert_eq!(said(&mut b, now), None, "waits");
            now = b.deadline().unwrap();
            assert_eq!(now, Timestamp::ZERO + config.turn_timeout);
            b.expired(now);
            assert_eq!(
                said(&mut b, now),
                Some((RmppType::Ack, 0, 1, 1)),
                "the acknowledgement may have been lost"
            );
        }
        let window = if turned { 3 } else { 1 };
        let segments: Vec<_> = std::iter::from_fn(|| said(&mut b, now)).map(|(.., n, _)| n).collect();
        assert_eq!(segments, (1..=window).collect::<Vec<_>>());
        give(&mut b, made(Method::GET_MULTI, 2, 0, window, 5), now);
        assert_eq!(std::iter::from_fn(|| said(&mut b, now)).count(), 5 - window as usize);
        give(&mut b, made(Method::GET_MULTI, 2, 0, 5, 5), now);
        assert!(matches!(b.poll_event(), Some(Event::Sent(_))));
        assert!(b.is_empty());
    }
}

/// B51: STOP and ABORT at each segment, from either end, leave nothing behind at either.
#[test]
fn b51_stop_and_abort_at_each_segment_end_both_sides() {
    for (kind, status) in
        [(RmppType::Stop, 1), (RmppType::Abort, 118), (RmppType::Abort, 127), (RmppType::Abort, 5)]
    {
        for from in [0, 1] {
            for at in 1..=12 {
                let config = RmppConfig { window: 3, retries: 2, ..RmppConfig::default() };
                let mut ends = Ends::new(config, PERFECT, at);
                let sent = head(Method::GET_TABLE_RESP, 9);
                ends.engines[0].expect(&other(0), &head(Method::GET_TABLE, 9), Timestamp::MAX).unwrap();
                ends.engines[1].send(other(1), &sent, vec![1; 12 * 200], Timestamp::ZERO).unwrap();
                let mut seen = 0;
                while seen < at {
                    ends.step(&mut |to, _| {
                        seen += u64::from(to == 0);
                        true
                    });
                }
                // The end comes from one side's engine and is thrown to the other: forget it here, and tell.
                let method = if from == 1 { Method::GET_TABLE_RESP } else { Method::GET_TABLE };
                let mut end = RmppHeader::new(kind, 0, RmppStatus(status), 0, 0);
                end.set_flags(RmppHeader::FLAG_ACTIVE);
                let mad = with_header(head(method, 9), &end);
                let to = 1 - from;
                let now = ends.now;
                assert!(ends.engines[to].receive(&Datagram { address: other(to), mad }, now));
                let key = TransferKey::of_sent(&other(from), &mad);
                ends.engines[from].cancel(&key);
                let done = !ends.received(0).is_empty();
                ends.run(&mut everything);
                let failure = ends.failure(to);
                let place = format!("{kind:?} {status} from {from} at {at}");
                if done || ends.was_sent(1) {
                    assert!(failure.is_none() || to == 1, "{place}");
                } else {
                    assert_eq!(failure, Some(Failure::ByPeer(RmppStatus(status))), "{place}");
                }
            }
        }
    }
}

/// Each datagram that breaks the protocol ends a receiving transfer with its own status (13.6.2.3), and the peer is told.
#[test]
fn b51_each_wrong_segment_has_its_status() {
    // A second segment that follows a good first one: (type, flags, segment, length, status of the row).
    let mut bad_version = made(Method::GET_MULTI, 1, 0, 2, 0);
    bad_version.body[0] = 2;
    let mut bad_status = made(Method::GET_MULTI, 1, 0, 2, 0);
    bad_status.body[3] = 1;
    let rows = [
        (made(Method::GET_MULTI, 1, LAST, 2, 0), RmppStatus::INCONSISTENT_LAST_AND_LENGTH),
        (made(Method::GET_MULTI, 1, LAST, 2, 19), RmppStatus::INCONSISTENT_LAST_AND_LENGTH),
        (made(Method::GET_MULTI, 1, LAST, 2, 221), RmppStatus::INCONSISTENT_LAST_AND_LENGTH),
        (made(Method::GET_MULTI, 1, LAST, 2, 255), RmppStatus::INCONSISTENT_LAST_AND_LENGTH),
        (made(Method::GET_MULTI, 1, FIRST, 2, 0), RmppStatus::INCONSISTENT_FIRST_AND_SEGMENT),
        (made(Method::GET_MULTI, 1, 0, 0, 0), RmppStatus::INCONSISTENT_FIRST_AND_SEGMENT),
        (made(Method::GET_MULTI, 1, 0, 10, 0), RmppStatus::SEGMENT_TOO_BIG),
        (made(Method::GET_MULTI, 1, 0, u32::MAX, 0), RmppStatus::SEGMENT_TOO_BIG),
        (made(Method::GET_MULTI, 7, 0, 2, 0), RmppStatus::BAD_TYPE),
        (bad_version, RmppStatus::UNSUPPORTED_VERSION),
        (bad_status, RmppStatus::ILLEGAL_STATUS),
    ];
    let now = Timestamp::ZERO;
    for (n, (mad, status)) in rows.into_iter().enumerate() {
        let mut b = Rmpp::new(RmppConfig { window: 4, ..RmppConfig::default() });
        give(&mut b, made(Method::GET_MULTI, 1, FIRST, 1, 0), now);
        assert_eq!(said(&mut b, now), Some((RmppType::Ack, 0, 1, 5)));
        give(&mut b, mad, now);
        assert_eq!(said(&mut b, now), Some((RmppType::Abort, status.0, 0, 0)), "row {n}");
        assert_eq!(end_of(&mut b), Some(Failure::ByUs(status)), "row {n}");
        assert!(b.is_empty() && b.bytes() == 0);
    }
    // The two lengths at the border are right.
    for (length, bytes) in [(20, 200), (220, 400)] {
        let mut b = Rmpp::new(RmppConfig::default());
        give(&mut b, made(Method::GET_MULTI, 1, FIRST, 1, 0), now);
        give(&mut b, made(Method::GET_MULTI, 1, LAST, 2, length), now);
        assert!(matches!(b.poll_event(), Some(Event::Received(m)) if m.data.len() == bytes), "{length}");
    }
}

/// Each acknowledgement that breaks the protocol ends a sending transfer with its own status.
#[test]
fn each_wrong_acknowledgement_has_its_status() {
    let mut bad_status = made(Method::GET_TABLE, 2, 0, 1, 4);
    bad_status.body[3] = 1;
    let rows = [
        (made(Method::GET_TABLE, 2, 0, 1, 0), RmppStatus::WINDOW_TOO_SMALL),
        (made(Method::GET_TABLE, 2, 0, 2, 4), RmppStatus::SEGMENT_TOO_BIG),
        (made(Method::GET_TABLE, 2, 0, 6, 9), RmppStatus::SEGMENT_TOO_BIG),
        (bad_status, RmppStatus::ILLEGAL_STATUS),
    ];
    let now = Timestamp::ZERO;
    for (n, (mad, status)) in rows.into_iter().enumerate() {
        let mut b = Rmpp::new(RmppConfig::default());
        b.send(other(1), &head(Method::GET_TABLE_RESP, 9), vec![1; 1000], now).unwrap();
        assert_eq!(said(&mut b, now), Some((RmppType::Data, 0, 1, 1100)));
        give(&mut b, mad, now);
        assert_eq!(said(&mut b, now), Some((RmppType::Abort, status.0, 0, 0)), "row {n}");
        assert_eq!(end_of(&mut b), Some(Failure::ByUs(status)), "row {n}");
        assert!(b.is_empty() && b.bytes() == 0);
    }
}

/// A peer that acknowledges every segment, and one that repeats each acknowledgement, cost no repeated segments beyond one
/// window for each.
#[test]
fn acknowledgements_of_every_segment_and_repeated_ones_do_not_multiply_segments() {
    for copies in [1, 3] {
        let now = Timestamp::ZERO;
        let mut b = Rmpp::new(RmppConfig::default());
        b.send(other(1), &head(Method::GET_TABLE_RESP, 9), vec![1; 100 * 200], now).unwrap();
        let mut segments = 0;
        let mut next = 1;
        while let Some((kind, _, segment, _)) = said(&mut b, now) {
            assert_eq!(kind, RmppType::Data);
            segments += 1;
            if segment == next {
                next += 1;
                for _ in 0..copies {
                    give(&mut b, made(Method::GET_TABLE, 2, 0, segment, (segment + 4).min(100)), now);
                }
            }
        }
        assert!(matches!(b.poll_event(), Some(Event::Sent(_))), "{copies}");
        assert!(segments <= 100 * if copies == 1 { 1 } else { 5 }, "{segments} segments");
    }
}

/// B51: answers that nobody expects, acknowledgements and middles of unknown transfers leave no state and get no answer.
#[test]
fn b51_datagrams_of_unknown_transfers_leave_nothing() {
    let now = Timestamp::ZERO;
    let mut b = Rmpp::new(RmppConfig::default());
    for mad in [
        made(Method::GET_TABLE_RESP, 1, FIRST, 1, 0),
        made(Method::GET_TABLE_RESP, 1, 0, 2, 0),
        made(Method::GET_MULTI, 1, 0, 2, 0),
        made(Method::GET_TABLE, 2, 0, 1, 4),
        made(Method::GET_TABLE, 3, 0, 0, 0),
        made(Method::GET_TABLE_RESP, 4, 0, 0, 0),
    ] {
        assert!(give(&mut b, mad, now));
        assert_eq!(said(&mut b, now), None);
        assert!(b.poll_event().is_none() && b.is_empty() && b.deadline().is_none());
    }
    // What is no RMPP at all is left to others.
    assert!(!give(&mut b, head(Method::GET_TABLE_RESP, 9), now));
    let mut smp = made(Method::GET, 1, FIRST, 1, 0);
    smp.header.mgmt_class = MgmtClass::SUBN_LID.0;
    assert!(!give(&mut b, smp, now));
    assert_eq!(b.send(other(1), &smp, Vec::new(), now), Err(SendError::Class(1)));
}

#[test]
fn bounds_hold_and_the_peer_is_told() {
    let now = Timestamp::ZERO;
    let stop = (RmppType::Stop, 1, 0, 0);
    let config = RmppConfig { max_transfers: 2, max_message: 1000, max_bytes: 3000, ..RmppConfig::default() };
    let transfer = |tid: u64, mut mad: Mad| {
        mad.header.transaction_id.set(tid);
        mad
    };
    // Messages: announced too long, or grown too long.
    let mut b = Rmpp::new(config);
    give(&mut b, made(Method::GET_MULTI, 1, FIRST, 1, 6 * 220), now);
    assert_eq!(said(&mut b, now), Some(stop));
    assert_eq!(end_of(&mut b), Some(Failure::ByUs(RmppStatus::RESOURCES_EXHAUSTED)));
    for n in 1..=6 {
        give(&mut b, made(Method::GET_MULTI, 1, if n == 1 { FIRST } else { 0 }, n, 0), now);
    }
    assert_eq!(std::iter::from_fn(|| said(&mut b, now)).last(), Some(stop));
    assert_eq!(end_of(&mut b), Some(Failure::ByUs(RmppStatus::RESOURCES_EXHAUSTED)));
    assert!(b.is_empty() && b.bytes() == 0);

    // Transfers: two under way, none more; one that is over makes room.
    for tid in [1, 2] {
        give(&mut b, transfer(tid, made(Method::GET_MULTI, 1, FIRST, 1, 0)), now);
        assert!(said(&mut b, now).is_some_and(|(kind, ..)| kind == RmppType::Ack));
    }
    give(&mut b, transfer(3, made(Method::GET_MULTI, 1, FIRST, 1, 0)), now);
    assert_eq!(said(&mut b, now), Some(stop));
    assert!(b.poll_event().is_some());
    assert_eq!(b.send(other(1), &head(Method::GET_TABLE_RESP, 9), vec![0; 10], now), Err(SendError::Full));
    give(&mut b, transfer(1, made(Method::GET_MULTI, 1, LAST, 2, 30)), now);
    assert!(matches!(b.poll_event(), Some(Event::Received(m)) if m.data.len() == 210));
    give(&mut b, transfer(3, made(Method::GET_MULTI, 1, FIRST, 1, 0)), now);
    assert_eq!(b.len(), 2);

    // Bytes in all.
    let mut b = Rmpp::new(config);
    let key = b.send(other(1), &head(Method::GET_TABLE_RESP, 9), vec![0; 2000], now).unwrap();
    assert_eq!(
        b.send(other(1), &head(Method::GET_TABLE_RESP, 9), vec![0; 2000], now),
        Err(SendError::UnderWay)
    );
    assert_eq!(b.send(other(1), &head(Method::GET_TABLE_RESP, 8), vec![0; 1001], now), Err(SendError::Full));
    assert_eq!(b.bytes(), 2000);
    b.cancel(&key);
    assert_eq!((b.bytes(), b.len()), (0, 0));
    assert_eq!(said(&mut b, now), Some((RmppType::Abort, RmppStatus::UNSPECIFIED.0, 0, 0)));
}

/// B51: requests that are begun and never ended take a part of the room, and those of others have theirs.
#[test]
fn b51_one_peer_opens_no_more_than_its_part() {
    let now = Timestamp::ZERO;
    let config = RmppConfig { max_transfers: 8, max_requests_of_lid: 3, ..RmppConfig::default() };
    let mut b = Rmpp::new(config);
    let open = |b: &mut Rmpp, lid: u16, tid: u64, flags: u8, segment: u32, length: u32| {
        let mut mad = made(Method::GET_MULTI, 1, flags, segment, length);
        mad.header.transaction_id.set(tid);
        b.receive(&Datagram { address: Address { lid, ..other(1) }, mad }, now);
        said(b, now).map(|(kind, ..)| kind)
    };
    for round in 0..3 {
        let begun: Vec<_> = (0..5).map(|tid| open(&mut b, 7, round * 10 + tid, FIRST, 1, 0)).collect();
        let (ack, stop) = (Some(RmppType::Ack), Some(RmppType::Stop));
        assert_eq!(begun, [ack, ack, ack, stop, stop], "round {round}");
        assert_eq!(open(&mut b, 8, round * 10, FIRST, 1, 0), ack, "another's");
        // Those that end make room.
        for tid in 0..3 {
            assert_eq!(open(&mut b, 7, round * 10 + tid, LAST, 2, 30), ack);
        }
        assert_eq!(open(&mut b, 8, round * 10, LAST, 2, 30), ack);
    }
}

/// Two long messages take turns, so that a short one is not kept waiting by a long one.
#[test]
fn senders_take_turns() {
    let now = Timestamp::ZERO;
    let mut b = Rmpp::new(RmppConfig::default());
    for tid in [9, 10] {
        b.send(other(1), &head(Method::GET_TABLE_RESP, tid), vec![1; 2000], now).unwrap();
        b.poll_send(now).unwrap();
    }
    for tid in [9, 10] {
        let mut ack = made(Method::GET_TABLE, 2, 0, 1, 10);
        ack.header.transaction_id.set(tid);
        give(&mut b, ack, now);
    }
    let order: Vec<_> =
        std::iter::from_fn(|| b.poll_send(now)).map(|d| d.mad.header.transaction_id.get()).collect();
    assert_eq!(order.len(), 18);
    assert!(order.chunks(2).all(|pair| pair == [9, 10]), "{order:?}");
}

/// A silent peer costs the configured repetitions and no more, then gets an ABORT.
#[test]
fn a_silent_peer_is_given_up() {
    let config = RmppConfig {
        retries: 3,
        response_timeout: MS,
        max_response_timeout: 4 * MS,
        ..RmppConfig::default()
    };
    let mut b = Rmpp::new(config);
    b.send(other(1), &head(Method::GET_TABLE_RESP, 9), vec![1; 2000], Timestamp::ZERO).unwrap();
    let mut sent = Vec::new();
    loop {
        let now = b.deadline().unwrap_or(Timestamp::MAX);
        sent.extend(std::iter::from_fn(|| said(&mut b, now)).map(|(kind, status, ..)| (kind, status)));
        if b.is_empty() {
            break;
        }
        b.expired(now);
    }
    let data = (RmppType::Data, 0);
    assert_eq!(sent, [data, data, data, data, (RmppType::Abort, RmppStatus::TOO_MANY_RETRIES.0)]);
    assert_eq!(end_of(&mut b), Some(Failure::ByUs(RmppStatus::TOO_MANY_RETRIES)));

    // A peer that begins a request and falls silent.
    give(&mut b, made(Method::GET_MULTI, 1, FIRST, 1, 0), Timestamp::ZERO);
    while let Some(now) = b.deadline() {
        b.expired(now);
    }
    assert_eq!(end_of(&mut b), Some(Failure::ByUs(RmppStatus::TIME_TOO_LONG)));
    assert!(b.is_empty());
}

/// Probes double their waits: who is silent gets few of them, and a stranger who may know no RMPP none.
#[test]
fn a_silent_peer_is_probed_a_few_times() {
    for (retries_to_strangers, least, most) in [(6, 9, 20), (2, 4, 10), (0, 1, 1)] {
        let mut engine = Rmpp::new(RmppConfig { retries_to_strangers, ..RmppConfig::default() });
        engine.send(other(1), &head(Method::GET_TABLE_RESP, 9), vec![1; 2000], Timestamp::ZERO).unwrap();
        let mut sent = 0;
        let mut now = Timestamp::ZERO;
        while !engine.is_empty() {
            while let Some(datagram) = engine.poll_send(now) {
                let header = header(&datagram.mad);
                if header.rmpp_type() == Some(RmppType::Data) {
                    assert_eq!(header.segment_number(), 1);
                    sent += 1;
                }
            }
            now = engine.deadline().unwrap();
            engine.expired(now);
        }
        assert!((least..=most).contains(&sent), "{retries_to_strangers}: {sent}");
        let silent = engine.poll_send(now).is_none();
        assert_eq!(silent, retries_to_strangers < 6, "a stranger's transfer ends without a word");
    }
}

#[derive(Debug, Clone)]
enum Input {
    Datagram(bool, u8, u8, u8, u32, u32),
    Raw(Vec<u8>),
    Send(bool, usize),
    Time(u64),
}

fn inputs() -> impl Strategy<Value = Vec<Input>> {
    let number = prop_oneof![4 => 0_u32..6, 1 => any::<u32>()];
    let length =
        prop_oneof![4 => prop::sample::select(vec![0_u32, 19, 20, 100, 220, 221]), 1 => any::<u32>()];
    let kind = prop_oneof![9 => 1_u8..5, 1 => any::<u8>()];
    let datagram =
        (any::<bool>(), kind, any::<u8>(), prop_oneof![4 => Just(0_u8), 1 => any::<u8>()], number, length)
            .prop_map(|(r, kind, flags, status, n, l)| Input::Datagram(r, kind, flags, status, n, l));
    prop::collection::vec(
        prop_oneof![
            12 => datagram,
            1 => prop::collection::vec(any::<u8>(), 256).prop_map(Input::Raw),
            1 => (any::<bool>(), 0_usize..1500).prop_map(|(r, len)| Input::Send(r, len)),
            2 => (0_u64..2000).prop_map(Input::Time),
        ],
        0..80,
    )
}

/// Feeds an engine with anything: it doesn't panic, keeps its bounds, and all that it began ends with time.
fn fuzz_rmpp(inputs: Vec<Input>) {
    let config = RmppConfig {
        max_transfers: 3,
        max_message: 2000,
        max_bytes: 4000,
        window: 3,
        ..RmppConfig::default()
    };
    let mut engine = Rmpp::new(config);
    let mut now = Timestamp::ZERO;
    for input in inputs {
        match input {
            Input::Datagram(response, kind, flags, status, n, length) => {
                let method = if response { Method::GET_MULTI_RESP } else { Method::GET_MULTI };
                let mut mad = made(method, kind, 0, n, length);
                mad.body[2] = flags;
                mad.body[3] = status;
                give(&mut engine, mad, now);
            }
            Input::Raw(bytes) => {
                let mut mad = Mad::decode(&bytes).unwrap();
                mad.header.mgmt_class = MgmtClass::SUBN_ADM.0;
                give(&mut engine, mad, now);
            }
            Input::Send(response, len) => {
                let method = if response { Method::GET_MULTI_RESP } else { Method::GET_MULTI };
                let _ = engine.send(other(1), &head(method, 9), vec![0; len], now);
            }
            Input::Time(ms) => {
                now += MS * ms as u32;
                engine.expired(now);
            }
        }
        while engine.poll_send(now).is_some() {}
        while engine.poll_event().is_some() {}
        assert!(engine.len() <= 3 && engine.bytes() <= 4000 + 4 * 256);
    }
    let mut steps = 0;
    while let Some(at) = engine.deadline() {
        engine.expired(at.max(now));
        while engine.poll_send(at).is_some() {}
        steps += 1;
        assert!(steps < 1000, "no end");
    }
    assert!(engine.is_empty() && engine.bytes() == 0);
}

proptest! {
    #[test]
    fn anything_may_come_and_everything_ends(inputs in inputs()) {
        fuzz_rmpp(inputs);
    }
}

/// Clients on a transport without RMPP never acknowledge. They get one segment, and again when they ask again; nothing
/// else reaches them, no repetition and no ABORT. One acknowledgement, and a peer is served in full.
#[test]
fn strangers_get_the_first_segment_once() {
    let config = RmppConfig { retries_to_strangers: 0, ..RmppConfig::default() };
    let mut engine = Rmpp::new(config);
    let mut now = Timestamp::ZERO;
    let ask = |engine: &mut Rmpp, tid, now| {
        engine.send(other(1), &head(Method::GET_TABLE_RESP, tid), vec![1; 500], now).map(|_| ())
    };
    assert_eq!(ask(&mut engine, 9, now), Ok(()));
    assert!(engine.poll_send(now).is_some());
    assert_eq!(ask(&mut engine, 9, now), Err(SendError::UnderWay));
    assert!(engine.poll_send(now).is_some(), "asked again, sent again");
    now += config.response_timeout;
    engine.expired(now);
    assert_eq!((engine.poll_send(now), engine.deadline(), engine.bytes()), (None, None, 0));
    assert_eq!(end_of(&mut engine), Some(Failure::ByUs(RmppStatus::TIME_TOO_LONG)));

    assert_eq!(ask(&mut engine, 9, now), Ok(()));
    assert!(engine.poll_send(now).is_some());
    give(&mut engine, made(Method::GET_TABLE, 2, 0, 1, 3), now);
    assert_eq!(ask(&mut engine, 10, now), Ok(()));
    let mut sent = 0;
    while let Some(deadline) = engine.deadline() {
        sent += std::iter::from_fn(|| engine.poll_send(now)).count();
        now = deadline;
        engine.expired(now);
    }
    assert!(sent as u32 > 2 * config.retries, "an acquaintance is told again and again: {sent}");
}

/// A peer that begins anew uses its transaction IDs again: another answer takes the place of the one under way.
#[test]
fn a_transaction_id_used_again_for_something_else_gets_the_new_answer() {
    let mut engine = Rmpp::new(RmppConfig::default());
    let now = Timestamp::ZERO;
    let answer = |engine: &mut Rmpp, fill| {
        engine.send(other(1), &head(Method::GET_TABLE_RESP, 9), vec![fill; 50], now)
    };
    assert!(answer(&mut engine, 1).is_ok());
    assert!(engine.poll_send(now).is_some());
    assert!(answer(&mut engine, 2).is_ok());
    let sent = SaMad::from_mad(engine.poll_send(now).unwrap().mad);
    assert_eq!((sent.data[0], engine.len(), engine.bytes()), (2, 1, 50));
}
