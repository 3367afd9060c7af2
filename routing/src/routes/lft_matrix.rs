//! The linear forwarding tables of all switches, kept so that tables made from others cost only what differs.
//!
//! A row is cut into pieces of [`PIECE`] entries. Rows and pieces are shared between tables until they are written: a clone
//! costs a pointer for each switch, a changed entry a copy of its piece, and what is shared is known to be equal without
//! being compared. One lost cable changes few entries of many rows; whole rows copied for them would be most of its cost.

use std::ops::{Index, IndexMut, Range};
use std::sync::Arc;

use rayon::prelude::*;
use serde::{Serialize, Serializer};

use super::NO_PORT;
use crate::fabric::SwitchIndex;

/// Entries of one LinearForwardingTable block, the unit that one MAD carries.
pub const LFT_BLOCK: usize = 64;

/// Entries that are shared or copied together: few enough to be copied for one of them, so many that counting who shares
/// them costs little.
const PIECE: usize = 32 * LFT_BLOCK;

type Piece = Arc<[u8; PIECE]>;

/// The linear forwarding tables of all switches, one byte for each (switch, LID), rows padded to whole blocks.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LftMatrix {
    stride: usize,
    /// What lies beyond the stride is [`NO_PORT`].
    rows: Vec<Arc<[Piece]>>,
}

impl LftMatrix {
    /// Tables for `switches` switches up to `top_lid`, all entries [`NO_PORT`].
    pub fn new(switches: usize, top_lid: u16) -> Self {
        Self::filled(switches, top_lid, NO_PORT)
    }

    /// The same with all entries `value`.
    pub fn filled(switches: usize, top_lid: u16, value: u8) -> Self {
        let stride = (usize::from(top_lid) / LFT_BLOCK + 1) * LFT_BLOCK;
        let whole: Piece = Arc::new([value; PIECE]);
        let mut row = vec![whole; stride.div_ceil(PIECE)];
        if let Some(last) = row.last_mut().filter(|_| value != NO_PORT && !stride.is_multiple_of(PIECE)) {
            Arc::make_mut(last)[stride % PIECE..].fill(NO_PORT);
        }
        Self { stride, rows: vec![row.into(); switches] }
    }

    /// Entries of a row: the top LID + 1, rounded up to whole blocks.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Number of rows.
    pub fn switch_count(&self) -> usize {
        self.rows.len()
    }

