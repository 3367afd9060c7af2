//! Forwarding and SL-to-VL tables as far as they are known: from reads, and from Sets that were confirmed in this life of the switch
//! (B04, B20). Nothing else counts as known.
//!
//! Memory: 65 bytes for each block of 64 LIDs of each switch.

use std::collections::BTreeMap;

use mad::types::Guid;
use mad::wire::smp::SlToVlMappingTable;
use routing::routes::LFT_BLOCK;

use crate::observed::Observed;
use crate::sweep::FoundTable;

/// A block of a table.
pub type Block = [u8; LFT_BLOCK];

/// Known content by switch and block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownTables {
    by_guid: BTreeMap<Guid, Vec<Option<Block>>>,
    /// By node and pair of ports ([`crate::plan::lanes::LanePlan::key`]).
    lanes: BTreeMap<Guid, BTreeMap<u32, SlToVlMappingTable>>,
}

impl KnownTables {
    /// What a block holds, where that is known.
    pub fn get(&self, switch: Guid, block: usize) -> Option<&Block> {
        self.blocks(switch).get(block)?.as_ref()
    }

    /// All blocks of a switch; empty when nothing is known of it.
    pub fn blocks(&self, switch: Guid) -> &[Option<Block>] {
        self.by_guid.get(&switch).map_or(&[], Vec::as_slice)
    }

    /// The SL-to-VL table of a pair of ports.
    pub fn lanes(&self, node: Guid, key: u32) -> Option<SlToVlMappingTable> {
        self.lanes.get(&node)?.get(&key).copied()
    }

    /// A confirmed Set or a read of an SL-to-VL table.
    pub fn confirm_lanes(&mut self, node: Guid, key: u32, table: SlToVlMappingTable) {
        self.lanes.entry(node).or_default().insert(key, table);
    }

    /// A Set of an SL-to-VL table that was not confirmed.
    pub fn doubt_lanes(&mut self, node: Guid, key: u32) {
        if let Some(tables) = self.lanes.get_mut(&node) {
            tables.remove(&key);
        }
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
        self.lanes.remove(&switch);
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
        self.lanes.retain(|guid, _| observed.fabric.find(*guid).is_some());
    }
}
