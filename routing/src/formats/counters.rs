//! Port counters as perfquery prints them, any number of ports one after the other: what left each switch by each port.
//!
//! A block begins with `# Port counters: Lid 3 port 1 …` or `# Port extended counters: …`; of its rows only PortXmitData
//! (in units of four bytes) is taken. Blocks of ports that are no switch's are passed over, those of LIDs that nobody has are told.

use std::collections::BTreeMap;

use mad::types::{Guid, PortNum};
use rustc_hash::{FxHashMap, FxHashSet};

use super::error::{Cursor, FormatError};
use crate::fabric::SwitchGraph;

/// PortXmitData by switch and port.
pub type Counters = BTreeMap<(Guid, PortNum), u64>;

/// Whether this is output of perfquery.
pub fn are_in(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("# Port ") && line.contains("counters: Lid "))
}

/// Reads PortXmitData by (NodeGUID, port) for the switches of `graph`.
///
/// # Errors
/// As [`read_noting`].
pub fn read(file: &str, text: &str, graph: &SwitchGraph) -> Result<Counters, FormatError> {
    read_noting(file, text, graph).map(|(counters, _)| counters)
}

/// The same, and a line about the blocks of LIDs that nobody has, where there are some.
///
/// # Errors
/// A block without LID, port or PortXmitData, a port that the switch does not have, one port twice, no block of a switch of
/// `graph`.
pub fn read_noting(
    file: &str,
    text: &str,
    graph: &SwitchGraph,
) -> Result<(Counters, Option<String>), FormatError> {
    let switches: FxHashMap<u64, u32> = graph
        .destinations()
        .iter()
        .filter(|d| d.port == 0)
        .map(|d| (u64::from(d.lid.get()), d.switch))
        .collect();
    let known: FxHashSet<u64> = graph.destinations().iter().flat_map(|d| d.lids().map(u64::from)).collect();
    let mut counters = BTreeMap::new();
    let (mut blocks, mut unknown) = (0, 0);
    // LID and line of the first block, and of the first of a LID that nobody has.
    let (mut first, mut first_unknown) = (None, None);
    let mut block: Option<(Cursor<'_>, Option<(u32, u8)>)> = None;
    let unfinished =
        |(at, _): (Cursor<'_>, _)| Err(at.error("a row `PortXmitData:....N` below this heading"));
    for (index, line) in text.lines().enumerate() {
        let mut at = Cursor::new(file, index + 1, line);
        if at.take("# Port ") {
            if let Some(block) = block.take() {
                return unfinished(block);
            }
            let (lid, owner) = heading(&mut at, graph, &switches)?;
            block = Some((Cursor::new(file, index + 1, line), owner));
            blocks += 1;
            first.get_or_insert((lid, index + 1));
            if !known.contains(&lid) {
                unknown += 1;
                first_unknown.get_or_insert((lid, index + 1));
            }
        } else if at.take("PortXmitData:") {
            let (heading, owner) =
                block.take().ok_or_else(|| at.error("a heading `# Port counters: …` first"))?;
            at.take_while(|c| c == '.');
            let sent = at.number("a counter", u64::MAX)?;
            let Some((s, port)) = owner else { continue };
            if counters.insert((graph.guid(s), PortNum(port)), sent).is_some() {
                return Err(heading.error("each port once"));
            }
        }
    }
    if let Some(block) = block {
        return unfinished(block);
    }
    let Some((lid, line)) = first else {
        let expected = "output of perfquery: `# Port counters: Lid 3 port 1`";
        return Err(FormatError::nothing(file, text, "no counters", expected));
    };
    if counters.is_empty() {
        let found = format!("counters of no switch of this topology, the first of LID {lid} in line {line}");
        return Err(FormatError::file(file, found, "counters of ports of its switches, named by their LIDs"));
    }
    let note = first_unknown.map(|(lid, line)| {
        format!(
            "{file}: {unknown} of {blocks} ports are of LIDs that nobody has in this topology, first LID {lid} in line {line}"
        )
    });
    Ok((counters, note))
}

/// The LID that a heading names, and switch and port; `None` for a port that is no switch's.
fn heading(
    at: &mut Cursor<'_>,
    graph: &SwitchGraph,
    switches: &FxHashMap<u64, u32>,
) -> Result<(u64, Option<(u32, u8)>), FormatError> {
    at.take("extended ");
    at.expect("counters: Lid ")?;
    let lid = at.number("a LID", 0xffff)?;
    at.expect(" port ")?;
    let place = *at;
    let port = at.number("a port number", 255)?;
    let Some(s) = switches.get(&lid) else { return Ok((lid, None)) };
    if port == 0 || port > u64::from(graph.num_ports(*s)) {
        let allowed = format!("a port of switch \"{}\", 1 to {}", graph.name(*s), graph.num_ports(*s));
        return Err(place.error(allowed));
    }
    Ok((lid, Some((*s, port as u8))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::testing;

    fn graph() -> SwitchGraph {
        // LIDs 1 to 4 are hosts, 5 and 6 leaves, 7 and 8 spines.
        SwitchGraph::new(&testing::fat_tree(&[2, 2], &[1, 2], 0))
    }

    #[test]
    fn blocks_of_perfquery_are_read_and_those_of_hosts_passed_over() {
        let text = "# Port extended counters: Lid 5 port 3 (CapMask: 0x5300 CapMask2: 0x0000002)\n\
                    PortSelect:......................3\nPortXmitData:....................36298026860928\n\
                    PortRcvData:.....................12279028775751\n\
                    # Port counters: Lid 7 port 1 (CapMask: 0x1400)\nPortXmitData:....................17\n\
                    # Port counters: Lid 1 port 1 (CapMask: 0x1400)\nPortXmitData:....................99\n";
        let graph = graph();
        let read = read("p", text, &graph).unwrap();
        let expected = [((graph.guid(0), PortNum(3)), 36_298_026_860_928), ((graph.guid(2), PortNum(1)), 17)];
        assert_eq!(read, expected.into());
    }

    /// Of a fabric with other LIDs: no block fits, some do, all do. Those of hosts fit but say nothing of a switch.
    #[test]
    fn lids_that_nobody_has_are_told_and_refused_where_no_other_is_there() {
        let graph = graph();
        let block = |lid: u64| format!("# Port counters: Lid {lid} port 1\nPortXmitData:..7\n");
        for lids in [&[9][..], &[1], &[9, 12], &[1, 9]] {
            let text: String = lids.iter().map(|lid| block(*lid)).collect();
            assert_eq!(
                read("p", &text, &graph).unwrap_err().to_string(),
                format!(
                    "p: counters of no switch of this topology, the first of LID {} in line 1, expected \
                     counters of ports of its switches, named by their LIDs",
                    lids[0]
                )
            );
        }
        let noted = |lids: &[u64]| {
            let text: String = lids.iter().map(|lid| block(*lid)).collect();
            let (counters, note) = read_noting("p", &text, &graph).unwrap();
            assert_eq!(counters, [((graph.guid(0), PortNum(1)), 7)].into());
            note
        };
        assert_eq!(noted(&[5, 1]), None);
        let said = "2 of 4 ports are of LIDs that nobody has in this topology, first LID 77 in line 5";
        assert_eq!(noted(&[1, 5, 77, 9]), Some(format!("p: {said}")));
    }

    #[test]
    fn faults_are_named_with_their_place() {
        let error = |text: &str| read("p", text, &graph()).unwrap_err().to_string();
        assert!(error("").starts_with("p: the file is empty, expected output of perfquery"));
        assert!(error("# none").starts_with("p: no counters, expected output of perfquery"));
        assert_eq!(
            error("# Port counters: Lid 5 port 65 (x)\nPortXmitData:..1"),
            "p:1:29: found `65 (x)`, expected a port of switch \"S1\", 1 to 64"
        );
        let twice = "# Port counters: Lid 5 port 1\nPortXmitData:..1\n";
        assert!(error(&format!("{twice}{twice}")).starts_with("p:3:1: found"));
        let cut = "# Port counters: Lid 5 port 1\n# Port counters: Lid 5 port 2\nPortXmitData:..1";
        assert!(error(cut).ends_with("expected a row `PortXmitData:....N` below this heading"));
        assert!(error("PortXmitData:..1").contains("expected a heading"));
        assert!(error("# Port counters: Lid 5 port 1\nPortXmitData:....x").contains("p:2:18: found `x`"));
    }
}
