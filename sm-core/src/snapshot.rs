//! The frozen picture that all answers come from: fabric, tables, and what the subnet manager says of itself. Swapped in
//! as a whole after the fabric was confirmed, so that LFT, SL and paths always belong together (B25, B47).
//!
//! Cost: making one is linear in the ports of the fabric, a copy with other groups or aliases O(1); lookups by LID, PortGUID and GID are O(1).

mod links;

use std::collections::HashMap;
use std::sync::Arc;

use mad::types::{Gid, Guid, Lid, PKey};
use routing::fabric::{Fabric, PortRef, SwitchGraph, SwitchIndex};
use routing::multicast::MulticastTables;
use routing::routes::Routes;

pub use self::links::Limits;
use self::links::LinkTable;
use crate::aliases::AliasTable;
use crate::observed::Observed;
use crate::partitions::Partitions;
use crate::plan::lids::LidMemory;

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
    /// ActCount of the moment when this picture was made.
    pub act_count: u32,
    /// SM_Key, shown to trusted requesters only.
    pub sm_key: u64,
    /// Subnet prefix of all GIDs.
    pub gid_prefix: u64,
    /// SubnetTimeOut and PacketLifeTime: 4.096 µs · 2^n.
    pub subnet_timeout: u8,
}

/// A port with LIDs, and how it hangs on the fabric.
#[derive(Clone, Debug)]
pub struct EndPort {
    /// The port.
    pub end: PortRef,
    /// Base LID; 2^lmc LIDs belong to the port.
    pub lid: Lid,
    /// LMC.
    pub lmc: u8,
    /// PortGUID.
    pub guid: Guid,
    /// P_Keys in order of their index, invalid ones left out; empty where the table is not known.
    pub pkeys: Arc<[PKey]>,
    /// The same with every entry at its index.
    pub pkey_table: Arc<[PKey]>,
    /// The switch that the port is, or is attached to.
    switch: Option<SwitchIndex>,
    /// The exit port of that switch that leads here, 0 for the switch itself.
    port: u8,
    /// The far end of the port's cable.
    peer: Option<PortRef>,
    /// What the first hop from here lets through; `None` where its link is down.
    link: Option<Limits>,
    /// What the port itself can do.
    own: Limits,
}

impl EndPort {
    /// The LIDs of the port.
    pub fn lids(&self) -> impl Iterator<Item = Lid> + Clone + use<> {
        let base = self.lid.get();
        (0..1_u16 << self.lmc).filter_map(move |offset| Lid::new(base.saturating_add(offset)))
    }

    /// What the port can send at all: the MTU in force towards its neighbour (B34) and the rate of its link.
    pub fn limits(&self) -> Limits {
        self.link.filter(|_| !self.is_switch()).unwrap_or(self.own)
    }

    /// The switch that the port is attached to and its port that leads there; port 0 where the port is the switch itself.
    pub fn attachment(&self) -> Option<(SwitchIndex, u8)> {
        self.link.and(self.switch).map(|switch| (switch, self.port))
    }

    /// Whether this is port 0 of a switch.
    pub const fn is_switch(&self) -> bool {
        self.switch.is_some() && self.port == 0
    }

    /// A P_Key by which packets pass between the ports: `wanted`, or the first that fits. The membership bit plays no part
    /// in the comparison, but one of the two has to be a full member (B45). A port whose table is not known counts as a
    /// full member of every partition; one whose table is known to hold no key is in none.
    pub fn common_pkey(&self, other: &Self, wanted: Option<PKey>) -> Option<PKey> {
        let fits = |key: PKey| wanted.is_none_or(|wanted| wanted.base() == key.base());
        match (self.pkey_table.is_empty(), other.pkey_table.is_empty()) {
            (true, true) => Some(wanted.unwrap_or(PKey::DEFAULT_FULL)).filter(|key| key.is_valid()),
            (true, false) => other.pkeys.iter().copied().find(|key| fits(*key)),
            (false, true) => self.pkeys.iter().copied().find(|key| fits(*key)),
            (false, false) => self
                .pkeys
                .iter()
                .copied()
                .find(|key| fits(*key) && other.pkeys.iter().any(|theirs| key.matches(*theirs))),
        }
    }

    /// Whether the port is a member of a partition, full or limited; a port whose table is not known counts as one.
    pub fn has_partition(&self, key: PKey) -> bool {
        key.is_valid()
            && (self.pkey_table.is_empty() || self.pkeys.iter().any(|own| own.base() == key.base()))
    }

