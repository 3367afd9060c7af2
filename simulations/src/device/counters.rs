//! What a port counts (specification volume 1, 16.1.3.5 and 16.1.4.11), and growth by script.

use mad::types::Timestamp;

/// A counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names are the specification's")]
#[repr(u8)]
pub enum Counter {
    SymbolErrorCounter,
    LinkErrorRecoveryCounter,
    LinkDownedCounter,
    PortRcvErrors,
    PortRcvRemotePhysicalErrors,
    PortRcvSwitchRelayErrors,
    PortXmitDiscards,
    PortXmitConstraintErrors,
    PortRcvConstraintErrors,
    LocalLinkIntegrityErrors,
    ExcessiveBufferOverrunErrors,
    Vl15Dropped,
    PortXmitData,
    PortRcvData,
    PortXmitPkts,
    PortRcvPkts,
    PortXmitWait,
    Qp1Dropped,
    PortUnicastXmitPkts,
    PortUnicastRcvPkts,
    PortMulticastXmitPkts,
    PortMulticastRcvPkts,
}

impl Counter {
    /// All, in the order of the bits of PortCounters.CounterSelect, then those of the others.
    pub const ALL: [Self; 22] = [
        Self::SymbolErrorCounter,
        Self::LinkErrorRecoveryCounter,
        Self::LinkDownedCounter,
        Self::PortRcvErrors,
        Self::PortRcvRemotePhysicalErrors,
        Self::PortRcvSwitchRelayErrors,
        Self::PortXmitDiscards,
        Self::PortXmitConstraintErrors,
        Self::PortRcvConstraintErrors,
        Self::LocalLinkIntegrityErrors,
        Self::ExcessiveBufferOverrunErrors,
        Self::Vl15Dropped,
        Self::PortXmitData,
        Self::PortRcvData,
        Self::PortXmitPkts,
        Self::PortRcvPkts,
        Self::PortXmitWait,
        Self::Qp1Dropped,
        Self::PortUnicastXmitPkts,
        Self::PortUnicastRcvPkts,
        Self::PortMulticastXmitPkts,
        Self::PortMulticastRcvPkts,
    ];

    /// The counter with this name of the specification, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|counter| format!("{counter:?}").eq_ignore_ascii_case(name))
    }

    /// The same for a name that somebody typed, with or without the attribute's name and a dot in front.
    ///
    /// # Errors
    /// There is none; those that there are.
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        let short = name.rsplit_once('.').map_or(name, |(_, name)| name);
        Self::from_name(short)
            .ok_or_else(|| format!("`{name}` is no counter: expected one of {:?}", Self::ALL))
    }

    /// The largest value that PortCounters can show; it stays there.
    pub(super) const fn limit(self) -> u64 {
        match self {
            Self::LinkErrorRecoveryCounter
            | Self::LinkDownedCounter
            | Self::PortXmitConstraintErrors
            | Self::PortRcvConstraintErrors => 0xff,
            Self::LocalLinkIntegrityErrors | Self::ExcessiveBufferOverrunErrors => 0xf,
            Self::PortXmitData
            | Self::PortRcvData
            | Self::PortXmitPkts
            | Self::PortRcvPkts
            | Self::PortXmitWait => 0xffff_ffff,
            _ => 0xffff,
        }
    }
}

/// A counter that grows by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// Which.
    pub counter: Counter,
    /// How much a second.
    pub per_second: f64,
    /// From when on it has not been added.
    pub since: Timestamp,
}

/// The counters of a port.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    values: [u64; Counter::ALL.len()],
    /// What grows by script.
    pub growth: Vec<Growth>,
}

impl Counters {
    /// A counter's value, without what grew by script since [`Counters::settle`].
    pub const fn get(&self, counter: Counter) -> u64 {
        self.values[counter as usize]
    }

    /// Sets a counter.
    pub const fn set(&mut self, counter: Counter, value: u64) {
        self.values[counter as usize] = value;
    }

    /// Adds to a counter.
    pub const fn add(&mut self, counter: Counter, amount: u64) {
        let slot = &mut self.values[counter as usize];
        *slot = slot.saturating_add(amount);
    }

    /// Counts a packet that left, of so many words of 4 bytes.
    pub(crate) const fn sent(&mut self, words: u32, multicast: bool) {
        self.add(Counter::PortXmitPkts, 1);
        let kind = if multicast { Counter::PortMulticastXmitPkts } else { Counter::PortUnicastXmitPkts };
        self.add(kind, 1);
        self.add(Counter::PortXmitData, words as u64);
    }

    /// Counts a packet that came in.
    pub(crate) const fn received(&mut self, words: u32, multicast: bool) {
        self.add(Counter::PortRcvPkts, 1);
        let kind = if multicast { Counter::PortMulticastRcvPkts } else { Counter::PortUnicastRcvPkts };
        self.add(kind, 1);
        self.add(Counter::PortRcvData, words as u64);
    }

    /// Lets a counter grow from `now` on; 0 a second ends it.
    pub fn grow(&mut self, counter: Counter, per_second: f64, now: Timestamp) {
        self.settle(now);
        self.growth.retain(|growth| growth.counter != counter);
        if per_second > 0.0 {
            self.growth.push(Growth { counter, per_second, since: now });
        }
    }

    /// Adds what has grown until `now`; parts of one are kept for later.
    pub fn settle(&mut self, now: Timestamp) {
        let mut growth = std::mem::take(&mut self.growth);
        for one in &mut growth {
            let whole = ((now - one.since).as_secs_f64() * one.per_second).floor();
            if whole >= 1.0 {
                self.add(one.counter, whole as u64);
                one.since += std::time::Duration::from_secs_f64(whole / one.per_second);
            }
        }
        self.growth = growth;
    }
}
