//! Files of flows: who sends how much to whom.
//!
//! A line is `SOURCE DESTINATION [WEIGHT]`. Source and destination are host ports, given by node name (in quotes when it
//! holds blanks), node GUID, port GUID (both with `0x`) or LID (decimal). The weight is a whole number from 1, 1 when left
//! out. `#` begins a comment.

use mad::types::Guid;
use rustc_hash::FxHashMap;

use super::error::{Cursor, FormatError};
use crate::fabric::{Fabric, SwitchGraph};
use crate::study::traffic::Flow;

/// Reads flows among the hosts of `fabric`, of which `graph` was made.
///
/// # Errors
/// The first line that is none, names no host or several, sends to itself or has a weight out of range, with its place.
pub fn read(file: &str, text: &str, fabric: &Fabric, graph: &SwitchGraph) -> Result<Vec<Flow>, FormatError> {
    let names = Names::new(fabric, graph);
    let mut flows = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = comment_off(line);
        let mut at = Cursor::new(file, index + 1, line);
        at.blanks();
        if !at.rest().is_empty() {
            flows.push(flow(&names, &mut at)?);
        }
    }
    if flows.is_empty() {
        let expected = "lines of the form `SOURCE DESTINATION [WEIGHT]`";
        return Err(FormatError::nothing(file, text, "no flow", expected));
    }
    Ok(flows)
}

/// A `#` within quotes belongs to the name.
fn comment_off(line: &str) -> &str {
    let mut quoted = false;
    let comment = line.find(|c| {
        quoted ^= c == '"';
        c == '#' && !quoted
    });
    comment.map_or(line, |at| &line[..at])
}

fn flow(names: &Names, at: &mut Cursor<'_>) -> Result<Flow, FormatError> {
    let source = names.host(at)?;
    at.blanks();
    let place = *at;
    let destination = names.host(at)?;
    if source == destination {
        return Err(place.error("another host than the one that sends"));
    }
    at.blanks();
    let mut weight = 1;
    if !at.rest().is_empty() {
        let place = *at;
        let word = at.take_while(|c| !c.is_whitespace());
        weight = word.parse().ok().filter(|weight| *weight > 0).ok_or_else(|| place.error(WEIGHT))?;
    }
    at.blanks();
    if at.rest().is_empty() {
        Ok(Flow { source, destination, weight })
    } else {
        Err(at.error("the end of the line: SOURCE DESTINATION [WEIGHT]"))
    }
}

const WEIGHT: &str = "a weight, a whole number from 1 to 4294967295";

/// What a name stands for.
#[derive(Clone, Copy)]
enum Meaning {
    One(u32),
    Several(u32),
}

/// Hosts by everything that they can be called.
struct Names {
    by_name: FxHashMap<String, Meaning>,
    by_guid: FxHashMap<Guid, Meaning>,
    by_lid: FxHashMap<u64, u32>,
}

impl Names {
    fn new(fabric: &Fabric, graph: &SwitchGraph) -> Self {
        let mut names = Self {
            by_name: FxHashMap::default(),
            by_guid: FxHashMap::default(),
            by_lid: FxHashMap::default(),
        };
        for (index, d) in (0..).zip(graph.destinations()).filter(|(_, d)| d.host) {
            let node = fabric.node(d.end.node);
            add(&mut names.by_name, node.description.clone(), index);
            add(&mut names.by_guid, node.guid, index);
            if d.guid != node.guid {
                add(&mut names.by_guid, d.guid, index);
            }
            names.by_lid.extend(d.lids().map(|lid| (u64::from(lid), index)));
        }
        names
    }

