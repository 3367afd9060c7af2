//! SwitchInfoRecord, LinearForwardingTableRecord and MulticastForwardingTableRecord.

use std::ops::ControlFlow;

use mad::wire::sa::{LinearForwardingTableRecord, MulticastForwardingTableRecord, SwitchInfoRecord};
use mad::wire::smp::{LinearForwardingTable, MulticastForwardingTable};
use zerocopy::FromZeros;

use super::{Context, Query, Served};

impl Served for SwitchInfoRecord {
    const SETTLED: u64 = 1;

    fn each(
        context: &Context<'_>,
        query: &Query<Self>,
        emit: &mut dyn FnMut(Self) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for port in query.visible_switches(|record| record.lid.get(), context) {
            let node = context.snapshot.observed.node(port.end.node);
            if let Some(info) = node.and_then(|node| node.switch_info) {
                emit(Self::new(port.lid, info))?;
            }
        }
        ControlFlow::Continue(())
    }
}

/// The tables as the switches confirmed them, up to LinearFDBTop.
impl Served for LinearForwardingTableRecord {
    const SETTLED: u64 = 0b11;

    fn each(
        context: &Context<'_>,
        query: &Query<Self>,
        emit: &mut dyn FnMut(Self) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let snapshot = context.snapshot;
        let wanted = query.field(1, |record| record.block_num.get());
        for port in query.visible_switches(|record| record.lid.get(), context) {
            let Some(switch) = snapshot.graph.index_of(port.end.node) else { continue };
            let row = snapshot.routes.lfts.row(switch);
            let info = snapshot.observed.node(port.end.node).and_then(|node| node.switch_info);
            let top = info.map_or(0, |info| info.linear_fdb_top.get()).max(snapshot.graph.top_lid());
            for (block, ports) in (0..=top / LinearForwardingTable::PER_BLOCK as u16).zip(row.blocks()) {
                if wanted.is_some_and(|wanted| wanted != block) {
                    continue;
                }
                let mut table = LinearForwardingTable::DROP_ALL;
                table.ports[..ports.len()].copy_from_slice(ports);
                emit(Self::new(port.lid, block, table))?;
            }
        }
        ControlFlow::Continue(())
    }
}

/// The blocks that hold entries, at each position that the switch has ports for, as the switches confirmed them.
impl Served for MulticastForwardingTableRecord {
    const SETTLED: u64 = 1;

    fn each(
        context: &Context<'_>,
        query: &Query<Self>,
        emit: &mut dyn FnMut(Self) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let snapshot = context.snapshot;
        for port in query.visible_switches(|record| record.lid.get(), context) {
            let Some(switch) = snapshot.graph.index_of(port.end.node) else { continue };
            let positions = 0..=snapshot.graph.num_ports(switch) / 16;
            for block in 0..snapshot.multicast.blocks(switch) {
                for position in positions.clone() {
                    let masks = snapshot.multicast.block(switch, block, position).masks;
                    let mut table = MulticastForwardingTable::new_zeroed();
                    table.port_masks.iter_mut().zip(masks).for_each(|(slot, mask)| slot.set(mask));
                    emit(Self::new(port.lid, position, block, table))?;
                }
            }
        }
        ControlFlow::Continue(())
    }
}
