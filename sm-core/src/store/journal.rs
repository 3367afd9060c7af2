//! The form of the journal: changes one after the other, each batch in a frame with a checksum, so that of a file that was cut
//! anywhere all whole frames are read and nothing else.
//!
//! ```text
//! "rsm-journal 1\n"
//! frame:  length of the payload, 4 bytes | first 8 bytes of the payload's SHA-256 | payload
//! payload: sequence number, 8 bytes | changes
//! change: length of the key, 2 bytes | key as Key::to_bytes | 1 and length of the value, 4 bytes, and value; or 0: no more
//! ```
//! All numbers are big-endian. Frames are numbered without gaps: what was written before the file was begun anew is never taken
//! for a continuation. Cost: linear in the bytes.

use sha2::{Digest, Sha256};

use super::entry::{Change, Key};

/// What a journal begins with.
pub(super) const HEAD: &[u8] = b"rsm-journal 1\n";
/// A frame is never longer: what claims to be is damaged.
const MOST: usize = 256 << 20;

/// A batch of changes and its number.
pub(super) type Frame = (u64, Vec<Change>);

/// A frame as it is written.
pub(super) fn frame(sequence: u64, changes: &[Change]) -> Vec<u8> {
    let mut payload = sequence.to_be_bytes().to_vec();
    for Change { key, value } in changes {
        let key = key.to_bytes();
        // Keys have a few dozen bytes, values a few hundred.
        payload.extend((key.len() as u16).to_be_bytes());
        payload.extend(key);
        match value {
            Some(value) => {
                payload.push(1);
                payload.extend((value.len() as u32).to_be_bytes());
                payload.extend(value);
            }
            None => payload.push(0),
        }
    }
    [&(payload.len() as u32).to_be_bytes()[..], &checksum(&payload), &payload].concat()
}

/// The whole frames from the start of a journal on. Changes of kinds that are not known are left out.
pub(super) fn read(bytes: &[u8]) -> Vec<Frame> {
    let mut frames: Vec<Frame> = Vec::new();
    let Some(mut rest) = bytes.strip_prefix(HEAD) else { return frames };
    while let Some((frame, behind)) = next(rest) {
        if frames.last().is_some_and(|(before, _)| frame.0 != before.wrapping_add(1)) {
            break;
        }
        frames.push(frame);
        rest = behind;
    }
    frames
}

fn next(bytes: &[u8]) -> Option<(Frame, &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (sum, rest) = rest.split_first_chunk::<8>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok().filter(|length| *length <= MOST)?;
    let (payload, behind) = rest.split_at_checked(length)?;
    if checksum(payload) != *sum {
        return None;
    }
    let (sequence, mut rest) = payload.split_first_chunk()?;
    let mut changes = Vec::new();
    while !rest.is_empty() {
        let (change, behind) = next_change(rest)?;
        changes.extend(change);
        rest = behind;
    }
    Some(((u64::from_be_bytes(*sequence), changes), behind))
}

/// A change, or `None` in it for one of an unknown kind.
fn next_change(bytes: &[u8]) -> Option<(Option<Change>, &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (key, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    let (present, rest) = rest.split_first()?;
    let (value, rest) = if *present == 0 {
        (None, rest)
    } else {
        let (length, rest) = rest.split_first_chunk()?;
        let (value, rest) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
        (Some(value.to_vec()), rest)
    };
    Some((Key::from_bytes(key).map(|key| Change { key, value }), rest))
}

fn checksum(payload: &[u8]) -> [u8; 8] {
    let sum: [u8; 32] = Sha256::digest(payload).into();
    let [a, b, c, d, e, f, g, h, ..] = sum;
    [a, b, c, d, e, f, g, h]
}
