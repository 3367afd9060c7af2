//! What a client asks for, and the requests for it, with the components that Linux names.

use std::fmt;

use mad::types::{Gid, Guid, PKey};
use mad::wire::sa::{JoinState, McMemberRecord, PathRecord, SaMad, Selector, ServiceRecord};
use mad::wire::smp::InformInfo;
use mad::wire::{Attribute, Method};
use zerocopy::FromZeros;
use zerocopy::big_endian::{U16, U32, U64, U128};

use crate::world::Registration;

/// Q_Key of groups that are not IPoIB's: RDMA_UDP_QKEY of the kernel's connection manager.
const QKEY: u32 = 0x0123_4567;
/// RespTimeValue of subscriptions: 4.096 µs · 2^18, one second.
const RESPONSE_TIME: u32 = 18;

/// Something to be registered or asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thing {
    /// Membership in a multicast group.
    Group {
        /// MGID.
        mgid: Gid,
        /// The kind of membership.
        how: JoinState,
    },
    /// A service that is offered.
    Service {
        /// ServiceID.
        id: u64,
        /// Lease in seconds; without end when `None`.
        lease: Option<u32>,
    },
    /// A subscription to a trap.
    Trap(u16),
    /// A path to the port with this GUID.
    Path(Guid),
}

impl Thing {
    /// What the SA is to know of the port `own`; `None` for a question.
    pub fn registration(&self, own: Guid) -> Option<Registration> {
        Some(match *self {
            Self::Group { mgid, how } => Registration::member(mgid, own, how),
            Self::Service { id, .. } => Registration::Service { id, port: own },
            Self::Trap(trap) => Registration::Subscription { trap, port: own },
            Self::Path(_) => return None,
        })
    }

    /// The group that has to be joined before.
    pub(super) fn waits_for(&self) -> Option<Gid> {
        match self {
            Self::Group { mgid, .. } => broadcast_of(*mgid).filter(|broadcast| broadcast != mgid),
            _ => None,
        }
    }

    /// The request of the port with GID `own`: to register, or (`wanted` false) to give back.
    pub(super) fn request(&self, own: Gid, wanted: bool, broadcast: Option<&McMemberRecord>) -> SaMad {
        let method = if wanted { Method::SET } else { Method::DELETE };
        match *self {
            Self::Group { mgid, how } => member(method, mgid, how, own, broadcast.filter(|_| wanted)),
            Self::Service { id, lease } => service(method, id, lease, own),
            Self::Trap(trap) => subscription(trap, wanted),
            Self::Path(to) => path(own, Gid::new(own.prefix(), to)),
        }
    }
}

impl fmt::Display for Thing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Group { mgid, how } => write!(f, "membership in {mgid} (JoinState {})", how.0),
            Self::Service { id, .. } => write!(f, "service 0x{id:x}"),
            Self::Trap(trap) => write!(f, "subscription to trap {trap}"),
            Self::Path(to) => write!(f, "path to port {to}"),
        }
    }
}

/// The broadcast group that an IPoIB group belongs to, or is itself (RFC 4391, 4 and 5); `None` for other groups.
pub(super) fn broadcast_of(mgid: Gid) -> Option<Gid> {
    let bytes = mgid.0.to_be_bytes();
    let scope = u128::from(bytes[1] & 0xf);
    let key = u128::from(u16::from_be_bytes([bytes[4], bytes[5]]) | 0x8000);
    matches!((bytes[2], bytes[3]), (0x40 | 0x60, 0x1b))
        .then_some(Gid((0xff10_401b | scope << 16) << 96 | key << 80 | 0xffff_ffff))
}

fn with<A: Attribute>(method: Method, mask: u64, attribute: &A) -> SaMad {
    let mut mad = SaMad::request(method, A::ID, mask);
    let fits = attribute.encode(&mut mad.data);
    debug_assert!(fits, "an attribute fits into a datagram");
    mad
}

fn member(method: Method, mgid: Gid, how: JoinState, own: Gid, broadcast: Option<&McMemberRecord>) -> SaMad {
    let mut record = McMemberRecord::new_zeroed();
    let mut mask = McMemberRecord::MGID | McMemberRecord::PORT_GID | McMemberRecord::JOIN_STATE;
    record.mgid = U128::new(mgid.0);
    record.port_gid = U128::new(own.0);
    record.set_join_state_raw(how.0);
    if method == Method::DELETE {
        return with(method, mask, &record);
    }
    mask |= McMemberRecord::PKEY;
    record.pkey = U16::new(PKey::DEFAULT_FULL.0);
    let create =
        McMemberRecord::QKEY | McMemberRecord::TCLASS | McMemberRecord::SL | McMemberRecord::FLOW_LABEL;
    match broadcast {
        // IPoIB: all that its broadcast group says.
        Some(like) => {
            mask |= create | McMemberRecord::HOP_LIMIT;
            mask |= McMemberRecord::MTU_SELECTOR | McMemberRecord::MTU;
            mask |= McMemberRecord::RATE_SELECTOR | McMemberRecord::RATE;
            let (mgid, port_gid) = (record.mgid, record.port_gid);
            record = *like;
            (record.mgid, record.port_gid) = (mgid, port_gid);
            record.set_join_state_raw(how.0);
            record.set_mtu_selector_raw(Selector::Exactly.to_wire());
            record.set_rate_selector_raw(Selector::Exactly.to_wire());
        }
        None if broadcast_of(mgid).is_some() => record.pkey = U16::new((mgid.0 >> 80) as u16),
        // The connection manager's.
        None => {
            mask |= create;
            record.qkey = U32::new(QKEY);
        }
    }
    with(method, mask, &record)
}

fn service(method: Method, id: u64, lease: Option<u32>, own: Gid) -> SaMad {
    let mut record = ServiceRecord::new_zeroed();
    let mut mask = ServiceRecord::SERVICE_ID | ServiceRecord::SERVICE_GID | ServiceRecord::SERVICE_PKEY;
    record.service_id = U64::new(id);
    record.service_gid = U128::new(own.0);
    record.service_pkey = U16::new(PKey::DEFAULT_FULL.0);
    if method == Method::SET {
        mask |= ServiceRecord::SERVICE_LEASE | ServiceRecord::SERVICE_NAME;
        record.service_lease = U32::new(lease.unwrap_or(ServiceRecord::LEASE_FOREVER));
        let name = format!("service {id}").into_bytes();
        record.service_name[..name.len()].copy_from_slice(&name);
    }
    with(method, mask, &record)
}

fn subscription(trap: u16, wanted: bool) -> SaMad {
    let mut inform = InformInfo::new_zeroed();
    inform.lid_range_begin.set(InformInfo::ALL);
    inform.is_generic = 1;
    inform.subscribe = wanted.into();
    inform.notice_type.set(InformInfo::ALL);
    inform.trap_number_or_device_id.set(trap);
    inform.set_producer_type_or_vendor_id(InformInfo::ALL_PRODUCERS);
    inform.set_qpn(1);
    inform.set_resp_time_value(RESPONSE_TIME);
    with(Method::SET, 0, &inform)
}

fn path(from: Gid, to: Gid) -> SaMad {
    let mut record = PathRecord::new_zeroed();
    record.sgid = U128::new(from.0);
    record.dgid = U128::new(to.0);
    record.pkey = U16::new(PKey::DEFAULT_FULL.0);
    record.set_reversible(1);
    record.set_numb_path(1);
    let mask = PathRecord::SGID
        | PathRecord::DGID
        | PathRecord::PKEY
        | PathRecord::REVERSIBLE
        | PathRecord::NUMB_PATH;
    with(Method::GET, mask, &record)
}
