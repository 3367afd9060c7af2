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
use routing::multicast::{self, MFT_BLOCK, Member, MulticastTables};
use routing::verify::Standing;
use routing::verify::multicast::Group;

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
    /// Service level of its packets, 0 to 15.
    pub sl: u8,
}

/// All groups with members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MulticastDemand {
    /// Differs from that of any other demand of the same run.
    pub generation: u64,
    /// The groups in order of MLID.
    pub groups: Vec<DemandedGroup>,
}

impl MulticastDemand {
    /// Blocks of a multicast table up to that of the last group.
    pub fn blocks(&self) -> u16 {
        self.groups.last().map_or(0, |group| group.mlid.index() as u16 / MFT_BLOCK + 1)
    }
}

/// The tables for a demand, beside the unicast tables in force; `proof` is what the verifier kept of these, if anything.
/// Members that are not in the picture are left out until they are back.
pub fn plan(snapshot: &Snapshot, demand: &MulticastDemand, proof: Option<&Standing>) -> MulticastTables {
    let group = |group: &DemandedGroup| {
        let member = |(guid, receives): &(Guid, bool)| {
            let (switch, port) = snapshot.port_by_guid(*guid)?.attachment()?;
            Some(Member { switch, port, receives: *receives })
        };
        let members = group.members.iter().filter_map(member).collect();
        Group { mlid: group.mlid, members, sl: group.sl }
    };
    let groups: Vec<Group> = demand.groups.iter().map(group).collect();
    let planned = multicast::plan(&snapshot.graph, &groups, &snapshot.routes, proof);
    for (mlid, members) in &planned.unreachable {
        tracing::warn!(%mlid, members = members.len(), "members can't be reached from the others");
    }
    for (mlid, found) in &planned.loops {
        tracing::warn!(%mlid, "no tree was found that closes no credit loop with unicast: {found}");
    }
    planned.tables
}
