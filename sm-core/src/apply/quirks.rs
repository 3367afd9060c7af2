//! Fields of PortInfo that a port was seen not to keep: a Set was answered with status 0 and another value. Such a field
//! is not asked for again, and is named once.

use std::collections::BTreeMap;

use mad::types::{Guid, PortNum};

use crate::plan::fields::FieldSet;

/// Fields not kept, by node GUID and port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quirks {
    by_port: BTreeMap<(Guid, PortNum), FieldSet>,
}

impl Quirks {
    /// The fields that a port does not keep.
    pub fn of(&self, node: Guid, port: PortNum) -> FieldSet {
        self.by_port.get(&(node, port)).copied().unwrap_or_default()
    }

    /// Remembers fields; returns those that are new.
    pub fn add(&mut self, node: Guid, port: PortNum, fields: FieldSet) -> FieldSet {
        if fields.is_empty() {
            return fields;
        }
        let known = self.by_port.entry((node, port)).or_default();
        let new = fields.without(*known);
        *known = known.and(fields);
        new
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (Guid, PortNum, FieldSet)> + '_ {
        self.by_port.iter().map(|((guid, port), fields)| (*guid, *port, *fields))
    }

    /// Number of ports with such fields.
    pub fn len(&self) -> usize {
        self.by_port.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_port.is_empty()
    }
}
