//! Alias GUIDs as ports ask for them: Set and Delete of GUIDInfoRecord (specification volume 1, 15.2.5.18 and 15.4.5).
//!
//! Answered from what is wanted, at once; the ports are written to afterwards. A place whose GUID can't be had is 0 in the
//! answer, the others are given. The same request again is a success without effect (B49).
//!
//! Cost: O(log blocks) for each of the 8 places, O(groups) where one loses an alias.

use std::collections::BTreeSet;
use std::sync::Arc;

use mad::types::{Guid, Lid};
use mad::wire::Status;
use mad::wire::sa::GuidInfoRecord;
use mad::wire::smp::GuidInfo;
use zerocopy::big_endian::U64;

use super::Groups;
use crate::aliases::{AliasBlock, AliasTable};
use crate::sa::records::Context;
use crate::snapshot::{EndPort, Snapshot};

/// The most blocks that are held; beyond, NO_RESOURCES. About 200 bytes each.
const MOST: usize = 100_000;

/// What the SA gives to ports that ask it for a GUID: the vendor part of opensm's, then 40 bits.
const ASSIGNED: u64 = 0x0014_0500_0000_0000;
const ASSIGNED_BITS: u64 = (1 << 40) - 1;

/// Alias GUIDs.
#[derive(Clone, Debug, Default)]
pub struct Aliases {
    table: Arc<AliasTable>,
    /// Blocks that changed since they were last taken for the store.
    changed: BTreeSet<(Guid, u8)>,
    /// What was given and freed since it was last taken for subscribers.
    events: Vec<AliasEvent>,
}

/// An alias was given to a port, or freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AliasEvent {
    /// PortGUID of the port.
    pub port: Guid,
    /// The alias.
    pub alias: Guid,
    /// Whether it was given.
    pub given: bool,
}

/// A request, with the port that it is about.
struct Asked<'a> {
    port: &'a EndPort,
    /// Places that the port has.
    capacity: usize,
    block: u8,
    mask: u64,
}

impl<'a> Asked<'a> {
    /// A host may change the aliases of its own port, who knows the SM_Key those of any.
    fn new(context: &Context<'a>, record: &GuidInfoRecord, mask: u64) -> Result<Self, Status> {
        let required = GuidInfoRecord::LID | GuidInfoRecord::BLOCK_NUM;
        if mask & required != required {
            return Err(Status::SA_INSUFFICIENT_COMPONENTS);
        }
        let port = Lid::new(record.lid.get()).and_then(|lid| context.snapshot.port_at(lid));
        if !context.trusted && port.is_none_or(|port| port.end != context.requester.end) {
            return Err(Status::SA_REQ_DENIED);
        }
        let port = port.ok_or(Status::SA_NO_RECORDS)?;
        let capacity = capacity(context.snapshot, port);
        let block = record.block_num;
        if usize::from(block) >= capacity.div_ceil(GuidInfo::PER_BLOCK) {
            return Err(Status::SA_NO_RECORDS);
        }
        let asked = Self { port, capacity, block, mask };
        if block == 0 && asked.names(0) {
            return Err(Status::SA_REQ_INVALID); // the port's own GUID
        }
        Ok(asked)
    }

    const fn names(&self, index: usize) -> bool {
        self.mask & GuidInfoRecord::GUID_0 << index != 0
    }

    fn has_place(&self, index: usize) -> bool {
        usize::from(self.block) * GuidInfo::PER_BLOCK + index < self.capacity
    }
}

impl Aliases {
    /// What is given to whom.
    pub const fn table(&self) -> &Arc<AliasTable> {
        &self.table
    }

    /// Gives the GUIDs that a record names, of one that is 0 any. Returns the block as it is then, with 0 for those that
    /// can't be had: another port's, those without a place in the port, and in place of one that has joined a group.
    ///
    /// # Errors
    /// INSUFFICIENT_COMPONENTS without LID and BlockNum, REQ_DENIED for another's port, NO_RECORDS beyond GUIDCap, REQ_INVALID
    /// for the port's own GUID, NO_RESOURCES.
    pub(super) fn set(
        &mut self,
        context: &Context<'_>,
        groups: &Groups,
        record: &GuidInfoRecord,
        mask: u64,
    ) -> Result<GuidInfoRecord, Status> {
        let asked = Asked::new(context, record, mask)?;
        if self.table.len() >= MOST && !self.table.has_block(asked.port.guid, asked.block) {
            return Err(Status::SA_NO_RESOURCES);
        }
        let mut refused = 0;
        for index in (0..GuidInfo::PER_BLOCK).filter(|index| asked.names(*index)) {
            let wanted = Guid(record.guid_info.guids[index].get());
            if !asked.has_place(index) || !self.give(context.snapshot, groups, &asked, index, wanted) {
                refused |= 1_u8 << index;
            }
        }
        Ok(self.record(&asked, record, refused))
    }

