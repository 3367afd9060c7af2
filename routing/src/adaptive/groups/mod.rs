//! Port groups for switches with adaptive routing: for each destination all exits that begin a best path, of which the
//! switch takes one by its queues; the static entry is one of them and the escape.
//!
//! - Variants: those of `minhop` (all shortest paths), `updn`, `dnup` and `ftree` (all shortest legal ways up and down) and
//!   `dragonfly-plus` (up, over one global link, down; [`detours`] through a third group need tables by port of entry, which a
//!   switch has only with private tables). Only for LIDs of hosts; management of switches stays on static entries.
//! - Guarantees, proved by [`crate::verify::choices`] on the result and refused otherwise: whatever members are taken, packets
//!   arrive; and the channel dependency graph of all members together is free of cycles, the static entries alone are too.
//!   Up/down and dragonfly+ keep that by their rule. For `minhop` it holds on trees; elsewhere members that would close a
//!   cycle are left out ([`narrow`]), and where the static entries have one themselves, the engine is refused.
//! - Device limits: a switch has at most as many groups as it reports (GroupCap). Destinations with the same exits share a
//!   group; when there are too many, the groups of most LIDs stay, others take the largest one that holds no exit which is not
//!   theirs, and what is left stays static.
//! - Cost: a bit test for each (switch, leaf, exit), and the check.

pub mod detours;
mod narrow;
mod table;
#[cfg(test)]
mod tests;

use mad::types::{Guid, Lid};
use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeSet;

use super::ports::PortSet;
use crate::engines::{self, RoutingError, RoutingInput};
use crate::fabric::{SwitchGraph, SwitchIndex};
use crate::routes::Routes;
use crate::verify::choices::{self, ChoiceReport, Choices};
pub use table::GroupTable;

/// What the switches can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// NodeGUIDs of the switches that route adaptively; `None` for all.
    pub switches: Option<BTreeSet<Guid>>,
    /// GroupCap of AdaptiveRoutingInfo: groups of a switch, 1 to 4095.
    pub group_cap: u16,
}

impl Abilities {
    /// Whether a switch routes adaptively.
    fn has(&self, switch: Guid) -> bool {
        self.switches.as_ref().is_none_or(|able| able.contains(&switch))
    }
}

/// Static tables and groups beside them.
#[derive(Clone, Debug)]
pub struct AdaptiveRoutes {
    /// The static tables: what the switch falls back on, and all that other LIDs have.
    pub routes: Routes,
    /// The group table of each switch and which LIDs use it.
    pub tables: Vec<GroupTable>,
    /// Members left out because they would have closed a cycle of channels, by (switch, leaf) pairs.
    pub narrowed: usize,
}

/// Groups in numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Switches with groups.
    pub switches: usize,
    /// Most groups of one switch.
    pub most_groups: usize,
    /// LIDs for each group, in the mean: how often a group is used again.
    pub reuse: f64,
    /// Exits of a group, in the mean over the entries that use one.
    pub members: f64,
    /// Share of the entries for hosts that have a group, 0 to 1.
    pub adaptive: f64,
    /// Entries that took a smaller group because of the limit.
    pub smaller: usize,
    /// Entries that stayed static because of the limit.
    pub limited: usize,
    /// See [`AdaptiveRoutes::narrowed`].
    pub narrowed: usize,
}

/// Routes by `engine` and forms the groups; the report is of all choices.
///
/// # Errors
/// The engine refuses, has no adaptive form, or its static tables have a credit loop; a limit of no group.
pub fn route(
    engine: &str,
    graph: &SwitchGraph,
    input: &RoutingInput,
    abilities: &Abilities,
) -> Result<(AdaptiveRoutes, ChoiceReport), RoutingError> {
    let (routes, hops) = engines::with_best_arcs(engine, graph, input)?;
    let name = engines::by_name(engine)?.name();
    let refuse = |reason| RoutingError::Unsuitable { engine: name, reason };
    if abilities.group_cap == 0 {
        return Err(refuse("the switches have no adaptive-routing group".into()));
    }
    let mut exits = Exits::new(graph, &hops, abilities);
    let form = |routes: &Routes, exits: &Exits, narrowed| {
        let tables = (0..graph.switch_count() as u32).into_par_iter();
        let tables = tables.map(|s| GroupTable::new(graph, routes, s, exits, abilities.group_cap)).collect();
        AdaptiveRoutes { routes: routes.clone(), tables, narrowed }
    };
    let adaptive = form(&routes, &exits, 0);
    let report = choices::check(graph, &routes, &[&adaptive]);
    if report.credit_loop.is_none() {
        return Ok((adaptive, report));
    }
    let narrowed = narrow::narrow(graph, &routes, &mut exits).map_err(|switch| {
        let (name, guid) = (graph.name(switch), graph.guid(switch));
        refuse(format!(
            "the static tables, the escape of the groups, have a credit loop themselves, by switch \"{name}\" ({guid})"
        ))
    })?;
    let adaptive = form(&routes, &exits, narrowed);
    let report = choices::check(graph, &routes, &[&adaptive]);
    Ok((adaptive, report))
}

