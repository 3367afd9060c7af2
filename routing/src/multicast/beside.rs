//! Trees for all groups that go with the unicast tables: together they close no circle of links that wait for one another.
//!
//! Where the tables come with an order of switches, a group gets the tree that keeps it, which goes with everything else that
//! does ([`Planner::ordered_tree`]). Groups for which there is none, and all groups where the tables have no order, get the
//! first of some trees that the verifier passes beside unicast and the trees before. When it passes none for some group, all of
//! these groups are tried again with parts of one tree, for which `nue`, `lash`, `dfsssp` and `torus-2qos` keep room
//! ([`Routes::spanning`]). What does not go even so
//! gets its first tree, and the circle is named. Where unicast has a circle by itself, trees are not held against it.
//!
//! Whether a group is offered an ordered tree does not depend on other groups; which of the other trees it gets may depend on the groups of
//! smaller MLIDs.

use mad::types::MulticastLid;

use super::{Member, MulticastTables, Planner, Tree};
use crate::fabric::SwitchGraph;
use crate::routes::Routes;
use crate::verify::multicast::{Group, Judge};
use crate::verify::{CreditLoop, Standing};

/// Tables, and what is wrong with them.
#[derive(Clone, Debug, Default)]
pub struct Planned {
    /// The tables of all groups.
    pub tables: MulticastTables,
    /// Members that can't be reached from the others of their group.
    pub unreachable: Vec<(MulticastLid, Vec<Member>)>,
    /// Groups for which no tree was found that goes with unicast, each with a circle that its tree closes.
    pub loops: Vec<(MulticastLid, CreditLoop)>,
}

/// Plans trees for `groups` beside `routes`; `proof` is what the verifier kept of these, if anything.
pub fn plan(graph: &SwitchGraph, groups: &[Group], routes: &Routes, proof: Option<&Standing>) -> Planned {
    let mut planner =
        Planner::new(graph).with_order(routes.order.clone()).with_spanning(routes.spanning.clone());
    let mut planned = Planned { tables: MulticastTables::new(graph.switch_count()), ..Planned::default() };
    let mut left = Vec::new();
    for group in groups {
        match planner.ordered_tree(group.mlid, &group.members) {
            Some(tree) => planned.take(group.mlid, tree),
            None => left.push(group),
        }
    }
    if left.is_empty() {
        return planned;
    }
    let sls = groups.iter().fold(0, |set, group| set | 1_u16 << (group.sl & 15));
    let mut judge = Judge::new(graph, routes, sls, proof);
    // What keeps the order goes with tables that do.
    let is_planned = |group: &&Group| left.iter().all(|other| other.mlid != group.mlid);
    if left.len() < groups.len() {
        judge.take_all(&planned.tables, groups.iter().filter(is_planned));
    }
    let mut each = planned.clone();
    for group in &left {
        let trees = planner.trees(group.mlid, &group.members, group.sl);
        each.choose(group, trees, &mut judge);
    }
    if each.loops.is_empty() {
        return each;
    }
    let mut judge = Judge::new(graph, routes, sls, proof);
    if left.len() < groups.len() {
        judge.take_all(&planned.tables, groups.iter().filter(is_planned));
    }
    for group in &left {
        let one = planner.escape_tree(&group.members, group.sl);
        let trees = planner.trees(group.mlid, &group.members, group.sl);
        planned.choose(group, one.into_iter().chain(trees), &mut judge);
    }
    if planned.loops.len() < each.loops.len() { planned } else { each }
}

impl Planned {
    fn take(&mut self, mlid: MulticastLid, tree: Tree) {
        self.tables.set_tree(mlid, &tree);
        if !tree.unreachable.is_empty() {
            self.unreachable.push((mlid, tree.unreachable));
        }
    }

    fn choose(&mut self, group: &Group, trees: impl Iterator<Item = Tree>, judge: &mut Judge<'_>) {
        let mut refused = None;
        for tree in trees {
            self.tables.set_tree(group.mlid, &tree);
            match judge.take(&self.tables, group) {
                Ok(()) => return self.take(group.mlid, tree),
                Err(found) => drop(refused.get_or_insert((tree, found))),
            }
        }
        if let Some((tree, found)) = refused {
            self.take(group.mlid, tree);
            self.loops.push((group.mlid, found));
        }
    }
}

#[cfg(test)]
mod tests;
