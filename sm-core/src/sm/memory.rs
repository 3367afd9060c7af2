//! What the manager remembers from before: whether it is of this fabric at all.

use std::sync::Arc;

use super::{Action, Sm};
use crate::multicast::MulticastDemand;
use crate::observed::Observed;
use crate::store::is_of_another_fabric;

impl Sm {
    /// Decides after the first full sweep whether what was restored is used. A state of another fabric is forgotten, and
    /// whoever keeps it is told to set it aside; the LIDs that ports hold are adopted then.
    pub(super) fn check_memory(&mut self, observed: &Observed) {
        if !std::mem::take(&mut self.memory_is_doubtful) || !is_of_another_fabric(&self.memory, observed) {
            return;
        }
        self.memory = Arc::default();
        self.multicast.demand = Arc::new(MulticastDemand::default());
        self.actions.push_back(Action::AnotherFabric);
        self.fail(
            "the saved state is of another fabric: none of its ports is here; it is set aside and not used"
                .into(),
        );
    }
}
