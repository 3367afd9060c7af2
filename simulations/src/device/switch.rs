//! What only switches have: SwitchInfo and the forwarding tables.

use std::collections::BTreeMap;

use mad::types::{MulticastLid, PortNum};
use mad::wire::smp::SwitchInfo;
use routing::routes::{LFT_BLOCK, NO_PORT};

use super::AdaptiveRouting;

/// MLIDs of a MulticastForwardingTable block.
pub(super) const MFT_BLOCK: usize = 32;

/// The switch's part of a device.
#[derive(Clone, Debug)]
pub struct SwitchTables {
    /// SwitchInfo.
    pub info: SwitchInfo,
    /// LinearForwardingTable up to the highest block written; beyond it [`NO_PORT`].
    pub lft: Vec<u8>,
    /// MulticastForwardingTable blocks that were written, by (position, block).
    pub mft: BTreeMap<(u8, u16), [u16; MFT_BLOCK]>,
    /// Adaptive routing, of switches that have it.
    pub adaptive: Option<Box<AdaptiveRouting>>,
}

impl SwitchTables {
    /// The exit port for a LID as the hardware sees it: nothing above LinearFDBTop.
    pub fn exit(&self, lid: u16) -> u8 {
        if lid > self.info.linear_fdb_top.get() {
            return NO_PORT;
        }
        self.lft.get(usize::from(lid)).copied().unwrap_or(NO_PORT)
    }

    /// The LIDs whose exit is this port, in order.
    pub fn lids_by(&self, port: u8) -> impl Iterator<Item = u16> {
        let end = self.lft.len().min(usize::from(self.info.linear_fdb_top.get()) + 1);
        let blocks = self.lft[..end].chunks(LFT_BLOCK).enumerate();
        // A block is searched whole, which is fast, before its entries are looked at.
        blocks.filter(move |(_, block)| block.contains(&port)).flat_map(move |(number, block)| {
            let exits = block.iter().enumerate().filter(move |(_, exit)| **exit == port);
            exits.map(move |(offset, _)| (number * LFT_BLOCK + offset) as u16)
        })
    }

    /// A block of the linear table.
    pub fn linear_block(&self, block: u16) -> [u8; LFT_BLOCK] {
        let first = usize::from(block) * LFT_BLOCK;
        let mut out = [NO_PORT; LFT_BLOCK];
        if let Some(stored) = self.lft.get(first..) {
            let len = stored.len().min(LFT_BLOCK);
            out[..len].copy_from_slice(&stored[..len]);
        }
        out
    }

    /// Writes a block of the linear table.
    pub fn set_linear_block(&mut self, block: u16, entries: &[u8; LFT_BLOCK]) {
        let first = usize::from(block) * LFT_BLOCK;
        if self.lft.len() < first + LFT_BLOCK {
            self.lft.resize(first + LFT_BLOCK, NO_PORT);
        }
        self.lft[first..first + LFT_BLOCK].copy_from_slice(entries);
    }

    /// The ports by which a multicast packet leaves that came in by `entry`, as bits, its way in perhaps among them: what the
    /// table says, or for a LID beyond the table the default ports (14.2.5.4).
    pub fn multicast_exits(&self, lid: MulticastLid, entry: PortNum) -> [u16; 16] {
        let (cap, top) = (usize::from(self.info.multicast_fdb_cap.get()), self.info.multicast_fdb_top.get());
        // A top of 0 means that the whole table is in use.
        if lid.index() < cap && (top == 0 || lid.get() <= top) {
            return self.multicast_ports(lid);
        }
        let mut port = self.info.default_multicast_primary_port;
        if port == entry.0 {
            port = self.info.default_multicast_not_primary_port;
        }
        let mut exits = [0; 16];
        // 255 is no port.
        if port != NO_PORT {
            exits[usize::from(port / 16)] = 1 << (port % 16);
        }
        exits
    }

    /// The ports that the table holds for a multicast LID, as bits.
    pub fn multicast_ports(&self, lid: MulticastLid) -> [u16; 16] {
        let (block, slot) = ((lid.index() / MFT_BLOCK) as u16, lid.index() % MFT_BLOCK);
        std::array::from_fn(|position| self.mft.get(&(position as u8, block)).map_or(0, |ports| ports[slot]))
    }

    /// Forgets all tables, as a switch does that loses power.
    pub fn clear(&mut self) {
        self.lft.clear();
        self.mft.clear();
        if let Some(adaptive) = &mut self.adaptive {
            **adaptive = AdaptiveRouting::new();
        }
        self.info.linear_fdb_top.set(0);
        self.info.multicast_fdb_top.set(0);
        self.info.set_port_state_change(1);
    }
}
