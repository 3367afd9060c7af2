//! Commits that are too large for one transaction of etcd.
//!
//! The parts `journal/NUMBER/INDEX` are written first and mean nothing; `journal/valid` = NUMBER, written with the new
//! generation, is the moment of the commit. Then the changes are made in parts, which may be done again, and the journal is
//! deleted. A part is a row of changes: length of the key (2 bytes), the key, length of the value (4 bytes, all ones where
//! the entry is removed), the value.

use serde_json::{Value, json};

use super::client::encode;
use super::{AT_ONCE, BYTES_AT_ONCE, Etcd};
use crate::store::StoreError;
use crate::store::entry::{Change, Key};

const REMOVED: u32 = u32::MAX;

/// About what a change takes in a transaction or in the journal.
pub(super) fn size(change: &Change) -> usize {
    change.key.id.len() * 2 + change.value.as_ref().map_or(0, Vec::len) + 64
}

impl Etcd {
    pub(super) fn commit_by_journal(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        self.delete("journal/")?;
        for (index, part) in parts(changes, usize::MAX).into_iter().enumerate() {
            let bytes: Vec<u8> = part.iter().flat_map(to_bytes).collect();
            let key = self.key(&format!("journal/part/{index:06}"));
            self.write(&[json!({ "requestPut": { "key": key, "value": encode(&bytes) } })], false)?;
        }
        let valid = json!({ "requestPut": { "key": self.key("journal/valid"), "value": encode(b"1") } });
        self.write(&[valid], true)?;
        self.unfinished = changes.to_vec();
        self.finish_journal()
    }

    /// Carries out a journal that is valid. Nothing else may be written before: who reads would see the journal's values.
    pub(super) fn finish_journal(&mut self) -> Result<(), StoreError> {
        if self.unfinished.is_empty() {
            return Ok(());
        }
        let changes = std::mem::take(&mut self.unfinished);
        let done = self.carry_out(&changes);
        if done.is_err() {
            self.unfinished = changes;
        }
        done
    }

    fn carry_out(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        for part in parts(changes, AT_ONCE) {
            let operations: Vec<Value> = part.iter().map(|change| self.operation(change)).collect();
            self.write(&operations, false)?;
        }
        self.delete("journal/")
    }
}

/// Changes in runs that fit a transaction.
fn parts(changes: &[Change], most: usize) -> Vec<&[Change]> {
    let (mut parts, mut start, mut bytes) = (Vec::new(), 0, 0);
    for (index, change) in changes.iter().enumerate() {
        let size = size(change);
        if index > start && (index - start >= most || bytes + size > BYTES_AT_ONCE) {
            parts.push(&changes[start..index]);
            (start, bytes) = (index, 0);
        }
        bytes += size;
    }
    parts.push(&changes[start..]);
    parts
}

fn to_bytes(change: &Change) -> Vec<u8> {
    let key = change.key.to_bytes();
    let length = change.value.as_ref().map_or(REMOVED, |value| u32::try_from(value.len()).unwrap_or(0));
    let value = change.value.as_deref().unwrap_or_default();
    let key_length = u16::try_from(key.len()).unwrap_or(0);
    [&key_length.to_be_bytes()[..], &key, &length.to_be_bytes(), value].concat()
}

/// The changes of a journal that was made valid; none of one that was not.
pub(super) fn read(journal: &[(String, Vec<u8>)]) -> Vec<Change> {
    if !journal.iter().any(|(name, _)| name == "valid") {
        return Vec::new();
    }
    let mut changes = Vec::new();
    for (_, bytes) in journal.iter().filter(|(name, _)| name.starts_with("part/")) {
        let mut rest = &bytes[..];
        while let Some((change, after)) = first(rest) {
            changes.extend(change);
            rest = after;
        }
    }
    changes
}

/// The first change of a row, `None` in it where its kind is not known, and what follows.
fn first(bytes: &[u8]) -> Option<(Option<Change>, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    let (key, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let length = u32::from_be_bytes(*length);
    let (value, rest) = if length == REMOVED {
        (None, rest)
    } else {
        let (value, rest) = rest.split_at_checked(length as usize)?;
        (Some(value.to_vec()), rest)
    };
    Some((Key::from_bytes(key).map(|key| Change { key, value }), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Kind;

    #[test]
    fn a_journal_reads_back_when_it_is_valid_and_damage_ends_it() {
        let key = |id: u8| Key::new(Kind::Lids, vec![id; usize::from(id)]);
        let changes: Vec<Change> = (0..50)
            .map(|id| Change { key: key(id), value: (id % 3 != 0).then(|| vec![id; usize::from(id % 5)]) })
            .collect();
        let row: Vec<u8> = changes.iter().flat_map(to_bytes).collect();
        let (a, b) = row.split_at(changes[..20].iter().map(|change| to_bytes(change).len()).sum());
        let part = |name: &str, bytes: &[u8]| (name.to_owned(), bytes.to_vec());
        let parts = [part("part/000000", a), part("part/000001", b)];
        assert!(read(&parts).is_empty(), "not valid");
        let valid = [&parts[..], &[part("valid", b"1")]].concat();
        assert_eq!(read(&valid), changes);
        for cut in 0..a.len() {
            let cut = [part("part/000000", &a[..cut]), part("valid", b"")];
            assert!(changes.starts_with(&read(&cut)));
        }
    }

    #[test]
    fn parts_keep_the_bounds_and_the_order() {
        let change = |id: u16, bytes: usize| Change {
            key: Key::new(Kind::Lids, id.to_be_bytes().to_vec()),
            value: Some(vec![0; bytes]),
        };
        let changes: Vec<Change> = (0..500).map(|id| change(id, usize::from(id) * 100)).collect();
        for most in [1, 7, 100, usize::MAX] {
            let parts = parts(&changes, most);
            assert_eq!(parts.concat(), changes);
            let fits = |part: &&[Change]| {
                part.len() <= most && part.iter().map(size).sum::<usize>() <= BYTES_AT_ONCE
            };
            assert!(parts.iter().all(fits));
        }
    }
}
