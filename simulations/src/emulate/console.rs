//! Console commands, with the words (and their abbreviations) that users of ibsim know. A line is one command:
//!
//! ```text
//! Dump ["node"]                      the fabric, or one node, with port states and counters
//! Route FROM TO                      the way that the forwarding tables give, LID to LID or node to node
//! Link "a"[1] "b"[2]                 plugs a cable in
//! Unlink "a"[1] | "a"                takes a cable out, or all of a node
//! ReLink "a"[1] | "a"                plugs back what Unlink took out
//! Clear "a"[1] | "a"                 Unlink, and the port forgets its settings
//! Guid "a"[1] 0x…                    another GUID
//! Error "a"[1] RATE% [ATTRIBUTE]     loses datagrams that enter or leave there; 0 ends it
//! PerformanceSet "a"[1] COUNTER=N    sets a counter (PortCounters.SymbolErrorCounter=100)
//! PerformanceSet "a"[1] COUNTER=+N   lets it grow by N a second from now on; +0 ends it
//! Baselid "a"[1] LID [LMC]           another LID, without the subnet manager
//! Description "a" "new"              another node description
//! Virtual "a"[1]                     a port of an adapter can have virtual ports from now on
//! Reset "a"                          power cycle: tables and settings are lost
//! Sent                               datagrams that programs have sent, by class, method and attribute
//! Attached                           who is attached
//! X NUMBER                           cuts a client off
//! Wait SECONDS                       the fabric stands still that long
//! !FILE                              commands from a file
//! Help, Quit
//! ```
//! A node is given by its description, in quotes where that has blanks, or by its GUID. `#` begins a comment.

use std::fmt;
use std::time::Duration;

use mad::types::{Guid, PortNum};

/// A node, or one of its ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Description or GUID.
    pub node: String,
    /// The port, where one was given.
    pub port: Option<PortNum>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.node)?;
        self.port.map_or(Ok(()), |port| write!(f, "[{port}]"))
    }
}

/// What a backend is told to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Lists the fabric or one node.
    Dump(Option<String>),
    /// Follows the forwarding tables.
    Route {
        /// LID, GUID or description.
        from: String,
        /// LID, GUID or description.
        to: String,
    },
    /// Plugs a cable in; both places have ports.
    Link(Place, Place),
    /// Takes out a cable, or all of a node.
    Unlink(Place),
    /// Plugs back what was taken out.
    Relink(Place),
    /// Takes out, and forgets the port's settings.
    Clear(Place),
    /// Gives another GUID.
    Guid(Place, Guid),
    /// Loses datagrams.
    Error {
        /// The node or port.
        place: Place,
        /// Per cent, 0 to 100.
        rate: u8,
        /// Only this attribute ID.
        attribute: Option<u16>,
    },
    /// Sets a performance counter.
    PerformanceSet {
        /// The port.
        place: Place,
        /// The counter, with or without the attribute's name and a dot in front.
        counter: String,
        /// Its value, or by how much it grows a second.
        value: u64,
        /// Whether it grows.
        grows: bool,
    },
    /// Gives another LID behind the subnet manager's back.
    BaseLid {
        /// The port.
        place: Place,
        /// The LID.
        lid: u16,
        /// The LMC, where given.
        lmc: Option<u8>,
    },
    /// Gives another node description.
    Description(String, String),
    /// The port of an adapter can have virtual ports from now on.
    Virtual(Place),
    /// Power cycle of a node.
    Reset(String),
    /// Counts what programs have sent.
    Sent,
}

/// A line of the console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// Nothing, or a comment.
    Empty,
    /// For the backend.
    Backend(Command),
    /// Who is attached.
    Attached,
    /// Cuts the client of this number off.
    Disconnect(u64),
    /// Stands still.
    Wait(Duration),
    /// Commands from a file.
    File(String),
    /// What there is to say.
    Help,
    /// Ends the emulator.
    Quit,
}

/// The text that `Help` prints.
pub const HELP: &str = "\
Dump [\"node\"]                    the fabric, or one node\n\
Route FROM TO                    the way from LID, GUID or node to another\n\
Link \"a\"[1] \"b\"[2]               plug a cable in\n\
Unlink \"a\"[1] | \"a\"              take a cable out, or all of a node\n\
ReLink \"a\"[1] | \"a\"              plug it back\n\
Clear \"a\"[1] | \"a\"               take out, and forget the port's settings\n\
Guid \"a\"[1] 0x...                another GUID\n\
Error \"a\"[1] RATE% [ATTRIBUTE]   lose datagrams there; 0 ends it\n\
PerformanceSet \"a\"[1] COUNTER=N  set a counter; =+N: let it grow by N a second, +0 ends it\n\
Baselid \"a\"[1] LID [LMC]         another LID\n\
Description \"a\" \"new\"            another node description\n\
Virtual \"a\"[1]                   an adapter's port can have virtual ports from now on\n\
Reset \"a\"                        power cycle\n\
Sent                             datagrams that programs have sent, by class, method and attribute\n\
Attached                         who is attached\n\
X NUMBER                         cut a client off\n\
Wait SECONDS                     stand still\n\
!FILE                            commands from a file\n\
Quit                             end\n";

