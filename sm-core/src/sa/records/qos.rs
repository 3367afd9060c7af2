//! SLtoVLMappingTableRecord and VLArbitrationTableRecord.
//!
//! The tables are read from the fabric when somebody asks for them the first time ([`unread`]), for a switch has one
//! SL-to-VL table for each pair of its ports; and so are the P_Key tables of a switch's ports, one for each. What a port has no room for, or no lanes to map to, is all zero.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use mad::types::{Guid, PortNum};
use mad::wire::ids::sa;
use mad::wire::sa::{PKeyTableRecord, SaMad, SlToVlMappingTableRecord, VlArbitrationTableRecord};
use mad::wire::smp::{SlToVlMappingTable, VlArbitrationTable, VlArbitrationTableKind};
use mad::wire::{Attribute, Method};
use zerocopy::FromZeros;

use super::{Context, Query, Served, ports_at};
use crate::observed::has_arbitration_block;
use crate::snapshot::Snapshot;
use crate::sweep::has_lanes;

/// Nodes that are read for one query at most. A query that covers more is answered with what is known.
const MOST_NODES: usize = 256;

/// Nodes that have to be read before a request can be answered; none for requests of other kinds.
pub(in crate::sa) fn unread(snapshot: &Snapshot, mad: &SaMad) -> BTreeSet<Guid> {
    let mask = mad.component_mask.get();
    let trusted = mad.sm_key.get() != 0 && mad.sm_key.get() == snapshot.sm.sm_key;
    let mut switches_only = false;
    let asked_lid = match mad.header.attribute_id.get() {
        _ if !matches!(mad.header.method(), Method::GET | Method::GET_TABLE) => return BTreeSet::new(),
        sa::SL_TO_VL_MAPPING_TABLE_RECORD => SlToVlMappingTableRecord::decode(&mad.data).map(|r| r.lid.get()),
        sa::VL_ARBITRATION_TABLE_RECORD => VlArbitrationTableRecord::decode(&mad.data).map(|r| r.lid.get()),
        // Those of adapters are read with the ports.
        sa::PKEY_TABLE_RECORD if trusted => {
            switches_only = true;
            PKeyTableRecord::decode(&mad.data).map(|r| r.lid.get())
        }
        _ => return BTreeSet::new(),
    };
    let ports = ports_at(snapshot, asked_lid.filter(|_| mask & 1 != 0));
    let observed = &snapshot.observed;
    let ports = ports.iter().filter(|port| port.is_switch() || !switches_only);
    let nodes = ports.filter(|port| observed.node(port.end.node).is_some_and(|n| !n.tables.qos_read));
    let nodes: BTreeSet<Guid> = nodes
        .filter_map(|port| Some(observed.fabric.get(port.end.node)?.guid))
        .take(MOST_NODES + 1)
        .collect();
    if nodes.len() > MOST_NODES { BTreeSet::new() } else { nodes }
}

/// One for each pair of ports of a switch, one for a port of a channel adapter.
impl Served for SlToVlMappingTableRecord {
    const SETTLED: u64 = 0b111;

    fn each(
        context: &Context<'_>,
        query: &Query<Self>,
        emit: &mut dyn FnMut(Self) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let asked_input = query.field(1, |record| record.input_port_num);
        let asked_output = query.field(2, |record| record.output_port_num);
        query.each_table_port(|record| record.lid.get(), context, &mut |node, port, output, info| {
            // The record of a channel adapter has no port numbers.
            let shown = if port.is_switch() { output } else { PortNum(0) };
            if asked_output.is_some_and(|asked| asked != shown.0) {
                return ControlFlow::Continue(());
            }
            let inputs = if port.is_switch() { 0..=node.node_info.num_ports } else { 0..=0 };
            for input in inputs.filter(|n| asked_input.is_none_or(|asked| asked == *n)) {
                let known = node.tables.sl_to_vl.get(&(PortNum(input), output)).copied();
                let empty = !has_lanes(info) || !node.has_qos_tables(output);
                if let Some(table) = known.or_else(|| empty.then(SlToVlMappingTable::new_zeroed)) {
                    emit(Self::new(port.lid, PortNum(input), shown, table))?;
                }
            }
            ControlFlow::Continue(())
        })
    }
}

/// Four blocks for each port.
impl Served for VlArbitrationTableRecord {
    const SETTLED: u64 = 0b111;

    fn each(
        context: &Context<'_>,
        query: &Query<Self>,
        emit: &mut dyn FnMut(Self) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let asked_port = query.field(1, |record| record.output_port_num);
        let asked_block = query.field(2, |record| record.block_num);
        query.each_table_port(|record| record.lid.get(), context, &mut |node, port, number, info| {
            // The record of a channel adapter too names its port, as those of opensm do; osmtest asks for it by 0.
            let fits = |asked: u8| asked == number.0 || (asked == 0 && !port.is_switch());
            if !asked_port.is_none_or(fits) {
                return ControlFlow::Continue(());
            }
            let kinds = VlArbitrationTableKind::ALL.into_iter();
            for kind in kinds.filter(|kind| asked_block.is_none_or(|asked| asked == kind.to_wire())) {
                let known = node.tables.vl_arbitration.get(&(number, kind)).copied();
                let empty = !has_arbitration_block(info, kind) || !node.has_qos_tables(number);
                if let Some(table) = known.or_else(|| empty.then(VlArbitrationTable::new_zeroed)) {
                    emit(Self::new(port.lid, number, kind, table))?;
                }
            }
            ControlFlow::Continue(())
        })
    }
}
