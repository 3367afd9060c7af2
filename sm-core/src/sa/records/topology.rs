//! LinkRecord and SMInfoRecord.

use std::ops::ControlFlow;

use mad::types::{Lid, PortNum};
use mad::wire::sa::{LinkRecord, SmInfoRecord};
use mad::wire::smp::SmInfo;
use routing::fabric::PortRef;
use zerocopy::FromZeros;
use zerocopy::big_endian::U16;

use super::{Context, Query, Served};
use crate::snapshot::EndPort;

/// Bits of LinkRecord's component mask.
mod link_bit {
    pub(super) const FROM_LID: u8 = 0;
    pub(super) const FROM_PORT: u8 = 1;
    pub(super) const TO_LID: u8 = 3;
}

/// One for each direction of each link between ports that are up.
impl Served for LinkRecord {
    const SETTLED: u64 = 1 << link_bit::FROM_LID | 1 << link_bit::FROM_PORT | 1 << link_bit::TO_LID;

    fn each(
        context: &Context<'_>,
        query: &Query<Self>,
        emit: &mut dyn FnMut(Self) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let number = query.field(link_bit::FROM_PORT, |record| record.from_port);
        let from = |record: &Self| record.from_lid.get();
        let to = |record: &Self| record.to_lid.get();
        if query.asks(link_bit::FROM_LID) || !query.asks(link_bit::TO_LID) {
            // From here on, to one port or to any.
            let target = query.field(link_bit::TO_LID, to).map(|raw| holder(context, raw));
            for port in query.ports_by_lid(link_bit::FROM_LID, from, context) {
                each_link(context, port, &mut |link, far| {
                    let fits = number.is_none_or(|number| number == link.from_port)
                        && target.is_none_or(|target| target.is_some_and(|target| target.end == far.end));
                    if fits { emit(link) } else { ControlFlow::Continue(()) }
                })?;
            }
            return ControlFlow::Continue(());
        }
        for port in query.ports_by_lid(link_bit::TO_LID, to, context) {
            each_link(context, port, &mut |link, _| {
                let back = Self {
                    from_lid: link.to_lid,
                    from_port: link.to_port,
                    to_port: link.from_port,
                    to_lid: link.from_lid,
                };
                if number.is_none_or(|number| number == back.from_port) {
                    emit(back)
                } else {
                    ControlFlow::Continue(())
                }
            })?;
        }
        ControlFlow::Continue(())
    }
}

fn holder<'a>(context: &Context<'a>, raw: u16) -> Option<&'a EndPort> {
    context.snapshot.port_at(Lid::new(raw)?)
}

/// The links of an end port: its own cable, or all cables of the switch.
fn each_link<'a>(
    context: &Context<'a>,
    port: &EndPort,
    emit: &mut dyn FnMut(LinkRecord, &'a EndPort) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let snapshot = context.snapshot;
    let fabric = &snapshot.observed.fabric;
    if !context.may_see(port) {
        return ControlFlow::Continue(());
    }
    let Some(node) = fabric.get(port.end.node) else { return ControlFlow::Continue(()) };
    for (number, facts) in node.numbered_ports() {
        if !facts.state.is_up() || !(port.is_switch() || number == port.end.port) {
            continue;
        }
        let Some(peer) = fabric.peer(PortRef { node: port.end.node, port: number }) else { continue };
        let holder = PortRef { port: lid_holder(context, peer), ..peer };
        let far = fabric.port(holder).and_then(|facts| facts.lid).and_then(|lid| snapshot.port_at(lid));
        let Some(far) = far.filter(|far| far.end == holder && context.may_see(far)) else { continue };
        let link = LinkRecord {
            from_lid: U16::new(port.lid.get()),
            from_port: number.0,
            to_port: peer.port.0,
            to_lid: U16::new(far.lid.get()),
        };
        emit(link, far)?;
    }
    ControlFlow::Continue(())
}

/// The port of the node that holds the LID by which `end` is known: port 0 of a switch, else the port itself.
fn lid_holder(context: &Context<'_>, end: PortRef) -> PortNum {
    let switch = context.snapshot.observed.fabric.get(end.node).is_some_and(routing::fabric::Node::is_switch);
    if switch { PortNum::MANAGEMENT } else { end.port }
}

/// This subnet manager, and the others that answered the last sweep. SM_Key is shown to trusted requesters only, and the
/// keys of others not at all.
impl Served for SmInfoRecord {
    const SETTLED: u64 = 0;

    fn each(
        context: &Context<'_>,
        _query: &Query<Self>,
        emit: &mut dyn FnMut(Self) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let sm = &context.snapshot.sm;
        let mut info = SmInfo::new_zeroed();
        info.guid.set(sm.guid.0);
        info.set_priority(sm.priority);
        info.set_state_raw(sm.state);
        info.act_count.set(sm.act_count);
        if context.trusted {
            info.sm_key.set(sm.sm_key);
        }
        emit(Self::new(sm.lid, info))?;
        for other in &context.snapshot.observed.managers {
            let port = context.snapshot.port_by_guid(other.guid);
            let Some(port) = port.filter(|port| context.may_see(port) && port.guid != sm.guid) else {
                continue;
            };
            let mut info = other.info;
            info.sm_key.set(0);
            emit(Self::new(port.lid, info))?;
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use mad::wire::sa::Record;

    use super::*;

    #[test]
    fn the_bits_are_those_of_the_component_table() {
        let bit = |name| LinkRecord::component_mask(&[name]).unwrap().trailing_zeros() as u8;
        assert_eq!(bit("FromLID"), link_bit::FROM_LID);
        assert_eq!(bit("FromPort"), link_bit::FROM_PORT);
        assert_eq!(bit("ToLID"), link_bit::TO_LID);
    }
}
