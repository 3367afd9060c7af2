//! What a check found, for people (one paragraph) and for programs (serde).

use std::fmt;

use serde::Serialize;

use super::Options;
use super::balance::{self, Balance, Tier};
use super::credit_loop::{CreditLoop, loop_of};
use super::cycle::Order;
use super::dependencies::Lanes;
use super::fault::{Detour, Fault, FaultKind, fault};
use super::legality::{self, Legality};
use super::network::Network;
use super::walk::Tally;
use crate::routes::Routes;

/// How many of something were right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Walks: pairs of a switch and a LID between which the fabric has a path.
    pub walks: u64,
    /// Those that arrive.
    pub arrived: u64,
}

/// Hop counts between switches.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Hops {
    /// The most that any walk takes.
    pub longest: u16,
    /// The mean over walks from switches with hosts to hosts.
    pub mean: f64,
    /// Walks by hops, from switches with hosts to hosts; the last of 64 counts all longer ones.
    pub histogram: Vec<u64>,
    /// Walks, of all, that take more hops than needed.
    pub detours: u64,
    /// The hops too many, in sum.
    pub extra: u64,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The engine that the tables say they are from.
    pub engine: String,
    /// Switches.
    pub switches: usize,
    /// Walks from every switch to every LID of a host.
    pub hosts: Counts,
    /// Walks from every switch to every LID of a switch or of a part of one.
    pub management: Counts,
    /// Pairs of switch and LID between which the fabric has no path.
    pub unconnected: u64,
    /// Walks that fail, by kind.
    pub faults: Vec<(FaultKind, u64)>,
    /// The first fault.
    pub first_fault: Option<Fault>,
    /// Entries for LIDs that nobody owns; they do no harm by themselves.
    pub stray_entries: u64,
    /// Hop counts.
    pub hops: Hops,
    /// The first walk, by LID and number of its first switch, that takes more hops than needed. Only a check from nothing names it.
    pub first_detour: Option<Detour>,
    /// Balance of all links between switches.
    pub balance: Balance,
    /// Balance by tier.
    pub tiers: Vec<Tier>,
    /// Turns from down to up, where the tables come with an order of switches.
    pub legality: Option<Legality>,
    /// VLs on which packets go, with the SLs that paths have; tables may have room for more.
    pub vls: usize,
    /// Hops of hosts' packets on a VL that the link does not have.
    pub bad_vls: u64,
    /// Dependencies between channels.
    pub dependencies: u64,
    /// A credit loop of traffic between hosts.
    pub credit_loop: Option<CreditLoop>,
    /// A credit loop when management traffic of switches is added.
    pub management_credit_loop: Option<CreditLoop>,
    /// Whether a credit loop with management traffic counts.
    pub management_counts: bool,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_right(&self) -> bool {
        self.reaches_all() && self.bad_vls == 0 && self.is_legal() && self.is_free_of_credit_loops()
    }

    /// Whether every LID is reached from every switch that the fabric connects it with.
    pub fn reaches_all(&self) -> bool {
        self.faults.iter().all(|(_, count)| *count == 0)
    }

    /// Whether no packet between hosts turns from down to up, where that is claimed.
    pub fn is_legal(&self) -> bool {
        self.legality.as_ref().is_none_or(|legality| legality.turns == 0)
    }

    /// Whether the traffic that counts is free of credit loops.
    pub fn is_free_of_credit_loops(&self) -> bool {
        self.credit_loop.is_none() && (!self.management_counts || self.management_credit_loop.is_none())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.is_right() { "right" } else { "WRONG" };
        write!(
            f,
            "{}: {verdict}: {} of {} walks to hosts and {} of {} to switches arrive from {} switches",
            self.engine,
            self.hosts.arrived,
            self.hosts.walks,
            self.management.arrived,
            self.management.walks,
            self.switches
        )?;
        for (kind, count) in self.faults.iter().filter(|(_, count)| *count > 0) {
            write!(f, ", {count} {}", kind.name())?;
        }
        if self.unconnected > 0 {
            write!(f, ", {} pairs are not connected", self.unconnected)?;
        }
        if let Some(fault) = &self.first_fault {
            write!(f, "; first fault: LID {}, {}:", fault.lid, fault.kind.name())?;
            for hop in &fault.path {
                write!(f, " {hop}")?;
            }
        }
        let hops = &self.hops;
        write!(f, "; at most {} hops, mean {:.3}, {} detours", hops.longest, hops.mean, hops.detours)?;
        if let Some(detour) = &self.first_detour {
            write!(f, ", the first: {detour}")?;
        }
        write!(
            f,
            "; routes per link {} to {}, mean {:.1}, deviation {:.1}; VLs in use: {}",
            self.balance.min, self.balance.max, self.balance.mean, self.balance.stddev, self.vls
        )?;
        if self.bad_vls > 0 {
            write!(f, ", {} hops on a VL that the links do not have", self.bad_vls)?;
        }
        if let Some(legality) = &self.legality {
            match &legality.first {
                Some(first) => write!(f, "; {} turns from down to up, first: {first}", legality.turns)?,
                None => f.write_str("; no turn from down to up")?,
            }
        }
        match (&self.credit_loop, &self.management_credit_loop) {
            (Some(found), _) => write!(f, "; credit loop: {found}"),
            (None, Some(found)) => write!(f, "; credit loop with traffic of switches only: {found}"),
            (None, None) => f.write_str("; no credit loop"),
        }
    }
}

/// Puts the report together.
pub(super) fn make(
    network: &Network<'_>,
    routes: &Routes,
    lanes: &Lanes<'_>,
    tally: &Tally,
    (hosts, all): (&Order, &Order),
    options: Options,
) -> Report {
    let counts = |kind: usize| Counts { walks: tally.walks[kind], arrived: tally.arrived[kind] };
    let credit_loop = loop_of(network, hosts);
    let management_credit_loop = credit_loop.clone().or_else(|| loop_of(network, all));
    let balances = || (Balance::of(&tally.load), balance::tiers(network, &tally.load));
    let ((balance, tiers), (legality, dependencies)) =
        rayon::join(balances, || (legality::check(network, routes, lanes, &tally.hosts), tally.hosts.len()));
    Report {
        engine: routes.engine.clone(),
        switches: network.graph.switch_count(),
        hosts: counts(0),
        management: counts(1),
        unconnected: tally.unconnected,
        faults: FaultKind::ALL.into_iter().map(|kind| (kind, tally.faults[kind as usize])).collect(),
        first_fault: tally.first.map(|(lid, from, kind)| fault(network, routes, lid, from, kind)),
        stray_entries: tally.stray,
        hops: hops(tally),
        first_detour: None,
        balance,
        tiers,
        legality,
        vls: (tally.vls & 0x7fff).count_ones().max(1) as usize,
        bad_vls: tally.bad_vls,
        dependencies,
        credit_loop,
        management_credit_loop,
        management_counts: options.management,
    }
}

fn hops(tally: &Tally) -> Hops {
    let sum: u64 = tally.histogram.iter().enumerate().map(|(hops, count)| hops as u64 * count).sum();
    let count: u64 = tally.histogram.iter().sum();
    let used = tally.histogram.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
    Hops {
        longest: tally.longest(),
        mean: if count == 0 { 0.0 } else { sum as f64 / count as f64 },
        histogram: tally.histogram[..used].to_vec(),
        detours: tally.detours,
        extra: tally.extra_hops,
    }
}
