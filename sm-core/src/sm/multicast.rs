//! When multicast tables are computed and sent: whenever the groups or the graph are not those of the tables in force.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use mad::types::{Guid, Timestamp};
use routing::fabric::SwitchGraph;

use super::{Action, Phase, Sm};
use crate::multicast::{KnownMulticast, MulticastApplied, MulticastApply, MulticastDemand, plan};

/// Pause before what was not confirmed is tried again: twice as long after each failure, up to the longest.
const PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// Demand and tables.
#[derive(Debug, Default)]
pub(super) struct MulticastState {
    /// The last demand.
    pub(super) demand: Arc<MulticastDemand>,
    /// Blocks that any demand so far used.
    blocks: u16,
    /// What the switches hold.
    pub(super) known: KnownMulticast,
    /// Switches that were met in service: others may have written entries there of which we have never heard.
    pub(super) foreign: BTreeSet<Guid>,
    /// The demand and the graph that the tables were computed for.
    computed: Option<(u64, Arc<SwitchGraph>)>,
    /// When to try again what failed.
    retry_at: Option<Timestamp>,
    /// Failures in a row with one demand and graph.
    failures: u32,
}

impl MulticastState {
    /// With groups that were carried before.
    pub(super) fn with_demand(demand: Arc<MulticastDemand>) -> Self {
        Self { demand, ..Self::default() }
    }

    /// When something is to be tried again.
    pub(super) const fn deadline(&self) -> Option<Timestamp> {
        self.retry_at
    }

    /// Others may have written: nothing is known any more.
    pub(super) fn forget(&mut self) {
        (self.known, self.computed, self.retry_at) = (KnownMulticast::default(), None, None);
    }

    fn is_due(&self, graph: &Arc<SwitchGraph>, now: Timestamp) -> bool {
        let same = self
            .computed
            .as_ref()
            .is_some_and(|(generation, of)| *generation == self.demand.generation && Arc::ptr_eq(of, graph));
        !same || self.retry_at.is_some_and(|at| at <= now)
    }
}

impl Sm {
    /// Begins to send multicast tables if they are not those that are wanted. True when it began.
    pub(super) fn begin_multicast(&mut self, now: Timestamp) -> bool {
        if !self.may_write() || !self.transactions.is_idle() {
            return false;
        }
        let (Some(snapshot), Some(observed)) = (&self.snapshot, &self.observed) else { return false };
        if !self.multicast.is_due(&snapshot.graph, now) {
            return false;
        }
        let state = &mut self.multicast;
        let graph = Arc::clone(&snapshot.graph);
        if state.retry_at.is_none_or(|at| at > now) {
            state.failures = 0; // something else is wanted
        }
        state.computed = Some((state.demand.generation, Arc::clone(&graph)));
        state.retry_at = None;
        state.blocks = state.blocks.max(state.demand.blocks());
        let proof = self.plan.as_ref().map(|plan| plan.standing.proof());
        let goal = Arc::new(plan(snapshot, &state.demand, proof));
        let known = std::mem::take(&mut state.known);
        let read = (state.blocks, state.foreign.clone());
        let apply = MulticastApply::new(graph, Arc::clone(observed), goal, read, known);
        self.phase = Phase::Multicast(Box::new(apply));
        true
    }

    pub(super) fn multicast_applied(&mut self, applied: MulticastApplied, now: Timestamp) {
        self.multicast.known = applied.known;
        for failure in &applied.failures {
            tracing::warn!("{failure}");
        }
        if applied.failures.is_empty() {
            self.multicast.failures = 0;
            self.multicast.foreign.clear();
        } else {
            let pause = PAUSE * 2_u32.pow(self.multicast.failures.min(8));
            self.multicast.retry_at = Some(now + pause.min(LONGEST_PAUSE));
            self.multicast.failures += 1;
        }
        let Some(old) = self.snapshot.as_ref().filter(|_| applied.sets > 0) else { return };
        self.round.generation += 1;
        let tables = Arc::new(self.multicast.known.tables(&old.graph));
        let snapshot = Arc::new((**old).clone().with_multicast(self.round.generation, tables));
        self.snapshot = Some(Arc::clone(&snapshot));
        self.actions.push_back(Action::Publish(snapshot));
    }
}
