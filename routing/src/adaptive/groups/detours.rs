//! Detours for dragonfly+: where the direct global links are busy, over one more group.
//!
//! - A packet that came in from below may take, beside the direct links, a global link to a spine of a third group that has
//!   one to the group of its destination; a packet that came in over a global link takes direct links only. So there are two
//!   tables in each switch, told apart by the port of entry (private tables; PortSLToPrivateLFTMap): the first for packets of
//!   hosts and leaves, the second for those that came over a global link.
//! - Free of deadlock on two VLs: a packet that came in over a global link and leaves by another takes VL 1 there, by
//!   the SL-to-VL tables. Then links up come before global ones on VL 0, these before global ones on VL 1, and these before
//!   links down, in every dependency. A turn down and up again in the third group is not offered: what comes up for the second
//!   time could not be told from what comes up for the first, as SL-to-VL tables do not see the VL.
//! - Proved by [`crate::verify::entries`] on the result: every choice arrives, no cycle of channels; the static entries, which
//!   lead over direct links only wherever there are some, are among the choices.
//! - Cost: a test for each (switch, leaf, global link, global link behind it), and the check.

use mad::types::Lid;

use super::{Abilities, AdaptiveRoutes, Exits, GroupTable};
use crate::adaptive::ports::PortSet;
use crate::engines::{self, RoutingError, RoutingInput};
use crate::fabric::{SwitchGraph, SwitchIndex};
use crate::routes::{Routes, SlToVl};
use crate::verify::choices::ChoiceReport;
use crate::verify::entries::{self, EntryChoices};

/// Groups with detours.
#[derive(Clone, Debug)]
pub struct Detours {
    /// Static tables, and the groups for packets from hosts and leaves.
    pub first: AdaptiveRoutes,
    /// The groups for packets that came in over a global link.
    pub second: Vec<GroupTable>,
    /// The global ports of each switch.
    pub global: Vec<PortSet>,
    /// Exits of the first tables that begin a detour, over all pairs of a switch and a leaf.
    pub detours: usize,
}

/// Routes by `dragonfly-plus` and forms groups with detours; the report is of all choices.
///
/// # Errors
/// The fabric is no dragonfly+, the links have one VL only, or a limit of no group.
pub fn route(
    graph: &SwitchGraph,
    input: &RoutingInput,
    abilities: &Abilities,
) -> Result<(Detours, ChoiceReport), RoutingError> {
    const ENGINE: &str = "dragonfly-plus";
    let (mut routes, hops) = engines::with_best_arcs(ENGINE, graph, input)?;
    if input.vls() < 2 {
        return Err(RoutingError::NotEnoughVls { engine: ENGINE, needed: 2, available: input.vls() });
    }
    if abilities.group_cap == 0 {
        let reason = "the switches have no adaptive-routing group".into();
        return Err(RoutingError::Unsuitable { engine: ENGINE, reason });
    }
    let direct = Exits::new(graph, &hops, &Abilities { switches: None, ..abilities.clone() });
    let plan = Plan::new(graph, &direct);
    let (mut first, mut second) = (direct.clone(), direct.clone());
    let mut detours = 0;
    for s in 0..graph.switch_count() as u32 {
        for (number, leaf) in (0..).zip(&direct.leaves).filter(|(_, leaf)| **leaf != s) {
            let cell = s as usize * direct.leaves.len() + number;
            let (wide, narrow) = (plan.first(s, number), plan.second(s, number));
            detours += wide.iter().filter(|port| !direct.of(s, number).contains(*port)).count();
            if narrow.is_empty() && plan.is_spine(s) && !wide.is_empty() {
                lead_on(graph, &mut routes, s, *leaf, &wide);
            }
            (first.sets[cell], second.sets[cell]) = (wide, narrow);
        }
    }
    for s in (0..graph.switch_count()).filter(|s| !abilities.has(graph.guid(*s as u32))) {
        let row = s * direct.leaves.len()..(s + 1) * direct.leaves.len();
        first.sets[row.clone()].fill(PortSet::default());
        second.sets[row].fill(PortSet::default());
    }
    routes.vls = 2;
    routes.sl_to_vl =
        SlToVl::PerSwitch((0..graph.switch_count() as u32).map(|s| plan.lanes(graph, s)).collect());
    let tables = |exits: &Exits| {
        let of = |s| GroupTable::new(graph, &routes, s, exits, abilities.group_cap);
        (0..graph.switch_count() as u32).map(of).collect::<Vec<_>>()
    };
    let (of_first, of_second) = (tables(&first), tables(&second));
    let first = AdaptiveRoutes { routes, tables: of_first, narrowed: 0 };
    let found = Detours { first, second: of_second, global: plan.global.clone(), detours };
    let report = entries::check(graph, &found.first.routes, &found);
    Ok((found, report))
}

