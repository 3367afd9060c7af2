//! NodeRecord and PortInfoRecord.

use std::ops::ControlFlow;

use mad::types::{Guid, PortNum};
use mad::wire::sa::{NodeRecord, PortInfoRecord};
use mad::wire::smp::NodeDescription;

use super::{Context, Query, Served};
use crate::snapshot::EndPort;

/// Bits of NodeRecord's component mask.
mod node_bit {
    pub(super) const LID: u8 = 0;
    pub(super) const NODE_GUID: u8 = 7;
    pub(super) const PORT_GUID: u8 = 8;
}

/// One for each LID holder: each port of a channel adapter or router, each switch once.
impl Served for NodeRecord {
    const SETTLED: u64 = 1 << node_bit::LID;

    fn each(
        context: &Context<'_>,
        query: &Query<Self>,
        emit: &mut dyn FnMut(Self) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let snapshot = context.snapshot;
        let by_guid = query.field(node_bit::PORT_GUID, |record| record.node_info.port_guid());
        let ports = match by_guid.filter(|_| !query.asks(node_bit::LID)) {
            Some(guid) => snapshot.port_by_guid(guid).map_or(&[][..], std::slice::from_ref),
            None => query.ports_by_lid(node_bit::LID, |record| record.lid.get(), context),
        };
        let node = query.field(node_bit::NODE_GUID, |record| record.node_info.node_guid());
        if let Some(guid) = node.filter(|_| ports.len() > 1) {
            return each_of_node(context, guid, emit);
        }
        for port in ports.iter().filter(|port| context.may_see(port)) {
            if let Some(record) = node_record(context, port) {
                emit(record)?;
            }
        }
        ControlFlow::Continue(())
    }
}

/// The records of one node, found by its NodeGUID.
fn each_of_node(
    context: &Context<'_>,
    guid: Guid,
    emit: &mut dyn FnMut(NodeRecord) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let snapshot = context.snapshot;
    let fabric = &snapshot.observed.fabric;
    let Some(id) = fabric.find(guid) else { return ControlFlow::Continue(()) };
    for (_, facts) in fabric.node(id).end_ports() {
        let port = facts.lid.and_then(|lid| snapshot.port_at(lid)).filter(|port| port.end.node == id);
        if let Some(record) =
            port.filter(|port| context.may_see(port)).and_then(|port| node_record(context, port))
        {
            emit(record)?;
        }
    }
    ControlFlow::Continue(())
}

/// NodeInfo as it would be asked through this very port; port 0 of a switch, by whatever port the walk came to it.
fn node_record(context: &Context<'_>, port: &EndPort) -> Option<NodeRecord> {
    let node = context.snapshot.observed.node(port.end.node)?;
    let mut info = node.node_info;
    info.port_guid.set(port.guid.0);
    info.set_local_port_num(port.end.port);
    Some(NodeRecord::new(port.lid, info, NodeDescription { text: node.description }))
}

/// Bits of PortInfoRecord's component mask.
mod port_bit {
    pub(super) const LID: u8 = 0;
    pub(super) const PORT_NUM: u8 = 1;
    pub(super) const OPTIONS: u8 = 2;
    pub(super) const BASE_LID: u8 = 5;
    pub(super) const CAPABILITY_MASK: u8 = 7;
    pub(super) const CAPABILITY_MASK2: u8 = 53;
}

/// Attribute modifier, bit 31: CapabilityMask and CapabilityMask2 select the ports that have *all the bits set* that the
/// template has, instead of exactly those.
const CAPABILITY_MATCH: u32 = 1 << 31;

/// One for each port, all ports of a switch under its LID. `Options` asks for complete records, and all are complete.
impl Served for PortInfoRecord {
    const SETTLED: u64 = 1 << port_bit::LID | 1 << port_bit::PORT_NUM | 1 << port_bit::OPTIONS;

    fn each(
        context: &Context<'_>,
        query: &Query<Self>,
        emit: &mut dyn FnMut(Self) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let number = query.field(port_bit::PORT_NUM, |record| record.port_num);
        // BaseLID of a switch's external ports is 0: only a real LID is a way to find the port.
        let base = query.field(port_bit::BASE_LID, |record| record.port_info.lid()).flatten();
        let ports = if base.is_some() && !query.asks(port_bit::LID) {
            query.ports_by_lid(port_bit::BASE_LID, |record| record.port_info.base_lid.get(), context)
        } else {
            query.ports_by_lid(port_bit::LID, |record| record.lid.get(), context)
        };
        for port in ports.iter().filter(|port| context.may_see(port)) {
            each_port(context, port, number, emit)?;
        }
        ControlFlow::Continue(())
    }

    fn fits(&self, query: &Query<Self>) -> bool {
        let mut mask = query.mask & !Self::SETTLED;
        if query.modifier & CAPABILITY_MATCH != 0 {
            let has = |bit: u8, theirs: u32, wanted: u32| !query.asks(bit) || theirs & wanted == wanted;
            let (ours, wanted) = (&self.port_info, &query.template.port_info);
            let cap =
                has(port_bit::CAPABILITY_MASK, ours.capability_mask.get(), wanted.capability_mask.get());
            let (ours2, wanted2) = (ours.capability_mask2.get(), wanted.capability_mask2.get());
            let cap2 = has(port_bit::CAPABILITY_MASK2, ours2.into(), wanted2.into());
            if !cap || !cap2 {
                return false;
            }
            mask &= !(1 << port_bit::CAPABILITY_MASK | 1 << port_bit::CAPABILITY_MASK2);
        }
        mad::wire::sa::Record::matches(self, &query.template, mask)
    }
}

fn each_port(
    context: &Context<'_>,
    port: &EndPort,
    number: Option<u8>,
    emit: &mut dyn FnMut(PortInfoRecord) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let Some(node) = context.snapshot.observed.node(port.end.node) else { return ControlFlow::Continue(()) };
    let numbers = match (port.is_switch(), number) {
        (true, Some(number)) => number..=number,
        (true, None) => 0..=node.node_info.num_ports,
        (false, Some(number)) if number != port.end.port.0 => return ControlFlow::Continue(()),
        (false, _) => port.end.port.0..=port.end.port.0,
    };
    for number in numbers.map(PortNum) {
        let Some(info) = node.port_info(number) else { continue };
        let mut record = PortInfoRecord::new(port.lid, number, *info);
        if !context.trusted {
            record.port_info.m_key.set(0);
        }
        emit(record)?;
    }
    ControlFlow::Continue(())
}

#[cfg(test)]
mod tests {
    use mad::wire::sa::Record;

    use super::*;

    #[test]
    fn the_bits_are_those_of_the_component_tables() {
        let node = |name| NodeRecord::component_mask(&[name]).unwrap().trailing_zeros() as u8;
        assert_eq!(node("LID"), node_bit::LID);
        assert_eq!(node("NodeGUID"), node_bit::NODE_GUID);
        assert_eq!(node("PortGUID"), node_bit::PORT_GUID);
        let port = |name| PortInfoRecord::component_mask(&[name]).unwrap().trailing_zeros() as u8;
        assert_eq!(port("LID"), port_bit::LID);
        assert_eq!(port("PortNum"), port_bit::PORT_NUM);
        assert_eq!(port("Options"), port_bit::OPTIONS);
        assert_eq!(port("BaseLID"), port_bit::BASE_LID);
        assert_eq!(port("CapabilityMask"), port_bit::CAPABILITY_MASK);
        assert_eq!(port("CapabilityMask2"), port_bit::CAPABILITY_MASK2);
    }
}
