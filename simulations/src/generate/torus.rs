//! Rows of switches, and tori of any number of dimensions, with the fixed port numbers that dimension-order routing looks for.

use std::collections::HashMap;

use super::plan::Plan;
use super::{GenerateError, check, grid, joined};

/// Lays the torus; see [`super::Topology::Torus`].
pub(super) fn lay(plan: &mut Plan, dims: &[u16], hosts: u16) -> Result<(), GenerateError> {
    check("number of dimensions", dims.len() as u64, 1..=8)?;
    dims.iter().try_for_each(|d| check("size of a dimension", *d, 1..=4096))?;
    check("number of switches", dims.iter().map(|d| u64::from(*d)).product::<u64>(), 1..=0xbfff)?;
    check("hosts at a switch", hosts, 0..=254 - 2 * dims.len() as u64)?;
    let places: HashMap<Vec<u16>, usize> =
        grid(dims).map(|c| (c.clone(), plan.switch(format!("S{}", joined(&c))))).collect();
    for here in grid(dims) {
        let switch = places[&here];
        plan.reserve(switch, 2 * dims.len() as u16);
        for (k, size) in dims.iter().enumerate() {
            if *size == 1 || (*size == 2 && here[k] == 1) {
                continue;
            }
            let mut there = here.clone();
            there[k] = (here[k] + 1) % size;
            let up = 2 * k as u16 + 1;
            let down = if *size == 2 { up } else { up + 1 };
            plan.link_ports((switch, up), (places[&there], down));
        }
    }
    for here in grid(dims) {
        for _ in 0..hosts {
            plan.host(places[&here]);
        }
    }
    Ok(())
}

/// Lays a row; see [`super::Topology::Line`].
pub(super) fn line(plan: &mut Plan, length: u16, hosts: u16) -> Result<(), GenerateError> {
    check("number of switches", length, 1..=0xbfff)?;
    let row: Vec<usize> = (0..length).map(|i| plan.switch(format!("S{i}"))).collect();
    for switch in &row {
        (0..hosts).for_each(|_| plan.host(*switch));
    }
    row.windows(2).for_each(|pair| plan.link(pair[0], pair[1]));
    Ok(())
}
