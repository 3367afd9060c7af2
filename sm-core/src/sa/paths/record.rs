//! PathRecord as the wire has it, to and from a [`PathQuery`].

use std::ops::ControlFlow;

use mad::types::{Gid, Lid, Mtu, Rate};
use mad::wire::sa::{PathRecord, Record, SaMad, Selector};
use mad::wire::{Attribute, Method, Status};
use zerocopy::FromZeros;
use zerocopy::big_endian::{U16, U128};

use super::{Ends, Path, PathQuery, Side, Wanted};
use crate::sa::answer::Reply;
use crate::sa::records::Context;
use crate::sa::registry::{Groups, one_or_table};
use crate::sa::selector::Bound;

/// Answers Get and GetTable of PathRecord.
pub(in crate::sa) fn answer(
    context: &Context<'_>,
    groups: &Groups,
    request: &SaMad,
    limit: usize,
) -> Result<Reply, Status> {
    let Some(template) = PathRecord::decode(&request.data) else { return Err(Status::SA_REQ_INVALID) };
    // A Get has one path whatever NumbPath says. The kernel's IPoIB asks again with the record that it got, where it is 0.
    let ignored = if request.header.method() == Method::GET { PathRecord::NUMB_PATH } else { 0 };
    let asked = Asked { template, mask: request.component_mask.get() & !ignored };
    if asked.has(PathRecord::DGID) && template.dgid().is_multicast() {
        let records: Vec<_> = asked.to_group(context, groups)?.into_iter().collect();
        return one_or_table(request, records.into_iter());
    }
    let query = asked.query()?;
    match request.header.method() {
        Method::GET => {
            let path = query.best(context.snapshot, context.requester)?.ok_or(Status::SA_NO_RECORDS)?;
            Ok(Reply::record(&asked.record(&path)))
        }
        Method::GET_TABLE => {
            let mut table = Vec::new();
            let full = query.all(context.snapshot, context.requester, &mut |path| {
                if table.len() + PathRecord::TABLE_LEN > limit {
                    return ControlFlow::Break(());
                }
                asked.record(path).push_to(&mut table);
                ControlFlow::Continue(())
            })?;
            if full.is_break() { Err(Status::SA_NO_RESOURCES) } else { Ok(Reply::table::<PathRecord>(table)) }
        }
        _ => Err(Status::METHOD_ATTRIBUTE_NOT_SUPPORTED),
    }
}

/// A query as it came.
pub(super) struct Asked {
    pub(super) template: PathRecord,
    pub(super) mask: u64,
}

impl Asked {
    const fn has(&self, component: u64) -> bool {
        self.mask & component == component
    }

    fn field<T>(&self, component: u64, value: T) -> Option<T> {
        self.has(component).then_some(value)
    }

    /// A bound that has both of its components; a value without a selector or the reverse bounds nothing.
    fn bound<T: Copy>(
        &self,
        components: u64,
        selector: Selector,
        code: u8,
        decode: impl Fn(u8) -> Option<T>,
    ) -> Result<Option<Bound<T>>, Status> {
        self.field(components, ()).map(|()| Bound::new(selector, code, decode)).transpose()
    }

    pub(super) fn query(&self) -> Result<PathQuery, Status> {
        let record = &self.template;
        if matches!(self.mask & PathRecord::SERVICE_ID, 1 | 2) {
            return Err(Status::SA_INSUFFICIENT_COMPONENTS);
        }
        let paths_per_pair = self.field(PathRecord::NUMB_PATH, record.numb_path());
        if paths_per_pair == Some(0) {
            return Err(Status::SA_REQ_INVALID);
        }
        let wanted = Wanted {
            reversible: self.field(PathRecord::REVERSIBLE, record.reversible() == 1),
            pkey: self.field(PathRecord::PKEY, record.pkey()),
            sl: self.field(PathRecord::SL, record.sl() as u8),
            mtu: self.bound(
                PathRecord::MTU | PathRecord::MTU_SELECTOR,
                record.mtu_selector(),
                record.mtu_raw(),
                Mtu::from_wire,
            )?,
            rate: self.bound(
                PathRecord::RATE | PathRecord::RATE_SELECTOR,
                record.rate_selector(),
                record.rate_raw(),
                Rate::from_wire,
            )?,
            lifetime: self.bound(
                PathRecord::PACKET_LIFE_TIME | PathRecord::PACKET_LIFE_TIME_SELECTOR,
                record.packet_life_time_selector(),
                record.packet_life_time(),
                Some,
            )?,
            raw_traffic: self.field(PathRecord::RAW_TRAFFIC, record.raw_traffic() == 1).unwrap_or(false),
        };
        let gid = |component, gid: Gid| self.field(component, gid);
        Ok(PathQuery {
            source: Side {
                gid: gid(PathRecord::SGID, record.sgid()),
                lid: self.field(PathRecord::SLID, record.slid.get()),
            },
            target: Side {
                gid: gid(PathRecord::DGID, record.dgid()),
                lid: self.field(PathRecord::DLID, record.dlid.get()),
            },
            wanted,
            paths_per_pair,
        })
    }

