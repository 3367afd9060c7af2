//! Two engines joined by a link that loses, delays, repeats and so reorders datagrams, in virtual time.
//!
//! Randomised tests name their seed when they fail; `SEED=n` runs that seed alone.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::transport::Datagram;
use crate::types::{ServiceLevel, Timestamp};
use crate::wire::Method;
use crate::wire::sa::SaMad;

const MS: Duration = Duration::from_millis(1);

/// What the link does to a datagram.
#[derive(Clone, Copy, Debug)]
struct Faults {
    /// Chance of loss.
    loss: f64,
    /// Chance that it comes twice.
    duplicate: f64,
    /// Longest delay; what is sent later may arrive earlier.
    delay: Duration,
}

struct Ends {
    /// The engines; A at LID 1, B at LID 2.
    engines: [Rmpp; 2],
    link: BinaryHeap<Reverse<(Timestamp, u64, usize)>>,
    flying: Vec<Option<Datagram>>,
    faults: Faults,
    rng: Pcg64Mcg,
    now: Timestamp,
    events: [Vec<Event>; 2],
    /// Datagrams handed out by each.
    sent: [u64; 2],
}

/// Where the other end is, as seen from A (0) or B (1).
fn other(end: usize) -> Address {
    Address::gsi(if end == 0 { 2 } else { 1 }, ServiceLevel(0))
}

impl Ends {
    fn new(config: RmppConfig, faults: Faults, seed: u64) -> Self {
        Self {
            engines: [Rmpp::new(config), Rmpp::new(config)],
            link: BinaryHeap::new(),
            flying: Vec::new(),
            faults,
            rng: Pcg64Mcg::seed_from_u64(seed),
            now: Timestamp::ZERO,
            events: [Vec::new(), Vec::new()],
            sent: [0, 0],
        }
    }

    /// Puts a datagram on the link, to end `to`.
    fn throw(&mut self, to: usize, mad: Mad) {
        let copies = if self.rng.random_bool(self.faults.duplicate) { 2 } else { 1 };
        for _ in 0..copies {
            if self.rng.random_bool(self.faults.loss) {
                continue;
            }
            let delay = self.faults.delay.as_nanos() as u64;
            let at = self.now + Duration::from_nanos(self.rng.random_range(0..=delay));
            self.flying.push(Some(Datagram { address: other(to), mad }));
            self.link.push(Reverse((at, self.flying.len() as u64 - 1, to)));
        }
    }

    fn pump(&mut self) {
        for end in [0, 1] {
            while let Some(datagram) = self.engines[end].poll_send(self.now) {
                assert_eq!(datagram.address.lid, other(end).lid);
                self.sent[end] += 1;
                self.throw(1 - end, datagram.mad);
            }
            while let Some(event) = self.engines[end].poll_event() {
                self.events[end].push(event);
            }
        }
    }

    /// One step of time; false when nothing is left to happen. `tap` sees and may take each datagram before it arrives.
    fn step(&mut self, tap: &mut dyn FnMut(usize, &Mad) -> bool) -> bool {
        self.pump();
        let arrival = self.link.peek().map(|Reverse((at, ..))| *at);
        let timer = self.engines.iter().filter_map(Rmpp::deadline).min();
        match (arrival, timer) {
            (None, None) => return false,
            (Some(at), timer) if timer.is_none_or(|t| at <= t) => {
                let Some(Reverse((at, index, to))) = self.link.pop() else { return false };
                self.now = self.now.max(at);
                if let Some(datagram) = self.flying[index as usize].take()
                    && tap(to, &datagram.mad)
                {
                    self.engines[to].receive(&datagram, self.now);
                }
            }
            (_, Some(at)) => {
                assert!(at >= self.now || at == Timestamp::ZERO, "a deadline in the past");
                self.now = self.now.max(at);
                for engine in &mut self.engines {
                    engine.expired(self.now);
                }
            }
            (Some(_), None) => unreachable!("arrivals without timers are taken above"),
        }
        self.pump();
        true
    }

