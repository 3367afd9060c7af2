//! Multicast groups and their members (specification volume 1, 15.2.5.17 and 18.2.4.3; C15-0.1.24 ff.).
//!
//! Counts are never kept beside the member lists, so they can't part from them (B31). Joins are answered from this state
//! at once; trees are planned from it later, in batches (B38).
//!
//! Cost: O(log groups + log members) for a join or leave.

use std::collections::{BTreeMap, BTreeSet};

use mad::types::{Gid, Guid, Mtu, MulticastLid, PKey, QKey, Rate, Timestamp};
use mad::wire::Status;
use mad::wire::sa::JoinState;

use super::doubted::Doubted;
use crate::multicast::{DemandedGroup, MulticastDemand};
use crate::sa::selector::Bound;
use crate::sm::Told;
use crate::snapshot::{EndPort, Snapshot};

/// Part of a port in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    /// PortGUID of the port; a member is known by the GUID of the PortGID that it joined with, which may be an alias.
    pub port: Guid,
    /// How it takes part.
    pub join_state: JoinState,
    /// The port's GID as it joined with.
    pub gid: Gid,
    /// Whether another port joined for it.
    pub proxy: bool,
}

/// The properties that all members of a group share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupTraits {
    /// Q_Key.
    pub qkey: QKey,
    /// MTU of the group's packets.
    pub mtu: Mtu,
    /// Traffic class.
    pub tclass: u8,
    /// P_Key.
    pub pkey: PKey,
    /// Rate of the group's packets.
    pub rate: Rate,
    /// PacketLifeTime: 4.096 µs · 2^n.
    pub lifetime: u8,
    /// Service level.
    pub sl: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Hop limit.
    pub hop_limit: u8,
}

/// A multicast group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// MGID.
    pub mgid: Gid,
    /// MLID.
    pub mlid: MulticastLid,
    /// What its members share.
    pub traits: GroupTraits,
    /// Whether it stays without members.
    pub permanent: bool,
    members: BTreeMap<Guid, Membership>,
}

impl Group {
    /// A group that is put back, without members yet.
    pub(super) const fn restored(
        mgid: Gid,
        mlid: MulticastLid,
        traits: GroupTraits,
        permanent: bool,
    ) -> Self {
        Self { mgid, mlid, traits, permanent, members: BTreeMap::new() }
    }

    /// Members by the GUIDs of the PortGIDs that they joined with.
    pub const fn members(&self) -> &BTreeMap<Guid, Membership> {
        &self.members
    }

    /// Whether a member keeps the group alive.
    pub fn is_alive(&self) -> bool {
        self.members.values().any(|member| member.join_state.is_full())
    }
}

/// A request to join or leave, with what its component mask names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemberRequest {
    /// MGID; zero asks for one to be made.
    pub mgid: Gid,
    /// The port that joins.
    pub port_gid: Gid,
    /// How.
    pub join_state: JoinState,
    /// Q_Key.
    pub qkey: Option<QKey>,
    /// MLID, raw.
    pub mlid: Option<u16>,
    /// Bound of the MTU.
    pub mtu: Option<Bound<Mtu>>,
    /// Traffic class.
    pub tclass: Option<u8>,
    /// P_Key.
    pub pkey: Option<PKey>,
    /// Bound of the rate.
    pub rate: Option<Bound<Rate>>,
    /// Bound of the packet lifetime.
    pub lifetime: Option<Bound<u8>>,
    /// Service level.
    pub sl: Option<u8>,
    /// Flow label.
    pub flow_label: Option<u32>,
    /// Hop limit.
    pub hop_limit: Option<u8>,
    /// Scope, for a group whose MGID is to be made.
    pub scope: Option<u8>,
}

/// What became of a group, for subscribers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupEvent {
    /// Its first full member came (trap 66); with its P_Key.
    Created(Gid, PKey),
    /// Its last full member left (trap 67).
    Deleted(Gid, PKey),
}

