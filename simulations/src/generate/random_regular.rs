//! Random regular graphs: the configuration model, with loops and double links repaired by swapping ends.

use std::collections::HashMap;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::plan::Plan;
use super::{GenerateError, check};

/// Attempts before giving up, and swaps in each.
const ATTEMPTS: usize = 50;
const SWAPS: usize = 200_000;

type Edge = (u16, u16);

/// Lays the graph; see [`super::Topology::RandomRegular`].
pub(super) fn lay(
    plan: &mut Plan,
    switches: u16,
    degree: u16,
    hosts: u16,
    seed: u64,
) -> Result<(), GenerateError> {
    check("number of switches", switches, 2..=0xbfff)?;
    check("degree", degree, 1..=u64::from(switches - 1).min(254))?;
    check("hosts at a switch", hosts, 0..=254 - u64::from(degree))?;
    if u32::from(switches) * u32::from(degree) % 2 != 0 {
        return Err(GenerateError::Parameter(format!(
            "{switches} switches of degree {degree}: their product must be even"
        )));
    }
    for index in 0..switches {
        plan.switch(format!("S{index}"));
    }
    for switch in 0..usize::from(switches) {
        for _ in 0..hosts {
            plan.host(switch);
        }
    }
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let edges = (0..ATTEMPTS)
        .find_map(|_| attempt(switches, degree, &mut rng))
        .ok_or(GenerateError::NoRegularGraph { switches, degree })?;
    for (a, b) in edges {
        plan.link(usize::from(a), usize::from(b));
    }
    Ok(())
}

fn sorted(a: u16, b: u16) -> Edge {
    (a.min(b), a.max(b))
}

/// One draw; `None` when the bad pairs could not be repaired.
fn attempt(switches: u16, degree: u16, rng: &mut Pcg64Mcg) -> Option<Vec<Edge>> {
    let mut stubs: Vec<u16> =
        (0..switches).flat_map(|s| std::iter::repeat_n(s, usize::from(degree))).collect();
    stubs.shuffle(rng);
    let mut edges: Vec<Edge> = stubs.chunks_exact(2).map(|pair| sorted(pair[0], pair[1])).collect();
    let mut count: HashMap<Edge, u32> = HashMap::new();
    for edge in &edges {
        *count.entry(*edge).or_default() += 1;
    }
    let bad = |edges: &[Edge], count: &HashMap<Edge, u32>| -> Vec<usize> {
        (0..edges.len()).filter(|i| edges[*i].0 == edges[*i].1 || count[&edges[*i]] > 1).collect()
    };
    let mut broken = bad(&edges, &count);
    for _ in 0..SWAPS {
        if broken.is_empty() {
            return Some(edges);
        }
        let (k, q) = (broken[rng.random_range(0..broken.len())], rng.random_range(0..edges.len()));
        let ((x, y), (mut u, mut v)) = (edges[k], edges[q]);
        if rng.random_bool(0.5) {
            (u, v) = (v, u);
        }
        let (first, second) = (sorted(x, u), sorted(y, v));
        if k == q
            || x == u
            || y == v
            || first == second
            || count.contains_key(&first)
            || count.contains_key(&second)
        {
            continue;
        }
        for old in [edges[k], edges[q]] {
            if let Some(n) = count.get_mut(&old) {
                *n -= 1;
                if *n == 0 {
                    count.remove(&old);
                }
            }
        }
        (edges[k], edges[q]) = (first, second);
        count.insert(first, 1);
        count.insert(second, 1);
        broken = bad(&edges, &count);
    }
    None
}
