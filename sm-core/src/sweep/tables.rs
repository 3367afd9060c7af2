//! Tables of ports: P_Keys of everybody who can be in a partition, aliases of those who have any, and for nodes that are named, SL-to-VL and VL
//! arbitration.
//!
//! Cost: a Get for each block of 32 P_Keys of an end port and for each of 8 GUIDs that holds aliases; of a named switch with P ports, P² for SL-to-VL and up to 4 P for
//! VL arbitration.

use mad::types::{PortNum, PortState};
use mad::wire::smp::{GuidInfo, PKeyTable, PortInfo, VlArbitrationTableKind};
use routing::fabric::PortRef;

use super::{Place, Sweep, What};
use crate::observed::{PortTable, has_arbitration_block};
use crate::partitions::Partitions;
use crate::request::{Answer, SmpRequest};

/// Whose P_Key tables are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PKeyReading {
    /// Nobody's.
    #[default]
    None,
    /// Those of channel adapters and routers: who is in which partition.
    Adapters,
    /// Those of ports 0 of switches and of switch ports that face an adapter besides: what enforces partitions.
    All,
}

impl PKeyReading {
    /// What is to be read to bring these partitions about.
    pub fn of(partitions: &Partitions) -> Self {
        if partitions.is_default() { Self::Adapters } else { Self::All }
    }
}

/// P_Key blocks that are read of one port at most, whatever it claims to have.
const MAX_PKEY_BLOCKS: u16 = 128;

impl Sweep {
    /// Asks for the P_Keys and the aliases of a port whose PortInfo came, when they are not known or may have been lost in a
    /// reset.
    pub(super) fn ask_tables(&mut self, end: PortRef, info: &PortInfo) {
        let Some(place) = self.place(end) else { return };
        let lost = info.port_state() == Some(PortState::Init);
        self.ask_aliases(place, end, info, lost);
        let Some(blocks) = self.pkey_blocks(end).filter(|blocks| *blocks > 0) else { return };
        let known = |o: &crate::observed::Observed| {
            Some(o.nodes.get(&end.node)?.tables.pkeys.contains_key(&(end.port, 0)))
        };
        if !lost && self.observed().and_then(known) == Some(true) {
            return;
        }
        for block in 0..blocks {
            self.ask_table_of(place, PortTable::PKeys { block });
        }
    }

    /// Asks for the blocks of GUIDs in which a port holds aliases, when they are not known or may have been lost.
    fn ask_aliases(&mut self, place: Place, end: PortRef, info: &PortInfo, lost: bool) {
        let Some(observed) = self.observed() else { return };
        let facts = observed.fabric.port(end).zip(observed.nodes.get(&end.node));
        let Some((port, node)) = facts.filter(|_| !self.settings.aliases.is_empty()) else { return };
        let has = |block: &u8| usize::from(*block) * GuidInfo::PER_BLOCK < usize::from(info.guid_cap);
        let known = |block: &u8| node.tables.guids.contains_key(&(end.port, *block)) && !lost;
        let blocks = self.settings.aliases.blocks_of(port.guid).map(|(block, _)| block);
        let unknown: Vec<u8> = blocks.filter(|block| has(block) && !known(block)).collect();
        for block in unknown {
            self.ask_table_of(place, PortTable::Guids { block });
        }
    }

    /// Blocks of P_Keys to be read of a port; `None` when its table is of no interest.
    fn pkey_blocks(&self, end: PortRef) -> Option<u16> {
        let observed = self.observed()?;
        let facts = observed.nodes.get(&end.node)?;
        let switch = observed.fabric.node(end.node).is_switch();
        let faces_adapter =
            || observed.fabric.peer(end).is_some_and(|p| !observed.fabric.node(p.node).is_switch());
        let cap = match (switch, end.port) {
            (false, _) if self.settings.pkeys >= PKeyReading::Adapters => facts.node_info.partition_cap.get(),
            (true, PortNum::MANAGEMENT) if self.settings.pkeys == PKeyReading::All => {
                facts.node_info.partition_cap.get()
            }
            (true, _) if self.settings.pkeys == PKeyReading::All && faces_adapter() => {
                facts.switch_info?.partition_enforcement_cap.get()
            }
            _ => return None,
        };
        Some(pkey_blocks_in(cap))
    }

