//! MTU and static rate codes of PathRecord, MCMemberRecord and PortInfo (specification volume 1, 15.2.5.16).

use std::cmp::Ordering;
use std::fmt;

use super::{LinkSpeed, LinkWidth};

/// An MTU; ordered by size. The wire carries 1 to 5.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Mtu {
    /// 256 bytes.
    M256,
    /// 512 bytes.
    M512,
    /// 1024 bytes.
    M1024,
    /// 2048 bytes.
    M2048,
    /// 4096 bytes.
    M4096,
}

impl Mtu {
    /// All, smallest first.
    pub const ALL: [Self; 5] = [Self::M256, Self::M512, Self::M1024, Self::M2048, Self::M4096];

    /// From the wire's code; `None` for 0 and for 6 and above.
    pub const fn from_wire(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::M256),
            2 => Some(Self::M512),
            3 => Some(Self::M1024),
            4 => Some(Self::M2048),
            5 => Some(Self::M4096),
            _ => None,
        }
    }

    /// The wire's code.
    pub const fn to_wire(self) -> u8 {
        match self {
            Self::M256 => 1,
            Self::M512 => 2,
            Self::M1024 => 3,
            Self::M2048 => 4,
            Self::M4096 => 5,
        }
    }

    /// Bytes.
    pub const fn bytes(self) -> u32 {
        128 << self.to_wire()
    }
}

impl fmt::Display for Mtu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.bytes())
    }
}

/// A static rate. Ordered by bits per second, not by code: the codes are not in order of speed (B35).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rate(u8);

/// (code, gigabits per second ×10), the specification's table with the extensions up to XDR.
const RATES: [(u8, u32); 25] = [
    (2, 25),
    (3, 100),
    (4, 300),
    (5, 50),
    (6, 200),
    (7, 400),
    (8, 600),
    (9, 800),
    (10, 1200),
    (11, 140),
    (12, 560),
    (13, 1120),
    (14, 1680),
    (15, 250),
    (16, 1000),
    (17, 2000),
    (18, 3000),
    (19, 280),
    (20, 500),
    (21, 4000),
    (22, 6000),
    (23, 8000),
    (24, 12000),
    (25, 16000),
    (26, 24000),
];

impl Rate {
    /// From the wire's code; `None` for a code that is not in the table.
    pub fn from_wire(code: u8) -> Option<Self> {
        RATES.iter().any(|(c, _)| *c == code).then_some(Self(code))
    }

    /// The wire's code.
    pub const fn to_wire(self) -> u8 {
        self.0
    }

    /// Tenths of a gigabit per second.
    pub fn decigbps(self) -> u32 {
        RATES.iter().find(|(c, _)| *c == self.0).map_or(0, |(_, r)| *r)
    }

    /// The rate of a link.
    pub const fn of_link(width: LinkWidth, speed: LinkSpeed) -> Self {
        use {LinkSpeed as S, LinkWidth as W};
        Self(match (speed, width) {
            (S::Sdr, W::X1) => 2,
            (S::Sdr, W::X2) | (S::Ddr, W::X1) => 5,
            (S::Sdr, W::X4) | (S::Ddr, W::X2) | (S::Qdr | S::Fdr10, W::X1) => 3,
            (S::Sdr, W::X8) | (S::Ddr, W::X4) | (S::Qdr | S::Fdr10, W::X2) => 6,
            (S::Sdr, W::X12) => 4,
            (S::Ddr, W::X8) | (S::Qdr | S::Fdr10, W::X4) => 7,
            (S::Ddr, W::X12) => 8,
            (S::Qdr | S::Fdr10, W::X8) => 9,
            (S::Qdr | S::Fdr10, W::X12) => 10,
            (S::Fdr, W::X1) => 11,
            (S::Fdr, W::X2) => 19,
            (S::Fdr, W::X4) => 12,
            (S::Fdr, W::X8) => 13,
            (S::Fdr, W::X12) => 14,
            (S::Edr, W::X1) => 15,
            (S::Edr, W::X2) | (S::Hdr, W::X1) => 20,
            (S::Edr, W::X4) | (S::Hdr, W::X2) | (S::Ndr, W::X1) => 16,
            (S::Edr, W::X8) | (S::Hdr, W::X4) | (S::Ndr, W::X2) | (S::Xdr, W::X1) => 17,
            (S::Edr, W::X12) => 18,
            (S::Hdr, W::X8) | (S::Ndr, W::X4) | (S::Xdr, W::X2) => 21,
            (S::Hdr, W::X12) => 22,
            (S::Ndr, W::X8) | (S::Xdr, W::X4) => 23,
            (S::Ndr, W::X12) => 24,
            (S::Xdr, W::X8) => 25,
            (S::Xdr, W::X12) => 26,
        })
    }
}

impl PartialOrd for Rate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.decigbps().cmp(&other.decigbps()).then(self.0.cmp(&other.0))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let r = self.decigbps();
        if r.is_multiple_of(10) {
            write!(f, "{} Gb/s", r / 10)
        } else {
            write!(f, "{}.{} Gb/s", r / 10, r % 10)
        }
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rate({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B35: 5 Gb/s has a larger code than 30, 20 than 40's neighbours, 14 than 120.
    #[test]
    fn b35_rates_order_by_bits_per_second_and_unknown_codes_are_refused() {
        let mut all: Vec<_> = (0..=255).filter_map(Rate::from_wire).collect();
        assert_eq!(all.len(), RATES.len());
        all.sort();
        assert!(all.windows(2).all(|w| w[0].decigbps() < w[1].decigbps()));
        for code in [0, 1, 27, 63, 255] {
            assert_eq!(Rate::from_wire(code), None);
        }
    }

    #[test]
    fn every_link_has_a_rate_within_a_tenth_of_its_speed() {
        for speed in LinkSpeed::ALL {
            for width in [LinkWidth::X1, LinkWidth::X2, LinkWidth::X4, LinkWidth::X8, LinkWidth::X12] {
                let link = speed.lane_mbps() * width.lanes();
                let rate = Rate::of_link(width, speed).decigbps() * 100;
                assert!(rate.abs_diff(link) * 10 <= link, "{speed} {width}: {rate} for {link}");
            }
        }
    }
}
