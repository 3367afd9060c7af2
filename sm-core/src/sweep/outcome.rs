//! What a sweep ends with.

use std::collections::BTreeMap;
use std::sync::Arc;

use mad::types::{Guid, PortState};
use routing::routes::LFT_BLOCK;

use super::{Guids, Sweep};
use crate::keys::KeyRing;
use crate::observed::{Finding, NodeTables, Observed, ObservedNode};

/// Blocks of a linear forwarding table as they were read; `None` for one that was not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundTable {
    /// By block number.
    pub blocks: Vec<Option<[u8; LFT_BLOCK]>>,
}

/// Why a sweep found nothing at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SweepError {
    /// Our own node did not tell who it is.
    #[error("our own port does not answer subnet management packets: {0}")]
    LocalNode(String),
    /// A look found that a cable between switches leads elsewhere: what it read may be of other nodes than it asked.
    #[error("a cable between switches was moved: the fabric is walked from nothing")]
    Moved,
}

/// A finished sweep.
#[derive(Clone, Debug)]
pub struct SweepResult {
    /// The picture.
    pub observed: Arc<Observed>,
    /// Tables that were read.
    pub tables: BTreeMap<Guid, FoundTable>,
    /// Switches that were reset since the picture before: what was known of their tables holds no longer (B04).
    pub reset: Guids,
    /// What this sweep met that was wrong; also in the picture, unless nothing has changed there.
    pub findings: Vec<Finding>,
    /// Whether anything differs from the picture that a look began with. Always true of a full sweep.
    pub changed: bool,
    /// What is known of keys now.
    pub keys: Arc<KeyRing>,
    /// Whether a manager runs on another node with a GUID of our own.
    pub own_twin: bool,
    /// Whether a cable was moved meanwhile, so that it is worth looking again soon.
    pub look_again: bool,
}

impl Sweep {
    /// Closes a sweep that is done. `before` is the picture that held until now.
    ///
    /// # Errors
    /// Our own port did not answer.
    pub fn finish(mut self, before: Option<&Arc<Observed>>) -> Result<SweepResult, SweepError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        if self.look.as_ref().is_some_and(|look| look.moved) {
            return Err(SweepError::Moved);
        }
        let looked = self.look.is_some();
        let same = |a: &Arc<Observed>, b: Option<&Arc<Observed>>| b.is_some_and(|b| Arc::ptr_eq(a, b));
        if !looked || !self.observed.as_ref().is_some_and(|now| same(now, before)) {
            self.renew_paths();
        }
        self.close_keys();
        let Some(mut observed) = self.observed else {
            return Err(SweepError::LocalNode("no answer".into()));
        };
        if !looked {
            observed = Arc::new(observed.in_walking_order());
        }
        let changed = !looked || !same(&observed, before);
        if changed {
            Arc::make_mut(&mut observed).findings.clone_from(&self.findings);
        }
        let reset = match before {
            Some(before) if changed => resets(before, &observed),
            _ => Guids::new(),
        };
        if !reset.is_empty() {
            let now = Arc::make_mut(&mut observed);
            for id in reset.iter().filter_map(|guid| now.fabric.find(*guid)).collect::<Vec<_>>() {
                if let Some(node) = now.nodes.get_mut(&id) {
                    node.tables = NodeTables::default();
                }
            }
        }
        Ok(SweepResult {
            observed,
            tables: self.tables,
            reset,
            findings: self.findings,
            changed,
            keys: self.keys,
            own_twin: self.own_twin,
            look_again: self.look_again,
        })
    }
}

/// Switches that lost their settings between two pictures.
fn resets(before: &Observed, now: &Observed) -> Guids {
    let reset = |guid: &Guid| {
        let node = |o: &Observed| Some(o.nodes.get(&o.fabric.find(*guid)?)?.clone());
        node(before).zip(node(now)).is_some_and(|(old, new)| was_reset(&old, &new))
    };
    now.fabric.switches().map(|(_, node)| node.guid).filter(reset).collect()
}

/// A reset clears LinearFDBTop and port 0's LID, and takes every link through INIT.
fn was_reset(old: &ObservedNode, new: &ObservedNode) -> bool {
    let top = |n: &ObservedNode| n.switch_info.map(|i| i.linear_fdb_top.get());
    let lid = |n: &ObservedNode| n.ports.first().copied().flatten().map(|p| p.base_lid.get());
    let active = |n: &ObservedNode, i: usize| {
        n.ports.get(i).copied().flatten().and_then(|p| p.port_state()) == Some(PortState::Active)
    };
    let mut links = (1..old.ports.len()).filter(|i| active(old, *i)).peekable();
    let all_fell = links.peek().is_some() && links.all(|i| !active(new, i));
    top(old) != top(new) || lid(old) != lid(new) || all_fell
}
