//! What applying would send, without sending it: `rsm plan`. Every Set is taken as if it were confirmed as it is.

use std::sync::Arc;

use mad::types::{Guid, PortState};
use mad::wire::smp::{LinearForwardingTable, PortInfo, SwitchInfo};
use mad::wire::{Attribute, Method};
use serde::Serialize;

use super::{Apply, Ground};
use crate::observed::Observed;
use crate::plan::Plan;
use crate::plan::fields::{FieldSet, PortField};
use crate::request::{Answer, SmpRequest};

/// A Set that would be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedSet {
    /// Name and NodeGUID.
    pub node: String,
    /// NodeGUID.
    pub guid: Guid,
    /// Attribute, with its port or block.
    pub attribute: String,
    /// What it changes, in words.
    pub changes: String,
}

/// All Sets, in the order in which they would be sent.
pub fn preview(plan: Arc<Plan>, observed: Arc<Observed>, ground: Ground) -> Vec<PlannedSet> {
    let mut apply = Apply::new(plan, observed, ground);
    let mut sets = Vec::new();
    while let Some((request, job)) = apply.next_request() {
        if request.method == Method::SET {
            sets.push(describe(&apply, &request));
        }
        apply.answer(job, &Answer::Reply(request.data));
    }
    sets
}

fn describe(apply: &Apply, request: &SmpRequest) -> PlannedSet {
    let guid = request.destination;
    let node =
        apply.observed.fabric.find(guid).map_or_else(|| guid.to_string(), |id| apply.observed.name(id));
    let (attribute, changes) = match request.attribute_id {
        PortInfo::ID => {
            let port = request.modifier & 0xff;
            (format!("PortInfo of port {port}"), port_changes(apply, request, port as usize))
        }
        LinearForwardingTable::ID => {
            let block = request.modifier as usize;
            let old = apply.ground.tables.get(guid, block);
            let changed =
                request.data.iter().enumerate().filter(|(i, new)| old.is_none_or(|o| o[*i] != **new));
            (format!("LinearForwardingTable block {block}"), format!("{} entries", changed.count()))
        }
        SwitchInfo::ID => ("SwitchInfo".to_owned(), switch_changes(apply, request)),
        other => (format!("attribute {other:#06x}"), String::new()),
    };
    PlannedSet { node, guid, attribute, changes }
}

fn port_changes(apply: &Apply, request: &SmpRequest, port: usize) -> String {
    let old = apply
        .observed
        .fabric
        .find(request.destination)
        .and_then(|id| apply.observed.nodes.get(&id)?.ports.get(port)?.as_ref());
    let (Some(old), Some(new)) = (old, PortInfo::decode(&request.data)) else { return String::new() };
    let fields = FieldSet::difference(old, &new);
    let mut changes: Vec<String> = fields.iter().map(|f| in_words(f, old, &new)).collect();
    if let Some(state @ (PortState::Armed | PortState::Active)) = new.port_state() {
        changes.push(format!("state -> {state:?}"));
    }
    changes.join(", ")
}

/// A change of a field; a key is not told.
fn in_words(field: PortField, old: &PortInfo, new: &PortInfo) -> String {
    match field {
        PortField::MKey => "M_Key".to_owned(),
        _ => format!("{} {} -> {}", field.name(), field.get(old), field.get(new)),
    }
}

fn switch_changes(apply: &Apply, request: &SmpRequest) -> String {
    let id = apply.observed.fabric.find(request.destination);
    let old = id.and_then(|id| apply.observed.nodes.get(&id)?.switch_info);
    let (Some(old), Some(new)) = (old, SwitchInfo::decode(&request.data)) else { return String::new() };
    let mut changes = Vec::new();
    let mut note = |name: &str, from: u64, to: u64| {
        if from != to {
            changes.push(format!("{name} {from} -> {to}"));
        }
    };
    note("LinearFDBTop", old.linear_fdb_top.get().into(), new.linear_fdb_top.get().into());
    note("LifeTimeValue", old.life_time_value().into(), new.life_time_value().into());
    if old.port_state_change() != 0 {
        changes.push("PortStateChange cleared".to_owned());
    }
    changes.join(", ")
}
