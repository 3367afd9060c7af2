//! One request in, one answer out: the pure part of subnet administration.

use std::sync::Arc;

use mad::rmpp::Message;
use mad::transport::Address;
use mad::types::{Lid, QKey, Timestamp};
use mad::wire::ids::sa;
use mad::wire::sa::{
    ClassPortInfo, GuidInfoRecord, LinearForwardingTableRecord, LinkRecord, MulticastForwardingTableRecord,
    NodeRecord, PKeyTableRecord, PortInfoRecord, Record, SA_DATA_LEN, SaMad, SlToVlMappingTableRecord,
    SmInfoRecord, SwitchInfoRecord, VlArbitrationTableRecord,
};
use mad::wire::smp::SmState;
use mad::wire::{Attribute, Method, Status};
use zerocopy::FromZeros;

use super::records::Context;
use super::registry::Registry;
use super::{paths, records};
use crate::snapshot::Snapshot;

/// The largest table that is answered; what would be longer gets NO_RESOURCES.
const TABLE_LIMIT: usize = 512 << 20;

/// RespTimeValue of the SA: answers come within 4.096 µs · 2^16, 268 ms.
const RESPONSE_TIME: u8 = 16;

/// CapabilityMask2: IsSendOnlyFullMemberSupported (B40).
const CAP2_SEND_ONLY_FULL_MEMBER: u32 = 1 << 12;

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Request {
    /// The datagram; of a request in segments the first one.
    pub mad: SaMad,
    /// Where it came from.
    pub source: Address,
    /// The whole attribute of a request in segments.
    long: Option<Arc<[u8]>>,
}

impl Request {
    /// A request in one datagram.
    pub const fn new(mad: SaMad, source: Address) -> Self {
        Self { mad, source, long: None }
    }

    /// A request that came in segments.
    pub fn in_segments(message: Message) -> Self {
        let mad = SaMad::from_mad(message.head);
        Self { mad, source: message.address, long: Some(message.data.into()) }
    }

    /// The attribute.
    pub(super) fn attribute(&self) -> &[u8] {
        self.long.as_deref().unwrap_or(&self.mad.data)
    }
}

/// What a request is answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing: the datagram is no request, or this subnet manager may not answer.
    Silence,
    /// One datagram.
    Single(Box<SaMad>),
    /// A table, to be sent by RMPP.
    Table {
        /// The headers that each segment repeats.
        head: Box<SaMad>,
        /// The records, each at the distance that AttributeOffset says.
        records: Vec<u8>,
    },
}

/// The data of an answer.
#[derive(Debug)]
pub(super) enum Reply {
    /// One record, for all methods but GetTable and GetMulti.
    Record { attribute_offset: u16, data: [u8; SA_DATA_LEN] },
    /// Any number of records.
    Table { attribute_offset: u16, records: Vec<u8> },
}

impl Reply {
    /// An attribute that is no record.
    pub(super) fn attribute<A: Attribute>(attribute: &A) -> Self {
        let mut data = [0; SA_DATA_LEN];
        let _fits = attribute.encode(&mut data);
        Self::Record { attribute_offset: 0, data }
    }

    /// One record.
    pub(super) fn record<R: Record>(record: &R) -> Self {
        let mut data = [0; SA_DATA_LEN];
        let _fits = record.encode(&mut data);
        Self::Record { attribute_offset: R::ATTRIBUTE_OFFSET, data }
    }

    /// A table of records, [`Record::push_to`] one after the other. The offset is 0 when there are none (B44).
    pub(super) const fn table<R: Record>(records: Vec<u8>) -> Self {
        let attribute_offset = if records.is_empty() { 0 } else { R::ATTRIBUTE_OFFSET };
        Self::Table { attribute_offset, records }
    }
}

/// Answers a request that changes nothing, from a picture of the fabric and from what ports registered.
pub fn answer(snapshot: &Snapshot, registry: &Registry, request: &Request, now: Timestamp) -> Answer {
    finish(snapshot, request, |context| read(context, registry, request, now))
}

