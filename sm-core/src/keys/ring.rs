//! What is known of the keys that ports hold.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use mad::types::{DirectedPath, Guid, MKey, PortNum};
use routing::fabric::PortRef;

use super::KeyPolicy;
use crate::observed::Observed;
use crate::sweep::Place;

/// Keys of one port that are remembered.
const MOST_ALTERNATIVES: usize = 4;
/// Keys of ports that are missed, tried with somebody silent in a new place.
const MOST_MISSED: usize = 8;

/// What is remembered of a port's key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldKeys {
    /// The key that it showed last, then those that it may hold instead.
    pub keys: Vec<MKey>,
    /// Whether it may answer nothing to whoever has not its key.
    pub silent: bool,
    /// The other ends of the cables over which it guards its node: where it is met before anybody can know who it is.
    pub at: Vec<Place>,
}

/// Ports with their keys.
pub type KeyMemory = BTreeMap<Guid, HeldKeys>;

/// A port that hides a key which is not among those known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Locked {
    /// M_KeyProtectBits.
    pub protect: u8,
    /// M_KeyLeasePeriod in seconds; 0: without end.
    pub lease_s: u16,
    /// Whether a Set without a key was tried in vain: a port that has bits to protect it and no key hides nothing.
    pub refused: bool,
}

impl fmt::Display for Locked {
    /// What is the matter, and what the operator can do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "locked with an M_Key that is not known (protection level {}): ", self.protect)?;
        match self.lease_s {
            0 => {
                f.write_str("its lease has no end, so name the key in m_key.before_file or reset the device")
            }
            lease => write!(
                f,
                "it opens when its lease of {lease} s has run out, or name the key in m_key.before_file"
            ),
        }
    }
}

/// The keys of a fabric, as far as they are known and as they shall be.
#[derive(Clone, Debug, Default)]
pub struct KeyRing {
    policy: Arc<KeyPolicy>,
    held: KeyMemory,
    places: BTreeMap<Place, Guid>,
    locked: BTreeMap<Guid, Locked>,
}

impl KeyRing {
    /// Nothing but what is remembered.
    pub fn new(policy: Arc<KeyPolicy>, held: KeyMemory) -> Self {
        let mut ring = Self { policy, ..Self::default() };
        ring.add(&held);
        ring
    }

    /// Whether any port may hold a key.
    pub fn in_use(&self) -> bool {
        self.policy.is_some() || !self.held.is_empty() || !self.policy.before.is_empty()
    }

    /// What is wanted.
    pub fn policy(&self) -> &KeyPolicy {
        &self.policy
    }

    /// The same, shared.
    pub const fn shared_policy(&self) -> &Arc<KeyPolicy> {
        &self.policy
    }

    /// Something else is wanted from now on.
    pub fn set_policy(&mut self, policy: Arc<KeyPolicy>) {
        self.policy = policy;
    }

    /// What is to be remembered.
    pub const fn held(&self) -> &KeyMemory {
        &self.held
    }

    /// Ports that hide a key which nobody here knows.
    pub const fn locked(&self) -> &BTreeMap<Guid, Locked> {
        &self.locked
    }

    /// The key of a port; none where that is not known.
    pub fn of(&self, port: Guid) -> MKey {
        self.held.get(&port).and_then(|held| held.keys.first()).copied().unwrap_or_default()
    }

    /// The key of the port by which a request enters a node.
    pub fn of_request(&self, observed: &Observed, node: Guid, path: &DirectedPath) -> MKey {
        if !self.in_use() {
            return MKey::NONE;
        }
        entered_port(observed, node, path).map_or(MKey::NONE, |port| self.of(port))
    }

    /// Keys that a port may hold, the likeliest first.
    pub fn candidates(&self, port: Guid) -> Vec<MKey> {
        let held = self.held.get(&port).into_iter().flat_map(|held| held.keys.iter().copied());
        let wanted = port.is_some().then(|| self.policy.key_of(port)).into_iter().chain(self.policy.of_all());
        distinct(held.chain(wanted).chain(self.policy.before.iter().copied()))
    }

    /// Keys with which to ask our own port who it is.
    pub fn candidates_of_own(&self, port: Guid) -> Vec<MKey> {
        let mut keys = self.candidates(port);
        let silent = self.held.get(&port).is_some_and(|held| held.silent);
        keys.insert(usize::from(silent).min(keys.len()), MKey::NONE);
        keys
    }

