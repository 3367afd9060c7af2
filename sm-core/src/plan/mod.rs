//! What the fabric shall be: pure functions of the picture, the settings and the memory. No I/O, no clock; the same input
//! gives the same plan.
//!
//! [`plan`] assigns LIDs, computes the routes on the graph with those LIDs, has the verifier prove them, and says for every
//! switch and port what it shall hold. `apply` sends the difference.

pub mod arbitration;
pub mod balance;
pub mod fields;
pub mod lanes;
mod late;
pub mod lids;
mod moved;
pub mod port_tables;
pub mod ports;
pub mod routes;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use mad::types::{Guid, Lid, NodeType, PortNum, PortState};
use mad::wire::smp::PortInfo;
use rayon::prelude::*;
use routing::fabric::{Fabric, NodeId, PortRef, SwitchGraph};
use routing::routes::{LFT_BLOCK, LftMatrix, NO_PORT, Routes};
use routing::verify::transition;

use crate::aliases::AliasTable;
use crate::apply::KnownTables;
use crate::keys::KeyRing;
use crate::observed::Observed;
use crate::settings::PlanSettings;
use lids::{Applicant, LidMemory, LidPlan, LidRange};
pub use moved::Moved;
use port_tables::TablePlan;
use ports::{Addresses, PortPlan};
pub use routes::Verdict;

/// Everything that a plan depends on.
#[derive(Clone, Debug)]
pub struct PlanInput {
    /// The fabric as it is.
    pub observed: Arc<Observed>,
    /// What is wanted of it.
    pub settings: PlanSettings,
    /// LIDs given before.
    pub memory: LidMemory,
    /// Port GUIDs that refused a LID, and so keep what they hold (B15).
    pub stuck: BTreeSet<Guid>,
    /// Whether all LIDs, remembered and held, are given up.
    pub reassign: bool,
    /// The tables in the switches as far as they are known, for a safe way from them to the new ones.
    pub tables: Arc<KnownTables>,
    /// The plan before, if there was one: what links that were lost since do not concern is taken over from it.
    pub previous: Option<Arc<Plan>>,
    /// The alias GUIDs that ports are to hold.
    pub aliases: Arc<AliasTable>,
    /// M_Keys, as they are known and as they shall be.
    pub keys: Arc<KeyRing>,
    /// Load that was measured on the tables in force, for `adaptive-minhop`.
    pub measured: Option<balance::Measured>,
}

/// What a switch shall hold besides its ports and its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchPlan {
    /// The switch.
    pub node: NodeId,
    /// The highest LID that is routed.
    pub top: u16,
    /// LifeTimeValue.
    pub life_time: u8,
}

/// The state that the fabric shall have.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Who gets which LIDs.
    pub lids: LidPlan,
    /// LID of the subnet manager's own port.
    pub sm_lid: Lid,
    /// Switches, links in use and destinations with the planned LIDs.
    pub graph: Arc<SwitchGraph>,
    /// The tables.
    pub routes: Arc<Routes>,
    /// What the verifier says of them.
    pub verdict: Verdict,
    /// The order in which blocks of switches in service are written, so that no mix of old and new entries holds a loop
    /// or cuts a path (B29). Empty where nothing was known before.
    pub transition: Vec<transition::Step>,
    /// The entries that the transition begins with.
    pub old_tables: LftMatrix,
    /// How many of them change; `None` where nothing was known before.
    pub moved: Option<Moved>,
    /// Ends of links between switches that are raised only when the tables are in force: old entries go round over them.
    pub late: BTreeSet<PortRef>,
    /// Whether some switches pass data already. One that does not yet then joins with an empty table, and gets its entries
    /// in the proven order like the others: its new entries and the old ones of its neighbours could make a loop.
    pub joins_service: bool,
    /// Switches.
    pub switches: Vec<SwitchPlan>,
    /// Ports with a use.
    pub ports: Vec<PortPlan>,
    /// Blocks of port tables that are not known to be right.
    pub port_tables: Vec<TablePlan>,
    /// What the operator should know of partitions and virtual lanes, a line each.
    pub findings: Vec<String>,
    /// SL-to-VL tables, for routes that need more than one virtual lane, or as the operator wants them.
    pub lanes: Vec<lanes::LanePlan>,
    /// VL arbitration tables, for the same.
    pub arbitration: Vec<TablePlan>,
    /// For the next plan.
    pub standing: routes::Standing,
}

