//! `lids`: which LIDs belong to which port, as versions before the database wrote it.
//!
//! ```text
//! rsm-lids 1
//! 0x0002c9030012ab02 17 0
//! ```
//! PortGUID, base LID, LMC; sorted by GUID.

use mad::types::{Guid, Lid};

use crate::plan::lids::{LidMemory, LidRange};

pub(super) const FILE: &str = "lids";
const HEAD: &str = "rsm-lids 1";

/// Good lines, and what was wrong with the others.
#[derive(Debug, Default)]
pub(super) struct Parsed<T> {
    pub(super) entries: T,
    pub(super) complaints: Vec<String>,
}

pub(super) fn parse(bytes: &[u8]) -> Parsed<LidMemory> {
    let mut parsed = Parsed::<LidMemory>::default();
    let mut taken = vec![Guid::NONE; Lid::MAX.index() + 1];
    for (number, line) in body(bytes, HEAD, &mut parsed.complaints) {
        match entry(&line).and_then(|(guid, range)| add(&mut parsed.entries, &mut taken, guid, range)) {
            Ok(()) => {}
            Err(reason) => parsed.complaints.push(format!("line {number}: {reason}")),
        }
    }
    parsed
}

/// The lines after the head with their numbers; a complaint for a wrong head, and for a last line without its end,
/// which is dropped: it may have been cut.
pub(super) fn body(bytes: &[u8], head: &str, complaints: &mut Vec<String>) -> Vec<(usize, String)> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines: Vec<(usize, String)> =
        text.lines().map(str::to_owned).enumerate().map(|(i, l)| (i + 1, l)).collect();
    if !text.is_empty()
        && !text.ends_with('\n')
        && let Some((number, _)) = lines.pop()
    {
        complaints.push(format!("line {number}: cut off"));
    }
    match lines.first() {
        Some((_, first)) if first == head => {
            lines.remove(0);
            lines
        }
        _ => {
            complaints.push(format!("line 1: expected `{head}`; nothing of it is used"));
            Vec::new()
        }
    }
}

fn entry(line: &str) -> Result<(Guid, LidRange), String> {
    let mut words = line.split_ascii_whitespace();
    let (Some(guid), Some(lid), Some(lmc), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return Err("expected `GUID LID LMC`".into());
    };
    let guid: Guid = guid.parse().map_err(|e| format!("{e}"))?;
    let lid: Lid = lid.parse().map_err(|e| format!("{e}"))?;
    let lmc: u8 = lmc.parse().map_err(|_| format!("LMC `{lmc}`: expected 0 to 7"))?;
    let range = LidRange::new(lid, lmc).ok_or_else(|| format!("LID {lid} does not fit LMC {lmc}"))?;
    if guid.is_some() { Ok((guid, range)) } else { Err("GUID 0".into()) }
}

fn add(memory: &mut LidMemory, taken: &mut [Guid], guid: Guid, range: LidRange) -> Result<(), String> {
    if memory.contains_key(&guid) {
        return Err(format!("GUID {guid} is there twice"));
    }
    if let Some(lid) = range.indices().find(|lid| taken[*lid].is_some()) {
        return Err(format!("LID {lid} belongs to {} already", taken[lid]));
    }
    range.indices().for_each(|lid| taken[lid] = guid);
    memory.insert(guid, range);
    Ok(())
}
