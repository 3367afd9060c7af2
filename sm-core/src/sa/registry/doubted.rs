//! Memberships that nobody can vouch for: the port may have left while the manager was away, or the port from its sight, by telling
//! another manager.
//!
//! Where it is not known what ports have registered, or ports come back, they are told to register anew (`sm::tell`). Whoever is still a member joins
//! again within seconds: kernels do so at once, and pause for 16 s at most where they get no answer. A membership that its port
//! has not confirmed [`PATIENCE`] after it was told ends as by a leave. Whose port was not told, or does not answer, stays.
//!
//! Cost: O(doubted) where somebody was told, O(log doubted) for a join.

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
}

impl Doubted {
    /// A membership of a port is doubted, from nothing if it is already.
    pub(super) fn add(&mut self, member: Member, port: Guid) {
        self.members.insert(member, Doubt { port, confirmed: JoinState(0), ends: None });
    }

    /// It has ended.
    pub(super) fn remove(&mut self, member: Member) {
        self.members.remove(&member);
    }

    /// The port joins again as `joined`, of all the ways in which it is a member.
    pub(super) fn confirm(&mut self, member: Member, joined: JoinState, all: JoinState) {
        let Some(doubt) = self.members.get_mut(&member) else { return };
        doubt.confirmed.0 |= joined.0;
        if all.0 & !doubt.confirmed.0 == 0 {
            self.members.remove(&member);
        }
    }

    /// These ports have been told to register anew.
    pub(super) fn told(&mut self, ports: &BTreeSet<Guid>, now: Timestamp) {
        let waiting = self.members.values_mut().filter(|doubt| doubt.ends.is_none());
        waiting
            .filter(|doubt| ports.contains(&doubt.port))
            .for_each(|doubt| doubt.ends = Some(now + PATIENCE));
    }

    /// The memberships that were not confirmed in time, and what was confirmed of each.
    pub(super) fn take_due(&mut self, now: Timestamp) -> Vec<(Member, JoinState)> {
        if self.members.is_empty() {
            return Vec::new();
        }
        let due = self.members.extract_if(.., |_, doubt| doubt.ends.is_some_and(|at| at <= now));
        due.map(|(member, doubt)| (member, doubt.confirmed)).collect()
    }

    /// When the next one ends.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.members.values().filter_map(|doubt| doubt.ends).min()
    }
}
