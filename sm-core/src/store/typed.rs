//! LIDs and the fields that ports don't keep as entries, and back; whether a store belongs to this fabric.

use mad::types::{Guid, Lid, PortNum};

use super::entry::{Entries, Key, Kind};
use crate::apply::Quirks;
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
