//! Forwarding tables as far as they are known: from reads, and from Sets that were confirmed in this life of the switch
//! (B04, B20). Nothing else counts as known.
//!
//! Memory: 65 bytes for each block of 64 LIDs of each switch.

use std::collections::BTreeMap;

use mad::types::Guid;
use routing::routes::LFT_BLOCK;

use crate::observed::Observed;
use crate::sweep::FoundTable;

/// A block of a table.
pub type Block = [u8; LFT_BLOCK];

/// Known content by switch and block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownTables {
    by_guid: BTreeMap<Guid, Vec<Option<Block>>>,
}

impl KnownTables {
    /// What a block holds, where that is known.
    pub fn get(&self, switch: Guid, block: usize) -> Option<&Block> {
        self.by_guid.get(&switch)?.get(block)?.as_ref()
    }

    /// Whether anything is known of a switch.
    pub fn knows(&self, switch: Guid) -> bool {
        self.by_guid.contains_key(&switch)
    }

    /// The switches of which something is known.
    pub fn switches(&self) -> impl Iterator<Item = Guid> + '_ {
        self.by_guid.keys().copied()
    }

    /// A confirmed Set or a read.
    pub fn confirm(&mut self, switch: Guid, block: usize, content: &Block) {
        let blocks = self.by_guid.entry(switch).or_default();
        if blocks.len() <= block {
            blocks.resize(block + 1, None);
        }
        blocks[block] = Some(*content);
    }

    /// A Set that was not confirmed: the block may hold the old or the new content.
    pub fn doubt(&mut self, switch: Guid, block: usize) {
        if let Some(slot) = self.by_guid.get_mut(&switch).and_then(|blocks| blocks.get_mut(block)) {
            *slot = None;
        }
    }

    /// The switch was reset.
    pub fn forget(&mut self, switch: Guid) {
        self.by_guid.remove(&switch);
    }

    /// Takes in what a sweep read.
    pub fn take(&mut self, found: BTreeMap<Guid, FoundTable>) {
        for (guid, table) in found {
            self.by_guid.insert(guid, table.blocks);
        }
    }

    /// Forgets switches that are not in the picture: when they come back, it is with another table for all we know.
    pub fn retain_present(&mut self, observed: &Observed) {
        self.by_guid.retain(|guid, _| observed.fabric.find(*guid).is_some());
    }
}
