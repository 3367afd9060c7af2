//! How many flows met which load.

use rustc_hash::FxHashMap;
use serde::Serialize;

/// Bins at most.
const BINS: u64 = 20;

/// Counts by load, in bins of one width, a power of two: the bins of a narrower histogram lie within those of a wider one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Histogram {
    /// Loads of a bin: bin i holds those from `i * width + 1` to `(i + 1) * width`.
    pub width: u64,
    /// Flows by bin, up to the last that is not empty.
    pub counts: Vec<u64>,
}

/// Loads below this are counted in an array.
const SMALL: usize = 256;

/// Counts by load, to be added to.
pub(super) struct Counter {
    small: Vec<u64>,
    large: FxHashMap<u64, u64>,
}

impl Counter {
    pub(super) fn new() -> Self {
        Self { small: vec![0; SMALL], large: FxHashMap::default() }
    }

    /// Adds `count` flows that met `load`.
    pub(super) fn add(&mut self, load: u64, count: u64) {
        match self.small.get_mut(load as usize) {
            Some(small) => *small += count,
            None => *self.large.entry(load).or_default() += count,
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.small.iter_mut().zip(&other.small).for_each(|(mine, theirs)| *mine += theirs);
        for (load, count) in &other.large {
            *self.large.entry(*load).or_default() += count;
        }
    }

    /// In at most [`BINS`] bins.
    pub(super) fn finish(&self) -> Histogram {
        let small = (0_u64..).zip(&self.small).filter(|(_, count)| **count > 0);
        let all = || small.clone().chain(self.large.iter().map(|(load, count)| (*load, count)));
        let most = all().map(|(load, _)| load).max().unwrap_or(0);
        let width = most.div_ceil(BINS).next_power_of_two();
        let mut counts = vec![0; most.div_ceil(width) as usize];
        for (load, count) in all().filter(|(load, _)| *load > 0) {
            counts[((load - 1) / width) as usize] += count;
        }
        Histogram { width, counts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_hold_whole_numbers_of_loads() {
        let mut counter = Counter::new();
        assert_eq!(counter.finish(), Histogram { width: 1, counts: vec![] });
        counter.add(1, 5);
        counter.add(3, 2);
        assert_eq!(counter.finish(), Histogram { width: 1, counts: vec![5, 0, 2] });
        let mut other = Counter::new();
        other.add(400, 1);
        counter.merge(&other);
        let histogram = counter.finish();
        assert_eq!((histogram.width, histogram.counts.len()), (32, 13));
        assert_eq!((histogram.counts[0], histogram.counts[12]), (7, 1));
    }
}
