//! B18 and B48: what was written is there after any end; files that can't be used are set aside.

mod crash;
mod files;
mod journal;

use mad::types::{Guid, Lid};

use super::*;
use crate::plan::lids::LidRange;

fn range(lid: u16, lmc: u8) -> LidRange {
    LidRange::new(Lid::new(lid).unwrap(), lmc).unwrap()
}

/// Sets entry `id` to some bytes.
fn set(id: u8, value: &[u8]) -> Change {
    Change { key: Key::new(Kind::Lids, vec![id]), value: Some(value.to_vec()) }
}

fn lids_of(entries: &Entries) -> LidMemory {
    typed::lids(entries, &mut Vec::new())
}
