//! The flat form of a fabric for hot loops: switches numbered from 0 in order of GUID, their links as one sorted array,
//! and every destination with its LIDs.
//!
//! Sorting makes the order of ties a property of the fabric, not of its discovery. petgraph's linked edge lists are 20 to
//! 57 times slower at 5,000 switches. Cost: linear in nodes and links, times the logarithm of the switches for the sort.

use std::ops::Range;

use mad::types::{Guid, Lid, NodeType};

#[cfg(doc)]
use super::degraded_links;
use super::{Fabric, NodeId, PortRef};
use crate::routes::NO_PORT;

/// Number of a switch in a [`SwitchGraph`], 0 to `switch_count() - 1`.
pub type SwitchIndex = u32;

/// A link from one switch to another, as seen from the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arc {
    /// The switch at the far end.
    pub to: SwitchIndex,
    /// The port that leaves.
    pub out_port: u8,
    /// The port of entry at the far end.
    pub in_port: u8,
}

/// An end port with LIDs: a channel adapter's or router's port, or port 0 of a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Destination {
    /// Base LID.
    pub lid: Lid,
    /// 2^lmc LIDs from `lid` on.
    pub lmc: u8,
    /// The switch that it is, or is attached to.
    pub switch: SwitchIndex,
    /// The switch's port that leads to it; 0 for the switch itself.
    pub port: u8,
    /// PortGUID.
    pub guid: Guid,
    /// SystemImageGUID of its node.
    pub system_image_guid: Guid,
    /// What kind of node it belongs to.
    pub kind: NodeType,
    /// Whether traffic of hosts ends here: a channel adapter or router that is no part of its switch. Aggregation nodes,
    /// which share the SystemImageGUID of their switch, and switches don't count.
    pub host: bool,
    /// The port in the fabric.
    pub end: PortRef,
}

impl Destination {
    /// All LIDs of the port.
    pub fn lids(&self) -> impl Iterator<Item = u16> + use<> {
        let base = self.lid.get();
        (0..1_u16 << self.lmc.min(7)).map_while(move |offset| base.checked_add(offset))
    }
}

/// The flat form.
#[derive(Clone, Debug, Default)]
pub struct SwitchGraph {
    switches: Vec<NodeId>,
    guids: Vec<Guid>,
    names: Vec<String>,
    num_ports: Vec<u8>,
    linear_fdb_cap: Vec<u16>,
    offsets: Vec<u32>,
    arcs: Vec<Arc>,
    destinations: Vec<Destination>,
    index_of: Vec<u32>,
}

impl SwitchGraph {
    /// Makes the flat form from the links whose two ports are up. Links of a switch to itself are left out (B02), and so
    /// are end ports without a LID (B15).
    pub fn new(fabric: &Fabric) -> Self {
        let up = |end: PortRef| fabric.port(end).is_some_and(|p| p.state.is_up());
        Self::with_links(fabric, |a, b| up(a) && up(b))
    }

    /// The same without the links between switches that run slower than both ends could ([`degraded_links`]), but for those
    /// without which a part of the fabric would be cut off: of these the fastest stay (B28).
    pub fn avoiding_degraded(fabric: &Fabric) -> Self {
        let up = |end: PortRef| fabric.port(end).is_some_and(|p| p.state.is_up());
        Self::avoiding_degraded_of(fabric, |a, b| up(a) && up(b))
    }

    /// The same of the links that `usable` accepts.
    pub fn avoiding_degraded_of(fabric: &Fabric, usable: impl Fn(PortRef, PortRef) -> bool) -> Self {
        let avoided = super::degraded::avoidable(fabric, |link| usable(link.a, link.b));
        Self::with_links(fabric, |a, b| usable(a, b) && !avoided.contains(&a) && !avoided.contains(&b))
    }

