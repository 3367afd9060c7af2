//! What survives a restart and a failover: everything that only the master knows.
//!
//! Everything is kept as entries ([`entry`]): LIDs, fields that ports don't keep, M_Keys, multicast groups and members, services,
//! subscriptions, alias GUIDs, and whose registrations these are. A [`StateStore`] keeps entries somewhere and changes them all or none; [`Journaled`] is a crash-safe
//! database in the state directory with a journal before it, [`Etcd`](etcd::Etcd) one that managers share. An [`Outbox`]
//! stands before each store: what can't be written waits in it and is tried again, and the subnet manager goes on (B18).
//!
//! A store that is damaged, or of a later version, is set aside under a name that says so, and the fabric's own state is
//! adopted; one whose ports do not occur on the fabric is set aside likewise ([`is_of_another_fabric`]).

pub mod adopt;
mod embedded;
pub mod entry;
mod error;
pub mod etcd;
mod file;
mod journal;
mod journaled;
mod lids;
mod outbox;
mod quirks;
mod shared;
#[cfg(test)]
mod tests;
pub mod typed;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use mad::types::{Guid, Timestamp};

pub use embedded::Embedded;
pub use entry::{Change, Entries, Epoch, Key, Kind, difference, next_version, version};
pub use error::StoreError;
pub use journaled::{Journaled, Sync};
pub use outbox::Outbox;
pub use shared::{Clock, SharedStore};
pub use typed::is_of_another_fabric;

use crate::aliases::AliasTable;
use crate::apply::Quirks;
use crate::keys::KeyMemory;
use crate::multicast::MulticastDemand;
use crate::plan::lids::LidMemory;
use crate::sa::Registry;

/// A place where entries are kept.
pub trait StateStore: Send {
    /// What it is called in the log.
    fn name(&self) -> String;

    /// All entries. Those of kinds that are not known are left out and stay where they are.
    ///
    /// # Errors
    /// The store can't be read.
    fn load(&mut self) -> Result<Entries, StoreError>;

    /// Makes all changes or none; when it returns, they survive the end of this process, and where
    /// [`StateStore::is_settled`] the end of the machine.
    ///
    /// # Errors
    /// Nothing was changed, or it is unknown whether it was: the same changes may be made again.
    fn commit(&mut self, changes: &[Change]) -> Result<(), StoreError>;

    /// Whether everything that was committed survives the end of the machine.
    fn is_settled(&self) -> bool {
        true
    }

    /// Begins to see to that, and doesn't wait for it: to be called again until it is so.
    ///
    /// # Errors
    /// The machine's end may still take the last commits, or those that the last call was about.
    fn settle(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Begins anew with nothing in it; what it held is kept under another name. Returns where.
    ///
    /// # Errors
    /// It can't be set aside.
    fn set_aside(&mut self, why: &str) -> Result<String, StoreError>;

    /// Called every few seconds by a master: a store that several managers share keeps others from writing meanwhile.
    ///
    /// # Errors
    /// Another writes there, or it does not answer.
    fn keep_alive(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Called every few seconds by a standby: whether it answers.
    ///
    /// # Errors
    /// It does not.
    fn probe(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Others may write.
    ///
    /// # Errors
    /// It does not answer; others have to wait until our lease ends.
    fn release(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// What a subnet manager starts with.
#[derive(Clone, Debug, Default)]
pub struct Restored {
    /// LIDs by port GUID.
    pub lids: LidMemory,
    /// Fields that ports don't keep.
    pub quirks: Quirks,
    /// The multicast groups that the switches carry: known before the first picture, so that no table is cleared while
    /// the registrations are not yet back.
    pub demand: Arc<MulticastDemand>,
    /// The alias GUIDs that ports hold.
    pub aliases: Arc<AliasTable>,
    /// Keys that ports may hold.
    pub keys: KeyMemory,
    /// Ports whose registrations are all in the state; `None` where that was never kept.
    pub served: Option<BTreeSet<Guid>>,
    /// Entries that could not be used, and stores set aside: for the log.
    pub complaints: Vec<String>,
}

impl Restored {
    /// What entries say; those that can't be used are told.
    pub fn of(entries: &Entries) -> Self {
        let mut complaints = Vec::new();
        let mut registry = Registry::default();
        let refused = registry.restore(entries, Epoch::default(), Timestamp::ZERO);
        if refused > 0 {
            complaints.push(format!("{refused} registrations in the state can't be used"));
        }
        Self {
            lids: typed::lids(entries, &mut complaints),
            quirks: typed::quirks(entries, &mut complaints),
            keys: typed::keys(entries, &mut complaints),
            demand: Arc::new(registry.groups.demand()),
            aliases: Arc::clone(registry.aliases.table()),
            served: typed::served(entries),
            complaints,
        }
    }
}

/// Reads the state directory of a subnet manager that may be running; nothing when there is none yet.
///
/// # Errors
/// It can't be read.
pub fn peek(dir: &Path) -> Result<Restored, StoreError> {
    peek_entries(dir).map(|entries| Restored::of(&entries))
}

/// The same, as entries.
///
/// # Errors
/// As [`peek`].
pub fn peek_entries(dir: &Path) -> Result<Entries, StoreError> {
    journaled::peek(dir)
}
