//! Forwarding tables out of dumps: rows by switch, checked against the fabric they are for.

use mad::types::{Guid, PortNum};
use rustc_hash::FxHashMap;

use super::error::{Cursor, FormatError};
use super::{fdbs, lfts, routes_json};
use crate::fabric::{SwitchGraph, SwitchIndex};
use crate::routes::{LFT_BLOCK, LftMatrix, NO_PORT, Routes};

/// Tables that were read, for the switches of a graph.
#[derive(Clone, Debug)]
pub struct Tables {
    /// The tables; switches that the file does not name have none (all 255).
    pub routes: Routes,
    /// What is odd, a line each, with the file's name.
    pub warnings: Vec<String>,
}

/// Reads a dump of unicast tables: `opensm.fdbs`, `opensm-lfts.dump`, what dump_lfts or dump_fts print, or our `routes.json`.
///
/// # Errors
/// None of these; or as [`fdbs::read`], [`lfts::read`] and [`routes_json::read`].
pub fn read(file: &str, text: &str, graph: &SwitchGraph) -> Result<Tables, FormatError> {
    if routes_json::is(text) {
        return routes_json::read(file, text, graph);
    }
    let is_fdbs = |line: &str| line.contains("Switch 0x") && !line.starts_with("Unicast");
    for line in text.lines().take(1000) {
        if line.starts_with("Unicast lids") {
            return lfts::read(file, text, graph);
        }
        if is_fdbs(line) {
            return fdbs::read(file, text, graph);
        }
    }
    Err(FormatError::nothing(
        file,
        text,
        "no line that begins the table of a switch",
        "opensm.fdbs (`dump_ucast_routes: Switch 0x…`), a dump of LFTs (`Unicast lids …`) or routes.json",
    ))
}

/// What is said of switches that have no table. No dump has an end, so one that was cut off between two tables looks like one that
/// was written when these switches were not there: it is judged, and every walk from them is a hole.
pub(super) fn without_table(file: &str, graph: &SwitchGraph, seen: &[bool]) -> Option<String> {
    let mut without = (0..).zip(seen).filter(|(_, seen)| !**seen).map(|(s, _)| s);
    let first = graph.name(without.next()?);
    let (count, all) = (1 + without.count(), seen.len());
    Some(format!(
        "{file}: {count} of {all} switches have no table, the first is \"{first}\": they were not there when it was \
         written, or it was cut off between two tables"
    ))
}

/// What is said of `count` entries for LIDs that nobody has.
pub(super) fn unknown_lids(file: &str, count: usize, first: &str) -> String {
    format!("{file}: {count} entries are for LIDs that nobody has in this topology, first {first}")
}

/// By LID, whether a port of the topology has it.
pub(super) fn owned_lids(graph: &SwitchGraph) -> Vec<bool> {
    let mut owned = vec![false; usize::from(u16::MAX) + 1];
    for d in graph.destinations() {
        d.lids().for_each(|lid| owned[usize::from(lid)] = true);
    }
    owned
}

/// Collects rows.
pub(super) struct TableBuilder<'g> {
    graph: &'g SwitchGraph,
    by_guid: FxHashMap<Guid, SwitchIndex>,
    rows: Vec<Vec<u8>>,
    seen: Vec<bool>,
    current: Option<SwitchIndex>,
    /// By LID, the line of its entry in the table begun last; 0 for none.
    lines: Vec<usize>,
    unknown_lids: usize,
    first_unknown: String,
    owned: Vec<bool>,
    /// Lines that end a table.
    ends: usize,
    /// The line that the table begun last starts in.
    began: usize,
}

impl<'g> TableBuilder<'g> {
    pub(super) fn new(graph: &'g SwitchGraph) -> Self {
        let count = graph.switch_count();
        Self {
            graph,
            by_guid: (0..count as u32).map(|s| (graph.guid(s), s)).collect(),
            rows: vec![Vec::new(); count],
            seen: vec![false; count],
            current: None,
            lines: Vec::new(),
            unknown_lids: 0,
            first_unknown: String::new(),
            owned: owned_lids(graph),
            ends: 0,
            began: 0,
        }
    }

    /// Begins the table of a switch.
    pub(super) fn switch(&mut self, guid: Guid, at: &Cursor<'_>) -> Result<(), FormatError> {
        let switch = self.by_guid.get(&guid).copied().ok_or_else(|| {
            at.error_with(format!("switch {guid}"), "the NodeGUID of a switch of this topology")
        })?;
        if std::mem::replace(&mut self.seen[switch as usize], true) {
            return Err(at.error_with(format!("switch {guid} a second time"), "one table for each switch"));
        }
        self.current = Some(switch);
        self.lines.clear();
        self.began = at.line();
        Ok(())
    }