    /// The same with the links that `usable` accepts.
    pub fn with_links(fabric: &Fabric, usable: impl Fn(PortRef, PortRef) -> bool) -> Self {
        let mut switches: Vec<NodeId> = fabric.switches().map(|(id, _)| id).collect();
        switches.sort_by_key(|id| fabric.node(*id).guid);
        let bound = fabric.node_ids().map(|id| id.index() + 1).max().unwrap_or(0);
        let mut index_of = vec![u32::MAX; bound];
        for (index, id) in switches.iter().enumerate() {
            index_of[id.index()] = index as u32;
        }
        let mut graph = Self {
            guids: switches.iter().map(|id| fabric.node(*id).guid).collect(),
            names: switches.iter().map(|id| fabric.node(*id).description.clone()).collect(),
            num_ports: switches.iter().map(|id| fabric.node(*id).num_ports).collect(),
            linear_fdb_cap: switches
                .iter()
                .map(|id| fabric.node(*id).switch.map_or(0, |s| s.linear_fdb_cap))
                .collect(),
            offsets: Vec::with_capacity(switches.len() + 1),
            switches,
            index_of,
            ..Self::default()
        };
        graph.offsets.push(0);
        for index in 0..graph.switches.len() {
            graph.add_arcs(fabric, index, &usable);
        }
        graph.add_destinations(fabric, &usable);
        graph
    }

    fn add_arcs(&mut self, fabric: &Fabric, index: usize, usable: &impl Fn(PortRef, PortRef) -> bool) {
        let node = self.switches[index];
        let first = self.arcs.len();
        for (port, _) in fabric.node(node).numbered_ports() {
            let end = PortRef { node, port };
            let Some(peer) = fabric.peer(end) else { continue };
            let to = self.index_of[peer.node.index()];
            if peer.node != node && to != u32::MAX && usable(end, peer) {
                self.arcs.push(Arc { to, out_port: port.0, in_port: peer.port.0 });
            }
        }
        self.arcs[first..].sort_unstable_by_key(|arc| (arc.to, arc.out_port));
        self.offsets.push(self.arcs.len() as u32);
    }

    fn add_destinations(&mut self, fabric: &Fabric, usable: &impl Fn(PortRef, PortRef) -> bool) {
        for (id, node) in fabric.nodes() {
            for (number, port) in node.end_ports() {
                let Some(lid) = port.lid else { continue };
                let end = PortRef { node: id, port: number };
                let (switch, exit) = if node.is_switch() {
                    (self.index_of[id.index()], 0)
                } else {
                    let Some(peer) = fabric.peer(end).filter(|peer| usable(*peer, end)) else { continue };
                    (self.index_of[peer.node.index()], peer.port.0)
                };
                if switch == u32::MAX {
                    continue;
                }
                let leaf = fabric.node(self.switches[switch as usize]);
                let internal =
                    node.system_image_guid.is_some() && node.system_image_guid == leaf.system_image_guid;
                self.destinations.push(Destination {
                    lid,
                    lmc: port.lmc.min(7),
                    host: !node.is_switch() && !internal,
                    switch,
                    port: exit,
                    guid: port.guid,
                    system_image_guid: node.system_image_guid,
                    kind: node.kind,
                    end,
                });
            }
        }
        self.destinations.sort_unstable_by_key(|d| d.lid);
    }

    /// Number of switches.
    pub fn switch_count(&self) -> usize {
        self.switches.len()
    }

    /// The links of a switch to other switches, sorted by far switch and port.
    pub fn arcs(&self, switch: SwitchIndex) -> &[Arc] {
        let i = switch as usize;
        &self.arcs[self.offsets[i] as usize..self.offsets[i + 1] as usize]
    }

    /// All arcs, switch by switch.
    pub fn all_arcs(&self) -> &[Arc] {
        &self.arcs
    }

    /// Where a switch's arcs begin in [`SwitchGraph::all_arcs`]; one entry more than there are switches.
    pub fn offsets(&self) -> &[u32] {
        &self.offsets
    }

    /// The numbers of a switch's arcs in [`SwitchGraph::all_arcs`].
    pub(crate) fn arc_range(&self, switch: SwitchIndex) -> Range<u32> {
        self.offsets[switch as usize]..self.offsets[switch as usize + 1]
    }

    /// For each arc the switch that it leaves.
    pub(crate) fn sources(&self) -> Vec<SwitchIndex> {
        let of = |s| std::iter::repeat_n(s, self.arcs(s).len());
        (0..self.switch_count() as SwitchIndex).flat_map(of).collect()
    }

