//! Which key a question carries, and what an answer tells of the key of its port (B67).

use std::sync::Arc;

use mad::types::{Guid, MKey, PortNum};
use mad::wire::smp::PortInfo;
use routing::fabric::PortRef;

use super::{Ask, Place, Sweep, What};
use crate::keys::{KeyMemory, KeyRing, Locked, entered_port};
use crate::observed::FindingKind;
use crate::request::SmpRequest;

/// Tries after the first of a question with a key that is only tried.
const RETRIES: u32 = 1;

impl Sweep {
    /// Gives a question its key.
    pub(super) fn lock_up(&self, what: &What, request: SmpRequest) -> SmpRequest {
        if !self.keys.in_use() {
            return request;
        }
        match what {
            What::Node(place) => self.first_untried_behind(*place, request),
            What::Recheck { old, .. } => self.first_untried_behind(Some(*old), request),
            What::Port { guid, port, .. } => {
                self.first_untried(self.by_its_own_way(request, (*guid, *port)), (*guid, *port))
            }
            // It is answered by a program, which gets to see no key that it need not.
            What::Manager(_) | What::Twin(_) if self.keys.policy().protect < 2 => request,
            _ => self.known_key(request),
        }
    }

    fn known_key(&self, request: SmpRequest) -> SmpRequest {
        match self.observed() {
            Some(observed) => request.with_key(&self.keys, observed),
            None => request,
        }
    }

    /// Keys for whoever is behind a port, in the order in which they are tried.
    fn behind(&self, place: Option<Place>) -> Vec<MKey> {
        match place {
            Some(place) => self.keys.candidates_behind(place, |port| self.port_guids.contains_key(&port)),
            None => self.keys.candidates_of_own(self.settings.own),
        }
    }

    fn first_untried_behind(&self, place: Option<Place>, request: SmpRequest) -> SmpRequest {
        let Some(tried) = self.tried_behind.get(&place) else {
            let first = match place {
                Some(place) => self.keys.first_behind(place),
                None => self.behind(None).first().copied().unwrap_or_default(),
            };
            return SmpRequest { m_key: first, ..request };
        };
        let key = self.behind(place).into_iter().find(|key| !tried.contains(key)).unwrap_or_default();
        SmpRequest { m_key: key, retries: Some(RETRIES), ..request }
    }

    /// A port of an adapter shows its key to nobody who comes in by another port.
    fn by_its_own_way(&self, request: SmpRequest, place: Place) -> SmpRequest {
        let path = || {
            let (end, observed) = (self.end(place)?, self.observed()?);
            let host = !observed.fabric.node(end.node).is_switch();
            observed.path_to(end).filter(|_| host)
        };
        SmpRequest { path: path().unwrap_or(request.path), ..request }
    }

    fn first_untried(&self, request: SmpRequest, place: Place) -> SmpRequest {
        let end = self.end(place);
        let port = end.and_then(|end| self.observed()?.fabric.port(end)).map(|port| port.guid);
        let next = port.and_then(|port| Some((port, self.tried.get(&port)?))).and_then(|(port, tried)| {
            self.keys.candidates(port).into_iter().find(|key| !tried.contains(key))
        });
        match next {
            Some(m_key) => SmpRequest { m_key, ..request },
            None => self.known_key(request),
        }
    }

    /// Nobody answered who is behind a port: he may want another key. False: all were tried.
    pub(super) fn try_another_key_behind(&mut self, ask: Ask) -> bool {
        let What::Node(place) = ask.what else { return false };
        if !self.keys.in_use() {
            return false;
        }
        let candidates = self.behind(place);
        let tried = self.tried_behind.entry(place).or_default();
        tried.push(ask.key);
        let more = candidates.iter().any(|key| !tried.contains(key));
        if more {
            self.queue.push_back(Ask { again: true, ..ask });
        }
        more
    }