    /// Takes the next word as a host.
    fn host(&self, at: &mut Cursor<'_>) -> Result<u32, FormatError> {
        const EXPECTED: &str = "the node name, GUID or LID of a host of this topology";
        let place = *at;
        let quoted = at.rest().starts_with('"');
        let word = if quoted {
            at.quoted("a node name")?
        } else {
            at.take_while(|c| !c.is_whitespace() && c != '"')
        };
        if word.is_empty() {
            return Err(place.error(EXPECTED));
        }
        let hexadecimal = word.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let named = self.by_name.get(word).copied();
        let numbered = || match hexadecimal {
            _ if quoted => None,
            Some(guid) => self.by_guid.get(&Guid(guid)).copied(),
            None => word.parse().ok().and_then(|lid| self.by_lid.get(&lid)).map(|index| Meaning::One(*index)),
        };
        match named.or_else(numbered) {
            Some(Meaning::One(index)) => Ok(index),
            Some(Meaning::Several(count)) => Err(place.error_with(
                format!("`{word}` stands for {count} host ports"),
                "a port GUID or a LID, which stand for one",
            )),
            None => Err(place.error_with(format!("found `{word}`"), EXPECTED)),
        }
    }
}

fn add<K: std::hash::Hash + Eq>(names: &mut FxHashMap<K, Meaning>, key: K, index: u32) {
    let several = |meaning: &mut Meaning| {
        *meaning = Meaning::Several(match meaning {
            Meaning::One(_) => 2,
            Meaning::Several(count) => *count + 1,
        });
    };
    names.entry(key).and_modify(several).or_insert(Meaning::One(index));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::testing;

    fn fabric() -> (Fabric, SwitchGraph) {
        let mut builder = testing::Builder::new(8);
        let (a, b) = (builder.switch(), builder.switch());
        builder.link(a, b);
        let odd = builder.host(a);
        builder.two_port_host(a, b);
        builder.host(b);
        builder.fabric.node_mut(odd).description = "gpu #1".into();
        let fabric = builder.finish(0);
        let graph = SwitchGraph::new(&fabric);
        (fabric, graph)
    }

    #[test]
    fn hosts_have_names_guids_and_lids() {
        let (fabric, graph) = fabric();
        // LIDs: "gpu #1" 1, the first port of H3 2, H4 3; switches 4 and 5: the second port of H3 has none.
        let text = "# who whom\n\"gpu #1\" H4 7 # heavy\n\n 0x0002c90100000002 3\n3 1";
        let flow = |source, destination, weight| Flow { source, destination, weight };
        assert_eq!(read("f", text, &fabric, &graph).unwrap(), [flow(0, 2, 7), flow(0, 2, 1), flow(2, 0, 1)]);
    }

    #[test]
    fn faults_are_named_with_line_and_column() {
        let (mut fabric, _) = fabric();
        let two_port = fabric.nodes().find(|(_, n)| n.description == "H3").unwrap().0;
        fabric.node_mut(two_port).port_mut(mad::types::PortNum(2)).unwrap().lid = mad::types::Lid::new(9);
        let graph = SwitchGraph::new(&fabric);
        let error = |text: &str| read("f", text, &fabric, &graph).unwrap_err().to_string();
        let host = "the node name, GUID or LID of a host of this topology";
        assert_eq!(error("1 2\n1 nobody"), format!("f:2:3: found `nobody`, expected {host}"));
        assert_eq!(error("1"), format!("f:1:2: the line ends, expected {host}"));
        assert_eq!(error("1 5"), format!("f:1:3: found `5`, expected {host}"), "a switch");
        assert_eq!(
            error("1 H3"),
            "f:1:3: `H3` stands for 2 host ports, expected a port GUID or a LID, which stand for one"
        );
        assert_eq!(error("1 1"), "f:1:3: found `1`, expected another host than the one that sends");
        for bad in ["0", "-1", "1.5", "4294967296"] {
            assert!(
                error(&format!("1 2 {bad}")).starts_with("f:1:5: found"),
                "{}",
                error(&format!("1 2 {bad}"))
            );
        }
        assert!(error("\"H4 1").starts_with("f:1:1: found `\"H4 1`, expected a node name in quotes"));
        assert_eq!(
            error(""),
            "f: the file is empty, expected lines of the form `SOURCE DESTINATION [WEIGHT]`"
        );
        assert_eq!(error("# none"), "f: no flow, expected lines of the form `SOURCE DESTINATION [WEIGHT]`");
    }
}
