//! What was apart from us since the last sweep: a link that carried data then and is in INIT now fell in between, and whatever hangs
//! together with us by such links alone was apart. A manager there may have taken over its part, written tables and taken
//! registrations, though by now it says nothing of that.
//!
//! Pure. Cost: O(links · log nodes).

use std::collections::{BTreeMap, BTreeSet};

use mad::types::{Guid, PortState};
use mad::wire::smp::PortInfo;
use routing::fabric::PortRef;

use crate::observed::Observed;
use crate::plan::own_end;

/// Whether a manager that is met now, or was before, was apart from us together with any other node. A host alone is no
/// fabric to take over; who was not in the picture before is read from nothing in any case.
pub(super) fn managers_were_apart(before: &Observed, now: &Observed) -> bool {
    let managers: BTreeSet<Guid> = [before, now]
        .iter()
        .flat_map(|observed| observed.managers.iter().map(|m| observed.fabric.node(m.port.node).guid))
        .filter(|guid| before.fabric.find(*guid).is_some())
        .collect();
    if managers.is_empty() {
        return false;
    }
    let mut neighbours: BTreeMap<Guid, Vec<Guid>> = BTreeMap::new();
    for link in now.fabric.links().filter(|link| held(before, now, link.a) && held(before, now, link.b)) {
        let [a, b] = [link.a, link.b].map(|end| now.fabric.node(end.node).guid);
        neighbours.entry(a).or_default().push(b);
        neighbours.entry(b).or_default().push(a);
    }
    let own = now.fabric.node(own_end(now).node).guid;
    let (mut ours, mut next) = (BTreeSet::from([own]), vec![own]);
    while let Some(guid) = next.pop() {
        next.extend(neighbours.get(&guid).into_iter().flatten().filter(|guid| ours.insert(**guid)));
    }
    managers.iter().any(|manager| !ours.contains(manager) && neighbours.contains_key(manager))
}

/// Whether an end of a link has not lost it since: it was not there before, or did not fall back from carrying data.
fn held(before: &Observed, now: &Observed, end: PortRef) -> bool {
    let then = before.fabric.find(now.fabric.node(end.node).guid).map(|node| PortRef { node, ..end });
    let state = |observed: &Observed, end| observed.port_info(end).and_then(PortInfo::port_state);
    let carried = then.and_then(|end| state(before, end)) >= Some(PortState::Armed);
    !(carried && state(now, end) == Some(PortState::Init))
}