/// Gives a spine without a direct link static entries that begin detours: packets that a leaf has sent there go on.
fn lead_on(graph: &SwitchGraph, routes: &mut Routes, s: SwitchIndex, leaf: SwitchIndex, exits: &PortSet) {
    let ports: Vec<u8> = exits.iter().collect();
    let lids = graph.destinations().iter().filter(|d| d.switch == leaf).flat_map(|d| d.lids());
    for (number, lid) in lids.enumerate() {
        routes.lfts.row_mut(s)[usize::from(lid)] = ports[number % ports.len()];
    }
}

/// Which way detours lead.
struct Plan<'a> {
    graph: &'a SwitchGraph,
    direct: &'a Exits,
    global: Vec<PortSet>,
    /// Group of each switch, by its smallest one.
    group: Vec<SwitchIndex>,
    /// By (switch, leaf): whether a link leads straight to the leaf.
    above: Vec<bool>,
}

impl<'a> Plan<'a> {
    fn new(graph: &'a SwitchGraph, direct: &'a Exits) -> Self {
        let count = graph.switch_count();
        let spine = |s: SwitchIndex| direct.leaf_of[s as usize] == u32::MAX;
        let mut group = vec![SwitchIndex::MAX; count];
        let mut above = vec![false; count * direct.leaves.len()];
        let mut global = vec![PortSet::default(); count];
        for s in 0..count as u32 {
            for arc in graph.arcs(s) {
                match direct.leaf_of[arc.to as usize] {
                    u32::MAX if spine(s) => global[s as usize].insert(arc.out_port),
                    u32::MAX => {}
                    leaf => above[s as usize * direct.leaves.len() + leaf as usize] = true,
                }
            }
            let mut queue = if group[s as usize] == SwitchIndex::MAX { vec![s] } else { Vec::new() };
            while let Some(at) = queue.pop() {
                if std::mem::replace(&mut group[at as usize], s) != SwitchIndex::MAX {
                    continue;
                }
                let within = graph.arcs(at).iter().filter(|arc| !(spine(at) && spine(arc.to)));
                queue.extend(within.map(|arc| arc.to).filter(|to| group[*to as usize] == SwitchIndex::MAX));
            }
        }
        Self { graph, direct, global, group, above }
    }

    fn is_spine(&self, s: SwitchIndex) -> bool {
        self.direct.leaf_of[s as usize] == u32::MAX
    }

    fn in_group_of(&self, s: SwitchIndex, leaf: usize) -> bool {
        self.group[s as usize] == self.group[self.direct.leaves[leaf] as usize]
    }

    fn is_above(&self, s: SwitchIndex, leaf: usize) -> bool {
        self.above[s as usize * self.direct.leaves.len() + leaf]
    }

    /// Exits of a spine to which no detour belongs: down, or over a global link to a spine above the leaf.
    fn second(&self, s: SwitchIndex, leaf: usize) -> PortSet {
        if !self.is_spine(s) || (self.in_group_of(s, leaf) && !self.is_above(s, leaf)) {
            return PortSet::default();
        }
        if self.in_group_of(s, leaf) {
            return *self.direct.of(s, leaf);
        }
        let arcs =
            self.graph.arcs(s).iter().filter(|arc| self.is_spine(arc.to) && self.is_above(arc.to, leaf));
        arcs.map(|arc| arc.out_port).collect()
    }

    /// Exits for packets from below.
    fn first(&self, s: SwitchIndex, leaf: usize) -> PortSet {
        let arcs = self.graph.arcs(s).iter();
        if self.is_spine(s) && self.in_group_of(s, leaf) {
            return self.second(s, leaf);
        }
        if self.is_spine(s) {
            let third = |to: SwitchIndex| {
                self.group[to as usize] != self.group[s as usize]
                    && !self.in_group_of(to, leaf)
                    && !self.second(to, leaf).is_empty()
            };
            let detours = arcs.filter(|arc| self.is_spine(arc.to) && third(arc.to)).map(|arc| arc.out_port);
            return self.second(s, leaf).iter().chain(detours).collect();
        }
        arcs.filter(|arc| !self.first(arc.to, leaf).is_empty()).map(|arc| arc.out_port).collect()
    }

