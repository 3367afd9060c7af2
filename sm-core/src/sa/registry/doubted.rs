//! Memberships that nobody can vouch for: the port may have left while the manager was away, or the port from its sight, by telling
//! another manager.
//!
//! Where it is not known what ports have registered, or ports come back, they are told to register anew (`sm::tell`). Whoever is still a member joins
//! again within seconds: kernels do so at once, and pause for 16 s at most where they get no answer. A membership that its port
//! has not confirmed [`PATIENCE`] after it was told ends as by a leave. Whose port was not told, or does not answer, stays.
//!
//! Cost: O(doubted) where somebody was told, O(log doubted) for a join and for each that ends, O(1) to tell when.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mad::types::{Gid, Guid, Timestamp};
use mad::wire::sa::JoinState;

/// How long a port that was told may take to join again.
const PATIENCE: Duration = Duration::from_secs(120);

/// A member of a group, by MGID and the GUID that it joined with.
type Member = (Gid, Guid);

#[derive(Clone, Debug)]
struct Doubt {
    port: Guid,
    /// What the port has joined again.
    confirmed: JoinState,
    /// When it ends; `None` before the port was told.
    ends: Option<Timestamp>,
}

/// The doubted memberships.
#[derive(Clone, Debug, Default)]
pub(super) struct Doubted {
    members: BTreeMap<Member, Doubt>,
    /// Those that end, by when.
    ends: BTreeSet<(Timestamp, Member)>,
}

impl Doubted {
    /// A membership of a port is doubted, from nothing if it is already.
    pub(super) fn add(&mut self, member: Member, port: Guid) {
        self.remove(member);
        self.members.insert(member, Doubt { port, confirmed: JoinState(0), ends: None });
    }

    /// It has ended.
    pub(super) fn remove(&mut self, member: Member) {
        if let Some(at) = self.members.remove(&member).and_then(|doubt| doubt.ends) {
            self.ends.remove(&(at, member));
        }
    }

    /// The port joins again as `joined`, of all the ways in which it is a member.
    pub(super) fn confirm(&mut self, member: Member, joined: JoinState, all: JoinState) {
        let Some(doubt) = self.members.get_mut(&member) else { return };
        doubt.confirmed.0 |= joined.0;
        if all.0 & !doubt.confirmed.0 == 0 {
            self.remove(member);
        }
    }

    /// These ports have been told to register anew.
    pub(super) fn told(&mut self, ports: &BTreeSet<Guid>, now: Timestamp) {
        let waiting = self.members.iter_mut().filter(|(_, doubt)| doubt.ends.is_none());
        for (member, doubt) in waiting.filter(|(_, doubt)| ports.contains(&doubt.port)) {
            let at = now + PATIENCE;
            doubt.ends = Some(at);
            self.ends.insert((at, *member));
        }
    }

    /// The memberships that were not confirmed in time, and what was confirmed of each.
    pub(super) fn take_due(&mut self, now: Timestamp) -> Vec<(Member, JoinState)> {
        let mut due = Vec::new();
        while self.ends.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, member)) = self.ends.pop_first() else { break };
            due.extend(self.members.remove(&member).map(|doubt| (member, doubt.confirmed)));
        }
        due.sort_unstable_by_key(|(member, _)| *member);
        due
    }

    /// When the next one ends.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.ends.first().map(|(at, _)| *at)
    }
}
