//! Registrations as entries of the store: what changed, and how all are put back after a restart or a failover.
//!
//! An entry is laid out as the records of subnet administration are on the wire, with what these lack behind it; all
//! numbers are big-endian. A lease is kept as the moment of its end in UNIX time, so that it goes on while nobody runs.
//!
//! Cost: O(changes), and O(registrations · log) to put all back.

use mad::transport::{Address, GlobalRoute};
use mad::types::{Gid, Guid, QKey, Qpn, ServiceLevel, Timestamp};
use mad::wire::sa::{InformInfo, JoinState, McMemberRecord, ServiceRecord};
use mad::wire::smp::GuidInfo;
use zerocopy::big_endian::{U16, U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::groups::{Group, GroupTraits, Membership};
use super::services::Service;
use super::subscriptions::{Subscription, SubscriptionId};
use super::{Registry, member_record};
use crate::aliases::AliasBlock;
use crate::store::{Change, Entries, Epoch, Key, Kind, typed};

/// [`Kind::Group`], by MGID.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct GroupEntry {
    record: McMemberRecord,
    permanent: u8,
}

/// [`Kind::Member`], by MGID and the GUID of the PortGID. Earlier versions have no `port`: it is that GUID then.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct MemberEntry {
    port_gid: U128,
    join_state: u8,
    proxy: u8,
    port: U64,
}

/// [`Kind::Aliases`], by PortGUID and block; the entries are those of GUIDInfo.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct AliasEntry {
    guids: [U64; GuidInfo::PER_BLOCK],
}

/// [`Kind::Service`], by ServiceID, ServiceGID and ServiceP_Key.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct ServiceEntry {
    record: ServiceRecord,
    /// UNIX time in milliseconds; all ones for a lease without end.
    ends: U64,
    owner: U64,
}

/// [`Kind::Subscription`], by its number.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct SubscriptionEntry {
    port: U64,
    inform: InformInfo,
    lid: U16,
    qpn: U32,
    qkey: U32,
    sl: u8,
    path_bits: u8,
    pkey_index: U16,
    has_route: u8,
    gid: U128,
    gid_index: u8,
    hop_limit: u8,
    traffic_class: u8,
    flow_label: U32,
}

const NEVER: u64 = u64::MAX;

impl Registry {
    /// What changed since the last call.
    pub fn take_changes(&mut self, epoch: Epoch) -> Vec<Change> {
        let mut changes = Vec::new();
        for (mgid, member) in self.groups.take_changed() {
            let group = self.groups.get(mgid);
            changes.push(match member {
                None => Change { key: group_key(mgid), value: group.map(group_value) },
                Some(guid) => {
                    let membership = group.and_then(|group| group.members().get(&guid));
                    Change { key: member_key(mgid, guid), value: membership.map(member_value) }
                }
            });
        }
        for ((id, gid, pkey), service) in self.services.take_changed() {
            let key = [&id.to_be_bytes()[..], &gid.0.to_be_bytes(), &pkey.to_be_bytes()].concat();
            let value = service.map(|service| service_value(service, epoch));
            changes.push(Change { key: Key::new(Kind::Service, key), value });
        }
        for (id, subscription) in self.subscriptions.take_changed() {
            let key = Key::new(Kind::Subscription, id.0.to_be_bytes().to_vec());
            changes.push(Change { key, value: subscription.map(subscription_value) });
        }
        for (port, block) in self.aliases.take_changed() {
            let value = alias_value(&self.aliases.table().block(port, block));
            changes.push(Change { key: alias_key(port, block), value: Some(value) });
        }
        changes
    }

    /// Replaces everything by what was kept. Entries of other kinds are passed over; leases that ended meanwhile end at
    /// once. Returns how many entries could not be used.
    pub fn restore(&mut self, entries: &Entries, epoch: Epoch, now: Timestamp) -> usize {
        *self =
            Self { groups: self.groups.successor(), aliases: self.aliases.successor(), ..Self::default() };
        // In order of kinds: groups come before their members.
        let refused = entries.iter().filter(|(key, value)| self.put_back(key, value, epoch) == Some(false));
        let refused = refused.count();
        if let Some(served) = typed::served(entries) {
            self.groups.doubt(|port| served.contains(&port));
        }
        self.expire(now);
        refused
    }

    /// `None` for an entry that is none of ours, false for one that can't be used.
    fn put_back(&mut self, key: &Key, value: &[u8], epoch: Epoch) -> Option<bool> {
        Some(match key.kind {
            Kind::Group => group_of(value).is_some_and(|group| self.groups.restore_group(group)),
            Kind::Member => member_of(&key.id, value)
                .is_some_and(|(mgid, guid, member)| self.groups.restore_member(mgid, guid, member)),
            Kind::Service => service_of(value, epoch).map(|service| self.services.insert(service)).is_some(),
            Kind::Subscription => subscription_of(&key.id, value)
                .map(|(id, subscription)| self.subscriptions.insert(id, subscription))
                .is_some(),
            Kind::Aliases => aliases_of(&key.id, value)
                .is_some_and(|(port, block, guids)| self.aliases.restore(port, block, guids)),
            _ => return None,
        })
    }
}

fn group_key(mgid: Gid) -> Key {
    Key::new(Kind::Group, mgid.0.to_be_bytes().to_vec())
}

fn member_key(mgid: Gid, guid: Guid) -> Key {
    Key::new(Kind::Member, [&mgid.0.to_be_bytes()[..], &guid.0.to_be_bytes()].concat())
}

