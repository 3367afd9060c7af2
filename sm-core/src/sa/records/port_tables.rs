//! GUIDInfoRecord and P_KeyTableRecord: tables of end ports.

use std::ops::ControlFlow;

use mad::wire::sa::{GuidInfoRecord, PKeyTableRecord};
use mad::wire::smp::{GuidInfo, PKeyTable};
use zerocopy::FromZeros;

use super::{Context, Query, Served};
use crate::sa::registry::capacity;

/// The GUIDs of the end ports: entry 0 of block 0 is the PortGUID, the others are aliases as they were given.
impl Served for GuidInfoRecord {
    const SETTLED: u64 = 0b11;

    fn each(
        context: &Context<'_>,
        query: &Query<Self>,
        emit: &mut dyn FnMut(Self) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let wanted = query.field(1, |record| record.block_num);
        for port in query.visible_ports(|record| record.lid.get(), context) {
            if context.snapshot.observed.port_info(port.end).is_none() {
                continue;
            }
            let blocks = capacity(context.snapshot, port).div_ceil(GuidInfo::PER_BLOCK);
            for block in (0..blocks as u8).filter(|block| wanted.is_none_or(|wanted| wanted == *block)) {
                emit(Self::new(port.lid, block, context.snapshot.aliases.guid_info(port.guid, block)))?;
            }
        }
        ControlFlow::Continue(())
    }
}

/// The P_Key tables of end ports and of the external ports of switches, as far as they are known; for trusted requesters.
impl Served for PKeyTableRecord {
    const SETTLED: u64 = 0b1;

    fn each(
        context: &Context<'_>,
        query: &Query<Self>,
        emit: &mut dyn FnMut(Self) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        query.each_table_port(|record| record.lid.get(), context, &mut |node, port, number, _| {
            let table =
                if number == port.end.port { port.pkey_table.to_vec() } else { node.tables.pkeys_of(number) };
            for (block, keys) in (0..).zip(table.chunks(PKeyTable::PER_BLOCK)) {
                let mut table = PKeyTable::new_zeroed();
                table.pkeys.iter_mut().zip(keys).for_each(|(slot, key)| slot.set(key.0));
                emit(Self::new(port.lid, number, block, table))?;
            }
            ControlFlow::Continue(())
        })
    }
}
