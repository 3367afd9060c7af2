//! SL-to-VL tables of switches as programs print them.
//!
//! | form | heading | line |
//! | --- | --- | --- |
//! | `opensm-sl2vl.dump` (opensm with `-D 0x40` where it sets the tables) | `Switch 0xGUID, base LID …` | `IN OUT : VL VL …` (16) |
//! | `smpquery sl2vl LID`, one output after another | `# SL2VL table: Lid N` | `ports: in I, out O: \| VL\| …` (16) |
//! | what `ibdmchk -d` takes | | `0xGUID IN OUT 0xVV …` (8 pairs of hexadecimal digits) |
//!
//! Tables of channel adapters are passed over: what they put a packet on is their own link. A switch that is named has a line for
//! each pair of its linked ports, as input port 0 too: opensm, smpquery and [`write()`] print them all (opensm those of unlinked
//! input ports besides), so one that is missing was cut off.

use std::fmt::Write;

use mad::types::Guid;
use rustc_hash::FxHashMap;

use super::error::{Cursor, FormatError};
use crate::fabric::{SwitchGraph, SwitchIndex};
use crate::routes::SlToVl;

/// Tables that were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The tables. Switches that the file does not name have VL = SL; at one that it does name, pairs of ports without a link drop
    /// packets (VL 15) where the file has no line for them.
    pub sl_to_vl: SlToVl,
    /// What is odd, a line each.
    pub warnings: Vec<String>,
}

/// Whose lines follow.
#[derive(Clone, Copy)]
enum Whose {
    Nobody,
    Adapter,
    Switch(SwitchIndex),
}

struct Builder<'g> {
    graph: &'g SwitchGraph,
    by_guid: FxHashMap<Guid, SwitchIndex>,
    tables: Vec<Vec<[u8; 16]>>,
    /// For each switch the line that names it first, 0 for none.
    named: Vec<usize>,
    /// For each switch the pairs of ports that have a line.
    seen: Vec<Vec<bool>>,
}

/// Reads any of the forms for the switches of `graph`.
///
/// # Errors
/// A switch or LID that the graph does not have, a port that the switch does not have, a line with fewer or more than 16 VLs from 0
/// to 15, lines before a heading, a pair of ports twice, a switch of which lines are missing, no table at all.
pub fn read(file: &str, text: &str, graph: &SwitchGraph) -> Result<Read, FormatError> {
    let own = graph.destinations().iter().filter(|d| d.port == 0).map(|d| (d.guid, d.switch));
    let node = (0..graph.switch_count() as SwitchIndex).map(|s| (graph.guid(s), s));
    let count = graph.switch_count();
    let mut builder = Builder {
        graph,
        by_guid: own.chain(node).collect(),
        tables: vec![Vec::new(); count],
        named: vec![0; count],
        seen: vec![Vec::new(); count],
    };
    let mut whose = Whose::Nobody;
    for (index, line) in text.lines().enumerate() {
        let mut at = Cursor::new(file, index + 1, line);
        at.blanks();
        if at.take("Switch 0x") {
            whose = Whose::Switch(builder.switch_by_guid(&mut at)?);
        } else if at.rest().starts_with("Channel Adapter") || at.rest().starts_with("Router") {
            whose = Whose::Adapter;
        } else if at.take("# SL2VL table:") {
            whose = builder.by_lid(at)?;
        } else if at.rest().is_empty() || at.rest().starts_with('#') {
        } else if at.take("0x") {
            builder.packed(at)?;
        } else {
            builder.line(whose, at)?;
        }
    }
    builder.finish(file, text)
}

