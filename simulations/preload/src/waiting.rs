//! Before a program sleeps in `poll`, a short look at the rings of its descriptors: an answer is often there sooner than a
//! sleeping thread is woken, which costs some ten microseconds on each side. Whatever is seen, the C library's `poll` gives the
//! result: its descriptors are true by themselves.
//!
//! Cost: a `poll` that finds nothing keeps its processor busy for as long as [`Patience`] says, where no other thread wants it;
//! one without a descriptor of ours does not.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rsm_preload_protocol::ENV_LOOK;
use rsm_preload_protocol::patience::{Patience, pass};

use crate::descriptors::{self, Session};

/// What all threads' looks were good for.
static PATIENCE: AtomicU32 = AtomicU32::new(0);
/// Looks from one look at the clock to the next.
const LOOKS: u32 = 64;

/// Looks for a moment, no longer than `limit`, whether a packet comes for one of these descriptors. True means that the
/// descriptor is readable, now or as soon as the emulator has made its next system call.
pub fn something_comes(descriptors: impl Iterator<Item = RawFd>, limit: Duration) -> bool {
    if !is_worth_it() {
        return false;
    }
    let sessions: Vec<Arc<Session>> = descriptors.filter_map(descriptors::get).collect();
    let rings = || sessions.iter().filter_map(|session| session.rings.as_ref());
    if rings().next().is_none() {
        return false;
    }
    let mut patience = Patience(PATIENCE.load(Ordering::Relaxed));
    let limit = limit.min(patience.limit());
    let (start, mut longest) = (Instant::now(), Duration::ZERO);
    let seen = loop {
        if (0..LOOKS).any(|_| {
            std::hint::spin_loop();
            rings().any(|rings| rings.to_program().flag())
        }) {
            break true;
        }
        if start.elapsed() >= limit {
            break false;
        }
        longest = longest.max(pass());
    };
    patience = patience.after(seen).after_pass(longest);
    PATIENCE.store(patience.0, Ordering::Relaxed);
    seen
}

/// With one processor the emulator cannot run while we look; and whoever starts the program may forbid it.
fn is_worth_it() -> bool {
    static WORTH: OnceLock<bool> = OnceLock::new();
    *WORTH.get_or_init(|| {
        let forbidden = std::env::var_os(ENV_LOOK).is_some_and(|value| value == "0");
        !forbidden && std::thread::available_parallelism().is_ok_and(|processors| processors.get() > 1)
    })
}

#[cfg(test)]
mod tests {
    use rsm_preload_protocol::ring::Rings;

    use super::*;

    #[test]
    fn a_packet_is_seen_and_without_one_or_without_rings_the_look_ends() {
        let (rings, file) = Rings::create().unwrap();
        let there = Rings::open(&file).unwrap();
        let (ringed, plain, unknown) = (60_020, 60_021, 60_022);
        descriptors::insert(ringed, Arc::new(Session { rings: Some(there), ..Session::default() }));
        descriptors::insert(plain, Arc::default());
        let second = Duration::from_secs(1);
        assert!(!something_comes([plain, unknown].into_iter(), second));
        assert!(!something_comes([ringed, unknown].into_iter(), second), "a look is short");
        assert!(rings.to_program().push(b"packet", false));
        assert!(!something_comes([ringed].into_iter(), Duration::ZERO), "not announced");
        rings.to_program().set_flag(true);
        assert_eq!(something_comes([plain, ringed].into_iter(), Duration::ZERO), is_worth_it());
        descriptors::remove(ringed);
        descriptors::remove(plain);
    }
}
