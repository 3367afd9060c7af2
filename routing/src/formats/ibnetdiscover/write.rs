//! Prints a fabric as ibnetdiscover does.

use std::fmt::{self, Write};

use mad::types::{Guid, LinkWidth, NodeType, PortNum};

use super::order;
use crate::fabric::{Fabric, Node, Port, PortRef};

/// What the output depends on beside the fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteOptions<'a> {
    /// The port where the discovery begins: of a host, or port 0 of a switch.
    pub from: PortRef,
    /// The date line's date, as `ctime` prints it without the line end (`Tue Dec  1 22:49:31 2026`).
    pub generated: &'a str,
    /// As `-f`: codes of speed, width and VLs behind each link.
    pub full: bool,
}

/// The text. Nodes that can't be reached from [`WriteOptions::from`] are left out, as the tool does not find them.
pub fn write(fabric: &Fabric, options: &WriteOptions<'_>) -> String {
    let found = order::discover(fabric, options.from);
    let mut out = String::new();
    // Writing to a string can't fail.
    let _ = print(&mut out, fabric, options, &found);
    out
}

fn print(
    out: &mut String,
    fabric: &Fabric,
    options: &WriteOptions<'_>,
    found: &order::Discovery,
) -> fmt::Result {
    writeln!(out, "#\n# Topology file: generated on {}\n#", options.generated)?;
    let port_guid = fabric.port(options.from).map_or(Guid::NONE, |p| p.guid);
    let node_guid = fabric.node(options.from.node).guid;
    writeln!(out, "# Initiated from node {:016x} port {:016x}", node_guid.0, port_guid.0)?;
    for kind in [NodeType::Switch, NodeType::Ca, NodeType::Router] {
        for id in found.nodes.iter().rev().filter(|id| fabric.node(**id).kind == kind) {
            let node = fabric.node(*id);
            print_node(out, node)?;
            for number in 1..=node.num_ports {
                let end = PortRef { node: *id, port: PortNum(number) };
                if found.linked.contains(&end)
                    && let (Some(port), Some(peer)) = (fabric.port(end), fabric.peer(end))
                {
                    print_port(out, fabric, end, port, peer, options.full)?;
                }
            }
        }
    }
    Ok(())
}

fn print_node(out: &mut String, node: &Node) -> fmt::Result {
    writeln!(out, "\nvendid={:#x}\ndevid={:#x}", node.vendor_id, node.device_id)?;
    if node.system_image_guid.is_some() {
        writeln!(out, "sysimgguid={:#x}", node.system_image_guid.0)?;
    }
    let (guid_word, word) = match node.kind {
        NodeType::Switch => ("switch", "Switch"),
        NodeType::Ca => ("ca", "Ca"),
        NodeType::Router => ("rt", "Rt"),
    };
    write!(out, "{guid_word}guid={:#x}", node.guid.0)?;
    let management = node.port(PortNum::MANAGEMENT);
    if node.is_switch() {
        write!(out, "({:x})", management.map_or(node.guid, |p| p.guid).0)?;
    }
    write!(out, "\n{word}\t{} {}\t\t# \"{}\"", node.num_ports, Name(node), Description(node))?;
    if node.is_switch() {
        let kind = if node.switch.is_some_and(|s| s.enhanced_port_0) { "enhanced" } else { "base" };
        let lmc = management.map_or(0, |p| p.lmc);
        write!(out, " {kind} port 0 lid {} lmc {lmc}", lid(management))?;
    }
    writeln!(out)
}

fn print_port(
    out: &mut String,
    fabric: &Fabric,
    end: PortRef,
    port: &Port,
    peer: PortRef,
    full: bool,
) -> fmt::Result {
    let (node, other) = (fabric.node(end.node), fabric.node(peer.node));
    let far = fabric.port(peer);
    let far_guid = far.map_or(Guid::NONE, |p| p.guid).0;
    write!(out, "[{}]", end.port)?;
    if !node.is_switch() {
        write!(out, "({:x}) ", port.guid.0)?;
    }
    write!(out, "\t{}[{}]", Name(other), peer.port)?;
    if !other.is_switch() {
        // The tool has one blank more before it on the lines of channel adapters.
        let blank = if node.is_switch() { "" } else { " " };
        write!(out, "{blank}({far_guid:x}) ")?;
    }
    write!(out, "\t\t# ")?;
    if !node.is_switch() {
        write!(out, "lid {} lmc {} ", lid(Some(port)), port.lmc)?;
    }
    let far_lid = lid(if other.is_switch() { other.port(PortNum::MANAGEMENT) } else { far });
    let width = port.width.map_or_else(|| "??".into(), |w| w.to_string());
    let speed = port.speed.map_or("???", |s| s.name());
    write!(out, "\"{}\" lid {far_lid} {width}{speed}", Description(other))?;
    if full {
        let speed = port.speed.map_or(0, |s| s.to_active().0);
        let width = port.width.map_or(0, LinkWidth::to_wire);
        write!(out, " s={speed} w={width} v={}", port.vl_cap)?;
    }
    writeln!(out)
}

fn lid(port: Option<&Port>) -> u16 {
    port.and_then(|p| p.lid).map_or(0, |lid| lid.get())
}

/// `"S-0002c90200000003"`, with its quotes.
struct Name<'a>(&'a Node);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.0.kind {
            NodeType::Switch => 'S',
            NodeType::Ca => 'H',
            NodeType::Router => 'R',
        };
        write!(f, "\"{kind}-{:016x}\"", self.0.guid.0)
    }
}

/// NodeDescription with a blank for every byte that does not print in the C locale.
struct Description<'a>(&'a Node);

impl fmt::Display for Description<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let printable = |byte: u8| if (0x20..0x7f).contains(&byte) { char::from(byte) } else { ' ' };
        self.0.description.bytes().try_for_each(|byte| f.write_char(printable(byte)))
    }
}