    /// Frees the places that a record names, all or none. Returns the block as it is then.
    ///
    /// # Errors
    /// As [`Aliases::set`]; REQ_DENIED too for one that has joined a group.
    pub(super) fn delete(
        &mut self,
        context: &Context<'_>,
        groups: &Groups,
        record: &GuidInfoRecord,
        mask: u64,
    ) -> Result<GuidInfoRecord, Status> {
        let asked = Asked::new(context, record, mask)?;
        let held = self.table.block(asked.port.guid, asked.block);
        let freed = |index: &usize| asked.names(*index) && held[*index].is_some();
        let freed: Vec<usize> = (0..GuidInfo::PER_BLOCK).filter(freed).collect();
        if freed.iter().any(|index| groups.has_member(held[*index])) {
            return Err(Status::SA_REQ_DENIED);
        }
        freed.into_iter().for_each(|index| self.put(asked.port.guid, asked.block, index, Guid::NONE));
        Ok(self.record(&asked, record, 0))
    }

    /// Gives one place what it wants, or says that it can't.
    fn give(
        &mut self,
        snapshot: &Snapshot,
        groups: &Groups,
        asked: &Asked<'_>,
        index: usize,
        wanted: Guid,
    ) -> bool {
        let held = self.table.block(asked.port.guid, asked.block)[index];
        if held.is_some() && (held == wanted || !wanted.is_some()) {
            return true;
        }
        let is_free = |guid| self.table.holder(guid).is_none() && snapshot.port_by_guid(guid).is_none();
        let new = if wanted.is_some() {
            wanted
        } else {
            let place = usize::from(asked.block) * GuidInfo::PER_BLOCK + index;
            assigned(asked.port.guid, place).find(|guid| is_free(*guid)).unwrap_or(Guid::NONE)
        };
        if !new.is_some() || !is_free(new) || (held.is_some() && groups.has_member(held)) {
            return false;
        }
        self.put(asked.port.guid, asked.block, index, new);
        true
    }

    fn put(&mut self, port: Guid, block: u8, index: usize, alias: Guid) {
        let old = self.table.block(port, block).get(index).copied().unwrap_or_default();
        if Arc::make_mut(&mut self.table).put(port, block, index, alias) {
            self.changed.insert((port, block));
            for (alias, given) in [(old, false), (alias, true)] {
                if alias.is_some() {
                    self.events.push(AliasEvent { port, alias, given });
                }
            }
        }
    }

    /// What was given and freed since the last call, in order.
    pub(in crate::sa) fn take_events(&mut self) -> Vec<AliasEvent> {
        std::mem::take(&mut self.events)
    }

    fn record(&self, asked: &Asked<'_>, record: &GuidInfoRecord, refused: u8) -> GuidInfoRecord {
        let mut answer = *record;
        answer.guid_info = self.table.guid_info(asked.port.guid, asked.block);
        let refused = (0..GuidInfo::PER_BLOCK).filter(|index| refused >> index & 1 == 1);
        refused.for_each(|index| answer.guid_info.guids[index] = U64::ZERO);
        answer
    }

    /// Frees what is the PortGUID of a port by now: it was claimed while that port was away.
    pub(super) fn settle(&mut self, snapshot: &Snapshot) {
        let taken = self.table.iter().filter(|(alias, _)| snapshot.port_by_guid(*alias).is_some());
        for (alias, port) in taken.collect::<Vec<_>>() {
            tracing::warn!(%alias, %port, "an alias GUID is the GUID of another port: it is taken back");
            self.free(port, |guid| guid == alias);
        }
    }

    /// Frees the aliases of a port, since it is gone for good. Should it come back, it is told so.
    pub(super) fn remove_port(&mut self, port: Guid) {
        self.free(port, Guid::is_some);
    }

    fn free(&mut self, port: Guid, which: impl Fn(Guid) -> bool) {
        let table = Arc::clone(&self.table);
        for (block, guids) in table.blocks_of(port) {
            for (index, _) in guids.iter().enumerate().filter(|(_, guid)| which(**guid)) {
                self.put(port, block, index, Guid::NONE);
            }
        }
    }

    /// Blocks that changed since the last call.
    pub(super) fn take_changed(&mut self) -> BTreeSet<(Guid, u8)> {
        std::mem::take(&mut self.changed)
    }

    /// Puts back a block as it was kept.
    pub(super) fn restore(&mut self, port: Guid, block: u8, guids: AliasBlock) -> bool {
        Arc::make_mut(&mut self.table).restore(port, block, guids)
    }

    /// None, after these of another registry.
    pub(super) fn successor(&self) -> Self {
        Self { table: Arc::new(self.table.successor()), ..Self::default() }
    }
}

/// The GUIDs that a port has room for, its own included; a port has its own even where it claims to have room for none.
pub(in crate::sa) fn capacity(snapshot: &Snapshot, port: &EndPort) -> usize {
    snapshot.observed.port_info(port.end).map_or(1, |info| usize::from(info.guid_cap).max(1))
}

/// The GUIDs that the SA would give to a place, best first: always the same for the same place, without a memory of what was
/// given before.
fn assigned(port: Guid, place: usize) -> impl Iterator<Item = Guid> {
    // SplitMix64's finalizer.
    let mut mix = port.0 ^ (place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mix = (mix ^ mix >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mix = (mix ^ mix >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mix ^= mix >> 31;
    (0..1000).map(move |n| Guid(ASSIGNED | mix.wrapping_add(n) & ASSIGNED_BITS))
}
