//! What steers engines and means nothing in a fabric: files that operators keep may name nodes that are down today, so it is
//! told and harms nothing.
//!
//! Cost: a search for each GUID that is given.

use std::collections::BTreeSet;

use mad::types::Guid;

use super::RoutingInput;
use crate::fabric::SwitchGraph;

impl RoutingInput {
    /// A line for each list that holds GUIDs of nothing that it is about, with their number and the first of them, and one
    /// for each list with ports that their switches don't have.
    pub fn unmeant(&self, graph: &SwitchGraph) -> Vec<String> {
        let hosts: BTreeSet<Guid> = graph.destinations().iter().filter(|d| d.host).map(|d| d.guid).collect();
        let weighed: BTreeSet<Guid> = self.hop_weights.keys().map(|(guid, _)| *guid).collect();
        let is_host = |guid: &Guid| hosts.contains(guid);
        let is_switch = |guid: &Guid| graph.find(*guid).is_some();
        let beyond = |guid: Guid, port: u8| graph.find(guid).is_some_and(|s| port > graph.num_ports(s));
        let mut weights = self.hop_weights.keys().map(|(guid, port)| (*guid, port.0));
        let mut order =
            self.port_order.iter().flat_map(|(guid, ports)| ports.iter().map(|port| (*guid, port.0)));
        [
            unknown("root", "a switch", self.root_guids.iter(), is_switch),
            unknown("id", "a switch", self.ids.keys(), is_switch),
            unknown("compute", "a host's port", self.compute_guids.iter(), is_host),
            unknown("I/O", "a host's port", self.io_guids.iter(), is_host),
            unknown("hop weight", "a switch", weighed.iter(), is_switch),
            unknown("port order", "a switch", self.port_order.keys(), is_switch),
            weights.find(|(guid, port)| beyond(*guid, *port)).map(|end| no_port("hop weights", end)),
            order.find(|(guid, port)| beyond(*guid, *port)).map(|end| no_port("port orders", end)),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

fn no_port(list: &str, (guid, port): (Guid, u8)) -> String {
    format!("the {list} name port {port} of switch {guid}, which has none of that number")
}

fn unknown<'a>(
    list: &str,
    what: &str,
    given: impl ExactSizeIterator<Item = &'a Guid>,
    is_there: impl Fn(&Guid) -> bool,
) -> Option<String> {
    let count = given.len();
    let mut missing = given.filter(|guid| !is_there(guid));
    let first = missing.next()?;
    let share = match missing.count() + 1 {
        all if all == count => format!("none of the {count} {list} GUIDs is"),
        some => format!("{some} of the {count} {list} GUIDs are not"),
    };
    Some(format!("{share} {what} of this fabric, first {first}"))
}