/// Carries out any request.
pub fn serve(snapshot: &Snapshot, registry: &mut Registry, request: &Request, now: Timestamp) -> Answer {
    finish(snapshot, request, |context| match request.mad.header.method() {
        Method::SET | Method::DELETE => registry.change(context, request, now),
        _ => read(context, registry, request, now),
    })
}

fn finish(
    snapshot: &Snapshot,
    request: &Request,
    reply: impl FnOnce(&Context<'_>) -> Result<Reply, Status>,
) -> Answer {
    let mad = &request.mad;
    let master = snapshot.sm.state == SmState::Master.to_wire();
    // Whoever tries keys is not told whether it was near.
    let key = mad.sm_key.get();
    let forged = key != 0 && key != snapshot.sm.sm_key;
    if mad.header.method().is_response() || !master || forged {
        return Answer::Silence;
    }
    let reply = match admit(snapshot, request) {
        Ok(context) => reply(&context),
        // Everybody may know what the SA can do.
        Err(Status::BUSY) if mad.header.attribute_id.get() == sa::CLASS_PORT_INFO => class_port_info(mad),
        Err(status) => Err(status),
    };
    match reply {
        Err(status) => refuse(mad, status),
        Ok(Reply::Record { attribute_offset, data }) => {
            let mut head = head(mad, Status::OK);
            head.attribute_offset.set(attribute_offset);
            head.data = data;
            Answer::Single(Box::new(head))
        }
        Ok(Reply::Table { attribute_offset, records }) => {
            let mut head = head(mad, Status::OK);
            head.attribute_offset.set(attribute_offset);
            Answer::Table { head: Box::new(head), records }
        }
    }
}

/// Who asks. A source GID that belongs to another port than the source LID is forged.
fn admit<'a>(snapshot: &'a Snapshot, request: &Request) -> Result<Context<'a>, Status> {
    let mad = &request.mad;
    if mad.header.class_version != SaMad::CLASS_VERSION {
        return Err(Status::BAD_VERSION);
    }
    if !is_known(mad.header.method()) {
        return Err(Status::METHOD_NOT_SUPPORTED);
    }
    // Only PortInfoRecord gives the AttributeModifier a meaning, and to one bit of it.
    let modifiers = if mad.header.attribute_id.get() == sa::PORT_INFO_RECORD { 1 << 31 } else { 0 };
    if mad.header.attribute_modifier.get() & !modifiers != 0 {
        return Err(Status::INVALID_FIELD);
    }
    // A port that is not in the picture yet is about to be: ask again.
    let requester = Lid::new(request.source.lid).and_then(|lid| snapshot.port_at(lid)).ok_or(Status::BUSY)?;
    let by_gid = request.source.grh.and_then(|grh| snapshot.port_by_gid(grh.gid));
    if by_gid.is_some_and(|port| port.end != requester.end) {
        return Err(Status::SA_REQ_DENIED);
    }
    let key = mad.sm_key.get();
    Ok(Context { snapshot, requester, trusted: key != 0 && key == snapshot.sm.sm_key })
}

