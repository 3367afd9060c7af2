//! `opensm.mcfdbs`, the multicast tables as opensm dumps them under `-D 0x40`; ibdmchk reads them.
//!
//! The form has no end: cut between two tables it looks like one of fewer switches. Ours begin and end with comments, which
//! ibdmchk passes over, so that one of ours is known to be whole; in opensm's the verifier finds the switches that others copy to
//! and that have no entry.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};

use mad::types::{Guid, MulticastLid, PortNum};

use super::end_mark::{END, is_ours};
use super::error::{Cursor, FormatError};
use crate::fabric::SwitchGraph;

/// How our own dumps begin.
const HEAD: &str = "# Multicast tables; the last line is `# end`";

/// For each switch, by NodeGUID, the ports that each multicast LID goes out of.
pub type MulticastTables = BTreeMap<Guid, BTreeMap<MulticastLid, BTreeSet<PortNum>>>;

/// The tables of the switches of `graph` by NodeGUID.
pub fn by_guid(graph: &SwitchGraph, tables: &crate::multicast::MulticastTables) -> MulticastTables {
    let of = |switch| {
        let entries = tables.entries(switch).map(|(mlid, ports)| (mlid, ports.iter().map(PortNum).collect()));
        (graph.guid(switch), entries.collect())
    };
    (0..graph.switch_count() as u32).map(of).collect()
}

/// Reads the dump.
///
/// # Errors
/// A line that is none of the format or has no end, an MLID outside 0xC000 to 0xFFFE, a port above 254, entries before a heading, a switch or
/// an MLID in its table twice; a dump of ours without its last line, a file without a table.
pub fn read(file: &str, text: &str) -> Result<MulticastTables, FormatError> {
    let mut tables = MulticastTables::new();
    lines(file, text, &mut |entry, _| {
        match entry {
            Entry::Switch(guid) => drop(tables.entry(guid).or_default()),
            Entry::Port(guid, mlid, port) => {
                tables.entry(guid).or_default().entry(mlid).or_default().insert(PortNum(port));
            }
        }
        Ok(())
    })?;
    Ok(tables)
}

/// Reads the dump for the switches of `graph`.
///
/// # Errors
/// As [`read`]; a switch that the graph does not have, a port that the switch does not have.
pub fn read_for(
    file: &str,
    text: &str,
    graph: &SwitchGraph,
) -> Result<crate::multicast::MulticastTables, FormatError> {
    let mut tables = crate::multicast::MulticastTables::new(graph.switch_count());
    lines(file, text, &mut |entry, at| {
        let (Entry::Switch(guid) | Entry::Port(guid, ..)) = entry;
        let switch = graph.find(guid).ok_or_else(|| {
            at.error_with(format!("switch {guid}"), "the NodeGUID of a switch of this topology")
        })?;
        if let Entry::Port(_, mlid, port) = entry {
            let most = graph.num_ports(switch);
            if port > most {
                let found = format!("port {port} of switch \"{}\"", graph.name(switch));
                return Err(at.error_with(found, format!("a port from 0 to {most}")));
            }
            let mut ports = tables.ports(switch, mlid);
            ports.insert(port);
            tables.set_ports(switch, mlid, ports);
        }
        Ok(())
    })?;
    Ok(tables)
}

/// What a place in the dump says.
#[derive(Clone, Copy)]
enum Entry {
    /// The table of a switch begins.
    Switch(Guid),
    /// The switch copies packets for an MLID to a port.
    Port(Guid, MulticastLid, u8),
}

