//! What was counted, for those who watch: requests by attribute, and how much is registered.

use mad::wire::ids::sa as id;

use super::complaints::Complaint;
use super::server::{Server, ServerStatistics};

/// Attributes that are counted apart, with their names.
const COUNTED: [(u16, &str); 21] = [
    (id::CLASS_PORT_INFO, "ClassPortInfo"),
    (id::NOTICE, "Notice"),
    (id::INFORM_INFO, "InformInfo"),
    (id::NODE_RECORD, "NodeRecord"),
    (id::PORT_INFO_RECORD, "PortInfoRecord"),
    (id::SL_TO_VL_MAPPING_TABLE_RECORD, "SLtoVLMappingTableRecord"),
    (id::SWITCH_INFO_RECORD, "SwitchInfoRecord"),
    (id::LINEAR_FORWARDING_TABLE_RECORD, "LinearForwardingTableRecord"),
    (id::MULTICAST_FORWARDING_TABLE_RECORD, "MulticastForwardingTableRecord"),
    (id::SM_INFO_RECORD, "SMInfoRecord"),
    (id::LINK_RECORD, "LinkRecord"),
    (id::GUID_INFO_RECORD, "GUIDInfoRecord"),
    (id::SERVICE_RECORD, "ServiceRecord"),
    (id::PKEY_TABLE_RECORD, "P_KeyTableRecord"),
    (id::PATH_RECORD, "PathRecord"),
    (id::VL_ARBITRATION_TABLE_RECORD, "VLArbitrationTableRecord"),
    (id::MC_MEMBER_RECORD, "MCMemberRecord"),
    (id::TRACE_RECORD, "TraceRecord"),
    (id::MULTI_PATH_RECORD, "MultiPathRecord"),
    (id::INFORM_INFO_RECORD, "InformInfoRecord"),
    (0, "other"),
];

/// Answers by attribute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByAttribute([u64; COUNTED.len()]);

impl ByAttribute {
    /// Counts an answer.
    pub(super) fn count(&mut self, attribute: u16) {
        let place = COUNTED.iter().position(|(id, _)| *id == attribute).unwrap_or(COUNTED.len() - 1);
        self.0[place] += 1;
    }

    /// All attributes by name, those that nobody asked for included.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        COUNTED.iter().zip(&self.0).map(|((_, name), count)| (*name, *count))
    }
}

/// What subnet administration came to so far, and what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Counters.
    pub statistics: ServerStatistics,
    /// Answers by attribute, refusals included.
    pub answered: ByAttribute,
    /// Bad requests in the order of [`Complaint::ALL`].
    pub bad: [u64; Complaint::ALL.len()],
    /// Requests that wait for their answer.
    pub queued: usize,
    /// Multicast groups.
    pub groups: usize,
    /// Their members.
    pub members: usize,
    /// Services.
    pub services: usize,
    /// Subscriptions.
    pub subscriptions: usize,
    /// Alias GUIDs.
    pub aliases: usize,
}

impl Server {
    /// Cost: O(groups and registrations).
    pub fn figures(&self) -> Figures {
        let registry = self.registry();
        Figures {
            statistics: self.statistics(),
            answered: self.answered(),
            bad: Complaint::ALL.map(|kind| self.complaints(kind)),
            queued: self.queued(),
            groups: registry.groups.iter().count(),
            members: registry.groups.iter().map(|group| group.members().len()).sum(),
            services: registry.services.len(),
            subscriptions: registry.subscriptions.iter().count(),
            aliases: registry.aliases.table().iter().count(),
        }
    }
}
