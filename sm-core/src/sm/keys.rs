//! M_Keys in the life of the manager: whose requests for SMInfo are heard (B64), when ports are asked so that no lease runs out
//! (B67), and what is remembered.

use std::sync::Arc;
use std::time::Duration;

use mad::transport::Datagram;
use mad::types::{Guid, MKey, Timestamp};
use mad::wire::Method;
use mad::wire::smp::{PortInfo, Smp};

use super::{Action, Sm, Token};
use crate::keys::{KeyMemory, KeyRing};
use crate::observed::Observed;
use crate::plan::{Plan, own_end};
use crate::request::{Answer, SmpRequest};

/// Times that each port is asked within a lease.
const RENEWALS: u32 = 3;

/// What the manager notes of keys besides the ring.
#[derive(Debug, Default)]
pub(super) struct KeyNotes {
    saved: KeyMemory,
    /// When all ports are asked next.
    renewal: Option<Timestamp>,
    /// Requests for SMInfo that were not heard for their key.
    refused: u64,
}

impl Sm {
    /// What is known of keys.
    pub const fn keys(&self) -> &Arc<KeyRing> {
        &self.ground.keys
    }

    pub(super) fn keys_mut(&mut self) -> &mut KeyRing {
        Arc::make_mut(&mut self.ground.keys)
    }

    /// Our own port's GUID, where whoever starts the manager knows it: a locked port doesn't tell it to everybody.
    #[must_use]
    pub const fn on_port(mut self, guid: Guid) -> Self {
        self.own.guid = guid;
        self
    }

    /// Takes over what a stage learnt; what is wanted may have changed meanwhile.
    pub(super) fn adopt_keys(&mut self, keys: Arc<KeyRing>) {
        self.ground.keys = keys;
        if !Arc::ptr_eq(&self.settings.m_keys, self.keys().shared_policy()) {
            let policy = Arc::clone(&self.settings.m_keys);
            self.keys_mut().set_policy(policy);
        }
        self.save_keys();
    }

    pub(super) fn save_keys(&mut self) {
        if *self.keys().held() != self.key_notes.saved {
            self.key_notes.saved.clone_from(self.ground.keys.held());
            self.actions.push_back(Action::SaveKeys(Arc::new(self.key_notes.saved.clone())));
        }
    }

    /// Before the first Set of a key: whoever comes after us in the middle knows both.
    pub(super) fn expect_keys(&mut self, plan: &Plan, observed: &Observed) {
        let change = |port: &crate::plan::ports::PortPlan| {
            let (key, guid) = (port.desired.m_key.key(), observed.fabric.port(port.end)?.guid);
            let facts = observed.fabric.get(port.end.node)?;
            let guards = !facts.is_switch() || port.end.port.0 == 0;
            (guards && key.is_some() && self.keys().of(guid) != key).then_some((guid, key))
        };
        let changes: Vec<(Guid, MKey)> = plan.ports.iter().filter_map(change).collect();
        if !changes.is_empty() {
            let keys = self.keys_mut();
            changes.into_iter().for_each(|(guid, key)| keys.expect(guid, key));
            self.save_keys();
        }
    }