fn read(
    context: &Context<'_>,
    registry: &Registry,
    request: &Request,
    now: Timestamp,
) -> Result<Reply, Status> {
    let mad = &request.mad;
    match mad.header.attribute_id.get() {
        sa::CLASS_PORT_INFO => class_port_info(mad),
        sa::NODE_RECORD => records::answer::<NodeRecord>(context, mad, TABLE_LIMIT),
        sa::PORT_INFO_RECORD => records::answer::<PortInfoRecord>(context, mad, TABLE_LIMIT),
        sa::SWITCH_INFO_RECORD => records::answer::<SwitchInfoRecord>(context, mad, TABLE_LIMIT),
        sa::LINEAR_FORWARDING_TABLE_RECORD => {
            records::answer::<LinearForwardingTableRecord>(context, mad, TABLE_LIMIT)
        }
        sa::MULTICAST_FORWARDING_TABLE_RECORD => {
            records::answer::<MulticastForwardingTableRecord>(context, mad, TABLE_LIMIT)
        }
        sa::GUID_INFO_RECORD => records::answer::<GuidInfoRecord>(context, mad, TABLE_LIMIT),
        // Which keys a port holds is what an attacker wants to know.
        sa::PKEY_TABLE_RECORD if !context.trusted => Err(Status::SA_REQ_INVALID),
        sa::PKEY_TABLE_RECORD => records::answer::<PKeyTableRecord>(context, mad, TABLE_LIMIT),
        sa::SL_TO_VL_MAPPING_TABLE_RECORD => {
            records::answer::<SlToVlMappingTableRecord>(context, mad, TABLE_LIMIT)
        }
        sa::VL_ARBITRATION_TABLE_RECORD => {
            records::answer::<VlArbitrationTableRecord>(context, mad, TABLE_LIMIT)
        }
        sa::LINK_RECORD => records::answer::<LinkRecord>(context, mad, TABLE_LIMIT),
        sa::SM_INFO_RECORD => records::answer::<SmInfoRecord>(context, mad, TABLE_LIMIT),
        sa::PATH_RECORD | sa::TRACE_RECORD if mad.header.method() == Method::GET_TRACE_TABLE => {
            paths::answer_trace(context, mad)
        }
        sa::PATH_RECORD => paths::answer(context, &registry.groups, mad, TABLE_LIMIT),
        sa::MULTI_PATH_RECORD if mad.header.method() == Method::GET_MULTI => {
            paths::answer_multi(context, request.attribute(), mad.component_mask.get())
        }
        sa::MC_MEMBER_RECORD | sa::SERVICE_RECORD | sa::INFORM_INFO_RECORD => {
            registry.select(context, mad, now)
        }
        _ => Err(Status::METHOD_ATTRIBUTE_NOT_SUPPORTED),
    }
}

const fn is_known(method: Method) -> bool {
    matches!(
        method,
        Method::GET
            | Method::SET
            | Method::REPORT
            | Method::GET_TABLE
            | Method::GET_TRACE_TABLE
            | Method::GET_MULTI
            | Method::DELETE
    )
}

/// What this SA can do, and nothing that it can't (B40).
fn class_port_info(mad: &SaMad) -> Result<Reply, Status> {
    if mad.header.method() != Method::GET {
        return Err(Status::METHOD_ATTRIBUTE_NOT_SUPPORTED);
    }
    let mut info = ClassPortInfo::new_zeroed();
    info.base_version = 1;
    info.class_version = SaMad::CLASS_VERSION;
    info.capability_mask.set(
        ClassPortInfo::SA_CAP_UD_MULTICAST
            | ClassPortInfo::SA_CAP_MULTIPATH
            | ClassPortInfo::SA_CAP_PORT_INFO_CAP_MASK_MATCH,
    );
    info.set_capability_mask2(
        ClassPortInfo::SA_CAP2_FULL_PORT_INFO_RECORD
            | ClassPortInfo::SA_CAP2_EXTENDED_SPEEDS
            | ClassPortInfo::SA_CAP2_ADDITIONAL_GUID
            | ClassPortInfo::SA_CAP2_PORT_INFO_CAP_MASK2_MATCH
            | CAP2_SEND_ONLY_FULL_MEMBER,
    );
    info.set_resp_time_value(RESPONSE_TIME.into());
    info.set_redirect_qp(1);
    info.redirect_qkey.set(QKey::GSI.0);
    info.trap_qkey.set(QKey::GSI.0);
    Ok(Reply::attribute(&info))
}

/// The headers of an answer. SM_Key is not given away (C15-0.1.5); a GetMulti of MultiPathRecord is answered with
/// PathRecords, a GetTraceTable with TraceRecords.
fn head(request: &SaMad, status: Status) -> SaMad {
    let mut head = SaMad::response_to(request, status);
    head.sm_key.set(0);
    head.attribute_offset.set(0);
    if request.header.attribute_id.get() == sa::MULTI_PATH_RECORD {
        head.header.attribute_id.set(sa::PATH_RECORD);
    }
    if request.header.method() == Method::GET_TRACE_TABLE {
        head.header.attribute_id.set(sa::TRACE_RECORD);
    }
    head
}

/// The request sent back with a status and without its data.
pub(super) fn refuse(request: &SaMad, status: Status) -> Answer {
    Answer::Single(Box::new(head(request, status)))
}