    /// A port that may hold one of several keys, since a change of it was not confirmed, did not answer to the first. False: all
    /// were tried, or there is but one.
    pub(super) fn try_another_key(&mut self, ask: Ask) -> bool {
        let Some(port) = self.guarding(&ask.what) else { return false };
        let Some(held) = self.keys.held().get(&port).filter(|held| held.keys.len() > 1) else { return false };
        let tried = self.tried.entry(port).or_default();
        if !tried.contains(&ask.key) {
            tried.push(ask.key);
        }
        let Some(next) = held.keys.iter().copied().find(|key| !tried.contains(key)) else { return false };
        self.keys_mut().believe(port, next);
        self.queue.push_back(ask);
        true
    }

    /// The port whose key a question needs.
    fn guarding(&self, what: &What) -> Option<Guid> {
        let observed = self.observed().filter(|_| self.keys.in_use())?;
        if let What::Port { guid, port, .. } = what
            && let Some(end) = self.end((*guid, *port))
            && !observed.fabric.node(end.node).is_switch()
        {
            return Some(observed.fabric.port(end)?.guid);
        }
        let guid = what.node()?;
        entered_port(observed, guid, &self.path(guid)?)
    }

    /// Who answered to a key may hold it; PortInfo will tell.
    pub(super) fn believe_key(&mut self, port: Guid, key: MKey) {
        if key.is_some() && self.keys.of(port) != key {
            self.keys_mut().believe(port, key);
        }
    }

    /// Learns from the PortInfo of an end port. False: it is asked once more with another key, or left out.
    pub(super) fn learn_key(&mut self, end: PortRef, info: &PortInfo, ask: &Ask) -> bool {
        let (shown, protect) = (info.m_key.key(), info.m_key_protect_bits());
        if !shown.is_some() && protect == 0 && !self.keys.in_use() && self.keys.locked().is_empty() {
            return true;
        }
        let Some(port) = self.observed().and_then(|o| o.fabric.port(end)).map(|port| port.guid) else {
            return true;
        };
        // Level 0 hides nothing; above 1 nobody gets an answer but who knows the key, or where there is none.
        if shown.is_some() || protect != 1 {
            self.tried.remove(&port);
            if self.keys.of(port) != shown || self.keys.needs_learning(port, shown, protect) {
                self.keys_mut().learn(port, shown, protect);
            }
            return true;
        }
        let tried = self.tried.entry(port).or_default();
        tried.push(ask.key);
        if self.keys.candidates(port).iter().any(|key| !tried.contains(key)) {
            self.queue.push_back(Ask { again: false, ..*ask });
            return false;
        }
        self.tried.remove(&port);
        self.hidden(end, port, Locked { protect, lease_s: info.m_key_lease_period.get(), refused: false })
    }

    /// No key that is known opens a port. A switch that has refused a Set already can't be used; whatever else it is keeps what
    /// it holds.
    fn hidden(&mut self, end: PortRef, port: Guid, locked: Locked) -> bool {
        let refused = self.keys.locked().get(&port).is_some_and(|before| before.refused);
        let locked = Locked { refused, ..locked };
        if self.keys.locked().get(&port) != Some(&locked) {
            self.keys_mut().lock(port, locked);
        }
        let Some(observed) = self.observed() else { return true };
        let node = observed.fabric.node(end.node);
        if !(refused
            && node.is_switch()
            && end.port == PortNum::MANAGEMENT
            && end.node != observed.local.node)
        {
            return true;
        }
        let guid = node.guid;
        self.refuse_node(guid, FindingKind::Locked, &locked.to_string());
        false
    }

    /// Notes where ports with keys are.
    pub(super) fn close_keys(&mut self) {
        let Some(observed) = self.observed.clone().filter(|_| self.keys.in_use()) else { return };
        KeyRing::meet_all(&mut self.keys, &observed);
    }

    fn keys_mut(&mut self) -> &mut KeyRing {
        Arc::make_mut(&mut self.keys)
    }

    /// What another manager knew of keys, when that comes late.
    pub fn add_keys(&mut self, memory: &KeyMemory) {
        self.keys_mut().add(memory);
    }
}
