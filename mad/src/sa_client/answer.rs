//! An answer, and the records in it.

use std::iter;

use crate::wire::Method;
use crate::wire::sa::{Record, SaMad};

/// What the SA answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The headers; the data of the first datagram.
    pub head: SaMad,
    /// The data: a record, or a table of them.
    pub data: Vec<u8>,
    in_segments: bool,
}

/// The records of a table don't lie as far apart as they are long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("AttributeOffset of {offset} bytes is less than a record's {record}")]
pub struct Malformed {
    /// AttributeOffset in bytes.
    pub offset: usize,
    /// Bytes of a record.
    pub record: usize,
}

impl Answer {
    /// An answer of one datagram.
    pub(super) fn single(mad: SaMad) -> Self {
        Self { head: mad, data: mad.data.to_vec(), in_segments: false }
    }

    /// An answer that came by RMPP.
    pub(super) const fn table(head: SaMad, data: Vec<u8>) -> Self {
        Self { head, data, in_segments: true }
    }

    /// Whether the answer came by RMPP, so that it is known to be whole.
    pub const fn came_in_segments(&self) -> bool {
        self.in_segments
    }

    /// Whether more records may exist than came: a table in a datagram of its own, as transports without RMPP cut it.
    pub fn may_be_cut(&self) -> bool {
        let tables = [Method::GET_TABLE, Method::GET_MULTI, Method::GET_TRACE_TABLE].map(Method::response);
        !self.in_segments && tables.contains(&self.head.header.method())
    }

    /// The records. A plain Get has one, whatever its AttributeOffset says (B44). Of a table that came without
    /// RMPP, nothing says the number of records: those that are all zero are left out.
    ///
    /// # Errors
    /// AttributeOffset is smaller than the record.
    pub fn records<R: Record>(&self) -> Result<Vec<R>, Malformed> {
        let is_table = self.in_segments || self.may_be_cut();
        if !is_table {
            return Ok(R::decode(&self.data).into_iter().collect());
        }
        let offset = usize::from(self.head.attribute_offset.get()) * 8;
        let mut rest = &self.data[..];
        let record = size_of::<R>();
        if offset < record {
            // An empty table has an offset of 0.
            let nothing = rest.iter().all(|b| *b == 0);
            return if nothing { Ok(Vec::new()) } else { Err(Malformed { offset, record }) };
        }
        let records = iter::from_fn(|| {
            let found = R::decode(rest)?;
            rest = rest.get(offset..).unwrap_or(&[]);
            Some(found)
        });
        Ok(records.filter(|r| self.in_segments || r.as_bytes().iter().any(|b| *b != 0)).collect())
    }
}