fn lines(
    file: &str,
    text: &str,
    take: &mut dyn FnMut(Entry, &Cursor<'_>) -> Result<(), FormatError>,
) -> Result<(), FormatError> {
    let ours = is_ours(file, text, HEAD)?;
    let mut current = None;
    // The line in which each table begins, and each entry of the table at hand stands.
    let (mut begun, mut entries) = (BTreeMap::new(), BTreeMap::new());
    for (index, line) in text.lines().enumerate() {
        let mut at = Cursor::new(file, index + 1, line);
        at.blanks();
        if at.take("Switch 0x") {
            let place = at;
            let guid = Guid(at.hex("a GUID")?);
            once(&mut begun, guid, &place, &format!("switch {guid}"), "one table for each switch")?;
            entries.clear();
            current = Some(guid);
            take(Entry::Switch(guid), &place)?;
        } else if at.rest().starts_with("0x") {
            let start = at;
            at.take("0x");
            let raw = at.hex("a multicast LID")?;
            let mlid = u16::try_from(raw).ok().and_then(MulticastLid::new);
            let mlid = mlid.ok_or_else(|| start.error("a multicast LID, 0xC000 to 0xFFFE"))?;
            at.blanks();
            at.expect(":")?;
            let guid = current.ok_or_else(|| start.error("`Switch 0x…` first"))?;
            let what = format!("MLID 0x{:04X}", mlid.get());
            once(&mut entries, mlid, &start, &what, "each MLID once in a table")?;
            if !text.ends_with('\n') && text.lines().nth(index + 1).is_none() {
                return Err(start.error_with("the file ends within this line", "all ports and a line end"));
            }
            ports(at, &mut |port, place| take(Entry::Port(guid, mlid, port), place))?;
        } else if !at.rest().is_empty() && !at.rest().starts_with(['#', 'L']) {
            return Err(at.error("`Switch 0x…` or `0xMLID : 0xPORT …`"));
        }
    }
    if begun.is_empty() && !ours {
        let expected = "opensm.mcfdbs (`Switch 0x…`)";
        return Err(FormatError::nothing(file, text, "no table of any switch", expected));
    }
    Ok(())
}

/// Notes the line of something that is to be there once.
fn once<K: Ord>(
    lines: &mut BTreeMap<K, usize>,
    key: K,
    at: &Cursor<'_>,
    what: &str,
    expected: &str,
) -> Result<(), FormatError> {
    match lines.insert(key, at.line()) {
        None => Ok(()),
        Some(first) => Err(at.error_with(format!("{what} a second time, first in line {first}"), expected)),
    }
}

fn ports(
    mut at: Cursor<'_>,
    take: &mut dyn FnMut(u8, &Cursor<'_>) -> Result<(), FormatError>,
) -> Result<(), FormatError> {
    loop {
        at.blanks();
        if at.rest().is_empty() {
            return Ok(());
        }
        let start = at;
        at.expect("0x")?;
        let port = u8::try_from(at.hex("a port")?).ok().filter(|p| *p < 255);
        take(port.ok_or_else(|| start.error("a port, 0x000 to 0x0FE"))?, &start)?;
    }
}

/// The dump. Switches with empty tables are left out, as opensm does.
pub fn write(tables: &MulticastTables) -> String {
    let mut out = format!("{HEAD}\n");
    let mut switches: Vec<_> = tables.iter().filter(|(_, t)| t.values().any(|p| !p.is_empty())).collect();
    // opensm's map is sorted by the GUID's bytes as they lie in memory.
    switches.sort_by_key(|(guid, _)| guid.0.swap_bytes());
    for (guid, table) in switches {
        // Writing to a string can't fail.
        let _ = print(&mut out, *guid, table);
    }
    out + END + "\n"
}

fn print(out: &mut String, guid: Guid, table: &BTreeMap<MulticastLid, BTreeSet<PortNum>>) -> fmt::Result {
    writeln!(out, "\nSwitch {guid}\nLID    : Out Port(s)")?;
    for (mlid, ports) in table.iter().filter(|(_, ports)| !ports.is_empty()) {
        write!(out, "0x{:04X} :", mlid.get())?;
        ports.iter().try_for_each(|port| write!(out, " 0x{:03X} ", port.0))?;
        out.push('\n');
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::engines::{RoutingInput, by_name};
    use crate::fabric::testing;
    use crate::formats::members;
    use crate::multicast::{Member, plan};
    use crate::verify::multicast::{Group, MulticastFaultKind, check, groups_of};

    #[test]
    fn a_dump_without_a_table_is_refused_and_one_of_ours_has_an_end() {
        let said = |text: &str| read("m", text).unwrap_err().to_string();
        let expected = "expected opensm.mcfdbs (`Switch 0x…`)";
        assert_eq!(said("\n \n"), format!("m: the file is empty, {expected}"));
        assert_eq!(said("# none\n"), format!("m: no table of any switch, {expected}"));
        let none = write(&MulticastTables::new());
        assert_eq!(read("m", &none).unwrap(), MulticastTables::new(), "a fabric without groups");
        let entry = BTreeMap::from([(MulticastLid::MIN, BTreeSet::from([PortNum(1)]))]);
        let tables: MulticastTables = [7, 8, 9].map(|guid| (Guid(guid), entry.clone())).into();
        let text = write(&tables);
        assert_eq!(read("m", &text).unwrap(), tables);
        for end in HEAD.len()..text.trim_end().len() {
            let torn = read("m", &text[..end]).unwrap_err().to_string();
            assert_eq!(torn, "m: the dump ends too soon, expected `# end` as the last line", "byte {end}");
        }
    }

    #[test]
    fn tables_and_entries_that_are_there_twice_are_refused_with_both_lines() {
        let said = |text: &str| read("m", text).unwrap_err().to_string();
        let table = "Switch 0x0000000000000007\nLID    : Out Port(s)\n0xC000 : 0x001\n0xC001 : 0x002\n";
        assert!(read("m", table).is_ok());
        assert_eq!(
            said(&format!("{table}0xC000 : 0x003\n")),
            "m:5:1: MLID 0xC000 a second time, first in line 3, expected each MLID once in a table"
        );
        assert_eq!(
            said(&format!("{table}{table}")),
            "m:5:10: switch 0x0000000000000007 a second time, first in line 1, expected one table for each switch"
        );
        assert!(read("m", &format!("{table}{}", table.replace("07", "08"))).is_ok());
    }

    /// Groups of all, of a few, with a member that only sends and with an SL: what is dumped reads back as the same tables, the list
    /// of members as the same groups, and the two are right together; an entry less is found by the list alone.
    #[test]
    fn a_dump_and_a_list_of_members_say_what_was_planned() {
        let graph = SwitchGraph::new(&testing::fat_tree(&[3, 4], &[1, 2], 0));
        let routes = by_name("updn").unwrap().route(&graph, &RoutingInput::default()).unwrap();
        let hosts: Vec<_> = graph.destinations().iter().filter(|d| d.host).collect();
        let mut list = String::new();
        let mut groups = Vec::new();
        for (number, step) in [1, 3, 5].into_iter().enumerate() {
            let mlid = MulticastLid::new(0xc000 + 40 * number as u16).unwrap();
            let sl = number as u8;
            writeln!(list, "0x{:X} sl {sl}", mlid.get()).unwrap();
            let mut group = Group { mlid, members: Vec::new(), sl };
            for (place, d) in hosts.iter().step_by(step).enumerate() {
                let receives = place != 1;
                writeln!(list, "0x{:X} {}{}", mlid.get(), d.guid, if receives { "" } else { " send-only" })
                    .unwrap();
                group.members.push(Member { switch: d.switch, port: d.port, receives });
            }
            groups.push(group);
        }
        assert_eq!(members::read("list", &list, &graph).unwrap(), groups);
        let tables = plan(&graph, &groups, &routes, None).tables;
        let dump = write(&by_guid(&graph, &tables));
        assert_eq!(read_for("dump", &dump, &graph).unwrap(), tables);
        assert_eq!(
            read("dump", &dump).unwrap(),
            by_guid(&graph, &tables).into_iter().filter(|(_, t)| !t.is_empty()).collect()
        );
        let report = check(&graph, &tables, &groups, &routes);
        assert!(report.is_right(), "{report}");
        // Without the list those are members that something is delivered to.
        for (known, group) in groups_of(&graph, &tables).into_iter().zip(&groups) {
            let mut receiving: Vec<Member> = group.members.iter().copied().filter(|m| m.receives).collect();
            receiving.sort_unstable();
            assert_eq!((known.mlid, known.members), (group.mlid, receiving));
        }
        let last = dump.rfind(" 0x0").unwrap();
        let less = read_for("dump", &(dump[..last].to_owned() + "\n# end\n"), &graph).unwrap();
        let report = check(&graph, &less, &groups, &routes);
        let missing = report.faults.iter().find(|(kind, _)| *kind == MulticastFaultKind::Missing).unwrap().1;
        assert!(missing > 0 && !report.is_right(), "{report}");
    }
}
