//! Alias GUIDs: GUIDs that a port answers to beside its PortGUID, for virtual machines (specification volume 1, 14.2.5.5 and
//! GUIDInfoRecord). What the SA gave to whom; `plan::port_tables` brings it into the ports, a snapshot finds ports by it.
//!
//! A block that ever held an alias is kept when the last one goes: the port may still hold it, and is told that it shall not.
//!
//! Cost: O(log blocks) to change, O(1) to find the port of an alias; a copy is linear, and made only while another holds it.

use std::collections::{BTreeMap, HashMap};

use mad::types::Guid;
use mad::wire::smp::GuidInfo;
use zerocopy::big_endian::U64;

/// The GUIDs of a block; entry 0 of block 0 is the port's own and stays [`Guid::NONE`] here.
pub type AliasBlock = [Guid; GuidInfo::PER_BLOCK];

/// The alias GUIDs of all ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AliasTable {
    generation: u64,
    blocks: BTreeMap<(Guid, u8), AliasBlock>,
    /// The port that holds an alias.
    holders: HashMap<Guid, Guid>,
}

impl AliasTable {
    /// Counts up with each change.
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// Number of blocks, those without an alias by now included.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether no port has or had an alias.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// What a block of a port holds.
    pub fn block(&self, port: Guid, block: u8) -> AliasBlock {
        self.blocks.get(&(port, block)).copied().unwrap_or_default()
    }

    /// A block as the port shall hold it.
    pub fn guid_info(&self, port: Guid, block: u8) -> GuidInfo {
        let mut guids = self.block(port, block);
        if block == 0 {
            guids[0] = port;
        }
        GuidInfo { guids: guids.map(|guid| U64::new(guid.0)) }
    }

    /// The blocks of a port that hold an alias or held one, by number.
    pub fn blocks_of(&self, port: Guid) -> impl Iterator<Item = (u8, &AliasBlock)> + Clone {
        self.blocks.range((port, 0)..=(port, u8::MAX)).map(|((_, block), guids)| (*block, guids))
    }

    /// Whether a block holds an alias or held one.
    pub fn has_block(&self, port: Guid, block: u8) -> bool {
        self.blocks.contains_key(&(port, block))
    }

    /// The aliases of a port in order of their places.
    pub fn of_port(&self, port: Guid) -> impl Iterator<Item = Guid> + Clone {
        self.blocks_of(port).flat_map(|(_, guids)| guids).copied().filter(|guid| guid.is_some())
    }

    /// All aliases with the PortGUIDs that they belong to.
    pub fn iter(&self) -> impl Iterator<Item = (Guid, Guid)> {
        self.holders.iter().map(|(alias, port)| (*alias, *port))
    }

    /// The PortGUID of the port that holds an alias.
    pub fn holder(&self, alias: Guid) -> Option<Guid> {
        self.holders.get(&alias).copied()
    }

    /// Puts an alias into a place of a block, or frees it ([`Guid::NONE`]). False, and nothing changes, when it has a place
    /// already or there is no such place.
    pub fn put(&mut self, port: Guid, block: u8, index: usize, alias: Guid) -> bool {
        let taken = alias.is_some() && self.holders.contains_key(&alias);
        if taken || index >= GuidInfo::PER_BLOCK {
            return false;
        }
        let slot = &mut self.blocks.entry((port, block)).or_default()[index];
        let old = std::mem::replace(slot, alias);
        self.holders.remove(&old);
        if alias.is_some() {
            self.holders.insert(alias, port);
        }
        self.generation += 1;
        true
    }

    /// Enters a block as it was kept. False, and nothing changes, when one of its aliases has a place already.
    pub fn restore(&mut self, port: Guid, block: u8, guids: AliasBlock) -> bool {
        let twice = |(index, guid): (usize, &Guid)| {
            guid.is_some() && (self.holders.contains_key(guid) || guids[..index].contains(guid))
        };
        let own = block == 0 && guids[0].is_some();
        if own || self.has_block(port, block) || guids.iter().enumerate().any(twice) {
            return false;
        }
        self.holders.extend(guids.iter().filter(|guid| guid.is_some()).map(|guid| (*guid, port)));
        self.blocks.insert((port, block), guids);
        self.generation += 1;
        true
    }

    /// An empty table that nobody takes for this one.
    #[must_use]
    pub fn successor(&self) -> Self {
        Self { generation: self.generation + 1, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever is put where, an alias has one place, and is found at it.
        #[test]
        fn an_alias_has_one_place(
            puts in prop::collection::vec((1..4_u64, 0..2_u8, 0..9_usize, 0..6_u64), 0..60),
        ) {
            let mut table = AliasTable::default();
            for (port, block, index, alias) in puts {
                let before = table.clone();
                if !table.put(Guid(port), block, index, Guid(alias)) {
                    prop_assert_eq!(&table, &before);
                }
                let mut all: Vec<Guid> = (1..4).flat_map(|port| table.of_port(Guid(port))).collect();
                let count = all.len();
                all.sort();
                all.dedup();
                prop_assert_eq!((all.len(), table.iter().count()), (count, count));
                for (alias, port) in table.iter() {
                    prop_assert!(table.of_port(port).any(|guid| guid == alias));
                }
            }
        }
    }

    #[test]
    fn blocks_that_contradict_are_not_restored() {
        let block = |guids: &[u64]| std::array::from_fn(|n| Guid(guids.get(n).copied().unwrap_or(0)));
        let mut table = AliasTable::default();
        assert!(table.restore(Guid(1), 0, block(&[0, 7, 8])));
        for (port, number, guids) in [(2, 0, &[0, 8][..]), (2, 0, &[9]), (2, 1, &[9, 9]), (1, 0, &[0, 5])] {
            assert!(!table.restore(Guid(port), number, block(guids)), "{port} {number} {guids:?}");
        }
        assert!(table.restore(Guid(2), 1, block(&[9])), "only block 0 has the port's own GUID");
        assert_eq!((table.holder(Guid(8)), table.holder(Guid(5))), (Some(Guid(1)), None));
    }
}
