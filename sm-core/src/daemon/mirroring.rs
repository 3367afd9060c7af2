//! Replication at a transport: what the thread that keeps the state does for other managers.

use std::sync::Arc;
use std::time::Instant;

use crossbeam_channel::Receiver;
use mad::transport::{Datagram, Transport};
use mad::types::Timestamp;
use mad::wire::vendor::mirror;

use super::Mirror;
use super::keeper::Part;
use crate::replication::{CopyState, Learnt, MirrorStatus, RETRY, Replication};
use crate::store::{Change, Entries, difference};

/// Replication, where it is configured.
pub(super) struct Mirroring {
    replication: Option<Replication>,
    transport: Arc<dyn Transport>,
    pub(super) datagrams: Receiver<Datagram>,
    told: MirrorStatus,
}

impl Mirroring {
    pub(super) fn new(
        mirror: Option<Mirror>,
        transport: &Arc<dyn Transport>,
        datagrams: Receiver<Datagram>,
    ) -> Self {
        let replication =
            mirror.map(|m| Replication::new(m.secret, m.own, m.incarnation).acknowledging(m.acknowledge));
        Self { replication, transport: Arc::clone(transport), datagrams, told: MirrorStatus::default() }
    }

    pub(super) fn play(&mut self, part: Part, entries: &Entries, now: Timestamp) {
        let Some(replication) = &mut self.replication else { return };
        match part {
            Part::Master => replication.become_master(entries, now),
            Part::Standby(Some(master)) => replication.become_standby(master, now),
            Part::Standby(None) | Part::None => replication.become_idle(),
        }
    }

    /// Something changed; what [`Mirroring::confirmed`] has to reach before that is acknowledged.
    pub(super) fn change(&mut self, changes: &[Change], now: Timestamp) -> u64 {
        self.replication.as_mut().map_or(0, |replication| replication.change(changes, now))
    }

    /// Up to where the standbys that acknowledgements wait for have all.
    pub(super) fn confirmed(&self) -> u64 {
        self.replication.as_ref().map_or(u64::MAX, Replication::confirmed)
    }

    pub(super) fn receive(&mut self, datagram: &Datagram, start: Instant) {
        if let Some(replication) = &mut self.replication {
            replication.receive(datagram, Timestamp::from_start(start.elapsed()));
        }
    }

    /// What is known of the copy of a master that was seen alive at `heard`.
    pub(super) fn copy_state(&self, heard: Option<Timestamp>) -> CopyState {
        self.replication.as_ref().map_or(CopyState::Incomplete, |replication| replication.copy_state(heard))
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.replication.as_ref()?.deadline()
    }

    /// What is to be changed in the copy that is now `entries`. To be called before [`Mirroring::send`], which confirms it.
    pub(super) fn learn(&mut self, entries: &Entries) -> Vec<Vec<Change>> {
        let Some(replication) = &mut self.replication else { return Vec::new() };
        let changes = replication.take_learnt().into_iter().map(|learnt| match learnt {
            Learnt::Changes(changes) => changes,
            Learnt::Complete(copy) => difference(entries, &copy),
        });
        changes.collect()
    }

    /// Sends what is due.
    pub(super) fn send(&mut self, now: Timestamp) {
        let Some(replication) = &mut self.replication else { return };
        while let Some(datagram) = replication.poll_send(now) {
            let timeout = mirror::is_request(&datagram.mad).then_some(RETRY);
            if let Err(error) = self.transport.send(&datagram, timeout) {
                tracing::debug!(lid = datagram.address.lid, %error, "state was not sent to another manager");
            }
        }
        let status = replication.status(now);
        self.tell(status);
    }

    fn tell(&mut self, status: MirrorStatus) {
        let before = std::mem::replace(&mut self.told, status);
        if status.complete && !before.complete {
            tracing::info!("the copy of the master's state is complete");
        }
        if before.complete && !status.complete {
            tracing::info!("no longer a complete copy of a master's state");
        }
        if (status.standbys, status.in_step) != (before.standbys, before.in_step) {
            let MirrorStatus { standbys, in_step, slowest_behind, .. } = status;
            tracing::info!(standbys, in_step, behind = slowest_behind, "standbys follow");
        }
        if status.in_step < before.in_step {
            tracing::warn!(
                "a standby does not confirm: registrations are acknowledged without it until it is level again"
            );
        }
        if status.refused > before.refused && status.refused.is_power_of_two() {
            tracing::warn!(
                refused = status.refused,
                "messages about the state that are not signed with our secret, or came again"
            );
        }
    }
}
