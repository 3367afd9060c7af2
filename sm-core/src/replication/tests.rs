//! A master and a standby joined by a wire that loses, repeats, delays and keeps datagrams, in virtual time.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::store::{Key, Kind};

const MASTER: u16 = 1;
const STANDBY: u16 = 2;

fn secret(text: &str) -> Secret {
    Secret::new(format!("{text} is a shared secret").as_bytes()).unwrap()
}

fn change(id: u32, value: Option<&[u8]>) -> Change {
    Change { key: Key::new(Kind::Service, id.to_be_bytes().to_vec()), value: value.map(<[u8]>::to_vec) }
}

/// Two managers and what is between them.
struct Wire {
    master: Replication,
    standby: Replication,
    /// What the master serves, and the copy.
    entries: Entries,
    copy: Entries,
    now: Timestamp,
    random: Pcg64Mcg,
    loss: f64,
    /// When, to whom, what.
    flying: Vec<(Timestamp, u16, Datagram)>,
    /// Everything that was ever sent to the master.
    requests: Vec<Datagram>,
    sent: u64,
    /// What waits to be acknowledged: versions and changes; and what was, with the time.
    made: Vec<(u64, Vec<Change>)>,
    acknowledged: Vec<(Timestamp, Change)>,
}

impl Wire {
    fn new(seed: u64, loss: f64) -> Self {
        let mut wire = Self {
            master: Replication::new(secret("ours"), Guid(0xa), 1000),
            standby: Replication::new(secret("ours"), Guid(0xb), 2000),
            entries: Entries::new(),
            copy: Entries::new(),
            now: Timestamp::ZERO,
            random: Pcg64Mcg::seed_from_u64(seed),
            loss,
            flying: Vec::new(),
            requests: Vec::new(),
            sent: 0,
            made: Vec::new(),
            acknowledged: Vec::new(),
        };
        wire.master.become_master(&wire.entries, wire.now);
        wire.standby.become_standby(Lid::new(MASTER).unwrap(), wire.now);
        wire
    }

    fn change(&mut self, changes: Vec<Change>) {
        let version = self.master.change(&changes, self.now);
        self.made.push((version, changes.clone()));
        changes.into_iter().for_each(|change| change.apply_to(&mut self.entries));
    }

    fn launch(&mut self, from: u16, datagram: Datagram) {
        self.sent += 1;
        let to = datagram.address.lid;
        let arrived = Datagram { address: Address { lid: from, ..datagram.address }, mad: datagram.mad };
        if to == MASTER && mirror::is_request(&datagram.mad) {
            self.requests.push(arrived);
        }
        let copies = if self.random.random_bool(self.loss) {
            0
        } else {
            1 + u8::from(self.random.random_bool(self.loss))
        };
        for _ in 0..copies {
            // A fabric that loses nothing keeps the order.
            let most = if self.loss > 0.0 { 2000 } else { 6 };
            let delay = Duration::from_micros(self.random.random_range(5..most));
            self.flying.push((self.now + delay, to, arrived));
        }
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            while let Some(datagram) = self.master.poll_send(self.now) {
                self.launch(MASTER, datagram);
            }
            while let Some(datagram) = self.standby.poll_send(self.now) {
                self.launch(STANDBY, datagram);
            }
            for learnt in self.standby.take_learnt() {
                match learnt {
                    Learnt::Changes(changes) => {
                        changes.into_iter().for_each(|change| change.apply_to(&mut self.copy));
                    }
                    Learnt::Complete(entries) => self.copy = entries,
                }
            }
            let confirmed = self.master.confirmed();
            for (_, changes) in self.made.extract_if(.., |(version, _)| *version <= confirmed) {
                self.acknowledged.extend(changes.into_iter().map(|change| (self.now, change)));
            }
            let next = self.flying.iter().map(|(at, ..)| *at).min();
            let deadlines = [next, self.master.deadline(), self.standby.deadline()];
            self.now = deadlines.into_iter().flatten().min().unwrap_or(end).max(self.now);
            if self.now >= end {
                self.now = end;
                return;
            }
            let due: Vec<_> = self.flying.extract_if(.., |(at, ..)| *at <= self.now).collect();
            for (_, to, datagram) in due {
                let receiver = if to == MASTER { &mut self.master } else { &mut self.standby };
                receiver.receive(&datagram, self.now);
            }
        }
    }

    #[track_caller]
    fn assert_level(&self) {
        let status = self.standby.status(self.now);
        assert!(status.complete && status.behind == 0, "{status:?}");
        assert_eq!(self.copy.len(), self.entries.len());
        assert!(self.copy == self.entries);
    }
}

