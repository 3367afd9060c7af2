//! Proves, where switches failed, that a way is left for every pair of switches and that the early turns close no credit
//! loop. A whole torus, and one with broken rings only, needs no proof: dimension by dimension with datelines there is none.
//! Where a switch is missing on the way of the trees for multicast, others are grown among the dependencies that this leaves free, for
//! one set of datelines after the other.
//!
//! Cost: the hops of all pairs of switches with hosts, each a step in a graph of channels that stays free of cycles.

use std::sync::Arc;

use super::VlBits;
use super::coordinates::{Half, Place, Torus};
use crate::engines::acyclic::{Acyclic, Insert};
use crate::engines::escape;
use crate::engines::targets::with_hosts;
use crate::fabric::{SwitchGraph, SwitchIndex};

/// VLs of a torus on one level of service.
const VLS: u32 = 4;

/// A channel is a side of a switch and a VL: parallel cables are held by the same packets.
fn channel(torus: &Torus, s: SwitchIndex, (axis, forward): (usize, bool), vl: u8) -> u32 {
    let side = (s * torus.dimensions() as u32 + axis as u32) * 2 + u32::from(!forward);
    side * VLS + u32::from(vl & 3)
}

/// Checks the paths around failed switches; the dependencies of their channels where some failed.
///
/// # Errors
/// A pair of switches without a way, or the switch where a credit loop closes; with the empty places.
pub(super) fn check(graph: &SwitchGraph, torus: &Torus, vls: VlBits) -> Result<Option<Acyclic>, String> {
    let missing: Vec<Place> = torus.missing().collect();
    if missing.is_empty() {
        return Ok(None);
    }
    let dimensions = torus.dimensions();
    let place = |place: &Place| {
        let numbers: Vec<String> = place[..dimensions].iter().map(ToString::to_string).collect();
        format!("({})", numbers.join(", "))
    };
    let missing = format!("no switch at {}", missing.iter().map(place).collect::<Vec<_>>().join(", "));
    let count = graph.switch_count() as u32;
    let hosts = with_hosts(graph);
    let mut dependencies = Acyclic::new((count * dimensions as u32 * 2 * VLS) as usize);
    let several = graph.destinations().iter().any(|d| d.lmc > 0);
    let halves = &[Half::Lower, Half::Upper][..if several { 2 } else { 1 }];
    for (half, from) in halves.iter().flat_map(|half| (0..count).map(move |from| (*half, from))) {
        for to in (0..count).filter(|to| *to != from) {
            let sl = usize::from(torus.datelines(from, to, half));
            let (mut at, mut last, mut hops): (_, Option<(usize, u32)>, _) = (from, None, 0);
            while at != to {
                let step = torus.step(at, to, half).filter(|_| hops < count);
                let next = step.and_then(|(axis, forward)| torus.next(at, axis, forward));
                let (Some(step), Some(next)) = (step, next) else {
                    let (a, b) = (graph.describe(from), graph.describe(to));
                    return Err(format!("{missing}, and no way around leads from switch {a} to {b}"));
                };
                let vl = vls.vl(last.map(|(axis, _)| axis), step.0, sl);
                let held = channel(torus, at, step, vl);
                if let Some((_, before)) = last.filter(|_| hosts[from as usize] && hosts[to as usize])
                    && dependencies.insert(before, held) == Insert::Refused
                {
                    let at = graph.describe(at);
                    return Err(format!("{missing}, and the ways around close a credit loop at switch {at}"));
                }
                (at, last, hops) = (next, Some((step.0, held)), hops + 1);
            }
        }
    }
    Ok(Some(dependencies))
}

/// Trees of all switches for multicast, one for each set of datelines that an SL can mark, that close no loop with `dependencies` nor with
/// one another. `None` where there is no room for one.
pub(super) fn trees(
    graph: &SwitchGraph,
    torus: &Torus,
    vls: VlBits,
    mut dependencies: Acyclic,
) -> Option<Vec<Arc<[u32]>>> {
    let mut sides = Vec::with_capacity(graph.all_arcs().len());
    for s in 0..graph.switch_count() as SwitchIndex {
        for arc in graph.arcs(s) {
            let all = (0..torus.dimensions()).flat_map(|axis| [true, false].map(|forward| (axis, forward)));
            let mut leading =
                all.filter(|(axis, forward)| torus.cables(s, *axis, *forward).contains(&arc.out_port));
            sides.push((s, leading.next()?));
        }
    }
    let parents = escape::parents(graph);
    let trees = (0..1_usize << torus.dimensions()).map(|sl| {
        let fits = |lanes: &mut Acyclic, turns: &[(u32, u32)]| {
            let mut waits = Vec::with_capacity(2 * turns.len());
            for (into, out) in turns {
                let ((from, entry), (at, exit)) = (sides[*into as usize], sides[*out as usize]);
                let next = channel(torus, at, exit, vls.vl(Some(entry.0), exit.0, sl));
                // What came in may have turned before, from any dimension.
                let last = torus.dimensions() - 1;
                for before in [entry.0, last] {
                    waits.push((channel(torus, from, entry, vls.vl(Some(before), entry.0, sl)), next));
                }
            }
            waits.sort_unstable();
            waits.dedup();
            lanes.insert_all(&waits)
        };
        let (_, tree) = escape::find_room(graph, &parents, std::iter::once((0, dependencies.clone())), fits)?;
        fits(&mut dependencies, &escape::turns(graph, &tree)).then_some(tree)
    });
    trees.collect()
}