/// All groups.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    by_mgid: BTreeMap<Gid, Group>,
    by_mlid: BTreeMap<MulticastLid, Gid>,
    generation: u64,
    events: Vec<GroupEvent>,
    made: u32,
    /// Groups, and members of them, that changed since they were last taken for the store.
    changed: BTreeSet<(Gid, Option<Guid>)>,
    /// [`Told::doubts`] as it was last heard.
    doubts: u32,
    doubted: Doubted,
}

impl Groups {
    /// Counts up with each change of members or groups.
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// The groups in order of MGID.
    pub fn iter(&self) -> impl Iterator<Item = &Group> {
        self.by_mgid.values()
    }

    /// The group with this MGID.
    pub fn get(&self, mgid: Gid) -> Option<&Group> {
        self.by_mgid.get(&mgid)
    }

    /// The groups with members, for the switches.
    pub fn demand(&self) -> MulticastDemand {
        let members = |group: &Group| {
            // A port may be a member by several GUIDs: it receives when one of them does.
            let mut ports: BTreeMap<Guid, bool> = BTreeMap::new();
            for member in group.members.values() {
                *ports.entry(member.port).or_default() |= member.join_state.receives();
            }
            ports.into_iter().collect()
        };
        let groups = self.by_mlid.iter().filter_map(|(mlid, mgid)| {
            let group = self.by_mgid.get(mgid).filter(|group| !group.members.is_empty())?;
            Some(DemandedGroup { mlid: *mlid, members: members(group), sl: group.traits.sl })
        });
        MulticastDemand { generation: self.generation, groups: groups.collect() }
    }

    /// What happened since the last call.
    pub fn take_events(&mut self) -> Vec<GroupEvent> {
        std::mem::take(&mut self.events)
    }

    /// Makes a group that stays without members, such as an IPoIB broadcast group. Nothing happens when it is there.
    ///
    /// # Errors
    /// NO_RESOURCES when no MLID below `mlids` (entries of the smallest multicast table) is free.
    pub fn create_permanent(&mut self, mgid: Gid, traits: GroupTraits, mlids: u16) -> Result<(), Status> {
        if let Some(group) = self.by_mgid.get_mut(&mgid) {
            if !std::mem::replace(&mut group.permanent, true) {
                self.changed.insert((mgid, None));
            }
            return Ok(());
        }
        let mlid = self.free_mlid(None, mlids)?;
        self.insert(Group { mgid, mlid, traits, permanent: true, members: BTreeMap::new() });
        Ok(())
    }

    /// Lets permanent groups other than these end with their last member, and those without any at once.
    pub fn release_permanent(&mut self, wanted: &BTreeSet<Gid>) {
        let released = |group: &&Group| group.permanent && !wanted.contains(&group.mgid);
        let mgids: Vec<Gid> = self.by_mgid.values().filter(released).map(|group| group.mgid).collect();
        for mgid in mgids {
            let Some(group) = self.by_mgid.get_mut(&mgid) else { continue };
            group.permanent = false;
            let (mlid, alive) = (group.mlid, group.is_alive());
            if !alive {
                self.by_mgid.remove(&mgid);
                self.by_mlid.remove(&mlid);
            }
            self.changed.insert((mgid, None));
            self.generation += 1;
        }
    }

    /// Joins a port, and makes the group when it isn't there. Returns the group and the membership as they are now.
    ///
    /// # Errors
    /// The status that the specification gives.
    pub fn join(
        &mut self,
        snapshot: &Snapshot,
        requester: &EndPort,
        request: &MemberRequest,
    ) -> Result<(&Group, Membership), Status> {
        let port = member_port(snapshot, request.port_gid)?;
        if request.join_state.is_empty() {
            return Err(Status::SA_REQ_INVALID);
        }
        let mut mgid = request.mgid;
        match self.by_mgid.get(&mgid) {
            Some(group) => group.admits(requester, port, request)?,
            None => mgid = self.create(snapshot, requester, port, request)?,
        }
        // Present: it was found above, or `create` has just made it.
        let Some(group) = self.by_mgid.get_mut(&mgid) else { return Err(Status::SA_NO_RESOURCES) };
        let was_alive = group.is_alive();
        let guid = request.port_gid.guid();
        let joined = Membership {
            port: port.guid,
            join_state: request.join_state,
            gid: request.port_gid,
            proxy: requester.end != port.end,
        };
        let member = group.members.entry(guid).or_insert(joined);
        let before = *member;
        member.join_state.0 |= request.join_state.0;
        member.proxy &= joined.proxy;
        let membership = *member;
        self.doubted.confirm((mgid, guid), request.join_state, membership.join_state);
        if before != membership || before == joined {
            self.generation += 1;
            self.changed.insert((mgid, Some(guid)));
        }
        if !was_alive && group.is_alive() {
            self.events.push(GroupEvent::Created(mgid, group.traits.pkey));
        }
        Ok((group, membership))
    }

