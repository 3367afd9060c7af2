//! The multicast forwarding tables of all switches, their difference in blocks, and the safe way from one to the other.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use mad::types::MulticastLid;

use super::{PortSet, Tree};
use crate::fabric::{SwitchGraph, SwitchIndex};

/// Entries of one MulticastForwardingTable block.
pub const MFT_BLOCK: u16 = 32;

/// What one MAD carries: the masks of 16 ports for 32 MLIDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MftBlock {
    /// The switch.
    pub switch: SwitchIndex,
    /// The first MLID is 0xC000 + 32 · block.
    pub block: u16,
    /// The first port is 16 · position, 0 to 15.
    pub position: u8,
    /// PortMasks.
    pub masks: [u16; MFT_BLOCK as usize],
}

impl MftBlock {
    /// AttributeModifier of the block: block number in bits 8–0, position in bits 31–28.
    pub fn attribute_modifier(&self) -> u32 {
        u32::from(self.position) << 28 | u32::from(self.block & 0x1ff)
    }
}

/// The tables. Entries without a port are not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MulticastTables {
    switches: Vec<BTreeMap<u16, PortSet>>,
}

impl MulticastTables {
    /// Empty tables of `switches` switches.
    pub fn new(switches: usize) -> Self {
        Self { switches: vec![BTreeMap::new(); switches] }
    }

    /// Number of switches.
    pub const fn switch_count(&self) -> usize {
        self.switches.len()
    }

    /// Enters a group's tree in place of what stood there.
    pub fn set_tree(&mut self, mlid: MulticastLid, tree: &Tree) {
        self.remove(mlid);
        for branch in &tree.branches {
            self.set_ports(branch.switch, mlid, branch.ports);
        }
    }

    /// Removes a group from all switches.
    pub fn remove(&mut self, mlid: MulticastLid) {
        for table in &mut self.switches {
            table.remove(&(mlid.index() as u16));
        }
    }

    /// The groups with entries in any switch.
    pub fn mlids(&self) -> BTreeSet<MulticastLid> {
        let indices = self.switches.iter().flat_map(BTreeMap::keys);
        indices
            .filter_map(|index| MulticastLid::new(MulticastLid::MIN.get().saturating_add(*index)))
            .collect()
    }

    /// The groups of a switch with the ports to which it copies their packets.
    pub fn entries(&self, switch: SwitchIndex) -> impl Iterator<Item = (MulticastLid, PortSet)> + '_ {
        self.switches.get(switch as usize).into_iter().flatten().filter_map(|(index, ports)| {
            Some((MulticastLid::new(MulticastLid::MIN.get().saturating_add(*index))?, *ports))
        })
    }

    /// The ports to which a switch copies packets for a group.
    pub fn ports(&self, switch: SwitchIndex, mlid: MulticastLid) -> PortSet {
        let table = self.switches.get(switch as usize);
        table.and_then(|table| table.get(&(mlid.index() as u16))).copied().unwrap_or_default()
    }

    /// Sets them; a switch beyond the tables is left alone.
    pub fn set_ports(&mut self, switch: SwitchIndex, mlid: MulticastLid, ports: PortSet) {
        let Some(table) = self.switches.get_mut(switch as usize) else { return };
        if ports.is_empty() {
            table.remove(&(mlid.index() as u16));
        } else {
            table.insert(mlid.index() as u16, ports);
        }
    }

    /// The number of blocks of a switch that hold entries: the highest with one, plus 1.
    pub fn blocks(&self, switch: SwitchIndex) -> u16 {
        let last = self.switches.get(switch as usize).and_then(|table| table.last_key_value());
        last.map_or(0, |(index, _)| index / MFT_BLOCK + 1)
    }

    /// One block of a switch.
    pub fn block(&self, switch: SwitchIndex, block: u16, position: u8) -> MftBlock {
        let mut masks = [0; MFT_BLOCK as usize];
        if let Some(table) = self.switches.get(switch as usize) {
            let first = block * MFT_BLOCK;
            for (index, ports) in table.range(first..first + MFT_BLOCK) {
                masks[usize::from(index - first)] = ports.mask(position);
            }
        }
        MftBlock { switch, block, position, masks }
    }

    /// Enters one block.
    pub fn set_block(&mut self, block: &MftBlock) {
        let Some(table) = self.switches.get_mut(block.switch as usize) else { return };
        let indices = block.block * MFT_BLOCK..(block.block + 1) * MFT_BLOCK;
        if block.masks == [0; MFT_BLOCK as usize] && table.range(indices.clone()).next().is_none() {
            return; // most blocks of most tables
        }
        for (index, mask) in indices.zip(block.masks) {
            if MulticastLid::new(MulticastLid::MIN.get().saturating_add(index)).is_none() {
                return;
            }
            match table.entry(index) {
                Entry::Vacant(entry) if mask != 0 => {
                    entry.insert(PortSet::EMPTY).set_mask(block.position, mask)
                }
                Entry::Vacant(_) => {}
                Entry::Occupied(mut entry) => {
                    entry.get_mut().set_mask(block.position, mask);
                    if entry.get().is_empty() {
                        entry.remove();
                    }
                }
            }
        }
    }

    /// The blocks of `self` that differ from those of `old`, at every position that the switches have ports for (B39).
    pub fn difference<'a>(
        &'a self,
        old: &'a Self,
        graph: &'a SwitchGraph,
    ) -> impl Iterator<Item = MftBlock> + use<'a> {
        let switches = 0..self.switch_count().min(graph.switch_count()) as SwitchIndex;
        switches.flat_map(move |switch| {
            let blocks = self.blocks(switch).max(old.blocks(switch));
            let positions = graph.num_ports(switch) / 16 + 1;
            let all =
                (0..blocks).flat_map(move |block| (0..positions).map(move |position| (block, position)));
            all.filter_map(move |(block, position)| {
                let new = self.block(switch, block, position);
                (new != old.block(switch, block, position)).then_some(new)
            })
        })
    }

    /// What `old` and `self` have in common. On the way from `old` to `self` it is set first: taking ports away closes no
    /// circle, and what is added afterwards is a part of the new trees at any moment, so no mix of old and new tables
    /// sends a packet round (B29).
    #[must_use]
    pub fn common(&self, old: &Self) -> Self {
        let both = |(new, old): (&BTreeMap<u16, PortSet>, &BTreeMap<u16, PortSet>)| {
            let kept = new.iter().filter_map(|(index, ports)| {
                let common = *ports & *old.get(index)?;
                (!common.is_empty()).then_some((*index, common))
            });
            kept.collect()
        };
        let mut switches: Vec<_> = self.switches.iter().zip(&old.switches).map(both).collect();
        switches.resize(self.switches.len(), BTreeMap::new());
        Self { switches }
    }
}
