//! Which Sets a step consists of: always desired minus what is confirmed, at the moment when the step begins (B30).

use std::collections::VecDeque;

use mad::types::{Guid, PortNum, PortState};
use mad::wire::smp::{PortInfo, SwitchInfo};
use routing::fabric::{NodeId, PortRef};
use routing::routes::{LFT_BLOCK, NO_PORT, Row};
use routing::verify::transition::Write;

use super::Apply;
use super::jobs::Job;
use super::tables::Block;
use super::{arbitration, empty, keys, lanes, links};
use crate::plan::fields::FieldSet;
use crate::plan::port_tables::TablePlan;
use crate::plan::ports::{PortPlan, PortRole};
use crate::plan::{self, Plan, SwitchPlan};

/// A step; a barrier stands between any two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    Probe,
    AcknowledgeSwitches,
    ReadDownPorts,
    VerifyLinks,
    ReadLanes,
    SetLanes,
    IdleTables,
    /// The links that are to be raised, where the steps before took long.
    VerifyRaised,
    EmptyUnknown,
    ConfigureSwitchLinks,
    ActivateSwitchLinks,
    /// One step of the proven order.
    Transition(usize),
    TablesInService,
    OwnLidTables,
    RaiseTops,
    /// Links between switches that had to wait for the tables.
    ConfigureLateLinks,
    ActivateLateLinks,
    PortTables,
    ConfigureEdges,
    ActivateEdges,
    Keys,
}

impl Step {
    /// Whether it writes forwarding tables.
    pub(super) const fn writes_tables(self) -> bool {
        matches!(
            self,
            Self::IdleTables
                | Self::EmptyUnknown
                | Self::Transition(_)
                | Self::TablesInService
                | Self::OwnLidTables
        )
    }
}

/// All steps of a plan.
pub(super) fn all(plan: &Plan) -> VecDeque<Step> {
    let before = [
        Step::Probe,
        Step::AcknowledgeSwitches,
        Step::ReadDownPorts,
        Step::VerifyLinks,
        Step::ReadLanes,
        Step::SetLanes,
        Step::IdleTables,
        Step::VerifyRaised,
        Step::EmptyUnknown,
        Step::ConfigureSwitchLinks,
        Step::ActivateSwitchLinks,
    ];
    let after = [
        Step::TablesInService,
        Step::OwnLidTables,
        Step::RaiseTops,
        Step::ConfigureLateLinks,
        Step::ActivateLateLinks,
        Step::PortTables,
        Step::ConfigureEdges,
        Step::ActivateEdges,
        Step::Keys,
    ];
    let transition = (0..plan.transition.len()).map(Step::Transition);
    before.into_iter().chain(transition).chain(after).collect()
}

pub(super) fn jobs(apply: &mut Apply, step: Step) -> Vec<Job> {
    let due = jobs_due(apply, step);
    if matches!(step, Step::VerifyLinks | Step::VerifyRaised) && !due.is_empty() {
        apply.verification.begin(step);
    }
    due
}