/// Why there is no plan. The fabric stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Our own port can't have a LID.
    #[error("no LID is free for the subnet manager's own port")]
    NoOwnLid,
    /// No engine took the fabric; the reason of each.
    #[error("no routing engine took the fabric: {}", .0.join("; "))]
    NoEngine(Vec<String>),
    /// Every engine's tables were refused by the verifier.
    #[error("the routes of {engine} are wrong and are not used: {}", .faults.join("; "))]
    WrongRoutes {
        /// The engine that made them.
        engine: String,
        /// The first faults that the verifier named.
        faults: Vec<String>,
    },
}

impl Plan {
    /// The same plan where it has been applied already, with these blocks of port tables as all that is left to do.
    #[must_use]
    pub fn with_port_tables_only(&self, port_tables: Vec<TablePlan>) -> Self {
        let mut ports = self.ports.clone();
        // Told already, and the order of table writes is done with.
        ports.iter_mut().for_each(|port| port.reregister = false);
        Self { port_tables, ports, transition: Vec::new(), moved: None, ..self.clone() }
    }
}

/// Makes a plan.
///
/// # Errors
/// Nothing can be planned that is worth sending.
pub fn plan(input: &PlanInput) -> Result<Plan, PlanError> {
    let observed = &*input.observed;
    let lids = plan_lids(input);
    let fabric = with_lids(&observed.fabric, &lids);
    let sm_lid = fabric.port(own_end(observed)).and_then(|p| p.lid).ok_or(PlanError::NoOwnLid)?;
    let usable = |a: PortRef, b: PortRef| usable(observed, a) && usable(observed, b);
    let graph = Arc::new(if input.settings.avoid_degraded_links {
        SwitchGraph::avoiding_degraded_of(&fabric, usable)
    } else {
        SwitchGraph::with_links(&fabric, usable)
    });
    let previous = input.previous.as_deref();
    let routed = routes::route((&fabric, &graph), input)?;
    let idle: Vec<bool> =
        (0..graph.switch_count() as u32).map(|s| is_idle(observed, graph.node(s))).collect();
    let joins_service = idle.contains(&false);
    let mut old_tables = known_matrix(&graph, &input.tables, &routed.routes.lfts, previous);
    if let Some(old) = old_tables.as_mut().filter(|_| joins_service) {
        for switch in (0..).zip(&idle).filter_map(|(switch, idle)| idle.then_some(switch)) {
            old.row_mut(switch).update(|row| row.fill(NO_PORT));
        }
    }
    // Where nothing is in service every table is written before any link is raised: what they held has no part in it any more.
    let transition = match old_tables.as_ref().filter(|_| joins_service) {
        Some(old) => transition::plan(&graph, old, &routed.routes.lfts),
        None => Vec::new(),
    };
    let moved = old_tables.as_ref().map(|old| moved::count(&graph, old, &routed.routes));
    let in_service = old_tables.as_ref().filter(|_| joins_service);
    let mut late = in_service.map(|old| late::late_links(observed, &graph, old)).unwrap_or_default();
    let pkeys = port_tables::plan_pkeys(observed, &input.settings);
    let aliases = port_tables::plan_aliases(observed, &input.aliases);
    let mut ports = plan_ports(input, &lids, sm_lid);
    for port in &mut ports {
        let external =
            port.end.port != PortNum::MANAGEMENT && observed.fabric.node(port.end.node).is_switch();
        if external {
            ports::set_enforcement(&mut port.desired, pkeys.enforcing.contains(&port.end));
        }
    }
    late.extend(late::loopbacks(observed, &ports));
    let (arbitration, of_lanes) =
        arbitration::plan(observed, &routed.routes, &input.settings.qos, &mut ports);
    let findings = [
        pkeys.findings,
        routed.findings,
        of_lanes,
        lanes::findings(&routed.routes, &input.settings.qos).into_iter().collect(),
    ]
    .concat();
    let switches = observed
        .fabric
        .switches()
        .map(|(node, _)| SwitchPlan {
            node,
            top: graph.top_lid(),
            life_time: input.settings.packet_life_time,
        })
        .collect();
    Ok(Plan {
        lids,
        sm_lid,
        lanes: lanes::plan(observed, &graph, &routed.routes, &input.settings.qos, &ports),
        graph,
        routes: routed.routes,
        verdict: routed.verdict,
        standing: routed.standing,
        transition,
        moved,
        old_tables: old_tables.unwrap_or_default(),
        late,
        joins_service,
        switches,
        ports,
        port_tables: [pkeys.tables, aliases].concat(),
        findings,
        arbitration,
    })
}

