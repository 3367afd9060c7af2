//! Which virtual lane each service level takes, for engines that keep paths apart by lanes.
//!
//! A switch has a table for every pair of entry and exit port (SLtoVLMappingTable, specification volume 1, 14.2.5.8), a
//! channel adapter one for each port. Engines that need one lane have no wishes: then the operator's lists count, and
//! nothing is read or written where none are asked for. A lane that a link does not have becomes one that it has (modulo their number), so that a client that sets a service level by
//! hand is not cut off. Cost: entries · exits in use for each switch, one table where a switch knows the optimised form.

use std::collections::BTreeMap;

use mad::types::PortNum;
use mad::wire::smp::SlToVlMappingTable;
use routing::fabric::{PortRef, SwitchGraph};
use routing::routes::{Routes, SlToVl};

use super::ports::{PortPlan, PortRole, kind};
use super::routes::vls_of_code;
use crate::observed::Observed;
use crate::qos::{PortKind, Qos, VlMap};

/// A table that a port shall have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LanePlan {
    /// Whom to ask: port 0 of a switch, the port itself of a channel adapter.
    pub end: PortRef,
    /// Entry and exit port of a switch as the attribute modifier; 0 for a channel adapter.
    pub modifier: u32,
    /// What it shall hold.
    pub table: SlToVlMappingTable,
}

impl LanePlan {
    /// Whether one Set is meant for all pairs of ports; nothing can be read back by this modifier.
    pub const fn is_for_all(&self) -> bool {
        self.modifier & SlToVlMappingTable::MODIFIER_ALL_INPUT_PORTS != 0
    }

    /// What tells the tables of one node apart.
    pub fn key(&self) -> u32 {
        if self.end.port == PortNum::MANAGEMENT { self.modifier } else { u32::from(self.end.port.0) << 24 }
    }
}

/// All tables that are asked for: by the routes, or by the operator where these use one lane.
pub(super) fn plan(
    observed: &Observed,
    graph: &SwitchGraph,
    routes: &Routes,
    qos: &Qos,
    ports: &[PortPlan],
) -> Vec<LanePlan> {
    if routes.vls <= 1 && !qos.enabled {
        return Vec::new();
    }
    let maps = Maps { routes, qos };
    let mut in_use: BTreeMap<_, Vec<(PortNum, u8)>> = BTreeMap::new();
    let mut plans = Vec::new();
    for port in ports.iter().filter(|p| p.role != PortRole::Management) {
        let vls = vls_of_code(port.desired.operational_vls());
        if graph.index_of(port.end.node).is_some() {
            in_use.entry(port.end.node).or_default().push((port.end.port, vls));
        } else if vls > 1 {
            let map = maps.of_kind(kind(observed, port.end));
            plans.push(LanePlan { end: port.end, modifier: 0, table: table(map, vls) });
        }
    }
    for (node, links) in in_use {
        let Some(index) = graph.index_of(node) else { continue };
        let end = PortRef { node, port: PortNum::MANAGEMENT };
        let info = observed.nodes.get(&node).and_then(|n| n.switch_info);
        let fewest = links.iter().map(|(_, vls)| *vls).min().unwrap_or(1);
        let alike = links.iter().all(|(_, vls)| *vls == fewest);
        let of_switch = maps.of_switch(index);
        if of_switch.is_none() && alike && fewest > 1 && info.is_some_and(|i| i.optimized_sl_to_vl() != 0) {
            let modifier =
                SlToVlMappingTable::MODIFIER_ALL_INPUT_PORTS | SlToVlMappingTable::MODIFIER_ALL_OUTPUT_PORTS;
            let map = maps.of_kind(PortKind::SwitchExternal);
            plans.push(LanePlan { end, modifier, table: table(map, fewest) });
            continue;
        }
        let width = usize::from(graph.num_ports(index)) + 1;
        let entries = || std::iter::once(PortNum::MANAGEMENT).chain(links.iter().map(|(port, _)| *port));
        for (exit, vls) in links.iter().filter(|(_, vls)| *vls > 1) {
            for entry in entries() {
                let map = of_switch.and_then(|t| t.get(entry.index() * width + exit.index()).copied());
                let table = table(map.unwrap_or_else(|| maps.of_kind(PortKind::SwitchExternal)), *vls);
                plans.push(LanePlan { end, modifier: SlToVlMappingTable::modifier(entry, *exit), table });
            }
        }
    }
    plans
}

/// What the operator should know: lists that the engine has no use for.
pub(super) fn findings(routes: &Routes, qos: &Qos) -> Option<String> {
    let given = PortKind::ALL.iter().any(|kind| qos.of(*kind).sl_to_vl.is_some());
    (routes.vls > 1 && given).then(|| {
        format!("{} keeps paths apart by lanes: sl2vl of the section qos is not followed", routes.engine)
    })
}

/// Who says which lane a service level takes.
struct Maps<'a> {
    routes: &'a Routes,
    qos: &'a Qos,
}

impl<'a> Maps<'a> {
    /// Where pairs of ports make a difference: tables by entry and exit.
    fn of_switch(&self, index: u32) -> Option<&'a Vec<[u8; 16]>> {
        match &self.routes.sl_to_vl {
            SlToVl::PerSwitch(tables) => tables.get(index as usize),
            SlToVl::Identity | SlToVl::Uniform(_) => None,
        }
    }

    fn of_kind(&self, kind: PortKind) -> [u8; 16] {
        match &self.routes.sl_to_vl {
            SlToVl::Uniform(map) => *map,
            SlToVl::Identity | SlToVl::PerSwitch(_) if self.routes.vls > 1 => {
                std::array::from_fn(|sl| sl as u8)
            }
            SlToVl::Identity | SlToVl::PerSwitch(_) => {
                self.qos.of(kind).sl_to_vl.unwrap_or(VlMap::BUILT_IN).0
            }
        }
    }
}

fn table(map: [u8; 16], vls: u8) -> SlToVlMappingTable {
    SlToVlMappingTable::from_lanes(&map.map(|vl| if vl < 15 { vl % vls } else { vl }))
}