impl Builder<'_> {
    fn switch_by_guid(&mut self, at: &mut Cursor<'_>) -> Result<SwitchIndex, FormatError> {
        let place = *at;
        let guid = Guid(at.hex("a GUID")?);
        let switch = self.by_guid.get(&guid).copied().ok_or_else(|| {
            place.error_with(format!("switch {guid}"), "the GUID of a switch of this topology")
        })?;
        self.name(switch, &place);
        Ok(switch)
    }

    /// A line names a switch.
    fn name(&mut self, switch: SwitchIndex, at: &Cursor<'_>) {
        let line = &mut self.named[switch as usize];
        if *line == 0 {
            *line = at.line();
        }
    }

    fn by_lid(&mut self, mut at: Cursor<'_>) -> Result<Whose, FormatError> {
        at.blanks();
        if !at.take("Lid") && !at.take("lid") {
            return Err(at.error("`Lid N` (a directed route says nothing of the switch)"));
        }
        at.blanks();
        let place = at;
        let lid = at.number("a LID", 0xbfff)?;
        let owner = self.graph.destinations().iter().find(|d| d.lids().any(|own| u64::from(own) == lid));
        match owner {
            Some(owner) if owner.port == 0 => {
                self.name(owner.switch, &place);
                Ok(Whose::Switch(owner.switch))
            }
            Some(_) => Ok(Whose::Adapter),
            None => Err(place.error_with(format!("LID {lid}"), "the LID of a port of this topology")),
        }
    }

    /// `IN OUT : VL …` or `ports: in I, out O: | VL| …`.
    fn line(&mut self, whose: Whose, mut at: Cursor<'_>) -> Result<(), FormatError> {
        let start = at;
        let named = at.take("ports:");
        let word = |at: &mut Cursor<'_>, word: &str| {
            at.blanks();
            if named { at.expect(word) } else { Ok(()) }
        };
        word(&mut at, "in")?;
        let input = port(&mut at)?;
        if named {
            at.expect(",")?;
        }
        word(&mut at, "out")?;
        let output = port(&mut at)?;
        at.blanks();
        at.expect(":")?;
        let mut map = [0; 16];
        for vl in &mut map {
            at.take_while(|c| c == ' ' || c == '|');
            *vl = at.number("16 VLs", 15)? as u8;
        }
        at.take_while(|c| c == ' ' || c == '|');
        ends(&at)?;
        match whose {
            Whose::Switch(switch) => self.set(switch, input, output, map, &start),
            Whose::Adapter => Ok(()),
            Whose::Nobody => Err(start.error("the heading of a node's table first")),
        }
    }

    /// `0xGUID IN OUT 0x01 0x23 …`, after the first `0x`.
    fn packed(&mut self, mut at: Cursor<'_>) -> Result<(), FormatError> {
        let start = at;
        let guid = Guid(at.hex("a GUID")?);
        let (input, output) = (port(&mut at)?, port(&mut at)?);
        let mut map = [0; 16];
        for pair in map.chunks_mut(2) {
            at.blanks();
            at.expect("0x")?;
            let place = at;
            let vls = u8::try_from(at.hex("two VLs")?).map_err(|_| place.error("two VLs, 00 to ff"))?;
            pair.copy_from_slice(&[vls >> 4, vls & 15]);
        }
        at.blanks();
        ends(&at)?;
        match self.by_guid.get(&guid) {
            Some(switch) => self.set(*switch, input, output, map, &start),
            // Adapters have lines of their own, but ports 0 0 only.
            None if (input, output) == (0, 0) => Ok(()),
            None => Err(start.error_with(format!("switch {guid}"), "the GUID of a switch of this topology")),
        }
    }

    fn set(
        &mut self,
        switch: SwitchIndex,
        input: u8,
        output: u8,
        map: [u8; 16],
        at: &Cursor<'_>,
    ) -> Result<(), FormatError> {
        let ports = self.graph.num_ports(switch);
        if input.max(output) > ports {
            let found = format!("ports {input} and {output} of switch \"{}\"", self.graph.name(switch));
            return Err(at.error_with(found, format!("ports from 0 to {ports}")));
        }
        self.name(switch, at);
        let side = usize::from(ports) + 1;
        let place = usize::from(input) * side + usize::from(output);
        let (table, seen) = (&mut self.tables[switch as usize], &mut self.seen[switch as usize]);
        table.resize(side * side, [15; 16]);
        seen.resize(side * side, false);
        table[place] = map;
        if std::mem::replace(&mut seen[place], true) {
            let found = format!("ports {input} and {output} of switch \"{}\" again", self.graph.name(switch));
            return Err(at.error_with(found, "each pair of ports once"));
        }
        Ok(())
    }

    /// That each switch that is named has all its lines.
    fn expect_all_pairs(&self, file: &str) -> Result<(), FormatError> {
        for s in (0..self.graph.switch_count() as SwitchIndex).filter(|s| self.named[*s as usize] > 0) {
            let (side, seen) = (usize::from(self.graph.num_ports(s)) + 1, &self.seen[s as usize]);
            let place = |(input, output): (u8, u8)| usize::from(input) * side + usize::from(output);
            let lacks = |pair: &(u8, u8)| seen.get(place(*pair)) != Some(&true);
            let mut missing = pairs(self.graph, s).filter(lacks);
            if let Some((input, output)) = missing.next() {
                let more = missing.count();
                let found = format!(
                    "{} lines of switch \"{}\" are missing, the first that of ports {input} and {output}",
                    more + 1,
                    self.graph.name(s)
                );
                let expected = "a line for each pair of its linked ports, as input port 0 too";
                return Err(FormatError {
                    line: self.named[s as usize],
                    ..FormatError::file(file, found, expected)
                });
            }
        }
        Ok(())
    }

    fn finish(mut self, file: &str, text: &str) -> Result<Read, FormatError> {
        self.expect_all_pairs(file)?;
        let missing = self.tables.iter().filter(|table| table.is_empty()).count();
        if missing == self.tables.len() {
            return Err(FormatError::nothing(file, text, "no table of any switch", "at least one"));
        }
        let identity: [u8; 16] = std::array::from_fn(|sl| sl as u8);
        for (s, table) in self.tables.iter_mut().enumerate().filter(|(_, table)| table.is_empty()) {
            let side = usize::from(self.graph.num_ports(s as SwitchIndex)) + 1;
            table.resize(side * side, identity);
        }
        let mut warnings = Vec::new();
        if missing > 0 {
            let all = self.tables.len();
            warnings.push(format!(
                "{file}: {missing} of {all} switches have no SL-to-VL table, taken as VL = SL"
            ));
        }
        Ok(Read { sl_to_vl: SlToVl::PerSwitch(self.tables), warnings })
    }
}

