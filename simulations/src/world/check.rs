//! Whether the fabric is right, judged from the simulated devices themselves and not from what any subnet manager believes.

use std::collections::BTreeMap;
use std::fmt;

use mad::types::{Guid, Lid, Mtu, NodeType, PortNum, PortPhysState, PortState};
use routing::fabric::{Fabric, Node, PortRef, SwitchFacts, SwitchGraph};
use routing::multicast::{MftBlock, MulticastTables};
use routing::routes::{Routes, SlToVl};
use routing::verify;

use super::{End, World};
use crate::device::Device;

/// Something about ports and LIDs that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A port whose link is up is not Active.
    NotActive(End, PortState),
    /// An end port whose link is up has no LID.
    NoLid(End),
    /// Two end ports have a LID in common.
    SharedLid(Lid, End, End),
    /// The two ends of a link disagree on the MTU.
    MtuMismatch(End, End),
    /// A port sends larger packets than its neighbour can take.
    MtuTooLarge(End),
}

impl Finding {
    /// The ports that it is about.
    pub fn ends(&self) -> Vec<End> {
        match *self {
            Self::NotActive(end, _) | Self::NoLid(end) | Self::MtuTooLarge(end) => vec![end],
            Self::SharedLid(_, a, b) | Self::MtuMismatch(a, b) => vec![a, b],
        }
    }
}

/// The result of [`World::check`].
#[derive(Debug)]
pub struct Verdict {
    /// Ports, LIDs and links.
    pub findings: Vec<Finding>,
    /// What the verifier says of the tables.
    pub routes: verify::Report,
    /// Forwarding loops that the tables held at any moment since the world began.
    pub loops: u64,
}

impl Verdict {
    /// Whether nothing is wrong. Credit loops count only where `credit_loops` says so: not every engine avoids them.
    pub fn is_right(&self, credit_loops: bool) -> bool {
        let tables = if credit_loops { self.routes.is_right() } else { self.routes.reaches_all() };
        self.findings.is_empty() && self.loops == 0 && tables
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in self.findings.iter().take(20) {
            writeln!(f, "{finding:?}")?;
        }
        writeln!(f, "{} findings about ports, {} forwarding loops", self.findings.len(), self.loops)?;
        write!(f, "{}", self.routes)
    }
}

impl World {
    /// Judges ports, LIDs and the tables in the switches, as they are now.
    pub fn check(&self) -> Verdict {
        let fabric = self.fabric();
        let graph = SwitchGraph::new(&fabric);
        let routes = self.routes(&fabric, &graph);
        let routes = verify::check(&graph, &routes, verify::Options::default());
        Verdict { findings: self.check_ports(), routes, loops: self.loops().1 + self.new_loops() }
    }

    /// Ports, LIDs and links: every port with a link Active, every such end port with a LID of its own, both ends of a link
    /// with one MTU that both can do. Linear in the ports.
    pub fn check_ports(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut holder: BTreeMap<u16, End> = BTreeMap::new();
        for (node, device) in self.devices.iter().enumerate().filter(|(_, d)| !d.dead) {
            for number in 0..device.ports.len() {
                check_port(device, End::new(node as u32, number as u8), &mut holder, &mut findings);
            }
        }
        let info = |end: End| &self.devices[end.node as usize].ports[end.port.index()].info;
        for (a, b) in self.cables() {
            if !self.devices[a.node as usize].ports[a.port.index()].is_up() {
                continue;
            }
            if info(a).neighbor_mtu_raw() != info(b).neighbor_mtu_raw() {
                findings.push(Finding::MtuMismatch(a, b));
            }
            for (one, other) in [(a, b), (b, a)] {
                if info(one).neighbor_mtu_raw() > info(other).mtu_cap_raw() {
                    findings.push(Finding::MtuTooLarge(one));
                }
            }
        }
        findings
    }

    /// The fabric as the devices and cables are now: LIDs, states, capabilities. Devices without power are left out, and so
    /// is the second of two with one GUID.
    pub fn fabric(&self) -> Fabric {
        let mut fabric = Fabric::new();
        let ids: Vec<_> = self
            .devices
            .iter()
            .map(|device| if device.dead { None } else { fabric.add_node(node_of(device)).ok() })
            .collect();
        for (a, b) in self.cables() {
            let end = |end: End| ids[end.node as usize].map(|node| PortRef { node, port: end.port });
            if let (Some(a), Some(b)) = (end(a), end(b)) {
                let laid = fabric.connect(a, b);
                debug_assert!(laid.is_ok(), "cables of the world join free ports");
            }
        }
        fabric
    }

    /// The tables in the switches, as rows for the switches of `graph` ([`World::fabric`]'s). Service levels are not in the
    /// switches: every path counts as SL 0.
    pub fn routes(&self, fabric: &Fabric, graph: &SwitchGraph) -> Routes {
        let mut routes = Routes::empty("switches", graph);
        let mut written = false;
        let mut tables = Vec::new();
        for index in 0..graph.switch_count() as u32 {
            let guid = fabric.node(graph.node(index)).guid;
            let Some(device) = self.find(guid).map(|node| self.device(node)) else { continue };
            let Some(switch) = &device.switch else { continue };
            routes.lfts.row_mut(index).update(|row| {
                row.iter_mut().enumerate().for_each(|(lid, port)| *port = switch.exit(lid as u16));
            });
            written |= device.ports.iter().any(|port| !port.sl_to_vl.is_empty());
            tables.push(sl_to_vl(device));
        }
        if written {
            routes.sl_to_vl = SlToVl::PerSwitch(tables);
        }
        routes
    }

