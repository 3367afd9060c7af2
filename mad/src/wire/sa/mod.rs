//! Subnet administration (specification volume 1, chapter 15): the packet, the records and how queries select them.
//!
//! A record as a query's template and a record in an answer have the same layout; which of the template's fields count is
//! said by the component mask, whose bits each record type lists in [`Record::COMPONENTS`]. In a table, each record takes
//! its size rounded up to 8 bytes ([`Record::TABLE_LEN`]).

mod component;
mod mc_member;
mod multi_path;
mod packet;
mod path;
mod port_info_components;
mod records;
mod report;
mod selector;
mod service;
mod tables;
mod trace;

pub use crate::wire::ClassPortInfo;
pub use crate::wire::rmpp::RmppHeader;
pub use crate::wire::smp::InformInfo;
pub use component::{Component, Record, all_components, matches, unknown_components};
pub use mc_member::{JoinState, McMemberRecord};
pub use multi_path::MultiPathRecord;
pub use packet::{SA_DATA_LEN, SA_HEADER_LEN, SaMad};
pub use path::PathRecord;
pub use records::{
    GuidInfoRecord, InformInfoRecord, LinkRecord, NodeRecord, PortInfoRecord, SmInfoRecord, SwitchInfoRecord,
};
pub use report::Report;
pub use selector::Selector;
pub use service::ServiceRecord;
pub use tables::{
    LinearForwardingTableRecord, MulticastForwardingTableRecord, PKeyTableRecord, SlToVlMappingTableRecord,
    VlArbitrationTableRecord,
};
pub use trace::TraceRecord;