fn port(at: &mut Cursor<'_>) -> Result<u8, FormatError> {
    at.blanks();
    Ok(at.number("a port", 254)? as u8)
}

fn ends(at: &Cursor<'_>) -> Result<(), FormatError> {
    if at.rest().is_empty() { Ok(()) } else { Err(at.error("the end of the line after 16 VLs")) }
}

/// Pairs of an input and an output port between which packets go: linked ports, and port 0 as input. By output ports.
fn pairs(graph: &SwitchGraph, s: SwitchIndex) -> impl Iterator<Item = (u8, u8)> {
    let ends = graph.destinations().iter().filter(|d| d.switch == s && d.port != 0).map(|d| d.port);
    let mut ports: Vec<u8> = graph.arcs(s).iter().map(|arc| arc.out_port).chain(ends).collect();
    ports.sort_unstable();
    ports.dedup();
    let inputs: Vec<u8> = std::iter::once(0).chain(ports.iter().copied()).collect();
    ports.into_iter().flat_map(move |output| inputs.clone().into_iter().map(move |input| (input, output)))
}

/// The tables of all links as `opensm-sl2vl.dump` has them.
pub fn write(graph: &SwitchGraph, sl_to_vl: &SlToVl) -> String {
    const LINE: &str = "#--------------------------------------------------------";
    let mut out = String::new();
    for s in 0..graph.switch_count() as SwitchIndex {
        let own = graph.destinations().iter().find(|d| d.switch == s && d.port == 0);
        let (guid, lid) = own.map_or_else(|| (graph.guid(s), 0), |own| (own.guid, own.lid.get()));
        // Writing to a string can't fail.
        let _ = writeln!(out, "Switch {guid}, base LID {lid}, \"{}\"", graph.name(s));
        let _ = writeln!(out, "#in out : 0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15\n{LINE}");
        for (input, output) in pairs(graph, s) {
            let _ = write!(out, "{input:<3} {output:<3} :");
            for sl in 0..16 {
                let _ = write!(out, " {:<2}", sl_to_vl.vl(s, graph.num_ports(s), (input, output), sl));
            }
            out.push('\n');
        }
        let _ = writeln!(out, "{LINE}\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::{RoutingInput, by_name};
    use crate::fabric::testing;
    use crate::routes::Routes;
    use crate::verify::{Options, check};

    fn graph() -> SwitchGraph {
        SwitchGraph::new(&testing::torus(&[4], 1, 0))
    }

    fn at(read: &Read, graph: &SwitchGraph, s: SwitchIndex, ports: (u8, u8)) -> [u8; 16] {
        std::array::from_fn(|sl| read.sl_to_vl.vl(s, graph.num_ports(s), ports, sl))
    }

    #[test]
    fn the_three_forms_say_the_same() {
        let graph = graph();
        let lid = graph.destinations().iter().find(|d| d.port == 0 && d.switch == 1).unwrap().lid.get();
        let host = graph.destinations().iter().find(|d| d.host).unwrap();
        let guid = graph.guid(1);
        let mut opensm = format!(
            "Channel Adapter {}, base LID 1, \"H\"\n#in out : 0  1\n#----\n0   0   : 9  9  9  9  9  9  9  9  9  9  9  9  9  9  9  9 \n\n\
             Switch {guid}, base LID {lid}, \"S2\"\n",
            host.guid
        );
        let mut smpquery = format!(
            "# SL2VL table: Lid {}\nports: in  0, out  0: | 9| 9| 9| 9| 9| 9| 9| 9| 9| 9| 9| 9| 9| 9| 9| 9|\n",
            host.lid.get()
        );
        let mut packed = String::new();
        let outputs: std::collections::BTreeSet<u8> = pairs(&graph, 1).map(|(_, output)| output).collect();
        assert_eq!(outputs.len(), 3);
        // As opensm and smpquery print them: all inputs, with those without a link, for each output.
        for output in outputs {
            writeln!(smpquery, "# SL2VL table: Lid {lid}\n#                 SL: | 0| 1|").unwrap();
            for input in 0..=graph.num_ports(1) {
                writeln!(opensm, "{input:<3} {output:<3} : 0  1  2  3  4  5  6  7  0  1  2  3  4  5  6  7 ")
                    .unwrap();
                writeln!(
                    smpquery,
                    "ports: in {input:2}, out {output:2}: | 0| 1| 2| 3| 4| 5| 6| 7| 0| 1| 2| 3| 4| 5| 6| 7|"
                )
                .unwrap();
                writeln!(packed, "{guid} {input} {output} 0x01 0x23 0x45 0x67 0x01 0x23 0x45 0x67").unwrap();
            }
        }
        for text in [opensm, smpquery, packed] {
            let read = read("t", &text, &graph).unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(at(&read, &graph, 1, (1, 2)), std::array::from_fn(|sl| sl as u8 % 8));
            assert_eq!(at(&read, &graph, 1, (2, 60)), [15; 16]);
            assert_eq!(at(&read, &graph, 0, (2, 1)), std::array::from_fn(|sl| sl as u8));
            assert_eq!(read.warnings, ["t: 3 of 4 switches have no SL-to-VL table, taken as VL = SL"]);
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let graph = graph();
        let said = |text: &str| read("t", text, &graph).unwrap_err().to_string();
        let own = graph.guid(0);
        assert_eq!(said(""), "t: the file is empty, expected at least one");
        assert_eq!(said("# none"), "t: no table of any switch, expected at least one");
        assert_eq!(said("1 2 : 0"), "t:1:8: the line ends, expected 16 VLs, 0 to 15");
        let line = "1 2 : 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7";
        assert_eq!(
            said(line),
            format!("t:1:1: found `{line}`, expected the heading of a node's table first")
        );
        assert_eq!(
            said("Switch 0x0000000000000099, base LID 1, \"x\"\n"),
            "t:1:10: switch 0x0000000000000099, expected the GUID of a switch of this topology"
        );
        let far = said(&format!("Switch {own}, base\n1 99 : 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7"));
        assert!(
            far.starts_with("t:2:1: ports 1 and 99 of switch \"S1\", expected ports from 0 to "),
            "{far}"
        );
        assert!(
            said(&format!("Switch {own}, base\n1 2 : 0 1 2 3 16"))
                .contains("t:2:15: found `16`, expected 16 VLs")
        );
        let row = format!("Switch {own}, base\n{line}\n");
        assert_eq!(
            said(&format!("{row}{line}\n")),
            "t:3:1: ports 1 and 2 of switch \"S1\" again, expected each pair of ports once"
        );
        for more in [" 7", " x", " | 7"] {
            let last = more.trim_start_matches([' ', '|']);
            let beyond = said(&format!("Switch {own}, base\n{line}{more}\n"));
            assert!(
                beyond.contains(&format!("found `{last}`, expected the end of the line after 16 VLs")),
                "{beyond}"
            );
        }
        assert!(
            said(&format!("{own} 1 2 0x01 0x23 0x45 0x67 0x01 0x23 0x45 0x67 0x01"))
                .contains("found `0x01`, expected the end of the line after 16 VLs")
        );
        assert_eq!(
            said("# SL2VL table: Lid 999\n"),
            "t:1:20: LID 999, expected the LID of a port of this topology"
        );
        assert!(said("# SL2VL table: DR path slid 0; dlid 0; 0,1").contains("expected `Lid N`"));
    }

    /// Whatever line of a switch is missing, and however many: opensm prints the lines of all its linked ports.
    #[test]
    fn a_dump_without_all_lines_of_a_switch_is_refused() {
        let graph = graph();
        let whole = write(&graph, &SlToVl::Uniform([0; 16]));
        assert!(read("t", &whole, &graph).is_ok());
        let lines: Vec<&str> = whole.lines().collect();
        let is_row = |line: &str| line.starts_with(|c: char| c.is_ascii_digit());
        let rows = lines.iter().filter(|line| is_row(line)).count();
        assert_eq!(rows, 4 * 4 * 3);
        let tail = "expected a line for each pair of its linked ports, as input port 0 too";
        for at in (0..lines.len()).filter(|at| is_row(lines[*at])) {
            let without = [&lines[..at], &lines[at + 1..]].concat().join("\n");
            let error = read("t", &without, &graph).unwrap_err().to_string();
            let pair: Vec<&str> = lines[at].split_whitespace().take(2).collect();
            let found = format!(" are missing, the first that of ports {} and {}, {tail}", pair[0], pair[1]);
            assert!(error.contains(": 1 lines of switch \"") && error.ends_with(&found), "{error}");
            // Cut off before it.
            let cut = lines[..at].join("\n");
            let error = read("t", &cut, &graph).unwrap_err().to_string();
            assert!(error.contains(" lines of switch \"") && error.ends_with(&found), "{error}");
        }
    }

    /// dfsssp's lanes on a ring, with all tables written out, are free of credit loops; with the tables of a network that knows
    /// one lane they are not.
    #[test]
    fn tables_that_were_written_and_read_carry_the_lanes() {
        let graph = SwitchGraph::new(&testing::torus(&[5], 1, 0));
        let input = RoutingInput { data_vls: 8, ..RoutingInput::default() };
        let routes = by_name("dfsssp").unwrap().route(&graph, &input).unwrap();
        let with = |text: &str| {
            let read = read("t", text, &graph).unwrap();
            assert!(read.warnings.is_empty());
            check(&graph, &Routes { sl_to_vl: read.sl_to_vl, ..routes.clone() }, Options::default())
        };
        assert!(with(&write(&graph, &routes.sl_to_vl)).is_right());
        assert!(with(&write(&graph, &SlToVl::Uniform([0; 16]))).credit_loop.is_some());
    }
}
