//! Errors with a place, and a cursor over one line that makes them.

use std::fmt;

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct FormatError {
    /// The file's name as it was given.
    pub file: String,
    /// Line, from 1; 0 for the file as a whole.
    pub line: usize,
    /// Column in characters, from 1; 0 for the line as a whole.
    pub column: usize,
    /// What was found there.
    pub found: String,
    /// What is allowed there.
    pub expected: String,
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
            if self.column > 0 {
                write!(f, ":{}", self.column)?;
            }
        }
        // Whatever a file holds, the error is one line and moves no terminal's cursor.
        let odd = |c: char| c != '\t' && (c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'));
        let plain = |text: &str| text.replace(odd, "\u{fffd}");
        write!(f, ": {}, expected {}", plain(&self.found), plain(&self.expected))
    }
}

impl FormatError {
    /// About a file as a whole.
    pub fn file(file: &str, found: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { file: file.into(), line: 0, column: 0, found: found.into(), expected: expected.into() }
    }

    /// About a file that says nothing: it is empty, or `otherwise` is found of it.
    pub(super) fn nothing(file: &str, text: &str, otherwise: &str, expected: impl Into<String>) -> Self {
        let found = if text.trim().is_empty() { "the file is empty" } else { otherwise };
        Self::file(file, found, expected)
    }
}

/// Longest piece of a file that an error repeats.
const SHOWN: usize = 40;

/// A place in one line.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    file: &'a str,
    number: usize,
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    /// At the start of line `number` of `file`. Blanks at the end don't count.
    pub(super) fn new(file: &'a str, number: usize, text: &'a str) -> Self {
        Self { file, number, text: text.trim_end(), at: 0 }
    }

    /// What is left of the line.
    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Skips blanks and tabs.
    pub(super) fn blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    /// Takes `word` when it comes next.
    pub(super) fn take(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    /// Moves on by `length` bytes, which must end at a character.
    pub(super) fn skip(&mut self, length: usize) {
        self.at += length;
    }

    /// Takes what comes next, or says that it was expected.
    pub(super) fn expect(&mut self, word: &str) -> Result<(), FormatError> {
        if self.take(word) { Ok(()) } else { Err(self.error(format!("`{word}`"))) }
    }

    /// Takes characters as long as `accept` likes them.
    pub(super) fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !accept(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// Takes a decimal number of at most `most`.
    pub(super) fn number(&mut self, what: &str, most: u64) -> Result<u64, FormatError> {
        let start = *self;
        let digits = self.take_while(|c| c.is_ascii_digit());
        digits.parse().ok().filter(|n| *n <= most).ok_or_else(|| start.error(format!("{what}, 0 to {most}")))
    }

    /// Takes a number in C's notation: `0x` hexadecimal or decimal.
    pub(super) fn c_number(&mut self, what: &str) -> Result<u64, FormatError> {
        let start = *self;
        let parsed = if self.take("0x") || self.take("0X") {
            u64::from_str_radix(self.take_while(|c| c.is_ascii_hexdigit()), 16)
        } else {
            self.take_while(|c| c.is_ascii_digit()).parse()
        };
        parsed.map_err(|_| start.error(format!("{what}, decimal or 0x and up to 16 hexadecimal digits")))
    }

    /// Takes hexadecimal digits without `0x`.
    pub(super) fn hex(&mut self, what: &str) -> Result<u64, FormatError> {
        let start = *self;
        u64::from_str_radix(self.take_while(|c| c.is_ascii_hexdigit()), 16)
            .map_err(|_| start.error(format!("{what}, up to 16 hexadecimal digits")))
    }

    /// Takes what stands between two quotes.
    pub(super) fn quoted(&mut self, what: &str) -> Result<&'a str, FormatError> {
        let start = *self;
        let inner = self.rest().strip_prefix('"').and_then(|rest| rest.split_once('"'));
        let (inner, _) = inner.ok_or_else(|| start.error(format!("{what} in quotes")))?;
        self.at += inner.len() + 2;
        Ok(inner)
    }

    /// The place of `piece`, which has to be a part of this line; here otherwise.
    pub(super) fn at_piece(&self, piece: &str) -> Self {
        let offset = piece.as_ptr().addr().wrapping_sub(self.text.as_ptr().addr());
        Self { at: if self.text.is_char_boundary(offset) { offset } else { self.at }, ..*self }
    }

    /// Line number, from 1.
    pub(super) fn line(&self) -> usize {
        self.number
    }

    /// What is worth a line, though it is no error.
    pub(super) fn warning(&self, text: &str) -> String {
        format!("{}:{}: {text}", self.file, self.number)
    }

    /// "`expected` should stand here."
    pub(super) fn error(&self, expected: impl Into<String>) -> FormatError {
        let rest: String = self.rest().chars().take(SHOWN).collect();
        let found = if rest.is_empty() { "the line ends".into() } else { format!("found `{rest}`") };
        self.error_with(found, expected)
    }

    /// The same with own words for what was found.
    pub(super) fn error_with(&self, found: impl Into<String>, expected: impl Into<String>) -> FormatError {
        FormatError {
            file: self.file.into(),
            line: self.number,
            column: self.text[..self.at].chars().count() + 1,
            found: found.into(),
            expected: expected.into(),
        }
    }
}
