//! LIDs, the fields that ports don't keep, M_Keys and the ports that are served as entries, and back; whether a store belongs to
//! this fabric.

use std::collections::BTreeSet;

use mad::types::{Guid, Lid, MKey, PortNum};

use super::entry::{Entries, Key, Kind};
use crate::apply::Quirks;
use crate::keys::{HeldKeys, KeyMemory};
use crate::observed::Observed;
use crate::plan::fields::FieldSet;
use crate::plan::lids::{LidMemory, LidRange};

/// Entries of [`Kind::Lids`]: base LID (2 bytes) and LMC by PortGUID.
pub fn lid_entries(memory: &LidMemory) -> Entries {
    let entry = |(guid, range): (&Guid, &LidRange)| {
        let [high, low] = range.base.get().to_be_bytes();
        (Key::new(Kind::Lids, guid.0.to_be_bytes().to_vec()), vec![high, low, range.lmc])
    };
    memory.iter().map(entry).collect()
}

/// Entries of [`Kind::NotKept`]: names of fields by NodeGUID and port.
pub fn quirk_entries(quirks: &Quirks) -> Entries {
    let entry = |(guid, port, fields): (Guid, PortNum, FieldSet)| {
        let id = [&guid.0.to_be_bytes()[..], &[port.0]].concat();
        (Key::new(Kind::NotKept, id), fields.to_string().into_bytes())
    };
    quirks.iter().map(entry).collect()
}

/// Entries of [`Kind::Served`].
pub fn served_entries(served: &BTreeSet<Guid>) -> Entries {
    let ids = served.iter().map(|guid| guid.0.to_be_bytes().to_vec());
    ids.chain([Vec::new()]).map(|id| (Key::new(Kind::Served, id), Vec::new())).collect()
}

/// The ports whose registrations are all in `entries`; `None` where that was never kept.
pub fn served(entries: &Entries) -> Option<BTreeSet<Guid>> {
    let mut ids = entries.keys().filter(|key| key.kind == Kind::Served).map(|key| &key.id[..]).peekable();
    ids.peek()?;
    Some(ids.filter_map(|id| Some(Guid(u64::from_be_bytes(id.try_into().ok()?)))).collect())
}

/// The entries without those that ports register anew when they are told to: groups, members, services, subscriptions. No
/// port is served by what is left.
pub fn without_registrations(entries: &Entries) -> Entries {
    let registered = [Kind::Group, Kind::Member, Kind::Service, Kind::Subscription, Kind::Served];
    let kept = entries.iter().filter(|(key, _)| !registered.contains(&key.kind));
    let kept = kept.map(|(key, value)| (key.clone(), value.clone()));
    kept.chain(served_entries(&BTreeSet::new())).collect()
}

/// The LIDs in `entries`; those that can't be meant, or overlap one before them, go to `complaints`.
pub fn lids(entries: &Entries, complaints: &mut Vec<String>) -> LidMemory {
    let mut memory = LidMemory::new();
    let mut taken = vec![Guid::NONE; Lid::MAX.index() + 1];
    for (key, value) in entries.iter().filter(|(key, _)| key.kind == Kind::Lids) {
        let (Ok(guid), [high, low, lmc]) = (<[u8; 8]>::try_from(&key.id[..]), &value[..]) else {
            complaints.push(format!("{key:?} has not the form of LIDs"));
            continue;
        };
        let guid = Guid(u64::from_be_bytes(guid));
        let lid = u16::from_be_bytes([*high, *low]);
        let range = Lid::new(lid).and_then(|base| LidRange::new(base, *lmc)).filter(|_| guid.is_some());
        let Some(range) = range else {
            complaints.push(format!("port {guid}: LID {lid} with LMC {lmc} can't be"));
            continue;
        };
        if let Some(lid) = range.indices().find(|lid| taken[*lid].is_some()) {
            complaints.push(format!("port {guid}: LID {lid} belongs to {} already", taken[lid]));
            continue;
        }
        range.indices().for_each(|lid| taken[lid] = guid);
        memory.insert(guid, range);
    }
    memory
}

/// The fields that ports don't keep in `entries`.
pub fn quirks(entries: &Entries, complaints: &mut Vec<String>) -> Quirks {
    let mut quirks = Quirks::default();
    for (key, value) in entries.iter().filter(|(key, _)| key.kind == Kind::NotKept) {
        let place = key
            .id
            .split_last()
            .and_then(|(port, guid)| Some((Guid(u64::from_be_bytes(guid.try_into().ok()?)), PortNum(*port))));
        let fields = std::str::from_utf8(value).ok().and_then(FieldSet::from_names);
        match (place, fields) {
            (Some((guid, port)), Some(fields)) => drop(quirks.add(guid, port, fields)),
            _ => complaints.push(format!("{key:?} has not the form of fields")),
        }
    }
    quirks
}

