//! LIDs as topology files tell them: which numbers are LIDs, and that no two ports have the same.
//!
//! 0 and 65535 (the permissive LID) stand for a port that has none, as real devices report before anybody gave them one (B15).
//! Cost: linear in the end ports, times the logarithm for a sort.

use mad::types::Lid;
use rustc_hash::FxHashMap;

use super::error::{Cursor, FormatError};
use crate::fabric::{Fabric, PortRef};

/// Where the LID of each end port stands.
pub(super) type Places<'a> = FxHashMap<PortRef, Cursor<'a>>;

/// A LID out of a file.
///
/// # Errors
/// A number that is no unicast LID and does not stand for none either.
pub(super) fn lid(value: u64, at: &Cursor<'_>) -> Result<Option<Lid>, FormatError> {
    match u16::try_from(value) {
        Ok(0 | u16::MAX) => Ok(None),
        Ok(number) if Lid::new(number).is_some() => Ok(Lid::new(number)),
        _ => Err(at.error_with(format!("LID {value}"), "1 to 49151, or 0 or 65535 for none")),
    }
}

/// An LMC out of a file.
///
/// # Errors
/// A number above 7.
pub(super) fn lmc(value: u64, at: &Cursor<'_>) -> Result<u8, FormatError> {
    match u8::try_from(value) {
        Ok(lmc @ 0..=7) => Ok(lmc),
        _ => Err(at.error_with(format!("LMC {value}"), "0 to 7")),
    }
}

/// The number behind `word` in `text`, a piece of the line of `at`, with its place. One that is too large for any field is
/// `u64::MAX`.
pub(super) fn number_after<'a>(at: &Cursor<'a>, text: &str, word: &str) -> Option<(u64, Cursor<'a>)> {
    let rest = &text[text.find(word)? + word.len()..];
    let digits = &rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())];
    (!digits.is_empty()).then(|| (digits.parse().unwrap_or(u64::MAX), at.at_piece(rest)))
}

/// LID and LMC of an end port out of `lid 5 lmc 0`, with the place of the LID.
///
/// # Errors
/// As [`lid`] and [`lmc`].
pub(super) fn lid_and_lmc<'a>(
    at: &Cursor<'a>,
    text: &str,
) -> Result<(Option<(Lid, Cursor<'a>)>, u8), FormatError> {
    let of_lmc = number_after(at, text, "lmc ").map_or(Ok(0), |(value, place)| lmc(value, &place))?;
    let Some((value, place)) = number_after(at, text, "lid ") else { return Ok((None, of_lmc)) };
    Ok((lid(value, &place)?.map(|lid| (lid, place)), of_lmc))
}

/// Takes the LID that one more line gives a port.
///
/// # Errors
/// A line before gave it another.
pub(super) fn same<'a>(
    fabric: &mut Fabric,
    places: &mut Places<'a>,
    end: PortRef,
    lid: Lid,
    place: Cursor<'a>,
) -> Result<(), FormatError> {
    let node = fabric.node_mut(end.node);
    let name = format!("\"{}\"[{}]", node.description, end.port);
    let Some(port) = node.port_mut(end.port) else { return Ok(()) };
    match (port.lid, places.get(&end)) {
        (Some(there), Some(first)) if there != lid => Err(place.error_with(
            format!("LID {} of {name}", lid.get()),
            format!("LID {}, as in line {}", there.get(), first.line()),
        )),
        (Some(_), _) => Ok(()),
        (None, _) => {
            port.lid = Some(lid);
            places.insert(end, place);
            Ok(())
        }
    }
}

/// The first LID that two ports in use have, else the first base LID of which not as many low bits are 0 as the LMC says, or whose
/// LIDs go beyond the unicast ones. A fabric may be found so, but tables for it can't be judged.
pub(super) fn wrong(file: &str, fabric: &Fabric, places: &Places<'_>) -> Option<FormatError> {
    twice(file, fabric, places).or_else(|| no_base(file, fabric, places))
}

fn no_base(file: &str, fabric: &Fabric, places: &Places<'_>) -> Option<FormatError> {
    for (node, facts) in fabric.nodes() {
        for (port, of) in facts.end_ports() {
            let (end, lids) = (PortRef { node, port }, 1_u16 << of.lmc.min(7));
            let Some(base) = of.lid.filter(|_| facts.is_switch() || fabric.peer(end).is_some()) else {
                continue;
            };
            let last = base.get().checked_add(lids - 1).and_then(Lid::new);
            if base.get() % lids == 0 && last.is_some() {
                continue;
            }
            let found =
                format!("\"{}\"[{port}] has base LID {} with LMC {}", facts.description, base.get(), of.lmc);
            let expected = format!("a multiple of {lids}, the last LID at most 49151");
            return Some(match places.get(&end) {
                Some(place) => place.error_with(found, expected),
                None => FormatError::file(file, found, expected),
            });
        }
    }
    None
}

fn twice(file: &str, fabric: &Fabric, places: &Places<'_>) -> Option<FormatError> {
    let mut ranges = Vec::new();
    for (node, facts) in fabric.nodes() {
        for (port, of) in facts.end_ports() {
            let end = PortRef { node, port };
            if let Some(base) = of.lid.filter(|_| facts.is_switch() || fabric.peer(end).is_some()) {
                ranges.push((base.get(), base.get().saturating_add((1 << of.lmc.min(7)) - 1), end));
            }
        }
    }
    let line = |end: &PortRef| places.get(end).map_or(0, Cursor::line);
    ranges.sort_by_key(|(base, _, end)| (*base, line(end)));
    let clash = ranges.windows(2).find(|pair| pair[1].0 <= pair[0].1)?;
    let said = |(base, last, end): &(u16, u16, PortRef)| {
        let name = format!("\"{}\"[{}]", fabric.node(end.node).description, end.port);
        let lids = if base == last { format!("LID {base}") } else { format!("LIDs {base} to {last}") };
        let line = line(end);
        (format!("{name} has {lids}"), if line > 0 { format!(" in line {line}") } else { String::new() })
    };
    let (mut first, mut second) = (&clash[0], &clash[1]);
    if line(&first.2) > line(&second.2) {
        (first, second) = (second, first);
    }
    let ((first, first_line), (second_text, _)) = (said(first), said(second));
    let (found, expected) = (format!("{second_text}, {first}{first_line}"), "each LID at one port only");
    Some(match places.get(&second.2) {
        Some(place) => place.error_with(found, expected),
        None => FormatError::file(file, found, expected),
    })
}
