//! Reads opensm's partitions.conf:
//!
//! ```text
//! [name][=pkey] [, flag …] : [port[=full|limited|both] | mgid=MGID[, flag …] …] ;
//! flag: ipoib, indx0, defmember=full|limited|both, mtu=CODE, rate=CODE, sl=N, scope=N, Q_Key=N, TClass=N, FlowLabel=N
//! port: GUID, ALL, ALL_CAS, ALL_SWITCHES, ALL_ROUTERS, SELF, NONE
//! ```
//!
//! `#` begins a comment. Commas and blanks separate alike (opensm drops what follows a blank, B55). MTU and rate are the
//! wire's codes. A word that means nothing is an error with its line and column, and a file without any partition is
//! refused: neither ever opens the fabric to everybody (B54).

use std::net::Ipv6Addr;

use mad::types::{Gid, Guid, Mtu, NodeType, PKey, QKey, Rate};

use super::{Membership, Partition, PartitionGroup, Partitions, Selection};

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct PartitionsError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What it is and what is allowed.
    pub message: String,
}

/// Reads the text of a file.
///
/// # Errors
/// Something in it can't be meant; nothing of it is used then.
pub fn read(text: &str) -> Result<Partitions, PartitionsError> {
    let mut partitions: Vec<Partition> = Vec::new();
    let mut reader = Reader { words: words(text), at: 0 };
    while let Some(word) = reader.peek() {
        if word.text == ";" {
            reader.at += 1;
            continue;
        }
        let partition = reader.section(&partitions)?;
        match partitions.iter_mut().find(|known| known.pkey == partition.pkey) {
            Some(known) => {
                known.index_0 |= partition.index_0;
                known.members.extend(partition.members);
                known.groups.extend(partition.groups);
            }
            None => partitions.push(partition),
        }
    }
    if partitions.is_empty() {
        let message =
            "no partition in the file; the one that everybody is in is `Default=0x7fff, ipoib : ALL=full;`";
        return Err(PartitionsError { line: 1, column: 1, message: message.to_owned() });
    }
    if !partitions.iter().any(|partition| partition.pkey == PKey::DEFAULT_FULL) {
        // What everybody needs to reach subnet administration.
        partitions.insert(
            0,
            Partition {
                name: "Default".to_owned(),
                pkey: PKey::DEFAULT_FULL,
                index_0: false,
                members: vec![(Selection::All, Membership::Limited), (Selection::Myself, Membership::Full)],
                groups: Vec::new(),
            },
        );
    }
    Ok(Partitions { partitions })
}

/// A word of the file and its place. `:` after a header, `;` and the end of a line are words too.
#[derive(Clone, Copy, Debug)]
struct Word<'a> {
    text: &'a str,
    line: usize,
    column: usize,
}

impl Word<'_> {
    fn error(&self, message: String) -> PartitionsError {
        PartitionsError { line: self.line, column: self.column, message }
    }
}

/// Splits at blanks, commas and `;`, drops comments. A `:` is a word of its own until a section's members begin, since MGIDs
/// have colons.
fn words(text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut in_members = false;
    for (line, content) in (1..).zip(text.lines()) {
        let content = content.split('#').next().unwrap_or_default();
        let mut start = None;
        let mut put = |from: usize, to: usize| {
            let column = content[..from].chars().count() + 1;
            words.push(Word { text: &content[from..to], line, column });
        };
        for (at, letter) in content.char_indices() {
            let own = letter == ';' || letter == ':' && !in_members;
            if !own && letter != ',' && !letter.is_whitespace() {
                start.get_or_insert(at);
                continue;
            }
            if let Some(from) = start.take() {
                put(from, at);
            }
            if own {
                put(at, at + 1);
                in_members = letter == ':';
            }
        }
        if let Some(from) = start {
            put(from, content.len());
        }
        put(content.len(), content.len());
    }
    words
}

/// What a group is given by flags.
#[derive(Clone, Copy, Debug)]
struct Flags {
    mtu: Mtu,
    rate: Rate,
    sl: u8,
    qkey: Option<QKey>,
    tclass: u8,
    flow_label: u32,
}

struct Reader<'a> {
    words: Vec<Word<'a>>,
    at: usize,
}

