//! How long to look again before sleeping. A thread that looks sees what comes at once, where waking it costs some ten
//! microseconds on each side; but where the other side has no processor to run on, looking only takes its time away.

use std::time::Duration;

/// How long is looked where that was of use the last time.
const FULL: Duration = Duration::from_micros(50);
/// How long where it was not, several times.
const LEAST: Duration = Duration::from_micros(2);
/// Once in so many vain looks a full one: times may have changed.
const PROBE: u32 = 16;

/// Learns from what looking was good for. The value is the number of vain looks since the last good one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Patience(pub u32);

impl Patience {
    /// How long to look now.
    pub fn limit(self) -> Duration {
        if self.0.is_multiple_of(PROBE) {
            return FULL;
        }
        FULL.checked_div(1 << self.0.min(PROBE)).map_or(LEAST, |limit| limit.max(LEAST))
    }

    /// What is known after a look that saw something, or that did not.
    #[must_use]
    pub const fn after(self, seen: bool) -> Self {
        if seen { Self(0) } else { Self(self.0.wrapping_add(1)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vain_looks_become_short_but_for_one_in_many() {
        let mut patience = Patience::default();
        assert_eq!(patience.limit(), FULL);
        let mut total = Duration::ZERO;
        for round in 1..=4 * PROBE {
            let before = patience.limit();
            patience = patience.after(false);
            let full = round.is_multiple_of(PROBE);
            assert!(if full { patience.limit() == FULL } else { patience.limit() < FULL });
            assert!(patience.limit() >= LEAST && (full || round % PROBE == 1 || patience.limit() <= before));
            total += patience.limit();
        }
        assert!(total < 4 * PROBE * FULL / 4, "{total:?}");
        assert_eq!(patience.after(true).limit(), FULL);
        assert_eq!(Patience(u32::MAX).after(false), Patience::default());
    }
}
