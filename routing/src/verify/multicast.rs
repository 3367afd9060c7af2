//! Multicast tables: each group one tree.
//!
//! - From every switch where a member sends, the packet is followed along all copies: every member that receives gets it
//!   exactly once, nobody else does, no copy comes back to a link it went over, none goes out of a port without a link.
//!   Where this holds from everywhere, the links in use are one tree of the group.
//! - Credit loops with unicast: a copy that waits holds the link it came by and asks for each of those it goes out of, on the
//!   VLs that the group's SL has on them. These dependencies are added to those of unicast traffic between hosts, and a cycle
//!   is looked for in both together. Taken is that a switch sends each copy when its own link is free; one that sends all
//!   copies at once makes more dependencies.
//! - Whose members are not known (a dump has none) are taken to be those that the tables deliver to anywhere. Then a switch that
//!   others copy to and that has no entry is a fault: whatever members it has, or leads to, are missing. So looks a dump that was cut off
//!   between two tables.
//!
//! Cost: for each group, switches with senders times links of the tree; groups are judged over all threads.

mod flood;
mod judge;

use std::fmt;

use mad::types::MulticastLid;
use rayon::prelude::*;
use serde::Serialize;

use super::credit_loop::{self, CreditLoop};
use super::dependencies::{Dependencies, Lanes};
use super::hop::{Hop, hop};
use super::network::{Exit, Network};
use super::walk_all;
use crate::fabric::{SwitchGraph, SwitchIndex};
use crate::multicast::{Member, MulticastTables};
use crate::routes::{LFT_BLOCK, NO_PORT, Routes};
use flood::Flood;

pub use judge::Judge;

/// A group as subnet administration knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its MLID.
    pub mlid: MulticastLid,
    /// Its members; those that don't receive only send.
    pub members: Vec<Member>,
    /// The SL of its packets, 0 to 15.
    pub sl: u8,
}

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MulticastFaultKind {
    /// A copy comes back to a link that it went over.
    Loop,
    /// A member gets no copy.
    Missing,
    /// A port or a link gets a second copy.
    Twice,
    /// A copy goes out of a port without a link that is up.
    DeadPort,
    /// A copy is delivered to a port that is no receiving member.
    Stranger,
    /// A switch copies to one that has no entry; looked for where members are not known.
    NoEntry,
}

impl MulticastFaultKind {
    /// All kinds.
    pub const ALL: [Self; 6] =
        [Self::Loop, Self::Missing, Self::Twice, Self::DeadPort, Self::Stranger, Self::NoEntry];

    /// The words for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loop => "loops",
            Self::Missing => "members not reached",
            Self::Twice => "second copies",
            Self::DeadPort => "exits without a link",
            Self::Stranger => "copies to ports that are no members",
            Self::NoEntry => "copies to switches without an entry",
        }
    }
}

/// A fault with what leads to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MulticastFault {
    /// What went wrong.
    pub kind: MulticastFaultKind,
    /// The group.
    pub mlid: u16,
    /// The copy's way from the sender's switch; for a member that is not reached as far as the packet comes near it, and port
    /// 255 where it does not go on.
    pub path: Vec<Hop>,
    /// For a second copy, the way of the first. For a member not reached, its switch and port; for a switch without an entry, it and
    /// 255.
    pub other: Vec<Hop>,
}

impl fmt::Display for MulticastFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MLID 0x{:04X}, {}:", self.mlid, self.kind.name())?;
        self.path.iter().try_for_each(|hop| write!(f, " {hop}"))?;
        if !self.other.is_empty() {
            f.write_str(match self.kind {
                MulticastFaultKind::Missing => "; the member:",
                MulticastFaultKind::NoEntry => "; without an entry:",
                _ => "; the first copy:",
            })?;
            self.other.iter().try_for_each(|hop| write!(f, " {hop}"))?;
        }
        Ok(())
    }
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MulticastReport {
    /// Groups with members or entries.
    pub groups: u64,
    /// Pairs of a switch with senders and a member that receives.
    pub pairs: u64,
    /// Those of which the member gets a copy.
    pub arrived: u64,
    /// Faults by kind, counted for each switch with senders, or for each exit to a switch without an entry.
    pub faults: Vec<(MulticastFaultKind, u64)>,
    /// The first, by MLID and number of the sender's switch.
    pub first_fault: Option<MulticastFault>,
    /// Dependencies between channels that multicast adds.
    pub dependencies: u64,
    /// A credit loop of multicast and unicast between hosts together.
    pub credit_loop: Option<CreditLoop>,
}

impl MulticastReport {
    /// Whether nothing is wrong.
    pub fn is_right(&self) -> bool {
        self.faults.iter().all(|(_, count)| *count == 0) && self.credit_loop.is_none()
    }
}

