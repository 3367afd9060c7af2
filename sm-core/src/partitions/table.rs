//! Where in a port's P_Key table each key stands. Queue pairs name keys by index, so a key stays where it is for as long as it
//! is wanted, index 0 above all, and places that become free are filled last (B53).
//!
//! Cost: O(keys · table).

use mad::types::PKey;

/// A P_Key table with all its keys placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The keys, every one at its index; 0 for an empty entry.
    pub keys: Vec<PKey>,
    /// Keys that the table has no room for.
    pub without_place: Vec<PKey>,
    /// What stood at index 0 and gave way to another key.
    pub displaced: Option<PKey>,
}

impl Table {
    /// Places `wanted` in a table of `capacity` entries that holds `held`. `first` goes to index 0 unless a key that is still
    /// wanted stands there.
    pub fn place(held: &[PKey], wanted: &[PKey], first: Option<PKey>, capacity: usize) -> Self {
        let mut keys = vec![PKey(0); capacity];
        let old = |index: usize| held.get(index).copied().unwrap_or(PKey(0));
        let mut open: Vec<PKey> = Vec::new();
        for key in wanted {
            if !open.contains(key) {
                open.push(*key);
            }
        }
        for (index, slot) in keys.iter_mut().enumerate() {
            if let Some(at) = open.iter().position(|key| *key == old(index)) {
                *slot = open.remove(at);
            }
        }
        if let (Some(slot), Some(key)) = (keys.first_mut(), first)
            && !slot.is_valid()
            && let Some(at) = open.iter().position(|open| *open == key)
        {
            *slot = open.remove(at);
        }
        // Another form of the same key keeps the place: limited becomes full where it stands.
        for (index, slot) in keys.iter_mut().enumerate() {
            let same = |key: &PKey| key.base() == old(index).base() && key.is_valid();
            if let Some(at) = open.iter().position(same).filter(|_| !slot.is_valid()) {
                *slot = open.remove(at);
            }
        }
        let mut line = open.into_iter();
        for freed in [false, true] {
            for (index, slot) in keys.iter_mut().enumerate() {
                let empty = !slot.is_valid() && (index != 0 || first.is_none());
                if empty && old(index).is_valid() == freed {
                    *slot = line.next().unwrap_or(PKey(0));
                }
            }
        }
        let displaced = keys.first().filter(|key| old(0).is_valid() && **key != old(0)).map(|_| old(0));
        Self { keys, without_place: line.collect(), displaced }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys(raw: &[u16]) -> Vec<PKey> {
        raw.iter().map(|key| PKey(*key)).collect()
    }

    #[test]
    fn b53_a_key_keeps_its_index() {
        let held = keys(&[0xffff, 0x8001, 0x8002, 0]);
        let table = Table::place(&held, &keys(&[0xffff, 0x8002, 0x8003]), Some(PKey(0xffff)), 4);
        assert_eq!(table.keys, keys(&[0xffff, 0, 0x8002, 0x8003]), "the freed place is filled last");
        let table = Table::place(&held, &keys(&[0xffff, 0x8001, 0x8002]), Some(PKey(0x8001)), 4);
        assert_eq!((table.keys[0], table.displaced), (PKey(0xffff), None), "index 0 stays");
        let table = Table::place(&held, &keys(&[0x8001, 0x8005, 0x8006]), Some(PKey(0x8005)), 4);
        assert_eq!(
            table.keys,
            keys(&[0x8005, 0x8001, 0x8006, 0])
                .iter()
                .copied()
                .enumerate()
                .map(|(i, k)| match i {
                    2 => PKey(0),
                    3 => PKey(0x8006),
                    _ => k,
                })
                .collect::<Vec<_>>()
        );
        assert_eq!(table.displaced, Some(PKey(0xffff)), "and who must give way is named");
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let table = Table::place(&[], &keys(&[0xffff, 0x8001, 0x8002]), Some(PKey(0xffff)), 2);
        assert_eq!((table.keys, table.without_place), (keys(&[0xffff, 0x8001]), keys(&[0x8002])));
    }

    proptest! {
        /// Every key has one place, or is named as having none; what stood right stands where it stood.
        #[test]
        fn every_key_is_placed_once(
            held in proptest::collection::vec(prop_oneof![Just(0_u16), 0x8000_u16..0x8010], 0..16),
            wanted in proptest::collection::btree_set(0x8001_u16..0x8010, 0..12),
            capacity in 1..16_usize,
        ) {
            let wanted: Vec<PKey> = wanted.into_iter().map(PKey).collect();
            let mut once: Vec<PKey> = held.iter().map(|key| PKey(*key)).collect();
            for at in 1..once.len() {
                if once[..at].contains(&once[at]) {
                    once[at] = PKey(0);
                }
            }
            let table = Table::place(&once, &wanted, wanted.first().copied(), capacity);
            let mut all: Vec<PKey> = table.keys.iter().copied().filter(|key| key.is_valid()).collect();
            for (index, key) in once.iter().take(capacity).enumerate() {
                if key.is_valid() && wanted.contains(key) {
                    prop_assert_eq!(table.keys[index], *key);
                }
            }
            all.extend(&table.without_place);
            all.sort();
            prop_assert_eq!(all, wanted);
        }
    }
}