/// Whether no data can pass a switch: none of its ports is beyond INIT.
pub(crate) fn is_idle(observed: &Observed, node: NodeId) -> bool {
    let Some(facts) = observed.nodes.get(&node) else { return false };
    let passes = |info: &PortInfo| info.port_state().is_some_and(|s| s >= PortState::Armed);
    !facts.ports.iter().skip(1).flatten().any(passes)
}

/// What is known of the switches' tables, in the shape of the new ones; `None` when nothing is.
/// Rows that are known to be as they were
/// planned before are shared with that plan, so that nobody has to compare them again.
fn known_matrix(
    graph: &SwitchGraph,
    known: &KnownTables,
    new: &LftMatrix,
    previous: Option<&Plan>,
) -> Option<LftMatrix> {
    let count = graph.switch_count();
    if !(0..count as u32).any(|s| known.knows(graph.guid(s))) {
        return None;
    }
    let mut old = LftMatrix::new(count, u16::try_from(new.stride().saturating_sub(1)).unwrap_or(u16::MAX));
    let old_stride = old.stride();
    let as_planned = |switch: u32| {
        let plan = previous.filter(|plan| plan.routes.lfts.stride() == old_stride)?;
        let row = plan.graph.find(graph.guid(switch))?;
        let mut blocks = known.blocks(graph.guid(switch)).iter();
        let mut planned = plan.routes.lfts.row(row).blocks();
        planned
            .all(|part| blocks.next().is_some_and(|b| b.as_ref().is_some_and(|b| b == part)))
            .then_some(row)
    };
    let as_planned: Vec<Option<u32>> = (0..count as u32).into_par_iter().map(as_planned).collect();
    for switch in 0..count as u32 {
        if let (Some(row), Some(plan)) = (as_planned[switch as usize], previous) {
            old.share_row(switch, &plan.routes.lfts, row);
            continue;
        }
        old.row_mut(switch).update(|row| {
            for (block, part) in row.chunks_mut(LFT_BLOCK).enumerate() {
                if let Some(content) = known.get(graph.guid(switch), block) {
                    part.copy_from_slice(content);
                }
            }
        });
    }
    Some(old)
}

/// The port whose LID is the subnet manager's: its own port, or port 0 of the switch that it sits on.
pub fn own_end(observed: &Observed) -> PortRef {
    let switch = observed.fabric.get(observed.local.node).is_some_and(routing::fabric::Node::is_switch);
    let port = if switch { PortNum::MANAGEMENT } else { observed.local.port };
    PortRef { node: observed.local.node, port }
}

/// Whether packets can be sent over a port: read, and up.
fn usable(observed: &Observed, end: PortRef) -> bool {
    observed.port_info(end).is_some() && observed.fabric.port(end).is_some_and(|p| p.state.is_up())
}