    /// Keys with which to ask who is behind a port: without any where none is needed, since nobody knows yet who will see it.
    pub fn candidates_behind(&self, place: Place, met: impl Fn(Guid) -> bool) -> Vec<MKey> {
        let there = self.places.get(&place).and_then(|port| self.held.get(port));
        let there: Vec<MKey> = there.into_iter().flat_map(|held| held.keys.iter().copied()).collect();
        let missed = self.held.iter().filter(|(port, _)| !met(**port)).take(MOST_MISSED);
        let missed = missed.flat_map(|(_, held)| held.keys.iter().copied());
        let others = self.policy.of_all().into_iter().chain(missed).chain(self.policy.before.iter().copied());
        let mut keys = distinct(there.iter().copied().chain(others));
        let first = usize::from(self.first_behind(place).is_some());
        keys.insert(first.min(keys.len()), MKey::NONE);
        keys
    }

    /// The first of these.
    pub fn first_behind(&self, place: Place) -> MKey {
        let there = self.places.get(&place).and_then(|port| self.held.get(port));
        let key = there.filter(|held| held.silent).and_then(|held| held.keys.first());
        key.copied().unwrap_or_default()
    }

    /// A port showed its key, and how it is protected (M_KeyProtectBits).
    pub fn learn(&mut self, port: Guid, key: MKey, protect: u8) {
        self.locked.remove(&port);
        if !key.is_some() {
            if let Some(left) = self.held.remove(&port) {
                self.places.retain(|place, _| !left.at.contains(place));
            }
            return;
        }
        let held = self.held.entry(port).or_default();
        if held.keys != [key] {
            held.keys = vec![key];
        }
        held.silent = protect >= 2;
    }

    /// A port answered to a key, which it may hold.
    pub fn believe(&mut self, port: Guid, key: MKey) {
        let keys = &mut self.held.entry(port).or_default().keys;
        keys.retain(|known| *known != key);
        keys.insert(0, key);
        keys.truncate(MOST_ALTERNATIVES);
    }

    /// Whether a port's key is in doubt although it shows the one that is known.
    pub fn needs_learning(&self, port: Guid, key: MKey, protect: u8) -> bool {
        let same = |held: &HeldKeys| held.keys == [key] && held.silent == (protect >= 2);
        let sure = self.held.get(&port).is_none_or(same);
        !sure || self.locked.contains_key(&port)
    }

    /// Notes where the ports with keys are; what is shared stays shared where nothing has moved.
    pub fn meet_all(ring: &mut Arc<Self>, observed: &Observed) {
        let mut met = Vec::new();
        for (node, facts) in observed.fabric.nodes() {
            for (number, port) in facts.end_ports() {
                let Some(held) = ring.held.get(&port.guid) else { continue };
                let own = facts.numbered_ports().filter(|(other, _)| facts.is_switch() || *other == number);
                let peers = own.filter_map(|(port, _)| observed.fabric.peer(PortRef { node, port }));
                let place = |peer: PortRef| Some((observed.fabric.get(peer.node)?.guid, peer.port));
                let at: Vec<Place> = peers.filter_map(place).collect();
                if held.at != at && !at.is_empty() {
                    met.push((port.guid, at));
                }
            }
        }
        if !met.is_empty() {
            let ring = Arc::make_mut(ring);
            met.into_iter().for_each(|(port, at)| ring.meet(port, at));
        }
    }

    /// A port was met at the other ends of these cables.
    fn meet(&mut self, port: Guid, at: Vec<Place>) {
        let Some(held) = self.held.get_mut(&port) else { return };
        let before = std::mem::replace(&mut held.at, at);
        for place in before.iter().filter(|place| !held.at.contains(place)) {
            if self.places.get(place) == Some(&port) {
                self.places.remove(place);
            }
        }
        self.places.extend(held.at.iter().map(|place| (*place, port)));
    }

    /// A port is about to be given a key, and may hold it from then on.
    pub fn expect(&mut self, port: Guid, key: MKey) {
        let held = self.held.entry(port).or_default();
        held.silent |= self.policy.protect >= 2;
        if held.keys.is_empty() {
            held.keys.push(MKey::NONE);
        }
        if !held.keys.contains(&key) {
            held.keys.insert(1, key);
            held.keys.truncate(MOST_ALTERNATIVES);
        }
    }

    /// A port hides a key, and none that is known is it.
    pub fn lock(&mut self, port: Guid, locked: Locked) {
        let refused = locked.refused || self.locked.get(&port).is_some_and(|before| before.refused);
        self.locked.insert(port, Locked { refused, ..locked });
    }

