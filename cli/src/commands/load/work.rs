//! What a client asks for next, and whether the answer is right.
//!
//! Each place of a client's window is a [`Slot`]: it has one request under way at a time, and what it asks next depends on
//! what it did before (leave what was joined). Groups and services are the slot's own among those of its port; the
//! clients of other ports join the same groups.

use mad::sa_client::{Answer, Query};
use mad::transport::Address;
use mad::types::Gid;
use mad::wire::sa::{JoinState, McMemberRecord, PathRecord, Record, ServiceRecord};
use mad::wire::smp::InformInfo;
use mad::wire::{Attribute, Method};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use zerocopy::FromZeros;

use crate::args::Work;

/// What all slots of a client share.
pub(super) struct Port {
    /// The SA.
    pub(super) address: Address,
    /// The port that asks.
    pub(super) gid: Gid,
    /// The ports to ask paths for.
    pub(super) destinations: Vec<Gid>,
}

/// One place of a window.
pub(super) struct Slot {
    work: Work,
    /// Distinct among the slots of a port.
    number: u32,
    step: Step,
}

/// What was asked last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Idle,
    Path(Gid),
    AllPaths,
    Join,
    Leave,
    Register,
    LookUp,
    RegisterAnew,
    Withdraw,
    Subscribe,
    Unsubscribe,
}

/// The partition that all are in by default.
const DEFAULT_PKEY: u16 = 0xffff;
/// Transient groups of link scope with a number that IPoIB doesn't use.
const GROUPS: u128 = 0xff12_a01c_0000_0000_6c6f_6164_0000_0000;
/// Service IDs of the range for local use.
const SERVICES: u64 = 0x1000_6c6f_6164_0000;
/// Seconds after which a service that was left behind ends.
const LEASE: u32 = 600;
/// A trap that no device sends: subscribers are not reported to.
const TRAP: u16 = 0x6c6f;
/// Subscriptions differ by their LID: any unicast LID will do.
const MOST_LIDS: u32 = 0xbfff;
/// RespTimeValue: some 17 ms.
const RESPONSE_TIME: u32 = 12;

impl Slot {
    pub(super) const fn new(work: Work, number: u32) -> Self {
        Self { work, number, step: Step::Idle }
    }

    /// Whether nothing is left behind when the slot stops here.
    pub(super) const fn is_clean(&self) -> bool {
        !matches!(
            self.step,
            Step::Join | Step::Register | Step::LookUp | Step::RegisterAnew | Step::Subscribe
        )
    }

    /// The next request.
    pub(super) fn next(&mut self, port: &Port, random: &mut Pcg64Mcg) -> Query {
        self.step = match self.step {
            Step::Join => Step::Leave,
            Step::Register => Step::LookUp,
            Step::LookUp => Step::RegisterAnew,
            Step::RegisterAnew => Step::Withdraw,
            Step::Subscribe => Step::Unsubscribe,
            Step::Idle
            | Step::Path(_)
            | Step::AllPaths
            | Step::Leave
            | Step::Withdraw
            | Step::Unsubscribe => self.begin(port, random),
        };
        match self.step {
            Step::Idle | Step::AllPaths => Query::get_all::<PathRecord>(port.address),
            Step::Path(to) => path(port, to),
            Step::Join => self.member(port, Method::SET),
            Step::Leave => self.member(port, Method::DELETE),
            Step::Register | Step::RegisterAnew => self.service(port, Method::SET),
            Step::LookUp => self.service(port, Method::GET),
            Step::Withdraw => self.service(port, Method::DELETE),
            Step::Subscribe | Step::Unsubscribe => Query::inform(port.address, &self.inform()),
        }
    }

    fn begin(&self, port: &Port, random: &mut Pcg64Mcg) -> Step {
        let to = || port.destinations.len().max(1);
        let work = match self.work {
            Work::Mixed => [Work::Path, Work::Path, Work::Join, Work::Service][random.random_range(0..4)],
            work => work,
        };
        match work {
            Work::Path | Work::Mixed => {
                let at = random.random_range(0..to());
                Step::Path(port.destinations.get(at).copied().unwrap_or(port.gid))
            }
            Work::AllPaths => Step::AllPaths,
            Work::Join => Step::Join,
            Work::Service => Step::Register,
            Work::Subscribe => Step::Subscribe,
        }
    }