    /// The number of the arc that comes back by the link of `arc`, which leaves `from`.
    pub(crate) fn back(&self, from: SwitchIndex, arc: &Arc) -> Option<u32> {
        let key = (from, arc.in_port);
        let place = self.arcs(arc.to).binary_search_by_key(&key, |back| (back.to, back.out_port)).ok()?;
        Some(self.offsets[arc.to as usize] + place as u32)
    }

    /// The exit port of an arc, [`NO_PORT`] for the number of none.
    pub(crate) fn port_of(&self, arc: u32) -> u8 {
        self.arcs.get(arc as usize).map_or(NO_PORT, |arc| arc.out_port)
    }

    /// For each switch the number of its hosts.
    pub(crate) fn hosts(&self) -> Vec<u64> {
        let mut hosts = vec![0; self.switch_count()];
        self.destinations.iter().filter(|d| d.host).for_each(|d| hosts[d.switch as usize] += 1);
        hosts
    }

    /// Number of the arc behind each port of a switch; `u32::MAX` where there is none.
    pub fn arcs_by_port(&self, switch: SwitchIndex) -> [u32; 256] {
        let mut by_port = [u32::MAX; 256];
        let numbers = self.offsets[switch as usize]..;
        numbers.zip(self.arcs(switch)).for_each(|(number, arc)| by_port[usize::from(arc.out_port)] = number);
        by_port
    }

    /// All destinations, sorted by LID.
    pub fn destinations(&self) -> &[Destination] {
        &self.destinations
    }

    /// The same with more destinations, on switches of this graph.
    pub(crate) fn with_destinations(&self, more: Vec<Destination>) -> Self {
        let mut graph = self.clone();
        graph.destinations.extend(more);
        graph.destinations.sort_by_key(|d| d.lid);
        graph
    }

    /// Whether no two ports have a LID in common: else whose entry stands in a table depends on the order in which they are
    /// filled in.
    pub(crate) fn lids_are_unique(&self) -> bool {
        let mut owned = vec![false; usize::from(self.top_lid()) + 1];
        let mut lids = self.destinations.iter().flat_map(Destination::lids);
        lids.all(|lid| owned.get_mut(usize::from(lid)).is_some_and(|owned| !std::mem::replace(owned, true)))
    }

    /// NodeGUID of a switch.
    pub fn guid(&self, switch: SwitchIndex) -> Guid {
        self.guids[switch as usize]
    }

    /// NodeDescription of a switch.
    pub fn name(&self, switch: SwitchIndex) -> &str {
        &self.names[switch as usize]
    }

    /// A switch in words: name and NodeGUID.
    pub fn describe(&self, switch: SwitchIndex) -> String {
        format!("\"{}\" ({})", self.name(switch), self.guid(switch))
    }

    /// External ports of a switch.
    pub fn num_ports(&self, switch: SwitchIndex) -> u8 {
        self.num_ports[switch as usize]
    }

    /// Entries of a switch's linear forwarding table.
    pub fn linear_fdb_cap(&self, switch: SwitchIndex) -> u16 {
        self.linear_fdb_cap[switch as usize]
    }

    /// The switch's node in the fabric.
    pub fn node(&self, switch: SwitchIndex) -> NodeId {
        self.switches[switch as usize]
    }

    /// The number of the switch with a NodeGUID.
    pub fn find(&self, guid: Guid) -> Option<SwitchIndex> {
        self.guids.binary_search(&guid).ok().map(|index| index as SwitchIndex)
    }

    /// The number of a switch's node; `None` for anything that is no switch.
    pub fn index_of(&self, node: NodeId) -> Option<SwitchIndex> {
        self.index_of.get(node.index()).copied().filter(|i| *i != u32::MAX)
    }

    /// The highest LID of any destination, 0 when there is none.
    pub fn top_lid(&self) -> u16 {
        self.destinations.iter().map(|d| d.lid.get().saturating_add((1 << d.lmc) - 1)).max().unwrap_or(0)
    }
}
