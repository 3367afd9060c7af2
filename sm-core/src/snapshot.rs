//! The frozen picture that all answers come from: fabric, tables, and what the subnet manager says of itself. Swapped in
//! as a whole after the fabric was confirmed, so that LFT, SL and paths always belong together (B25, B47).

use std::collections::HashMap;
use std::sync::Arc;

use mad::types::{Gid, Guid, Lid};
use routing::fabric::{PortRef, SwitchGraph};
use routing::routes::Routes;

use crate::observed::Observed;

/// What the subnet manager says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmFacts {
    /// PortGUID of its port.
    pub guid: Guid,
    /// LID of its port.
    pub lid: Lid,
    /// Priority, 0 to 15.
    pub priority: u8,
    /// SMInfo state code: 0 not active, 1 discovering, 2 standby, 3 master.
    pub state: u8,
    /// SM_Key, shown to trusted requesters only.
    pub sm_key: u64,
    /// Subnet prefix of all GIDs.
    pub gid_prefix: u64,
    /// SubnetTimeOut and PacketLifeTime: 4.096 µs · 2^n.
    pub subnet_timeout: u8,
}

/// A frozen picture. Never changed once made.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Counts up with each new picture.
    pub generation: u64,
    /// Nodes, links and what they answered.
    pub observed: Arc<Observed>,
    /// The flat form of the same fabric.
    pub graph: Arc<SwitchGraph>,
    /// The tables as the switches confirmed them.
    pub routes: Arc<Routes>,
    /// The subnet manager itself.
    pub sm: SmFacts,
    by_lid: Vec<Option<PortRef>>,
    by_port_guid: HashMap<Guid, PortRef>,
}

impl Snapshot {
    /// Freezes a picture and indexes its end ports by LID and GUID.
    pub fn new(
        generation: u64,
        observed: Arc<Observed>,
        graph: Arc<SwitchGraph>,
        routes: Arc<Routes>,
        sm: SmFacts,
    ) -> Self {
        let mut by_lid = vec![None; usize::from(graph.top_lid()) + 1];
        let mut by_port_guid = HashMap::new();
        for (node, facts) in observed.fabric.nodes() {
            for (number, port) in facts.end_ports() {
                let end = PortRef { node, port: number };
                by_port_guid.insert(port.guid, end);
                let Some(lid) = port.lid else { continue };
                for slot in by_lid.iter_mut().skip(lid.index()).take(1 << port.lmc) {
                    *slot = Some(end);
                }
            }
        }
        Self { generation, observed, graph, routes, sm, by_lid, by_port_guid }
    }

    /// The end port that holds a LID (any of its 2^LMC LIDs).
    pub fn end_port(&self, lid: Lid) -> Option<PortRef> {
        self.by_lid.get(lid.index()).copied().flatten()
    }

    /// The end port with this PortGUID.
    pub fn port_by_guid(&self, guid: Guid) -> Option<PortRef> {
        self.by_port_guid.get(&guid).copied()
    }

    /// The end port with this GID: own or default prefix (B41).
    pub fn port_by_gid(&self, gid: Gid) -> Option<PortRef> {
        if gid.prefix() != self.sm.gid_prefix && gid.prefix() != Gid::DEFAULT_PREFIX {
            return None;
        }
        self.port_by_guid(gid.guid())
    }
}
