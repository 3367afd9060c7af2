//! How disjoint the 2^LMC paths of a pair are: what is left when a link or a switch fails.
//!
//! A pair is a switch with hosts and a host port of LMC above 0 on another switch. Looked at are the links and switches
//! between the two: those that all paths of the pair use (whose loss cuts every path) and those that two or more use. Cost:
//! one walk for each switch with hosts and each of the LIDs, over all threads; nothing where no port has an LMC.

use std::fmt;

use rayon::prelude::*;
use serde::Serialize;

use super::hop::{Hop, hop};
use super::network::{Exit, Network};
use crate::fabric::{Destination, SwitchGraph, SwitchIndex};
use crate::routes::{NO_PORT, Routes};

/// Least, mean and most of something over all pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Least.
    pub min: u32,
    /// Mean.
    pub mean: f64,
    /// Most.
    pub max: u32,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Disjointness {
    /// Pairs of which all paths arrive.
    pub pairs: u64,
    /// Pairs of which some path does not.
    pub broken: u64,
    /// Pairs of which no two paths share a link.
    pub disjoint: u64,
    /// Different paths of a pair.
    pub paths: Spread,
    /// Links that two or more paths of a pair share.
    pub shared_links: Spread,
    /// Links that all paths of a pair share.
    pub common_links: Spread,
    /// Switches between the two ends that all paths of a pair share.
    pub common_switches: Spread,
    /// The pair with the most links in common, if any has one: the base LID, and where its paths leave those links' switches.
    pub worst: Option<(u16, Vec<Hop>)>,
}

impl fmt::Display for Disjointness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spread = |s: &Spread| format!("{} to {}, mean {:.3}", s.min, s.max, s.mean);
        write!(
            f,
            "LMC: {} of {} pairs have disjoint paths; different paths {}; links shared by two or more {}; links in common {}; \
             switches in common {}",
            self.disjoint,
            self.pairs,
            spread(&self.paths),
            spread(&self.shared_links),
            spread(&self.common_links),
            spread(&self.common_switches)
        )?;
        if self.broken > 0 {
            write!(f, "; {} pairs have paths that do not arrive", self.broken)?;
        }
        if let Some((lid, links)) = &self.worst {
            write!(f, "; worst: all paths to LID {lid} take")?;
            links.iter().try_for_each(|hop| write!(f, " {hop}"))?;
        }
        Ok(())
    }
}

/// Sums over pairs.
#[derive(Clone, Default)]
struct Sums {
    pairs: u64,
    broken: u64,
    disjoint: u64,
    /// Least, sum and most of: different paths, shared links, common links, common switches.
    figures: [Option<(u32, u64, u32)>; 4],
    /// Most common links, base LID, the links.
    worst: Option<(usize, u16, Vec<u32>)>,
}

impl Sums {
    fn add(&mut self, figures: [u32; 4]) {
        self.pairs += 1;
        self.disjoint += u64::from(figures[1] == 0);
        for (sum, figure) in self.figures.iter_mut().zip(figures) {
            let (least, total, most) = sum.unwrap_or((figure, 0, figure));
            *sum = Some((least.min(figure), total + u64::from(figure), most.max(figure)));
        }
    }

    fn merge(mut self, other: Self) -> Self {
        self.pairs += other.pairs;
        self.broken += other.broken;
        self.disjoint += other.disjoint;
        for (mine, theirs) in self.figures.iter_mut().zip(other.figures) {
            *mine = match (*mine, theirs) {
                (Some(a), Some(b)) => Some((a.0.min(b.0), a.1 + b.1, a.2.max(b.2))),
                (a, b) => a.or(b),
            };
        }
        // The longest, of these the lowest LID: whatever thread came first.
        let key = |w: &Option<(usize, u16, Vec<u32>)>| {
            w.as_ref().map(|(length, lid, links)| (*length, std::cmp::Reverse((*lid, links.clone()))))
        };
        if key(&other.worst) > key(&self.worst) {
            self.worst = other.worst;
        }
        self
    }

    fn spread(&self, figure: usize) -> Spread {
        let spread =
            |(min, sum, max): (u32, u64, u32)| Spread { min, max, mean: sum as f64 / self.pairs as f64 };
        self.figures[figure].map(spread).unwrap_or_default()
    }
}

/// Measures how disjoint the paths are; `None` when no host port has an LMC above 0.
pub fn disjointness(graph: &SwitchGraph, routes: &Routes) -> Option<Disjointness> {
    let network = Network::new(graph);
    let several: Vec<&Destination> = graph.destinations().iter().filter(|d| d.host && d.lmc > 0).collect();
    if several.is_empty() {
        return None;
    }
    let sums = several
        .par_iter()
        .map(|destination| to_one(&network, routes, destination))
        .reduce(Sums::default, Sums::merge);
    let links = |(_, lid, links): &(usize, u16, Vec<u32>)| {
        let link =
            |arc: &u32| hop(&network, network.from[*arc as usize], graph.all_arcs()[*arc as usize].out_port);
        (*lid, links.iter().map(link).collect())
    };
    Some(Disjointness {
        pairs: sums.pairs,
        broken: sums.broken,
        disjoint: sums.disjoint,
        paths: sums.spread(0),
        shared_links: sums.spread(1),
        common_links: sums.spread(2),
        common_switches: sums.spread(3),
        worst: sums.worst.as_ref().map(links),
    })
}

