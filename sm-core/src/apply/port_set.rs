//! What every Set of PortInfo has in common.

use mad::types::{Guid, Lid, PortNum};
use mad::wire::smp::PortInfo;
use routing::fabric::{Node, PortRef};

use crate::observed::Observed;
use crate::request::SmpRequest;

/// The modifier of PortInfo: bit 31 where the port knows extended speeds, so that they are neither cleared nor misread
/// (B10).
pub(super) fn modifier(observed: &Observed, end: PortRef) -> u32 {
    let switch = observed.fabric.get(end.node).is_some_and(Node::is_switch);
    let capability = if switch { PortNum::MANAGEMENT } else { end.port };
    let able = |info: &PortInfo| info.has_capability(PortInfo::CAP_EXTENDED_SPEEDS);
    // One that claims to be able and shows no such speed has refused the bit already.
    let shows = |info: &PortInfo| info.link_speed_ext_supported() | info.link_speed_ext2_supported() != 0;
    let extended = observed.nodes.get(&end.node).is_some_and(|n| {
        n.port_info(capability).is_some_and(able) && n.port_info(end.port).is_some_and(shows)
    });
    let bit = if extended && end.port.0 != 0 { PortInfo::MODIFIER_EXTENDED_SPEEDS } else { 0 };
    u32::from(end.port.0) | bit
}

/// Zeros, "no change", where a Set could disturb the link: states, width and speed (B10).
pub(super) fn leave_the_link_alone(info: &mut PortInfo) {
    info.set_port_state_raw(0);
    info.set_port_phys_state_raw(0);
    info.set_link_down_default_state(0);
    info.link_width_enabled = 0;
    info.set_link_speed_enabled(0);
    info.set_link_speed_ext_enabled(0);
    let (active, supported) = (info.link_speed_ext2_active(), info.link_speed_ext2_supported());
    info.set_link_speed_ext2(active, supported, 0);
}

/// A Set that changes nothing but MasterSMLID and tells the port's clients to register anew; `None` when the port can't be
/// told.
pub(crate) fn reregister_request(observed: &Observed, end: PortRef, sm_lid: Lid) -> Option<SmpRequest> {
    let info = observed.port_info(end)?;
    if !info.has_capability(PortInfo::CAP_CLIENT_REREGISTRATION) {
        return None;
    }
    let mut asked = *info;
    leave_the_link_alone(&mut asked);
    asked.master_sm_lid.set(sm_lid.get());
    asked.set_client_reregister(1);
    let guid: Guid = observed.fabric.get(end.node)?.guid;
    Some(SmpRequest::set(observed.path_to(end)?, guid, modifier(observed, end), &asked))
}