/// Entries of [`Kind::MKey`] by PortGUID: number of keys (1 byte), whether it is silent (1 byte), the keys, then NodeGUID and port at the other end of each
/// cable.
pub fn key_entries(memory: &KeyMemory) -> Entries {
    let entry = |(port, held): (&Guid, &HeldKeys)| {
        let mut value = vec![held.keys.len() as u8, held.silent.into()]; // a handful
        held.keys.iter().for_each(|key| value.extend(key.0.to_be_bytes()));
        for (node, port) in &held.at {
            value.extend(node.0.to_be_bytes());
            value.push(port.0);
        }
        (Key::new(Kind::MKey, port.0.to_be_bytes().to_vec()), value)
    };
    memory.iter().map(entry).collect()
}

/// The keys of ports in `entries`.
pub fn keys(entries: &Entries, complaints: &mut Vec<String>) -> KeyMemory {
    let mut memory = KeyMemory::new();
    for (key, value) in entries.iter().filter(|(key, _)| key.kind == Kind::MKey) {
        let port = <[u8; 8]>::try_from(&key.id[..]).map(|bytes| Guid(u64::from_be_bytes(bytes)));
        match port.ok().zip(held_keys(value)) {
            Some((port, held)) => drop(memory.insert(port, held)),
            None => complaints.push(format!("{key:?} has not the form of keys")),
        }
    }
    memory
}

fn held_keys(value: &[u8]) -> Option<HeldKeys> {
    let number = |bytes: &[u8]| Some(u64::from_be_bytes(bytes.try_into().ok()?));
    let ([count, silent], rest) = value.split_at_checked(2)? else { return None };
    let (keys, at) = rest.split_at_checked(usize::from(*count) * 8)?;
    let keys = keys.chunks_exact(8).map(|key| number(key).map(MKey)).collect::<Option<Vec<_>>>()?;
    let at = at.chunks(9).map(|place| {
        let (port, node) = place.split_last()?;
        Some((Guid(number(node)?), PortNum(*port)))
    });
    let at = at.collect::<Option<Vec<_>>>()?;
    Some(HeldKeys { keys, silent: *silent != 0, at })
}

/// Whether remembered LIDs are those of another fabric: of all ports that they are of, beside our own node's, none is
/// here, and there are some.
pub fn is_of_another_fabric(memory: &LidMemory, observed: &Observed) -> bool {
    let ports = |own: bool| {
        let nodes = observed.fabric.nodes().filter(move |(id, _)| (*id == observed.local.node) == own);
        nodes.flat_map(|(_, node)| node.end_ports().map(|(_, port)| port.guid))
    };
    let own: Vec<Guid> = ports(true).collect();
    let mut others = memory.keys().filter(|guid| !own.contains(guid)).peekable();
    others.peek().is_some() && !ports(false).any(|guid| memory.contains_key(&guid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_served_is_read_as_it_was_written_and_nobody_is_without_registrations() {
        assert_eq!(served(&Entries::new()), None, "never kept");
        for ports in [BTreeSet::new(), BTreeSet::from([Guid(1), Guid(u64::MAX)])] {
            let entries = served_entries(&ports);
            assert_eq!(served(&entries), Some(ports));
            assert_eq!(served(&without_registrations(&entries)), Some(BTreeSet::new()));
        }
    }

    #[test]
    fn keys_are_read_as_they_were_written_and_nothing_else_is_a_key() {
        let at = vec![(Guid(5), PortNum(3)), (Guid(6), PortNum(36))];
        let held = HeldKeys { keys: vec![MKey(1), MKey::NONE, MKey(u64::MAX)], silent: true, at };
        let memory = KeyMemory::from([(Guid(1), held), (Guid(2), HeldKeys::default())]);
        let mut complaints = Vec::new();
        let mut entries = key_entries(&memory);
        assert_eq!(keys(&entries, &mut complaints), memory);
        assert!(complaints.is_empty());
        entries.values_mut().for_each(|value| value.truncate(value.len() - 1));
        assert_eq!(keys(&entries, &mut complaints), KeyMemory::new());
        assert_eq!(complaints.len(), 2);
    }
}
