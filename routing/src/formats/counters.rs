//! Port counters as perfquery prints them, any number of ports one after the other: what left each switch by each port.
//!
//! A block begins with `# Port counters: Lid 3 port 1 …` or `# Port extended counters: …`; of its rows only PortXmitData
//! (in units of four bytes) is taken. Blocks of ports that are no switch's are passed over.

use std::collections::BTreeMap;

use mad::types::{Guid, PortNum};
use rustc_hash::FxHashMap;

use super::error::{Cursor, FormatError};
use crate::fabric::SwitchGraph;

/// Whether this is output of perfquery.
pub fn are_in(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("# Port ") && line.contains("counters: Lid "))
}

/// Reads PortXmitData by (NodeGUID, port) for the switches of `graph`.
///
/// # Errors
/// A block without LID, port or PortXmitData, a port that the switch does not have, one port twice, no block at all.
pub fn read(
    file: &str,
    text: &str,
    graph: &SwitchGraph,
) -> Result<BTreeMap<(Guid, PortNum), u64>, FormatError> {
    let switches: FxHashMap<u64, u32> = graph
        .destinations()
        .iter()
        .filter(|d| d.port == 0)
        .map(|d| (u64::from(d.lid.get()), d.switch))
        .collect();
    let mut counters = BTreeMap::new();
    let mut blocks = 0;
    let mut block: Option<(Cursor<'_>, Option<(u32, u8)>)> = None;
    let unfinished =
        |(at, _): (Cursor<'_>, _)| Err(at.error("a row `PortXmitData:....N` below this heading"));
    for (index, line) in text.lines().enumerate() {
        let mut at = Cursor::new(file, index + 1, line);
        if at.take("# Port ") {
            if let Some(block) = block.take() {
                return unfinished(block);
            }
            block = Some((Cursor::new(file, index + 1, line), heading(&mut at, graph, &switches)?));
            blocks += 1;
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
    if blocks == 0 {
        return Err(FormatError::file(
            file,
            "no counters",
            "output of perfquery: `# Port counters: Lid 3 port 1`",
        ));
    }
    Ok(counters)
}

/// The switch and port that a heading names; `None` for a port that is no switch's.
fn heading(
    at: &mut Cursor<'_>,
    graph: &SwitchGraph,
    switches: &FxHashMap<u64, u32>,
) -> Result<Option<(u32, u8)>, FormatError> {
    at.take("extended ");
    at.expect("counters: Lid ")?;
    let lid = at.number("a LID", 0xffff)?;
    at.expect(" port ")?;
    let place = *at;
    let port = at.number("a port number", 255)?;
    let Some(s) = switches.get(&lid) else { return Ok(None) };
    if port == 0 || port > u64::from(graph.num_ports(*s)) {
        let allowed = format!("a port of switch \"{}\", 1 to {}", graph.name(*s), graph.num_ports(*s));
        return Err(place.error(allowed));
    }
    Ok(Some((*s, port as u8)))
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

    #[test]
    fn faults_are_named_with_their_place() {
        let error = |text: &str| read("p", text, &graph()).unwrap_err().to_string();
        assert!(error("").starts_with("p: no counters, expected output of perfquery"));
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
