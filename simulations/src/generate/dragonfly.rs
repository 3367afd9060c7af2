//! Dragonfly (Kim et al. 2008) and dragonfly+ (Shpiner et al. 2017).
//!
//! Global links are dealt out round by round over all pairs of groups, so that each group's links are spread evenly over
//! its switches; as many parallel ones as fit.

use super::plan::Plan;
use super::{GenerateError, check};

/// Lays a canonical dragonfly; see [`super::Topology::Dragonfly`].
pub(super) fn lay(plan: &mut Plan, p: u16, a: u16, h: u16, g: u16) -> Result<(), GenerateError> {
    check("switches in a group a", a, 1..=254)?;
    check("global links of a switch h", h, 1..=254)?;
    check("hosts at a switch p", p, 0..=254)?;
    let most = u64::from(a) * u64::from(h) + 1;
    let groups = if g == 0 { most } else { u64::from(g) };
    check("number of groups g", groups, 2..=most)?;
    check("number of switches", groups * u64::from(a), 2..=0xbfff)?;
    let switches: Vec<Vec<usize>> =
        (0..groups).map(|i| (0..a).map(|j| plan.switch(format!("S{i}_{j}"))).collect()).collect();
    for switch in switches.iter().flatten() {
        (0..p).for_each(|_| plan.host(*switch));
    }
    for group in &switches {
        for (j, one) in group.iter().enumerate() {
            group[j + 1..].iter().for_each(|other| plan.link(*one, *other));
        }
    }
    global(plan, &switches, usize::from(h));
    Ok(())
}

/// Parameters of a dragonfly+; see [`super::Topology::DragonflyPlus`].
pub(super) struct Plus {
    pub(super) p: u16,
    pub(super) leaves: u16,
    pub(super) spines: u16,
    pub(super) h: u16,
    pub(super) g: u16,
}

/// Lays a dragonfly+.
pub(super) fn lay_plus(plan: &mut Plan, it: Plus) -> Result<(), GenerateError> {
    for (what, value) in
        [("leaves in a group", it.leaves), ("spines in a group", it.spines), ("global links h", it.h)]
    {
        check(what, value, 1..=254)?;
    }
    check("hosts at a leaf p", it.p, 0..=254)?;
    check("number of groups g", it.g, 2..=u64::from(it.spines) * u64::from(it.h) + 1)?;
    check("number of switches", u64::from(it.g) * (u64::from(it.leaves) + u64::from(it.spines)), 2..=0xbfff)?;
    let mut row = |kind: char, count: u16| -> Vec<Vec<usize>> {
        (0..it.g).map(|i| (0..count).map(|j| plan.switch(format!("S{kind}{i}_{j}"))).collect()).collect()
    };
    let (leaves, spines) = (row('L', it.leaves), row('S', it.spines));
    for leaf in leaves.iter().flatten() {
        (0..it.p).for_each(|_| plan.host(*leaf));
    }
    for (leaves, spines) in leaves.iter().zip(&spines) {
        for leaf in leaves {
            spines.iter().for_each(|spine| plan.link(*leaf, *spine));
        }
    }
    global(plan, &spines, usize::from(it.h));
    Ok(())
}

/// Deals out the global links of `ends` (switches with `h` such links each, by group).
fn global(plan: &mut Plan, ends: &[Vec<usize>], h: usize) {
    let per_group = ends[0].len() * h;
    let mut used = vec![0; ends.len()];
    for _ in 0..per_group / (ends.len() - 1) {
        for i in 0..ends.len() {
            for j in i + 1..ends.len() {
                plan.link(ends[i][used[i] % ends[i].len()], ends[j][used[j] % ends[j].len()]);
                used[i] += 1;
                used[j] += 1;
            }
        }
    }
}
