//! The unit of everything that is kept: a key, and bytes under it. Databases, etcd and standbys all move these and need
//! not know what they mean.

use std::collections::BTreeMap;
use std::fmt;

use mad::types::Timestamp;

/// What an entry is about. The numbers are part of the file format and of the protocol between managers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// LIDs of a port, by PortGUID.
    Lids = 1,
    /// PortInfo fields that a port doesn't keep, by NodeGUID and port number.
    NotKept = 2,
    /// A multicast group, by MGID.
    Group = 3,
    /// A member of a multicast group, by MGID and PortGUID.
    Member = 4,
    /// A service, by ServiceID, ServiceGID and ServiceP_Key.
    Service = 5,
    /// A subscription to notices, by number.
    Subscription = 6,
    /// Alias GUIDs of a port, by PortGUID and block.
    Aliases = 7,
    /// Keys that a port may hold and where it is, by PortGUID.
    MKey = 9,
    /// A port whose registrations are all among these entries, by PortGUID; under an empty identifier: that this is kept at all.
    Served = 10,
    /// How often a master changed the state, 8 bytes under an empty identifier: which of two copies is newer.
    Version = 8,
}

impl Kind {
    const ALL: [Self; 10] = [
        Self::Lids,
        Self::NotKept,
        Self::Group,
        Self::Member,
        Self::Service,
        Self::Subscription,
        Self::Aliases,
        Self::MKey,
        Self::Served,
        Self::Version,
    ];

    /// The kind with a number; `None` for one that a later version may have brought.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// What an entry is known by.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// What it is about.
    pub kind: Kind,
    /// The identifier within the kind, big-endian.
    pub id: Vec<u8>,
}

impl Key {
    /// A key.
    pub const fn new(kind: Kind, id: Vec<u8>) -> Self {
        Self { kind, id }
    }

    /// One byte for the kind, then the identifier: the order is that of [`Key`].
    pub fn to_bytes(&self) -> Vec<u8> {
        [&[self.kind as u8][..], &self.id].concat()
    }

    /// Back from [`Key::to_bytes`]; `None` for an unknown kind.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (kind, id) = bytes.split_first()?;
        Some(Self { kind: Kind::from_number(*kind)?, id: id.to_vec() })
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}:", self.kind)?;
        self.id.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// How often a master has changed these entries; 0 where that was never noted.
pub fn version(entries: &Entries) -> u64 {
    let noted = entries.get(&Key::new(Kind::Version, Vec::new()));
    noted.and_then(|value| <[u8; 8]>::try_from(&value[..]).ok()).map_or(0, u64::from_be_bytes)
}

/// The change that notes one more change.
pub fn next_version(entries: &Entries) -> Change {
    let next = version(entries).saturating_add(1);
    Change { key: Key::new(Kind::Version, Vec::new()), value: Some(next.to_be_bytes().to_vec()) }
}

/// All entries.
pub type Entries = BTreeMap<Key, Vec<u8>>;

/// A new value of an entry, or its end. Values may hold keys of others: they are never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Change {
    /// Which entry.
    pub key: Key,
    /// Its value; `None` when it is no more.
    pub value: Option<Vec<u8>>,
}

impl Change {
    /// Makes the change.
    pub fn apply_to(self, entries: &mut Entries) {
        match self.value {
            Some(value) => entries.insert(self.key, value),
            None => entries.remove(&self.key),
        };
    }
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{:?} = {} bytes", self.key, value.len()),
            None => write!(f, "{:?} removed", self.key),
        }
    }
}

/// The changes that lead from one set of entries to another.
pub fn difference(from: &Entries, to: &Entries) -> Vec<Change> {
    let removed = from.keys().filter(|key| !to.contains_key(*key));
    let removed = removed.map(|key| Change { key: key.clone(), value: None });
    let set = to.iter().filter(|(key, value)| from.get(*key) != Some(*value));
    removed.chain(set.map(|(key, value)| Change { key: key.clone(), value: Some(value.clone()) })).collect()
}

/// The UNIX time of [`Timestamp::ZERO`] in milliseconds: what makes moments of one run comparable with those of another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Epoch(pub u64);

impl Epoch {
    /// A moment of this run as UNIX time in milliseconds.
    pub const fn to_unix_ms(self, at: Timestamp) -> u64 {
        self.0.saturating_add(at.as_nanos() / 1_000_000)
    }

    /// UNIX time in milliseconds as a moment of this run; what lies before its start is the start.
    pub const fn from_unix_ms(self, unix: u64) -> Timestamp {
        Timestamp(unix.saturating_sub(self.0).saturating_mul(1_000_000))
    }
}
