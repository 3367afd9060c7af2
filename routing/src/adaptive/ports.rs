//! A set of ports of one switch, as the 256-bit masks of adaptive-routing groups hold it.

use serde::{Serialize, Serializer};

/// The set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortSet([u64; 4]);

impl PortSet {
    /// Adds a port.
    pub fn insert(&mut self, port: u8) {
        self.0[usize::from(port) / 64] |= 1 << (port % 64);
    }

    /// Whether it is in the set.
    pub fn contains(&self, port: u8) -> bool {
        self.0[usize::from(port) / 64] >> (port % 64) & 1 == 1
    }

    /// Number of ports.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// Whether all its ports are in `other` too.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.0.iter().zip(other.0).all(|(mine, theirs)| mine & !theirs == 0)
    }

    /// The ports, in order.
    pub fn iter(&self) -> impl Iterator<Item = u8> + '_ {
        (0..=u8::MAX).filter(|port| self.contains(*port))
    }
}

impl FromIterator<u8> for PortSet {
    fn from_iter<I: IntoIterator<Item = u8>>(ports: I) -> Self {
        let mut set = Self::default();
        ports.into_iter().for_each(|port| set.insert(port));
        set
    }
}

impl Serialize for PortSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_up_to_the_last_are_held() {
        let set: PortSet = [3, 64, 255, 3].into_iter().collect();
        assert_eq!((set.len(), set.iter().collect::<Vec<_>>()), (3, vec![3, 64, 255]));
        assert!(set.contains(255) && !set.contains(254));
        let less: PortSet = [64, 255].into_iter().collect();
        assert!(less.is_subset(&set) && !set.is_subset(&less) && PortSet::default().is_empty());
        assert_eq!(serde_json::to_string(&less).unwrap(), "[64,255]");
    }
}