    /// What is remembered elsewhere, of ports of which nothing is known here.
    pub fn add(&mut self, memory: &KeyMemory) {
        for (port, held) in memory {
            let known = self.held.entry(*port).or_default();
            if known.at.is_empty() {
                known.at.clone_from(&held.at);
                for place in &held.at {
                    self.places.entry(*place).or_insert(*port);
                }
            }
            known.silent |= held.silent;
            known.keys = [&known.keys[..], &held.keys[..]].concat();
            let mut seen = Vec::new();
            known.keys.retain(|key| {
                !seen.contains(key) && {
                    seen.push(*key);
                    true
                }
            });
            known.keys.truncate(MOST_ALTERNATIVES);
        }
    }

    /// Forgets all that is known.
    pub fn forget(&mut self) {
        self.held.clear();
        self.places.clear();
        self.locked.clear();
    }
}

/// Each key once; no key is none.
fn distinct(keys: impl Iterator<Item = MKey>) -> Vec<MKey> {
    let mut found = Vec::new();
    for key in keys.filter(|key| key.is_some()) {
        if !found.contains(&key) {
            found.push(key);
        }
    }
    found
}

/// PortGUID of the port whose key guards what comes to a node by a route.
pub(crate) fn entered_port(observed: &Observed, node: Guid, path: &DirectedPath) -> Option<Guid> {
    let id = observed.fabric.find(node)?;
    let facts = observed.fabric.get(id)?;
    let port = if facts.is_switch() {
        PortNum::MANAGEMENT
    } else {
        let entry = observed.nodes.get(&id)?.entry_port;
        let ends = || facts.end_ports().map(|(port, _)| port);
        let reached = |port: &PortNum| observed.path_to(PortRef { node: id, port: *port }) == Some(*path);
        if reached(&entry) { entry } else { ends().find(reached).unwrap_or(entry) }
    };
    Some(facts.port(port)?.guid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::KeySource;

    const PORT: Guid = Guid(0x11);
    const PLACE: Place = (Guid(0x50), PortNum(3));

    fn ring(source: KeySource, protect: u8) -> KeyRing {
        let before = Arc::new(vec![MKey(8), MKey(9)]);
        KeyRing::new(
            Arc::new(KeyPolicy { source, before, protect, ..KeyPolicy::default() }),
            KeyMemory::new(),
        )
    }

    #[test]
    fn b67_an_old_key_is_known_until_the_new_one_is_confirmed() {
        let mut ring = ring(KeySource::One(MKey(2)), 1);
        ring.learn(PORT, MKey(1), 1);
        ring.expect(PORT, MKey(2));
        assert_eq!(ring.of(PORT), MKey(1));
        assert_eq!(ring.candidates(PORT), [MKey(1), MKey(2), MKey(8), MKey(9)]);
        ring.learn(PORT, MKey(2), 1);
        assert_eq!(ring.candidates(PORT), [MKey(2), MKey(8), MKey(9)]);
        ring.learn(PORT, MKey::NONE, 0);
        assert!(ring.held().is_empty());
    }

    #[test]
    fn b67_a_port_without_a_key_that_is_given_one_may_hold_either() {
        let mut ring = ring(KeySource::One(MKey(2)), 1);
        ring.expect(PORT, MKey(2));
        assert_eq!((ring.of(PORT), ring.candidates(PORT)[0]), (MKey::NONE, MKey(2)));
    }

    #[test]
    fn b67_whoever_is_not_known_is_asked_without_a_key_first_unless_he_was_there_and_would_not_answer() {
        for (protect, asked) in [(1, [MKey::NONE, MKey(1)]), (2, [MKey(1), MKey::NONE])] {
            let mut ring = ring(KeySource::None, protect);
            ring.learn(PORT, MKey(1), protect);
            ring.meet(PORT, vec![PLACE]);
            assert_eq!(ring.candidates_behind(PLACE, |_| true)[..2], asked);
            // Somewhere else: his key is tried last, and only while he is missed.
            let elsewhere = (Guid(0x51), PortNum(1));
            assert_eq!(ring.candidates_behind(elsewhere, |_| false), [MKey::NONE, MKey(1), MKey(8), MKey(9)]);
            assert_eq!(ring.candidates_behind(elsewhere, |_| true), [MKey::NONE, MKey(8), MKey(9)]);
        }
    }

    #[test]
    fn what_another_manager_remembers_is_tried_after_what_was_seen_here() {
        let mut ring = ring(KeySource::None, 1);
        ring.learn(PORT, MKey(1), 1);
        let held = HeldKeys { keys: vec![MKey(3), MKey(1)], silent: true, at: vec![PLACE] };
        ring.add(&KeyMemory::from([(PORT, held)]));
        assert_eq!(
            ring.held()[&PORT],
            HeldKeys { keys: vec![MKey(1), MKey(3)], silent: true, at: vec![PLACE] }
        );
    }
}
