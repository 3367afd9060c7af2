//! Requests whose answers are long tables of the snapshot: they are computed by other threads, so that a table of all paths
//! doesn't keep anybody waiting who asks for one.

use mad::wire::ids::sa;
use mad::wire::sa::{PathRecord, SaMad};
use mad::wire::{Attribute, Method};

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
