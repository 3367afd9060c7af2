//! Can packets lock together while tables are being written: those on old routes, those on new ones, and those that change
//! from one to the other on their way.
//!
//! Writes come in steps ([`transition::plan`](super::transition::plan)). Within a step every switch that is written may hold
//! either content at any moment; packets of earlier steps may still wait while the next one runs, and may carry the old SL or
//! the new one, and switches may map SLs by the old tables or the new ones. So the channel dependency graph is that of all steps together. None found is a proof; one found is a warning:
//! whether it comes about depends on the traffic, and what waits too long is dropped by the switches' lifetime limit.
//! Cost: as [`super::choices`], for each step.

use mad::types::Lid;

use super::choices::{self, Choices};
use super::credit_loop::CreditLoop;
use super::transition::Step;
use crate::fabric::{SwitchGraph, SwitchIndex};
use crate::routes::{LFT_BLOCK, LftMatrix, Routes};

/// One step.
struct Mixture<'a> {
    before: &'a LftMatrix,
    after: &'a LftMatrix,
    /// Old and new routes, for the SLs.
    routes: [&'a Routes; 2],
}

impl Choices for Mixture<'_> {
    fn exits(&self, switch: SwitchIndex, lid: u16, ports: &mut Vec<u8>) {
        let Some(lid) = Lid::new(lid) else { return };
        ports.extend([self.before, self.after].map(|tables| tables.port(switch, lid)));
    }

    fn sls(&self, switch: SwitchIndex, lid: u16, sls: &mut Vec<u8>) {
        let Some(lid) = Lid::new(lid) else { return };
        // 255 stands where an engine said nothing.
        sls.extend(
            self.routes.map(|routes| routes.path_sl(switch, lid)).map(|sl| if sl < 16 { sl } else { 0 }),
        );
    }
}

/// Looks for a credit loop among hosts' packets on the way from `old` to `new` by `steps`; rows are in the order of the
/// graph's switches. Where the SL-to-VL tables of the two differ, every switch may hold either at any moment.
pub fn credit_loop(graph: &SwitchGraph, old: &Routes, new: &Routes, steps: &[Step]) -> Option<CreditLoop> {
    let contents = contents(graph, old, new, steps);
    let pairs = contents.iter().zip(contents.iter().skip(1));
    let stages: Vec<Mixture<'_>> =
        pairs.map(|(before, after)| Mixture { before, after, routes: [old, new] }).collect();
    let stages: Vec<&dyn Choices> = stages.iter().map(|stage| stage as &dyn Choices).collect();
    choices::check_between(graph, (old, new), &stages).credit_loop
}

/// The tables before the first step and after each; at the end, once more, the new ones.
fn contents(graph: &SwitchGraph, old: &Routes, new: &Routes, steps: &[Step]) -> Vec<LftMatrix> {
    let mut now = LftMatrix::new(graph.switch_count(), (new.lfts.stride() - 1).min(0xbfff) as u16);
    let length = now.stride().min(old.lfts.stride());
    for s in 0..graph.switch_count().min(old.lfts.switch_count()) as u32 {
        now.row_mut(s).update(|now| {
            now.iter_mut().zip(old.lfts.row(s).iter()).take(length).for_each(|(now, old)| *now = *old);
        });
    }
    let mut contents = vec![now.clone()];
    for step in steps {
        for write in &step.writes {
            let first = usize::from(write.block) * LFT_BLOCK;
            if first < now.stride() {
                let content = write.content(&old.lfts, &new.lfts);
                let mut row = now.row_mut(write.switch);
                (first..).zip(content).for_each(|(lid, port)| row[lid] = port);
            }
        }
        contents.push(now.clone());
    }
    contents.push(new.lfts.clone());
    contents
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::{RoutingEngine, RoutingInput, UpDown};
    use crate::fabric::testing;
    use crate::verify::transition;

    /// Up/down with one root, and with another: each is free of credit loops, both together on a ring are not.
    #[test]
    fn two_orders_that_are_right_each_for_itself_can_lock_together() {
        let graph = SwitchGraph::new(&testing::torus(&[6], 1, 0));
        let from = |root: u32| {
            let input = RoutingInput { root_guids: vec![graph.guid(root)], ..RoutingInput::default() };
            UpDown.route(&graph, &input).unwrap()
        };
        let (one, other) = (from(0), from(3));
        let between = |old: &Routes, new: &Routes| {
            credit_loop(&graph, old, new, &transition::plan(&graph, &old.lfts, &new.lfts))
        };
        assert_eq!(between(&one, &one), None);
        assert_eq!(between(&other, &other), None);
        let found = between(&one, &other).expect("a ring closes");
        assert!(found.channels.len() >= 2, "{found}");
        // The same order on another lane: packets change lanes on the way, and close nothing.
        let moved = Routes { sl_to_vl: crate::routes::SlToVl::Uniform([1; 16]), ..one.clone() };
        assert_eq!(between(&one, &moved), None);
        // Another order on another lane: packets on new routes are on the old lane while some switches hold the old tables.
        let both = Routes { sl_to_vl: crate::routes::SlToVl::Uniform([1; 16]), ..other };
        let found = between(&one, &both).expect("lanes are no help while they change");
        assert!(found.channels.len() >= 5, "{found}");
    }
}