    /// A switch's table, indexed by LID.
    pub fn row(&self, switch: SwitchIndex) -> Row<'_> {
        Row { pieces: &self.rows[switch as usize], stride: self.stride }
    }

    /// A switch's table, to change single entries; pieces are copied first where they are shared.
    pub fn row_mut(&mut self, switch: SwitchIndex) -> RowMut<'_> {
        RowMut { pieces: &mut self.rows[switch as usize], stride: self.stride }
    }

    /// The exit port of `switch` for `lid`; [`NO_PORT`] beyond the table.
    pub fn port(&self, switch: SwitchIndex, lid: mad::types::Lid) -> u8 {
        self.row(switch).get(lid.index()).unwrap_or(NO_PORT)
    }

    /// Changes all rows in parallel: `change` is given each as a whole.
    pub fn par_rows_mut(&mut self, change: impl Fn(SwitchIndex, &mut [u8]) + Sync) {
        self.par_change_rows(|s, row| change(s, row.all()));
    }

    /// Changes rows in parallel; what is not asked for, or comes out as it was, stays shared.
    pub fn par_change_rows(&mut self, change: impl Fn(SwitchIndex, &mut Change<'_>) + Sync) {
        let stride = self.stride;
        self.rows.par_iter_mut().enumerate().for_each_init(Vec::new, |scratch, (s, pieces)| {
            let mut row = Change::new(Row { pieces, stride }, scratch);
            change(s as SwitchIndex, &mut row);
            if let Some(changed) = row.changed() {
                *pieces = changed;
            }
        });
    }

    /// Changes, in parallel, the rows of these tables together with those of others of as many switches.
    ///
    /// # Panics
    /// The others have another number of rows.
    pub fn par_rows_mut_with(
        &mut self,
        other: &mut Self,
        change: impl Fn(SwitchIndex, &mut [u8], &mut [u8]) + Sync,
    ) {
        assert_eq!(self.rows.len(), other.rows.len(), "tables of the same switches");
        let strides = (self.stride, other.stride);
        let rows = self.rows.par_iter_mut().zip(&mut other.rows).enumerate();
        rows.for_each_init(<(Vec<u8>, Vec<u8>)>::default, |scratch, (s, (mine, theirs))| {
            let mut row = Change::new(Row { pieces: mine, stride: strides.0 }, &mut scratch.0);
            let mut beside = Change::new(Row { pieces: theirs, stride: strides.1 }, &mut scratch.1);
            change(s as SwitchIndex, row.all(), beside.all());
            let changed = (row.changed(), beside.changed());
            if let Some(changed) = changed.0 {
                *mine = changed;
            }
            if let Some(changed) = changed.1 {
                *theirs = changed;
            }
        });
    }

    /// Enters columns: LIDs, each with an entry for every switch.
    pub fn enter(&mut self, columns: &[(u16, Vec<u8>)]) {
        /// As many rows together as a cache line holds of a column.
        const TOGETHER: usize = 64;
        let stride = self.stride;
        let chunks = self.rows.par_chunks_mut(TOGETHER).enumerate();
        chunks.for_each_init(Vec::new, |scratch, (number, rows)| {
            scratch.resize(TOGETHER, Vec::new());
            let mut changes: Vec<Change<'_>> = rows
                .iter()
                .zip(&mut *scratch)
                .map(|(pieces, scratch)| Change::new(Row { pieces, stride }, scratch))
                .collect();
            for (lid, column) in columns {
                for (change, port) in changes.iter_mut().zip(&column[TOGETHER * number..]) {
                    *change.entry(usize::from(*lid)) = *port;
                }
            }
            let changed: Vec<_> = changes.into_iter().map(Change::changed).collect();
            for (pieces, changed) in rows.iter_mut().zip(changed) {
                if let Some(changed) = changed {
                    *pieces = changed;
                }
            }
        });
    }

    /// Takes a row over from other tables of the same stride, without copying it.
    ///
    /// # Panics
    /// The strides differ.
    pub fn share_row(&mut self, switch: SwitchIndex, from: &Self, row: SwitchIndex) {
        assert_eq!(self.stride, from.stride, "rows of the same length");
        self.rows[switch as usize] = Arc::clone(&from.rows[row as usize]);
    }

    /// Shares with other tables what is equal, for those who compare them after.
    pub fn share_equal_rows(&mut self, other: &Self) {
        if self.stride != other.stride {
            return;
        }
        self.rows.par_iter_mut().zip(&other.rows).for_each(|(mine, theirs)| {
            if Arc::ptr_eq(mine, theirs) {
                return;
            }
            let equal = |(a, b): (&Piece, &Piece)| a == b;
            if mine.iter().zip(theirs.iter()).all(equal) {
                *mine = Arc::clone(theirs);
            } else if mine.iter().zip(theirs.iter()).any(|(a, b)| !Arc::ptr_eq(a, b) && a == b) {
                let pairs = mine.iter().zip(theirs.iter());
                *mine = pairs.map(|(a, b)| Arc::clone(if a == b { b } else { a })).collect();
            }
        });
    }

    /// Whether a row is the very one of other tables, so that nothing in it has to be compared.
    pub fn shares_row(&self, switch: SwitchIndex, other: &Self) -> bool {
        let rows = (self.rows.get(switch as usize), other.rows.get(switch as usize));
        matches!(rows, (Some(mine), Some(theirs)) if Arc::ptr_eq(mine, theirs))
    }

    /// The blocks of a row that differ from those of the same row of other tables of the same stride; none where the row is shared.
    pub fn differing_blocks(&self, switch: SwitchIndex, other: &Self) -> impl Iterator<Item = usize> {
        let shared = self.shares_row(switch, other);
        let rows = (self.row(switch), other.row(switch));
        let pieces = if shared { (&[][..], &[][..]) } else { (rows.0.pieces, rows.1.pieces) };
        let pairs = pieces.0.iter().zip(pieces.1).enumerate().filter(|(_, (mine, theirs))| mine != theirs);
        pairs.flat_map(|(piece, (mine, theirs))| {
            let blocks = mine.chunks(LFT_BLOCK).zip(theirs.chunks(LFT_BLOCK)).enumerate();
            let differing = blocks.filter(|(_, (a, b))| a != b);
            differing.map(move |(block, _)| piece * (PIECE / LFT_BLOCK) + block)
        })
    }
}

/// A switch's table, to read.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    pieces: &'a [Piece],
    stride: usize,
}

impl<'a> Row<'a> {
    /// A table without entries.
    pub const EMPTY: Row<'static> = Row { pieces: &[], stride: 0 };

    /// The entry for a LID; `None` beyond the table.
    pub fn get(self, lid: usize) -> Option<u8> {
        (lid < self.stride).then(|| self[lid])
    }

    /// Number of entries.
    pub const fn len(self) -> usize {
        self.stride
    }

