//! Files of topologies and tables: what operators have from ibnetdiscover, ibsim, opensm and infiniband-diags, and our own
//! JSON.
//!
//! Readers never panic: whatever the bytes, they give a fabric (perhaps with warnings) or a [`FormatError`] that names file,
//! line, column, what was found and what is allowed. Cost: linear in the file.

mod assemble;
pub mod counters;
pub mod dot;
mod end_mark;
mod error;
pub mod fdbs;
pub mod flows;
pub mod ibnetdiscover;
pub mod ibsim;
pub mod json;
pub mod lfts;
mod lids;
pub mod lst;
pub mod mcfdbs;
pub mod members;
pub mod path_sl;
pub mod routes_json;
pub mod sl2vl;
pub mod slurm;
pub mod steering;
pub mod tables;
#[cfg(test)]
mod tests;
pub mod torus;

use std::fmt;
use std::io::Read;
use std::path::Path;

pub use error::FormatError;

use crate::fabric::{Fabric, PortRef};

/// A format of topology files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Output of ibnetdiscover.
    Ibnetdiscover,
    /// Input of ibsim.
    Ibsim,
    /// `opensm-subnet.lst`.
    Lst,
    /// Ours.
    Json,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ibnetdiscover => "ibnetdiscover output",
            Self::Ibsim => "ibsim net file",
            Self::Lst => "opensm subnet.lst",
            Self::Json => "JSON",
        })
    }
}

/// A topology that was read.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The fabric.
    pub fabric: Fabric,
    /// What the file was.
    pub format: Format,
    /// Where the discovery began, if the file says so: the port that ibnetdiscover ran on, of ibsim's first node.
    pub from: Option<PortRef>,
    /// The first LID that two ports in use have, with both, or that is no base of 2^LMC LIDs: the fabric was found so, but there
    /// are no right tables for it.
    pub wrong_lid: Option<FormatError>,
    /// What was passed over, a line each, with the file's name.
    pub warnings: Vec<String>,
}

/// The longest file that is read. The JSON of a fabric with all 49,151 unicast LIDs is a third of it.
pub const LONGEST_FILE: u64 = 256 << 20;

/// What is read of a file before it is decided whether it is a topology at all.
const HEAD: u64 = 4 << 20;

/// Reads a file, whatever format it has. A file that begins with nothing of a topology is not read to its end.
///
/// # Errors
/// As [`parse`]; a file that can't be read, or is longer than [`LONGEST_FILE`].
pub fn load(path: &Path) -> Result<Loaded, FormatError> {
    let name = path.display().to_string();
    let unreadable =
        |error: std::io::Error| FormatError::file(&name, error.to_string(), "a file that can be read");
    let mut file = std::fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.by_ref().take(HEAD).read_to_end(&mut bytes).map_err(unreadable)?;
    detect(&name, without_mark(&String::from_utf8_lossy(&bytes)))?;
    let rest = LONGEST_FILE + 1 - bytes.len() as u64;
    file.take(rest).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > LONGEST_FILE {
        let expected = format!("a topology, of at most {} MiB", LONGEST_FILE >> 20);
        return Err(FormatError::file(&name, "the file is longer than any fabric", expected));
    }
    let text = String::from_utf8_lossy(&bytes);
    let text = without_mark(&text);
    match detect(&name, text)? {
        Format::Ibsim => ibsim::read_with(&name, text, &ibsim::files_beside(path)),
        format => parse_as(format, &name, text),
    }
}

/// A text without the mark that some editors put before UTF-8.
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// The text of a file: without such a mark, and with U+FFFD for what is no text, so that whoever reads it tells where that is.
pub fn text_of(bytes: &[u8]) -> String {
    without_mark(&String::from_utf8_lossy(bytes)).to_owned()
}

/// Reads `text`, whatever format it has; `file` is its name for errors.
///
/// # Errors
/// Text that is no topology, or one with a fault, with its place.
pub fn parse(file: &str, text: &str) -> Result<Loaded, FormatError> {
    let text = without_mark(text);
    parse_as(detect(file, text)?, file, text)
}

fn parse_as(format: Format, file: &str, text: &str) -> Result<Loaded, FormatError> {
    match format {
        Format::Ibnetdiscover => ibnetdiscover::read(file, text),
        Format::Ibsim => ibsim::read(file, text),
        Format::Lst => lst::read(file, text),
        Format::Json => json::read(file, text),
    }
}

/// [`Loaded::wrong_lid`] of a fabric of which LIDs or LMCs were changed since `file` was read.
pub fn wrong_lid(file: &str, fabric: &Fabric) -> Option<FormatError> {
    lids::wrong(file, fabric, &lids::Places::default())
}

/// What kind of file this is, by its first telling line. A node that is called by kind and GUID tells nothing as long as
/// another may be called by a name: a net file names so those whose descriptions ibsim can't take (B76).
///
/// # Errors
/// Empty, binary, or nothing known in the first ten thousand lines.
pub fn detect(file: &str, text: &str) -> Result<Format, FormatError> {
    const LINES: usize = 10_000;
    let expected = "ibnetdiscover output, an ibsim net file, opensm's subnet.lst or our JSON";
    if text.trim().is_empty() {
        return Err(FormatError::file(file, "the file is empty", expected));
    }
    if text.trim_start().starts_with('{') {
        let lst = text.trim_start()[1..].trim_start().starts_with(|c: char| c.is_ascii_alphabetic());
        return Ok(if lst { Format::Lst } else { Format::Json });
    }
    if text.bytes().take(1 << 16).any(|b| b == 0) {
        return Err(FormatError::file(file, "the file is binary", expected));
    }
    let mut by_guid = false;
    for (number, line) in text.lines().enumerate() {
        if number >= LINES && !by_guid {
            break;
        }
        if line.starts_with("# Initiated from node") || line.starts_with("# Max of ") {
            return Ok(Format::Ibnetdiscover);
        }
        let header = ["Switch", "Hca", "Ca", "Rt"].iter().any(|word| line.starts_with(word));
        if header && line.contains('"') {
            let name = line.split('"').nth(1).unwrap_or("");
            if !is_guid_name(name) {
                return Ok(Format::Ibsim);
            }
            by_guid = true;
        }
        if line.starts_with("include") || line.starts_with("module") {
            return Ok(Format::Ibsim);
        }
    }
    if by_guid {
        return Ok(Format::Ibnetdiscover);
    }
    Err(FormatError::file(file, "no line that belongs to a topology", expected))
}

/// `S-0002c90200000003`.
fn is_guid_name(name: &str) -> bool {
    name.get(1..2) == Some("-")
        && name.starts_with(['S', 'H', 'R'])
        && name.len() == 18
        && name[2..].bytes().all(|b| b.is_ascii_hexdigit())
}
