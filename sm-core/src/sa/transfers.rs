//! Tables on their way to requesters, and what each of these may have under way: so that nobody who never acknowledges takes
//! the memory of all (B47).
//!
//! Small tables and large ones share the memory in halves. A requester has one large table at a time, of small ones a sixteenth
//! of the memory. Cost: O(1).

use std::collections::HashMap;

use mad::rmpp::TransferKey;

use super::server::ServerConfig;

/// The part of the memory from which on a table is large, and which the small ones of a requester have.
const PART: usize = 16;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Load {
    count: usize,
    small: usize,
    large: usize,
}

/// What is under way.
#[derive(Debug)]
pub(super) struct Transfers {
    by_key: HashMap<TransferKey, (u16, usize)>,
    of_requester: HashMap<u16, Load>,
    all: Load,
    most_bytes: usize,
    most_of_requester: usize,
}

impl Transfers {
    pub(super) fn new(config: &ServerConfig) -> Self {
        Self {
            by_key: HashMap::new(),
            of_requester: HashMap::new(),
            all: Load::default(),
            most_bytes: config.rmpp.max_bytes,
            most_of_requester: config.transfers_per_requester,
        }
    }

    /// Whether a requester may have one more table of so many bytes under way; one that is under way already, always.
    pub(super) fn has_room(&self, key: &TransferKey, requester: u16, bytes: usize) -> bool {
        let own = self.of_requester.get(&requester).copied().unwrap_or_default();
        let half = self.most_bytes / 2;
        self.by_key.contains_key(key)
            || own.count < self.most_of_requester
                && if self.is_large(bytes) {
                    own.large == 0 && self.all.large + bytes <= half
                } else {
                    own.small + bytes <= self.most_bytes / PART && self.all.small + bytes <= half
                }
    }

    pub(super) fn begin(&mut self, key: TransferKey, requester: u16, bytes: usize) {
        self.end(&key);
        self.by_key.insert(key, (requester, bytes));
        let large = self.is_large(bytes);
        for load in [self.of_requester.entry(requester).or_default(), &mut self.all] {
            load.count += 1;
            *if large { &mut load.large } else { &mut load.small } += bytes;
        }
    }

    pub(super) fn end(&mut self, key: &TransferKey) {
        let Some((requester, bytes)) = self.by_key.remove(key) else { return };
        let large = self.is_large(bytes);
        let own = self.of_requester.entry(requester).or_default();
        for load in [&mut *own, &mut self.all] {
            load.count -= 1;
            *if large { &mut load.large } else { &mut load.small } -= bytes;
        }
        if own.count == 0 {
            self.of_requester.remove(&requester);
        }
    }

    const fn is_large(&self, bytes: usize) -> bool {
        bytes > self.most_bytes / PART
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.by_key.is_empty() && self.of_requester.is_empty() && self.all == Load::default()
    }
}

#[cfg(test)]
mod tests {
    use mad::transport::Address;
    use mad::types::ServiceLevel;
    use mad::wire::Method;
    use mad::wire::sa::SaMad;

    use super::*;

    fn key(tid: u64) -> TransferKey {
        let mut mad = SaMad::request(Method::GET_TABLE, 0x35, 0);
        mad.header.transaction_id.set(tid);
        TransferKey::of_received(&Address::gsi(1, ServiceLevel(0)), &mad.into_mad())
    }

    #[test]
    fn b47_nobody_takes_the_memory_of_all() {
        let mut config = ServerConfig { transfers_per_requester: 100, ..ServerConfig::default() };
        config.rmpp.max_bytes = 1600;
        let mut transfers = Transfers::new(&config);
        let mut ask = |tid, requester, bytes| {
            let room = transfers.has_room(&key(tid), requester, bytes);
            if room {
                transfers.begin(key(tid), requester, bytes);
            }
            room
        };
        assert!(ask(1, 7, 500), "one large table");
        assert!(!ask(2, 7, 101) && !ask(3, 8, 301) && ask(4, 8, 300), "large ones have half, each one");
        assert!(ask(5, 7, 60) && ask(6, 7, 40) && !ask(7, 7, 1), "and a sixteenth in small ones");
        assert!(ask(6, 7, 40), "again the same");
        let granted = (9..50).filter(|requester| ask(100 + u64::from(*requester), *requester, 100)).count();
        assert_eq!(granted, 7, "the other half");
        for tid in 0..200 {
            transfers.end(&key(tid));
        }
        assert!(transfers.is_empty());
    }
}