fn many(n: u32) -> Vec<Change> {
    (0..n).map(|id| change(id, Some(&[id as u8; 150]))).collect()
}

#[test]
fn a_snapshot_then_changes_and_removals() {
    let mut wire = Wire::new(1, 0.0);
    wire.change(many(3000));
    wire.run(Duration::from_secs(5));
    wire.assert_level();
    wire.change(vec![change(5, Some(b"new")), change(6, None), change(9000, Some(b"more"))]);
    wire.run(INTERVAL + Duration::from_millis(50));
    wire.assert_level();
    let status = wire.master.status(wire.now);
    assert_eq!((status.standbys, status.refused), (1, 0));
}

#[test]
fn the_rate_is_bounded_and_nothing_changed_costs_thirty_datagrams_a_second() {
    let mut wire = Wire::new(2, 0.0);
    wire.change(many(20_000)); // 3.3 MB
    wire.run(Duration::from_secs(1));
    assert!(!wire.standby.status(wire.now).complete && wire.sent < 1_800, "{} in a second", wire.sent);
    wire.run(Duration::from_secs(20));
    wire.assert_level();
    wire.sent = 0;
    wire.run(Duration::from_secs(10));
    assert!(wire.sent <= 3 * 101, "{} datagrams in ten idle seconds", wire.sent);
}

#[test]
fn losses_repetitions_and_disorder_end_level_from_many_seeds() {
    for seed in 0..30 {
        println!("seed {seed}");
        let mut wire = Wire::new(seed, 0.1);
        for round in 0..20_u32 {
            let id = wire.random.random_range(0..400);
            let value = vec![round as u8; wire.random.random_range(0..400)];
            let removed = wire.random.random_bool(0.3);
            wire.change(many(round * 7 % 90));
            wire.change(vec![change(id, (!removed).then_some(&value[..]))]);
            let time = wire.random.random_range(10..900);
            wire.run(Duration::from_millis(time));
        }
        wire.loss = 0.0;
        wire.run(Duration::from_secs(30));
        wire.assert_level();
    }
}

#[test]
fn a_master_that_restarts_is_another_stream_and_the_copy_begins_again() {
    let mut wire = Wire::new(3, 0.0);
    wire.change(many(50));
    wire.run(Duration::from_secs(2));
    wire.assert_level();
    wire.master = Replication::new(secret("ours"), Guid(0xa), 777);
    wire.entries.retain(|key, _| key.id[3] % 2 == 0); // some are gone over the restart
    wire.master.become_master(&wire.entries, wire.now);
    wire.run(Duration::from_secs(2));
    wire.assert_level();
}

#[test]
fn whoever_missed_forgotten_removals_begins_again() {
    let mut wire = Wire::new(4, 0.0);
    wire.change(many(100));
    wire.run(Duration::from_secs(1));
    wire.assert_level();
    wire.change(vec![change(3, None)]);
    for id in 0..12_000 {
        wire.change(vec![change(100_000 + id, Some(b"x")), change(100_000 + id, None)]);
    }
    wire.run(Duration::from_secs(3));
    wire.assert_level();
}

#[test]
fn another_secret_gets_nothing_and_teaches_nothing() {
    let mut wire = Wire::new(5, 0.0);
    wire.change(many(10));
    wire.standby = Replication::new(secret("theirs"), Guid(0xb), 2000);
    wire.standby.become_standby(Lid::new(MASTER).unwrap(), wire.now);
    wire.run(Duration::from_secs(2));
    assert!(wire.copy.is_empty() && !wire.standby.status(wire.now).complete);
    assert!(wire.master.status(wire.now).refused >= 10);
    assert_eq!(wire.sent as usize, wire.requests.len(), "no answer at all");
}

#[test]
fn a_request_that_is_sent_again_gets_no_state_not_even_after_a_restart() {
    let mut wire = Wire::new(6, 0.0);
    wire.change(many(10));
    wire.run(Duration::from_secs(2));
    wire.assert_level();
    let old: Vec<Datagram> = wire.requests.clone();
    let answered = |master: &mut Replication, now| {
        let mut bytes = 0;
        for request in &old {
            let from = Address { lid: 99, ..request.address };
            master.receive(&Datagram { address: from, mad: request.mad }, now);
        }
        while let Some(datagram) = master.poll_send(now) {
            let message = mirror::data(&datagram.mad);
            bytes += usize::from(message[..200].windows(20).any(|w| w.iter().all(|b| *b == w[0] && *b != 0)));
        }
        bytes
    };
    let later = wire.now + Duration::from_secs(10);
    let before = wire.master.status(later).refused;
    assert_eq!(answered(&mut wire.master, later), 0, "no entry's value is sent");
    let refused = wire.master.status(later).refused - before;
    assert!(refused as usize >= old.len() - 4, "{refused} of {}", old.len());
    let mut restarted = Replication::new(secret("ours"), Guid(0xa), 5);
    restarted.become_master(&wire.entries, later);
    assert_eq!(answered(&mut restarted, later), 0);
}