/// The words, with the least number of letters that names them.
const WORDS: [(&str, usize); 19] = [
    ("dump", 1),
    ("route", 2),
    ("link", 1),
    ("unlink", 1),
    ("relink", 3),
    ("clear", 1),
    ("guid", 1),
    ("error", 1),
    ("performanceset", 1),
    ("baselid", 1),
    ("description", 2),
    ("reset", 3),
    ("virtual", 1),
    ("sent", 1),
    ("attached", 1),
    ("x", 1),
    ("wait", 1),
    ("help", 1),
    ("quit", 1),
];

/// Reads a line.
///
/// # Errors
/// One line: what was found and what is allowed.
pub fn parse(line: &str) -> Result<Line, String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(Line::Empty);
    }
    if let Some(file) = line.strip_prefix('!') {
        return Ok(Line::File(file.trim().to_owned()));
    }
    let mut words = Words { rest: line };
    let given = words.next("a command")?.text;
    let lower = given.to_ascii_lowercase();
    let word = WORDS
        .iter()
        .find(|(word, least)| word.starts_with(&lower) && lower.len() >= *least)
        .map(|(word, _)| *word)
        .ok_or_else(|| format!("unknown command `{given}`: `Help` lists what there is"))?;
    let parsed = match word {
        "attached" => Line::Attached,
        "help" => Line::Help,
        "quit" => Line::Quit,
        "x" => Line::Disconnect(words.number("a client's number")?),
        "wait" => Line::Wait(Duration::from_secs(words.number("seconds")?)),
        _ => Line::Backend(backend_command(word, &mut words)?),
    };
    words.end()?;
    Ok(parsed)
}

fn backend_command(word: &str, words: &mut Words<'_>) -> Result<Command, String> {
    Ok(match word {
        "dump" => Command::Dump(if words.is_empty() { None } else { Some(words.next("a node")?.text) }),
        "route" => Command::Route {
            from: words.next("a LID or node to start from")?.text,
            to: words.next("a LID or node to go to")?.text,
        },
        "link" => Command::Link(words.port()?, words.port()?),
        "unlink" => Command::Unlink(words.place()?),
        "relink" => Command::Relink(words.place()?),
        "clear" => Command::Clear(words.place()?),
        "guid" => {
            let place = words.place()?;
            Command::Guid(place, words.next("a GUID")?.text.parse().map_err(|e| format!("{e}"))?)
        }
        "error" => error_command(words)?,
        "performanceset" => {
            let place = words.port()?;
            let setting = words.next("COUNTER=VALUE")?.text;
            let (counter, value) =
                setting.split_once('=').ok_or_else(|| format!("`{setting}`: expected COUNTER=VALUE"))?;
            let (grows, value) = value.strip_prefix('+').map_or((false, value), |value| (true, value));
            let (counter, value) =
                (counter.to_owned(), number(value, "a value, or + and what it grows by a second")?);
            Command::PerformanceSet { place, counter, value, grows }
        }
        "baselid" => {
            let place = words.place()?;
            let lid = words.number("a LID")?;
            let lid = u16::try_from(lid).ok().filter(|lid| *lid <= 0xbfff);
            let lid = lid.ok_or("a LID is 0 to 49151")?;
            let lmc = if words.is_empty() { None } else { Some(words.number("an LMC")?) };
            let lmc = lmc.map(|lmc| u8::try_from(lmc).ok().filter(|lmc| *lmc <= 7).ok_or("an LMC is 0 to 7"));
            Command::BaseLid { place, lid, lmc: lmc.transpose()? }
        }
        "description" => {
            Command::Description(words.next("a node")?.text, words.next("the new description")?.text)
        }
        "sent" => Command::Sent,
        "virtual" => Command::Virtual(words.place()?),
        _ => Command::Reset(words.next("a node")?.text),
    })
}

fn error_command(words: &mut Words<'_>) -> Result<Command, String> {
    let place = words.place()?;
    let given = words.next("a rate in per cent")?.text;
    let rate = number(given.trim_end_matches('%'), "a rate in per cent")?;
    let rate = u8::try_from(rate).ok().filter(|rate| *rate <= 100).ok_or("a rate is 0 to 100 per cent")?;
    let attribute = if words.is_empty() { None } else { Some(words.number("an attribute ID")?) };
    let attribute =
        attribute.map(|id| u16::try_from(id).map_err(|_| "an attribute ID is 0 to 0xffff".to_owned()));
    Ok(Command::Error { place, rate, attribute: attribute.transpose()? })
}

fn number(text: &str, what: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("`{text}`: expected {what}"))
}

