//! Component masks (specification volume 1, 15.4.4): which fields of a query's template a record must agree with.
//!
//! The components of a record are its fields in order, reserved ones included, and component n is selected by bit n of the
//! mask. So a table of names and widths says everything; [`components`] works out the rest at compile time.

use crate::wire::Attribute;

/// A field of a record that a component mask can select.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Component {
    /// The specification's name; empty for a reserved field.
    pub name: &'static str,
    /// Bit of the component mask.
    pub bit: u8,
    /// First bit in the record, counted from the most significant bit of byte 0.
    pub offset_bits: u16,
    /// Number of bits.
    pub width_bits: u16,
}

impl Component {
    /// The component's bit as a mask.
    pub const fn mask(&self) -> u64 {
        1 << self.bit
    }

    /// Whether the field is reserved: it never takes part in matching.
    pub const fn is_reserved(&self) -> bool {
        self.name.is_empty()
    }
}

/// A record type that the SA answers with.
pub trait Record: Attribute {
    /// The fields that a component mask can select, by bit.
    const COMPONENTS: &'static [Component];

    /// Bytes of a record in a table: its size rounded up to 8.
    const TABLE_LEN: usize = size_of::<Self>().next_multiple_of(8);

    /// AttributeOffset of a table of these records, in units of 8 bytes.
    const ATTRIBUTE_OFFSET: u16 = (Self::TABLE_LEN / 8) as u16;

    /// The component mask of these names, for queries; `None` when a name is not among them.
    fn component_mask(names: &[&str]) -> Option<u64> {
        names.iter().try_fold(0, |mask, name| {
            let component = Self::COMPONENTS.iter().find(|c| !c.is_reserved() && c.name == *name)?;
            Some(mask | component.mask())
        })
    }

    /// Whether this record agrees with the template in all selected components.
    fn matches(&self, template: &Self, mask: u64) -> bool {
        matches(self.as_bytes(), template.as_bytes(), mask, Self::COMPONENTS)
    }

    /// Appends the record as it lies in a table.
    fn push_to(&self, table: &mut Vec<u8>) {
        let end = table.len() + Self::TABLE_LEN;
        table.extend_from_slice(self.as_bytes());
        table.resize(end, 0);
    }
}

/// Lays out fields one after the other, from bit 0 of the record and of the mask. A reserved field has an empty name.
pub(super) const fn components<const N: usize>(fields: [(&'static str, u16); N]) -> [Component; N] {
    assert!(N <= 64, "a component mask has 64 bits");
    let mut laid = [Component { name: "", bit: 0, offset_bits: 0, width_bits: 0 }; N];
    let (mut n, mut offset) = (0, 0);
    while n < N {
        let (name, width) = fields[n];
        laid[n] = Component { name, bit: n as u8, offset_bits: offset, width_bits: width };
        offset += width;
        n += 1;
    }
    laid
}

/// Bits from the record's start to the end of its last component.
pub(super) const fn bits_of(components: &[Component]) -> usize {
    let last = components[components.len() - 1];
    last.offset_bits as usize + last.width_bits as usize
}

/// Whether a record agrees with a template in every component that the mask selects. Bits of the mask that belong to
/// reserved fields or to no component select nothing. A component that lies beyond the end of either never agrees.
/// Costs one pass over the selected components' bytes.
pub fn matches(record: &[u8], template: &[u8], mask: u64, components: &[Component]) -> bool {
    components
        .iter()
        .filter(|c| mask & c.mask() != 0 && !c.is_reserved())
        .all(|c| field_agrees(record, template, usize::from(c.offset_bits), usize::from(c.width_bits)))
}

/// The mask of all components that are not reserved.
pub fn all_components(components: &[Component]) -> u64 {
    components.iter().filter(|c| !c.is_reserved()).fold(0, |mask, c| mask | c.mask())
}

/// The bits of a mask that belong to no component (a requester of another version, or a broken one).
pub fn unknown_components(mask: u64, components: &[Component]) -> u64 {
    components.iter().fold(mask, |rest, c| rest & !c.mask())
}

fn field_agrees(record: &[u8], template: &[u8], start: usize, width: usize) -> bool {
    let end = start + width;
    let (first, last) = (start / 8, end.div_ceil(8));
    let (Some(a), Some(b)) = (record.get(first..last), template.get(first..last)) else { return false };
    // Bits of the first and the last byte that belong to neighbours don't count.
    let head = 0xff_u8 >> (start % 8);
    let tail = 0xff_u8 << (last * 8 - end);
    let count = last - first;
    a.iter().zip(b).enumerate().all(|(i, (a, b))| {
        let mut counted = 0xff;
        if i == 0 {
            counted &= head;
        }
        if i + 1 == count {
            counted &= tail;
        }
        (a ^ b) & counted == 0
    })
}

#[cfg(test)]
mod tests;