#[test]
fn an_answer_to_another_request_is_not_taken() {
    let ours = secret("ours");
    let mut standby = Standby::new(Lid::new(MASTER).unwrap(), Timestamp::ZERO);
    let request = standby.next_request(Guid(0xb), 2000, Timestamp::ZERO).unwrap();
    let mut source = Source::new(9, &Entries::new(), Timestamp::ZERO);
    let datagram = Datagram { address: Address::gsi(MASTER, ServiceLevel(0)), mad: mirror::request(1, &[]) };
    let Taken::Answer(hello) = source.take(&request, &datagram, Guid(0xa), Timestamp::ZERO) else {
        panic!("an answer")
    };
    let hello = *hello;
    assert!(standby.expects(&hello, 2000) && !standby.expects(&hello, 2001));
    standby.take(hello.clone(), Timestamp::ZERO);
    standby.next_request(Guid(0xb), 2000, Timestamp::ZERO).unwrap();
    assert!(!standby.expects(&hello, 2000), "the answer to the request before");
    let mut bytes = hello.encode(&ours);
    assert_eq!(message::Answer::decode(&ours, &bytes), Some(hello));
    for at in 0..bytes.len() {
        bytes[at] ^= 1;
        assert_eq!(message::Answer::decode(&ours, &bytes), None, "byte {at}");
        bytes[at] ^= 1;
    }
    assert!(Secret::new(b"too short").is_none());
    assert_eq!(format!("{ours:?}"), "Secret");
}

/// A pair of which the standby is in step.
fn in_step(seed: u64) -> Wire {
    let mut wire = Wire::new(seed, 0.0);
    wire.change(many(50));
    wire.run(Duration::from_secs(1));
    assert_eq!(wire.master.status(wire.now).in_step, 1);
    assert_eq!(wire.standby.copy_state(None), CopyState::Confirmed);
    wire.acknowledged.clear();
    wire
}

#[test]
fn what_changes_is_confirmed_in_one_round_trip_and_acknowledged_only_then() {
    let mut wire = in_step(7);
    for id in 0..100 {
        let made = wire.now;
        wire.change(vec![change(id, Some(b"new"))]);
        assert!(wire.master.confirmed() < wire.made[0].0, "not before the standby has it");
        wire.run(Duration::from_millis(3));
        let (at, acknowledged) = wire.acknowledged.pop().unwrap();
        assert_eq!((wire.copy.get(&acknowledged.key), wire.made.len()), (acknowledged.value.as_ref(), 0));
        assert!(at - made < Duration::from_millis(1), "{:?}", at - made);
    }
    let level = wire.master.confirmed();
    let local = wire.master.acknowledging(Acknowledge::Local);
    assert!(level < u64::MAX && local.confirmed() == u64::MAX, "nobody is waited for");
}

#[test]
fn joins_of_eighty_thousand_a_second_go_by_in_batches() {
    let mut wire = in_step(8);
    for batch in 0..200_u32 {
        wire.change((0..400).map(|id| change(batch * 400 + id, Some(&[7; 60]))).collect());
        wire.run(Duration::from_millis(5));
    }
    wire.run(Duration::from_millis(100));
    assert_eq!((wire.acknowledged.len(), wire.master.status(wire.now).in_step), (80_000, 1));
    wire.assert_level();
}

#[test]
fn a_standby_that_falls_silent_is_waited_for_once_and_no_longer_than_said() {
    let mut wire = in_step(9);
    wire.loss = 1.0;
    wire.run(Duration::from_millis(200));
    let made = wire.now;
    wire.change(vec![change(1, Some(b"waits"))]);
    wire.run(PATIENCE * 2);
    let [(at, _)] = wire.acknowledged[..] else { panic!("{:?}", wire.acknowledged) };
    assert!(at - made <= PATIENCE, "{:?}", at - made);
    assert_eq!(wire.master.status(wire.now).in_step, 0);
    wire.change(vec![change(2, Some(b"does not"))]);
    assert_eq!(wire.master.confirmed(), u64::MAX);
    // The standby can't know, until it hears that it was given up, or that the master was alive after that.
    assert_eq!(wire.standby.copy_state(Some(made)), CopyState::Confirmed);
    assert_eq!(wire.standby.copy_state(Some(wire.now)), CopyState::Doubtful);
    wire.loss = 0.0;
    wire.run(Duration::from_secs(1));
    wire.assert_level();
    assert_eq!(wire.standby.copy_state(Some(wire.now)), CopyState::Confirmed, "in step again");
}