    /// Asks for SL-to-VL and VL arbitration tables of the nodes that the settings name, and for the P_Key tables of switches among
    /// them.
    pub(super) fn ask_qos_tables(&mut self) {
        let Some(observed) = self.observed.clone() else { return };
        for guid in self.settings.qos_of.clone() {
            let Some((id, facts)) =
                observed.fabric.find(guid).and_then(|id| Some((id, observed.nodes.get(&id)?)))
            else {
                continue;
            };
            let switch = observed.fabric.node(id).is_switch();
            for (port, block) in pkey_blocks_of_switch(facts).filter(|_| switch) {
                if !facts.tables.pkeys.contains_key(&(port, block)) {
                    self.ask_table_of((guid, port), PortTable::PKeys { block });
                }
            }
            for (port, info) in ports_with_tables(facts) {
                for kind in
                    VlArbitrationTableKind::ALL.into_iter().filter(|k| has_arbitration_block(info, *k))
                {
                    self.ask_table_of((guid, port), PortTable::VlArbitration { kind });
                }
                let inputs = if switch { 0..=facts.node_info.num_ports } else { 0..=0 };
                for input in inputs.filter(|_| has_lanes(info)).map(PortNum) {
                    self.ask_table_of((guid, port), PortTable::SlToVl { input });
                }
            }
            if let Some(node) = self.observed_mut().and_then(|o| o.nodes.get_mut(&id)) {
                node.tables.qos_read = true;
            }
        }
    }

    fn ask_table_of(&mut self, place: Place, table: PortTable) {
        if self.asked_tables.insert((place, table)) {
            self.ask(What::PortTable { place, table });
        }
    }

    pub(super) fn port_table_request(&self, place: Place, table: PortTable) -> Option<SmpRequest> {
        SmpRequest::port_table(self.observed()?, self.end(place)?, table, None)
    }

    /// What came is known now; what was refused or not answered is not known any more.
    pub(super) fn port_table_answered(&mut self, (guid, port): Place, table: PortTable, answer: &Answer) {
        if *answer == Answer::Cancelled {
            return;
        }
        let came = if let Answer::Reply(data) = answer { Some(data) } else { None };
        let Some(id) = self.id(guid) else { return };
        let Some(node) = self.observed().and_then(|o| o.nodes.get(&id)) else { return };
        // A picture that is shared stays shared when nothing changes.
        if node.tables.get(port, table).as_ref() != came
            && let Some(node) = self.observed_mut().and_then(|o| o.nodes.get_mut(&id))
        {
            node.tables.put(port, table, came);
        }
    }
}

/// Blocks of P_Keys that are read of a port that has room for `cap` keys.
fn pkey_blocks_in(cap: u16) -> u16 {
    cap.div_ceil(PKeyTable::PER_BLOCK as u16).min(MAX_PKEY_BLOCKS)
}

/// The blocks of P_Keys that the ports of a switch have, port 0 first; ports that are down are left out, as opensm does.
fn pkey_blocks_of_switch(facts: &crate::observed::ObservedNode) -> impl Iterator<Item = (PortNum, u16)> {
    let own = facts.node_info.partition_cap.get();
    let enforced = facts.switch_info.map_or(0, |info| info.partition_enforcement_cap.get());
    let is_up = |port: u8| {
        let info = facts.ports.get(usize::from(port)).and_then(Option::as_ref);
        port == 0 || info.and_then(PortInfo::port_state).is_some_and(|state| state != PortState::Down)
    };
    (0..=facts.node_info.num_ports).filter(move |port| is_up(*port)).flat_map(move |port| {
        let cap = if port == 0 { own } else { enforced };
        (0..pkey_blocks_in(cap)).map(move |block| (PortNum(port), block))
    })
}

/// The ports of a node that can have QoS tables, as far as they were read.
fn ports_with_tables(node: &crate::observed::ObservedNode) -> impl Iterator<Item = (PortNum, &PortInfo)> {
    let numbered = (0..).map(PortNum).zip(&node.ports);
    numbered
        .filter_map(|(number, info)| Some((number, info.as_ref().filter(|_| node.has_qos_tables(number))?)))
}

/// Whether a port has more than one data lane: with one, every service level takes it.
pub(crate) fn has_lanes(info: &PortInfo) -> bool {
    info.vl_cap() > 1
}