impl fmt::Display for MulticastReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.is_right() { "right" } else { "WRONG" };
        write!(
            f,
            "multicast: {verdict}: {} groups, {} of {} pairs of sender's switch and member arrive",
            self.groups, self.arrived, self.pairs
        )?;
        for (kind, count) in self.faults.iter().filter(|(_, count)| *count > 0) {
            write!(f, ", {count} {}", kind.name())?;
        }
        if let Some(fault) = &self.first_fault {
            write!(f, "; first fault: {fault}")?;
        }
        match &self.credit_loop {
            Some(found) => write!(f, "; credit loop with unicast: {found}"),
            None => f.write_str("; no credit loop with unicast"),
        }
    }
}

/// The groups of tables whose members are not known: whoever they deliver to anywhere.
pub fn groups_of(graph: &SwitchGraph, tables: &MulticastTables) -> Vec<Group> {
    let network = Network::new(graph);
    let delivers = |s: SwitchIndex, port: u8| port == 0 || network.exit(s, port) == Exit::End;
    let group = |mlid: MulticastLid| {
        let members = (0..graph.switch_count() as SwitchIndex).flat_map(|s| {
            let ports = tables.ports(s, mlid).iter().filter(|port| delivers(s, *port)).collect::<Vec<_>>();
            ports.into_iter().map(move |port| Member { switch: s, port, receives: true })
        });
        Group { mlid, members: members.collect(), sl: 0 }
    };
    tables.mlids().into_iter().map(group).collect()
}

/// Checks the tables of groups whose members are not known, as [`check()`] does, and that whoever is copied to has an entry.
pub fn check_unlisted(graph: &SwitchGraph, tables: &MulticastTables, routes: &Routes) -> MulticastReport {
    let mut report = check(graph, tables, &groups_of(graph, tables), routes);
    let network = Network::new(graph);
    let empty = |s: SwitchIndex, mlid| tables.ports(s, mlid).iter().next().is_none();
    let mut found = Vec::new();
    for mlid in tables.mlids() {
        for s in 0..graph.switch_count() as SwitchIndex {
            for port in tables.ports(s, mlid).iter() {
                let to = network.step(s, port).map(|step| step.to);
                found.extend(to.filter(|to| empty(*to, mlid)).map(|to| (mlid, s, port, to)));
            }
        }
    }
    if let Some((_, count)) = report.faults.iter_mut().find(|(kind, _)| *kind == MulticastFaultKind::NoEntry)
    {
        *count = found.len() as u64;
    }
    report.first_fault = report.first_fault.or_else(|| {
        let (mlid, s, port, to) = found.first()?;
        let kind = MulticastFaultKind::NoEntry;
        let other = vec![hop(&network, *to, NO_PORT)];
        Some(MulticastFault { kind, mlid: mlid.get(), path: vec![hop(&network, *s, *port)], other })
    });
    report
}

/// Checks the tables of `groups`, and that they close no credit loop with the unicast tables `routes`. Rows of both are in the
/// order of the graph's switches.
pub fn check(
    graph: &SwitchGraph,
    tables: &MulticastTables,
    groups: &[Group],
    routes: &Routes,
) -> MulticastReport {
    let network = Network::new(graph);
    let sls = groups.iter().fold(0, |set, group| set | 1_u16 << (group.sl & 15));
    let lanes = Lanes::with_sls(&network, routes, 0, sls);
    let judged = groups
        .par_iter()
        .map(|group| {
            let mut flood = Flood::new(&network, &lanes, tables, group);
            flood.send_from_all();
            flood.found
        })
        .collect::<Vec<_>>();
    let mut report = MulticastReport { groups: groups.len() as u64, ..MulticastReport::default() };
    let mut counts = [0; MulticastFaultKind::ALL.len()];
    let mut added = Dependencies::new(network.from.len(), &lanes);
    for found in judged {
        report.pairs += found.pairs;
        report.arrived += found.arrived;
        counts.iter_mut().zip(found.faults).for_each(|(sum, count)| *sum += count);
        report.first_fault = report.first_fault.or(found.first);
        found.dependencies.iter().for_each(|(lane, arc, place)| added.add(*lane, *arc, *place));
    }
    report.faults = MulticastFaultKind::ALL.into_iter().zip(counts).collect();
    let blocks = usize::from(graph.top_lid()) / LFT_BLOCK + 1;
    let mut all = walk_all(&network, routes, &lanes, &vec![u64::MAX; blocks]).hosts;
    let before = all.len();
    all.merge(&added);
    report.dependencies = all.len() - before;
    report.credit_loop = credit_loop::credit_loop(&network, &lanes, &all);
    report
}

#[cfg(test)]
mod tests;
