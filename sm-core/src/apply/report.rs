//! What applying tells afterwards.

use std::collections::BTreeMap;
use std::fmt;

use mad::types::{DirectedPath, Guid, PortNum};

use crate::plan::fields::FieldSet;

/// A Set that was not confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// NodeGUID.
    pub node: Guid,
    /// The node's name and GUID for messages.
    pub name: String,
    /// Its directed route.
    pub path: DirectedPath,
    /// Attribute, with port or block.
    pub attribute: String,
    /// What came instead of a confirmation.
    pub reason: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (route {}): Set of {}: {}", self.name, self.path, self.attribute, self.reason)
    }
}

/// Fields that a port answered differently from what it was set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotKept {
    /// NodeGUID.
    pub node: Guid,
    /// Its port.
    pub port: PortNum,
    /// The fields.
    pub fields: FieldSet,
}

/// Sets by attribute, repetitions not counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetCounts {
    by_attribute: BTreeMap<u16, u64>,
}

impl SetCounts {
    /// One more.
    pub fn add(&mut self, attribute_id: u16) {
        *self.by_attribute.entry(attribute_id).or_default() += 1;
    }

    /// All of another.
    pub fn merge(&mut self, other: &Self) {
        for (id, count) in &other.by_attribute {
            *self.by_attribute.entry(*id).or_default() += count;
        }
    }

    /// In all.
    pub fn total(&self) -> u64 {
        self.by_attribute.values().sum()
    }

    /// Of one attribute.
    pub fn of(&self, attribute_id: u16) -> u64 {
        self.by_attribute.get(&attribute_id).copied().unwrap_or(0)
    }

    /// By the attribute's name.
    pub fn named(&self) -> BTreeMap<String, u64> {
        let name = |id: u16| match id {
            0x0012 => "SwitchInfo".to_owned(),
            0x0014 => "GUIDInfo".to_owned(),
            0x0015 => "PortInfo".to_owned(),
            0x0016 => "P_KeyTable".to_owned(),
            0x0017 => "SLtoVLMappingTable".to_owned(),
            0x0018 => "VLArbitrationTable".to_owned(),
            0x0019 => "LinearForwardingTable".to_owned(),
            0x001b => "MulticastForwardingTable".to_owned(),
            other => format!("0x{other:04x}"),
        };
        self.by_attribute.iter().map(|(id, count)| (name(*id), *count)).collect()
    }
}