    /// Takes kinds of membership from a port; with the last full member the group goes, and all that are left in it.
    /// Returns the group as it was and what is left of the membership.
    ///
    /// # Errors
    /// REQ_INVALID when the port isn't a member in all these ways; REQ_DENIED when it joined itself and another asks, or one
    /// that shares no partition with it.
    pub fn leave(
        &mut self,
        snapshot: &Snapshot,
        requester: &EndPort,
        request: &MemberRequest,
    ) -> Result<(Group, Membership), Status> {
        let port = member_port(snapshot, request.port_gid)?;
        let group = self.by_mgid.get_mut(&request.mgid).ok_or(Status::SA_REQ_INVALID)?;
        let guid = request.port_gid.guid();
        let member = group.members.get(&guid).copied().ok_or(Status::SA_REQ_INVALID)?;
        let proxy = requester.end != port.end;
        if proxy && (!member.proxy || !requester.shares_partition(port)) {
            return Err(Status::SA_REQ_DENIED);
        }
        let state = request.join_state;
        if state.is_empty() || state.0 & !member.join_state.0 != 0 {
            return Err(Status::SA_REQ_INVALID);
        }
        let before = group.clone();
        let left = Membership { join_state: JoinState(member.join_state.0 & !state.0), ..member };
        self.set_membership(request.mgid, guid, left);
        Ok((before, left))
    }

    /// Takes a port out of all groups, since it is gone for good.
    pub fn remove_port(&mut self, port: Guid) {
        let mut of_port = Vec::new();
        for group in self.by_mgid.values() {
            let members = group.members.iter().filter(|(_, member)| member.port == port);
            of_port.extend(members.map(|(guid, member)| (group.mgid, *guid, *member)));
        }
        for (mgid, guid, member) in of_port {
            self.set_membership(mgid, guid, Membership { join_state: JoinState(0), ..member });
        }
    }

    /// The memberships of ports that are not `vouched` for may have ended unseen.
    pub(super) fn doubt(&mut self, vouched: impl Fn(Guid) -> bool) {
        for group in self.by_mgid.values() {
            // Whoever joined others is not the one that is told.
            let own = group.members.iter().filter(|(_, member)| !member.proxy && !vouched(member.port));
            own.for_each(|(guid, member)| self.doubted.add((group.mgid, *guid), member.port));
        }
    }

    /// Takes note of who was told to register anew.
    pub(in crate::sa) fn note_told(&mut self, told: &Told, now: Timestamp) {
        let before = std::mem::replace(&mut self.doubts, told.doubts);
        if told.doubts != before {
            let is_new = |number: &u32| *number > before;
            let all = is_new(&told.of_all);
            self.doubt(|port| !all && !told.of_port.get(&port).is_some_and(is_new));
        }
        self.doubted.told(&told.ports, now);
    }

    /// Ends, as by a leave, what ports have not confirmed in time.
    pub(super) fn end_doubts(&mut self, now: Timestamp) {
        for ((mgid, guid), confirmed) in self.doubted.take_due(now) {
            let member = self.by_mgid.get(&mgid).and_then(|group| group.members.get(&guid)).copied();
            if let Some(member) = member {
                let left = Membership { join_state: JoinState(member.join_state.0 & confirmed.0), ..member };
                self.set_membership(mgid, guid, left);
            }
        }
    }

