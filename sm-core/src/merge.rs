//! Log lines merged by cause (B70): a complaint of a thousand ports, or of one port every second, is a line with a count.
//!
//! Two complaints have one cause when they differ in names (in quotes) and numbers only. Of each cause a number of lines may be
//! written in a [`PAUSE`]; what comes beyond is counted and told when the pause is over, with the names of some.
//!
//! Source: the project's own. Cost: each text is walked once; causes are bounded, a text of one more goes with all such.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use mad::types::Timestamp;

/// Time in which the lines of a cause are bounded.
pub const PAUSE: Duration = Duration::from_secs(60);
/// Of so many complaints beside the first a line has the names.
const NAMED: usize = 8;
/// Causes that are kept apart.
const MOST_CAUSES: usize = 256;

/// What was held back of a cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The first complaint.
    pub text: String,
    /// How many it stands for.
    pub count: u64,
    /// What the others name in its place: some of them.
    pub others: Vec<String>,
}

/// Whether complaints are written, and what becomes of those that are not.
#[derive(Clone, Debug)]
pub struct Merger {
    /// Lines of a cause that may be written in a pause before the rest is held back.
    most: u32,
    causes: BTreeMap<String, Cause>,
}

#[derive(Clone, Debug)]
struct Cause {
    /// The pause ends then; `None`: nothing was told yet.
    until: Option<Timestamp>,
    written: u32,
    held: Option<Line>,
}

impl Merger {
    /// Of each cause `most` lines are written at once in each pause. With 0 all are held back, for [`Merger::due`] to tell in one
    /// line.
    pub const fn new(most: u32) -> Self {
        Self { most, causes: BTreeMap::new() }
    }

    /// Takes a complaint. Whether it may be written; otherwise it is counted. `scope` keeps causes of different places apart.
    pub fn note(&mut self, scope: &str, text: &str, now: Timestamp) -> bool {
        let (words, names) = split(text);
        let mut key = format!("{scope}\0{words}");
        if self.causes.len() >= MOST_CAUSES && !self.causes.contains_key(&key) {
            self.forget(now);
            if self.causes.len() >= MOST_CAUSES {
                key.clear();
            }
        }
        let cause = self.causes.entry(key).or_insert(Cause { until: None, written: 0, held: None });
        if cause.held.is_none() && cause.until.is_some_and(|until| until <= now) {
            (cause.until, cause.written) = (None, 0);
        }
        if cause.held.is_none() && cause.written < self.most {
            cause.written += 1;
            cause.until.get_or_insert(now + PAUSE);
            return true;
        }
        match &mut cause.held {
            None => cause.held = Some(Line { text: text.to_owned(), count: 1, others: Vec::new() }),
            Some(line) => {
                line.count += 1;
                line.name(text, &names);
            }
        }
        false
    }

    /// What was held back of causes whose pause is over, or of which nothing was told yet.
    pub fn due(&mut self, now: Timestamp) -> Vec<Line> {
        let mut lines = Vec::new();
        for cause in self.causes.values_mut() {
            if cause.until.is_none_or(|until| until <= now)
                && let Some(line) = cause.held.take()
            {
                (cause.until, cause.written) = (Some(now + PAUSE), self.most);
                lines.push(line);
            }
        }
        self.forget(now);
        lines
    }

    /// All that is held back: at the end.
    pub fn rest(&mut self) -> Vec<Line> {
        let causes = std::mem::take(&mut self.causes);
        causes.into_values().filter_map(|cause| cause.held).collect()
    }

    fn forget(&mut self, now: Timestamp) {
        self.causes.retain(|_, cause| cause.held.is_some() || cause.until.is_some_and(|until| until > now));
    }
}

impl Line {
    /// Keeps what this complaint names in place of the first one's names.
    fn name(&mut self, text: &str, names: &[&str]) {
        if self.others.len() >= NAMED || *text == self.text {
            return;
        }
        let (_, first) = split(&self.text);
        let differing = names.iter().zip(&first).filter(|(name, first)| name != first).map(|(name, _)| *name);
        let name = differing.collect::<Vec<_>>().join(" ");
        if !self.others.contains(&name) {
            self.others.push(name);
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        let more = self.count - 1;
        if more == 0 {
            return Ok(());
        }
        write!(f, " (and {more} more like it")?;
        if !self.others.is_empty() {
            let open = if self.others.len() as u64 == more { "" } else { "; …" };
            write!(f, ": {}{open}", self.others.join("; "))?;
        }
        f.write_str(")")
    }
}

/// A text without its names and numbers, and these.
fn split(text: &str) -> (String, Vec<&str>) {
    let (mut words, mut names, mut rest) = (String::with_capacity(text.len()), Vec::new(), text);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => quoted(rest),
            // Within a word a digit belongs to it, and a status is a cause of its own.
            '0'..='9' if !words.ends_with(char::is_alphanumeric) && !words.ends_with("status ") => {
                number(rest)
            }
            _ => 0,
        };
        if length == 0 {
            words.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            words.push('…');
            names.push(&rest[..length]);
            rest = &rest[length..];
        }
    }
    (words, names)
}