    /// Whether the ports have any partition in common.
    pub fn shares_partition(&self, other: &Self) -> bool {
        self.end == other.end || self.common_pkey(other, None).is_some()
    }
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
    /// The multicast tables that the switches confirmed.
    pub multicast: Arc<MulticastTables>,
    /// The partitions, with the groups that each is given.
    pub partitions: Arc<Partitions>,
    /// Alias GUIDs of ports.
    pub aliases: Arc<AliasTable>,
    /// All ports with a LID, sorted by LID.
    ends: Arc<[EndPort]>,
    multicast_capacity: u16,
    links: Arc<LinkTable>,
    by_lid: Arc<[u32]>,
    by_port_guid: Arc<HashMap<Guid, u32>>,
}

/// "No port" in [`Snapshot::by_lid`].
const NOBODY: u32 = u32::MAX;
/// Several ports hold it, as where two subnets were joined, or it is being handed on: who asks from there can't be told, and
/// asks again.
const SEVERAL: u32 = u32::MAX - 1;

impl Snapshot {
    /// Freezes a picture and indexes its end ports by LID and GUID.
    pub fn new(
        generation: u64,
        observed: Arc<Observed>,
        graph: Arc<SwitchGraph>,
        routes: Arc<Routes>,
        sm: SmFacts,
    ) -> Self {
        let links = LinkTable::new(&observed.fabric, &graph);
        let ends = end_ports(&observed, &graph);
        let top = ends.iter().map(|port| port.lid.index() + (1 << port.lmc)).max();
        let mut by_lid = vec![NOBODY; top.unwrap_or(0)];
        let mut by_port_guid = HashMap::with_capacity(ends.len());
        for (index, port) in ends.iter().enumerate() {
            by_port_guid.insert(port.guid, index as u32);
            for holder in &mut by_lid[port.lid.index()..port.lid.index() + (1 << port.lmc)] {
                *holder = if *holder == NOBODY { index as u32 } else { SEVERAL };
            }
        }
        let (multicast, partitions, aliases) = (Arc::default(), Arc::default(), Arc::default());
        Self {
            generation,
            graph,
            routes,
            sm,
            multicast,
            partitions,
            aliases,
            multicast_capacity: multicast_capacity(&observed.fabric),
            observed,
            ends: ends.into(),
            links: Arc::new(links),
            by_lid: by_lid.into(),
            by_port_guid: Arc::new(by_port_guid),
        }
    }

    /// The same with other P_Key tables of the end ports that are in `tables`.
    #[cfg(test)]
    #[must_use]
    pub(crate) fn with_pkeys(mut self, tables: &HashMap<PortRef, Vec<PKey>>) -> Self {
        for port in Arc::make_mut(&mut self.ends) {
            if let Some(table) = tables.get(&port.end) {
                port.pkeys = valid(table);
                port.pkey_table = table.as_slice().into();
            }
        }
        self
    }

    /// The same with other partitions.
    #[must_use]
    pub fn with_partitions(self, partitions: Arc<Partitions>) -> Self {
        Self { partitions, ..self }
    }

    /// The same with other multicast tables, those of the switches in the order of [`Snapshot::graph`].
    #[must_use]
    pub fn with_multicast(mut self, generation: u64, tables: Arc<MulticastTables>) -> Self {
        (self.generation, self.multicast) = (generation, tables);
        self
    }

    /// The same with other alias GUIDs.
    #[must_use]
    pub fn with_aliases(self, aliases: Arc<AliasTable>) -> Self {
        Self { aliases, ..self }
    }

    /// The same while LIDs are given to ports: those that another port holds by this picture are nobody's until the next one.
    /// `None` where there are none.
    #[must_use]
    pub fn while_given(&self, given: &LidMemory) -> Option<Self> {
        let all = given.iter().flat_map(|(guid, range)| range.indices().map(move |lid| (*guid, lid)));
        let holder = |lid: usize| self.ends.get(*self.by_lid.get(lid)? as usize);
        let handed_on = all.filter(|(guid, lid)| holder(*lid).is_some_and(|port| port.guid != *guid));
        let handed_on: Vec<usize> = handed_on.map(|(_, lid)| lid).collect();
        (!handed_on.is_empty()).then(|| {
            let mut by_lid = self.by_lid.to_vec();
            handed_on.into_iter().for_each(|lid| by_lid[lid] = SEVERAL);
            Self { by_lid: by_lid.into(), generation: self.generation + 1, ..self.clone() }
        })
    }