impl<'a> Reader<'a> {
    /// The next word that is no line end.
    fn peek(&mut self) -> Option<Word<'a>> {
        while self.words.get(self.at).is_some_and(|word| word.text.is_empty()) {
            self.at += 1;
        }
        self.words.get(self.at).copied()
    }

    fn next(&mut self) -> Option<Word<'a>> {
        let word = self.peek()?;
        self.at += 1;
        Some(word)
    }

    fn end(&self) -> PartitionsError {
        let place = self.words.last().map_or((1, 1), |word| (word.line, word.column));
        let message = "the file ends within a partition; each ends with `;`".to_owned();
        PartitionsError { line: place.0, column: place.1, message }
    }

    fn section(&mut self, known: &[Partition]) -> Result<Partition, PartitionsError> {
        let first = self.next().ok_or_else(|| self.end())?;
        let (name, pkey) = match first.text {
            ":" => (String::new(), None),
            text => {
                let (name, key) = text.split_once('=').map_or((text, None), |(name, key)| (name, Some(key)));
                // A name that begins with a digit is the key.
                let key = key.or_else(|| name.starts_with(|c: char| c.is_ascii_digit()).then_some(name));
                (name.to_owned(), key.map(|key| number(&first, key, 0xffff)).transpose()?)
            }
        };
        let pkey = match pkey {
            Some(key) if key & 0x7fff == 0 => {
                return Err(first.error("a P_Key is 0x0001 to 0x7fff".to_owned()));
            }
            Some(key) => PKey(key as u16 | 0x8000),
            None if name == "Default" => PKey::DEFAULT_FULL,
            None => free_key(known),
        };
        let mut partition = Partition { name, pkey, index_0: false, members: Vec::new(), groups: Vec::new() };
        let mut flags = Flags {
            mtu: Mtu::M2048,
            rate: PartitionGroup::RATE,
            sl: 0,
            qkey: None,
            tclass: 0,
            flow_label: 0,
        };
        let (mut ipoib, mut scopes, mut usual) = (false, Vec::new(), Membership::Limited);
        let mut open = first.text != ":";
        while open {
            let word = self.next().ok_or_else(|| self.end())?;
            let (key, value) = word.text.split_once('=').map_or((word.text, None), |(k, v)| (k, Some(v)));
            match (key, value) {
                (":", None) => open = false,
                ("ipoib", None) => ipoib = true,
                ("indx0", None) => partition.index_0 = true,
                ("defmember", Some(value)) => usual = membership(&word, value)?,
                ("scope", Some(value)) => scopes.push(number(&word, value, 15)? as u8),
                (key, Some(value)) if flags.set(&word, key, value)? => {}
                _ => return Err(word.error(format!(
                    "`{}` is no flag of a partition; flags are ipoib, indx0, defmember=, mtu=, rate=, sl=, scope=, \
                     Q_Key=, TClass=, FlowLabel=, and a `:` ends them",
                    word.text
                ))),
            }
        }
        if ipoib {
            if scopes.is_empty() {
                scopes.push(2);
            }
            let broadcast = |scope| flags.group(PartitionGroup::ipoib(pkey, scope).mgid);
            partition.groups.extend(scopes.into_iter().map(broadcast));
        }
        self.members(&mut partition, flags, usual)?;
        Ok(partition)
    }

    fn members(
        &mut self,
        partition: &mut Partition,
        flags: Flags,
        usual: Membership,
    ) -> Result<(), PartitionsError> {
        loop {
            let word = self.next().ok_or_else(|| self.end())?;
            let (port, value) = word.text.split_once('=').map_or((word.text, None), |(p, v)| (p, Some(v)));
            if word.text == ";" {
                return Ok(());
            }
            if let ("mgid", Some(value)) = (port, value) {
                let group = self.group(&word, value, partition.pkey, flags)?;
                partition.groups.push(group);
                continue;
            }
            let kind = value.map_or(Ok(usual), |value| membership(&word, value))?;
            let selection = match port {
                "ALL" => Selection::All,
                "ALL_CAS" => Selection::Kind(NodeType::Ca),
                "ALL_SWITCHES" => Selection::Kind(NodeType::Switch),
                "ALL_ROUTERS" => Selection::Kind(NodeType::Router),
                "SELF" => Selection::Myself,
                "NONE" => continue,
                guid => Selection::Port(Guid(number(&word, guid, u64::MAX).map_err(|_| {
                    word.error(format!(
                        "`{guid}` is no port; ports are GUIDs, ALL, ALL_CAS, ALL_SWITCHES, ALL_ROUTERS, SELF, NONE"
                    ))
                })?)),
            };
            partition.members.push((selection, kind));
        }
    }

    /// `mgid=` takes the rest of its line.
    fn group(
        &mut self,
        word: &Word<'_>,
        mgid: &str,
        pkey: PKey,
        mut flags: Flags,
    ) -> Result<PartitionGroup, PartitionsError> {
        let bits = mgid.parse::<Ipv6Addr>().ok().map(|address| address.to_bits());
        let bits = bits.filter(|bits| bits >> 120 == 0xff);
        let bits = bits.ok_or_else(|| word.error(format!("`{mgid}` is no MGID; one is ff12:401b::1")))?;
        while let Some(flag) =
            self.words.get(self.at).copied().filter(|w| !w.text.is_empty() && w.text != ";")
        {
            self.at += 1;
            let (key, value) = flag.text.split_once('=').unwrap_or((flag.text, ""));
            if !flags.set(&flag, key, value)? {
                return Err(flag.error(format!(
                    "`{}` is no flag of a group; flags are mtu=, rate=, sl=, Q_Key=, TClass=, FlowLabel=",
                    flag.text
                )));
            }
        }
        // IPoIB groups carry the key of their partition, in its full form; 0 stands for it.
        let signature = bits >> 96 & 0xffff;
        let named = (bits >> 80 & 0xffff) as u16;
        let bits = match (signature, named & 0x7fff) {
            (0x401b | 0x601b, 0) => bits | u128::from(pkey.0) << 80,
            (0x401b | 0x601b, key) if key == pkey.base() => bits | 0x8000 << 80,
            (0x401b | 0x601b, _) => {
                return Err(
                    word.error(format!("`{mgid}` names P_Key 0x{named:04x}, its partition is {pkey}"))
                );
            }
            _ => bits,
        };
        Ok(flags.group(Gid(bits)))
    }
}