/// The exits that a switch may take to each leaf (switch with hosts), before any limit.
#[derive(Clone)]
struct Exits {
    /// Number of each switch among the leaves, `u32::MAX` for none.
    leaf_of: Vec<u32>,
    leaves: Vec<SwitchIndex>,
    /// By (switch, leaf); empty for switches without adaptive routing.
    sets: Vec<PortSet>,
}

impl Exits {
    fn new(graph: &SwitchGraph, hops: &engines::NextHops, abilities: &Abilities) -> Self {
        let mut with_hosts = vec![false; graph.switch_count()];
        graph.destinations().iter().filter(|d| d.host).for_each(|d| with_hosts[d.switch as usize] = true);
        let leaves: Vec<SwitchIndex> =
            (0..graph.switch_count() as u32).filter(|s| with_hosts[*s as usize]).collect();
        let mut leaf_of = vec![u32::MAX; graph.switch_count()];
        for (number, leaf) in (0..).zip(&leaves) {
            leaf_of[*leaf as usize] = number;
        }
        let able = |s| abilities.has(graph.guid(s));
        let mut sets = vec![PortSet::default(); leaves.len() * graph.switch_count()];
        sets.par_chunks_mut(leaves.len().max(1)).zip(0_u32..graph.switch_count() as u32).for_each(
            |(row, s)| {
                if !able(s) {
                    return;
                }
                let first = graph.offsets()[s as usize] as usize;
                for (set, leaf) in row.iter_mut().zip(&leaves).filter(|(_, leaf)| **leaf != s) {
                    let best = |place: usize| {
                        hops.mask(*leaf as usize / engines::TARGETS, first + place)
                            >> (*leaf as usize % engines::TARGETS)
                            & 1
                            == 1
                    };
                    let arcs = graph.arcs(s).iter().enumerate().filter(|(place, _)| best(*place));
                    *set = arcs.map(|(_, arc)| arc.out_port).collect();
                }
            },
        );
        Self { leaf_of, leaves, sets }
    }

    fn of(&self, s: SwitchIndex, leaf: usize) -> &PortSet {
        &self.sets[s as usize * self.leaves.len() + leaf]
    }
}

impl AdaptiveRoutes {
    /// The groups in numbers.
    pub fn summary(&self, graph: &SwitchGraph) -> Summary {
        let hosts = graph.destinations().iter().filter(|d| d.host).map(|d| 1_usize << d.lmc).sum::<usize>();
        let groups: usize = self.tables.iter().map(|t| t.groups.len()).sum();
        let used: usize = self.tables.iter().map(GroupTable::entries).sum();
        let members: usize = self.tables.iter().map(GroupTable::members).sum();
        let share = |part: usize, whole: usize| part as f64 / whole.max(1) as f64;
        Summary {
            switches: self.tables.iter().filter(|t| !t.groups.is_empty()).count(),
            most_groups: self.tables.iter().map(|t| t.groups.len()).max().unwrap_or(0),
            reuse: share(used, groups),
            members: share(members, used),
            adaptive: share(used, hosts * self.tables.len()),
            smaller: self.tables.iter().map(|t| t.smaller).sum(),
            limited: self.tables.iter().map(|t| t.limited).sum(),
            narrowed: self.narrowed,
        }
    }
}

impl Choices for AdaptiveRoutes {
    fn exits(&self, switch: SwitchIndex, lid: u16, ports: &mut Vec<u8>) {
        if let Some(lid) = Lid::new(lid) {
            ports.push(self.routes.lfts.port(switch, lid));
        }
        let group = self.tables.get(switch as usize).and_then(|table| table.group(lid));
        ports.extend(group.into_iter().flat_map(PortSet::iter));
    }

    fn sls(&self, switch: SwitchIndex, lid: u16, sls: &mut Vec<u8>) {
        sls.extend(Lid::new(lid).map(|lid| self.routes.path_sl(switch, lid)));
    }
}
