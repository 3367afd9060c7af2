//! A set of port numbers of one switch, as a row of a multicast forwarding table holds it.

use std::fmt;
use std::ops::{BitAnd, BitOr};

/// Ports 0 to 255.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PortSet([u64; 4]);

impl PortSet {
    /// No port.
    pub const EMPTY: Self = Self([0; 4]);

    /// Whether no port is in the set.
    pub fn is_empty(self) -> bool {
        self == Self::EMPTY
    }

    /// Number of ports.
    pub fn len(self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether the port is in the set.
    pub const fn contains(self, port: u8) -> bool {
        self.0[port as usize / 64] >> (port % 64) & 1 == 1
    }

    /// Adds a port.
    pub const fn insert(&mut self, port: u8) {
        self.0[port as usize / 64] |= 1 << (port % 64);
    }

    /// The ports in order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..=255).filter(move |port| self.contains(*port))
    }

    /// The 16 ports from `16 * position` on, lowest port in the lowest bit: the PortMask of a table entry.
    pub const fn mask(self, position: u8) -> u16 {
        (self.0[position as usize / 4 % 4] >> (position % 4 * 16)) as u16
    }

    /// Sets those 16 ports.
    pub const fn set_mask(&mut self, position: u8, mask: u16) {
        let word = &mut self.0[position as usize / 4 % 4];
        *word = *word & !(0xffff << (position % 4 * 16)) | (mask as u64) << (position % 4 * 16);
    }
}

impl FromIterator<u8> for PortSet {
    fn from_iter<I: IntoIterator<Item = u8>>(ports: I) -> Self {
        let mut set = Self::EMPTY;
        ports.into_iter().for_each(|port| set.insert(port));
        set
    }
}

impl BitAnd for PortSet {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }
}

impl BitOr for PortSet {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }
}

impl fmt::Debug for PortSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B39: a port lands in the mask of its position, at all 16 positions.
    #[test]
    fn b39_masks_of_all_positions() {
        for port in 0..=255 {
            let set = PortSet::from_iter([port]);
            let mut back = PortSet::EMPTY;
            for position in 0..16 {
                let expected = if port / 16 == position { 1 << (port % 16) } else { 0 };
                assert_eq!(set.mask(position), expected, "port {port}, position {position}");
                back.set_mask(position, set.mask(position));
            }
            assert_eq!((back, set.len()), (set, 1));
        }
    }
}