    /// The table begun last is at its end.
    pub(super) fn end(&mut self) {
        self.ends += 1;
        self.current = None;
    }

    /// That the file ends within a table.
    fn cut_off(&self, file: &str, switch: SwitchIndex, expected: String) -> FormatError {
        let found = format!("the file ends within the table of switch \"{}\"", self.graph.name(switch));
        FormatError { line: self.began, ..FormatError::file(file, found, expected) }
    }

    /// For dumps that have a line after each table: the last has one too.
    pub(super) fn expect_end(&self, file: &str) -> Result<(), FormatError> {
        match self.current {
            Some(switch) if self.ends > 0 => Err(self.cut_off(
                file,
                switch,
                "`… lids dumped` after each table, as after those before".into(),
            )),
            _ => Ok(()),
        }
    }

    /// For dumps that have a line for each LID in each table: the last has as many as the shortest of the others; where there are
    /// no others, those of this topology.
    pub(super) fn expect_all_lids(&self, file: &str) -> Result<(), FormatError> {
        let Some(last) = self.current else { return Ok(()) };
        let others = self.rows.iter().zip(0..).filter(|(row, s)| *s != last && !row.is_empty());
        let (least, like) = match others.map(|(row, _)| row.len()).min() {
            Some(least) => (least, "in the others"),
            None => (usize::from(self.graph.top_lid()) + 1, "the topology has"),
        };
        if self.rows[last as usize].len() < least {
            return Err(self.cut_off(file, last, format!("LIDs up to {}, as {like}", least - 1)));
        }
        Ok(())
    }

    /// Adds an entry to the switch begun last.
    pub(super) fn entry(&mut self, lid: u64, port: u64, at: &Cursor<'_>) -> Result<(), FormatError> {
        let switch = self.current.ok_or_else(|| at.error("the heading of a switch's table first"))?;
        if !(1..=0xbfff).contains(&lid) {
            return Err(at.error_with(format!("LID {lid}"), "a unicast LID, 1 to 0xbfff"));
        }
        let port = match u8::try_from(port) {
            Ok(NO_PORT) => NO_PORT,
            Ok(port) if port <= self.graph.num_ports(switch) => port,
            _ => {
                let most = PortNum(self.graph.num_ports(switch));
                let name = self.graph.name(switch);
                return Err(at.error_with(
                    format!("port {port} of switch \"{name}\""),
                    format!("a port from 0 to {most}, or 255 for none"),
                ));
            }
        };
        if self.lines.len() <= lid as usize {
            self.lines.resize(lid as usize + 1, 0);
        }
        match std::mem::replace(&mut self.lines[lid as usize], at.line()) {
            0 => {}
            first => {
                let name = self.graph.name(switch);
                return Err(at.error_with(
                    format!("LID {lid} a second time for switch \"{name}\", first in line {first}"),
                    "each LID once in a table",
                ));
            }
        }
        if !self.owned[lid as usize] && port != NO_PORT {
            if self.unknown_lids == 0 {
                let name = self.graph.name(switch);
                self.first_unknown = format!("LID {lid} of switch \"{name}\" in line {}", at.line());
            }
            self.unknown_lids += 1;
        }
        let row = &mut self.rows[switch as usize];
        if row.len() <= lid as usize {
            row.resize(lid as usize + 1, NO_PORT);
        }
        row[lid as usize] = port;
        Ok(())
    }

    /// The tables, all rows of one length.
    pub(super) fn finish(self, file: &str) -> Result<Tables, FormatError> {
        if !self.seen.contains(&true) {
            return Err(FormatError::file(file, "no table of any switch", "at least one"));
        }
        let top = self.rows.iter().map(Vec::len).max().unwrap_or(1).saturating_sub(1);
        let top = (top as u16).max(self.graph.top_lid());
        let mut routes = Routes::empty("file", self.graph);
        routes.lfts = LftMatrix::new(self.graph.switch_count(), top);
        for (s, row) in self.rows.iter().enumerate() {
            routes.lfts.row_mut(s as u32).update(|into| into[..row.len()].copy_from_slice(row));
        }
        let mut warnings = Vec::new();
        warnings.extend(without_table(file, self.graph, &self.seen));
        if self.unknown_lids > 0 {
            warnings.push(unknown_lids(file, self.unknown_lids, &self.first_unknown));
        }
        debug_assert_eq!(routes.lfts.stride() % LFT_BLOCK, 0);
        Ok(Tables { routes, warnings })
    }
}