    /// The multicast tables in the switches, as rows for the switches of `graph`.
    pub fn multicast_tables(&self, fabric: &Fabric, graph: &SwitchGraph) -> MulticastTables {
        let mut tables = MulticastTables::new(graph.switch_count());
        for index in 0..graph.switch_count() as u32 {
            let switch = self.find(fabric.node(graph.node(index)).guid);
            let Some(switch) = switch.and_then(|node| self.device(node).switch.as_ref()) else { continue };
            for ((position, block), masks) in &switch.mft {
                let (position, block) = (*position, *block);
                tables.set_block(&MftBlock { switch: index, block, position, masks: *masks });
            }
        }
        tables
    }

    /// The connected part that each device belongs to, over links that are up: the smallest index of a device in it.
    pub fn parts(&self) -> Vec<u32> {
        let mut part: Vec<u32> = (0..self.devices.len() as u32).collect();
        fn root(part: &mut [u32], mut node: u32) -> u32 {
            while part[node as usize] != node {
                part[node as usize] = part[part[node as usize] as usize];
                node = part[node as usize];
            }
            node
        }
        for (a, b) in self.cables() {
            if self.devices[a.node as usize].ports[a.port.index()].is_up() {
                let (a, b) = (root(&mut part, a.node), root(&mut part, b.node));
                part[a.max(b) as usize] = a.min(b);
            }
        }
        (0..part.len() as u32).map(|node| root(&mut part, node)).collect()
    }
}

fn check_port(device: &Device, end: End, holder: &mut BTreeMap<u16, End>, findings: &mut Vec<Finding>) {
    let port = &device.ports[end.port.index()];
    if !port.is_up() {
        return;
    }
    if end.port.0 != 0 && port.state() != PortState::Active {
        findings.push(Finding::NotActive(end, port.state()));
    }
    if !device.end_ports().contains(&end.port.0) {
        return;
    }
    let Some(base) = port.info.lid() else { return findings.push(Finding::NoLid(end)) };
    for lid in base.get()..base.get().saturating_add(1 << port.info.lmc()) {
        if let (Some(other), Some(lid)) = (holder.insert(lid, end), Lid::new(lid)) {
            findings.push(Finding::SharedLid(lid, other, end));
        }
    }
}

/// A device as a node of a fabric.
fn node_of(device: &Device) -> Node {
    let mut node = Node::new(device.kind(), device.guid(), device.name(), device.num_ports());
    node.system_image_guid = device.node_info.system_image_guid();
    node.vendor_id = device.node_info.vendor_id();
    node.device_id = device.node_info.device_id.get();
    node.revision = device.node_info.revision.get();
    node.switch = device.switch.as_ref().map(|switch| SwitchFacts {
        enhanced_port_0: switch.info.enhanced_port_0() == 1,
        linear_fdb_cap: switch.info.linear_fdb_cap.get(),
        multicast_fdb_cap: switch.info.multicast_fdb_cap.get(),
    });
    for (number, port) in device.ports.iter().enumerate() {
        let Some(Some(slot)) = node.ports.get_mut(number) else { continue };
        let info = &port.info;
        let up = port.is_up();
        slot.guid = Guid(port.guid);
        slot.lid = info.lid().filter(|_| device.kind() != NodeType::Switch || number == 0);
        slot.lmc = info.lmc();
        slot.state = port.state();
        slot.phys_state = info.port_phys_state().unwrap_or(PortPhysState::Polling);
        slot.width = info.link_width().filter(|_| up);
        slot.speed = info.link_speed(port.fdr10).filter(|_| up);
        slot.widths_supported = info.widths_supported();
        slot.speeds_supported = info.speeds_supported();
        slot.mtu_cap = info.mtu_cap().unwrap_or(Mtu::M256);
        slot.mtu = info.neighbor_mtu().unwrap_or(Mtu::M256);
        slot.vl_cap = info.vl_cap();
        slot.operational_vls = info.operational_vls();
        slot.capability_mask = info.capability_mask.get();
        slot.capability_mask2 = info.capability_mask2.get();
    }
    node
}

/// All SL-to-VL tables of a switch, by port of entry and exit.
fn sl_to_vl(device: &Device) -> Vec<[u8; 16]> {
    let ports = device.ports.len();
    let table = |index: usize| {
        let (entry, exit) = (index / ports, index % ports);
        let packed = device.ports[exit].sl_to_vl(PortNum(entry as u8));
        std::array::from_fn(|sl| if sl % 2 == 0 { packed[sl / 2] >> 4 } else { packed[sl / 2] & 0xf })
    };
    (0..ports * ports).map(table).collect()
}