    /// Whether there are none.
    pub const fn is_empty(self) -> bool {
        self.stride == 0
    }

    /// The entries, by LID.
    pub fn iter(self) -> impl Iterator<Item = &'a u8> + Clone {
        self.blocks().flatten()
    }

    /// The entries for some LIDs.
    ///
    /// # Panics
    /// When iterated beyond the table.
    pub fn part(self, lids: Range<usize>) -> impl ExactSizeIterator<Item = u8> + Clone {
        lids.map(move |lid| self[lid])
    }

    /// The blocks, as MADs carry them.
    pub fn blocks(self) -> impl Iterator<Item = &'a [u8; LFT_BLOCK]> + Clone {
        let blocks = self.pieces.iter().flat_map(|piece| piece.as_chunks::<LFT_BLOCK>().0);
        blocks.take(self.stride / LFT_BLOCK)
    }

    /// One of them; `None` beyond the table.
    pub fn block(self, block: usize) -> Option<&'a [u8; LFT_BLOCK]> {
        let first = block * LFT_BLOCK;
        (first < self.stride).then(|| &self.pieces[first / PIECE].as_chunks().0[first % PIECE / LFT_BLOCK])
    }

    /// Appends the entries to `entries`.
    fn append_to(self, entries: &mut Vec<u8>) {
        self.pieces.iter().for_each(|piece| entries.extend_from_slice(&piece[..]));
    }

    /// A copy of all entries.
    pub fn to_vec(self) -> Vec<u8> {
        let mut entries = Vec::with_capacity(self.pieces.len() * PIECE);
        self.append_to(&mut entries);
        entries.truncate(self.stride);
        entries
    }
}

impl Index<usize> for Row<'_> {
    type Output = u8;

    fn index(&self, lid: usize) -> &u8 {
        &self.pieces[lid / PIECE][lid % PIECE]
    }
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

/// A switch's table, to change.
#[derive(Debug)]
pub struct RowMut<'a> {
    pieces: &'a mut Arc<[Piece]>,
    stride: usize,
}

impl RowMut<'_> {
    /// Changes any number of entries.
    pub fn update(&mut self, change: impl FnOnce(&mut [u8])) {
        let mut scratch = Vec::new();
        let mut row = Change::new(Row { pieces: self.pieces, stride: self.stride }, &mut scratch);
        change(row.all());
        if let Some(changed) = row.changed() {
            *self.pieces = changed;
        }
    }
}

impl Index<usize> for RowMut<'_> {
    type Output = u8;

    fn index(&self, lid: usize) -> &u8 {
        &self.pieces[lid / PIECE][lid % PIECE]
    }
}

impl IndexMut<usize> for RowMut<'_> {
    fn index_mut(&mut self, lid: usize) -> &mut u8 {
        assert!(lid < self.stride, "LID {lid} is beyond the table, which ends with {}", self.stride);
        &mut Arc::make_mut(&mut Arc::make_mut(self.pieces)[lid / PIECE])[lid % PIECE]
    }
}

/// A row that is changed, piece by piece as it is asked for, in memory that goes from row to row.
#[derive(Debug)]
pub struct Change<'a> {
    row: Row<'a>,
    entries: &'a mut Vec<u8>,
    /// Which pieces are in `entries`, as bits; there are no more of them than LIDs allow.
    loaded: u32,
}

impl<'a> Change<'a> {
    fn new(row: Row<'a>, entries: &'a mut Vec<u8>) -> Self {
        Self { row, entries, loaded: 0 }
    }

    /// All entries.
    pub fn all(&mut self) -> &mut [u8] {
        if self.loaded == 0 {
            self.entries.clear();
            self.row.append_to(self.entries);
            self.loaded = u32::MAX;
        } else {
            self.load(0..self.row.stride);
        }
        &mut self.entries[..self.row.stride]
    }

    /// The whole row, of which only those entries count, and may be changed, that were asked for.
    pub fn with(&mut self, lids: Range<usize>) -> &mut [u8] {
        self.load(lids);
        &mut self.entries[..self.row.stride]
    }

    /// One entry.
    fn entry(&mut self, lid: usize) -> &mut u8 {
        if self.loaded >> (lid / PIECE) & 1 == 0 {
            self.load(lid..lid + 1);
        }
        &mut self.entries[lid]
    }

    fn load(&mut self, lids: Range<usize>) {
        let length = self.row.pieces.len() * PIECE;
        if self.entries.len() != length {
            self.entries.resize(length, NO_PORT);
        }
        for piece in lids.start / PIECE..lids.end.div_ceil(PIECE) {
            if self.loaded >> piece & 1 == 0 {
                self.entries[piece * PIECE..][..PIECE].copy_from_slice(&self.row.pieces[piece][..]);
                self.loaded |= 1 << piece;
            }
        }
    }

