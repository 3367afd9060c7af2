//! Tables of a node's ports, as far as they were read or confirmed by the reply to a Set (specification volume 1, 14.2.5.5
//! to 14.2.5.9).
//!
//! P_Key tables of end ports are read with the ports, for they say who may talk to whom. SL-to-VL and VL arbitration
//! tables, and the P_Keys of switch ports where no partitions are brought about, are read only where somebody wants to know: a
//! switch has one SL-to-VL table for each pair of its ports.

use std::collections::BTreeMap;

use mad::types::{PKey, PortNum};
use mad::wire::Attribute;
use mad::wire::smp::{
    GuidInfo, PKeyTable, PortInfo, SlToVlMappingTable, VlArbitrationTable, VlArbitrationTableKind,
};

/// What is known of a node's port tables. A key that is missing was not read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeTables {
    /// P_Key blocks by port and block.
    pub pkeys: BTreeMap<(PortNum, u16), PKeyTable>,
    /// Alias GUID blocks by port and block.
    pub guids: BTreeMap<(PortNum, u8), GuidInfo>,
    /// SL-to-VL tables by input and output port; the input port of a channel adapter is 0.
    pub sl_to_vl: BTreeMap<(PortNum, PortNum), SlToVlMappingTable>,
    /// VL arbitration blocks by port and block.
    pub vl_arbitration: BTreeMap<(PortNum, VlArbitrationTableKind), VlArbitrationTable>,
    /// Whether SL-to-VL and VL arbitration tables, and a switch's P_Keys, were asked for since the node was met: what is missing then was
    /// refused or not answered.
    pub qos_read: bool,
}

impl NodeTables {
    /// The P_Keys of a port with every entry at its index; empty where nothing was read. Reading stops at the first block
    /// that is not known.
    pub fn pkeys_of(&self, port: PortNum) -> Vec<PKey> {
        (0..).map_while(|block| self.pkeys.get(&(port, block))).flat_map(PKeyTable::keys).collect()
    }

    /// What a block holds, if that is known.
    pub fn get(&self, port: PortNum, table: PortTable) -> Option<[u8; 64]> {
        let mut data = [0; 64];
        let known = match table {
            PortTable::PKeys { block } => self.pkeys.get(&(port, block)).map(|t| t.encode(&mut data)),
            PortTable::Guids { block } => self.guids.get(&(port, block)).map(|t| t.encode(&mut data)),
            PortTable::SlToVl { input } => self.sl_to_vl.get(&(input, port)).map(|t| t.encode(&mut data)),
            PortTable::VlArbitration { kind } => {
                self.vl_arbitration.get(&(port, kind)).map(|t| t.encode(&mut data))
            }
        };
        known.map(|_fits| data)
    }

    /// Enters what a block holds; `None`: that is not known any more.
    pub fn put(&mut self, port: PortNum, table: PortTable, data: Option<&[u8; 64]>) {
        match table {
            PortTable::PKeys { block } => put(&mut self.pkeys, (port, block), data),
            PortTable::Guids { block } => put(&mut self.guids, (port, block), data),
            PortTable::SlToVl { input } => put(&mut self.sl_to_vl, (input, port), data),
            PortTable::VlArbitration { kind } => put(&mut self.vl_arbitration, (port, kind), data),
        }
    }

    /// Forgets what a port held: it was reset, or may have been.
    pub fn forget_port(&mut self, port: PortNum) {
        self.pkeys.retain(|(of, _), _| *of != port);
        self.guids.retain(|(of, _), _| *of != port);
        self.vl_arbitration.retain(|(of, _), _| *of != port);
        self.sl_to_vl.retain(|(_, output), _| *output != port);
        self.qos_read = false;
    }
}

fn put<K: Ord, V: Attribute>(map: &mut BTreeMap<K, V>, key: K, data: Option<&[u8; 64]>) {
    match data.and_then(|data| V::decode(data)) {
        Some(value) => drop(map.insert(key, value)),
        None => drop(map.remove(&key)),
    }
}

/// One table, or block of a table, of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PortTable {
    /// A block of P_Keys.
    PKeys {
        /// Block of 32 keys.
        block: u16,
    },
    /// A block of GUIDs.
    Guids {
        /// Block of 8 GUIDs.
        block: u8,
    },
    /// The SL-to-VL table for what came in by a port; 0 for a channel adapter.
    SlToVl {
        /// Input port.
        input: PortNum,
    },
    /// A block of VL arbitration entries.
    VlArbitration {
        /// Which block.
        kind: VlArbitrationTableKind,
    },
}

impl PortTable {
    /// Attribute ID and modifier. `port` is 0 for a channel adapter, which answers for the port that it is asked by.
    pub fn address(self, port: PortNum) -> (u16, u32) {
        match self {
            Self::PKeys { block } => (PKeyTable::ID, PKeyTable::modifier(port, block)),
            Self::Guids { block } => (GuidInfo::ID, block.into()),
            Self::SlToVl { input } => (SlToVlMappingTable::ID, SlToVlMappingTable::modifier(input, port)),
            Self::VlArbitration { kind } => {
                (VlArbitrationTable::ID, VlArbitrationTable::modifier(kind, port))
            }
        }
    }
}

/// Whether a port has a block of VL arbitration entries at all, by its VLArbitrationLowCap and HighCap.
pub const fn has_arbitration_block(info: &PortInfo, kind: VlArbitrationTableKind) -> bool {
    match kind {
        VlArbitrationTableKind::LowLower => info.vl_arbitration_low_cap > 0,
        VlArbitrationTableKind::LowUpper => info.vl_arbitration_low_cap > 32,
        VlArbitrationTableKind::HighLower => info.vl_arbitration_high_cap > 0,
        VlArbitrationTableKind::HighUpper => info.vl_arbitration_high_cap > 32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stay_at_their_index_and_end_at_the_first_hole() {
        let mut tables = NodeTables::default();
        let port = PortNum(1);
        tables.pkeys.insert((port, 0), PKeyTable::from_keys(&[PKey(0), PKey(0xffff)]));
        tables.pkeys.insert((port, 2), PKeyTable::from_keys(&[PKey(5)]));
        let keys = tables.pkeys_of(port);
        assert_eq!((keys.len(), keys[0], keys[1]), (32, PKey(0), PKey(0xffff)));
        assert!(tables.pkeys_of(PortNum(2)).is_empty());
        tables.forget_port(port);
        assert_eq!(tables, NodeTables::default());
    }
}