    /// The path to a multicast group: from the group's own properties (B43: only for an explicit DGID).
    fn to_group(&self, context: &Context<'_>, groups: &Groups) -> Result<Option<PathRecord>, Status> {
        let query = self.query()?;
        let snapshot = context.snapshot;
        let source = match Ends::resolve(snapshot, query.source)? {
            Ends::One(port, _) => port,
            Ends::Any => context.requester,
            Ends::Nobody => return Ok(None),
        };
        let Some(group) = groups.get(self.template.dgid()) else { return Ok(None) };
        let traits = &group.traits;
        let named = |component, asked: u32, is: u32| !self.has(component) || asked == is;
        let template = &self.template;
        let fits = source.has_partition(traits.pkey)
            && context.requester.has_partition(traits.pkey)
            && named(PathRecord::DLID, template.dlid.get().into(), group.mlid.get().into())
            && named(PathRecord::PKEY, template.pkey().base().into(), traits.pkey.base().into())
            && named(PathRecord::SL, template.sl().into(), traits.sl.into())
            && named(PathRecord::FLOW_LABEL, template.flow_label(), traits.flow_label)
            && named(PathRecord::TCLASS, template.tclass.into(), traits.tclass.into())
            && query.wanted.mtu.is_none_or(|bound| bound.allows_mtu(traits.mtu))
            && query.wanted.rate.is_none_or(|bound| bound.allows_rate(traits.rate))
            && query.wanted.lifetime.is_none_or(|bound| bound.lifetime(traits.lifetime));
        if !fits {
            return Ok(None);
        }
        let mut record = self.record(&Path {
            sgid: query.source.gid.unwrap_or_else(|| snapshot.gid_of(source)),
            dgid: group.mgid,
            slid: query.source.lid.and_then(Lid::new).unwrap_or(source.lid),
            dlid: source.lid,
            reversible: self.has(PathRecord::REVERSIBLE) && template.reversible() == 1,
            pkey: traits.pkey.0,
            sl: traits.sl,
            mtu: traits.mtu,
            rate: traits.rate,
            lifetime: traits.lifetime,
            preference: 0,
        });
        record.dlid = U16::new(group.mlid.get());
        record.tclass = traits.tclass;
        record.set_flow_label(traits.flow_label);
        let beyond_link = (group.mgid.0 >> 112) & 0xf > 2;
        record.set_hop_limit(if beyond_link { 255 } else { traits.hop_limit.into() });
        Ok(Some(record))
    }

    /// The record of a path. What the query names and the path leaves free (service ID, traffic class, flow label, QoS
    /// class) comes back as it was asked for.
    pub(super) fn record(&self, path: &Path) -> PathRecord {
        let mut record = PathRecord::new_zeroed();
        let asked = &self.template;
        if self.has(PathRecord::SERVICE_ID) {
            record.service_id = asked.service_id;
        }
        record.tclass = self.field(PathRecord::TCLASS, asked.tclass).unwrap_or(0);
        record.set_flow_label(self.field(PathRecord::FLOW_LABEL, asked.flow_label()).unwrap_or(0));
        record.set_qos_class(self.field(PathRecord::QOS_CLASS, asked.qos_class()).unwrap_or(0));
        record.set_raw_traffic(self.field(PathRecord::RAW_TRAFFIC, asked.raw_traffic()).unwrap_or(0));
        record.dgid = U128::new(path.dgid.0);
        record.sgid = U128::new(path.sgid.0);
        record.dlid = U16::new(path.dlid.get());
        record.slid = U16::new(path.slid.get());
        record.set_reversible(path.reversible.into());
        record.pkey = U16::new(path.pkey);
        record.set_sl(path.sl.into());
        record.set_mtu(Selector::Exactly, path.mtu);
        record.set_rate(Selector::Exactly, path.rate);
        record.set_packet_life_time_selector_raw(Selector::Exactly.to_wire());
        record.set_packet_life_time(path.lifetime);
        record.preference = path.preference;
        record
    }
}
