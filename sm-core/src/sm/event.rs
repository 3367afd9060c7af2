//! What goes into the state machine and what comes out.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use mad::transport::{Datagram, Received};
use mad::types::Guid;
use mad::wire::smp::Notice;

use super::report::Report;
use super::tell::Told;
use crate::aliases::AliasTable;
use crate::apply::Quirks;
use crate::keys::KeyMemory;
use crate::multicast::MulticastDemand;
use crate::plan::lids::LidMemory;
use crate::plan::{Plan, PlanError, PlanInput};
use crate::sa::Wish;
use crate::settings::SmSettings;
use crate::snapshot::Snapshot;
use crate::store::Restored;

/// Something happened.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are datagrams; a box would cost an allocation for each"
)]
pub enum Event {
    /// The transport handed something up.
    Received(Received),
    /// The transport did not take a datagram.
    SendFailed {
        /// Lower half of its transaction ID.
        tid: u32,
        /// The system's error number.
        errno: i32,
    },
    /// The multicast groups that the switches are to carry.
    Multicast(Arc<MulticastDemand>),
    /// The alias GUIDs that ports are to hold.
    Aliases(Arc<AliasTable>),
    /// Nodes, by NodeGUID, whose SL-to-VL and VL arbitration tables are to be read.
    QosTables(BTreeSet<Guid>),
    /// Somebody wants a full sweep.
    SweepRequested,
    /// The state of the master before, as it was mirrored: it counts from now on. Registrations go to the SA itself.
    Mirrored(Box<Restored>),
    /// Nobody knows what ports have registered: they are told to register anew.
    Unregistered,
    /// New settings.
    Settings(Box<SmSettings>),
    /// The job of [`Action::Plan`] is done.
    Planned(Box<Result<Plan, PlanError>>),
    /// Only the time has come.
    Time,
}

impl From<Wish> for Event {
    fn from(wish: Wish) -> Self {
        match wish {
            Wish::Multicast(demand) => Self::Multicast(demand),
            Wish::Aliases(aliases) => Self::Aliases(aliases),
            Wish::QosTables(nodes) => Self::QosTables(nodes),
        }
    }
}

/// Something is to be done.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are datagrams; a box would cost an allocation for each"
)]
pub enum Action {
    /// Send a datagram; the duration is how long an answer is waited for, `None` when none is.
    Send(Datagram, Option<Duration>),
    /// Run `plan::plan` on this, somewhere else, and come back with [`Event::Planned`].
    Plan(Box<PlanInput>),
    /// The picture that answers are given from now on.
    Publish(Arc<Snapshot>),
    /// Answer nothing from here on: another manager is in charge.
    Withdraw,
    /// Show or hide the port's IsSM bit.
    SetIsSm(bool),
    /// Remember the LIDs.
    SaveLids(Arc<LidMemory>),
    /// Remember the fields that ports don't keep.
    SaveQuirks(Arc<Quirks>),
    /// Remember the keys of ports.
    SaveKeys(Arc<KeyMemory>),
    /// Remember whose registrations are all in what is kept.
    SaveServed(Arc<BTreeSet<Guid>>),
    /// Who has been told to register anew; to whoever keeps registrations.
    Told(Arc<Told>),
    /// What was remembered is of another fabric: set it aside, registrations too. Comes before the first picture.
    AnotherFabric,
    /// A trap came; whoever subscribed is to be told.
    Notice(Notice),
    /// A round is over.
    Report(Box<Report>),
}
