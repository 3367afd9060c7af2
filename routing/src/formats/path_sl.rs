//! Service levels of paths. Pairs that a file does not name have SL 0.
//!
//! | form | heading | line |
//! | --- | --- | --- |
//! | what `ibdmchk -c` takes | | `0xGUID DLID SL`: GUID of a host's node or port, decimal LID |
//! | a dump by port | `Channel Adapter 0xPORTGUID, …` | `0xDLID : SL` |
//! | `path-sl.dump` of `rsm route -o` | `Switch 0xGUID, …`, or `Every switch` for all that are not named: where packets enter | `0xDLID : SL`, or `0xDLID-0xDLID : SL` for LIDs that follow one another |
//!
//! The last is smaller than the first by the number of hosts on a leaf and more. Its head says which SL-to-VL tables go with it, its
//! last line that it is whole.

use std::fmt::Write;

use mad::types::Guid;
use rustc_hash::FxHashMap;

use super::end_mark::{END, is_ours};
use super::error::{Cursor, FormatError};
use crate::fabric::{Fabric, SwitchGraph, SwitchIndex};
use crate::routes::{LftMatrix, NO_PORT, PathSl, Routes, SlToVl};

/// The line by which a dump says that the tables of `opensm-sl2vl.dump` beside it go with its SLs.
const WITH_TABLES: &str = "# SL-to-VL tables: opensm-sl2vl.dump";

/// How the first line of our own dumps begins, and their last.
const HEAD: &str = "# Service levels of the paths of ";

/// The form with a heading for each switch that packets enter.
pub fn write(graph: &SwitchGraph, routes: &Routes) -> String {
    let tables = match routes.sl_to_vl {
        SlToVl::Identity => "# SL-to-VL tables: none, VL = SL",
        _ => WITH_TABLES,
    };
    let mut out = format!(
        "{HEAD}{}, by the switch where packets enter; those not named are 0\n{tables}\n",
        routes.engine
    );
    match &routes.sl {
        PathSl::Default => {}
        PathSl::ByDestination(sls) => section(&mut out, "Every switch", sls),
        PathSl::BySourceSwitch(rows) => {
            for s in 0..graph.switch_count() as SwitchIndex {
                let heading = format!("Switch {}, \"{}\"", graph.guid(s), graph.name(s));
                section(&mut out, &heading, &rows.row(s).to_vec());
            }
        }
    }
    out + END + "\n"
}

/// What is not SL 0 of one row.
fn section(out: &mut String, heading: &str, sls: &[u8]) {
    let mut lines = String::new();
    let mut lid = 0;
    for same in sls.chunk_by(|a, b| a == b) {
        let (first, sl) = (lid, same[0]);
        lid += same.len();
        // Writing to a string can't fail.
        let _ = match sl {
            0 | 16.. => Ok(()),
            sl if same.len() == 1 => writeln!(lines, "0x{first:04X} : {sl}"),
            sl => writeln!(lines, "0x{first:04X}-0x{:04X} : {sl}", lid - 1),
        };
    }
    if !lines.is_empty() {
        let _ = write!(out, "{heading}\nLID : SL\n{lines}");
    }
}

/// Whether a dump says that the SL-to-VL tables beside it go with it.
pub fn goes_with_tables(text: &str) -> bool {
    text.lines().take_while(|line| line.starts_with('#')).any(|line| line.trim_end() == WITH_TABLES)
}

/// Whose lines follow.
#[derive(Clone, Copy)]
enum From {
    Nobody,
    Every,
    Switch(SwitchIndex),
}

struct Builder {
    by_guid: FxHashMap<Guid, SwitchIndex>,
    /// For packets that enter at a switch that is not named.
    every: Vec<u8>,
    sls: LftMatrix,
    top: u64,
}