    /// When [`Groups::end_doubts`] has something to do.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.doubted.deadline()
    }

    /// Whether a GUID is a member of any group.
    pub fn has_member(&self, guid: Guid) -> bool {
        self.by_mgid.values().any(|group| group.members.contains_key(&guid))
    }

    /// Sets what is left of a membership, and removes the member and the group where nothing is.
    fn set_membership(&mut self, mgid: Gid, guid: Guid, left: Membership) {
        let Some(group) = self.by_mgid.get_mut(&mgid) else { return };
        let was_alive = group.is_alive();
        if left.join_state.is_empty() {
            group.members.remove(&guid);
            self.doubted.remove((mgid, guid));
        } else {
            group.members.insert(guid, left);
        }
        self.generation += 1;
        self.changed.insert((mgid, Some(guid)));
        if group.is_alive() {
            return;
        }
        self.changed.extend(group.members.keys().map(|member| (mgid, Some(*member))));
        group.members.keys().for_each(|member| self.doubted.remove((mgid, *member)));
        group.members.clear();
        if was_alive {
            self.events.push(GroupEvent::Deleted(mgid, group.traits.pkey));
        }
        if !group.permanent {
            let mlid = group.mlid;
            self.by_mgid.remove(&mgid);
            self.by_mlid.remove(&mlid);
            self.changed.insert((mgid, None));
        }
    }

    /// What changed since the last call: groups, and members of groups.
    pub(super) fn take_changed(&mut self) -> BTreeSet<(Gid, Option<Guid>)> {
        std::mem::take(&mut self.changed)
    }

    /// Puts back a group as it was kept; false when its MGID or its MLID is taken.
    pub(super) fn restore_group(&mut self, group: Group) -> bool {
        if self.by_mgid.contains_key(&group.mgid) || self.by_mlid.contains_key(&group.mlid) {
            return false;
        }
        self.by_mlid.insert(group.mlid, group.mgid);
        self.by_mgid.insert(group.mgid, group);
        true
    }

    /// Puts back a member; false when there is no such group, or it has no part in it.
    pub(super) fn restore_member(&mut self, mgid: Gid, guid: Guid, member: Membership) -> bool {
        let Some(group) = self.by_mgid.get_mut(&mgid).filter(|_| !member.join_state.is_empty()) else {
            return false;
        };
        group.members.insert(guid, member);
        true
    }

    /// Empty groups after these of another registry: generations go on, so that nobody takes the new ones for the old.
    pub(super) fn successor(&self) -> Self {
        let (generation, made, doubts) = (self.generation + 1, self.made, self.doubts);
        Self { generation, made, doubts, ..Self::default() }
    }

    fn insert(&mut self, group: Group) {
        self.by_mlid.insert(group.mlid, group.mgid);
        self.changed.insert((group.mgid, None));
        self.by_mgid.insert(group.mgid, group);
        self.generation += 1;
    }

    /// Makes the group that a join asks for; returns its MGID.
    fn create(
        &mut self,
        snapshot: &Snapshot,
        requester: &EndPort,
        port: &EndPort,
        request: &MemberRequest,
    ) -> Result<Gid, Status> {
        if !request.join_state.is_full() {
            return Err(Status::SA_REQ_INVALID);
        }
        let traits = self.traits_of(snapshot, requester, port, request)?;
        let mlids = snapshot.multicast_capacity();
        if self.alone(port, requester.end != port.end) >= usize::from(mlids / SHARE).max(1) {
            return Err(Status::SA_NO_RESOURCES);
        }
        let mgid = if request.mgid == Gid(0) {
            self.make_mgid(snapshot, request.scope.unwrap_or(LINK_LOCAL))
        } else {
            check_mgid(request.mgid)?;
            request.mgid
        };
        let mlid = self.free_mlid(request.mlid.filter(|raw| *raw != 0), mlids)?;
        self.insert(Group { mgid, mlid, traits, permanent: false, members: BTreeMap::new() });
        Ok(mgid)
    }

    /// Groups that are there for one port alone, which joined itself, or by proxy: for no port that asked for itself.
    fn alone(&self, port: &EndPort, by_proxy: bool) -> usize {
        let counts = |member: &Membership| member.proxy == by_proxy && (by_proxy || member.port == port.guid);
        let groups = self.by_mgid.values().filter(|group| !group.permanent);
        groups.filter(|group| group.members.values().all(counts)).count()
    }

    /// The properties of a new group: what the request names, as far as the port can do it.
    fn traits_of(
        &self,
        snapshot: &Snapshot,
        requester: &EndPort,
        port: &EndPort,
        request: &MemberRequest,
    ) -> Result<GroupTraits, Status> {
        let (Some(qkey), Some(tclass), Some(pkey), Some(flow_label), Some(sl)) =
            (request.qkey, request.tclass, request.pkey, request.flow_label, request.sl)
        else {
            return Err(Status::SA_INSUFFICIENT_COMPONENTS);
        };
        if !port.has_partition(pkey) || !requester.shares_partition(port) {
            return Err(Status::SA_REQ_INVALID);
        }
        let most = port.limits();
        let broadcast = self.broadcast_group(request.mgid)?;
        // Of IPoIB those of the broadcast group: a group with smaller ones is of no use to its other hosts.
        let (mtu, rate) =
            broadcast.map_or((most.mtu, most.rate), |group| (group.traits.mtu, group.traits.rate));
        if most.mtu < mtu || most.rate < rate {
            return Err(Status::SA_REQ_INVALID);
        }
        let mtu = request.mtu.map_or(Some(mtu), |bound| bound.mtu(mtu));
        let rate = request.rate.map_or(Some(rate), |bound| bound.rate_at_most(rate));
        let lifetime = match request.lifetime {
            Some(Bound::Exactly(lifetime)) => lifetime,
            Some(bound) if !bound.lifetime(snapshot.sm.subnet_timeout) => return Err(Status::SA_REQ_INVALID),
            Some(_) | None => snapshot.sm.subnet_timeout,
        };
        let traits = GroupTraits {
            qkey,
            mtu: mtu.ok_or(Status::SA_REQ_INVALID)?,
            tclass,
            pkey,
            rate: rate.ok_or(Status::SA_REQ_INVALID)?,
            lifetime,
            sl,
            flow_label,
            hop_limit: request.hop_limit.unwrap_or(0),
        };
        if broadcast.is_some_and(|group| !agree(&group.traits, &traits)) {
            return Err(Status::SA_REQ_INVALID);
        }
        Ok(traits)
    }

    /// The broadcast group of an IPoIB group's scope and partition, which has to be there (RFC 4391); `None` for other groups
    /// and for itself.
    fn broadcast_group(&self, mgid: Gid) -> Result<Option<&Group>, Status> {
        let broadcast = broadcast_of(mgid).filter(|broadcast| *broadcast != mgid);
        broadcast.map(|mgid| self.by_mgid.get(&mgid).ok_or(Status::SA_REQ_INVALID)).transpose()
    }

    /// An MLID that the smallest multicast table of the fabric has an entry for (B33): the one asked for, or the first free.
    fn free_mlid(&self, asked: Option<u16>, entries: u16) -> Result<MulticastLid, Status> {
        if let Some(raw) = asked {
            let mlid = MulticastLid::new(raw).filter(|mlid| mlid.index() < usize::from(entries));
            return mlid.filter(|mlid| !self.by_mlid.contains_key(mlid)).ok_or(Status::SA_REQ_INVALID);
        }
        // The first gap: the keys are in order, so the n-th key is MLID n until a gap comes.
        let used = self.by_mlid.keys().zip(0..).take_while(|(mlid, n)| mlid.index() == *n).count();
        let raw = u16::try_from(used).ok().filter(|index| *index < entries);
        raw.and_then(|index| MulticastLid::new(MulticastLid::MIN.get() + index))
            .ok_or(Status::SA_NO_RESOURCES)
    }

    /// An MGID that no group has: transient, of our own signature, with the subnet prefix and a counter.
    fn make_mgid(&mut self, snapshot: &Snapshot, scope: u8) -> Gid {
        loop {
            self.made = self.made.wrapping_add(1);
            let head = 0xff10_a01b_u128 | u128::from(scope & 0xf) << 16;
            let mgid = Gid(head << 96 | u128::from(snapshot.sm.gid_prefix) << 32 | u128::from(self.made));
            if !self.by_mgid.contains_key(&mgid) {
                return mgid;
            }
        }
    }
}

