//! Members of multicast groups, a list in the manner of the steering lists: a line `MLID PORT-GUID` for each member,
//! `MLID PORT-GUID send-only` for one that only sends, and `MLID sl N` for the SL of a group where it is not 0.

use std::collections::BTreeMap;

use mad::types::{Guid, MulticastLid};
use rustc_hash::FxHashMap;

use super::error::FormatError;
use super::steering::lines;
use crate::fabric::{Destination, SwitchGraph};
use crate::multicast::Member;
use crate::verify::multicast::Group;

/// Reads the list for the ports of `graph`, groups in order of their MLIDs.
///
/// # Errors
/// The first line of another form, or with a port that the topology does not have, with its place; a list without a line.
pub fn read(file: &str, text: &str, graph: &SwitchGraph) -> Result<Vec<Group>, FormatError> {
    let ports: FxHashMap<Guid, &Destination> = graph.destinations().iter().map(|d| (d.guid, d)).collect();
    let hexadecimal = |word: &str| u16::from_str_radix(word.strip_prefix("0x")?, 16).ok();
    let mut groups: BTreeMap<MulticastLid, Group> = BTreeMap::new();
    for line in lines(file, text) {
        let mlid = line.word(0, "a multicast LID, 0xC000 to 0xFFFE", |word| {
            hexadecimal(word).and_then(MulticastLid::new)
        })?;
        let group = groups.entry(mlid).or_insert_with(|| Group { mlid, members: Vec::new(), sl: 0 });
        if line.words.get(1).is_some_and(|(_, word)| *word == "sl") {
            let sl = |word: &str| word.parse().ok().filter(|sl| *sl < 16);
            group.sl = line.word(2, "an SL from 0 to 15", sl)?;
            line.ends_after(3)?;
            continue;
        }
        let port = line.word(1, "the GUID of a port of this topology, or sl", |word| {
            ports.get(&word.parse::<Guid>().ok()?).copied()
        })?;
        let receives = line.words.len() == 2;
        if !receives {
            line.word(2, "send-only, or the end of the line", |word| (word == "send-only").then_some(()))?;
        }
        line.ends_after(3)?;
        group.members.push(Member { switch: port.switch, port: port.port, receives });
    }
    if groups.is_empty() {
        let expected = "lines `MLID PORT-GUID [send-only]` or `MLID sl N`";
        return Err(FormatError::nothing(file, text, "no member of any group", expected));
    }
    Ok(groups.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::testing;

    #[test]
    fn members_are_read_and_what_is_wrong_is_named() {
        let graph = SwitchGraph::new(&testing::fat_tree(&[2, 2], &[1, 1], 0));
        let hosts: Vec<_> = graph.destinations().iter().filter(|d| d.host).collect();
        let text =
            format!("0xC001 {} # one\n0xc001 {} send-only\n0xC001 sl 2\n", hosts[0].guid, hosts[2].guid);
        let groups = read("m", &text, &graph).unwrap();
        let member = |index: usize, receives| Member {
            switch: hosts[index].switch,
            port: hosts[index].port,
            receives,
        };
        assert_eq!(
            groups,
            [Group {
                mlid: MulticastLid::new(0xc001).unwrap(),
                members: vec![member(0, true), member(2, false)],
                sl: 2
            }]
        );
        let said = |text: &str| read("m", text, &graph).unwrap_err().to_string();
        assert_eq!(said("0x10 0x1"), "m:1:1: `0x10`, expected a multicast LID, 0xC000 to 0xFFFE");
        assert_eq!(said("0xC000 0x99"), "m:1:8: `0x99`, expected the GUID of a port of this topology, or sl");
        assert_eq!(said("0xC000 sl 16"), "m:1:11: `16`, expected an SL from 0 to 15");
        let odd = format!("0xC000 {} full", hosts[0].guid);
        let forms = "expected lines `MLID PORT-GUID [send-only]` or `MLID sl N`";
        assert_eq!(said(" \n"), format!("m: the file is empty, {forms}"));
        assert_eq!(said("# none\n"), format!("m: no member of any group, {forms}"));
        assert_eq!(said(&odd), "m:1:27: `full`, expected send-only, or the end of the line");
    }
}
