//! New tables beside old ones, after a failure.

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::fabric::{SwitchGraph, SwitchIndex};
use crate::routes::{LftMatrix, NO_PORT, PathSl, Routes, SlToVl};
use crate::verify::{self, Options, mixture, transition};

/// What stood before the failure.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The tables.
    pub routes: Routes,
    /// Host ports that were attached.
    pub hosts: usize,
    /// Pairs of switch and LID that the fabric did not connect.
    pub unconnected: u64,
    /// Routes between hosts over the most loaded link between switches.
    pub worst_load: u32,
}

impl Standing {
    /// What `routes` are on `graph`.
    pub fn new(graph: &SwitchGraph, routes: Routes) -> Self {
        let report = verify::check(graph, &routes, Options::default());
        Self { routes, hosts: hosts(graph), unconnected: report.unconnected, worst_load: report.balance.max }
    }
}

/// What a failure costs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// Whether all that is left is still connected as it was before, and some host is left where there were any.
    pub connected: bool,
    /// Host ports that went with their switches.
    pub hosts_lost: usize,
    /// Whether the verifier finds the new tables right.
    pub right: bool,
    /// Entries, for LIDs that are still there, whose exit is gone: these must change, whatever the engine.
    pub must_move: usize,
    /// Entries that change.
    pub moved: usize,
    /// Blocks of 64 entries to be written.
    pub blocks: usize,
    /// Switches to be written to.
    pub switches: usize,
    /// Routes between hosts over the most loaded link between switches, before and after.
    pub worst_before: u32,
    /// See `worst_before`.
    pub worst_after: u32,
    /// LIDs for which some order of writing closes a forwarding loop.
    pub loops: usize,
    /// LIDs for which some order of writing cuts a path that works.
    pub cuts: usize,
    /// Steps, one after the other, in which the tables can be written with neither.
    pub steps: usize,
    /// Whether packets of old and new routes together can close a credit loop while these steps are made, by old and new
    /// SL-to-VL tables.
    pub credit_loop: bool,
}

/// Compares `routes` on `graph`, the fabric that is left, with what stood before.
pub fn compare(standing: &Standing, graph: &SwitchGraph, routes: &Routes) -> Cost {
    let old = in_order_of(&standing.routes, graph);
    let left = hosts(graph);
    let report = verify::check(graph, routes, Options::default());
    let change = transition::check(graph, &old.lfts, &routes.lfts);
    let steps = transition::plan(graph, &old.lfts, &routes.lfts);
    Cost {
        connected: report.unconnected <= standing.unconnected && (left > 0 || standing.hosts == 0),
        hosts_lost: standing.hosts.saturating_sub(left),
        right: report.is_right(),
        must_move: must_move(graph, &old.lfts),
        moved: change.entries,
        blocks: change.blocks,
        switches: change.switches,
        worst_before: standing.worst_load,
        worst_after: report.balance.max,
        loops: change.loops.len(),
        cuts: change.cuts.len(),
        steps: steps.len(),
        credit_loop: mixture::credit_loop(graph, &old, routes, &steps).is_some(),
    }
}

/// Entries that change with `routes`, alone.
pub fn moved(standing: &Standing, graph: &SwitchGraph, routes: &Routes) -> usize {
    let old = in_order_of(&standing.routes, graph);
    let differing = |s: SwitchIndex| {
        let pairs = old.lfts.row(s).iter().zip(routes.lfts.row(s).iter());
        pairs.filter(|(before, after)| before != after).count()
    };
    (0..graph.switch_count() as SwitchIndex).map(differing).sum()
}

fn hosts(graph: &SwitchGraph) -> usize {
    graph.destinations().iter().filter(|d| d.host).count()
}

/// The rows of `routes` for the switches of `graph`, and no entry for a LID that nobody has any more.
fn in_order_of(routes: &Routes, graph: &SwitchGraph) -> Routes {
    let row_of: FxHashMap<_, _> = routes.switches.iter().zip(0_u32..).collect();
    let rows: Vec<Option<u32>> =
        (0..graph.switch_count() as u32).map(|s| row_of.get(&graph.guid(s)).copied()).collect();
    let mut old = Routes { engine: routes.engine.clone(), ..Routes::empty(&routes.engine, graph) };
    old.lfts = pick(&routes.lfts, &rows, old.lfts);
    for lid in unowned(graph, old.lfts.stride()) {
        (0..rows.len() as u32).for_each(|s| old.lfts.row_mut(s)[lid] = NO_PORT);
    }
    old.vls = routes.vls;
    old.sl = match &routes.sl {
        PathSl::BySourceSwitch(table) => {
            PathSl::BySourceSwitch(pick(table, &rows, LftMatrix::new(rows.len(), graph.top_lid())))
        }
        other => other.clone(),
    };
    old.sl_to_vl = match &routes.sl_to_vl {
        SlToVl::PerSwitch(tables) => {
            let table = |row: &Option<u32>| row.map(|r| tables[r as usize].clone()).unwrap_or_default();
            SlToVl::PerSwitch(rows.iter().map(table).collect())
        }
        other => other.clone(),
    };
    old
}

/// Rows by number, cut to the length of those of `into`.
fn pick(from: &LftMatrix, rows: &[Option<u32>], mut into: LftMatrix) -> LftMatrix {
    let length = from.stride().min(into.stride());
    for (s, row) in (0..).zip(rows) {
        if let Some(row) = row {
            into.row_mut(s).update(|into| {
                into.iter_mut()
                    .zip(from.row(*row).iter())
                    .take(length)
                    .for_each(|(into, from)| *into = *from);
            });
        }
    }
    into
}

fn unowned(graph: &SwitchGraph, length: usize) -> Vec<usize> {
    let mut owned = vec![false; length];
    graph.destinations().iter().flat_map(|d| d.lids()).for_each(|lid| owned[usize::from(lid)] = true);
    (0..length).filter(|lid| !owned[*lid]).collect()
}

/// Entries whose exit port leads nowhere now.
fn must_move(graph: &SwitchGraph, old: &LftMatrix) -> usize {
    let mut live = vec![[false; 256]; graph.switch_count()];
    for d in graph.destinations() {
        live[d.switch as usize][usize::from(d.port)] = true;
    }
    let dead = |s: SwitchIndex| {
        let mut live = live[s as usize];
        live[usize::from(NO_PORT)] = true;
        graph.arcs(s).iter().for_each(|arc| live[usize::from(arc.out_port)] = true);
        old.row(s).iter().filter(|port| !live[usize::from(**port)]).count()
    };
    (0..graph.switch_count() as u32).map(dead).sum()
}
