//! HyperX (Ahn et al. 2009): a grid whose rows are complete graphs in every dimension.

use std::collections::HashMap;

use super::plan::Plan;
use super::{GenerateError, check, grid, joined};

/// Lays a HyperX; see [`super::Topology::HyperX`].
pub(super) fn lay(plan: &mut Plan, dims: &[u16], width: u16, hosts: u16) -> Result<(), GenerateError> {
    check("hosts at a switch", hosts, 0..=254)?;
    check("number of dimensions", dims.len() as u64, 1..=8)?;
    dims.iter().try_for_each(|d| check("size of a dimension", *d, 1..=255))?;
    check("parallel links", width, 1..=254)?;
    check("number of switches", dims.iter().map(|d| u64::from(*d)).product::<u64>(), 1..=0xbfff)?;
    let places: HashMap<Vec<u16>, usize> =
        grid(dims).map(|c| (c.clone(), plan.switch(format!("S{}", joined(&c))))).collect();
    for here in grid(dims) {
        (0..hosts).for_each(|_| plan.host(places[&here]));
    }
    for here in grid(dims) {
        for (k, size) in dims.iter().enumerate() {
            for far in here[k] + 1..*size {
                let mut there = here.clone();
                there[k] = far;
                (0..width).for_each(|_| plan.link(places[&here], places[&there]));
            }
        }
    }
    Ok(())
}
