//! End ports that no check covers, as they have no LID: whoever reads "right" has to know of them.

use std::fmt;

use routing::fabric::{Fabric, PortRef};
use serde::Serialize;

/// End ports without a LID that are linked to a switch, or are port 0 of one.
#[derive(Serialize)]
pub(super) struct WithoutLid {
    /// How many.
    ports: usize,
    /// The first of them in the topology.
    first: String,
}

impl WithoutLid {
    /// Those of a fabric, if there are any.
    pub(super) fn of(fabric: &Fabric) -> Option<Self> {
        let ends = fabric.nodes().flat_map(|(node, facts)| {
            let without = facts.end_ports().filter(|(_, port)| port.lid.is_none());
            without.map(move |(port, _)| PortRef { node, port })
        });
        let up = |end: PortRef| fabric.port(end).is_some_and(|port| port.state.is_up());
        let counts = |end: &PortRef| {
            fabric.node(end.node).is_switch()
                || fabric
                    .peer(*end)
                    .is_some_and(|far| fabric.node(far.node).is_switch() && up(far) && up(*end))
        };
        let mut ends = ends.filter(counts);
        let first = ends.next()?;
        let first = format!("\"{}\"[{}]", fabric.node(first.node).description, first.port);
        Some(Self { ports: 1 + ends.count(), first })
    }
}

impl fmt::Display for WithoutLid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ports have no LID and are not checked: the first is {}", self.ports, self.first)
    }
}