/// Reads any of the forms for the hosts and switches of `graph`.
///
/// # Errors
/// A GUID or LID that the topology does not have, an SL above 15, two SLs for one LID from hosts of one switch (they are judged
/// switch by switch), LIDs from a higher to a lower one, lines before a heading; a dump of ours without its last line, a file
/// that says nothing.
pub fn read(file: &str, text: &str, fabric: &Fabric, graph: &SwitchGraph) -> Result<PathSl, FormatError> {
    let own = graph.destinations().iter().map(|d| (d.guid, d.switch));
    let node = graph.destinations().iter().map(|d| (fabric.node(d.end.node).guid, d.switch));
    let switch = (0..graph.switch_count() as SwitchIndex).map(|s| (graph.guid(s), s));
    let mut builder = Builder {
        by_guid: node.chain(own).chain(switch).collect(),
        every: vec![NO_PORT; usize::from(graph.top_lid()) + 1],
        sls: LftMatrix::filled(graph.switch_count(), graph.top_lid(), NO_PORT),
        top: u64::from(graph.top_lid()),
    };
    let mut says = is_ours(file, text, HEAD)?;
    let mut from = From::Nobody;
    for (index, line) in text.lines().enumerate() {
        let mut at = Cursor::new(file, index + 1, line);
        at.blanks();
        says |= !at.rest().is_empty() && !at.rest().starts_with('#');
        if at.rest() == "Every switch" {
            from = From::Every;
            continue;
        }
        let heading = ["Channel Adapter ", "Switch ", "Router "].iter().any(|kind| at.take(kind));
        if at.rest().is_empty() || at.rest().starts_with(['#', 'L']) {
            continue;
        }
        at.expect("0x")?;
        let place = at;
        let number = at.hex("a GUID or LID")?;
        if heading {
            from = From::Switch(builder.source(number, &place)?);
            continue;
        }
        let last = if at.take("-0x") { Some((at, at.hex("a LID")?)) } else { None };
        at.blanks();
        if last.is_some() && !at.rest().starts_with(':') {
            return Err(at.error("`:`"));
        }
        if at.take(":") {
            at.blanks();
            let (end, last) = last.unwrap_or((place, number));
            if matches!(from, From::Nobody) {
                return Err(place.error("a heading with the source's GUID first"));
            }
            builder.check(number, &place)?;
            builder.check(last, &end)?;
            if last < number {
                let found = format!("LIDs from {number} down to {last}");
                return Err(place.error_with(found, "the lower LID first"));
            }
            (number..=last).try_for_each(|lid| builder.set(from, lid, at))?;
        } else {
            let from = From::Switch(builder.source(number, &place)?);
            let place = at;
            let lid = at.number("a LID", 0xbfff)?;
            at.blanks();
            builder.check(lid, &place)?;
            builder.set(from, lid, at)?;
        }
    }
    if !says {
        let expected = "path-sl.dump, a dump by port, or lines `GUID DLID SL`";
        return Err(FormatError::nothing(file, text, "no service level of any path", expected));
    }
    Ok(builder.finish())
}

impl Builder {
    fn source(&self, guid: u64, at: &Cursor<'_>) -> Result<SwitchIndex, FormatError> {
        let found = self.by_guid.get(&Guid(guid)).copied();
        found.ok_or_else(|| {
            at.error_with(format!("GUID {}", Guid(guid)), "the GUID of a node or port of this topology")
        })
    }

    fn check(&self, lid: u64, place: &Cursor<'_>) -> Result<(), FormatError> {
        if (1..=self.top).contains(&lid) {
            return Ok(());
        }
        Err(place.error_with(format!("LID {lid}"), format!("a LID from 1 to {}", self.top)))
    }

    fn set(&mut self, from: From, lid: u64, mut at: Cursor<'_>) -> Result<(), FormatError> {
        let level = at;
        let sl = at.number("an SL", 15)? as u8;
        let there = match from {
            From::Switch(switch) => &mut self.sls.row_mut(switch)[lid as usize],
            _ => &mut self.every[lid as usize],
        };
        if *there != NO_PORT && *there != sl {
            let found = format!("SL {sl} for LID {lid}, where another host of the switch has SL {there}");
            return Err(level.error_with(found, "one SL for all hosts of a switch"));
        }
        *there = sl;
        Ok(())
    }

