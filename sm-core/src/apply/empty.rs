//! Blocks of switches in service of which nothing is known, since their reading or a Set of them was not answered, or a change of other
//! settings made us forget them.
//!
//! The order of writes, and which links have to wait for it, is proved for what is known; a block of which nothing is known counts as
//! empty there. If in fact it holds entries these can close circles with what its neighbours get, or over a link that is raised
//! (B29). So it is made true first: such a block is read, and emptied where it does not hold already what it shall hold at the
//! end. Its LIDs can't be reached by way of this switch then until its turn comes in this round, which is the lesser evil.
//!
//! Cost: a Get for each such block, and a Set where it was right to ask; nothing where all reads were answered, nor where no other
//! switch's entries for these LIDs change and no link between switches comes up.

use std::collections::BTreeMap;

use mad::wire::smp::LinearForwardingTable;

use super::jobs::Job;
use super::steps::{desired_block, due_blocks, is_idle, last_block_in_force};
use super::{Apply, Block};
use crate::plan::ports::{PortPlan, PortRole};
use crate::request::Answer;

/// What an emptied block holds.
pub(super) const EMPTY: Block = LinearForwardingTable::DROP_ALL.ports;

/// Reads of blocks in force of which nothing is known, where something is to change beside them.
pub(super) fn unknown_jobs(apply: &Apply) -> Vec<Job> {
    let graph = &apply.plan.graph;
    let blocks_of = |switch: u32| {
        let node = graph.node(switch);
        let known = apply.ground.tables.blocks(graph.guid(switch));
        let last = last_block_in_force(apply, node).filter(|_| !is_idle(apply, node));
        let blocks = last.map_or(0..0, |last| 0..last + 1);
        blocks
            .filter(|block| known.get(*block).is_none_or(Option::is_none))
            .map(move |block| (switch, block as u16))
    };
    let unknown: Vec<(u32, u16)> = (0..graph.switch_count() as u32).flat_map(blocks_of).collect();
    if unknown.is_empty() {
        return Vec::new();
    }
    let raises = apply.plan.ports.iter().any(|plan| is_to_rise(apply, plan));
    // By block: the first and the last switch where it changes.
    let mut changing: BTreeMap<u16, (u32, u32)> = BTreeMap::new();
    for (switch, block) in due_blocks(apply, |facts| !facts.idle) {
        let (first, last) = changing.entry(block).or_insert((switch, switch));
        (*first, *last) = (switch.min(*first), switch.max(*last));
    }
    let changes_beside = |(switch, block): &(u32, u16)| {
        changing.get(block).is_some_and(|(first, last)| first != switch || last != switch)
    };
    let due = unknown.into_iter().filter(|place| raises || changes_beside(place));
    due.map(|(switch, block)| Job::ReadUnknown { switch, block }).collect()
}

fn is_to_rise(apply: &Apply, plan: &PortPlan) -> bool {
    let state = apply.observed.port_info(plan.end).and_then(mad::wire::smp::PortInfo::port_state);
    plan.role == PortRole::BetweenSwitches
        && plan.activate
        && state.is_some_and(|state| state.is_up() && state < mad::types::PortState::Active)
}

impl Apply {
    /// What a block of which nothing was known holds; silence says nothing.
    pub(super) fn unknown_read(&mut self, switch: u32, block: u16, answer: &Answer) {
        let held = answer.attribute::<LinearForwardingTable>().map(|table| table.ports);
        if held == Some(desired_block(self, switch, usize::from(block))) || held == Some(EMPTY) {
            let asked = held.unwrap_or(EMPTY);
            return self.table_settled(switch, block, &asked, answer);
        }
        if *answer != Answer::Cancelled {
            self.queue.push_back(Job::EmptyUnknown { switch, block });
        }
    }
}
