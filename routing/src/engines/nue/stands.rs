//! What the ways that stand after lost links take of the lanes, without what was taken by those that are lost.
//!
//! Cost: one look at each entry of the tables, over all threads.

use rayon::prelude::*;

use super::lane_of;
use super::left::Loss;
use super::network::NONE;
use crate::engines::base::Base;
use crate::engines::escape;
use crate::engines::orphans::Tree;
use crate::engines::room::{Taken, dependency, dependency_starts};
use crate::fabric::SwitchIndex;

/// The dependencies of what stands, by the lanes: of ways and of the escape tree.
pub(super) fn what_stands(base: &Base, loss: &Loss<'_>, taken: &Taken) -> Taken {
    let (old, graph) = loss.graphs;
    let (cut, arcs) = (loss.cut, graph.all_arcs());
    let lids = base.routes.lfts.stride();
    let mut bit_of = vec![0_u16; lids];
    let mut lost: Vec<Vec<u16>> = vec![Vec::new(); graph.switch_count()];
    let mut tree = Tree::new(cut);
    for (d, lid) in graph.destinations().iter().flat_map(|d| d.lids().map(move |lid| (d, lid))) {
        bit_of[usize::from(lid)] = 1 << lane_of(d.switch, base.routes.vls);
        if cut.is_cut(lid) {
            tree.begin(d, lid);
            tree.orphans.iter().for_each(|s| lost[*s as usize].push(lid));
        }
    }
    let starts = dependency_starts(old);
    let number = |arc: u32, on: u32| {
        let [arc, on] = [arc, on].map(|arc| loss.links.old_arc[arc as usize]);
        dependency(old, &starts, arc, on)
    };
    let of_switch = |s: SwitchIndex| {
        let [first, end] = [s, s + 1].map(|s| starts[old.offsets()[s as usize] as usize] as usize);
        let mut lanes = vec![0_u16; end - first];
        let mut bits = bit_of.clone();
        lost[s as usize].iter().for_each(|lid| bits[usize::from(*lid)] = 0);
        for (lid, bit) in (0..).zip(bits).filter(|(_, bit)| *bit != 0) {
            let arc = cut.old_arc(s, lid);
            let Some(ends) = arcs.get(arc as usize) else { continue };
            let on = cut.old_arc(ends.to, lid);
            if on != NONE {
                lanes[number(arc, on) - first] |= bit;
            }
        }
        lanes
    };
    let count = graph.switch_count() as SwitchIndex;
    let mut lanes = (0..count).into_par_iter().map(of_switch).collect::<Vec<_>>().concat();
    let left = escape::left_of(loss.parents, old, loss.links);
    let all = ((1_u32 << base.routes.vls) - 1) as u16;
    escape::turns(graph, &left).into_iter().for_each(|(arc, on)| lanes[number(arc, on)] |= all);
    taken.with_fewer(lanes)
}
