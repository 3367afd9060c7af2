//! How long to look again before sleeping. A thread that looks sees what comes at once, where waking it costs ten microseconds
//! on each side, and a hundred where its processor has gone to sleep too, as those of virtual machines do. But where the other
//! side has no processor to run on, looking only takes its time away: so whoever looks gives its processor to any thread that
//! waits for one ([`pass`]), and looks no more for a while where that thread then keeps it.

use std::time::{Duration, Instant};

/// How long is looked where that was of use the last time.
const FULL: Duration = Duration::from_micros(200);
/// How long where it was not, several times.
const LEAST: Duration = Duration::from_micros(2);
/// Once in so many vain looks a full one: times may have changed.
const PROBE: u32 = 16;
/// The same where the processor was given away and did not come back in time.
const CROWDED_PROBE: u32 = 512;
/// Counts from here on are of those.
const CROWDED: u32 = 1 << 31;
/// Whoever gets the processor back after this long shares it with work that has nothing to do with the other side.
const LONG: Duration = Duration::from_millis(1);

/// Lets a thread run that waits for this processor; how long that took.
pub fn pass() -> Duration {
    let start = Instant::now();
    std::thread::yield_now();
    start.elapsed()
}

/// Learns from what looking was good for. The value is the number of vain looks since the last good one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Patience(pub u32);

impl Patience {
    /// How long to look now.
    pub fn limit(self) -> Duration {
        let (vain, probe) =
            if self.0 < CROWDED { (self.0, PROBE) } else { (self.0 - CROWDED, CROWDED_PROBE) };
        if vain.is_multiple_of(probe) {
            return FULL;
        }
        FULL.checked_div(1 << self.0.min(PROBE)).map_or(LEAST, |limit| limit.max(LEAST))
    }

    /// What is known after a look that saw something, or that did not.
    #[must_use]
    pub const fn after(self, seen: bool) -> Self {
        if seen { Self(0) } else { Self(self.0.wrapping_add(1)) }
    }

    /// What is known after a look in which a [`pass`] took so long.
    #[must_use]
    pub fn after_pass(self, took: Duration) -> Self {
        if took < LONG { self } else { Self(CROWDED + 1) }
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

    /// Beside other work a full look is rare, until one is of use and gets its processor back at once.
    #[test]
    fn a_processor_that_others_keep_is_left_to_them() {
        let mut patience = Patience::default().after_pass(LONG / 2);
        assert_eq!(patience, Patience::default());
        patience = patience.after_pass(LONG);
        let full = (0..4 * CROWDED_PROBE).filter(|_| {
            let full = patience.limit() == FULL;
            patience = patience.after(false);
            full
        });
        assert_eq!(full.count(), 4);
        assert_eq!(patience.after(true).limit(), FULL);
    }
}
