//! Tables of a node's ports, as far as they were read or confirmed by the reply to a Set (specification volume 1, 14.2.5.5
//! to 14.2.5.9).
//!
//! P_Key tables of end ports are read with the ports, for they say who may talk to whom. SL-to-VL and VL arbitration
//! tables are read only where somebody wants to know: a switch has one SL-to-VL table for each pair of its ports.

use std::collections::BTreeMap;

use mad::types::{PKey, PortNum};
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
    /// Whether SL-to-VL and VL arbitration tables were asked for since the node was met: what is missing then was
    /// refused or not answered.
    pub qos_read: bool,
}

impl NodeTables {
    /// The P_Keys of a port with every entry at its index; empty where nothing was read. Reading stops at the first block
    /// that is not known.
    pub fn pkeys_of(&self, port: PortNum) -> Vec<PKey> {
        (0..).map_while(|block| self.pkeys.get(&(port, block))).flat_map(PKeyTable::keys).collect()
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