/// Bytes of a text in quotes, in which quotes are escaped; 0 where it does not end.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            b'"' if !escaped => return at + 1,
            _ => escaped = byte == b'\\' && !escaped,
        }
    }
    0
}

/// Bytes of a number, a GUID, a GID, or a list of numbers such as a route.
fn number(text: &str) -> usize {
    let bytes = text.as_bytes();
    let inner = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_alphanumeric);
    (1..)
        .find(|at| !(inner(*at) || (matches!(bytes.get(*at), Some(b',' | b':' | b'.')) && inner(at + 1))))
        .unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_start(Duration::from_secs(seconds))
    }

    fn complaint(host: u32) -> String {
        format!(r#""H{host} \"x" (0x{host:016x}) (route 0,1,{host}): PortInfo of port {host}: no answer"#)
    }

    #[test]
    fn names_and_numbers_are_no_part_of_a_cause() {
        let text = complaint(7);
        let (words, names) = split(&text);
        assert_eq!(words, "… (…) (route …): PortInfo of port …: no answer");
        assert_eq!(names, [r#""H7 \"x""#, "0x0000000000000007", "0,1,7", "7"]);
        assert_eq!(split("status 0x001c, LMC2 of 3.").0, "status 0x001c, LMC2 of ….");
        assert_eq!(split("an \"open end 5"), ("an \"open end …".into(), vec!["5"]));
        assert_eq!(split("of fe80::2c9:300:1").0, "of fe80::…");
        assert_eq!(split("").0, "");
    }

    #[test]
    fn b70_a_complaint_of_a_thousand_ports_is_one_line_a_minute_with_a_count() {
        let mut merger = Merger::new(0);
        let mut lines = Vec::new();
        for second in 0..180 {
            for host in 0..1000 {
                assert!(!merger.note("", &complaint(host), at(second)));
            }
            lines.extend(merger.due(at(second)));
        }
        lines.extend(merger.rest());
        assert_eq!(lines.len(), 4, "one at the start, one in each minute, and the rest");
        assert_eq!(lines.iter().map(|line| line.count).sum::<u64>(), 180_000, "all are counted");
        let first = lines[0].to_string();
        assert!(first.starts_with(&complaint(0)) && first.contains("(and 999 more like it: \"H1"), "{first}");
        assert!(first.ends_with("; …)") && first.len() < 1000, "{first}");
    }

    #[test]
    fn b70_some_lines_are_written_at_once_and_the_rest_is_counted() {
        let mut merger = Merger::new(3);
        let written = |merger: &mut Merger, scope: &str, seconds: std::ops::Range<u64>| {
            seconds
                .filter(|second| merger.note(scope, &format!("reading failed, error {second}"), at(*second)))
                .count()
        };
        assert_eq!(written(&mut merger, "a", 0..30), 3);
        assert_eq!(written(&mut merger, "b", 0..2), 2, "each place for itself");
        assert_eq!(merger.due(at(59)), []);
        let lines = merger.due(at(60));
        assert_eq!(lines.len(), 1);
        assert_eq!((lines[0].count, lines[0].text.as_str()), (27, "reading failed, error 3"));
        assert_eq!(written(&mut merger, "a", 60..120), 0, "what was told counts");
        assert_eq!(merger.due(at(120))[0].count, 60);
        assert_eq!(written(&mut merger, "a", 180..190), 3, "after a quiet minute it is new");
    }

    #[test]
    fn causes_without_end_are_bounded() {
        let mut merger = Merger::new(0);
        let word = |number: u32| format!("{number:b}").replace('0', "o").replace('1', "l");
        for number in 0..100_000 {
            merger.note("", &word(number), at(0));
        }
        let lines = merger.due(at(0));
        assert_eq!(lines.len(), MOST_CAUSES + 1);
        assert_eq!(lines.iter().map(|line| line.count).sum::<u64>(), 100_000);
        merger.due(at(61));
        assert!(merger.causes.is_empty());
    }
}
