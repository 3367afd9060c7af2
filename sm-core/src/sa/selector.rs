//! Selectors: how a requester bounds an MTU, a rate or a packet lifetime (specification volume 1, 15.2.5.16).

use mad::types::{Mtu, Rate};
use mad::wire::Status;
use mad::wire::sa::Selector;

/// A bound as a PathRecord, MultiPathRecord or MCMemberRecord states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound<T> {
    /// More than this.
    Greater(T),
    /// Less than this.
    Less(T),
    /// Exactly this.
    Exactly(T),
    /// The best available (largest MTU and rate, smallest lifetime).
    Best,
}

impl<T: Copy> Bound<T> {
    /// From the selector and the value's code; the value of "best" is not looked at.
    ///
    /// # Errors
    /// REQ_INVALID for a code that `decode` doesn't know.
    pub(super) fn new(
        selector: Selector,
        code: u8,
        decode: impl Fn(u8) -> Option<T>,
    ) -> Result<Self, Status> {
        let value = || decode(code).ok_or(Status::SA_REQ_INVALID);
        match selector {
            Selector::GreaterThan => value().map(Self::Greater),
            Selector::LessThan => value().map(Self::Less),
            Selector::Exactly => value().map(Self::Exactly),
            Selector::Best => Ok(Self::Best),
        }
    }
}

impl Bound<Mtu> {
    /// The MTU that a path or port which can do `most` gives to this bound: a smaller one than it can do is fine.
    pub(super) fn mtu(self, most: Mtu) -> Option<Mtu> {
        match self {
            Self::Greater(than) => (most > than).then_some(most),
            Self::Less(than) if most < than => Some(most),
            Self::Less(than) => Mtu::ALL.into_iter().rev().find(|mtu| *mtu < than),
            Self::Exactly(mtu) => (most >= mtu).then_some(mtu),
            Self::Best => Some(most),
        }
    }

    /// Whether an MTU that is fixed already meets this bound.
    pub(super) fn allows_mtu(self, is: Mtu) -> bool {
        match self {
            Self::Greater(than) => is > than,
            Self::Less(than) => is < than,
            Self::Exactly(mtu) => is == mtu,
            Self::Best => true,
        }
    }
}

impl Bound<Rate> {
    /// The rate that a path which can do `most` gives to this bound, in order of bits per second, not of codes (B35). "Less
    /// than" is met by slowing down, "exactly" only by a path of that rate.
    pub(super) fn rate(self, most: Rate) -> Option<Rate> {
        match self {
            Self::Greater(than) => (most > than).then_some(most),
            Self::Less(than) if most < than => Some(most),
            Self::Less(than) => (0..64).filter_map(Rate::from_wire).filter(|rate| *rate < than).max(),
            Self::Exactly(rate) => (most == rate).then_some(rate),
            Self::Best => Some(most),
        }
    }

    /// The rate that a new group of a port which can do `most` gets: any that isn't higher may be chosen.
    pub(super) fn rate_at_most(self, most: Rate) -> Option<Rate> {
        match self {
            Self::Exactly(rate) => (most >= rate).then_some(rate),
            Self::Greater(_) | Self::Less(_) | Self::Best => self.rate(most),
        }
    }

    /// Whether a rate that is fixed already meets this bound.
    pub(super) fn allows_rate(self, is: Rate) -> bool {
        match self {
            Self::Greater(than) => is > than,
            Self::Less(than) => is < than,
            Self::Exactly(rate) => is == rate,
            Self::Best => true,
        }
    }
}

impl Bound<u8> {
    /// Whether a packet lifetime (exponent of two) meets this bound (B52).
    pub(super) const fn lifetime(self, is: u8) -> bool {
        match self {
            Self::Greater(than) => is > than,
            Self::Less(than) => is < than,
            Self::Exactly(lifetime) => is == lifetime,
            Self::Best => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B35: every pair of rates under every selector, against their bits per second.
    #[test]
    fn b35_selectors_compare_bits_per_second() {
        let all: Vec<Rate> = (0..=255).filter_map(Rate::from_wire).collect();
        for (most, asked) in all.iter().flat_map(|a| all.iter().map(move |b| (*a, *b))) {
            let (has, wants) = (most.decigbps(), asked.decigbps());
            assert_eq!(Bound::Greater(asked).rate(most), (has > wants).then_some(most));
            assert_eq!(Bound::Exactly(asked).rate(most), (has == wants).then_some(most));
            assert_eq!(Bound::Best.rate(most), Some(most));
            match Bound::Less(asked).rate(most) {
                Some(given) => {
                    assert!(given < asked && given <= most);
                    assert!(all.iter().all(|other| *other <= given || *other >= asked || *other > most));
                }
                None => assert_eq!(wants, 25, "only the slowest rate has none below"),
            }
        }
    }

    #[test]
    fn b35_unknown_codes_are_refused_except_where_they_are_not_read() {
        for code in [0, 1, 27, 63] {
            for selector in [Selector::GreaterThan, Selector::LessThan, Selector::Exactly] {
                assert_eq!(Bound::new(selector, code, Rate::from_wire), Err(Status::SA_REQ_INVALID));
            }
            assert_eq!(Bound::new(Selector::Best, code, Rate::from_wire), Ok(Bound::Best));
        }
    }

    #[test]
    fn mtus_may_be_lowered_never_raised() {
        assert_eq!(Bound::Exactly(Mtu::M1024).mtu(Mtu::M2048), Some(Mtu::M1024));
        assert_eq!(Bound::Exactly(Mtu::M4096).mtu(Mtu::M2048), None);
        assert_eq!(Bound::Less(Mtu::M2048).mtu(Mtu::M4096), Some(Mtu::M1024));
        assert_eq!(Bound::Less(Mtu::M256).mtu(Mtu::M4096), None);
        assert_eq!(Bound::Greater(Mtu::M2048).mtu(Mtu::M2048), None);
    }
}