    /// Until nothing is left to happen; both ends are then empty.
    fn run(&mut self, tap: &mut dyn FnMut(usize, &Mad) -> bool) {
        let limit = Timestamp::ZERO + Duration::from_secs(3600);
        while self.step(tap) {
            assert!(self.now < limit, "a transfer stays for ever");
        }
        for engine in &self.engines {
            assert!(engine.is_empty() && engine.bytes() == 0);
        }
    }

    fn received(&self, end: usize) -> Vec<&Message> {
        self.events[end]
            .iter()
            .filter_map(|e| match e {
                Event::Received(message) => Some(&**message),
                Event::Sent(_) | Event::Failed { .. } => None,
            })
            .collect()
    }

    fn was_sent(&self, end: usize) -> bool {
        self.events[end].iter().any(|e| matches!(e, Event::Sent(_)))
    }

    fn failure(&self, end: usize) -> Option<Failure> {
        self.events[end].iter().find_map(|e| match e {
            Event::Failed { failure, .. } => Some(*failure),
            Event::Sent(_) | Event::Received(_) => None,
        })
    }
}

fn everything(_: usize, _: &Mad) -> bool {
    true
}

const PERFECT: Faults = Faults { loss: 0.0, duplicate: 0.0, delay: Duration::from_micros(50) };

fn head(method: Method, tid: u64) -> Mad {
    let mut mad = SaMad::request(method, 0x35, 0);
    mad.attribute_offset.set(8);
    mad.header.transaction_id.set(tid);
    mad.into_mad()
}

fn bytes(rng: &mut Pcg64Mcg, len: usize) -> Vec<u8> {
    let mut data = vec![0; len];
    rng.fill_bytes(&mut data);
    data
}

/// The seeds to run: all of 0..count, or the one of the environment.
fn seeds(count: u64) -> Vec<u64> {
    match std::env::var("SEED").ok().and_then(|s| s.parse().ok()) {
        Some(seed) => vec![seed],
        None => (0..count).collect(),
    }
}

fn random_faults(rng: &mut Pcg64Mcg, most_loss: f64) -> Faults {
    Faults {
        loss: rng.random_range(0.0..most_loss),
        duplicate: rng.random_range(0.0..0.3),
        delay: Duration::from_micros(rng.random_range(1..200_000)),
    }
}

/// A one-sided transfer (the answer to GetTable) ends with the same bytes, or with a failure at the sender.
#[test]
fn a_bad_link_gives_the_same_bytes_or_a_failure_and_never_hangs() {
    let (mut whole, mut failed) = (0, 0);
    for seed in seeds(400) {
        let mut rng = Pcg64Mcg::seed_from_u64(seed ^ 0xb5);
        let faults = random_faults(&mut rng, if seed % 4 == 0 { 0.7 } else { 0.2 });
        let config = RmppConfig { window: rng.random_range(1..40), ..RmppConfig::default() };
        let len = rng.random_range(0..20_000);
        let data = bytes(&mut rng, len);
        let mut ends = Ends::new(config, faults, seed);
        let tid = rng.random::<u64>();
        ends.engines[0].expect(&other(0), &head(Method::GET_TABLE, tid), Timestamp::MAX).unwrap();
        ends.engines[1]
            .send(other(1), &head(Method::GET_TABLE_RESP, tid), data.clone(), Timestamp::ZERO)
            .unwrap();
        let mut over = false;
        while ends.step(&mut everything) {
            assert!(ends.now < Timestamp::ZERO + Duration::from_secs(3600), "seed {seed}: hangs");
            if !over && (ends.was_sent(1) || ends.failure(1).is_some()) && ends.link.is_empty() {
                over = true;
                // The caller's interest ends, as after its own timeout.
                ends.engines[0].cancel(&TransferKey::of_sent(&other(0), &head(Method::GET_TABLE, tid)));
            }
            if over && ends.engines.iter().all(Rmpp::is_empty) {
                break;
            }
        }
        let received = ends.received(0);
        assert!(received.len() <= 1, "seed {seed}: delivered {} times", received.len());
        for message in &received {
            assert_eq!(message.data, data, "seed {seed}");
            assert_eq!(message.head.header.method(), Method::GET_TABLE_RESP);
        }
        if ends.was_sent(1) {
            assert_eq!(received.len(), 1, "seed {seed}: acknowledged but not delivered");
            assert_eq!(ends.failure(1), None, "seed {seed}");
            whole += 1;
        } else {
            let gave_up = [RmppStatus::TOO_MANY_RETRIES, RmppStatus::TIME_TOO_LONG].map(Failure::ByUs);
            let failure = ends.failure(1).unwrap_or_else(|| panic!("seed {seed}: no end"));
            // The receiver may have given up first, and said so.
            let told = Failure::ByPeer(RmppStatus::TIME_TOO_LONG);
            assert!(gave_up.contains(&failure) || failure == told, "seed {seed}: {failure}");
            failed += 1;
        }
        assert!(faults.loss > 0.2 || ends.was_sent(1), "seed {seed}: failed at a loss of {}", faults.loss);
        for engine in &ends.engines {
            assert_eq!((engine.len(), engine.bytes()), (0, 0), "seed {seed}");
        }
    }
    assert!(whole > failed || std::env::var("SEED").is_ok());
}

