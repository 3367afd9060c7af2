//! Brings the multicast tables of the switches to what was planned, sans-IO like the other stages.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use mad::types::Guid;
use mad::wire::smp::MulticastForwardingTable;
use routing::fabric::SwitchGraph;
use routing::multicast::{MFT_BLOCK, MftBlock, MulticastTables};
use zerocopy::FromZeros;

use super::KnownMulticast;
use crate::observed::Observed;
use crate::request::{Answer, SmpRequest};

/// Multicast LIDs that there are, the last one apart, which means nobody.
const MLIDS: u16 = 0x3fff;

/// A read or a write of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MftJob {
    switch: u32,
    block: u16,
    position: u8,
    write: bool,
}

/// Steps with a barrier between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Blocks that the plan uses and that are not known.
    Read,
    /// Ports that are no longer used are taken away.
    Remove,
    /// New ports come.
    Add,
    Done,
}

/// A multicast plan being applied.
#[derive(Debug)]
pub struct MulticastApply {
    graph: Arc<SwitchGraph>,
    observed: Arc<Observed>,
    goal: Arc<MulticastTables>,
    /// Blocks that are looked at on every switch, used there or not.
    blocks: u16,
    /// Switches that are read on until a block is empty on all of them.
    foreign: BTreeSet<Guid>,
    /// Blocks of them that were looked at.
    looked_at: u16,
    /// What the present step brings about.
    step: MulticastTables,
    known: KnownMulticast,
    stage: Stage,
    queue: VecDeque<MftJob>,
    outstanding: usize,
    sets: u64,
    failures: Vec<String>,
}

/// How it ended.
#[derive(Debug)]
pub struct MulticastApplied {
    /// What the switches hold now.
    pub known: KnownMulticast,
    /// Blocks set.
    pub sets: u64,
    /// What was not confirmed, one line each.
    pub failures: Vec<String>,
}

impl MulticastApply {
    /// Starts. `graph` is the one that `goal` was planned on. The first `blocks` blocks are read on every switch where they are
    /// not known: a switch without members may hold entries of a group that has left. Those of `foreign`, which were in service
    /// before we came to know them, may hold entries of another manager's groups, however many: they are read up to the first
    /// block that is empty on all of them. (Managers give MLIDs from the lowest on.)
    pub fn new(
        graph: Arc<SwitchGraph>,
        observed: Arc<Observed>,
        goal: Arc<MulticastTables>,
        (blocks, foreign): (u16, BTreeSet<Guid>),
        mut known: KnownMulticast,
    ) -> Self {
        known.retain_present(&observed.fabric);
        let mut apply = Self {
            graph,
            observed,
            goal,
            blocks,
            foreign,
            looked_at: 0,
            step: MulticastTables::default(),
            known,
            stage: Stage::Read,
            queue: VecDeque::new(),
            outstanding: 0,
            sets: 0,
            failures: Vec::new(),
        };
        apply.queue = apply.unknown_blocks().into();
        apply
    }

    /// The next request; `None` when nothing can be sent before an answer comes, or at all.
    pub fn next_request(&mut self) -> Option<(SmpRequest, MftJob)> {
        loop {
            while let Some(job) = self.queue.pop_front() {
                if let Some(request) = self.request(job) {
                    self.outstanding += 1;
                    return Some((request, job));
                }
            }
            if self.outstanding > 0 || self.stage == Stage::Done {
                return None;
            }
            self.begin_next_stage();
        }
    }

    /// Takes the end of a request.
    pub fn answer(&mut self, job: MftJob, answer: &Answer) {
        self.outstanding = self.outstanding.saturating_sub(1);
        let guid = self.graph.guid(job.switch);
        let asked = self.step.block(job.switch, job.block, job.position);
        match answer.attribute::<MulticastForwardingTable>() {
            Some(table) => {
                let came = MftBlock { masks: table.port_masks.map(|mask| mask.get()), ..asked };
                if job.write && came != asked {
                    self.fail(job, "other content came back");
                }
                self.known.confirm(guid, &came);
            }
            None if job.write => {
                self.known.doubt(guid, job.block, job.position);
                self.fail(job, &answer.in_words());
            }
            // Not to be read: it will be written as if it were empty.
            None if *answer != Answer::Silent => {}
            None => self.fail(job, &answer.in_words()),
        }
    }