fn to_one(network: &Network<'_>, routes: &Routes, destination: &Destination) -> Sums {
    let mut sums = Sums::default();
    let sources = (0..network.graph.switch_count() as SwitchIndex)
        .filter(|s| *s != destination.switch && !network.host_ports[*s as usize].is_empty());
    for source in sources {
        let walks = destination.lids().map(|lid| walk(network, routes, source, lid, destination));
        let Some(mut paths) = walks.collect::<Option<Vec<Vec<u32>>>>() else {
            sums.broken += 1;
            continue;
        };
        let (shared, common) = used_by(paths.iter().map(|path| path.iter().copied()), paths.len());
        let inner =
            |path: &Vec<u32>| path[1..].iter().map(|arc| network.from[*arc as usize]).collect::<Vec<_>>();
        let (_, common_switches) = used_by(paths.iter().map(|path| inner(path).into_iter()), paths.len());
        if !common.is_empty() && sums.worst.as_ref().is_none_or(|(most, ..)| common.len() > *most) {
            sums.worst = Some((common.len(), destination.lid.get(), common.clone()));
        }
        paths.sort_unstable();
        paths.dedup();
        sums.add([paths.len(), shared, common.len(), common_switches.len()].map(|n| n as u32));
    }
    sums
}

/// How many things two or more of the lists hold, and those that all `lists` hold.
fn used_by(lists: impl Iterator<Item = impl Iterator<Item = u32>>, count: usize) -> (usize, Vec<u32>) {
    let mut all: Vec<u32> = lists.flatten().collect();
    all.sort_unstable();
    let mut shared = 0;
    let mut common = Vec::new();
    for same in all.chunk_by(|a, b| a == b) {
        shared += usize::from(same.len() > 1);
        if same.len() == count {
            common.push(same[0]);
        }
    }
    (shared, common)
}

/// The links on the way; `None` when it does not arrive. At least one, for the ends are different switches.
fn walk(
    network: &Network<'_>,
    routes: &Routes,
    source: SwitchIndex,
    lid: u16,
    to: &Destination,
) -> Option<Vec<u32>> {
    let mut path = Vec::new();
    let mut at = source;
    while path.len() <= network.graph.switch_count() {
        let port = routes.lfts.row(at).get(usize::from(lid)).unwrap_or(NO_PORT);
        if at == to.switch && port == to.port {
            return Some(path);
        }
        let Exit::Arc(arc) = network.exit(at, port) else { return None };
        path.push(arc);
        at = network.to(arc);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::{RoutingInput, by_name};
    use crate::fabric::testing;

    fn measured(graph: &SwitchGraph, routes: &Routes) -> Disjointness {
        disjointness(graph, routes).expect("an LMC")
    }

    #[test]
    fn four_lids_over_four_spines_share_nothing_and_over_two_they_do() {
        let graph = SwitchGraph::new(&testing::fat_tree(&[3, 4], &[1, 4], 2));
        let routes = by_name("minhop").unwrap().route(&graph, &RoutingInput::default()).unwrap();
        let found = measured(&graph, &routes);
        // From each of 4 leaves to each of 9 hosts elsewhere, by 4 spines.
        assert_eq!((found.pairs, found.disjoint, found.broken), (36, 36, 0), "{found}");
        assert_eq!((found.paths.min, found.common_links.max, found.worst), (4, 0, None));

        let thin = SwitchGraph::new(&testing::fat_tree(&[3, 4], &[1, 2], 2));
        let routes = by_name("minhop").unwrap().route(&thin, &RoutingInput::default()).unwrap();
        let found = measured(&thin, &routes);
        // Two paths up and two down, each by two LIDs.
        assert_eq!((found.disjoint, found.paths.max, found.shared_links.min), (0, 2, 4), "{found}");
        assert_eq!((found.common_links.max, found.common_switches.max), (0, 0));
    }

    #[test]
    fn a_link_that_all_paths_take_is_named_and_broken_paths_are_counted() {
        let graph = SwitchGraph::new(&testing::fat_tree(&[2, 3], &[1, 2], 1));
        let routes = by_name("minhop").unwrap().route(&graph, &RoutingInput::default()).unwrap();
        let host = *graph.destinations().iter().find(|d| d.host && d.switch == 2).unwrap();
        let mut tied = routes;
        let [low, high] = [0, 1].map(|offset| host.lid.index() + offset);
        tied.lfts.row_mut(0)[high] = tied.lfts.row(0)[low];
        let found = measured(&graph, &tied);
        let (lid, links) = found.worst.clone().expect("one pair");
        assert_eq!(
            (lid, links[0].guid, links[0].port),
            (host.lid.get(), graph.guid(0), tied.lfts.row(0)[low])
        );
        // Up by one link; down the spine may still choose, but here has one way.
        assert_eq!(
            (found.common_links.max, found.common_switches.max, found.paths.min),
            (2, 1, 1),
            "{found}"
        );
        assert!(found.to_string().contains("worst: all paths to LID"), "{found}");
        tied.lfts.row_mut(0)[high] = NO_PORT;
        assert_eq!(measured(&graph, &tied).broken, 1);
    }

    #[test]
    fn without_an_lmc_there_is_nothing_to_measure() {
        let graph = SwitchGraph::new(&testing::fat_tree(&[2, 3], &[1, 2], 0));
        assert_eq!(disjointness(&graph, &Routes::empty("none", &graph)), None);
    }
}