/// On a link with the round trips of a fabric a lost datagram costs some of these, not the wait after which a peer counts as silent
/// (saquery gives up after a second): tables of 100 segments at 2 % of loss either way.
#[test]
fn a_loss_costs_round_trips_and_not_the_long_wait() {
    let faults = Faults { loss: 0.02, duplicate: 0.0, delay: Duration::from_micros(200) };
    let mut times = Vec::new();
    for seed in seeds(100) {
        let mut ends = Ends::new(RmppConfig::default(), faults, seed);
        ends.engines[0].expect(&other(0), &head(Method::GET_TABLE, 5), Timestamp::MAX).unwrap();
        ends.engines[1]
            .send(other(1), &head(Method::GET_TABLE_RESP, 5), vec![7; 20_000], Timestamp::ZERO)
            .unwrap();
        while !ends.was_sent(1) {
            assert!(ends.step(&mut everything), "seed {seed}: no end");
        }
        times.push(ends.now - Timestamp::ZERO);
    }
    times.sort_unstable();
    let (median, most) = (times[times.len() / 2], times[times.len() - 1]);
    assert!(median < 100 * MS && most < 500 * MS, "median {median:?}, most {most:?}");
}

/// B51: a request in segments and its answer in segments, over a bad link, both ways.
#[test]
fn b51_two_sided_transfers_over_a_bad_link() {
    for seed in seeds(200) {
        let mut rng = Pcg64Mcg::seed_from_u64(seed ^ 0xb51);
        let faults = random_faults(&mut rng, 0.2);
        let config = RmppConfig { window: rng.random_range(1..40), ..RmppConfig::default() };
        let request = {
            let len = rng.random_range(0..6_000);
            bytes(&mut rng, len)
        };
        let reply = {
            let len = rng.random_range(0..20_000);
            bytes(&mut rng, len)
        };
        let mut ends = Ends::new(config, faults, seed);
        ends.engines[0]
            .send(other(0), &head(Method::GET_MULTI, 7), request.clone(), Timestamp::ZERO)
            .unwrap();
        let mut replied = false;
        while ends.step(&mut everything) {
            if !replied && !ends.received(1).is_empty() {
                replied = true;
                let now = ends.now;
                ends.engines[1].send(other(1), &head(Method::GET_MULTI_RESP, 7), reply.clone(), now).unwrap();
            }
        }
        assert_eq!(ends.received(1).len(), 1, "seed {seed}");
        assert_eq!(ends.received(1)[0].data, request, "seed {seed}");
        assert_eq!(ends.received(0).len(), 1, "seed {seed}");
        assert_eq!(ends.received(0)[0].data, reply, "seed {seed}");
        assert!(ends.was_sent(0) && ends.was_sent(1), "seed {seed}");
        assert!(ends.engines.iter().all(Rmpp::is_empty), "seed {seed}");
    }
}

mod cases;