impl Group {
    /// Whether a port may join in the way that the request says.
    fn admits(&self, requester: &EndPort, port: &EndPort, request: &MemberRequest) -> Result<(), Status> {
        let own = &self.traits;
        let same = |asked: Option<u32>, is: u32| asked.is_none_or(|asked| asked == is);
        let named_agrees = same(request.qkey.map(|key| key.0), own.qkey.0)
            && same(request.tclass.map(u32::from), own.tclass.into())
            && same(request.sl.map(u32::from), own.sl.into())
            && same(request.flow_label, own.flow_label)
            && same(request.hop_limit.map(u32::from), own.hop_limit.into())
            && same(request.mlid.map(u32::from), self.mlid.get().into())
            && request.pkey.is_none_or(|key| key.matches(own.pkey))
            && request.mtu.is_none_or(|bound| bound.allows_mtu(own.mtu))
            && request.rate.is_none_or(|bound| bound.allows_rate(own.rate))
            && request.lifetime.is_none_or(|bound| bound.lifetime(own.lifetime));
        let most = port.limits();
        // B34: what counts is the MTU in force towards the neighbour, not what the port could do.
        let member = self.members.get(&request.port_gid.guid());
        let can = most.mtu >= own.mtu
            && most.rate >= own.rate
            && (member.is_some()
                || port.pkey_table.is_empty()
                || port.pkeys.iter().any(|key| key.matches(own.pkey)));
        if !named_agrees || !can || !requester.shares_partition(port) {
            return Err(Status::SA_REQ_INVALID);
        }
        let joined_itself = member.is_some_and(|member| !member.proxy);
        if joined_itself && requester.end != port.end {
            return Err(Status::SA_REQ_DENIED);
        }
        Ok(())
    }
}

