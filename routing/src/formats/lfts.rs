//! Linear forwarding tables as dump_lfts/dump_fts (infiniband-diags) print them, and `opensm-lfts.dump`, which looks alike.

use std::fmt::{self, Write};

use mad::types::{Guid, NodeType};

use super::error::{Cursor, FormatError};
use super::tables::{TableBuilder, Tables};
use crate::fabric::{Destination, Fabric, SwitchGraph, SwitchIndex};
use crate::routes::{NO_PORT, Routes};

/// Reads either form for the switches of `graph`.
///
/// # Errors
/// A switch that the graph does not have, a port that the switch does not have (B27), a LID twice in one table, an entry before
/// any heading, a last table without the line that ends the others.
pub fn read(file: &str, text: &str, graph: &SwitchGraph) -> Result<Tables, FormatError> {
    let mut tables = TableBuilder::new(graph);
    let mut multicast = false;
    for (index, line) in text.lines().enumerate() {
        let mut at = Cursor::new(file, index + 1, line);
        at.blanks();
        let rest = at.rest();
        if rest.starts_with("Multicast mlids") {
            multicast = true;
        } else if rest.starts_with("Unicast lids") {
            multicast = false;
            let place = rest.find("guid 0x").ok_or_else(|| at.error("`guid 0x…` in the heading"))?;
            at.skip(place + "guid 0x".len());
            let place = at;
            tables.switch(Guid(at.hex("a GUID")?), &place)?;
        } else if rest.starts_with("0x") && !multicast {
            let start = at;
            at.take("0x");
            let lid = at.hex("a LID")?;
            at.blanks();
            let port = at.number("a port number", 255)?;
            tables.entry(lid, port, &start)?;
        } else if rest.ends_with("lids dumped") && !multicast {
            tables.end();
        }
    }
    tables.expect_end(file)?;
    tables.finish(file)
}

/// The tables as dump_lfts prints them, switches in order of GUID. Where the tool prints the directed route by which it
/// reached a switch, this prints its LID.
pub fn write(fabric: &Fabric, graph: &SwitchGraph, routes: &Routes) -> String {
    let mut owners: Vec<Option<&Destination>> = vec![None; usize::from(graph.top_lid()) + 1];
    for d in graph.destinations() {
        d.lids().for_each(|lid| owners[usize::from(lid)] = Some(d));
    }
    let mut out = String::new();
    for s in 0..graph.switch_count() as u32 {
        // Writing to a string can't fail.
        let _ = table(&mut out, fabric, graph, routes, &owners, s);
    }
    out
}

fn table(
    out: &mut String,
    fabric: &Fabric,
    graph: &SwitchGraph,
    routes: &Routes,
    owners: &[Option<&Destination>],
    s: SwitchIndex,
) -> fmt::Result {
    let own = graph.destinations().iter().find(|d| d.switch == s && d.port == 0).map_or(0, |d| d.lid.get());
    let top = graph.top_lid();
    writeln!(
        out,
        "Unicast lids [0x0-0x{top:x}] of switch Lid {own} guid {} ({}):\n  Lid  Out   Destination\n       Port     Info ",
        graph.guid(s),
        graph.name(s)
    )?;
    let mut count = 0;
    for (lid, port) in routes.lfts.row(s).iter().enumerate().skip(1).take(usize::from(top)) {
        if *port == NO_PORT {
            continue;
        }
        count += 1;
        write!(out, "0x{lid:04x} {port:03} : ")?;
        match owners.get(lid).copied().flatten() {
            None => writeln!(out, "(node info not available fabric scan)")?,
            Some(owner) if lid != usize::from(owner.lid.get()) => {
                let path = lid - usize::from(owner.lid.get()) + 1;
                let all = 1 << owner.lmc;
                writeln!(out, "(path #{path} out of {all}: portguid {})", owner.guid)?;
            }
            Some(owner) => {
                let node = fabric.node(owner.end.node);
                let kind = match node.kind {
                    NodeType::Switch => "Switch",
                    NodeType::Ca => "Channel Adapter",
                    NodeType::Router => "Router",
                };
                writeln!(out, "({kind} portguid {}: '{}')", owner.guid, node.description)?;
            }
        }
    }
    writeln!(out, "{count} valid lids dumped ")
}