    /// What is wrong with the answer to the last request.
    ///
    /// # Errors
    /// One line that says it.
    pub(super) fn judge(&self, port: &Port, answer: &Answer) -> Result<(), String> {
        match self.step {
            Step::Idle => Err("an answer to nothing".to_owned()),
            Step::Path(to) => {
                let record: PathRecord = one(answer)?;
                let right = record.dgid() == to && record.sgid() == port.gid && record.dlid.get() != 0;
                right.then_some(()).ok_or_else(|| format!("asked for a path to {to}, got {record:?}"))
            }
            Step::AllPaths => {
                let records = answer.records::<PathRecord>().map_err(|error| error.to_string())?;
                let hosts = port.destinations.len();
                let right = records.len() >= hosts * hosts;
                right.then_some(()).ok_or_else(|| format!("{} paths among {hosts} hosts", records.len()))
            }
            Step::Join => {
                let record: McMemberRecord = one(answer)?;
                let right = record.mgid() == self.group()
                    && record.mlid().is_some()
                    && record.join_state() == JoinState::FULL_MEMBER;
                right.then_some(()).ok_or_else(|| format!("joined {}, got {record:?}", self.group()))
            }
            Step::Leave => {
                let record: McMemberRecord = one(answer)?;
                let right = record.mgid() == self.group();
                right.then_some(()).ok_or_else(|| format!("left {}, got {record:?}", self.group()))
            }
            Step::Register | Step::LookUp | Step::RegisterAnew | Step::Withdraw => {
                let record: ServiceRecord = one(answer)?;
                let right = record.service_id.get() == self.service_id() && record.service_gid() == port.gid;
                right.then_some(()).ok_or_else(|| {
                    format!("{:?} of service {:#x}, got {record:?}", self.step, self.service_id())
                })
            }
            Step::Subscribe | Step::Unsubscribe => {
                let record = InformInfo::decode(&answer.data).ok_or("an answer without a record")?;
                let asked = self.inform();
                let right = record.subscribe == asked.subscribe
                    && record.lid_range_begin == asked.lid_range_begin
                    && record.trap_number_or_device_id == asked.trap_number_or_device_id;
                right.then_some(()).ok_or_else(|| format!("{:?}: asked {asked:?}, got {record:?}", self.step))
            }
        }
    }

    fn group(&self) -> Gid {
        Gid(GROUPS | u128::from(self.number))
    }

    fn service_id(&self) -> u64 {
        SERVICES | u64::from(self.number)
    }

    /// A subscription, or the end of it, as the step says.
    fn inform(&self) -> InformInfo {
        let mut inform = InformInfo::new_zeroed();
        let lid = 1 + (self.number % MOST_LIDS) as u16;
        inform.lid_range_begin.set(lid);
        inform.lid_range_end.set(lid);
        inform.is_generic = 1;
        inform.subscribe = (self.step == Step::Subscribe).into();
        inform.notice_type.set(InformInfo::ALL);
        inform.trap_number_or_device_id.set(TRAP);
        inform.set_producer_type_or_vendor_id(InformInfo::ALL_PRODUCERS);
        inform.set_qpn(1);
        inform.set_resp_time_value(RESPONSE_TIME);
        inform
    }

    /// A membership with all that makes the group if it is not there yet.
    fn member(&self, port: &Port, method: Method) -> Query {
        type M = McMemberRecord;
        let mut record = M::zeroed();
        record.mgid.set(self.group().0);
        record.port_gid.set(port.gid.0);
        record.set_join_state_raw(JoinState::FULL_MEMBER.0);
        record.pkey.set(DEFAULT_PKEY);
        record.qkey.set(1);
        let named = M::MGID | M::PORT_GID | M::JOIN_STATE;
        let made = M::QKEY | M::PKEY | M::TCLASS | M::SL | M::FLOW_LABEL;
        let mask = if method == Method::SET { named | made } else { named };
        Query::new(port.address, method, &record, mask)
    }

    fn service(&self, port: &Port, method: Method) -> Query {
        type S = ServiceRecord;
        let mut record = S::zeroed();
        record.service_id.set(self.service_id());
        record.service_gid.set(port.gid.0);
        record.service_pkey.set(DEFAULT_PKEY);
        record.service_lease.set(LEASE);
        let name = b"load";
        record.service_name[..name.len()].copy_from_slice(name);
        let named = S::SERVICE_ID | S::SERVICE_GID | S::SERVICE_PKEY;
        let mask = if method == Method::SET { named | S::SERVICE_LEASE | S::SERVICE_NAME } else { named };
        Query::new(port.address, method, &record, mask)
    }
}

/// One reversible path by GIDs, as rdma_cm and IPoIB ask.
fn path(port: &Port, to: Gid) -> Query {
    type P = PathRecord;
    let mut record = P::zeroed();
    record.sgid.set(port.gid.0);
    record.dgid.set(to.0);
    record.pkey.set(DEFAULT_PKEY);
    record.set_numb_path(1);
    record.set_reversible(1);
    let mask = P::SGID | P::DGID | P::PKEY | P::NUMB_PATH | P::REVERSIBLE;
    Query::get(port.address, &record, mask)
}

/// The record of an answer.
fn one<R: Record>(answer: &Answer) -> Result<R, String> {
    let records = answer.records::<R>().map_err(|error| error.to_string())?;
    records.into_iter().next().ok_or_else(|| "an answer without a record".to_owned())
}
