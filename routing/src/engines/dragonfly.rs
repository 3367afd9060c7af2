//! `dragonfly` and `dragonfly-plus`: shortest paths between groups, one global hop at most.
//!
//! - Input: `dragonfly`: groups of switches that are all linked with one another, found by their common neighbours;
//!   `dragonfly-plus`: groups of leaves (switches with hosts) and spines (without) in two levels, global links between
//!   spines.
//! - Guarantees: paths local–global–local, or up–global–down; no credit loop between hosts. Global links between the same
//!   two groups share the LIDs; LIDs of one port take different ones.
//! - Refuses, with the switches named: groups that are not complete, groups without a direct global link, links that belong
//!   to no such fabric.
//! - VLs: `dragonfly` 2: a packet changes from VL 0 to VL 1 when it comes in over a global link, by the switches' SL-to-VL
//!   tables. `dragonfly-plus` 1: up, global and down links form no cycle. Cost: as `minhop`.
//! - Source: Kim, Dally, Scott, Abts (ISCA 2008); Shpiner et al., Dragonfly+ (HiPINEB 2017).

use super::fill::{Basis, fill};
use super::next_hops::{NextHops, Turn};
use super::targets::{Targets, check_hosts, with_hosts};
use super::{RoutingEngine, RoutingError, RoutingInput};
use crate::fabric::{SwitchGraph, SwitchIndex};
use crate::routes::{Routes, SlToVl};

/// The engine `dragonfly`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dragonfly;

/// The engine `dragonfly-plus`.
#[derive(Clone, Copy, Debug, Default)]
pub struct DragonflyPlus;

/// Why two switches have no path.
const NO_LINK: &str = "no direct global link joins the groups of switches";

impl RoutingEngine for Dragonfly {
    fn name(&self) -> &'static str {
        "dragonfly"
    }

    fn route(&self, graph: &SwitchGraph, input: &RoutingInput) -> Result<Routes, RoutingError> {
        let group = complete_groups(graph)?;
        let from = graph.sources();
        let turn = |arc: usize| {
            let to = graph.all_arcs()[arc].to;
            if group[from[arc] as usize] == group[to as usize] { Turn::Local } else { Turn::Global }
        };
        let hops = NextHops::local_global_local(graph, &turn);
        check_hosts("dragonfly", NO_LINK, graph, &hops)?;
        let available = input.vls();
        if available < 2 {
            return Err(RoutingError::NotEnoughVls { engine: "dragonfly", needed: 2, available });
        }
        let mut routes = Routes::empty(self.name(), graph);
        fill(graph, &Targets::new(graph, input), &hops, &mut routes.lfts);
        routes.vls = 2;
        routes.sl_to_vl = SlToVl::PerSwitch(
            (0..graph.switch_count() as u32).map(|s| lane_by_entry(graph, s, &group)).collect(),
        );
        Ok(routes)
    }
}

/// VL 1 for what came over a global link, VL 0 for all else.
fn lane_by_entry(graph: &SwitchGraph, s: SwitchIndex, group: &[u32]) -> Vec<[u8; 16]> {
    let ports = usize::from(graph.num_ports(s)) + 1;
    let mut tables = vec![[0; 16]; ports * ports];
    for arc in graph.arcs(s).iter().filter(|a| group[a.to as usize] != group[s as usize]) {
        let input = usize::from(arc.out_port);
        tables[input * ports..(input + 1) * ports].fill([1; 16]);
    }
    tables
}

/// Groups in which every two switches are linked. A neighbour is of the group when it shares at least half as many
/// neighbours as the best.
fn complete_groups(graph: &SwitchGraph) -> Result<Vec<u32>, RoutingError> {
    let refuse = |reason| RoutingError::Unsuitable { engine: "dragonfly", reason };
    let count = graph.switch_count();
    let neighbours = |s: SwitchIndex| {
        let mut all: Vec<SwitchIndex> = graph.arcs(s).iter().map(|a| a.to).collect();
        all.dedup();
        all
    };
    let of: Vec<Vec<SwitchIndex>> = (0..count as u32).map(neighbours).collect();
    let shared = |a: SwitchIndex, b: SwitchIndex| {
        of[a as usize].iter().filter(|n| of[b as usize].binary_search(n).is_ok()).count()
    };
    let mut group = vec![u32::MAX; count];
    let mut groups = 0;
    for s in 0..count as u32 {
        if group[s as usize] != u32::MAX {
            continue;
        }
        let best = of[s as usize].iter().map(|n| shared(s, *n)).max().unwrap_or(0);
        let members = of[s as usize].iter().copied().filter(|n| best > 0 && shared(s, *n) * 2 >= best);
        let members: Vec<SwitchIndex> = std::iter::once(s).chain(members).collect();
        for (i, a) in members.iter().enumerate() {
            if group[*a as usize] != u32::MAX {
                let name = graph.describe(*a);
                return Err(refuse(format!(
                    "switch {name} would belong to two groups: this is no dragonfly"
                )));
            }
            group[*a as usize] = groups;
            if let Some(b) = members[i + 1..].iter().find(|b| of[*a as usize].binary_search(b).is_err()) {
                let (a, b) = (graph.describe(*a), graph.describe(*b));
                return Err(refuse(format!("switches {a} and {b} are of one group and not linked")));
            }
        }
        groups += 1;
    }
    if groups as usize == count || groups < 2 {
        return Err(refuse(format!("the {count} switches form {groups} groups: this is no dragonfly")));
    }
    Ok(group)
}

