//! What the manager remembers from before: whether it is of this fabric at all, and which LID it takes over.

use std::collections::BTreeMap;
use std::sync::Arc;

use mad::types::{Lid, PortState};
use mad::wire::smp::SmState;

use super::{Action, Phase, Role, Sm};
use crate::config::LidTakeover;
use crate::multicast::MulticastDemand;
use crate::observed::Observed;
use crate::plan::lids::{LidMemory, LidRange};
use crate::plan::own_end;
use crate::store::{Restored, is_of_another_fabric};

impl Sm {
    /// Decides after the first full sweep whether what was restored is used. A state of another fabric is forgotten, and
    /// whoever keeps it is told to set it aside; the LIDs that ports hold are adopted then.
    pub(super) fn check_memory(&mut self, observed: &Observed) {
        if !std::mem::take(&mut self.memory_is_doubtful) || !is_of_another_fabric(&self.memory, observed) {
            return;
        }
        self.memory = Arc::default();
        self.keys_mut().forget();
        self.multicast.demand = Arc::new(MulticastDemand::default());
        self.aliases = Arc::default();
        self.actions.push_back(Action::AnotherFabric);
        self.fail(
            "the saved state is of another fabric: none of its ports is here; it is set aside and not used"
                .into(),
        );
    }

    /// LID of the master that is watched, as our port was told it, or the last sweep saw it.
    pub fn master_lid(&self) -> Option<Lid> {
        let observed = self.observed.as_ref()?;
        let own = observed.port_info(own_end(observed)).filter(|_| self.role() == Role::Standby);
        let told = own.filter(|info| info.port_state() == Some(PortState::Active) && info.lid().is_some());
        if let Some(lid) = told.and_then(|info| Lid::new(info.master_sm_lid.get())) {
            return Some(lid);
        }
        let mut managers = observed.managers.iter();
        let master = match self.election.polls() {
            Some(guid) => managers.find(|m| m.guid == guid),
            None => managers.find(|m| m.info.state() == Some(SmState::Master)),
        }?;
        observed.fabric.port(master.port)?.lid
    }

    /// Goes on where the master before ended.
    pub(super) fn take_mirrored(&mut self, restored: Restored) {
        self.memory = Arc::new(restored.lids);
        self.memory_is_doubtful = false;
        self.memory_is_outdated = false;
        self.tell.resume(restored.served);
        self.save_served(true);
        self.ground.quirks = restored.quirks;
        self.keys_mut().add(&restored.keys);
        if let Phase::Sweeping(sweep) = &mut self.phase {
            sweep.add_keys(&restored.keys);
        }
        self.multicast.demand = restored.demand;
        self.aliases = restored.aliases;
        self.wishes.replan();
    }

    /// Whom ports in service take for the subnet manager, where that is nobody that we ever were: what was restored at our start is older than
    /// what they registered there.
    pub(super) fn was_another_s(&self, observed: &Observed) -> bool {
        let own = observed.fabric.port(own_end(observed));
        let remembered = own.and_then(|port| self.memory.get(&port.guid)).map(|range| range.base);
        let shown = abandoned_sm_lid(observed);
        shown.is_some() && shown != remembered && shown != own.and_then(|port| port.lid)
    }

    /// The LIDs that a plan starts from. A new master's port takes the LID by which hosts reach the master before, where no
    /// port has it any more: then no host has to be told, and only the entries for one destination change (B61).
    pub(super) fn memory_for_plan(&self, observed: &Observed) -> LidMemory {
        let mut memory = (*self.memory).clone();
        if self.memory_is_outdated {
            forget_renumbered(&mut memory, observed);
        }
        let takes = self.settings.lid_takeover == LidTakeover::WhenGone && self.role() != Role::Master;
        let own = observed.fabric.port(own_end(observed));
        if let Some((own, lid)) = own.zip(abandoned_sm_lid(observed)).filter(|_| takes && !self.reassign) {
            let lmc = memory.get(&own.guid).map_or(own.lmc, |range| range.lmc);
            if let Some(range) = LidRange::new(lid, lmc).filter(|range| is_free(observed, *range)) {
                memory.retain(|_, other| !other.overlaps(range));
                memory.insert(own.guid, range);
            }
        }
        memory
    }
}

/// The LID that most ports in service take for the subnet manager's, where no port holds it.
fn abandoned_sm_lid(observed: &Observed) -> Option<Lid> {
    let mut counts: BTreeMap<u16, usize> = BTreeMap::new();
    for (id, node) in observed.fabric.nodes() {
        let infos = node.end_ports().filter_map(|(port, _)| observed.nodes.get(&id)?.port_info(port));
        for info in infos {
            *counts.entry(info.master_sm_lid.get()).or_default() += 1;
        }
    }
    let (lid, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    Lid::new(lid)
}

/// Leaves out what another master may have changed: ports that hold LIDs keep those, and nobody else gets them.
fn forget_renumbered(memory: &mut LidMemory, observed: &Observed) {
    let ports = observed.fabric.nodes().flat_map(|(_, node)| node.end_ports().map(|(_, port)| port));
    let mut held = vec![false; usize::from(u16::MAX) + 1];
    for port in ports {
        if let Some(range) = port.lid.and_then(|lid| LidRange::new(lid, port.lmc)) {
            memory.remove(&port.guid);
            held[range.indices()].fill(true);
        }
    }
    memory.retain(|_, range| !held[range.indices()].contains(&true));
}

/// Whether no port holds a LID of the range.
fn is_free(observed: &Observed, range: LidRange) -> bool {
    let mut held = observed.fabric.nodes().flat_map(|(_, node)| node.end_ports());
    !held.any(|(_, port)| {
        let of_port = port.lid.and_then(|lid| LidRange::new(lid, port.lmc).or_else(|| LidRange::new(lid, 0)));
        of_port.is_some_and(|other| other.overlaps(range))
    })
}
