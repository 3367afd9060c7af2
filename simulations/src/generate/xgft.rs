//! Extended and parallel-port generalised fat trees (Öhring et al. 1995; Zahavi 2010).
//!
//! A node of level `l` has a label of `h` digits: digits 1 to `l` choose a parent (below `w_i`), the rest a child (below
//! `m_i`). It is joined to the nodes of level `l+1` whose labels agree in all digits but digit `l+1`.

use std::collections::HashMap;

use super::plan::Plan;
use super::{GenerateError, check, grid};

/// A label, first digit first.
type Label = Vec<u16>;

/// Lays the tree; see [`super::Topology::Xgft`].
pub(super) fn lay(plan: &mut Plan, m: &[u16], w: &[u16], p: &[u16]) -> Result<(), GenerateError> {
    let h = m.len();
    check("number of levels", h as u64, 1..=8)?;
    let ones = vec![1; h];
    let p = if p.is_empty() { &ones } else { p };
    if w.len() != h || p.len() != h {
        return Err(GenerateError::Parameter(format!(
            "m has {h} levels, w has {} and p has {}: expected the same",
            w.len(),
            p.len()
        )));
    }
    for (what, values) in [("children m", m), ("parents w", w), ("parallel links p", p)] {
        values.iter().try_for_each(|v| check(what, *v, 1..=254))?;
    }
    check("parents of a host w[0]", w[0], 1..=1)?;
    check("links of a host p[0]", p[0], 1..=1)?;
    let nodes = (0..=h).map(|l| labels(m, w, l).count()).sum::<usize>();
    if nodes > 0xbfff {
        return Err(GenerateError::TooManyLids(nodes));
    }

    let mut levels: Vec<(Vec<Label>, HashMap<Label, usize>)> = Vec::new();
    for level in 1..=h {
        let order: Vec<Label> = labels(m, w, level).collect();
        let by_label = order
            .iter()
            .enumerate()
            .map(|(index, label)| (label.clone(), plan.switch(format!("S{level}_{index}"))))
            .collect();
        levels.push((order, by_label));
    }
    for mut label in labels(m, w, 0) {
        label[0] = 0;
        plan.host(levels[0].1[&label]);
    }
    for level in 1..h {
        for _ in 0..p[level] {
            for label in &levels[level - 1].0 {
                let mut up = label.clone();
                for parent in 0..w[level] {
                    up[level] = parent;
                    plan.link(levels[level - 1].1[label], levels[level].1[&up]);
                }
            }
        }
    }
    Ok(())
}

/// The labels of a level in order, the first digit running fastest.
fn labels(m: &[u16], w: &[u16], level: usize) -> impl Iterator<Item = Label> {
    let sizes: Vec<u16> = (0..m.len()).rev().map(|i| if i < level { w[i] } else { m[i] }).collect();
    grid(&sizes)
        .map(|mut digits| {
            digits.reverse();
            digits
        })
        .collect::<Vec<_>>()
        .into_iter()
}
