//! Replication at a transport: what the thread that keeps the state does for other managers.

use std::sync::Arc;
use std::time::Instant;

use crossbeam_channel::Receiver;
use mad::transport::{Datagram, Transport};
use mad::types::Timestamp;
use mad::wire::vendor::mirror;

use super::Mirror;
use super::keeper::Part;
use crate::replication::{INTERVAL, Learnt, MirrorStatus, Replication};
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
        let replication = mirror.map(|m| Replication::new(m.secret, m.own, m.incarnation));
        Self { replication, transport: Arc::clone(transport), datagrams, told: MirrorStatus::default() }
    }

    pub(super) fn play(&mut self, part: Part, entries: &Entries, now: Timestamp) {
        let Some(replication) = &mut self.replication else { return };
        match part {
            Part::Master => replication.become_master(entries),
            Part::Standby(Some(master)) => replication.become_standby(master, now),
            Part::Standby(None) | Part::None => replication.become_idle(),
        }
    }

    pub(super) fn change(&mut self, changes: &[Change]) {
        if let Some(replication) = &mut self.replication {
            replication.change(changes);
        }
    }

    pub(super) fn receive(&mut self, datagram: &Datagram, start: Instant) {
        if let Some(replication) = &mut self.replication {
            replication.receive(datagram, Timestamp::from_start(start.elapsed()));
        }
    }

    pub(super) fn is_complete(&self, now: Timestamp) -> bool {
        self.replication.as_ref().is_some_and(|replication| replication.status(now).complete)
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.replication.as_ref()?.deadline()
    }

    /// Sends what is due; returns what is to be changed in the copy that is now `entries`.
    pub(super) fn turn(&mut self, entries: &Entries, now: Timestamp) -> Vec<Vec<Change>> {
        let Some(replication) = &mut self.replication else { return Vec::new() };
        while let Some(datagram) = replication.poll_send(now) {
            let timeout = mirror::is_request(&datagram.mad).then_some(INTERVAL);
            if let Err(error) = self.transport.send(&datagram, timeout) {
                tracing::debug!(lid = datagram.address.lid, %error, "state was not sent to another manager");
            }
        }
        let status = replication.status(now);
        let learnt = replication.take_learnt();
        self.tell(status);
        let changes = learnt.into_iter().map(|learnt| match learnt {
            Learnt::Changes(changes) => changes,
            Learnt::Complete(copy) => difference(entries, &copy),
        });
        changes.collect()
    }

    fn tell(&mut self, status: MirrorStatus) {
        let before = std::mem::replace(&mut self.told, status);
        if status.complete && !before.complete {
            tracing::info!("the copy of the master's state is complete");
        }
        if before.complete && !status.complete {
            tracing::info!("no longer a complete copy of a master's state");
        }
        if status.standbys != before.standbys {
            tracing::info!(standbys = status.standbys, behind = status.slowest_behind, "standbys follow");
        }
        if status.refused > before.refused && status.refused.is_power_of_two() {
            tracing::warn!(
                refused = status.refused,
                "messages about the state that are not signed with our secret, or came again"
            );
        }
    }
}
