//! The lists by which operators steer routing engines, in opensm's forms: one entry a line, blank separated, `#` begins a
//! comment, Windows line ends are taken.
//!
//! | list | line |
//! | --- | --- |
//! | roots, compute ports, I/O ports | `GUID` (what follows is ignored) |
//! | ids | `GUID ID` |
//! | hop weights | `SWITCH-GUID PORT WEIGHT`, weights 1 to 255 |
//! | port order | `SWITCH-GUID PORT PORT …` |

use std::collections::BTreeMap;

use mad::types::{Guid, PortNum};

use super::error::FormatError;

/// A word and the column where it begins.
pub(super) type Word<'a> = (usize, &'a str);

/// A line that says something.
pub(super) struct Line<'a> {
    file: &'a str,
    number: usize,
    pub(super) words: Vec<Word<'a>>,
}

impl Line<'_> {
    fn error(&self, column: usize, found: String, expected: &str) -> FormatError {
        FormatError { file: self.file.into(), line: self.number, column, found, expected: expected.into() }
    }

    pub(super) fn word<T>(
        &self,
        index: usize,
        expected: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<T, FormatError> {
        let Some((column, word)) = self.words.get(index) else {
            let end = self.words.last().map_or(1, |(column, word)| column + word.chars().count());
            return Err(self.error(end, "the end of the line".into(), expected));
        };
        parse(word).ok_or_else(|| self.error(*column, format!("`{word}`"), expected))
    }

    fn guid(&self) -> Result<Guid, FormatError> {
        self.word(0, "a GUID such as 0x0002c90300a1b2c1", |word| {
            word.parse().ok().filter(|guid: &Guid| guid.is_some())
        })
    }

    pub(super) fn port(&self, index: usize) -> Result<PortNum, FormatError> {
        let parse = |word: &str| word.parse().ok().filter(|port| (1..=254).contains(port)).map(PortNum);
        self.word(index, "a port from 1 to 254", parse)
    }

    pub(super) fn ends_after(&self, words: usize) -> Result<(), FormatError> {
        match self.words.get(words) {
            Some((column, word)) => Err(self.error(*column, format!("`{word}`"), "the end of the line")),
            None => Ok(()),
        }
    }
}

/// The entries of a list that names each thing once: `expected`.
fn once<K: Ord, V>(
    file: &str,
    text: &str,
    expected: &str,
    entry: impl Fn(&Line<'_>) -> Result<(K, V), FormatError>,
) -> Result<BTreeMap<K, V>, FormatError> {
    let mut entries: BTreeMap<K, (V, usize)> = BTreeMap::new();
    for line in lines(file, text) {
        let (key, value) = entry(&line)?;
        if let Some((_, first)) = entries.get(&key) {
            let (column, word) = line.words.first().copied().unwrap_or((1, ""));
            let found = format!("`{word}` a second time, first in line {first}");
            return Err(line.error(column, found, expected));
        }
        entries.insert(key, (value, line.number));
    }
    Ok(entries.into_iter().map(|(key, (value, _))| (key, value)).collect())
}

/// The lines that say something.
pub(super) fn lines<'a>(file: &'a str, text: &'a str) -> impl Iterator<Item = Line<'a>> {
    text.lines().enumerate().filter_map(move |(index, line)| {
        let said = line.split('#').next().unwrap_or("");
        let words: Vec<Word<'a>> = said
            .split_whitespace()
            .map(|word| {
                let offset = word.as_ptr() as usize - line.as_ptr() as usize;
                (line[..offset].chars().count() + 1, word)
            })
            .collect();
        (!words.is_empty()).then_some(Line { file, number: index + 1, words })
    })
}

/// A list of GUIDs, in its order.
///
/// # Errors
/// The first line that begins with none, with its place.
pub fn guids(file: &str, text: &str) -> Result<Vec<Guid>, FormatError> {
    lines(file, text).map(|line| line.guid()).collect()
}

/// Ids by NodeGUID.
///
/// # Errors
/// The first line that is not `GUID ID` or names a switch again, with its place.
pub fn ids(file: &str, text: &str) -> Result<BTreeMap<Guid, u64>, FormatError> {
    let number = |word: &str| match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    };
    once(file, text, "one id for each switch", |line| {
        line.ends_after(2)?;
        Ok((line.guid()?, line.word(1, "an id, decimal or with 0x", number)?))
    })
}

