//! How every port shares its link between virtual lanes: VLArbitrationTable (specification volume 1, 14.2.5.9) and
//! VLHighLimit.
//!
//! Ports are set up where the operator asks for it, and where the routes use several lanes: what a port holds after a reset
//! may give a lane nothing. Then, unless lists are given, every lane gets as much as every other; with one lane in the routes
//! the built-in lists are opensm's. Entries for lanes that the link does not have are left out. Only ports in use are looked
//! at, and only what is not known to be as planned is sent (B57). Cost: entries of all ports in use.

use std::collections::{BTreeMap, BTreeSet};

use mad::types::VirtualLane;
use mad::wire::Attribute;
use mad::wire::smp::{VlArbitrationElement, VlArbitrationTable, VlArbitrationTableKind};
use routing::routes::Routes;

use super::fields::PortField;
use super::port_tables::TablePlan;
use super::ports::{PortPlan, PortRole, kind};
use super::routes::vls_of_code;
use crate::observed::{Observed, PortTable, has_arbitration_block};
use crate::qos::{PortKind, Qos, Values};

/// Weight of a lane that gets as much as every other, in units of 64 bytes; opensm's.
const WEIGHT: u8 = 4;

/// Tables that ports shall hold, VLHighLimit in `ports`, and what the operator should know, a line each.
pub(super) fn plan(
    observed: &Observed,
    routes: &Routes,
    qos: &Qos,
    ports: &mut [PortPlan],
) -> (Vec<TablePlan>, Vec<String>) {
    let mut tables = Vec::new();
    let mut findings = Findings::default();
    if !qos.enabled && routes.vls <= 1 {
        return (tables, Vec::new());
    }
    for port in ports {
        let of_kind = kind(observed, port.end);
        let Some(node) = observed.node(port.end.node).filter(|node| node.has_qos_tables(port.end.port))
        else {
            continue;
        };
        let code = if port.role == PortRole::Management {
            port.desired.vl_cap()
        } else {
            port.desired.operational_vls()
        };
        let vls = vls_of_code(code);
        let values = qos.of(of_kind);
        PortField::VlHighLimit.set(&mut port.desired, values.high_limit.unwrap_or(0).into());
        if vls <= 1 || node.port_info(port.end.port).is_none() {
            continue;
        }
        let lists = Lists::new(values, vls, routes.vls > 1);
        let room =
            [port.desired.vl_arbitration_low_cap, port.desired.vl_arbitration_high_cap].map(usize::from);
        findings.note(of_kind, &lists, room, routes.vls.min(vls));
        for kind in VlArbitrationTableKind::ALL {
            if !has_arbitration_block(&port.desired, kind) {
                continue;
            }
            let mut data = [0; 64];
            let _fits = lists.block(kind, room).encode(&mut data);
            tables.push(TablePlan { end: port.end, table: PortTable::VlArbitration { kind }, data });
        }
    }
    (tables, findings.lines())
}

/// The two tables of a port.
struct Lists {
    low: Vec<(u8, u8)>,
    high: Vec<(u8, u8)>,
}

impl Lists {
    fn new(values: &Values, vls: u8, several: bool) -> Self {
        let (low, high): (Vec<_>, Vec<_>) = if several {
            ((0..15).map(|vl| (vl, WEIGHT)).collect(), Vec::new())
        } else {
            let low = (0..15).map(|vl| (vl, if vl == 0 { 0 } else { WEIGHT }));
            (low.collect(), (0..15).map(|vl| (vl, if vl == 0 { WEIGHT } else { 0 })).collect())
        };
        let given = |list: &Option<crate::qos::VlWeights>| list.as_ref().map(|list| list.0.clone());
        let has = |list: Vec<(u8, u8)>| list.into_iter().filter(|(vl, _)| *vl < vls).collect();
        Self { low: has(given(&values.low).unwrap_or(low)), high: has(given(&values.high).unwrap_or(high)) }
    }

