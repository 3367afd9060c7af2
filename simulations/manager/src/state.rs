//! What a manager keeps, where it keeps it, and how others get it: what the daemon's thread for the state does, without the
//! thread.

use std::sync::{Arc, Mutex, PoisonError};

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
    pub(crate) part: Part,
}

impl State {
    pub(crate) fn new(disk: Option<Disk>, replication: Option<Replication>) -> Self {
        let entries = disk.as_ref().map(|disk| disk.lock().unwrap_or_else(PoisonError::into_inner).clone());
        Self { entries: entries.unwrap_or_default(), disk, replication, part: Part::None }
    }

    /// Whether nothing was ever kept.
    pub(crate) fn is_new(&self) -> bool {
        version(&self.entries) == 0
    }

    pub(crate) fn entries(&self) -> &Entries {
        &self.entries
    }

    /// Something changed here. A standby's state is its copy of the master's: it changes nothing itself. Returns what
    /// [`State::confirmed`] has to reach before that is acknowledged.
    pub(crate) fn change(&mut self, mut changes: Vec<Change>, now: Timestamp) -> u64 {
        if matches!(self.part, Part::Standby(_)) || changes.is_empty() {
            return 0;
        }
        changes.push(next_version(&self.entries));
        let version = self.replication.as_mut().map_or(0, |replication| replication.change(&changes, now));
        self.write(changes);
        version
    }

    /// Up to where the standbys that acknowledgements wait for have all.
    pub(crate) fn confirmed(&self) -> u64 {
        self.replication.as_ref().map_or(u64::MAX, Replication::confirmed)
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
    }

    fn write(&mut self, changes: Vec<Change>) {
        if let Some(disk) = &self.disk {
            let mut disk = disk.lock().unwrap_or_else(PoisonError::into_inner);
            changes.iter().cloned().for_each(|change| change.apply_to(&mut disk));
        }
        changes.into_iter().for_each(|change| change.apply_to(&mut self.entries));
    }

    /// What is known of the copy of a master that was seen alive at `heard`.
    pub(crate) fn copy_state(&self, heard: Option<Timestamp>) -> CopyState {
        self.replication.as_ref().map_or(CopyState::Incomplete, |replication| replication.copy_state(heard))
    }

    pub(crate) fn play(&mut self, part: Part, now: Timestamp) {
        self.part = part;
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

    pub(crate) fn deadline(&self) -> Option<Timestamp> {
        self.replication.as_ref()?.deadline()
    }
}
