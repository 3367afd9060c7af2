//! A point in time as the sans-IO machines see it: handed in by the caller, never read from a clock.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// Nanoseconds since an arbitrary start: the daemon's start, or that of a simulation's virtual time. Sums stop at
/// [`Timestamp::MAX`] (584 years), differences at zero, so that no order of events can make them panic.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The start.
    pub const ZERO: Self = Self(0);
    /// Later than anything: "never".
    pub const MAX: Self = Self(u64::MAX);

    /// Whole nanoseconds since the start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// `duration` after the start.
    pub const fn from_start(duration: Duration) -> Self {
        Self(saturating_nanos(duration))
    }

    /// Time since `earlier`; zero when that lies in the future.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A duration in nanoseconds; 584 years and more are `u64::MAX`.
const fn saturating_nanos(duration: Duration) -> u64 {
    let nanos = duration.as_nanos();
    if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(saturating_nanos(duration)))
    }
}

impl AddAssign<Duration> for Timestamp {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub for Timestamp {
    type Output = Duration;

    /// As [`Timestamp::saturating_since`].
    fn sub(self, earlier: Self) -> Duration {
        self.saturating_since(earlier)
    }
}

impl fmt::Display for Timestamp {
    /// Seconds with six decimals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000_000, self.0 % 1_000_000_000 / 1000)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Timestamp({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_differences_stop_at_the_ends() {
        let one = Timestamp::from_start(Duration::from_micros(1_500_000));
        assert_eq!(one + Duration::from_millis(500), Timestamp(2_000_000_000));
        assert_eq!(Timestamp(2_000_000_000) - one, Duration::from_millis(500));
        assert_eq!(one - Timestamp(2_000_000_000), Duration::ZERO);
        assert_eq!(one + Duration::MAX, Timestamp::MAX);
        assert_eq!(one.to_string(), "1.500000");
    }
}
