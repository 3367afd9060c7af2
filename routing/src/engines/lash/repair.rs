//! `lash` after lost links: trees over one are mended, and pairs of switches whose path changed keep their lane where they can.
//!
//! Where a parallel cable is left the switch sends over that, and no path is another. Else what is below the lost link is joined again as in
//! [`regrow`](super::super::sssp::regrow), all LIDs of a switch that go one way together, so that a pair of switches still has one path each
//! way; both take the first lane, their own before all others, where neither closes a cycle. Lanes are kept by cable
//! ([`Lanes`]): a dependency of two channels is one of each two of their cables.
//!
//! Cost: that of [`Cut`]; for each tree over a lost link the links of the switches below it, each with a walk to the target;
//! for each pair of switches that changed its hops.

use std::collections::BTreeSet;

use super::parallel;
use crate::engines::apart::Siblings;
use crate::engines::base::Base;
use crate::engines::escape;
use crate::engines::orphans::{Cut, NONE, Tree};
use crate::engines::room::{Lane, Lanes};
use crate::engines::sssp::regrow::join;
use crate::fabric::{Destination, LinkChange, SwitchGraph, SwitchIndex};
use crate::routes::{LftMatrix, NO_PORT, PathSl, Routes, SlToVl, lane_of_sl, sl_of_lane};

/// The tables after lost links. `None` where some pair has room on no lane, or none is left for the tree of all switches.
pub(in crate::engines) fn repair(base: &Base, graph: &SwitchGraph, links: &LinkChange) -> Option<Routes> {
    let mut routes = base.routes.clone();
    use_other_cables(base, graph, links, &mut routes.lfts);
    let ends = Ends::new(graph, base.kept.ways);
    let lfts = routes.lfts.clone();
    let cut = Cut::new((&base.graph, &lfts), graph, links);
    let changed = regrow(&cut, &ends, &mut routes.lfts, &mut base.load(graph, links));
    let room = Lanes::new(base.kept.taken.as_ref()?, (&base.graph, graph), links);
    let mut first = room.lane(0);
    if let Some(parents) = base.routes.spanning.first() {
        routes.spanning = vec![escape::mend(parents, (&base.graph, graph), links, &mut first)?];
    }
    place((&cut, &ends), &changed, &mut routes, (&room, base.input.vls()), vec![first])?;
    if routes.vls > 1 {
        routes.sl_to_vl = SlToVl::first_for_most(base.input.vls());
    }
    Some(routes)
}

/// Deals what lost cables had over those parallel to them.
fn use_other_cables(base: &Base, graph: &SwitchGraph, links: &LinkChange, lfts: &mut LftMatrix) {
    for (s, arc) in &links.lost {
        let lost = base.graph.all_arcs()[*arc as usize];
        let others = &graph.arcs(*s)[parallel(graph, *s, lost.to)];
        if others.is_empty() {
            continue;
        }
        lfts.row_mut(*s).update(|row| {
            let entries = row.iter_mut().filter(|port| **port == lost.out_port);
            entries.zip(others.iter().cycle()).for_each(|(port, other)| *port = other.out_port);
        });
    }
}

/// A LID.
struct End<'g> {
    lid: u16,
    of: &'g Destination,
}

/// The LIDs of each switch that go one way.
struct Ends<'g> {
    ways: usize,
    /// By switch, then by way.
    lids: Vec<Vec<End<'g>>>,
}

impl<'g> Ends<'g> {
    fn new(graph: &'g SwitchGraph, ways: usize) -> Self {
        let mut lids: Vec<_> = (0..ways * graph.switch_count()).map(|_| Vec::new()).collect();
        for of in graph.destinations() {
            for (offset, lid) in of.lids().enumerate() {
                lids[of.switch as usize * ways + offset % ways].push(End { lid, of });
            }
        }
        Self { ways, lids }
    }

    fn of(&self, switch: SwitchIndex, way: usize) -> &[End<'g>] {
        &self.lids[switch as usize * self.ways + way]
    }
}

/// Two switches, the lower number first, after the way that LIDs go between them.
type Pair = (usize, SwitchIndex, SwitchIndex);

/// Mends the trees over a lost link in `lfts`; the pairs of switches whose ways to each other are others now.
fn regrow(cut: &Cut<'_>, ends: &Ends<'_>, lfts: &mut LftMatrix, load: &mut [u64]) -> BTreeSet<Pair> {
    let mut changed = BTreeSet::new();
    let mut tree = Tree::new(cut);
    let mut siblings = Siblings::new(cut.graph);
    let mut hops = vec![NONE; cut.graph.switch_count()];
    for target in 0..cut.graph.switch_count() as SwitchIndex {
        // All LIDs of a way are cut or none is.
        let first = |way| Some((way, ends.of(target, way).first()?));
        let is_cut = |end: &End<'_>| cut.lids_of(end.of).contains(&end.lid);
        let (gone, whole): (Vec<_>, Vec<_>) =
            (0..ends.ways).filter_map(first).partition(|(_, end)| is_cut(end));
        if gone.is_empty() {
            continue;
        }
        for (way, first) in &gone {
            tree.begin(first.of, first.lid);
            let hosts = ends.of(target, *way).iter().filter(|end| end.of.host);
            hosts.for_each(|end| cut.take_back(end.lid, &tree.orphans, load));
        }
        siblings.begin(target);
        for (_, first) in whole {
            tree.begin(first.of, first.lid);
            tree.fill();
            siblings.push(&tree.next);
        }
        for (way, first) in gone {
            tree.begin(first.of, first.lid);
            if ends.ways > 1 {
                tree.fill();
            }
            join(cut, &mut tree, &mut siblings, (&mut hops, load));
            if ends.ways > 1 {
                siblings.push(&tree.next);
            }
            let lids = ends.of(target, way);
            write(cut, &tree, lids, lfts);
            for s in tree.orphans.iter().filter(|s| cut.hosts[**s as usize] > 0) {
                for end in lids.iter().filter(|end| end.of.host) {
                    walk(cut, lfts, *s, end.lid, |arc| load[arc as usize] += cut.hosts[*s as usize]);
                }
                if cut.hosts[target as usize] > 0 {
                    changed.insert((way, target.min(*s), target.max(*s)));
                }
            }
        }
    }
    changed
}