    fn finish(mut self) -> PathSl {
        let names = |sl: &u8| *sl != NO_PORT;
        let all = 0..self.sls.switch_count() as SwitchIndex;
        let by_switch: Vec<SwitchIndex> =
            all.clone().filter(|s| self.sls.row(*s).iter().any(names)).collect();
        if self.every.iter().any(names) && by_switch.is_empty() {
            self.every.iter_mut().filter(|sl| **sl == NO_PORT).for_each(|sl| *sl = 0);
            return PathSl::ByDestination(self.every);
        }
        for s in all.filter(|s| by_switch.binary_search(s).is_err()) {
            self.sls.row_mut(s).update(|row| row[..self.every.len()].copy_from_slice(&self.every));
        }
        PathSl::BySourceSwitch(self.sls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::{RoutingInput, by_name};
    use crate::fabric::testing;
    use crate::verify::{Options, check};

    #[test]
    fn both_forms_are_read_and_what_is_wrong_is_named() {
        let fabric = testing::fat_tree(&[2, 2], &[1, 1], 0);
        let graph = SwitchGraph::new(&fabric);
        let hosts: Vec<_> = graph.destinations().iter().filter(|d| d.host).collect();
        let (first, beside, far) = (hosts[0], hosts[1], hosts[2].lid.get());
        let lines = format!("{} {far} 3\n", first.guid);
        let dump = format!("Channel Adapter {}, base LID 1, \"H1\"\nLID : SL\n0x{far:04X} : 3\n", first.guid);
        for text in [lines.as_str(), dump.as_str()] {
            let PathSl::BySourceSwitch(sls) = read("f", text, &fabric, &graph).unwrap() else { panic!() };
            assert_eq!(sls.row(first.switch)[usize::from(far)], 3);
        }
        let said = |text: &str| read("f", text, &fabric, &graph).unwrap_err().to_string();
        assert!(said("0x99 1 1").starts_with("f:1:3: GUID 0x0000000000000099, expected the GUID of a node"));
        assert!(said(&format!("{} 1 16", first.guid)).contains("found `16`, expected an SL, 0 to 15"));
        assert!(said(&format!("{} 999 1", first.guid)).contains("LID 999, expected a LID from 1 to"));
        assert!(said("0x0001 : 1").contains("expected a heading with the source's GUID first"));
        assert!(
            said(&format!("{lines}{} {far} 2\n", beside.guid))
                .contains("where another host of the switch has SL 3")
        );
    }

    /// What every engine with lanes writes is judged, read back, as its own SLs are.
    #[test]
    fn levels_that_were_written_are_read_back() {
        let fabric = testing::torus(&[4, 4], 2, 1);
        let graph = SwitchGraph::new(&fabric);
        let input = RoutingInput { data_vls: 8, ..RoutingInput::default() };
        let mut several = 0;
        for engine in ["minhop", "dor", "dfsssp", "lash", "nue", "torus-2qos"] {
            let routes = by_name(engine).unwrap().route(&graph, &input).unwrap();
            let text = write(&graph, &routes);
            assert_eq!(goes_with_tables(&text), routes.sl_to_vl != SlToVl::Identity, "{engine}");
            let read = Routes { sl: read("f", &text, &fabric, &graph).unwrap(), ..routes.clone() };
            for d in graph.destinations().iter().filter(|d| d.host) {
                for (s, lid) in (0..graph.switch_count() as u32).flat_map(|s| d.lids().map(move |l| (s, l))) {
                    let lid = mad::types::Lid::new(lid).unwrap();
                    let [was, is] =
                        [&routes, &read].map(|r| r.path_sl(s, lid)).map(|sl| if sl < 16 { sl } else { 0 });
                    assert_eq!(was, is, "{engine}: from switch {s} to LID {lid}");
                    several += usize::from(was > 0);
                }
            }
            let judged = [&routes, &read].map(|routes| check(&graph, routes, Options::default()).credit_loop);
            assert_eq!(judged[0], judged[1], "{engine}");
        }
        assert!(several > 1000, "{several} paths of other SLs than 0");
    }

    #[test]
    fn stretches_of_lids_and_switches_that_are_not_named() {
        let fabric = testing::fat_tree(&[2, 2], &[1, 1], 0);
        let graph = SwitchGraph::new(&fabric);
        let guid = graph.guid(0);
        let text = format!("Every switch\nLID : SL\n0x0001-0x0003 : 5\nSwitch {guid}, \"S1\"\n0x0002 : 1\n");
        let PathSl::BySourceSwitch(sls) = read("f", &text, &fabric, &graph).unwrap() else { panic!() };
        assert_eq!(sls.row(0).to_vec()[..4], [NO_PORT, NO_PORT, 1, NO_PORT]);
        assert_eq!(sls.row(1).to_vec()[..5], [NO_PORT, 5, 5, 5, NO_PORT]);
        let said = |text: &str| read("f", text, &fabric, &graph).unwrap_err().to_string();
        assert!(
            said("Every switch\n0x0001-0x0099 : 5").starts_with("f:2:10: LID 153, expected a LID from 1 to")
        );
        assert_eq!(
            said("Every switch\n0x0003-0x0002 : 5"),
            "f:2:3: LIDs from 3 down to 2, expected the lower LID first"
        );
        assert!(read("f", "Every switch\n0x0002-0x0002 : 5", &fabric, &graph).is_ok());
        let forms = "expected path-sl.dump, a dump by port, or lines `GUID DLID SL`";
        assert_eq!(said(""), format!("f: the file is empty, {forms}"));
        assert_eq!(said("# none\n"), format!("f: no service level of any path, {forms}"));
        let none = write(&graph, &Routes::empty("minhop", &graph));
        assert!(read("f", &none, &fabric, &graph).is_ok(), "a dump of ours where all are 0");
        assert!(said("Every switch\n0x0001-0x0002 5").contains("expected `:`"));
        assert!(said("Every switch\n0x0001 : 5\n0x0001 : 4").contains("SL 4 for LID 1, where another"));
    }
}
