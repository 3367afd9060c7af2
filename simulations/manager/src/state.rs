//! What a manager keeps, where it keeps it, and how others get it: what the daemon's thread for the state does, without the
//! thread.

use std::sync::{Arc, Mutex, PoisonError};

use crate::etcd::Shared;
use mad::transport::Datagram;
use mad::types::{Lid, Timestamp};
use sm_core::replication::{CopyState, Learnt, Replication};
use sm_core::store::{Change, Entries, Kind, difference, next_version, typed, version};

/// A state directory: it outlives the manager.
pub(crate) type Disk = Arc<Mutex<Entries>>;

/// What the manager is to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Its state is the one that counts.
    Master,
    /// It follows the master at this LID, where it knows one.
    Standby(Option<Lid>),
    /// Neither.
    None,
}

/// The state, and where it goes.
pub(crate) struct State {
    entries: Entries,
    disk: Option<Disk>,
    replication: Option<Replication>,
    shared: Option<Shared>,
    /// Whether the entries are what etcd held at the start.
    is_etcds: bool,
    pub(crate) part: Part,
}

/// What has to be reached before a change is acknowledged: confirmed by standbys, written to etcd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Version {
    mirrored: u64,
    shared: u64,
}

impl Version {
    /// Whether this is reached, where etcd is waited for (`patient`).
    pub(crate) const fn is_reached(self, by: Self, patient: bool) -> bool {
        self.mirrored <= by.mirrored && (self.shared <= by.shared || !patient)
    }
}

impl State {
    /// `held` is what etcd holds at the start; it is taken where it is newer.
    pub(crate) fn new(
        disk: Option<Disk>,
        replication: Option<Replication>,
        etcd: Option<(Option<Entries>, Shared)>,
    ) -> Self {
        let entries = disk.as_ref().map(|disk| disk.lock().unwrap_or_else(PoisonError::into_inner).clone());
        let (held, shared) = etcd.map_or((None, None), |(held, shared)| (held, Some(shared)));
        let entries = entries.unwrap_or_default();
        let mut state = Self { entries, disk, replication, shared, is_etcds: false, part: Part::None };
        state.is_etcds = held.is_some_and(|held| state.take_newer(&held));
        state
    }

    fn take_newer(&mut self, held: &Entries) -> bool {
        let newer = version(held) > version(&self.entries);
        if newer {
            self.write(difference(&self.entries, held));
        }
        newer
    }

    /// Whether nothing was ever kept, or it is what etcd held at the start, without which the master before may have gone on.
    pub(crate) fn is_new(&self) -> bool {
        version(&self.entries) == 0 || self.is_etcds
    }

    pub(crate) fn entries(&self) -> &Entries {
        &self.entries
    }

    /// Something changed here. A standby's state is its copy of the master's: it changes nothing itself. Returns what
    /// [`State::reached`] has to reach before that is acknowledged.
    pub(crate) fn change(&mut self, mut changes: Vec<Change>, now: Timestamp) -> Option<Version> {
        if matches!(self.part, Part::Standby(_)) || changes.is_empty() {
            return None;
        }
        changes.push(next_version(&self.entries));
        let mirrored = self.replication.as_mut().map_or(0, |replication| replication.change(&changes, now));
        let shared = self.shared.as_mut().map_or(0, |shared| shared.change(&changes));
        self.write(changes);
        Some(Version { mirrored, shared })
    }

    /// Up to where the standbys that acknowledgements wait for, and etcd, have all.
    pub(crate) fn reached(&self) -> Version {
        Version {
            mirrored: self.replication.as_ref().map_or(u64::MAX, Replication::confirmed),
            shared: self.shared.as_ref().map_or(u64::MAX, Shared::done),
        }
    }

    /// All entries of one kind are these from now on.
    pub(crate) fn replace(&mut self, kind: Kind, by: &Entries, now: Timestamp) {
        let of_kind = self.entries.iter().filter(|(key, _)| key.kind == kind);
        let old: Entries = of_kind.map(|(key, value)| (key.clone(), value.clone())).collect();
        self.change(difference(&old, by), now);
    }

    /// What is kept of registrations is out of date; what is left.
    pub(crate) fn forget_registrations(&mut self) -> Entries {
        let left = typed::without_registrations(&self.entries);
        let mut changes = difference(&self.entries, &left);
        changes.push(next_version(&self.entries));
        self.write(changes);
        left
    }

    /// What is kept is of another fabric.
    pub(crate) fn set_aside(&mut self) {
        let gone = difference(&self.entries, &Entries::new());
        self.write(gone);
        self.shared.iter_mut().for_each(Shared::set_aside);
    }

    fn write(&mut self, changes: Vec<Change>) {
        if let Some(disk) = &self.disk {
            let mut disk = disk.lock().unwrap_or_else(PoisonError::into_inner);
            changes.iter().cloned().for_each(|change| change.apply_to(&mut disk));
        }
        changes.into_iter().for_each(|change| change.apply_to(&mut self.entries));
    }

    /// A standby begins to take over: what is known of its copy of the state of a master that was seen alive at `heard`, and of
    /// what etcd holds, of which the newer counts.
    pub(crate) fn take_over(&mut self, heard: Option<Timestamp>, now: Timestamp) -> CopyState {
        let mirrored = self
            .replication
            .as_ref()
            .map_or(CopyState::Incomplete, |replication| replication.copy_state(heard));
        let Some((held, trusted)) = self.shared.as_mut().and_then(|shared| shared.read(now)) else {
            return mirrored;
        };
        let own = version(&self.entries);
        self.take_newer(&held);
        mirrored.with_shared(trusted, version(&held), own)
    }

    pub(crate) fn play(&mut self, part: Part, now: Timestamp) {
        self.part = part;
        if let Some(shared) = &mut self.shared {
            shared.play(part == Part::Master, &self.entries);
        }
        let Some(replication) = &mut self.replication else { return };
        match part {
            Part::Master => replication.become_master(&self.entries, now),
            Part::Standby(Some(master)) => replication.become_standby(master, now),
            Part::Standby(None) | Part::None => replication.become_idle(),
        }
    }

    pub(crate) fn receive(&mut self, datagram: &Datagram, now: Timestamp) {
        if let Some(replication) = &mut self.replication {
            replication.receive(datagram, now);
        }
    }

    /// What is to be sent to other managers; takes over what they said.
    pub(crate) fn turn(&mut self, now: Timestamp) -> Vec<Datagram> {
        let learnt = self.replication.as_mut().map(Replication::take_learnt).unwrap_or_default();
        for learnt in learnt {
            let changes = match learnt {
                Learnt::Changes(changes) => changes,
                Learnt::Complete(copy) => difference(&self.entries, &copy),
            };
            self.write(changes);
        }
        let Some(replication) = &mut self.replication else { return Vec::new() };
        std::iter::from_fn(|| replication.poll_send(now)).collect()
    }

    /// A state that a master goes on with, since etcd holds it of another.
    pub(crate) fn adopt(&mut self, now: Timestamp) -> Option<Entries> {
        let adopted = self.shared.as_mut()?.turn(now)?;
        let changes = difference(&self.entries, &adopted);
        if let Some(replication) = &mut self.replication {
            replication.change(&changes, now);
        }
        self.write(changes);
        Some(adopted)
    }

    pub(crate) fn deadline(&self) -> Option<Timestamp> {
        let replication = self.replication.as_ref().and_then(Replication::deadline);
        replication.into_iter().chain(self.shared.as_ref().map(Shared::deadline)).min()
    }
}