/// Weights of hops out of switch ports.
///
/// # Errors
/// The first line that is not `GUID PORT WEIGHT` or names a port again, with its place.
pub fn hop_weights(file: &str, text: &str) -> Result<BTreeMap<(Guid, PortNum), u8>, FormatError> {
    let weight = |word: &str| word.parse().ok().filter(|weight: &u8| *weight > 0);
    once(file, text, "one weight for each port", |line| {
        line.ends_after(3)?;
        Ok(((line.guid()?, line.port(1)?), line.word(2, "a weight from 1 to 255", weight)?))
    })
}

/// Whether the switches of a list have the ports that its lines name, from the second word on: one, or all to the end.
///
/// # Errors
/// The first port beyond those of its switch, with its place. Switches of which `ports` knows no number are passed over.
pub fn has_ports(
    file: &str,
    text: &str,
    all: bool,
    ports: impl Fn(Guid) -> Option<u8>,
) -> Result<(), FormatError> {
    for line in lines(file, text) {
        let Some(most) = ports(line.guid()?) else { continue };
        let end = if all { line.words.len() } else { 2 };
        for index in 1..end {
            if line.port(index)?.0 > most {
                let (column, word) = line.words[index];
                let expected = format!("a port of the switch, which has {most}");
                return Err(line.error(column, format!("port {word}"), &expected));
            }
        }
    }
    Ok(())
}

/// Orders of switch ports.
///
/// # Errors
/// The first line that is not `GUID PORT PORT …` or names a port twice or a switch again, with its place.
pub fn port_order(file: &str, text: &str) -> Result<BTreeMap<Guid, Vec<PortNum>>, FormatError> {
    once(file, text, "one order for each switch", |line| {
        let ports: Result<Vec<PortNum>, FormatError> =
            (1..line.words.len().max(2)).map(|index| line.port(index)).collect();
        let ports = ports?;
        if let Some(again) = (1..ports.len()).find(|index| ports[..*index].contains(&ports[*index])) {
            let (column, word) = line.words[again + 1];
            return Err(line.error(column, format!("port {word} a second time"), "each port once"));
        }
        Ok((line.guid()?, ports))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_with_comments_and_windows_line_ends() {
        let text = "# spines\r\n0x0002c902004a1100\r\n\r\n  0x0002c902004a1108 the second # here\r\n";
        assert_eq!(guids("r", text).unwrap(), [Guid(0x2_c902_004a_1100), Guid(0x2_c902_004a_1108)]);
        let found = ids("i", "0x10 7\n0x20 0xff\n").unwrap();
        assert_eq!(found, BTreeMap::from([(Guid(0x10), 7), (Guid(0x20), 255)]));
        let found = hop_weights("w", "0x0002c902004a1100 12 3\n").unwrap();
        assert_eq!(found, BTreeMap::from([((Guid(0x2_c902_004a_1100), PortNum(12)), 3)]));
        let found = port_order("p", "0x10 3 1 2\n").unwrap();
        assert_eq!(found, BTreeMap::from([(Guid(0x10), vec![PortNum(3), PortNum(1), PortNum(2)])]));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let text = |result: Result<(), FormatError>| result.unwrap_err().to_string();
        assert_eq!(
            text(guids("roots", "0x10\n# a\n  spine1\n").map(|_| ())),
            "roots:3:3: `spine1`, expected a GUID such as 0x0002c90300a1b2c1"
        );
        assert_eq!(
            text(hop_weights("w", "0x10 1 0\n").map(|_| ())),
            "w:1:8: `0`, expected a weight from 1 to 255"
        );
        assert_eq!(
            text(hop_weights("w", "0x10 1\n").map(|_| ())),
            "w:1:7: the end of the line, expected a weight from 1 to 255"
        );
        assert_eq!(text(ids("i", "0x10 1 2\n").map(|_| ())), "i:1:8: `2`, expected the end of the line");
        assert_eq!(
            text(port_order("p", "0x10 1 300\n").map(|_| ())),
            "p:1:8: `300`, expected a port from 1 to 254"
        );
        let again = "a second time, first in line 1, expected one";
        assert_eq!(
            text(ids("i", "0x10 1\n\n0x10 1\n").map(|_| ())),
            format!("i:3:1: `0x10` {again} id for each switch")
        );
        assert_eq!(
            text(port_order("p", "0x10 1 2\n 0x010 2 1\n").map(|_| ())),
            format!("p:2:2: `0x010` {again} order for each switch")
        );
        assert_eq!(
            text(hop_weights("w", "0x10 1 2\n0x10 2 2\n0x10 1 3\n").map(|_| ())),
            format!("w:3:1: `0x10` {again} weight for each port")
        );
        assert_eq!(
            text(port_order("p", "0x10 1 2 1\n").map(|_| ())),
            "p:1:10: port 1 a second time, expected each port once"
        );
    }
}