fn jobs_due(apply: &Apply, step: Step) -> Vec<Job> {
    match step {
        Step::Probe => keys::probe_jobs(apply),
        Step::Keys => keys::key_jobs(apply),
        Step::AcknowledgeSwitches => switch_jobs(apply, false),
        Step::ReadDownPorts => down_port_jobs(apply),
        Step::VerifyLinks | Step::VerifyRaised => links::verify_jobs(apply, step),
        Step::EmptyUnknown => empty::unknown_jobs(apply),
        Step::ReadLanes => [lanes::read_jobs(apply), arbitration::read_jobs(apply)].concat(),
        Step::SetLanes => [lanes::set_jobs(apply), arbitration::set_jobs(apply)].concat(),
        Step::RaiseTops => switch_jobs(apply, true),
        Step::Transition(step) => transition_jobs(apply, step),
        Step::PortTables => port_table_jobs(apply),
        Step::IdleTables => table_jobs(apply, |s| s.idle),
        Step::TablesInService => table_jobs(apply, |s| !s.idle && !s.own_lid),
        Step::OwnLidTables => table_jobs(apply, |s| !s.idle && s.own_lid),
        Step::ConfigureSwitchLinks => port_jobs(apply, false, |role| role != PortRole::Edge),
        Step::ActivateSwitchLinks => port_jobs(apply, true, |role| role == PortRole::BetweenSwitches),
        Step::ConfigureLateLinks | Step::ActivateLateLinks if apply.plan.late.is_empty() => Vec::new(),
        Step::ConfigureLateLinks => port_jobs(apply, false, |role| role == PortRole::BetweenSwitches),
        Step::ActivateLateLinks => port_jobs(apply, true, |role| role == PortRole::BetweenSwitches),
        Step::ConfigureEdges => port_jobs(apply, false, |role| role == PortRole::Edge),
        Step::ActivateEdges => port_jobs(apply, true, |role| role == PortRole::Edge),
    }
}

fn switch_jobs(apply: &Apply, last: bool) -> Vec<Job> {
    let wanted = |plan: &&SwitchPlan| {
        let Some(info) = switch_info(apply, plan.node) else { return false };
        let raise = top_to_set(apply, plan, &info, last) != info.linear_fdb_top.get();
        let rest = info.port_state_change() != 0 || info.life_time_value() != plan.life_time;
        raise || (rest && !last)
    };
    apply.plan.switches.iter().filter(wanted).map(|plan| Job::Switch { node: plan.node, last }).collect()
}

fn port_table_jobs(apply: &Apply) -> Vec<Job> {
    let differs = |plan: &TablePlan| {
        let node = apply.observed.nodes.get(&plan.end.node);
        node.is_some_and(|node| node.tables.get(plan.end.port, plan.table) != Some(plan.data))
    };
    let due = (0..).zip(&apply.plan.port_tables).filter(|(_, plan)| differs(plan));
    due.map(|(index, _)| Job::PortTable { index }).collect()
}

fn down_port_jobs(apply: &Apply) -> Vec<Job> {
    let ports = |node: &NodeId| {
        let observed = apply.observed.nodes.get(node)?;
        let down = |i: &Option<PortInfo>| i.as_ref().and_then(PortInfo::port_state) == Some(PortState::Down);
        let numbers = observed.ports.iter().enumerate().skip(1).filter(move |(_, info)| down(info));
        let node = *node;
        Some(numbers.map(move |(n, _)| Job::ReadDown { end: PortRef { node, port: PortNum(n as u8) } }))
    };
    apply.read_before.iter().filter_map(ports).flatten().collect()
}

/// LinearFDBTop to be set in the first or the last switch step. It is never lowered: what is beyond the routed LIDs is
/// cleared instead, so that a host that goes does not cost a Set for every switch.
pub(super) fn top_to_set(apply: &Apply, plan: &SwitchPlan, info: &SwitchInfo, last: bool) -> u16 {
    let found = info.linear_fdb_top.get();
    let now = last || (found == 0 && is_idle(apply, plan.node));
    let confirmed = !last || guid(apply, plan.node).is_some_and(|g| !apply.unconfirmed.contains(&g));
    if now && confirmed && plan.top > found { plan.top } else { found }
}

pub(super) fn switch_info(apply: &Apply, node: NodeId) -> Option<SwitchInfo> {
    apply.observed.nodes.get(&node)?.switch_info
}

fn guid(apply: &Apply, node: NodeId) -> Option<Guid> {
    Some(apply.observed.fabric.get(node)?.guid)
}

pub(super) fn is_idle(apply: &Apply, node: NodeId) -> bool {
    plan::is_idle(&apply.observed, node)
}

/// What a table step looks at.
pub(super) struct BlockFacts {
    pub(super) idle: bool,
    own_lid: bool,
}