/// A word, and whether something in brackets followed it directly.
struct Word {
    text: String,
    bracket: Option<String>,
}

/// The rest of a line, word by word.
struct Words<'a> {
    rest: &'a str,
}

impl Words<'_> {
    fn is_empty(&self) -> bool {
        self.rest.trim_start().is_empty()
    }

    fn end(&self) -> Result<(), String> {
        if self.is_empty() { Ok(()) } else { Err(format!("`{}` is too much", self.rest.trim())) }
    }

    fn next(&mut self, what: &str) -> Result<Word, String> {
        let rest = self.rest.trim_start();
        if rest.is_empty() {
            return Err(format!("expected {what} at the end of the line"));
        }
        let (text, rest) = if let Some(quoted) = rest.strip_prefix('"') {
            quoted.split_once('"').ok_or("a closing quote is missing")?
        } else {
            rest.split_at(rest.find(|c: char| c.is_whitespace() || c == '[').unwrap_or(rest.len()))
        };
        let (bracket, rest) = match rest.strip_prefix('[') {
            Some(inner) => {
                let (inner, rest) = inner.split_once(']').ok_or("a closing `]` is missing")?;
                (Some(inner.trim().to_owned()), rest)
            }
            None => (None, rest),
        };
        let word = Word { text: text.to_owned(), bracket };
        self.rest = rest;
        Ok(word)
    }

    fn number(&mut self, what: &str) -> Result<u64, String> {
        number(&self.next(what)?.text, what)
    }

    fn place(&mut self) -> Result<Place, String> {
        let word = self.next("a node, \"name\" or \"name\"[port]")?;
        let port = word.bracket.map(|port| {
            port.parse()
                .map(PortNum)
                .map_err(|_| format!("port `{port}` of \"{}\": expected 0 to 254", word.text))
        });
        Ok(Place { node: word.text, port: port.transpose()? })
    }

    fn port(&mut self) -> Result<Place, String> {
        let place = self.place()?;
        if place.port.is_none() {
            return Err(format!("{place}: expected a port, {place}[1]"));
        }
        Ok(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(node: &str, port: u8) -> Place {
        Place { node: node.into(), port: Some(PortNum(port)) }
    }

    fn command(line: &str) -> Command {
        match parse(line) {
            Ok(Line::Backend(command)) => command,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn the_words_of_ibsim_are_known() {
        let all = |node: &str| Place { node: node.into(), port: None };
        assert_eq!(command("Link \"a b\"[1] \"c\"[2]"), Command::Link(place("a b", 1), place("c", 2)));
        assert_eq!(command("unlink S1[5]"), Command::Unlink(place("S1", 5)));
        assert_eq!(command("ReLink \"S1\""), Command::Relink(all("S1")));
        assert_eq!(command("Dump"), Command::Dump(None));
        assert_eq!(command("dump \"S 1\""), Command::Dump(Some("S 1".into())));
        assert_eq!(
            command("Error \"S\"[5] 20% 0x11"),
            Command::Error { place: place("S", 5), rate: 20, attribute: Some(0x11) }
        );
        assert_eq!(
            command("PerformanceSet \"S\"[5] PortCounters.SymbolErrorCounter=100"),
            Command::PerformanceSet {
                place: place("S", 5),
                counter: "PortCounters.SymbolErrorCounter".into(),
                value: 100,
                grows: false
            }
        );
        assert_eq!(
            command("perf S[5] PortXmitWait=+7"),
            Command::PerformanceSet {
                place: place("S", 5),
                counter: "PortXmitWait".into(),
                value: 7,
                grows: true
            }
        );
        assert_eq!(
            command("Baselid H[1] 7 2"),
            Command::BaseLid { place: place("H", 1), lid: 7, lmc: Some(2) }
        );
        assert_eq!(command("Guid H[1] 0x10"), Command::Guid(place("H", 1), Guid(16)));
        assert_eq!(command("virtual H[1]"), Command::Virtual(place("H", 1)));
        assert_eq!(parse("Quit"), Ok(Line::Quit));
        assert_eq!(parse("X 3"), Ok(Line::Disconnect(3)));
        assert_eq!(parse("!cmds.txt"), Ok(Line::File("cmds.txt".into())));
        assert_eq!(parse(" # nothing"), Ok(Line::Empty));
    }

    #[test]
    fn bad_lines_say_what_is_expected() {
        for (line, part) in [
            ("frobnicate", "unknown command"),
            ("link a b", "expected a port"),
            ("link a[1]", "expected a node"),
            ("unlink \"a", "closing quote"),
            ("unlink a[x]", "0 to 254"),
            ("unlink a[1", "closing `]`"),
            ("unlink a[1] b", "too much"),
            ("error a 101%", "0 to 100"),
            ("performanceset a[1] x", "COUNTER=VALUE"),
            ("performanceset a[1] x=+y", "what it grows by a second"),
            ("baselid a 70000", "0 to 49151"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