fn plan_lids(input: &PlanInput) -> LidPlan {
    let observed = &*input.observed;
    let mut applicants = Vec::new();
    for (node, facts) in observed.fabric.nodes() {
        for (number, port) in facts.end_ports() {
            let end = PortRef { node, port: number };
            let in_use = facts.is_switch() || observed.fabric.peer(end).is_some() || end == observed.local;
            if !in_use || observed.port_info(end).is_none() {
                continue;
            }
            let base_port_0 = facts.is_switch() && !facts.switch.is_some_and(|s| s.enhanced_port_0);
            applicants.push(Applicant {
                guid: port.guid,
                held: port.lid.filter(|_| !input.reassign),
                held_lmc: port.lmc,
                lmc: if base_port_0 { 0 } else { input.settings.lmc },
                stuck: input.stuck.contains(&port.guid),
            });
        }
    }
    let caps = observed.fabric.switches().filter_map(|(_, n)| n.switch.map(|s| s.linear_fdb_cap));
    let ceiling = caps.min().map_or(Lid::MAX, |cap| Lid::new(cap.saturating_sub(1)).unwrap_or(Lid::MAX));
    let mut memory = if input.reassign { LidMemory::new() } else { input.memory.clone() };
    let plan = lids::assign(&applicants, &memory, ceiling);
    let own = observed.fabric.port(own_end(observed));
    let Some(own) = own.filter(|port| port.lid.is_none() && plan.waiting.contains(&port.guid)) else {
        return plan;
    };
    // Nobody can be moved off the LID that we had before by a manager without one: it takes another.
    memory.remove(&own.guid);
    lids::assign(&applicants, &memory, ceiling)
}

/// The fabric with planned LIDs. A port that waits for its LID goes on with the one it holds, if nobody gets that.
fn with_lids<'a>(fabric: &'a Fabric, lids: &LidPlan) -> Cow<'a, Fabric> {
    let holds = |(_, port): (PortNum, &routing::fabric::Port)| {
        let given = lids.given.get(&port.guid);
        given.map(|range| (range.base, range.lmc)) == port.lid.map(|lid| (lid, port.lmc))
    };
    if fabric.nodes().all(|(_, node)| node.end_ports().all(holds)) {
        return Cow::Borrowed(fabric);
    }
    let mut planned = fabric.clone();
    let mut taken = vec![false; Lid::MAX.index() + 1];
    lids.given.values().flat_map(|r| r.indices()).for_each(|lid| taken[lid] = true);
    let ids: Vec<NodeId> = planned.node_ids().collect();
    for id in ids {
        let node = planned.node_mut(id);
        let switch = node.kind == NodeType::Switch;
        for (number, port) in node.ports.iter_mut().enumerate() {
            let Some(port) = port.as_mut().filter(|_| !switch || number == 0) else { continue };
            if let Some(range) = lids.given.get(&port.guid) {
                (port.lid, port.lmc) = (Some(range.base), range.lmc);
            } else {
                let held = port.lid.and_then(|lid| LidRange::new(lid, port.lmc));
                if held.is_none_or(|range| range.indices().any(|lid| taken[lid])) {
                    port.lid = None;
                }
            }
        }
    }
    Cow::Owned(planned)
}

fn plan_ports(input: &PlanInput, lids: &LidPlan, sm_lid: Lid) -> Vec<PortPlan> {
    let (observed, settings) = (&*input.observed, &input.settings);
    let mut plans = Vec::new();
    for (node, facts) in observed.fabric.nodes() {
        for (number, port) in facts.numbered_ports() {
            let end_port = !facts.is_switch() || number == PortNum::MANAGEMENT;
            let range = lids.given.get(&port.guid).copied().filter(|_| end_port);
            let end = PortRef { node, port: number };
            plans.extend(ports::plan_port(observed, end, range, Addresses { sm_lid }, settings, &input.keys));
        }
    }
    plans
}