    /// Whether nothing is in flight and no step is left. Call [`MulticastApply::next_request`] until it gives `None` before.
    pub fn is_done(&self) -> bool {
        self.outstanding == 0 && self.queue.is_empty() && self.stage == Stage::Done
    }

    /// Closes it when it is done.
    pub fn finish(self) -> MulticastApplied {
        MulticastApplied { known: self.known, sets: self.sets, failures: self.failures }
    }

    /// Blocks that are looked at, on switches where they are not known.
    fn unknown_blocks(&self) -> Vec<MftJob> {
        let blocks =
            |switch| (0..self.goal.blocks(switch).max(self.blocks)).map(move |block| (switch, block));
        let all = (0..self.graph.switch_count() as u32).flat_map(blocks);
        all.flat_map(|(switch, block)| self.reads(switch, block)).collect()
    }

    /// Reads of a block's positions that are not known.
    fn reads(&self, switch: u32, block: u16) -> impl Iterator<Item = MftJob> {
        let guid = self.graph.guid(switch);
        let positions = 0..=self.graph.num_ports(switch) / 16;
        let unknown = positions.filter(move |position| !self.known.knows(guid, block, *position));
        unknown.map(move |position| MftJob { switch, block, position, write: false })
    }

    /// Whether a switch's table reaches as far as a block.
    fn has_block(&self, switch: u32, block: u16) -> bool {
        let facts = self.observed.fabric.get(self.graph.node(switch)).and_then(|node| node.switch);
        block * MFT_BLOCK < facts.map_or(0, |facts| facts.multicast_fdb_cap).min(MLIDS)
    }

    /// The next block of switches that other managers may have written, as long as any of them used the one before.
    fn foreign_blocks(&mut self) -> Vec<MftJob> {
        let switches = 0..self.graph.switch_count() as u32;
        let foreign: Vec<u32> =
            switches.filter(|switch| self.foreign.contains(&self.graph.guid(*switch))).collect();
        let used = |apply: &Self, block| {
            foreign.iter().any(|switch| apply.known.uses(apply.graph.guid(*switch), block))
        };
        while self.looked_at == 0 || used(self, self.looked_at - 1) {
            let block = self.looked_at;
            self.looked_at += 1;
            let there = foreign.iter().filter(|switch| self.has_block(**switch, block));
            let jobs: Vec<MftJob> = there.flat_map(|switch| self.reads(*switch, block)).collect();
            if !jobs.is_empty() {
                return jobs;
            }
        }
        Vec::new()
    }

    fn begin_next_stage(&mut self) {
        if self.stage == Stage::Read && !self.foreign.is_empty() {
            self.queue = self.foreign_blocks().into();
            if !self.queue.is_empty() {
                return;
            }
        }
        if matches!(self.stage, Stage::Add | Stage::Done) {
            self.stage = Stage::Done;
            return;
        }
        let current = self.known.tables(&self.graph);
        (self.stage, self.step) = if self.stage == Stage::Read {
            (Stage::Remove, self.goal.common(&current))
        } else {
            (Stage::Add, (*self.goal).clone())
        };
        let due = self.step.difference(&current, &self.graph);
        let job =
            |b: MftBlock| MftJob { switch: b.switch, block: b.block, position: b.position, write: true };
        self.queue = due.map(job).collect();
    }

    fn request(&mut self, job: MftJob) -> Option<SmpRequest> {
        let (path, guid) = self.place(job)?;
        let modifier = MulticastForwardingTable::modifier(job.position, job.block);
        if !job.write {
            return Some(SmpRequest::get::<MulticastForwardingTable>(path, guid, modifier));
        }
        let mut table = MulticastForwardingTable::new_zeroed();
        let masks = self.step.block(job.switch, job.block, job.position).masks;
        table.port_masks.iter_mut().zip(masks).for_each(|(slot, mask)| slot.set(mask));
        self.sets += 1;
        Some(SmpRequest::set(path, guid, modifier, &table))
    }

    fn place(&self, job: MftJob) -> Option<(mad::types::DirectedPath, Guid)> {
        let node = self.graph.node(job.switch);
        Some((self.observed.nodes.get(&node)?.path, self.graph.guid(job.switch)))
    }

    fn fail(&mut self, job: MftJob, reason: &str) {
        let name = self.observed.name(self.graph.node(job.switch));
        let what = format!("MulticastForwardingTable block {}, position {}", job.block, job.position);
        let method = if job.write { "Set" } else { "Get" };
        self.failures.push(format!("{name}: {method} of {what}: {reason}"));
    }
}
