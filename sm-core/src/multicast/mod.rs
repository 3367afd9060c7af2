//! Multicast in the switches: from the groups that ports joined to the tables that carry their packets.
//!
//! [`MulticastDemand`] says who belongs to which group; [`plan`] makes a tree for each on the present picture;
//! [`MulticastApply`] reads what is not known of the tables, then sends the difference, first what takes ports away and
//! then what adds them, so that at no moment a packet runs in a circle (B29). Demands that come meanwhile merge into one:
//! a storm of joins costs one computation for each batch (B38).

mod apply;
mod known;
#[cfg(test)]
mod tests;

use mad::types::{Guid, MulticastLid};
use routing::multicast::{Member, MulticastTables, Planner};

pub use apply::{MftJob, MulticastApplied, MulticastApply};
pub use known::KnownMulticast;

use crate::snapshot::Snapshot;

/// A group that switches are to carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DemandedGroup {
    /// MLID.
    pub mlid: MulticastLid,
    /// PortGUIDs of its members, and whether each receives or only sends.
    pub members: Vec<(Guid, bool)>,
}

/// All groups with members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MulticastDemand {
    /// Differs from that of any other demand of the same run.
    pub generation: u64,
    /// The groups in order of MLID.
    pub groups: Vec<DemandedGroup>,
}

/// The tables for a demand. Members that are not in the picture are left out until they are back.
pub fn plan(snapshot: &Snapshot, demand: &MulticastDemand) -> MulticastTables {
    let mut planner = Planner::new(&snapshot.graph);
    let mut tables = MulticastTables::new(snapshot.graph.switch_count());
    for group in &demand.groups {
        let member = |(guid, receives): &(Guid, bool)| {
            let (switch, port) = snapshot.port_by_guid(*guid)?.attachment()?;
            Some(Member { switch, port, receives: *receives })
        };
        let members: Vec<Member> = group.members.iter().filter_map(member).collect();
        let tree = planner.tree(group.mlid, &members);
        if !tree.unreachable.is_empty() {
            tracing::warn!(mlid = %group.mlid, members = tree.unreachable.len(), "members can't be reached from the others");
        }
        tables.set_tree(group.mlid, &tree);
    }
    tables
}
