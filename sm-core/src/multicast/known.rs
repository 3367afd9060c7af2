//! What the switches' multicast tables hold, as far as replies said so in this life of each switch (B04, B20).

use std::collections::BTreeMap;

use mad::types::Guid;
use routing::fabric::{Fabric, SwitchGraph, SwitchIndex};
use routing::multicast::{MFT_BLOCK, MftBlock, MulticastTables};

type Masks = [u16; MFT_BLOCK as usize];

/// Known blocks by switch, block and position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownMulticast {
    by_guid: BTreeMap<Guid, BTreeMap<(u16, u8), Masks>>,
}

impl KnownMulticast {
    /// Whether a block of a switch is known.
    pub fn knows(&self, switch: Guid, block: u16, position: u8) -> bool {
        self.by_guid.get(&switch).is_some_and(|blocks| blocks.contains_key(&(block, position)))
    }

    /// Whether a block of a switch is known to hold any entry.
    pub fn uses(&self, switch: Guid, block: u16) -> bool {
        let Some(blocks) = self.by_guid.get(&switch) else { return false };
        blocks.range((block, 0)..=(block, u8::MAX)).any(|(_, masks)| masks.iter().any(|mask| *mask != 0))
    }

    /// A reply said what a block holds.
    pub fn confirm(&mut self, switch: Guid, block: &MftBlock) {
        self.by_guid.entry(switch).or_default().insert((block.block, block.position), block.masks);
    }

    /// A Set was not answered: the block may hold the old or the new content.
    pub fn doubt(&mut self, switch: Guid, block: u16, position: u8) {
        if let Some(blocks) = self.by_guid.get_mut(&switch) {
            blocks.remove(&(block, position));
        }
    }

    /// The switch was reset.
    pub fn forget(&mut self, switch: Guid) {
        self.by_guid.remove(&switch);
    }

    /// Forgets the switches that are not in the picture: when they come back, it is with another table for all we know.
    pub fn retain_present(&mut self, fabric: &Fabric) {
        self.by_guid.retain(|guid, _| fabric.find(*guid).is_some());
    }

    /// The known blocks as tables; what is not known is empty there.
    pub fn tables(&self, graph: &SwitchGraph) -> MulticastTables {
        let mut tables = MulticastTables::new(graph.switch_count());
        for switch in 0..graph.switch_count() as SwitchIndex {
            for ((block, position), masks) in self.by_guid.get(&graph.guid(switch)).into_iter().flatten() {
                tables.set_block(&MftBlock { switch, block: *block, position: *position, masks: *masks });
            }
        }
        tables
    }
}