    /// VL 1 from one global link to another, VL 0 for all else.
    fn lanes(&self, graph: &SwitchGraph, s: SwitchIndex) -> Vec<[u8; 16]> {
        let ports = 0..=graph.num_ports(s);
        let global = &self.global[s as usize];
        let pairs = ports.clone().flat_map(|input| ports.clone().map(move |output| (input, output)));
        pairs.map(|(i, o)| [u8::from(global.contains(i) && global.contains(o)); 16]).collect()
    }
}

impl EntryChoices for Detours {
    fn exits(&self, switch: SwitchIndex, entry: Option<u8>, lid: u16, ports: &mut Vec<u8>) {
        ports.extend(Lid::new(lid).map(|lid| self.first.routes.lfts.port(switch, lid)));
        let over_global = entry.is_some_and(|port| self.global[switch as usize].contains(port));
        let tables = if over_global { &self.second } else { &self.first.tables };
        let group = tables.get(switch as usize).and_then(|table| table.group(lid));
        ports.extend(group.into_iter().flat_map(PortSet::iter));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::testing;
    use crate::verify::{self, Options};

    fn input(data_vls: u8) -> RoutingInput {
        RoutingInput { data_vls, ..RoutingInput::default() }
    }

    fn all() -> Abilities {
        Abilities { switches: None, group_cap: 4095 }
    }

    #[test]
    fn detours_lead_over_one_group_more_and_close_no_circle() {
        let mut offered = 0;
        for (groups, leaves, spines) in [(5, 2, 1), (5, 2, 2), (4, 3, 2), (5, 2, 4)] {
            let graph = SwitchGraph::new(&testing::dragonfly_plus(groups, leaves, spines));
            let (found, report) = route(&graph, &input(2), &all()).unwrap();
            assert!(report.is_right(), "{groups} groups, {spines} spines: {report:?}");
            let alone =
                verify::check(&graph, &found.first.routes, Options { data_vls: 2, ..Options::default() });
            assert!(alone.is_right(), "{alone}");
            // With one spine in a group it has a link to every other group: all others can be gone over.
            if spines == 1 {
                let pairs = groups * (groups - 1) * leaves;
                assert_eq!(found.detours, pairs * (groups - 2), "{groups} groups");
            }
            offered += found.detours;
        }
        assert!(offered > 0);
        let graph = SwitchGraph::new(&testing::dragonfly_plus(5, 2, 1));
        let refused = route(&graph, &input(1), &all()).unwrap_err().to_string();
        assert_eq!(refused, "dragonfly-plus: needs 2 virtual lanes, the links have 1");
    }

    /// It is the second lane that keeps detours free of deadlock, and the second table that lets them end.
    #[test]
    fn without_the_second_lane_or_the_second_table_the_check_finds_the_circle() {
        let graph = SwitchGraph::new(&testing::dragonfly_plus(5, 2, 1));
        let (found, _) = route(&graph, &input(2), &all()).unwrap();
        let mut one_lane = found.first.routes.clone();
        one_lane.sl_to_vl = SlToVl::Identity;
        let report = entries::check(&graph, &one_lane, &found);
        assert!(report.always_arrives() && report.credit_loop.is_some(), "{report:?}");
        let mut again = found.clone();
        again.second.clone_from(&again.first.tables);
        let report = entries::check(&graph, &again.first.routes, &again);
        assert!(!report.always_arrives(), "{report:?}");
        assert_eq!(report.first_fault.unwrap().kind, verify::FaultKind::Loop);
    }

    /// A switch that can't do it stays static, and what comes to it goes on.
    #[test]
    fn static_switches_between_adaptive_ones_are_no_dead_end() {
        let graph = SwitchGraph::new(&testing::dragonfly_plus(5, 2, 2));
        let leaves = (0..graph.switch_count() as u32)
            .filter(|s| graph.destinations().iter().any(|d| d.host && d.switch == *s));
        let able = Abilities { switches: Some(leaves.map(|s| graph.guid(s)).collect()), group_cap: 10 };
        let (found, report) = route(&graph, &input(2), &able).unwrap();
        assert!(report.is_right() && found.detours > 0, "{report:?}");
    }
}
