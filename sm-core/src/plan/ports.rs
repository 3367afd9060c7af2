//! What every port in use shall be set to.
//!
//! Minima come from the capability fields of the two ends of a link that is up, never from operational fields and never
//! from ports without a link (B06). Link speed and width are left to the link: a Set carries zeros there, "no change",
//! so nothing can be lowered by writing back what was read (B10).

use mad::types::{Guid, NodeType, PortNum, PortState};
use mad::wire::smp::PortInfo;
use routing::fabric::PortRef;

use super::fields::PortField;
use super::lids::LidRange;
use super::routes::code_of_vls;
use crate::keys::{KeyPolicy, KeyRing};
use crate::observed::Observed;
use crate::qos::PortKind;
use crate::settings::PlanSettings;

/// In which round of a bring-up a port has its turn.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PortRole {
    /// Port 0 of a switch.
    Management,
    /// A switch's port that leads to another switch.
    BetweenSwitches,
    /// A link with a host or router, either end.
    Edge,
}

/// A port and what it shall hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortPlan {
    /// The port.
    pub end: PortRef,
    /// When it has its turn.
    pub role: PortRole,
    /// PortInfo as it was observed, with the fields of [`PortField`] as they shall be.
    pub desired: PortInfo,
    /// Whether it is to be brought to ACTIVE.
    pub activate: bool,
    /// Whether the port shall be told to register anew, with or after ACTIVE (B72).
    pub reregister: bool,
}

/// The addresses that every end port is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// LID of the subnet manager's port.
    pub sm_lid: mad::types::Lid,
}

/// Plans one port; `None` when nothing is to be done with it: no link, not read, or nobody at its end (B05). `lids` are
/// the LIDs that it gets; `None` leaves those that it has.
pub fn plan_port(
    observed: &Observed,
    end: PortRef,
    lids: Option<LidRange>,
    addresses: Addresses,
    settings: &PlanSettings,
    keys: &KeyRing,
) -> Option<PortPlan> {
    let node = observed.fabric.get(end.node)?;
    let info = observed.port_info(end)?;
    let management = node.is_switch() && end.port == PortNum::MANAGEMENT;
    let end_port = !node.is_switch() || management;
    let guid = observed.fabric.port(end)?.guid;
    if end_port && keys.locked().get(&guid).is_some_and(|locked| locked.refused) {
        return None; // it obeys others
    }
    let mut plan = PortPlan {
        end,
        role: if management { PortRole::Management } else { PortRole::Edge },
        desired: *info,
        activate: false,
        reregister: false,
    };
    if !management {
        let peer = observed.fabric.peer(end)?;
        let far = observed.port_info(peer)?;
        if !is_up(info) || !is_up(far) {
            return None;
        }
        plan.activate = true;
        let between = node.is_switch() && observed.fabric.node(peer.node).is_switch();
        if between {
            plan.role = PortRole::BetweenSwitches;
        }
        let kinds = [end, peer].map(|end| kind(observed, end));
        set_link_fields(&mut plan.desired, (info, far), kinds, settings);
        if node.is_switch() {
            set_queue_fields(&mut plan.desired, between, settings);
        }
    }
    if end_port {
        set_keys(&mut plan.desired, guid, keys.policy());
        set_end_port_fields(&mut plan.desired, lids, addresses, settings);
        let base_port_0 = management && !node.switch.is_some_and(|s| s.enhanced_port_0);
        if base_port_0 {
            PortField::Lmc.set(&mut plan.desired, PortField::Lmc.get(info)); // it has none (B19)
        }
        plan.reregister = settings.client_reregister && must_register(info, &plan.desired);
    }
    Some(plan)
}

fn is_up(info: &PortInfo) -> bool {
    info.port_state().is_some_and(PortState::is_up)
}

/// The kind of a port, by which quality of service tells ports apart.
pub fn kind(observed: &Observed, end: PortRef) -> PortKind {
    match observed.fabric.get(end.node).map(|node| node.kind) {
        Some(NodeType::Switch) if end.port == PortNum::MANAGEMENT => PortKind::SwitchPort0,
        Some(NodeType::Switch) => PortKind::SwitchExternal,
        Some(NodeType::Router) => PortKind::Router,
        _ => PortKind::Ca,
    }
}

fn set_link_fields(
    desired: &mut PortInfo,
    (near, far): (&PortInfo, &PortInfo),
    kinds: [PortKind; 2],
    settings: &PlanSettings,
) {
    if let (Some(a), Some(b)) = (near.mtu_cap(), far.mtu_cap()) {
        desired.set_neighbor_mtu_raw(a.min(b).to_wire());
    }
    let valid = |info: &PortInfo| Some(info.vl_cap()).filter(|c| (1..=5).contains(c));
    if let (Some(a), Some(b)) = (valid(near), valid(far)) {
        let wanted = kinds.iter().filter_map(|kind| settings.qos.of(*kind).max_vls);
        let wanted = wanted.map(code_of_vls).min().unwrap_or(5);
        desired.set_operational_vls(a.min(b).min(settings.max_operational_vls).min(wanted));
    }
    desired.set_local_phy_errors(settings.local_phy_errors);
    desired.set_overrun_errors(settings.overrun_errors);
}

fn set_queue_fields(desired: &mut PortInfo, between: bool, settings: &PlanSettings) {
    let (life, stall) = if between {
        (settings.hoq_life, settings.vl_stall_count)
    } else {
        (settings.leaf_hoq_life, settings.leaf_vl_stall_count)
    };
    desired.set_hoq_life(life);
    desired.set_vl_stall_count(stall);
}

/// Where keys are wanted, or one is known that is not.
fn set_keys(desired: &mut PortInfo, port: Guid, policy: &KeyPolicy) {
    let key = policy.key_of(port);
    if !key.is_some() && !desired.m_key.key().is_some() {
        return;
    }
    desired.m_key.set(key.0);
    let (protect, lease_s) = if key.is_some() { (policy.protect, policy.lease_s) } else { (0, 0) };
    desired.set_m_key_protect_bits(protect);
    desired.m_key_lease_period.set(lease_s);
}

/// Whether the port of a switch checks the P_Keys of what passes it.
pub fn set_enforcement(desired: &mut PortInfo, enforcing: bool) {
    desired.set_partition_enforcement_inbound(enforcing.into());
    desired.set_partition_enforcement_outbound(enforcing.into());
}

fn set_end_port_fields(
    desired: &mut PortInfo,
    lids: Option<LidRange>,
    addresses: Addresses,
    settings: &PlanSettings,
) {
    if let Some(range) = lids {
        desired.base_lid.set(range.base.get());
        desired.set_lmc(range.lmc);
    }
    desired.gid_prefix.set(settings.subnet_prefix);
    desired.master_sm_lid.set(addresses.sm_lid.get());
    desired.set_master_sm_sl(settings.sm_sl);
    desired.set_subnet_timeout(settings.subnet_timeout);
}

/// A port that is told a new subnet manager, prefix (B73) or LID, or that is raised for the first time, must register
/// anew; it can be told so only if it has the capability.
fn must_register(found: &PortInfo, desired: &PortInfo) -> bool {
    let told = [PortField::MasterSmLid, PortField::GidPrefix, PortField::Lid, PortField::Lmc];
    let raised = found.port_state() != Some(PortState::Active);
    let changed = told.iter().any(|f| f.get(found) != f.get(desired));
    found.has_capability(PortInfo::CAP_CLIENT_REREGISTRATION) && (raised || changed)
}
