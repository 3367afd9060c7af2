//! Ports that have a link and nobody who answers behind it: asked again with growing pauses (B05).

use std::collections::BTreeMap;
use std::time::Duration;

use mad::types::{Guid, PortNum, Timestamp};

use crate::observed::Observed;

const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

#[derive(Debug, Clone, Copy)]
struct Watched {
    pause: Duration,
    due: Timestamp,
}

/// The watched ports.
#[derive(Debug, Default)]
pub(super) struct Watch {
    ports: BTreeMap<(Guid, PortNum), Watched>,
}

impl Watch {
    /// Takes over who dangles now. `asked` were asked just now, in vain if they still dangle. Says whether there is one
    /// that did not before.
    pub(super) fn update(&mut self, observed: &Observed, asked: &[(Guid, PortNum)], now: Timestamp) -> bool {
        let mut any_new = false;
        let mut next = BTreeMap::new();
        for end in observed.dangling() {
            let place = (observed.fabric.node(end.node).guid, end.port);
            let watched = match self.ports.get(&place) {
                Some(old) if asked.contains(&place) => {
                    let pause = (old.pause * 2).min(LONGEST_PAUSE);
                    Watched { pause, due: now + pause }
                }
                Some(old) => *old,
                None => {
                    any_new = true;
                    Watched { pause: FIRST_PAUSE, due: now + FIRST_PAUSE }
                }
            };
            next.insert(place, watched);
        }
        self.ports = next;
        any_new
    }

    /// The ports that are due.
    pub(super) fn due(&self, now: Timestamp) -> Vec<(Guid, PortNum)> {
        self.ports.iter().filter(|(_, w)| w.due <= now).map(|(place, _)| *place).collect()
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<(Guid, PortNum)> {
        self.ports.keys().copied().collect()
    }

    /// When the next one is due.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.ports.values().map(|w| w.due).min()
    }
}
