//! How many ports are told to register anew in one go: as many as configured while the SA keeps up, fewer while it doesn't, none
//! while those told before wait for long (B72).
//!
//! A port that is told asks for several things at once, and asks again after a second where it gets no answer: telling others
//! then makes the backlog longer and not the registrations more. Pure. Cost: O(1).

use std::time::Duration;

/// A backlog no older than this is answered as it comes: clients notice nothing.
const FRESH: Duration = Duration::from_millis(50);
/// Doublings of that age after which nobody is told: 400 ms, well below the second after which kernels ask again.
const DOUBLINGS: u32 = 3;

/// Requests that wait for the SA's answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SaBacklog {
    /// How many; acknowledgements that wait to be written are among them.
    pub queued: usize,
    /// For how long there has been at least one at all times.
    pub busy: Duration,
}

/// How many are told now, of `most` that the configuration allows: half of it with each doubling of the backlog's age. A
/// backlog shorter than what `most` ports ask in one go (`queued` below it) holds nobody up.
pub(super) fn batch(most: usize, backlog: SaBacklog) -> usize {
    if backlog.queued < most.max(1) || backlog.busy <= FRESH {
        return most;
    }
    let doublings = (backlog.busy.as_nanos() / FRESH.as_nanos()).ilog2().max(1);
    if doublings >= DOUBLINGS { 0 } else { most >> doublings }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(queued: usize, ms: u64) -> usize {
        batch(40, SaBacklog { queued, busy: Duration::from_millis(ms) })
    }

    #[test]
    fn an_sa_that_keeps_up_is_told_the_full_pace() {
        assert_eq!(batch(40, SaBacklog::default()), 40);
        assert_eq!(after(0, 60_000), 40, "nothing waits, however long ago it was counted");
        assert_eq!(after(10_000, 50), 40, "much, but young");
        assert_eq!(after(39, 10_000), 40, "old, but fewer than one go brings");
        assert_eq!(batch(0, SaBacklog::default()), 0);
    }

    #[test]
    fn b72_the_older_the_backlog_the_fewer_are_told_and_in_the_end_nobody() {
        let ages = [51, 99, 100, 199, 200, 399, 400, 5_000];
        assert_eq!(ages.map(|ms| after(500, ms)), [20, 20, 20, 20, 10, 10, 0, 0]);
        assert_eq!(after(0, 5_000), 40, "on again at once when it is empty");
        assert_eq!(batch(1, SaBacklog { queued: 1, busy: Duration::from_secs(1) }), 0);
        assert_eq!(batch(usize::MAX, SaBacklog { queued: usize::MAX, busy: Duration::MAX }), 0);
    }
}
