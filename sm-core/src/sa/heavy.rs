//! Requests whose answers are long tables of the snapshot: they are computed by other threads, so that a table of all paths
//! doesn't keep anybody waiting who asks for one. And such whose answer takes about a microsecond, and changes nothing.

use mad::transport::Datagram;
use mad::wire::ids::sa;
use mad::wire::rmpp::RmppType;
use mad::wire::sa::{PathRecord, SaMad};
use mad::wire::{Attribute, Method};

/// Whether a datagram takes no more than a look at the snapshot, and a datagram or a window of segments to send: a path between
/// two ports, a record of one LID, what belongs to a transfer under way.
pub fn is_light(datagram: &Datagram) -> bool {
    let mad = SaMad::from_mad(datagram.mad);
    if mad.rmpp.is_active() {
        return matches!(mad.rmpp.rmpp_type(), Some(RmppType::Ack | RmppType::Stop | RmppType::Abort));
    }
    let (method, mask) = (mad.header.method(), mad.component_mask.get());
    match mad.header.attribute_id.get() {
        sa::CLASS_PORT_INFO => method == Method::GET,
        sa::PATH_RECORD => {
            let from = mask & (PathRecord::SGID | PathRecord::SLID) != 0;
            let to = mask & (PathRecord::DGID | PathRecord::DLID) != 0;
            method == Method::GET && from && to
        }
        // Bit 0 is the LID.
        sa::NODE_RECORD | sa::PORT_INFO_RECORD | sa::SWITCH_INFO_RECORD => {
            method == Method::GET && mask & 1 != 0
        }
        _ => false,
    }
}

/// Whether a datagram registers something, or takes it back: some microseconds, unless many are to be told of it.
pub fn is_registration(datagram: &Datagram) -> bool {
    let mad = SaMad::from_mad(datagram.mad);
    !mad.rmpp.is_active()
        && matches!(mad.header.method(), Method::SET | Method::DELETE)
        && matches!(
            mad.header.attribute_id.get(),
            sa::MC_MEMBER_RECORD | sa::SERVICE_RECORD | sa::INFORM_INFO
        )
}

/// Whether a request is answered from the snapshot alone, by a table that may be long.
pub(super) fn is_heavy(mad: &SaMad) -> bool {
    let mask = mad.component_mask.get();
    if mad.header.method() != Method::GET_TABLE {
        return false;
    }
    match mad.header.attribute_id.get() {
        // A path to a multicast group depends on who registered.
        sa::PATH_RECORD => {
            let to_group = mask & PathRecord::DGID != 0
                && PathRecord::decode(&mad.data).is_some_and(|record| record.dgid().is_multicast());
            let from = mask & (PathRecord::SGID | PathRecord::SLID) != 0;
            let to = mask & (PathRecord::DGID | PathRecord::DLID) != 0;
            !(to_group || from && to)
        }
        // Bit 0 is the LID: one node only.
        sa::NODE_RECORD
        | sa::PORT_INFO_RECORD
        | sa::LINK_RECORD
        | sa::LINEAR_FORWARDING_TABLE_RECORD
        | sa::MULTICAST_FORWARDING_TABLE_RECORD
        | sa::SL_TO_VL_MAPPING_TABLE_RECORD
        | sa::VL_ARBITRATION_TABLE_RECORD
        | sa::GUID_INFO_RECORD
        | sa::PKEY_TABLE_RECORD => mask & 1 == 0,
        _ => false,
    }
}