impl Flags {
    /// Takes a flag of a group; false when it is none.
    fn set(&mut self, word: &Word<'_>, key: &str, value: &str) -> Result<bool, PartitionsError> {
        match key {
            "mtu" => {
                let code = u8::try_from(number(word, value, 255)?).unwrap_or(0);
                self.mtu = Mtu::from_wire(code).ok_or_else(|| {
                    word.error(format!(
                        "mtu={value} is no code; 1 is 256 bytes, 2 512, 3 1024, 4 2048, 5 4096"
                    ))
                })?;
            }
            "rate" => {
                let code = u8::try_from(number(word, value, 255)?).unwrap_or(0);
                self.rate = Rate::from_wire(code).ok_or_else(|| {
                    word.error(format!("rate={value} is no code; 3 is 10 Gb/s, 7 40, 16 100, 17 200, 21 400"))
                })?;
            }
            "sl" => self.sl = number(word, value, 15)? as u8,
            "Q_Key" => self.qkey = Some(QKey(number(word, value, u32::MAX.into())? as u32)),
            "TClass" => self.tclass = number(word, value, 255)? as u8,
            "FlowLabel" => self.flow_label = number(word, value, 0xf_ffff)? as u32,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn group(&self, mgid: Gid) -> PartitionGroup {
        let ip = matches!(mgid.0 >> 96 & 0xffff, 0x401b | 0x601b);
        let usual = if ip { PartitionGroup::IPOIB_QKEY } else { QKey(0) };
        PartitionGroup {
            mgid,
            mtu: self.mtu,
            rate: self.rate,
            sl: self.sl,
            qkey: self.qkey.unwrap_or(usual),
            tclass: self.tclass,
            flow_label: self.flow_label,
        }
    }
}

fn membership(word: &Word<'_>, text: &str) -> Result<Membership, PartitionsError> {
    match text {
        "full" => Ok(Membership::Full),
        "limited" => Ok(Membership::Limited),
        "both" => Ok(Membership::Both),
        _ => Err(word.error(format!("`{text}` is no membership; there are full, limited and both"))),
    }
}

/// A number, decimal or with 0x before it, up to `most`.
fn number(word: &Word<'_>, text: &str, most: u64) -> Result<u64, PartitionsError> {
    let number = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    number.filter(|number| *number <= most).ok_or_else(|| {
        word.error(format!("`{text}` is no number from 0 to {most}, decimal or hexadecimal with 0x"))
    })
}

/// The first key that no partition has.
fn free_key(known: &[Partition]) -> PKey {
    let taken = |key: &u16| known.iter().any(|partition| partition.pkey.base() == *key);
    PKey((1..0x7fff).find(|key| !taken(key)).unwrap_or(1) | 0x8000)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refused(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn what_opensm_reads_is_read() {
        let text = "# a comment; with a semicolon\nDefault=0x7fff, ipoib, mtu=5 rate=7 : ALL_CAS=full, ALL_SWITCHES,\n \
                    SELF=full;\nlab=0x21, defmember=full : 0x2c9030012ab01, 0x2c9030012ab02=limited;\n\
                    p=0x1, ipoib, scope=2, scope=5 : 0x123456=full;\n0x30 : mgid=ff12:401b::719, sl=1\n ALL=both;";
        let partitions = read(text).unwrap();
        let found: Vec<&Partition> = partitions.iter().collect();
        assert_eq!(found.len(), 4);
        let group = found[0].groups[0];
        assert_eq!(
            (group.mgid.to_string(), group.mtu, group.rate.to_wire()),
            ("ff12:401b:ffff::ffff:ffff".into(), Mtu::M4096, 7)
        );
        assert_eq!(found[0].membership(Guid(1), NodeType::Ca, false), Some(Membership::Full));
        assert_eq!(found[0].membership(Guid(1), NodeType::Switch, false), Some(Membership::Limited));
        assert_eq!(found[0].membership(Guid(1), NodeType::Switch, true), Some(Membership::Full));
        assert_eq!(found[1].pkey, PKey(0x8021));
        assert_eq!(
            found[1].membership(Guid(0x0002_c903_0012_ab02), NodeType::Ca, false),
            Some(Membership::Limited)
        );
        assert_eq!(found[1].membership(Guid(3), NodeType::Ca, false), None);
        assert_eq!(found[2].groups.len(), 2, "a group for each scope");
        assert_eq!(found[3].groups[0].mgid.to_string(), "ff12:401b:8030::719", "the MGID gets the full key");
        assert_eq!(found[3].groups[0].sl, 1);
        let (keys, first) = partitions.keys(Guid(9), NodeType::Ca, false);
        assert_eq!(keys, [PKey(0xffff), PKey(0x8030), PKey(0x30)]);
        assert_eq!(first, Some(PKey(0xffff)));
    }

    #[test]
    fn a_file_without_default_partition_lets_everybody_reach_the_subnet_manager() {
        let partitions = read("a=1 : ALL=full;").unwrap();
        assert_eq!(partitions.keys(Guid(9), NodeType::Ca, false).0, [PKey(0x7fff), PKey(0x8001)]);
        assert_eq!(partitions.keys(Guid(9), NodeType::Ca, true).0, [PKey(0xffff), PKey(0x8001)]);
    }

    /// B54, B55: a broken file is refused with its place, and an empty one is no wide-open fabric.
    #[test]
    fn b54_what_cannot_be_meant_is_refused_with_its_place() {
        assert!(refused("").contains("no partition in the file"));
        assert!(refused("# nothing\n").contains("no partition in the file"));
        assert!(refused("Default=0x7fff, ipob : ALL=full;").starts_with("1:17: `ipob` is no flag"));
        assert!(refused("a=1 :\n ALL=ful;").starts_with("2:2: `ful` is no membership"));
        assert!(refused("a=1 : ALLES=full;").starts_with("1:7: `ALLES` is no port"));
        assert!(refused("a=0 : ALL;").contains("a P_Key is 0x0001 to 0x7fff"));
        assert!(refused("a=1, mtu=9 : ALL;").contains("mtu=9 is no code"));
        assert!(refused("a=1, rate=1 : ALL;").contains("rate=1 is no code"));
        assert!(refused("a=1 : ALL").contains("ends within a partition"));
        assert!(refused("a=1 : mgid=fe80::1\n;").contains("is no MGID"));
        assert!(refused("a=1 : mgid=ff12:401b:8002::1\n;").contains("its partition is 0x8001"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[a-z0-9=:;,# \nALL_x\\.-]{0,80}") {
            let _ = read(&text);
        }

        #[test]
        fn any_bytes_are_read_or_refused(text in any::<String>()) {
            let _ = read(&text);
        }
    }
}
