//! How evenly routes lie on links: over all, and tier by tier.
//!
//! A tier is all links of one direction between switches of two levels, where a switch's level is its hops from the nearest
//! switch with hosts; in a tree these are the stages, elsewhere there may be links within a level. Cost: linear in links.

use std::fmt;

use serde::Serialize;

use super::network::Network;

/// Routes between hosts over the links between switches, each direction for itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Balance {
    /// Directed links.
    pub links: usize,
    /// Links without any route.
    pub unused: usize,
    /// Fewest routes over a link.
    pub min: u32,
    /// Mean.
    pub mean: f64,
    /// Most routes over a link.
    pub max: u32,
    /// Standard deviation.
    pub stddev: f64,
}

impl Balance {
    pub(super) fn of(load: &[u32]) -> Self {
        if load.is_empty() {
            return Self::default();
        }
        let links = load.len();
        let mean = load.iter().map(|l| f64::from(*l)).sum::<f64>() / links as f64;
        let variance = load.iter().map(|l| (f64::from(*l) - mean).powi(2)).sum::<f64>() / links as f64;
        Self {
            links,
            unused: load.iter().filter(|l| **l == 0).count(),
            min: load.iter().copied().min().unwrap_or(0),
            mean,
            max: load.iter().copied().max().unwrap_or(0),
            stddev: variance.sqrt(),
        }
    }
}

/// The links of one direction between two levels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Tier {
    /// Level of the switch that sends: hops from the nearest switch with hosts.
    pub from: u16,
    /// Level of the switch that receives.
    pub to: u16,
    /// Their balance.
    pub balance: Balance,
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Balance { links, unused, min, mean, max, stddev } = self.balance;
        write!(
            f,
            "level {} to {}: {links} links, {unused} unused, routes {min} to {max}, mean {mean:.1}, deviation {stddev:.1}",
            self.from, self.to
        )
    }
}

/// The tiers, in order of levels; links of switches that no host reaches are left out.
pub(super) fn tiers(network: &Network<'_>, load: &[u32]) -> Vec<Tier> {
    let level = levels(network);
    // Levels of neighbours differ by one at most: three kinds of links from each level.
    let top = level.iter().copied().filter(|level| *level != u16::MAX).max().map_or(0, usize::from);
    let mut tiers: Vec<Vec<u32>> = vec![Vec::new(); 3 * (top + 1)];
    for ((from, arc), load) in network.from.iter().zip(network.graph.all_arcs()).zip(load) {
        let (from, to) = (level[*from as usize], level[arc.to as usize]);
        let step = (usize::from(to) + 1).wrapping_sub(usize::from(from));
        if from != u16::MAX && step < 3 {
            tiers[3 * usize::from(from) + step].push(*load);
        }
    }
    let tier = |(number, load): (usize, Vec<u32>)| {
        let (from, to) = (number / 3, (number / 3 + number % 3).wrapping_sub(1));
        let some = !load.is_empty();
        some.then(|| Tier { from: from as u16, to: to as u16, balance: Balance::of(&load) })
    };
    tiers.into_iter().enumerate().filter_map(tier).collect()
}

/// Hops from the nearest switch with hosts, `u16::MAX` where there is none.
fn levels(network: &Network<'_>) -> Vec<u16> {
    let hosted = |s: &u32| !network.host_ports[*s as usize].is_empty();
    let with_hosts: Vec<u32> = (0..network.graph.switch_count() as u32).filter(hosted).collect();
    network.hops_from(&with_hosts)
}