/// Whether any switch is to get entries.
pub(super) fn writes_tables(apply: &Apply) -> bool {
    !apply.plan.transition.is_empty() || due_blocks(apply, |_| true).next().is_some()
}

/// Whether any port is to be set.
pub(super) fn sets_ports(apply: &Apply) -> bool {
    apply
        .plan
        .ports
        .iter()
        .any(|plan| !configuration(apply, plan).is_nothing() || activation_due(apply, plan))
        || !port_table_jobs(apply).is_empty()
}

fn table_jobs(apply: &Apply, wanted: impl Fn(&BlockFacts) -> bool + Copy) -> Vec<Job> {
    let mut due: Vec<(u32, u16)> = due_blocks(apply, wanted).collect();
    // Block by block over all switches, so that no single switch is flooded.
    due.sort_by_key(|(_, block)| *block);
    due.into_iter().map(|(switch, block)| Job::Table { switch, block }).collect()
}

/// Switches with blocks that are to be written, in their order.
pub(super) fn due_blocks(
    apply: &Apply,
    wanted: impl Fn(&BlockFacts) -> bool + Copy,
) -> impl Iterator<Item = (u32, u16)> {
    let graph = &apply.plan.graph;
    let own = usize::from(apply.plan.sm_lid.get()) / LFT_BLOCK;
    let top = graph.top_lid();
    (0..graph.switch_count() as u32).flat_map(move |switch| {
        let (node, guid) = (graph.node(switch), graph.guid(switch));
        // A step that is due before the links come up must not see them as up later on: tables that were
        // confirmed are equal then, and nothing is sent twice.
        let idle = is_idle(apply, node);
        let row = desired_row(apply, switch, idle);
        let known = apply.ground.tables.blocks(guid);
        let is_due = move |block: &usize| {
            wanted(&BlockFacts { idle, own_lid: *block == own })
                && (idle || !apply.stalled.contains(&(*block as u16)))
                && known.get(*block).and_then(Option::as_ref).map(<[u8; LFT_BLOCK]>::as_slice)
                    != Some(block_of(row, *block))
        };
        (0..=last_block(apply, node, top)).filter(is_due).map(move |block| (switch, block as u16))
    })
}

/// Writes of the proven order that are not in force already.
fn transition_jobs(apply: &Apply, step: usize) -> Vec<Job> {
    let Some(planned) = apply.plan.transition.get(step) else { return Vec::new() };
    let due = |(_, write): &(usize, &Write)| {
        let guid = apply.plan.graph.guid(write.switch);
        !apply.stalled.contains(&write.block)
            && apply.ground.tables.get(guid, usize::from(write.block))
                != Some(&transition_block(apply, write))
    };
    let writes = planned.writes.iter().enumerate();
    writes.filter(due).map(|(index, _)| Job::Write { step: step as u32, index: index as u32 }).collect()
}

/// What a block holds after a write of the proven order.
pub(super) fn transition_block(apply: &Apply, write: &Write) -> Block {
    write.content(&apply.plan.old_tables, &apply.plan.routes.lfts)
}

/// The last block that a switch forwards by as it was found; `None` where it forwards nothing.
pub(super) fn last_block_in_force(apply: &Apply, node: NodeId) -> Option<usize> {
    let top = top_in_force(apply, node);
    (top > 0).then_some(usize::from(top) / LFT_BLOCK)
}

/// LinearFDBTop as it was found, as far as it can be meant; 0 where it is not known.
fn top_in_force(apply: &Apply, node: NodeId) -> u16 {
    switch_info(apply, node).map_or(0, |info| {
        info.linear_fdb_top.get().min(info.linear_fdb_cap.get().saturating_sub(1)).min(0xbfff)
    })
}

/// The last block to be written: up to the highest routed LID, or to LinearFDBTop as it was found, whose entries are to be
/// cleared then.
fn last_block(apply: &Apply, node: NodeId, top: u16) -> usize {
    usize::from(top.max(top_in_force(apply, node))) / LFT_BLOCK
}

