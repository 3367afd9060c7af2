//! MCMemberRecord as the wire has it, to and from [`MemberRequest`] and [`Group`].

use mad::types::{Mtu, Rate};
use mad::wire::Status;
use mad::wire::sa::{JoinState, McMemberRecord, Record, Selector};
use zerocopy::FromZeros;
use zerocopy::big_endian::{U16, U32, U128};

use super::groups::{Group, MemberRequest, Membership};
use crate::sa::selector::Bound;

/// The record of a group, with a member's part in it or (`None`) without.
pub(super) fn record(group: &Group, member: Option<&Membership>) -> McMemberRecord {
    let traits = &group.traits;
    let mut record = McMemberRecord::new_zeroed();
    record.mgid = U128::new(group.mgid.0);
    record.qkey = U32::new(traits.qkey.0);
    record.mlid = U16::new(group.mlid.get());
    record.set_mtu(Selector::Exactly, traits.mtu);
    record.tclass = traits.tclass;
    record.pkey = U16::new(traits.pkey.0);
    record.set_rate(Selector::Exactly, traits.rate);
    record.set_packet_life_time_selector_raw(Selector::Exactly.to_wire());
    record.set_packet_life_time(traits.lifetime);
    record.set_sl(traits.sl.into());
    record.set_flow_label(traits.flow_label);
    record.set_hop_limit(traits.hop_limit.into());
    record.set_scope((group.mgid.0 >> 112) as u8 & 0xf);
    if let Some(member) = member {
        record.port_gid = U128::new(member.gid.0);
        record.set_join_state_raw(member.join_state.0);
        record.set_proxy_join(member.proxy.into());
    }
    record
}

/// A request to join or leave.
///
/// # Errors
/// INSUFFICIENT_COMPONENTS without MGID, PortGID and JoinState; REQ_INVALID for unknown codes of MTU and rate.
pub(super) fn request(record: &McMemberRecord, mask: u64) -> Result<MemberRequest, Status> {
    let required = McMemberRecord::MGID | McMemberRecord::PORT_GID | McMemberRecord::JOIN_STATE;
    if mask & required != required {
        return Err(Status::SA_INSUFFICIENT_COMPONENTS);
    }
    let has = |component: u64| mask & component == component;
    let bounds = Bounds::of(record, mask)?;
    Ok(MemberRequest {
        mgid: record.mgid(),
        port_gid: record.port_gid(),
        join_state: JoinState(record.join_state_raw()),
        qkey: has(McMemberRecord::QKEY).then(|| record.qkey()),
        mlid: has(McMemberRecord::MLID).then(|| record.mlid.get()),
        mtu: bounds.mtu,
        tclass: has(McMemberRecord::TCLASS).then_some(record.tclass),
        pkey: has(McMemberRecord::PKEY).then(|| record.pkey()),
        rate: bounds.rate,
        lifetime: bounds.lifetime,
        sl: has(McMemberRecord::SL).then(|| record.sl() as u8),
        flow_label: has(McMemberRecord::FLOW_LABEL).then(|| record.flow_label()),
        hop_limit: has(McMemberRecord::HOP_LIMIT).then(|| record.hop_limit() as u8),
        scope: has(McMemberRecord::SCOPE).then(|| record.scope()),
    })
}

/// The three values that come with selectors.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    mtu: Option<Bound<Mtu>>,
    rate: Option<Bound<Rate>>,
    lifetime: Option<Bound<u8>>,
}

impl Bounds {
    const MTU: u64 = McMemberRecord::MTU_SELECTOR | McMemberRecord::MTU;
    const RATE: u64 = McMemberRecord::RATE_SELECTOR | McMemberRecord::RATE;
    const LIFETIME: u64 = McMemberRecord::PACKET_LIFE_TIME_SELECTOR | McMemberRecord::PACKET_LIFE_TIME;

    fn of(record: &McMemberRecord, mask: u64) -> Result<Self, Status> {
        let has = |components: u64| (mask & components == components).then_some(());
        let mtu = || Bound::new(record.mtu_selector(), record.mtu_raw(), Mtu::from_wire);
        let rate = || Bound::new(record.rate_selector(), record.rate_raw(), Rate::from_wire);
        let lifetime = || Bound::new(record.packet_life_time_selector(), record.packet_life_time(), Some);
        Ok(Self {
            mtu: has(Self::MTU).map(|()| mtu()).transpose()?,
            rate: has(Self::RATE).map(|()| rate()).transpose()?,
            lifetime: has(Self::LIFETIME).map(|()| lifetime()).transpose()?,
        })
    }
}

/// Whether a group's record is what a query asks for: bounds by their selectors, everything else field by field.
pub(super) fn fits(
    record: &McMemberRecord,
    group: &Group,
    template: &McMemberRecord,
    mask: u64,
) -> Result<bool, Status> {
    let bounds = Bounds::of(template, mask)?;
    let rest = mask & !(Bounds::MTU | Bounds::RATE | Bounds::LIFETIME);
    Ok(record.matches(template, rest)
        && bounds.mtu.is_none_or(|bound| bound.allows_mtu(group.traits.mtu))
        && bounds.rate.is_none_or(|bound| bound.allows_rate(group.traits.rate))
        && bounds.lifetime.is_none_or(|bound| bound.lifetime(group.traits.lifetime)))
}