    /// The row as it is now; `None` where nothing differs.
    fn changed(self) -> Option<Arc<[Piece]>> {
        let Self { row, entries, loaded } = self;
        let new = |piece: usize| {
            let loaded = (loaded >> piece & 1 == 1).then(|| &entries[piece * PIECE..][..PIECE]);
            loaded.filter(|now| **now != row.pieces[piece][..])
        };
        (0..row.pieces.len()).any(|piece| new(piece).is_some()).then(|| {
            let pieces = row.pieces.iter().enumerate();
            pieces.map(|(number, old)| new(number).map_or_else(|| Arc::clone(old), piece_of)).collect()
        })
    }
}

fn piece_of(entries: &[u8]) -> Piece {
    // The slice is as long as a piece: the conversion keeps it where it is.
    Arc::<[u8]>::from(entries).try_into().unwrap_or_else(|_| Arc::new([NO_PORT; PIECE]))
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::fabric::testing::seeded;

    /// Tables of rows that are one another's neighbours, and tables that are changed, beside plain vectors.
    #[test]
    fn tables_hold_what_is_written_and_share_the_rest() {
        let mut random = seeded(3);
        for top in [0, 63, 64, 2047, 2048, 4095, 5000, 0xbfff] {
            let value = if top % 2 == 0 { NO_PORT } else { 7 };
            let mut tables = LftMatrix::filled(5, top, value);
            let stride = tables.stride();
            assert_eq!(stride, (usize::from(top) / 64 + 1) * 64);
            let mut plain = vec![vec![value; stride]; 5];
            for round in 0..20 {
                let before = tables.clone();
                let s = random.random_range(0..5_u32);
                let (lid, port) = (random.random_range(0..stride), random.random_range(1..40));
                match round % 4 {
                    0 => tables.row_mut(s)[lid] = port,
                    1 => tables.row_mut(s).update(|row| row[lid] = port),
                    2 => tables.par_change_rows(|at, row| {
                        if at == s {
                            row.with(lid..lid + 1)[lid] = port;
                        }
                    }),
                    _ => {
                        let column =
                            (0..5).map(|at| if at == s { port } else { plain[at as usize][lid] }).collect();
                        tables.enter(&[(lid as u16, column)]);
                    }
                }
                let differs = plain[s as usize][lid] != port;
                plain[s as usize][lid] = port;
                for at in 0..5 {
                    let row = tables.row(at);
                    assert!(row.iter().eq(&plain[at as usize]) && row.to_vec() == plain[at as usize]);
                    assert!(row.blocks().flatten().eq(&plain[at as usize]));
                    assert_eq!(
                        (row.get(stride), row.block(stride / 64), row.get(lid)),
                        (None, None, Some(plain[at as usize][lid]))
                    );
                    // A single entry is written without a look at what was there.
                    assert!(
                        at == s && round % 4 == 0 || tables.shares_row(at, &before) != (at == s && differs)
                    );
                }
                let blocks: Vec<usize> = tables.differing_blocks(s, &before).collect();
                assert_eq!(blocks, if differs { vec![lid / 64] } else { vec![] });
                let pieces = tables.rows[s as usize].iter().zip(before.rows[s as usize].iter());
                let copied = pieces.filter(|(a, b)| !Arc::ptr_eq(a, b)).count();
                assert!(copied <= 1, "a copy of one piece is enough for one entry");
            }
            let mut same = LftMatrix::new(5, top);
            same.par_rows_mut(|s, row| row.copy_from_slice(&plain[s as usize]));
            assert_eq!(same, tables, "whatever they were made from");
            same.share_equal_rows(&tables);
            assert!((0..5).all(|s| same.shares_row(s, &tables)));
        }
    }

    #[test]
    fn two_tables_are_changed_side_by_side() {
        let (mut a, mut b) = (LftMatrix::new(3, 100), LftMatrix::filled(3, 5000, 0));
        a.par_rows_mut_with(&mut b, |s, row, beside| {
            row[1] = s as u8;
            beside[4999] = 10 + s as u8;
        });
        for s in 0..3 {
            assert_eq!((a.row(s)[1], a.row(s)[2]), (s as u8, NO_PORT));
            assert_eq!((b.row(s)[4999], b.row(s)[4998]), (10 + s as u8, 0));
        }
    }

    #[test]
    #[should_panic(expected = "beyond the table")]
    fn an_entry_beyond_the_table_is_no_entry() {
        LftMatrix::new(1, 5).row_mut(0)[64] = 1;
    }
}
