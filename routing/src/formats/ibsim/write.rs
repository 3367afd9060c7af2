//! Writes net files.

use std::collections::HashSet;
use std::fmt::{self, Write};

use mad::types::{NodeType, PortNum};

use crate::fabric::{Fabric, Node, NodeId, PortRef};

/// The longest name that ibsim keeps.
const LONGEST_NAME: usize = 64;

/// The text. Nodes keep their order, GUIDs, ids and LIDs. A node is named by its description where ibsim can take that as
/// a unique name, else by `S-`, `H-` or `R-` and its GUID with the description as a comment. ibsim itself counts the port
/// GUIDs of adapters up from the node's.
pub fn write(fabric: &Fabric) -> String {
    let names = Names::new(fabric);
    let mut out = String::new();
    // Writing to a string can't fail.
    let _ = print(&mut out, fabric, &names);
    out
}

struct Names {
    own: HashSet<NodeId>,
}

impl Names {
    fn new(fabric: &Fabric) -> Self {
        let mut seen = HashSet::new();
        let mut twice = HashSet::new();
        for (_, node) in fabric.nodes() {
            if !seen.insert(node.description.as_str()) {
                twice.insert(node.description.as_str());
            }
        }
        let fits = |node: &Node| {
            let text = node.description.as_str();
            (1..LONGEST_NAME).contains(&text.len())
                && !twice.contains(text)
                && text.bytes().all(|b| b.is_ascii_graphic() && !b"\"#@[]".contains(&b))
        };
        Self { own: fabric.nodes().filter(|(_, node)| fits(node)).map(|(id, _)| id).collect() }
    }

    fn of(&self, fabric: &Fabric, id: NodeId) -> String {
        let node = fabric.node(id);
        if self.own.contains(&id) {
            return node.description.clone();
        }
        let kind = match node.kind {
            NodeType::Switch => 'S',
            NodeType::Ca => 'H',
            NodeType::Router => 'R',
        };
        format!("{kind}-{:016x}", node.guid.0)
    }
}

fn print(out: &mut String, fabric: &Fabric, names: &Names) -> fmt::Result {
    let switches = fabric.switches().count();
    let ports: usize =
        fabric.nodes().map(|(_, n)| usize::from(n.num_ports) + usize::from(n.is_switch())).sum();
    let nodes = fabric.node_count();
    writeln!(
        out,
        "# nodes={nodes} switches={switches} ports={ports} lids={nodes} links={}\n",
        fabric.link_count()
    )?;
    for (id, node) in fabric.nodes() {
        print_node(out, fabric, names, id, node)?;
    }
    Ok(())
}

fn print_node(out: &mut String, fabric: &Fabric, names: &Names, id: NodeId, node: &Node) -> fmt::Result {
    let (guid_word, word) = match node.kind {
        NodeType::Switch => ("switchguid", "Switch"),
        NodeType::Ca => ("caguid", "Ca"),
        NodeType::Router => ("rtguid", "Rt"),
    };
    writeln!(out, "vendid={:#x}\ndevid={:#x}", node.vendor_id, node.device_id)?;
    if node.system_image_guid.is_some() && node.system_image_guid != node.guid {
        writeln!(out, "sysimgguid={:#x}", node.system_image_guid.0)?;
    }
    writeln!(out, "{guid_word}={:#x}", node.guid.0)?;
    write!(out, "{word}\t{} \"{}\"", node.num_ports, names.of(fabric, id))?;
    let quoted = node.description.replace('"', "'");
    write!(out, "\t\t# \"{quoted}\"")?;
    if node.is_switch() {
        let kind = if node.switch.is_some_and(|s| s.enhanced_port_0) { "enhanced" } else { "base" };
        let port = node.port(PortNum::MANAGEMENT);
        let lid = port.and_then(|p| p.lid).map_or(0, |lid| lid.get());
        write!(out, " {kind} port 0 lid {lid} lmc {}", port.map_or(0, |p| p.lmc))?;
    }
    writeln!(out)?;
    for (number, port) in node.numbered_ports() {
        let Some(peer) = fabric.peer(PortRef { node: id, port: number }) else { continue };
        write!(out, "[{number}]\t\"{}\"[{}]\t\t#", names.of(fabric, peer.node), peer.port)?;
        if node.kind == NodeType::Ca {
            write!(out, " lid {} lmc {} \"\"", port.lid.map_or(0, |lid| lid.get()), port.lmc)?;
        }
        let far = fabric.port(peer).and_then(|p| p.lid).map_or(0, |lid| lid.get());
        let width = port.width.map_or(4, mad::types::LinkWidth::lanes);
        writeln!(out, " lid {far} {width}x{}", port.speed.map_or("SDR", |s| s.name()))?;
    }
    writeln!(out)
}
