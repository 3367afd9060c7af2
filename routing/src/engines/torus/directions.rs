//! Finds the places of a torus from its wiring.
//!
//! A direction is a pair of ports: a cable from port p of one switch to port q of its neighbour, the same p and q all along
//! the dimension. Parallel cables are further pairs that join the same switches; they belong to the same direction.
//! The first switch lies at the origin. A dimension is as long as its longest ring.

use std::collections::BTreeMap;

use super::coordinates::{Axis, MOST_DIMENSIONS, Place};
use crate::fabric::{SwitchGraph, SwitchIndex};

const NONE: SwitchIndex = SwitchIndex::MAX;

/// Dimensions, and the place of every switch.
///
/// # Errors
/// What does not fit, with the switch.
pub(super) fn places(graph: &SwitchGraph) -> Result<(Vec<Axis>, Vec<Place>), String> {
    let axes = directions(graph)?;
    let count = graph.switch_count();
    let (mut next, mut previous) = (vec![vec![NONE; count]; axes.len()], vec![vec![NONE; count]; axes.len()]);
    for (axis, pairs) in axes.iter().enumerate() {
        for s in 0..count as u32 {
            for arc in graph.arcs(s).iter().filter(|a| pairs.contains(&(a.out_port, a.in_port))) {
                for (known, of, to) in [(&mut next, s, arc.to), (&mut previous, arc.to, s)] {
                    let known = &mut known[axis][of as usize];
                    if *known != NONE && *known != to {
                        return Err(format!(
                            "switch {} has two neighbours in one direction",
                            graph.describe(of)
                        ));
                    }
                    *known = to;
                }
            }
        }
    }
    let mut axes: Vec<Axis> =
        next.iter().zip(&previous).map(|(next, previous)| axis(next, previous)).collect();
    let mut places = spread(graph, &axes, &next, &previous)?;
    for (number, axis) in axes.iter_mut().enumerate().filter(|(_, axis)| !axis.closed) {
        shift_mesh(axis, number, (&next[number], &previous[number]), &mut places);
    }
    Ok((axes, places))
}

/// Follows every ring of a dimension.
fn axis(next: &[SwitchIndex], previous: &[SwitchIndex]) -> Axis {
    let mut axis = Axis { size: 1, closed: false };
    let mut seen = vec![false; next.len()];
    // Open rings begin where nothing leads to, closed ones anywhere.
    let starts = (0..next.len()).filter(|s| previous[*s] == NONE).chain(0..next.len());
    for start in starts {
        let (mut at, mut length) = (start, 0);
        while !std::mem::replace(&mut seen[at], true) {
            length += 1;
            if next[at] == NONE {
                break;
            }
            at = next[at] as usize;
        }
        axis.size = axis.size.max(length);
        axis.closed |= length > 2 && next[at] != NONE;
    }
    axis
}

/// Gives coordinates from switch 0 outwards, modulo the sizes; all ways must agree.
fn spread(
    graph: &SwitchGraph,
    axes: &[Axis],
    next: &[Vec<SwitchIndex>],
    previous: &[Vec<SwitchIndex>],
) -> Result<Vec<Place>, String> {
    let count = graph.switch_count();
    let mut places = vec![[0; MOST_DIMENSIONS]; count];
    let mut known = vec![false; count];
    known[0] = true;
    let mut queue = vec![0_u32];
    let mut head = 0;
    while let Some(&at) = queue.get(head) {
        head += 1;
        for (number, axis) in axes.iter().enumerate() {
            for (to, step) in [(next[number][at as usize], 1), (previous[number][at as usize], axis.size - 1)]
            {
                if to == NONE {
                    continue;
                }
                let mut place = places[at as usize];
                place[number] = (place[number] + step) % axis.size;
                if !std::mem::replace(&mut known[to as usize], true) {
                    places[to as usize] = place;
                    queue.push(to);
                } else if places[to as usize] != place {
                    return Err(format!("switch {} has no single place in the torus", graph.describe(to)));
                }
            }
        }
    }
    if queue.len() != count {
        return Err(format!("{} switches can't be reached from the others", count - queue.len()));
    }
    Ok(places)
}

/// The first place of an open dimension is the one behind which nothing lies. Where whole rings begin at several places,
/// each of them is a closed one that lost a cable.
fn shift_mesh(
    axis: &mut Axis,
    number: usize,
    (next, previous): (&[SwitchIndex], &[SwitchIndex]),
    places: &mut [Place],
) {
    let length = |start: usize| {
        let line =
            std::iter::successors(Some(start as u32), |at| Some(next[*at as usize]).filter(|to| *to != NONE));
        line.take(usize::from(axis.size)).count()
    };
    let whole = |s: &usize| previous[*s] == NONE && length(*s) == usize::from(axis.size);
    let mut origins = (0..places.len()).filter(whole).map(|s| places[s][number]);
    let Some(origin) = origins.next() else { return };
    axis.closed = origins.any(|other| other != origin);
    if !axis.closed {
        for place in places.iter_mut() {
            place[number] = (place[number] + axis.size - origin) % axis.size;
        }
    }
}

/// The port that a cable leaves and the one it enters.
type PortPair = (u8, u8);

/// The forward port pairs of each dimension, parallel cables joined.
fn directions(graph: &SwitchGraph) -> Result<Vec<Vec<PortPair>>, String> {
    let mut pairs: BTreeMap<PortPair, Vec<(SwitchIndex, SwitchIndex)>> = BTreeMap::new();
    for s in 0..graph.switch_count() as u32 {
        for arc in graph.arcs(s) {
            let forward = (arc.out_port, arc.in_port);
            // Both ends see the cable; the one with the smaller port in front counts, and between equal ports the first.
            if forward.0 < forward.1 || (forward.0 == forward.1 && s < arc.to) {
                pairs.entry(forward).or_default().push((s, arc.to));
            }
        }
    }
    let mut axes: Vec<Vec<PortPair>> = Vec::new();
    let mut joined: Vec<Vec<(SwitchIndex, SwitchIndex)>> = Vec::new();
    for (pair, links) in pairs {
        match joined.iter().position(|known| links.iter().any(|link| known.contains(link))) {
            Some(axis) => {
                axes[axis].push(pair);
                joined[axis].extend(links);
            }
            None => {
                axes.push(vec![pair]);
                joined.push(links);
            }
        }
    }
    if axes.is_empty() || axes.len() > MOST_DIMENSIONS {
        let count = axes.len();
        return Err(format!(
            "cables between switches use {count} pairs of ports, a torus of up to 3 dimensions 1 to 3"
        ));
    }
    Ok(axes)
}
