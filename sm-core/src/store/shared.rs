//! A manager's use of a store that managers share (etcd): what a master writes there and when, what a standby reads.
//!
//! | when | what happens |
//! | --- | --- |
//! | it is away | changes wait, merged by key; the manager goes on; the next answer gets all that waits |
//! | it was wiped | all is written again |
//! | another wrote meanwhile | what it holds is read, what waits here is laid over it, and the result is taken over here |
//! | another still writes | ours waits until the other's lease ends |
//! | a standby takes over | it reads once what is there, unless it is known to be away |
//!
//! Sans-IO but for the store itself, whose calls take time: so the time is not an argument but a clock that is asked again after each.
//! Cost: a commit for each change, a sign of life for each third of a lease.

use std::time::Duration;

use mad::types::Timestamp;

use super::{Change, Entries, Outbox, StateStore, difference, version};

/// How long after it last failed a store is not trusted to hold what a master acknowledged: it may have gone on without it. Longer than a
/// master needs to notice that it is back and to write what waited.
const DOUBT: Duration = Duration::from_secs(10);

/// What a clock is: the time now.
pub type Clock<'a> = &'a dyn Fn() -> Timestamp;

/// The store, and what is to be in it.
pub struct SharedStore {
    outbox: Outbox,
    /// What the store is to hold.
    entries: Entries,
    is_master: bool,
    /// Whether the store was read since we are master.
    is_based: bool,
    adopted: Option<Entries>,
    /// Time between two signs of life.
    turn: Duration,
    next: Timestamp,
}

impl SharedStore {
    /// `lease` is the store's.
    pub fn new(store: Box<dyn StateStore>, lease: Duration) -> Self {
        Self {
            outbox: Outbox::new(store),
            entries: Entries::new(),
            is_master: false,
            is_based: false,
            adopted: None,
            turn: lease / 3,
            next: Timestamp::ZERO,
        }
    }

    /// When [`SharedStore::turn`] is due.
    pub fn deadline(&self) -> Timestamp {
        let retry = self.outbox.deadline().filter(|_| self.is_master && self.outbox.waiting() > 0);
        retry.map_or(self.next, |at| at.min(self.next))
    }

    /// Gives a sign of life, and tries again what waits.
    pub fn turn(&mut self, clock: Clock<'_>) {
        let now = clock();
        if now >= self.next {
            self.next = now + self.turn;
            self.outbox.keep_alive(self.is_master, now);
        }
        if self.is_master {
            self.write(&[], clock);
        }
    }

    /// The manager is master, and this is the state.
    pub fn lead(&mut self, entries: Entries, clock: Clock<'_>) {
        (self.entries, self.is_master, self.is_based) = (entries, true, false);
        self.outbox.replace(difference(&Entries::new(), &self.entries));
        self.outbox.require_read();
        self.write(&[], clock);
    }

    /// The state of a master changed.
    pub fn change(&mut self, changes: &[Change], clock: Clock<'_>) {
        changes.iter().cloned().for_each(|change| change.apply_to(&mut self.entries));
        self.write(changes, clock);
    }

    /// The manager is not master any more.
    pub fn release(&mut self, clock: Clock<'_>) {
        self.is_master = false;
        self.outbox.replace(Vec::new());
        self.outbox.release(clock());
    }

    /// What the store holds, where it answers, and whether that can be trusted to be all that a master acknowledged.
    pub fn read(&mut self, clock: Clock<'_>) -> Option<(Entries, bool)> {
        let entries = self.outbox.read(clock())?;
        let trusted = self.outbox.last_failure().is_none_or(|at| clock() - at > DOUBT);
        Some((entries, trusted))
    }

    /// The state is of another fabric.
    pub fn set_aside(&mut self, clock: Clock<'_>) {
        tracing::error!("{}", self.outbox.set_aside("another-fabric"));
        self.entries.clear();
        if !self.is_master {
            self.outbox.release(clock());
        }
    }

    /// The manager ends: one more try to write what waits.
    pub fn end(&mut self, clock: Clock<'_>) {
        if self.is_master {
            self.write(&[], clock);
            self.outbox.release(clock());
        }
    }

    /// A state that the manager takes over from the store while it is master.
    pub fn take_adopted(&mut self) -> Option<Entries> {
        self.adopted.take()
    }

    fn write(&mut self, changes: &[Change], clock: Clock<'_>) {
        self.outbox.write(changes, clock());
        // Whoever changed it once may have done so again meanwhile; the next turn goes on.
        if self.outbox.must_read() && self.merge(clock) {
            self.outbox.write(&[], clock());
        }
    }

    /// Lays what waits here over what is there now; at a master's first look the newer of both copies counts. `false` when
    /// the store can't be read.
    fn merge(&mut self, clock: Clock<'_>) -> bool {
        let Some(held) = self.outbox.read(clock()) else { return false };
        if !std::mem::replace(&mut self.is_based, true) {
            let newer = version(&held) > version(&self.entries);
            self.outbox.replace(if newer { Vec::new() } else { difference(&held, &self.entries) });
            if newer {
                self.adopt(held);
            }
            return true;
        }
        if held.is_empty() {
            tracing::warn!("etcd holds nothing of the state any more: all is written again");
            self.outbox.replace(difference(&held, &self.entries));
            return true;
        }
        let mut merged = held.clone();
        self.outbox.pending().into_iter().for_each(|change| change.apply_to(&mut merged));
        self.outbox.replace(difference(&held, &merged));
        if merged != self.entries {
            self.adopt(merged);
        }
        true
    }

    fn adopt(&mut self, entries: Entries) {
        tracing::warn!(
            entries = entries.len(),
            "etcd holds what another subnet manager wrote: it is taken over"
        );
        self.entries = entries.clone();
        self.adopted = Some(entries);
    }
}