    /// Entries of the smallest multicast forwarding table; switches that say 0 have none and don't count.
    pub const fn multicast_capacity(&self) -> u16 {
        self.multicast_capacity
    }

    /// All ports with a LID, sorted by LID.
    pub fn end_ports(&self) -> &[EndPort] {
        &self.ends
    }

    /// The end port that holds a LID (any of its 2^LMC LIDs), with all that is known of it.
    pub fn port_at(&self, lid: Lid) -> Option<&EndPort> {
        self.ends.get(*self.by_lid.get(lid.index())? as usize)
    }

    /// The end port that holds a LID (any of its 2^LMC LIDs).
    pub fn end_port(&self, lid: Lid) -> Option<PortRef> {
        self.port_at(lid).map(|port| port.end)
    }

    /// The end port with this PortGUID.
    pub fn port_by_guid(&self, guid: Guid) -> Option<&EndPort> {
        self.ends.get(*self.by_port_guid.get(&guid)? as usize)
    }

    /// Whether a GID's prefix is of this subnet: its own or the default one (B41).
    pub const fn is_local(&self, gid: Gid) -> bool {
        gid.prefix() == self.sm.gid_prefix || gid.prefix() == Gid::DEFAULT_PREFIX
    }

    /// The end port with this GID: own or default prefix (B41), PortGUID or alias.
    pub fn port_by_gid(&self, gid: Gid) -> Option<&EndPort> {
        if !self.is_local(gid) {
            return None;
        }
        let by_alias = || self.port_by_guid(self.aliases.holder(gid.guid())?);
        self.port_by_guid(gid.guid()).or_else(by_alias)
    }

    /// The GID of a port with the subnet's own prefix.
    pub const fn gid_of(&self, port: &EndPort) -> Gid {
        Gid::new(self.sm.gid_prefix, port.guid)
    }

    /// What the path from `source` to `dlid`, a LID of `target`, lets through by the forwarding tables. `None` when no
    /// packet would arrive: a hole, a link that is down, a circle (B27).
    pub fn walk(&self, source: &EndPort, target: &EndPort, dlid: Lid) -> Option<Limits> {
        self.links.walk(&self.routes, source, target, dlid)
    }

    /// The service level that the routing engine gives the path from `source` to `dlid`; `None` where the engine doesn't
    /// care.
    pub fn engine_sl(&self, source: &EndPort, dlid: Lid) -> Option<u8> {
        if matches!(self.routes.sl, routing::routes::PathSl::Default) {
            return None;
        }
        Some(self.routes.path_sl(source.switch?, dlid))
    }
}

/// See [`Snapshot::multicast_capacity`].
fn multicast_capacity(fabric: &Fabric) -> u16 {
    let caps = fabric.switches().filter_map(|(_, node)| node.switch).map(|facts| facts.multicast_fdb_cap);
    caps.filter(|cap| *cap != 0).min().unwrap_or(u16::MAX)
}

fn valid(table: &[PKey]) -> Arc<[PKey]> {
    table.iter().copied().filter(|key| key.is_valid()).collect()
}

fn end_ports(observed: &Observed, graph: &SwitchGraph) -> Vec<EndPort> {
    let fabric = &observed.fabric;
    let mut ends = Vec::new();
    for (node, facts) in fabric.nodes() {
        for (number, port) in facts.end_ports() {
            let Some(lid) = port.lid else { continue };
            let end = PortRef { node, port: number };
            let own = Limits::of_port(port);
            let (switch, exit, peer, link) = if facts.is_switch() {
                // Port 0 sits inside: any exit's own rate counts, and only its MTU is a limit of its own.
                (graph.index_of(node), 0, None, Some(Limits { mtu: port.mtu_cap, ..Limits::UNBOUND }))
            } else {
                let peer = fabric.peer(end);
                let switch = peer.and_then(|peer| graph.index_of(peer.node));
                (switch, peer.map_or(0, |peer| peer.port.0), peer, Limits::of_link(fabric, end))
            };
            let lmc = port.lmc.min(7);
            let table = observed.node(node).map_or_else(Vec::new, |n| n.tables.pkeys_of(number));
            let (pkeys, pkey_table) = (valid(&table), Arc::from(table));
            ends.push(EndPort {
                end,
                lid,
                lmc,
                guid: port.guid,
                pkeys,
                pkey_table,
                switch,
                port: exit,
                peer,
                link,
                own,
            });
        }
    }
    ends.sort_by_key(|port| port.lid);
    ends
}

#[cfg(test)]
mod tests;
