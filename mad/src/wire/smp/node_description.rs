//! NodeDescription (specification volume 1, 14.2.5.2): 64 bytes of text, UTF-8 by the specification, anything in practice.

use std::fmt;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::wire::{Attribute, ids};

/// The name that a node's owner gave it. Filled up with NUL where shorter; a name of 64 bytes has none (B76).
#[derive(Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct NodeDescription {
    /// The bytes as they came.
    pub text: [u8; 64],
}
const _: () = assert!(size_of::<NodeDescription>() == 64);

impl Attribute for NodeDescription {
    const ID: u16 = ids::sm::NODE_DESCRIPTION;
}

impl NodeDescription {
    /// From a text, cut to 64 bytes at the end of a character.
    pub fn new(name: &str) -> Self {
        let mut text = [0; 64];
        let len = (0..=name.len().min(64)).rev().find(|i| name.is_char_boundary(*i)).unwrap_or(0);
        text[..len].copy_from_slice(&name.as_bytes()[..len]);
        Self { text }
    }

    /// The bytes up to the first NUL, or all 64.
    pub fn name_bytes(&self) -> &[u8] {
        let len = self.text.iter().position(|b| *b == 0).unwrap_or(self.text.len());
        &self.text[..len]
    }
}

impl fmt::Display for NodeDescription {
    /// The text up to the first NUL, with what is not printable as `\xNN` (bytes that are no UTF-8) or `\u{N}`: the name
    /// comes from anybody on the fabric and goes to terminals and logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.name_bytes().utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    '"' | '\'' | '\\' => write!(f, "{c}")?,
                    _ => write!(f, "{}", c.escape_debug())?,
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for NodeDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeDescription(\"{self}\")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B76: all 64 bytes count, a NUL ends the name, and what is not printable is escaped.
    #[test]
    fn b76_names_of_64_bytes_with_nul_and_with_invalid_utf8() {
        let full = "x".repeat(63) + "y";
        assert_eq!(NodeDescription::new(&full).to_string(), full);
        let mut description = NodeDescription::new("host HCA-1");
        assert_eq!(description.to_string(), "host HCA-1");
        description.text[4] = 0;
        assert_eq!(description.to_string(), "host");
        description.text[..6].copy_from_slice(b"a\xff\x1b\\\"\n");
        assert_eq!(description.to_string(), "a\\xff\\u{1b}\\\"\\nCA-1");
        assert_eq!(description.name_bytes().len(), 10);
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let long = "é".repeat(40);
        assert_eq!(NodeDescription::new(&long).to_string(), "é".repeat(32));
        let odd = format!("a{long}");
        assert_eq!(NodeDescription::new(&odd).name_bytes().len(), 63);
    }
}