    /// A block, cut to the room that the port has for each table.
    fn block(&self, kind: VlArbitrationTableKind, [low, high]: [usize; 2]) -> VlArbitrationTable {
        let (list, room, first) = match kind {
            VlArbitrationTableKind::LowLower => (&self.low, low, 0),
            VlArbitrationTableKind::LowUpper => (&self.low, low, VlArbitrationTable::PER_BLOCK),
            VlArbitrationTableKind::HighLower => (&self.high, high, 0),
            VlArbitrationTableKind::HighUpper => (&self.high, high, VlArbitrationTable::PER_BLOCK),
        };
        let nothing = VlArbitrationElement::new(VirtualLane(0), 0);
        let mut table = VlArbitrationTable { elements: [nothing; VlArbitrationTable::PER_BLOCK] };
        let entries = list.iter().take(room).skip(first);
        for (element, (vl, weight)) in table.elements.iter_mut().zip(entries) {
            *element = VlArbitrationElement::new(VirtualLane(*vl), *weight);
        }
        table
    }
}

/// Ports without room for all entries, and lanes that get nothing, by kind of port.
#[derive(Default)]
struct Findings {
    cut: BTreeMap<PortKind, usize>,
    starved: BTreeMap<PortKind, BTreeSet<u8>>,
}

impl Findings {
    fn note(&mut self, kind: PortKind, lists: &Lists, [low, high]: [usize; 2], used: u8) {
        *self.cut.entry(kind).or_default() += usize::from(lists.low.len() > low || lists.high.len() > high);
        let served = |vl: u8| {
            let entries = lists.low.iter().take(low).chain(lists.high.iter().take(high));
            entries.into_iter().any(|(of, weight)| *of == vl && *weight > 0)
        };
        self.starved.entry(kind).or_default().extend((0..used).filter(|vl| !served(*vl)));
    }

    fn lines(self) -> Vec<String> {
        let cut = self.cut.into_iter().filter(|(_, ports)| *ports > 0).map(|(kind, ports)| {
            format!("{ports} ports of kind {} have no room for all entries of VL arbitration", kind.name())
        });
        let starved = self.starved.into_iter().filter(|(_, vls)| !vls.is_empty()).map(|(kind, vls)| {
            let vls: Vec<String> = vls.iter().map(ToString::to_string).collect();
            format!(
                "VL arbitration of ports of kind {} gives nothing to VL {}, which routes use",
                kind.name(),
                vls.join(", ")
            )
        });
        cut.chain(starved).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qos::VlWeights;

    fn lists(low: Option<&str>, vls: u8, several: bool) -> Lists {
        let low: Option<VlWeights> = low.map(|list| list.parse().unwrap());
        Lists::new(&Values { low, ..Values::default() }, vls, several)
    }

    #[test]
    fn lanes_share_evenly_or_as_the_lists_say() {
        let even = lists(None, 4, true);
        assert_eq!(even.low, [(0, 4), (1, 4), (2, 4), (3, 4)]);
        assert!(even.high.is_empty());
        let built_in = lists(None, 2, false);
        assert_eq!((built_in.low, built_in.high), (vec![(0, 0), (1, 4)], vec![(0, 4), (1, 0)]));
        assert_eq!(lists(Some("0:1,5:2,1:3"), 4, true).low, [(0, 1), (1, 3)]);
    }

    /// Entries beyond the first block lie in the second; what has no room is cut.
    #[test]
    fn entries_lie_in_two_blocks_within_the_room() {
        let text: Vec<String> = (0..40).map(|i| format!("1:{}", i + 1)).collect();
        let lists = lists(Some(&text.join(",")), 2, true);
        let lower = lists.block(VlArbitrationTableKind::LowLower, [64, 64]);
        let upper = lists.block(VlArbitrationTableKind::LowUpper, [64, 64]);
        assert_eq!(
            (lower.elements[31].weight, upper.elements[0].weight, upper.elements[8].weight),
            (32, 33, 0)
        );
        let tight = lists.block(VlArbitrationTableKind::LowLower, [3, 8]);
        assert_eq!((tight.elements[2].weight, tight.elements[3].weight), (3, 0));
        let mut findings = Findings::default();
        findings.note(PortKind::Ca, &lists, [3, 8], 2);
        assert_eq!(
            findings.lines(),
            [
                "1 ports of kind ca have no room for all entries of VL arbitration",
                "VL arbitration of ports of kind ca gives nothing to VL 0, which routes use"
            ]
        );
    }
}
