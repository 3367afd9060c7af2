//! Graphviz DOT of a fabric: switches as boxes, adapters as ellipses, a line for each cable with both port numbers.

use std::fmt::{self, Write};

use mad::types::NodeType;

use crate::fabric::Fabric;

/// The text; hosts are left out when `switches_only`.
pub fn write(fabric: &Fabric, switches_only: bool) -> String {
    let mut out = String::new();
    // Writing to a string can't fail.
    let _ = print(&mut out, fabric, switches_only);
    out
}

fn print(out: &mut String, fabric: &Fabric, switches_only: bool) -> fmt::Result {
    out.push_str("graph fabric {\n");
    for (_, node) in fabric.nodes().filter(|(_, n)| n.is_switch() || !switches_only) {
        let shape = match node.kind {
            NodeType::Switch => "box",
            NodeType::Ca => "ellipse",
            NodeType::Router => "diamond",
        };
        writeln!(out, "  \"{}\" [label={} shape={shape}]", node.guid, Quoted(&node.description))?;
    }
    for link in fabric.links() {
        let (a, b) = (fabric.node(link.a.node), fabric.node(link.b.node));
        if switches_only && !(a.is_switch() && b.is_switch()) {
            continue;
        }
        let speed = fabric.port(link.a).and_then(|p| Some(format!("{}{}", p.width?, p.speed?)));
        write!(
            out,
            "  \"{}\" -- \"{}\" [taillabel={} headlabel={}",
            a.guid, b.guid, link.a.port, link.b.port
        )?;
        if let Some(speed) = speed {
            write!(out, " label=\"{speed}\"")?;
        }
        out.push_str("]\n");
    }
    out.push_str("}\n");
    Ok(())
}

/// A string as DOT writes it.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.replace('\\', "\\\\").replace('"', "\\\""))
    }
}
