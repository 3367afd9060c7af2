//! The groups of one switch, within its limit.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::Exits;
use crate::adaptive::ports::PortSet;
use crate::fabric::{SwitchGraph, SwitchIndex};
use crate::routes::Routes;

const STATIC: u16 = u16::MAX;

/// Groups and their LIDs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GroupTable {
    /// The groups, the one of most LIDs first; each has two ports at least.
    pub groups: Vec<PortSet>,
    /// The number of each LID's group; `u16::MAX` where the LID is static.
    #[serde(skip)]
    of: Vec<u16>,
    /// LIDs that took a smaller group because of the limit.
    pub smaller: usize,
    /// LIDs that stayed static because of the limit.
    pub limited: usize,
}

impl GroupTable {
    /// The table of `s` with at most `cap` groups.
    pub(super) fn new(graph: &SwitchGraph, routes: &Routes, s: SwitchIndex, exits: &Exits, cap: u16) -> Self {
        let hosts = || {
            let all = graph.destinations().iter().filter(|d| d.host && d.switch != s);
            all.flat_map(|d| d.lids().map(|lid| (exits.leaf_of[d.switch as usize] as usize, lid)))
        };
        let mut used: BTreeMap<PortSet, usize> = BTreeMap::new();
        for (leaf, _) in hosts() {
            let set = exits.of(s, leaf);
            if set.len() > 1 {
                *used.entry(*set).or_default() += 1;
            }
        }
        let mut by_use: Vec<(PortSet, usize)> = used.into_iter().collect();
        by_use.sort_by_key(|(set, lids)| (Reverse(*lids), *set));
        let groups: Vec<PortSet> = by_use.iter().take(usize::from(cap)).map(|(set, _)| *set).collect();
        // What each set is served by: itself, or the largest group within it.
        let served: BTreeMap<PortSet, Option<u16>> = by_use
            .iter()
            .enumerate()
            .map(|(place, (set, _))| {
                let within = || (0..).zip(&groups).filter(|(_, group)| group.is_subset(set));
                let largest = || within().max_by_key(|(number, group)| (group.len(), Reverse(*number)));
                let itself = (place < groups.len()).then_some(place as u16);
                (*set, itself.or_else(|| largest().map(|(number, _)| number)))
            })
            .collect();
        let mut table = Self { groups, of: vec![STATIC; routes.lfts.stride()], smaller: 0, limited: 0 };
        for (leaf, lid) in hosts() {
            let set = exits.of(s, leaf);
            match served.get(set) {
                Some(Some(group)) => {
                    table.of[usize::from(lid)] = *group;
                    table.smaller += usize::from(table.groups[usize::from(*group)] != *set);
                }
                Some(None) => table.limited += 1,
                None => {}
            }
        }
        table
    }

    /// The group of a LID.
    pub fn group(&self, lid: u16) -> Option<&PortSet> {
        self.groups.get(usize::from(*self.of.get(usize::from(lid))?))
    }

    /// The LIDs of each group, in the order of the groups.
    pub fn lids(&self) -> Vec<Vec<u16>> {
        let mut lids = vec![Vec::new(); self.groups.len()];
        for (lid, group) in (0..).zip(&self.of).filter(|(_, group)| **group != STATIC) {
            lids[usize::from(*group)].push(lid);
        }
        lids
    }

    /// Gives a LID a group that it should not have.
    #[cfg(test)]
    pub(super) fn plant(&mut self, lid: u16, group: PortSet) {
        self.of[usize::from(lid)] = self.groups.len() as u16;
        self.groups.push(group);
    }

    /// LIDs with a group.
    pub(super) fn entries(&self) -> usize {
        self.of.iter().filter(|group| **group != STATIC).count()
    }

    /// Exits of all LIDs' groups.
    pub(super) fn members(&self) -> usize {
        let with = self.of.iter().filter(|group| **group != STATIC);
        with.map(|group| self.groups[usize::from(*group)].len()).sum()
    }
}
