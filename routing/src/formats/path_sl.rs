//! Service levels of paths, as `ibdmchk -c` takes them: lines `0xGUID DLID SL` with the GUID of a host's node or port and a
//! decimal LID, or headings `Channel Adapter 0xPORTGUID, …` with lines `0xDLID : SL` below. Pairs that the file does not name
//! have SL 0.

use mad::types::Guid;
use rustc_hash::FxHashMap;

use super::error::{Cursor, FormatError};
use crate::fabric::{Fabric, SwitchGraph, SwitchIndex};
use crate::routes::{LftMatrix, NO_PORT, PathSl};

struct Builder {
    by_guid: FxHashMap<Guid, SwitchIndex>,
    sls: LftMatrix,
    top: u64,
}

/// Reads either form for the hosts of `graph`.
///
/// # Errors
/// A GUID or LID that the topology does not have, an SL above 15, two SLs for one LID from hosts of one switch (they are judged
/// switch by switch), lines before a heading.
pub fn read(file: &str, text: &str, fabric: &Fabric, graph: &SwitchGraph) -> Result<PathSl, FormatError> {
    let own = graph.destinations().iter().map(|d| (d.guid, d.switch));
    let node = graph.destinations().iter().map(|d| (fabric.node(d.end.node).guid, d.switch));
    let mut builder = Builder {
        by_guid: node.chain(own).collect(),
        sls: LftMatrix::filled(graph.switch_count(), graph.top_lid(), NO_PORT),
        top: u64::from(graph.top_lid()),
    };
    let mut source = None;
    for (index, line) in text.lines().enumerate() {
        let mut at = Cursor::new(file, index + 1, line);
        at.blanks();
        let adapter = ["Channel Adapter ", "Switch ", "Router "].iter().any(|kind| at.take(kind));
        if at.rest().is_empty() || at.rest().starts_with(['#', 'L']) {
            continue;
        }
        at.expect("0x")?;
        let place = at;
        let number = at.hex("a GUID or LID")?;
        if adapter {
            source = Some(builder.source(number, &place)?);
            continue;
        }
        at.blanks();
        if at.take(":") {
            at.blanks();
            let from = source.ok_or_else(|| place.error("a heading with the source's GUID first"))?;
            builder.set(from, number, &place, at)?;
        } else {
            let from = builder.source(number, &place)?;
            let place = at;
            let lid = at.number("a LID", 0xbfff)?;
            at.blanks();
            builder.set(from, lid, &place, at)?;
        }
    }
    Ok(PathSl::BySourceSwitch(builder.sls))
}

impl Builder {
    fn source(&self, guid: u64, at: &Cursor<'_>) -> Result<SwitchIndex, FormatError> {
        let found = self.by_guid.get(&Guid(guid)).copied();
        found.ok_or_else(|| {
            at.error_with(format!("GUID {}", Guid(guid)), "the GUID of a node or port of this topology")
        })
    }

    fn set(
        &mut self,
        from: SwitchIndex,
        lid: u64,
        place: &Cursor<'_>,
        mut at: Cursor<'_>,
    ) -> Result<(), FormatError> {
        if !(1..=self.top).contains(&lid) {
            return Err(place.error_with(format!("LID {lid}"), format!("a LID from 1 to {}", self.top)));
        }
        let level = at;
        let sl = at.number("an SL", 15)? as u8;
        let there = &mut self.sls.row_mut(from)[lid as usize];
        if *there != NO_PORT && *there != sl {
            let found = format!("SL {sl} for LID {lid}, where another host of the switch has SL {there}");
            return Err(level.error_with(found, "one SL for all hosts of a switch"));
        }
        *there = sl;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::testing;

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
}