    /// Ports that obey somebody else.
    pub(super) fn refusing(&self) -> impl Iterator<Item = Guid> + '_ {
        self.keys().locked().iter().filter(|(_, locked)| locked.refused).map(|(port, _)| *port)
    }

    /// Ports that hide a key, as lines for the report.
    pub(super) fn locked_ports(&self, observed: &Observed) -> Vec<String> {
        let locked = self.keys().locked();
        let mut lines = Vec::new();
        for (node, facts) in observed.fabric.nodes().filter(|_| !locked.is_empty()) {
            for (number, port) in facts.end_ports() {
                if let Some(locked) = locked.get(&port.guid).filter(|locked| locked.refused) {
                    lines.push(format!("port {number} of {}: {locked}", observed.name(node)));
                }
            }
        }
        lines
    }

    /// When all ports with keys are to be asked so that no lease runs out.
    pub(super) fn renewal_due(&self) -> Option<Timestamp> {
        self.key_notes.renewal.filter(|_| self.may_write())
    }

    /// The end ports to be asked now, if it is time.
    pub(super) fn renew_leases(
        &mut self,
        observed: &Observed,
        now: Timestamp,
    ) -> Vec<(Guid, mad::types::PortNum)> {
        let lease = self.settings.m_keys.lease_s;
        if lease == 0 || !self.settings.m_keys.is_some() {
            self.key_notes.renewal = None;
            return Vec::new();
        }
        if self.key_notes.renewal.is_some_and(|at| at > now) {
            return Vec::new();
        }
        self.key_notes.renewal = Some(now + Duration::from_secs(lease.into()) / RENEWALS);
        let nodes = observed.fabric.nodes();
        nodes.flat_map(|(_, node)| node.end_ports().map(|(port, _)| (node.guid, port))).collect()
    }

    /// Whether a request for SMInfo may be heard: a Set with the key of our port only, a Get without it below protection level 2.
    pub(super) fn hears(&mut self, request: &Datagram) -> bool {
        let get = request.mad.header.method() == Method::GET;
        if self.knows_our_key(request) || (get && self.own_protection() < 2) {
            return true;
        }
        self.key_notes.refused += 1;
        if self.key_notes.refused.is_power_of_two() {
            tracing::warn!(
                refused = self.key_notes.refused,
                method = ?request.mad.header.method(),
                "a request for SMInfo has another M_Key than our port: not answered"
            );
        }
        false
    }

    /// The SM_Key as a request gets to see it: who knows our port's key, or where that has none, or reading is free (B64).
    /// opensm takes a manager that shows another than its own for none at all, and makes itself a second master.
    pub(super) fn sm_key_for(&self, request: &Datagram) -> u64 {
        let shown = self.knows_our_key(request) || self.own_protection() == 0;
        if shown { self.settings.sm_key } else { 0 }
    }

    fn knows_our_key(&self, request: &Datagram) -> bool {
        let key = self.keys().of(self.own.guid);
        !key.is_some() || Smp::from_mad(request.mad).m_key.key() == key
    }

    /// M_KeyProtectBits of our port.
    fn own_protection(&self) -> u8 {
        let info = self.observed.as_ref().and_then(|observed| observed.port_info(own_end(observed)));
        info.map_or(self.settings.m_keys.protect, PortInfo::m_key_protect_bits)
    }

    /// A standby learns what the master gives its port, with each poll: the key, so that it hears him, and the LIDs of both.
    pub(super) fn ask_own_port(&mut self) {
        let Some((end, guid)) = self.observed.as_ref().and_then(|observed| {
            let end = own_end(observed);
            Some((end, observed.fabric.get(end.node)?.guid))
        }) else {
            return;
        };
        let port = self.own.guid;
        let keys = self.keys().candidates(port);
        let known = self.keys().of(port);
        let wanted = self.settings.m_keys.key_of(port);
        let other = keys.into_iter().find(|key| *key == wanted && *key != known);
        for key in [Some(known), other].into_iter().flatten() {
            let request =
                SmpRequest::get::<PortInfo>(mad::types::DirectedPath::LOCAL, guid, end.port.0.into());
            // The next poll waits for it.
            let timeout = Some(self.poll_timeout());
            let request = SmpRequest { m_key: key, retries: Some(0), timeout, ..request };
            self.transactions.submit(request.into_transaction(), Token::OwnPort);
        }
    }

    pub(super) fn own_port_answered(&mut self, answer: &Answer) {
        let Some(info) = answer.attribute::<PortInfo>() else { return };
        let key = info.m_key.key();
        let port = self.own.guid;
        if key.is_some() && self.keys().of(port) != key {
            self.keys_mut().learn(port, key, info.m_key_protect_bits());
        }
        if let Some(observed) = &mut self.observed {
            let end = own_end(observed);
            let level = |info: &PortInfo| if key.is_some() { info.m_key_protect_bits() } else { 0 };
            let lids = |info: &PortInfo| (info.base_lid.get(), info.master_sm_lid.get());
            let what = |info: &PortInfo| (level(info), lids(info), info.port_state());
            if observed.port_info(end).is_some_and(|known| what(known) != what(&info)) {
                Arc::make_mut(observed).record_port_info(end, &info);
            }
        }
    }
}