impl RoutingEngine for DragonflyPlus {
    fn name(&self) -> &'static str {
        "dragonfly-plus"
    }

    fn route(&self, graph: &SwitchGraph, input: &RoutingInput) -> Result<Routes, RoutingError> {
        Ok(basis_plus(graph, input)?.routes(self.name(), graph))
    }
}

/// What the tables of `dragonfly-plus` are filled from.
pub(super) fn basis_plus(graph: &SwitchGraph, input: &RoutingInput) -> Result<Basis, RoutingError> {
    Ok(Basis { hops: up_global_down(graph)?, targets: Targets::new(graph, input), order: None })
}

/// The best arcs up, over a global link and down.
fn up_global_down(graph: &SwitchGraph) -> Result<NextHops, RoutingError> {
    let leaf = with_hosts(graph);
    let refuse = |reason| RoutingError::Unsuitable { engine: "dragonfly-plus", reason };
    let from = graph.sources();
    let ends = |arc: usize| (from[arc], graph.all_arcs()[arc].to);
    let two_leaves = |arc: &usize| leaf[ends(*arc).0 as usize] && leaf[ends(*arc).1 as usize];
    if let Some(arc) = (0..from.len()).find(two_leaves) {
        let (a, b) = (graph.describe(ends(arc).0), graph.describe(ends(arc).1));
        return Err(refuse(format!("switches {a} and {b} both have hosts and are linked")));
    }
    let turn = |arc: usize| match (leaf[ends(arc).0 as usize], leaf[ends(arc).1 as usize]) {
        (true, _) => Turn::Up,
        (false, true) => Turn::Down,
        (false, false) => Turn::Global,
    };
    if (0..from.len()).all(|arc| turn(arc) != Turn::Global) {
        return Err(refuse("no two switches without hosts are linked: there is one group only".into()));
    }
    let hops = NextHops::up_global_down(graph, &turn);
    check_hosts("dragonfly-plus", NO_LINK, graph, &hops)?;
    Ok(hops)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::testing::check_all;
    use crate::fabric::{Fabric, NodeId, testing};

    /// `groups` groups of `a` switches with `hosts` each, every pair of groups joined by `a * h / (groups - 1)` links.
    fn dragonfly(hosts: usize, a: usize, h: usize, groups: usize) -> Fabric {
        let mut builder = testing::Builder::new((hosts + a + h) as u8);
        let switches: Vec<Vec<NodeId>> =
            (0..groups).map(|_| (0..a).map(|_| builder.switch()).collect()).collect();
        for group in &switches {
            for (i, s) in group.iter().enumerate() {
                for _ in 0..hosts {
                    builder.host(*s);
                }
                group[i + 1..].iter().for_each(|t| builder.link(*s, *t));
            }
        }
        builder.join_groups(&switches, a * h / (groups - 1));
        builder.finish(0)
    }

    #[test]
    fn dragonflies_need_two_lanes_and_three_hops() {
        let input = RoutingInput { data_vls: 2, ..RoutingInput::default() };
        for (hosts, a, h, groups) in [(2, 4, 2, 9), (2, 4, 2, 5), (1, 6, 3, 7)] {
            let graph = SwitchGraph::new(&dragonfly(hosts, a, h, groups));
            let report = check_all(&Dragonfly, &graph, &input);
            assert!(report.hops.longest <= 3 && report.vls == 2, "{report}");
        }
        let graph = SwitchGraph::new(&dragonfly(2, 4, 2, 9));
        let error = Dragonfly.route(&graph, &RoutingInput::default()).unwrap_err();
        assert_eq!(error.to_string(), "dragonfly: needs 2 virtual lanes, the links have 1");
    }

    #[test]
    fn other_fabrics_are_refused_with_the_reason() {
        let input = RoutingInput { data_vls: 8, ..RoutingInput::default() };
        let reason = |fabric: &Fabric| {
            let graph = SwitchGraph::new(fabric);
            (
                Dragonfly.route(&graph, &input).unwrap_err().to_string(),
                DragonflyPlus.route(&graph, &input).unwrap_err().to_string(),
            )
        };
        let (plain, plus) = reason(&testing::torus(&[5, 5], 1, 0));
        assert!(plain.contains("this is no dragonfly"), "{plain}");
        assert!(plus.contains("both have hosts and are linked"), "{plus}");
        let (_, plus) = reason(&testing::fat_tree(&[2, 3], &[1, 2], 0));
        assert!(plus.contains("there is one group only"), "{plus}");
        let mut cut = dragonfly(1, 4, 2, 9);
        let link = cut.links().copied().find(|l| {
            let [a, b] = [l.a, l.b].map(|end| cut.node(end.node).guid.0 & 0xff);
            cut.node(l.a.node).is_switch() && cut.node(l.b.node).is_switch() && (a - 1) / 4 != (b - 1) / 4
        });
        cut.disconnect(link.unwrap().a);
        let (plain, _) = reason(&cut);
        assert!(plain.contains("no direct global link joins the groups of switches"), "{plain}");
    }

    #[test]
    fn dragonfly_plus_needs_one_lane() {
        let graph = SwitchGraph::new(&testing::dragonfly_plus(5, 2, 4));
        let input = RoutingInput { data_vls: 1, ..RoutingInput::default() };
        let report = check_all(&DragonflyPlus, &graph, &input);
        assert_eq!(report.hops.histogram.len(), 4, "{report}");
    }
}