/// Enters the neighbours that the orphans of a tree have now, the LIDs dealt over the cables to each.
fn write(cut: &Cut<'_>, tree: &Tree<'_>, lids: &[End<'_>], lfts: &mut LftMatrix) {
    for s in &tree.orphans {
        let next = tree.next(*s);
        if next == tree.old_arc(*s) && next != NONE {
            continue;
        }
        let cables = match cut.graph.all_arcs().get(next as usize) {
            Some(arc) => &cut.graph.arcs(*s)[parallel(cut.graph, *s, arc.to)],
            None => &[],
        };
        for (number, end) in lids.iter().enumerate() {
            // By the target too, where each has few.
            let cable = cables.get((tree.target as usize + number) % cables.len().max(1));
            lfts.row_mut(*s)[usize::from(end.lid)] = cable.map_or(NO_PORT, |cable| cable.out_port);
        }
    }
}

/// Calls `visit` with each arc of the way from a switch to a LID.
fn walk(cut: &Cut<'_>, lfts: &LftMatrix, from: SwitchIndex, lid: u16, mut visit: impl FnMut(u32)) {
    let next = |s: SwitchIndex| cut.arc(s, lfts.row(s)[usize::from(lid)]);
    let mut arc = next(from);
    while let Some(ends) = cut.graph.all_arcs().get(arc as usize) {
        visit(arc);
        arc = next(ends.to);
    }
}

/// Gives lanes to the pairs of switches that changed: each keeps its own while its paths close no cycle there, else it takes the first
/// where they close none; `lanes` are the first ones. `None` where there is none.
fn place<'a>(
    (cut, ends): (&Cut<'_>, &Ends<'_>),
    changed: &BTreeSet<Pair>,
    routes: &mut Routes,
    (room, available): (&'a Lanes<'_>, u8),
    mut lanes: Vec<Lane<'a>>,
) -> Option<()> {
    let mut levels = match std::mem::take(&mut routes.sl) {
        PathSl::BySourceSwitch(levels) => Some(levels),
        _ => None,
    };
    let (mut pairs, mut added) = (Vec::new(), Vec::new());
    for (way, a, b) in changed {
        pairs.clear();
        let directions = [(*a, ends.of(*b, *way)), (*b, ends.of(*a, *way))];
        for (from, lids) in directions {
            if let Some(first) = lids.first() {
                dependencies(cut, &routes.lfts, from, first.lid, &mut pairs);
            }
        }
        // The way back may not be there, where few LIDs go this way.
        let level = |(from, lids): &(SwitchIndex, &[End<'_>])| {
            let level = levels.as_ref()?.row(*from)[usize::from(lids.first()?.lid)];
            (level < 16).then_some(level)
        };
        let own = lane_of_sl(directions.iter().find_map(level).unwrap_or(0));
        let others = (0..available).filter(|lane| *lane != own);
        added.clear();
        let lane = std::iter::once(own).chain(others).find(|lane| {
            // Most are never asked for.
            lanes.extend((lanes.len() as u8..=*lane).map(|number| room.lane(number)));
            lanes[usize::from(*lane)].take_all(&pairs, &mut added)
        })?;
        routes.vls = routes.vls.max(lane + 1);
        if lane != own {
            let levels = levels.get_or_insert_with(|| {
                let top = routes.lfts.stride() - 1;
                LftMatrix::filled(cut.graph.switch_count(), top as u16, sl_of_lane(0))
            });
            for (from, lids) in directions {
                let mut row = levels.row_mut(from);
                lids.iter().for_each(|end| row[usize::from(end.lid)] = sl_of_lane(lane));
            }
        }
    }
    routes.sl = levels.map_or(PathSl::Default, PathSl::BySourceSwitch);
    Some(())
}

/// Appends the dependencies on the way from a switch to a LID: of each two channels in a row, those of all their cables.
fn dependencies(cut: &Cut<'_>, lfts: &LftMatrix, from: SwitchIndex, lid: u16, out: &mut Vec<(u32, u32)>) {
    let (mut at, mut before) = (from, 0..0);
    walk(cut, lfts, from, lid, |arc| {
        let to = cut.graph.all_arcs()[arc as usize].to;
        let (first, cables) = (cut.graph.offsets()[at as usize], parallel(cut.graph, at, to));
        let cables = first + cables.start as u32..first + cables.end as u32;
        out.extend(before.clone().flat_map(|before| cables.clone().map(move |on| (before, on))));
        (at, before) = (to, cables);
    });
}