const LINK_LOCAL: u8 = 2;

/// Whether an IPoIB group has what it has to have in common with its broadcast group (RFC 4391, 5).
fn agree(a: &GroupTraits, b: &GroupTraits) -> bool {
    let of = |traits: &GroupTraits| (traits.qkey, traits.pkey.base(), traits.sl, traits.mtu, traits.rate);
    of(a) == of(b)
}

/// Of the multicast LIDs there are, one port alone may take this part, and so may all that are joined by others: nobody can
/// take them all from the rest.
const SHARE: u16 = 4;

/// The port that a PortGID names: own or default prefix, else INVALID_GID (B41).
fn member_port(snapshot: &Snapshot, gid: Gid) -> Result<&EndPort, Status> {
    snapshot.port_by_gid(gid).ok_or(Status::SA_INVALID_GID)
}

/// The form of an MGID: multicast, no reserved flag, and of our own signature only beyond the link.
fn check_mgid(mgid: Gid) -> Result<(), Status> {
    let [first, flags_and_scope, a, b, ..] = mgid.0.to_be_bytes();
    let own_link_local = (a, b) == (0xa0, 0x1b) && flags_and_scope & 0xf == LINK_LOCAL;
    let fits = first == 0xff && flags_and_scope >> 4 <= 1 && !own_link_local;
    if fits { Ok(()) } else { Err(Status::SA_REQ_INVALID) }
}

/// The IPoIB broadcast group of the scope and partition of an IPoIB group (RFC 4391, 4 and 5); `None` for other groups.
fn broadcast_of(mgid: Gid) -> Option<Gid> {
    let bytes = mgid.0.to_be_bytes();
    matches!((bytes[2], bytes[3]), (0x40 | 0x60, 0x1b))
        .then(|| ipoib_broadcast(bytes[1] & 0xf, PKey(u16::from_be_bytes([bytes[4], bytes[5]]))))
}

/// MGID of the IPoIB broadcast group of a scope and partition.
pub const fn ipoib_broadcast(scope: u8, pkey: PKey) -> Gid {
    let head = 0xff10_401b_u128 | (scope as u128 & 0xf) << 16;
    Gid(head << 96 | (pkey.0 as u128 | 0x8000) << 80 | 0xffff_ffff)
}

#[cfg(test)]
mod tests;
