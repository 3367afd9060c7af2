//! Proves, where switches failed, that a way is left for every pair of switches and that the early turns close no credit
//! loop. A whole torus, and one with broken rings only, needs no proof: dimension by dimension with datelines there is none.
//!
//! Cost: the hops of all pairs of switches with hosts, each a step in a graph of channels that stays free of cycles.

use super::VlBits;
use super::coordinates::{Half, Place, Torus};
use crate::engines::acyclic::{Acyclic, Insert};
use crate::engines::targets::with_hosts;
use crate::fabric::{SwitchGraph, SwitchIndex};

/// VLs of a torus on one level of service.
const VLS: u32 = 4;

/// Checks the paths around failed switches.
///
/// # Errors
/// A pair of switches without a way, or the switch where a credit loop closes; with the empty places.
pub(super) fn check(graph: &SwitchGraph, torus: &Torus, vls: VlBits) -> Result<(), String> {
    let missing: Vec<Place> = torus.missing().collect();
    if missing.is_empty() {
        return Ok(());
    }
    let dimensions = torus.dimensions();
    let place = |place: &Place| {
        let numbers: Vec<String> = place[..dimensions].iter().map(ToString::to_string).collect();
        format!("({})", numbers.join(", "))
    };
    let missing = format!("no switch at {}", missing.iter().map(place).collect::<Vec<_>>().join(", "));
    let count = graph.switch_count() as u32;
    let hosts = with_hosts(graph);
    // A channel is a side of a switch and a VL: parallel cables are held by the same packets.
    let channel = |s: SwitchIndex, (axis, forward): (usize, bool), vl: u8| {
        ((s * dimensions as u32 + axis as u32) * 2 + u32::from(!forward)) * VLS + u32::from(vl)
    };
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
                let held = channel(at, step, vl & 3);
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
    Ok(())
}