/// What a block shall hold; "no port" for every LID that nobody has (B20), and everywhere as long as the switch waits to
/// join others that are in service.
pub(super) fn desired_block(apply: &Apply, switch: u32, block: usize) -> Block {
    let idle = is_idle(apply, apply.plan.graph.node(switch));
    let mut content = [NO_PORT; LFT_BLOCK];
    content.copy_from_slice(block_of(desired_row(apply, switch, idle), block));
    content
}

/// The entries that a switch shall hold; whatever lies beyond is "no port".
fn desired_row(apply: &Apply, switch: u32, idle: bool) -> Row<'_> {
    if apply.plan.joins_service && idle { Row::EMPTY } else { apply.plan.routes.lfts.row(switch) }
}

fn block_of(row: Row<'_>, block: usize) -> &Block {
    row.block(block).unwrap_or(&[NO_PORT; LFT_BLOCK])
}

fn port_jobs(apply: &Apply, activate: bool, wanted: impl Fn(PortRole) -> bool) -> Vec<Job> {
    let due = |plan: &PortPlan| {
        wanted(plan.role)
            && if activate { activation_due(apply, plan) } else { !configuration(apply, plan).is_nothing() }
    };
    let plans = apply.plan.ports.iter().enumerate();
    plans
        .filter(|(_, plan)| due(plan))
        .map(|(index, _)| Job::Port { index: index as u32, activate })
        .collect()
}

/// What the first Set of a port has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Configuration {
    pub(super) fields: FieldSet,
    pub(super) arm: bool,
    /// ClientReregister now, since the port is ACTIVE already.
    pub(super) reregister: bool,
}

impl Configuration {
    const fn is_nothing(self) -> bool {
        self.fields.is_empty() && !self.arm
    }
}

pub(super) fn configuration(apply: &Apply, plan: &PortPlan) -> Configuration {
    let nothing = Configuration { fields: FieldSet::EMPTY, arm: false, reregister: false };
    let (Some(info), Some(guid)) = (apply.observed.port_info(plan.end), guid(apply, plan.end.node)) else {
        return nothing;
    };
    let fields =
        FieldSet::difference(info, &plan.desired).without(apply.ground.quirks.of(guid, plan.end.port));
    let fields = fields.without(FieldSet::KEYS);
    let state = info.port_state();
    if apply.told_later(plan) {
        return nothing;
    }
    let arm = plan.activate && state == Some(PortState::Init) && may_rise(apply, plan.end);
    let reregister =
        plan.reregister && !fields.is_empty() && state == Some(PortState::Active) && !apply.many_to_tell;
    Configuration { fields, arm, reregister }
}

/// Whether ACTIVE is due: this port is ARMED, and the other end at least that.
fn activation_due(apply: &Apply, plan: &PortPlan) -> bool {
    let state = |end: PortRef| apply.observed.port_info(end).and_then(PortInfo::port_state);
    let peer = apply.observed.fabric.peer(plan.end);
    let ready = peer.is_some_and(|peer| state(peer).is_some_and(|s| s >= PortState::Armed));
    plan.activate && state(plan.end) == Some(PortState::Armed) && ready && may_rise(apply, plan.end)
}

/// Whether the switches at both ends of a link were confirmed in this round, and the tables are in force where the link has
/// to wait for them.
fn may_rise(apply: &Apply, end: PortRef) -> bool {
    if apply.plan.late.contains(&end) && apply.steps.contains(&Step::ConfigureLateLinks) {
        return false;
    }
    let confirmed = |node: NodeId| guid(apply, node).is_some_and(|guid| !apply.unconfirmed.contains(&guid));
    let peer = apply.observed.fabric.peer(end);
    confirmed(end.node) && peer.is_none_or(|peer| confirmed(peer.node))
}