#[test]
fn a_master_that_was_stopped_does_not_take_its_own_absence_for_the_standbys() {
    let mut wire = in_step(10);
    wire.change(vec![change(1, Some(b"waits"))]);
    wire.now += Duration::from_secs(2); // nobody's clock but the master's went on
    assert!(wire.master.poll_send(wire.now).is_some(), "the answer that waited");
    assert_eq!(wire.master.status(wire.now).in_step, 1);
    assert!(wire.master.confirmed() < wire.made[0].0);
}

/// The master's node is lost at a moment that is drawn, on a fabric that loses datagrams. Where the standby says that its copy has all
/// that was acknowledged, it has; on one that loses none it always says so. It can't know of a master that gave it up and died before it was seen
/// alive once more: where three of ten datagrams are lost, that may happen. A master that waits for nobody shows that the test sees losses.
#[test]
fn a_confirmed_copy_has_all_that_was_acknowledged_from_many_seeds() {
    let (mut confirmed, mut lost_locally, mut unknown) = (0, 0, 0);
    for seed in 0..300 {
        println!("seed {seed}");
        let (loss, local) = ([0.0, 0.05, 0.3][seed as usize % 3], seed % 5 == 4);
        let mut wire = Wire::new(seed, 0.0);
        if local {
            wire.master = Replication::new(secret("ours"), Guid(0xa), 1000).acknowledging(Acknowledge::Local);
            wire.master.become_master(&wire.entries, wire.now);
        }
        wire.change((0..30).map(|id| change(id, Some(&[0; 8]))).collect());
        wire.run(Duration::from_secs(1));
        wire.loss = loss;
        let end = wire.now + Duration::from_millis(wire.random.random_range(1..3000));
        let mut heard = None;
        while wire.now < end {
            let id = wire.random.random_range(0..60);
            wire.change(vec![change(id, Some(&wire.now.as_nanos().to_be_bytes()))]);
            let step = Duration::from_micros(wire.random.random_range(1..40_000));
            wire.run(step.min(end - wire.now));
            if wire.random.random_bool(1.0 - loss) {
                heard = Some(wire.now); // SMInfo, polled every 20 ms or so
            }
        }
        // Given up, and dead before it was seen alive again.
        let given_up = wire.master.status(wire.now).in_step == 0;
        let last: Entries =
            wire.acknowledged.iter().map(|(_, c)| (c.key.clone(), c.value.clone().unwrap())).collect();
        (wire.loss, wire.master) = (1.0, Replication::new(secret("dead"), Guid(0xa), 1));
        wire.flying.clear();
        wire.run(Duration::from_secs(1));
        let known = wire.standby.copy_state(heard);
        // Times only grow: what is newer than the acknowledged is as good.
        let has_all = last.iter().all(|(key, value)| wire.copy.get(key).is_some_and(|copy| copy >= value));
        if local {
            lost_locally += usize::from(!has_all);
            continue;
        }
        confirmed += usize::from(known == CopyState::Confirmed);
        if !has_all && known == CopyState::Confirmed {
            assert!(given_up && loss > 0.2, "seed {seed}");
            unknown += 1;
        }
        assert!(loss > 0.0 || known == CopyState::Confirmed, "seed {seed}: {known:?}");
    }
    println!(
        "{confirmed} of 240 copies confirmed, {unknown} wrongly; {lost_locally} of 60 masters that wait for nobody lost something"
    );
    assert!(unknown <= 2, "{unknown}");
    assert!(confirmed >= 120 && lost_locally > 0, "{confirmed}, {lost_locally}");
}

#[test]
fn a_shared_store_that_lost_its_data_vouches_for_nothing() {
    use CopyState::{Confirmed, Doubtful, Incomplete};
    for own in [Incomplete, Doubtful, Confirmed] {
        assert_eq!(own.with_shared(true, 0, 0), own, "it holds nothing");
        let less = own.with_shared(true, 6, 7);
        assert_eq!(
            less,
            own.max(Doubtful),
            "it holds less than we do, who may have noted something ourselves"
        );
        assert_eq!(own.with_shared(true, 7, 7), Confirmed);
        assert_eq!(own.with_shared(false, 8, 7), own.max(Doubtful));
    }
}
