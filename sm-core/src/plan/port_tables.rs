//! What the tables of ports shall hold: P_Keys of end ports, and of the switch ports that keep strangers out; alias GUIDs.
//!
//! Cost: linear in end ports, times keys and table length for each; of aliases, in the ports and in the blocks that hold one.

use std::collections::BTreeSet;

use mad::types::{PKey, PortNum};
use mad::wire::Attribute;
use mad::wire::smp::{GuidInfo, PKeyTable};
use routing::fabric::PortRef;

use super::own_end;
use crate::aliases::AliasTable;
use crate::observed::{Observed, PortTable};
use crate::partitions::{Partitions, Table};
use crate::settings::PlanSettings;

/// A block of a port's table and its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TablePlan {
    /// The port.
    pub end: PortRef,
    /// Which block of which table.
    pub table: PortTable,
    /// What it shall hold.
    pub data: [u8; 64],
}

/// P_Key tables of the whole fabric.
#[derive(Clone, Debug, Default)]
pub struct PKeyPlan {
    /// Blocks that are not known to be right.
    pub tables: Vec<TablePlan>,
    /// Switch ports that check the P_Keys of what passes.
    pub enforcing: BTreeSet<PortRef>,
    /// Keys that have no place, and changes of index 0 (B53); a line each.
    pub findings: Vec<String>,
}

/// Plans the P_Keys of all end ports, and of the switch ports that face adapters where partitions are enforced.
pub fn plan_pkeys(observed: &Observed, settings: &PlanSettings) -> PKeyPlan {
    let partitions = &settings.partitions;
    let mut plan = PKeyPlan::default();
    let own = own_end(observed);
    for (id, facts) in observed.fabric.nodes() {
        let Some(node) = observed.node(id) else { continue };
        for (number, port) in facts.end_ports() {
            let end = PortRef { node: id, port: number };
            let held = node.tables.pkeys_of(number);
            // What was not read is left alone, unless somebody is to be kept out.
            if node.port_info(number).is_none() || (held.is_empty() && partitions.is_default()) {
                continue;
            }
            let (keys, first) = partitions.keys(port.guid, facts.kind, end == own);
            let capacity = usize::from(node.node_info.partition_cap.get());
            let table = Table::place(&held, &keys, first, capacity);
            plan.note(observed, end, &table);
            plan.add(observed, end, &table.keys);
        }
    }
    if settings.enforce_partitions && !partitions.is_default() {
        enforce(observed, partitions, own, &mut plan);
    }
    plan
}

/// Gives each switch port that faces an adapter the keys of that adapter. One whose table is too small lets all pass.
fn enforce(observed: &Observed, partitions: &Partitions, own: PortRef, plan: &mut PKeyPlan) {
    for (id, facts) in observed.fabric.switches() {
        let Some(node) = observed.node(id) else { continue };
        let Some(info) = node.switch_info.filter(|info| info.inbound_enforcement_cap() != 0) else {
            continue;
        };
        for (number, _) in facts.numbered_ports().filter(|(number, _)| *number != PortNum::MANAGEMENT) {
            let end = PortRef { node: id, port: number };
            let Some(peer) = observed.fabric.peer(end) else { continue };
            let Some((far, port)) = observed.fabric.get(peer.node).zip(observed.fabric.port(peer)) else {
                continue;
            };
            if far.is_switch() {
                continue;
            }
            let (mut keys, _) = partitions.keys(port.guid, far.kind, peer == own);
            // A full key lets in what its limited form would.
            let full: Vec<PKey> = keys.iter().copied().filter(|key| key.is_full()).collect();
            keys.retain(|key| key.is_full() || !full.iter().any(|full| full.base() == key.base()));
            let held = node.tables.pkeys_of(number);
            let table = Table::place(&held, &keys, None, usize::from(info.partition_enforcement_cap.get()));
            if !table.without_place.is_empty() {
                let name = observed.name(id);
                plan.findings
                    .push(format!("port {number} of {name} has no room for all P_Keys: it lets all pass"));
                continue;
            }
            plan.add(observed, end, &table.keys);
            plan.enforcing.insert(end);
        }
    }
}

/// The blocks of alias GUIDs that are not known to be in their ports. A port that never had an alias from us is left alone.
pub fn plan_aliases(observed: &Observed, aliases: &AliasTable) -> Vec<TablePlan> {
    let mut plan = Vec::new();
    if aliases.is_empty() {
        return plan;
    }
    for (node, facts) in observed.fabric.nodes() {
        for (number, port) in facts.end_ports() {
            let end = PortRef { node, port: number };
            let Some((known, info)) = observed.node(node).zip(observed.port_info(end)) else { continue };
            let capacity = usize::from(info.guid_cap);
            for (block, _) in aliases.blocks_of(port.guid) {
                let first = usize::from(block) * GuidInfo::PER_BLOCK;
                let mut guids = aliases.guid_info(port.guid, block);
                guids.guids.iter_mut().skip(capacity.saturating_sub(first)).for_each(|guid| guid.set(0));
                let (table, mut data) = (PortTable::Guids { block }, [0; 64]);
                let _fits = guids.encode(&mut data);
                if first < capacity && known.tables.get(number, table) != Some(data) {
                    plan.push(TablePlan { end, table, data });
                }
            }
        }
    }
    plan
}

impl PKeyPlan {
    fn note(&mut self, observed: &Observed, end: PortRef, table: &Table) {
        let place = || format!("port {} of {}", end.port, observed.name(end.node));
        for key in &table.without_place {
            self.findings.push(format!("{} has no room for P_Key {key}", place()));
        }
        if let Some(old) = table.displaced {
            let new = table.keys[0];
            let place = place();
            self.findings.push(format!("index 0 of the P_Key table of {place} changes from {old} to {new}"));
        }
    }

    /// Adds the blocks that differ from what is known, and of what is not known those with keys.
    fn add(&mut self, observed: &Observed, end: PortRef, keys: &[PKey]) {
        let Some(node) = observed.node(end.node) else { return };
        for (block, keys) in (0..).zip(keys.chunks(PKeyTable::PER_BLOCK)) {
            let table = PortTable::PKeys { block };
            let mut data = [0; 64];
            let _fits = PKeyTable::from_keys(keys).encode(&mut data);
            let known = node.tables.get(end.port, table);
            let needless = known.is_none() && block > 0 && data == [0; 64];
            if known != Some(data) && !needless {
                self.tables.push(TablePlan { end, table, data });
            }
        }
    }
}