fn group_value(group: &Group) -> Vec<u8> {
    let entry =
        GroupEntry { record: member_record::record(group, None), permanent: u8::from(group.permanent) };
    entry.as_bytes().to_vec()
}

fn group_of(value: &[u8]) -> Option<Group> {
    let GroupEntry { record, permanent } = GroupEntry::read_from_bytes(value).ok()?;
    let traits = GroupTraits {
        qkey: record.qkey(),
        mtu: record.mtu()?,
        tclass: record.tclass,
        pkey: record.pkey(),
        rate: record.rate()?,
        lifetime: record.packet_life_time(),
        sl: record.sl() as u8,
        flow_label: record.flow_label(),
        hop_limit: record.hop_limit() as u8,
    };
    Some(Group::restored(record.mgid(), record.mlid()?, traits, permanent != 0))
}

fn member_value(member: &Membership) -> Vec<u8> {
    let Membership { port, join_state, gid, proxy } = *member;
    let entry = MemberEntry {
        port_gid: U128::new(gid.0),
        join_state: join_state.0,
        proxy: u8::from(proxy),
        port: U64::new(port.0),
    };
    entry.as_bytes().to_vec()
}

fn member_of(id: &[u8], value: &[u8]) -> Option<(Gid, Guid, Membership)> {
    let (mgid, rest) = U128::read_from_prefix(id).ok()?;
    let guid = U64::read_from_bytes(rest).ok()?;
    let mut whole = value.to_vec();
    if value.len() + size_of::<U64>() == size_of::<MemberEntry>() {
        whole.extend(guid.as_bytes());
    }
    let entry = MemberEntry::read_from_bytes(&whole).ok()?;
    let member = Membership {
        port: Guid(entry.port.get()),
        join_state: JoinState(entry.join_state),
        gid: Gid(entry.port_gid.get()),
        proxy: entry.proxy != 0,
    };
    Some((Gid(mgid.get()), Guid(guid.get()), member))
}

fn alias_key(port: Guid, block: u8) -> Key {
    Key::new(Kind::Aliases, [&port.0.to_be_bytes()[..], &[block]].concat())
}

fn alias_value(guids: &AliasBlock) -> Vec<u8> {
    AliasEntry { guids: guids.map(|guid| U64::new(guid.0)) }.as_bytes().to_vec()
}

fn aliases_of(id: &[u8], value: &[u8]) -> Option<(Guid, u8, AliasBlock)> {
    let (port, rest) = U64::read_from_prefix(id).ok()?;
    let &[block] = rest else { return None };
    let entry = AliasEntry::read_from_bytes(value).ok()?;
    Some((Guid(port.get()), block, entry.guids.map(|guid| Guid(guid.get()))))
}

fn service_value(service: &Service, epoch: Epoch) -> Vec<u8> {
    let ends = service.ends.map_or(NEVER, |at| epoch.to_unix_ms(at));
    let entry =
        ServiceEntry { record: service.record, ends: U64::new(ends), owner: U64::new(service.owner.0) };
    entry.as_bytes().to_vec()
}

fn service_of(value: &[u8], epoch: Epoch) -> Option<Service> {
    let entry = ServiceEntry::read_from_bytes(value).ok()?;
    let ends = entry.ends.get();
    let ends = (ends != NEVER).then(|| epoch.from_unix_ms(ends));
    Some(Service { record: entry.record, ends, owner: Guid(entry.owner.get()) })
}

fn subscription_value(subscription: &Subscription) -> Vec<u8> {
    let address = &subscription.address;
    let route = address.grh;
    let entry = SubscriptionEntry {
        port: U64::new(subscription.port.0),
        inform: subscription.inform,
        lid: U16::new(address.lid),
        qpn: U32::new(address.qpn.0),
        qkey: U32::new(address.qkey.0),
        sl: address.sl.0,
        path_bits: address.path_bits,
        pkey_index: U16::new(address.pkey_index),
        has_route: u8::from(route.is_some()),
        gid: U128::new(route.map_or(0, |r| r.gid.0)),
        gid_index: route.map_or(0, |r| r.gid_index),
        hop_limit: route.map_or(0, |r| r.hop_limit),
        traffic_class: route.map_or(0, |r| r.traffic_class),
        flow_label: U32::new(route.map_or(0, |r| r.flow_label)),
    };
    entry.as_bytes().to_vec()
}

fn subscription_of(id: &[u8], value: &[u8]) -> Option<(SubscriptionId, Subscription)> {
    let number = U64::read_from_bytes(id).ok()?;
    let entry = SubscriptionEntry::read_from_bytes(value).ok()?;
    let route = GlobalRoute {
        gid: Gid(entry.gid.get()),
        gid_index: entry.gid_index,
        hop_limit: entry.hop_limit,
        traffic_class: entry.traffic_class,
        flow_label: entry.flow_label.get(),
    };
    let address = Address {
        lid: entry.lid.get(),
        qpn: Qpn(entry.qpn.get()),
        qkey: QKey(entry.qkey.get()),
        sl: ServiceLevel(entry.sl),
        path_bits: entry.path_bits,
        pkey_index: entry.pkey_index.get(),
        grh: (entry.has_route != 0).then_some(route),
    };
    let port = Guid(entry.port.get());
    let subscription =
        Subscription { address, port, inform: entry.inform, since: Timestamp::ZERO, silent_since: None };
    Some((SubscriptionId(number.get()), subscription))
}

#[cfg(test)]
mod tests;
