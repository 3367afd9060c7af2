//! Every host to every other, by switches: hosts on one switch share their way to a destination, so that one walk for each
//! (switch with hosts, destination) is enough.

use rayon::prelude::*;

use super::histogram::Counter;
use super::network::Network;
use super::{Congestion, Spread};
use crate::fabric::SwitchIndex;

/// Destinations that one thread takes at a time; fixed, so that sums of floats are formed in the same order everywhere.
const SHARE: usize = 64;

pub(super) fn run(network: &Network<'_>) -> Congestion {
    let hosts = network.hosts.len();
    let leaves = leaves(network);
    let others = hosts.saturating_sub(1) as u64;
    let (links, flows) = loads(network, &leaves);
    let lost = hosts as u64 * others - flows;
    let mut histogram = Counter::new();
    let mut sum = 0.0;
    for (share, counter) in shares(network, &leaves, &links, others) {
        sum += share;
        histogram.merge(&counter);
    }
    let worst = links.iter().copied().max().unwrap_or(0);
    Congestion {
        rounds: 1,
        flows,
        lost,
        bandwidth: Spread::of(&[sum / hosts.max(1) as f64]),
        worst: Spread::of(&[worst as f64]),
        free: usize::from(worst <= 1),
        mean_load: links.iter().map(|l| *l as f64).sum::<f64>() / links.len().max(1) as f64,
        unused: links.iter().filter(|l| **l == 0).count(),
        histogram: histogram.finish(),
        links,
    }
}

/// Switches with hosts, and how many.
fn leaves(network: &Network<'_>) -> Vec<(SwitchIndex, u64)> {
    let mut hosts = vec![0; network.graph.switch_count()];
    for host in &network.hosts {
        hosts[network.graph.destinations()[*host as usize].switch as usize] += 1;
    }
    (0..).zip(hosts).filter(|(_, count)| *count > 0).collect()
}

/// Calls `visit` with the senders' number and the path of every (switch with hosts, destination) that is joined.
fn each_path(
    network: &Network<'_>,
    leaves: &[(SwitchIndex, u64)],
    destinations: &[u32],
    mut visit: impl FnMut(u64, &[u32]),
) {
    let mut path = Vec::new();
    for destination in destinations {
        let to = &network.graph.destinations()[*destination as usize];
        for (leaf, hosts) in leaves {
            path.clear();
            let senders = hosts - u64::from(*leaf == to.switch);
            if senders > 0 && network.walk(*leaf, to, &mut path) {
                visit(senders, &path);
            }
        }
    }
}

/// Loads of the links between switches, and the flows that arrive.
fn loads(network: &Network<'_>, leaves: &[(SwitchIndex, u64)]) -> (Vec<u64>, u64) {
    let nothing = || (vec![0_u64; network.arcs()], 0_u64);
    network
        .hosts
        .par_chunks(SHARE)
        .fold(nothing, |(mut links, mut flows), destinations| {
            each_path(network, leaves, destinations, |senders, path| {
                path.iter().for_each(|arc| links[*arc as usize] += senders);
                flows += senders;
            });
            (links, flows)
        })
        .reduce(nothing, |mut a, b| {
            a.0.iter_mut().zip(b.0).for_each(|(mine, theirs)| *mine += theirs);
            (a.0, a.1 + b.1)
        })
}

/// Bandwidth in sum, and flows by load. A host's own link carries `others` flows each way.
fn shares(
    network: &Network<'_>,
    leaves: &[(SwitchIndex, u64)],
    links: &[u64],
    others: u64,
) -> Vec<(f64, Counter)> {
    let one = |destinations: &[u32]| {
        let mut histogram = Counter::new();
        let mut sum = 0.0;
        each_path(network, leaves, destinations, |senders, path| {
            let worst = path.iter().map(|arc| links[*arc as usize]).max().unwrap_or(0).max(others);
            sum += senders as f64 / worst as f64;
            histogram.add(worst, senders);
        });
        (sum, histogram)
    };
    network.hosts.par_chunks(SHARE).map(one).collect()
}
