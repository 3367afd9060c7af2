//! `opensm.fdbs`, the unicast tables as opensm dumps them under `-D 0x40`; ibdmchk reads them.

use std::fmt::{self, Write};

use mad::types::Guid;

use super::error::{Cursor, FormatError};
use super::tables::{TableBuilder, Tables};
use crate::fabric::{Destination, SwitchGraph, SwitchIndex};
use crate::routes::{NO_PORT, Routes};

/// Reads the dump for the switches of `graph`.
///
/// # Errors
/// A switch that the graph does not have, a port that the switch does not have (B27), a LID twice in one table, a line that is none
/// of the format, a last table that is shorter than all others.
pub fn read(file: &str, text: &str, graph: &SwitchGraph) -> Result<Tables, FormatError> {
    let mut tables = TableBuilder::new(graph);
    for (index, line) in text.lines().enumerate() {
        let mut at = Cursor::new(file, index + 1, line);
        at.blanks();
        if let Some(place) = at.rest().find("Switch 0x") {
            at.skip(place + "Switch 0x".len());
            let place = at;
            let guid = at.hex("a GUID")?;
            tables.switch(Guid(guid), &place)?;
        } else if at.rest().starts_with("0x") {
            entry(&mut tables, at)?;
        } else if !at.rest().is_empty() && !at.rest().starts_with(['#', 'L']) {
            return Err(at.error("`0xLID : port : hops : optimal`, or `dump_ucast_routes: Switch 0x…`"));
        }
    }
    tables.expect_all_lids(file)?;
    tables.finish(file)
}

fn entry(tables: &mut TableBuilder<'_>, mut at: Cursor<'_>) -> Result<(), FormatError> {
    let start = at;
    at.take("0x");
    let lid = at.hex("a LID")?;
    at.blanks();
    at.expect(":")?;
    at.blanks();
    if at.take("UNREACHABLE") {
        return tables.entry(lid, u64::from(NO_PORT), &start);
    }
    let port = at.number("a port number or UNREACHABLE", 255)?;
    // A port that is cut off has nothing behind it.
    let mut behind = at;
    behind.blanks();
    behind.expect(":")?;
    tables.entry(lid, port, &start)
}

/// The dump. Hops are the fewest over the port of the entry, as opensm prints them; a host counts as one more.
pub fn write(graph: &SwitchGraph, routes: &Routes) -> String {
    let owners = owners(graph);
    let distance = Distances::new(graph);
    let mut switches: Vec<SwitchIndex> = (0..graph.switch_count() as u32).collect();
    // opensm's map is sorted by the GUID's bytes as they lie in memory.
    switches.sort_by_key(|s| graph.guid(*s).0.swap_bytes());
    let mut out = String::new();
    for s in switches {
        // Writing to a string can't fail.
        let _ = table(&mut out, graph, routes, &owners, &distance, s);
    }
    out
}

fn owners(graph: &SwitchGraph) -> Vec<Option<&Destination>> {
    let mut owners = vec![None; usize::from(graph.top_lid()) + 1];
    for d in graph.destinations() {
        d.lids().for_each(|lid| owners[usize::from(lid)] = Some(d));
    }
    owners
}

fn table(
    out: &mut String,
    graph: &SwitchGraph,
    routes: &Routes,
    owners: &[Option<&Destination>],
    distance: &Distances,
    s: SwitchIndex,
) -> fmt::Result {
    writeln!(out, "dump_ucast_routes: Switch {}\nLID    : Port : Hops : Optimal", graph.guid(s))?;
    for (lid, owner) in owners.iter().enumerate().skip(1) {
        let port = routes.lfts.row(s).get(lid).unwrap_or(NO_PORT);
        let Some(owner) = owner.filter(|_| port != NO_PORT) else {
            writeln!(out, "0x{lid:04X} : UNREACHABLE")?;
            continue;
        };
        let last = u16::from(owner.port != 0);
        let fewest = distance.of(s, owner.switch).saturating_add(last);
        let hops = if s == owner.switch {
            Some(last)
        } else {
            let arc = graph.arcs(s).iter().find(|a| a.out_port == port);
            arc.map(|a| distance.of(a.to, owner.switch)).filter(|d| *d < u16::MAX).map(|d| d + 1 + last)
        };
        let Some(hops) = hops else {
            writeln!(out, "0x{lid:04X} : {port:03}  : HOPS UNKNOWN")?;
            continue;
        };
        write!(out, "0x{lid:04X} : {port:03}  : {hops:02}   : ")?;
        if hops == fewest {
            out.push_str("yes\n");
        } else {
            let nearer = |a: &&crate::fabric::Arc| distance.of(a.to, owner.switch) + 1 + last == fewest;
            let best = graph.arcs(s).iter().find(nearer).map_or(NO_PORT, |a| a.out_port);
            writeln!(out, "No {fewest} hop path possible via port {best}!")?;
        }
    }
    Ok(())
}

/// Hops between all switches, rows by source.
struct Distances {
    count: usize,
    hops: Vec<u16>,
}

impl Distances {
    fn new(graph: &SwitchGraph) -> Self {
        let count = graph.switch_count();
        let mut hops = vec![u16::MAX; count * count];
        let mut queue = Vec::with_capacity(count);
        for (start, row) in hops.chunks_mut(count.max(1)).enumerate() {
            row[start] = 0;
            queue.clear();
            queue.push(start as u32);
            let mut head = 0;
            while let Some(&at) = queue.get(head) {
                head += 1;
                for arc in graph.arcs(at) {
                    if row[arc.to as usize] == u16::MAX {
                        row[arc.to as usize] = row[at as usize] + 1;
                        queue.push(arc.to);
                    }
                }
            }
        }
        Self { count, hops }
    }

    fn of(&self, from: SwitchIndex, to: SwitchIndex) -> u16 {
        self.hops[from as usize * self.count + to as usize]
    }
}
