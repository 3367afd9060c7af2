//! Records that are read from the snapshot: which there are, and how a query selects among them (specification volume 1,
//! 15.2.5 and 15.4.4).
//!
//! There is one selection for all record types. A type says only which records there are ([`Served::each`]); where the
//! query names a LID or a GUID, it looks that up and doesn't walk over all nodes. What is left of the component mask is
//! compared field by field by [`Record::matches`].

mod node;
mod port_tables;
mod qos;
mod switch;
mod topology;

use std::ops::ControlFlow;

use mad::types::{Lid, PortNum};
use mad::wire::sa::{Record, SaMad};
use mad::wire::smp::PortInfo;
use mad::wire::{Method, Status};

use super::answer::Reply;
use crate::observed::ObservedNode;
use crate::snapshot::{EndPort, Snapshot};

pub(super) use qos::unread;

/// Who asks, and of what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context<'a> {
    pub(super) snapshot: &'a Snapshot,
    /// The port that the request came from.
    pub(super) requester: &'a EndPort,
    /// Whether the request carries the right SM_Key.
    pub(super) trusted: bool,
}

impl Context<'_> {
    /// Whether records about a port may be shown to the requester.
    pub(super) fn may_see(&self, port: &EndPort) -> bool {
        self.trusted || self.requester.shares_partition(port)
    }
}

/// What a query says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Query<R> {
    /// The fields.
    pub(super) template: R,
    /// Which of them count.
    pub(super) mask: u64,
    /// AttributeModifier.
    pub(super) modifier: u32,
}

impl<R: Record> Query<R> {
    /// Whether component `bit` counts.
    pub(super) const fn asks(&self, bit: u8) -> bool {
        self.mask >> bit & 1 == 1
    }

    /// `value` where component `bit` counts.
    pub(super) fn field<T>(&self, bit: u8, value: impl FnOnce(&R) -> T) -> Option<T> {
        self.asks(bit).then(|| value(&self.template))
    }

    /// The end ports that a LID component selects: the one that holds the LID (any of its LIDs), or all.
    pub(super) fn ports_by_lid<'a>(
        &self,
        bit: u8,
        lid: impl FnOnce(&R) -> u16,
        context: &Context<'a>,
    ) -> &'a [EndPort] {
        ports_at(context.snapshot, self.field(bit, lid))
    }

    /// Those of them that the requester may see, for records whose component 0 is the LID.
    pub(super) fn visible_ports<'a>(
        &self,
        lid: impl FnOnce(&R) -> u16,
        context: &Context<'a>,
    ) -> impl Iterator<Item = &'a EndPort> {
        let context = *context;
        self.ports_by_lid(0, lid, &context).iter().filter(move |port| context.may_see(port))
    }

    /// The switches among them.
    pub(super) fn visible_switches<'a>(
        &self,
        lid: impl FnOnce(&R) -> u16,
        context: &Context<'a>,
    ) -> impl Iterator<Item = &'a EndPort> {
        self.visible_ports(lid, context).filter(|port| port.is_switch())
    }

    /// Hands each port with tables of them to `emit`, all ports of a switch under its LID: the node, the end port by whose
    /// LID it is known, and the port with its PortInfo.
    pub(super) fn each_table_port<'a>(
        &self,
        lid: impl FnOnce(&R) -> u16,
        context: &Context<'a>,
        emit: &mut dyn FnMut(&'a ObservedNode, &'a EndPort, PortNum, &'a PortInfo) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for port in self.visible_ports(lid, context) {
            let Some(node) = context.snapshot.observed.node(port.end.node) else { continue };
            let numbers = if port.is_switch() {
                0..=node.node_info.num_ports
            } else {
                port.end.port.0..=port.end.port.0
            };
            for number in numbers.map(PortNum) {
                if let Some(info) = node.port_info(number) {
                    emit(node, port, number, info)?;
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// The end port that holds a LID (any of its LIDs), or all.
fn ports_at(snapshot: &Snapshot, lid: Option<u16>) -> &[EndPort] {
    match lid {
        None => snapshot.end_ports(),
        Some(raw) => Lid::new(raw).and_then(|lid| snapshot.port_at(lid)).map_or(&[], std::slice::from_ref),
    }
}

/// A record type that is read from the snapshot.
pub(super) trait Served: Record {
    /// Components that [`Served::each`] settles itself, so that they need no comparison.
    const SETTLED: u64;

    /// Hands the records that may fit to `emit`, until it says stop.
    fn each(
        context: &Context<'_>,
        query: &Query<Self>,
        emit: &mut dyn FnMut(Self) -> ControlFlow<()>,
    ) -> ControlFlow<()>;

    /// Whether a record fits in what [`Served::each`] left open.
    fn fits(&self, query: &Query<Self>) -> bool {
        self.matches(&query.template, query.mask & !Self::SETTLED)
    }
}

/// Answers a Get or a GetTable.
pub(super) fn answer<R: Served>(
    context: &Context<'_>,
    request: &SaMad,
    limit: usize,
) -> Result<Reply, Status> {
    let Some(template) = R::decode(&request.data) else { return Err(Status::SA_REQ_INVALID) };
    let mask = request.component_mask.get();
    let query = Query { template, mask, modifier: request.header.attribute_modifier.get() };
    match request.header.method() {
        Method::GET => {
            let (mut first, mut more) = (None, false);
            let _ = R::each(context, &query, &mut |record| {
                if !record.fits(&query) {
                    return ControlFlow::Continue(());
                }
                if first.is_none() {
                    first = Some(record);
                    return ControlFlow::Continue(());
                }
                more = true;
                ControlFlow::Break(())
            });
            match first {
                _ if more => Err(Status::SA_TOO_MANY_RECORDS),
                Some(record) => Ok(Reply::record(&record)),
                None => Err(Status::SA_NO_RECORDS),
            }
        }
        Method::GET_TABLE => {
            let mut table = Vec::new();
            let full = R::each(context, &query, &mut |record| {
                if record.fits(&query) {
                    if table.len() + R::TABLE_LEN > limit {
                        return ControlFlow::Break(());
                    }
                    record.push_to(&mut table);
                }
                ControlFlow::Continue(())
            });
            if full.is_break() { Err(Status::SA_NO_RESOURCES) } else { Ok(Reply::table::<R>(table)) }
        }
        _ => Err(Status::METHOD_ATTRIBUTE_NOT_SUPPORTED),
    }
}
