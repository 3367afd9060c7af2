//! Subnet administration of a manager: what the daemon's thread for it does, without the thread.

use std::sync::Arc;
use std::time::Duration;

use mad::transport::Datagram;
use mad::types::Timestamp;
use mad::wire::smp::Notice;
use simulations::world::Registration;
use sm_core::sa::{Server, ServerConfig, Wish};
use sm_core::sm::Told;
use sm_core::snapshot::Snapshot;
use sm_core::store::{Change, Entries, Epoch};

/// Virtual time begins with UNIX time, so that leases go on from one life of a manager to the next.
const EPOCH: Epoch = Epoch(0);

/// The shortest time between two demands that the state machine is told. The daemon tells the next one when the last was
/// taken; here nothing takes time.
const TURN: Duration = Duration::from_millis(1);

/// The server, and what it answers from.
pub(crate) struct Administration {
    server: Server,
    picture: Option<Arc<Snapshot>>,
    /// Registrations to go on with from the next picture on.
    restored: Option<Entries>,
    /// Who was told to register anew.
    reregistered: Option<Arc<Told>>,
    /// Generations of the groups and of the alias GUIDs that the state machine was told.
    told: (u64, u64),
    next_tell: Timestamp,
}

impl Administration {
    pub(crate) fn new(restored: Entries) -> Self {
        Self {
            server: Server::new(ServerConfig::default()),
            picture: None,
            restored: Some(restored),
            reregistered: None,
            told: (0, 0),
            next_tell: Timestamp::ZERO,
        }
    }

    pub(crate) fn publish(&mut self, picture: Arc<Snapshot>, now: Timestamp) {
        if let Some(entries) = self.restored.take() {
            self.server.restore(&entries, EPOCH, now);
        }
        self.server.set_snapshot(&picture, now);
        self.picture = Some(picture);
        self.doubt(now);
    }

    pub(crate) fn note_told(&mut self, told: Arc<Told>, now: Timestamp) {
        self.reregistered = Some(told);
        self.doubt(now);
    }

    fn doubt(&mut self, now: Timestamp) {
        if let Some(told) = self.reregistered.as_ref().filter(|_| self.picture.is_some()) {
            self.server.note_told(told, now);
        }
    }

    pub(crate) fn withdraw(&mut self) {
        self.picture = None;
    }

    /// Goes on with these registrations, where there is a picture at once: whoever registers from now on is to find them.
    pub(crate) fn restore(&mut self, entries: Entries, now: Timestamp) {
        if self.picture.is_some() {
            self.server.restore(&entries, EPOCH, now);
        } else {
            self.restored = Some(entries);
        }
    }

    /// Without a picture nothing is answered: the sender asks again.
    pub(crate) fn receive(&mut self, datagram: &Datagram, now: Timestamp) {
        if let Some(picture) = &self.picture {
            self.server.receive(datagram, picture, now);
        }
    }

    pub(crate) fn notice(&mut self, notice: &Notice) {
        self.server.notice(notice);
    }

    /// All that is to be sent, and what is to be kept before.
    pub(crate) fn turn(&mut self, now: Timestamp) -> (Vec<Change>, Vec<Datagram>) {
        let answers = std::iter::from_fn(|| self.server.poll_send(now)).collect();
        (self.server.take_changes(EPOCH), answers)
    }

    /// What the state machine is to do, when it is time to tell it.
    pub(crate) fn wish(&mut self, now: Timestamp) -> Option<Wish> {
        let unread = self.server.take_unread();
        if !unread.is_empty() {
            return Some(Wish::QosTables(unread));
        }
        if !self.wants_to_tell() || self.next_tell > now {
            return None;
        }
        self.next_tell = now + TURN;
        let aliases = self.server.registry().aliases.table();
        if aliases.generation() != self.told.1 {
            self.told.1 = aliases.generation();
            return Some(Wish::Aliases(Arc::clone(aliases)));
        }
        self.told.0 = self.server.registry().groups.generation();
        Some(Wish::Multicast(Arc::new(self.server.demand())))
    }

    pub(crate) fn wants_to_tell(&self) -> bool {
        let registry = self.server.registry();
        (registry.groups.generation(), registry.aliases.table().generation()) != self.told
    }

    pub(crate) fn deadline(&self) -> Option<Timestamp> {
        let tell = self.wants_to_tell().then_some(self.next_tell);
        tell.into_iter().chain(self.server.deadline()).min()
    }

    /// Whether a registration is known.
    pub(crate) fn holds(&self, registration: &Registration) -> bool {
        let registry = self.server.registry();
        match *registration {
            Registration::Member { mgid, port, how } => {
                let member = registry.groups.get(mgid).and_then(|group| group.members().get(&port));
                member.is_some_and(|member| member.join_state.0 & how == how)
            }
            Registration::Service { id, port } => registry
                .services
                .records(Timestamp::ZERO)
                .any(|record| record.service_id.get() == id && record.service_gid().guid() == port),
            Registration::Subscription { trap, port } => {
                registry.subscriptions.iter().any(|(_, subscription)| {
                    subscription.port == port && subscription.inform.trap_number_or_device_id.get() == trap
                })
            }
        }
    }
}
