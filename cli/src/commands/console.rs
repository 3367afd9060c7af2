//! Lines of a console, of bounded length: who writes without ever ending a line takes no memory.

use std::io::{self, BufRead};

/// The longest line in bytes.
pub(super) const LONGEST: usize = 4096;

/// Reads lines of `input`. What is longer than [`LONGEST`] is an error as soon as that is known, and its rest is skipped.
pub(super) struct Lines<R> {
    input: R,
    skipping: bool,
}

/// What is said of a line that is too long.
pub(super) fn too_long() -> String {
    format!("a console line has more than {LONGEST} bytes; it is skipped")
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, skipping: false }
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Result<String, String>;

    /// The next line without its end, with what is no text replaced; ends where nothing more can be read.
    fn next(&mut self) -> Option<Self::Item> {
        let mut line = Vec::new();
        loop {
            let buffer = match self.input.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return None,
            };
            if buffer.is_empty() {
                return (!line.is_empty()).then(|| Ok(String::from_utf8_lossy(&line).into_owned()));
            }
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let piece = &buffer[..end.unwrap_or(buffer.len())];
            let fits = line.len() + piece.len() <= LONGEST;
            if fits && !self.skipping {
                line.extend_from_slice(piece);
            }
            let read = end.map_or(buffer.len(), |end| end + 1);
            self.input.consume(read);
            match (self.skipping, end) {
                (true, Some(_)) => self.skipping = false,
                (true, None) => {}
                (false, end) if !fits => {
                    self.skipping = end.is_none();
                    return Some(Err(too_long()));
                }
                (false, Some(_)) => {
                    return Some(Ok(String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned()));
                }
                (false, None) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read, repeat};

    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_told_once_and_those_after_it_are_read() {
        let text = format!("Wait 1\r\n{}\n{}\n\nQuit", "x".repeat(LONGEST), "y".repeat(LONGEST + 1));
        for room in [1, 7, 4096, 100_000] {
            let lines: Vec<_> = Lines::new(BufReader::with_capacity(room, text.as_bytes())).collect();
            let expected = [
                Ok("Wait 1".into()),
                Ok("x".repeat(LONGEST)),
                Err(too_long()),
                Ok(String::new()),
                Ok("Quit".into()),
            ];
            assert_eq!(lines, expected, "{room}");
        }
    }

    #[test]
    fn zeros_without_end_are_told_at_once_and_skipped_and_what_is_no_text_ends_nothing() {
        let input = repeat(0).take(50 << 20).chain(&b"\n\xff\nQuit\n"[..]);
        let mut lines = Lines::new(BufReader::new(input));
        assert_eq!(lines.next(), Some(Err(too_long())));
        assert_eq!(lines.input.get_ref().get_ref().0.limit() >> 20, 49, "told at once");
        assert_eq!(lines.next(), Some(Ok("\u{fffd}".into())));
        assert_eq!(lines.next(), Some(Ok("Quit".into())));
        assert_eq!(lines.next(), None);
    }
}
