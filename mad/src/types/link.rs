//! Link width and speed. One decode for every place that shows or compares them (B77).
//!
//! Speed is spread over four PortInfo fields and one vendor attribute: LinkSpeed* (SDR, DDR, QDR), LinkSpeedExt*
//! (FDR, EDR, HDR, NDR), LinkSpeedExt2* (XDR), and Mellanox ExtendedPortInfo (FDR10).

use std::fmt;

use serde::{Deserialize, Serialize};

/// An active link width.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum LinkWidth {
    /// 1 lane.
    #[serde(rename = "1x")]
    X1,
    /// 2 lanes.
    #[serde(rename = "2x")]
    X2,
    /// 4 lanes.
    #[serde(rename = "4x")]
    X4,
    /// 8 lanes.
    #[serde(rename = "8x")]
    X8,
    /// 12 lanes.
    #[serde(rename = "12x")]
    X12,
}

impl LinkWidth {
    /// From PortInfo.LinkWidthActive (one bit set).
    pub const fn from_wire(raw: u8) -> Option<Self> {
        match raw {
            1 => Some(Self::X1),
            2 => Some(Self::X4),
            4 => Some(Self::X8),
            8 => Some(Self::X12),
            16 => Some(Self::X2),
            _ => None,
        }
    }

    /// PortInfo.LinkWidthActive.
    pub const fn to_wire(self) -> u8 {
        match self {
            Self::X1 => 1,
            Self::X4 => 2,
            Self::X8 => 4,
            Self::X12 => 8,
            Self::X2 => 16,
        }
    }

    /// Number of lanes.
    pub const fn lanes(self) -> u32 {
        match self {
            Self::X1 => 1,
            Self::X2 => 2,
            Self::X4 => 4,
            Self::X8 => 8,
            Self::X12 => 12,
        }
    }
}

impl fmt::Display for LinkWidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x", self.lanes())
    }
}

/// PortInfo.LinkWidthSupported or LinkWidthEnabled: a set of widths, as bits (1 = 1x, 2 = 4x, 4 = 8x, 8 = 12x,
/// 16 = 2x).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct LinkWidthSet(pub u8);

impl LinkWidthSet {
    /// The widest width in the set.
    pub fn widest(self) -> Option<LinkWidth> {
        [LinkWidth::X12, LinkWidth::X8, LinkWidth::X4, LinkWidth::X2, LinkWidth::X1]
            .into_iter()
            .find(|w| self.0 & w.to_wire() != 0)
    }
}

/// An active link speed, in order of bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum LinkSpeed {
    /// 2.5 Gb/s a lane.
    Sdr,
    /// 5 Gb/s a lane.
    Ddr,
    /// 10 Gb/s a lane.
    Qdr,
    /// 10.3125 Gb/s a lane (vendor).
    Fdr10,
    /// 14.0625 Gb/s a lane.
    Fdr,
    /// 25.78125 Gb/s a lane.
    Edr,
    /// 53.125 Gb/s a lane.
    Hdr,
    /// 106.25 Gb/s a lane.
    Ndr,
    /// 212.5 Gb/s a lane.
    Xdr,
}

impl LinkSpeed {
    /// All speeds, slowest first.
    pub const ALL: [Self; 9] =
        [Self::Sdr, Self::Ddr, Self::Qdr, Self::Fdr10, Self::Fdr, Self::Edr, Self::Hdr, Self::Ndr, Self::Xdr];

    /// The speed in force from PortInfo's three active fields and the vendor's FDR10 bit; `None` when no defined bit
    /// is set. `ext2` is LinkSpeedExtActive2, `ext` LinkSpeedExtActive, `base` LinkSpeedActive.
    pub const fn from_active(base: u8, ext: u8, ext2: u8, fdr10: bool) -> Option<Self> {
        match (ext2, ext, base) {
            (1, ..) => Some(Self::Xdr),
            (_, 8, _) => Some(Self::Ndr),
            (_, 4, _) => Some(Self::Hdr),
            (_, 2, _) => Some(Self::Edr),
            (_, 1, _) => Some(Self::Fdr),
            (_, 0, 4) => Some(if fdr10 { Self::Fdr10 } else { Self::Qdr }),
            (_, 0, 2) => Some(Self::Ddr),
            (_, 0, 1) => Some(Self::Sdr),
            _ => None,
        }
    }

    /// Megabits per second of one lane as the link is called (data rate class, not signalling rate).
    pub const fn lane_mbps(self) -> u32 {
        match self {
            Self::Sdr => 2_500,
            Self::Ddr => 5_000,
            Self::Qdr => 10_000,
            Self::Fdr10 => 10_312,
            Self::Fdr => 14_062,
            Self::Edr => 25_781,
            Self::Hdr => 53_125,
            Self::Ndr => 106_250,
            Self::Xdr => 212_500,
        }
    }

    /// The name in tools' output (`EDR`).
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sdr => "SDR",
            Self::Ddr => "DDR",
            Self::Qdr => "QDR",
            Self::Fdr10 => "FDR10",
            Self::Fdr => "FDR",
            Self::Edr => "EDR",
            Self::Hdr => "HDR",
            Self::Ndr => "NDR",
            Self::Xdr => "XDR",
        }
    }

    /// The speed with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.name().eq_ignore_ascii_case(name))
    }

    /// The bits (LinkSpeed*, LinkSpeedExt*, LinkSpeedExt2*) that say "this speed is active". An extended speed comes
    /// with QDR in the base field, as devices report it.
    pub const fn to_active(self) -> (u8, u8, u8) {
        match self {
            Self::Sdr => (1, 0, 0),
            Self::Ddr => (2, 0, 0),
            Self::Qdr | Self::Fdr10 => (4, 0, 0),
            Self::Fdr => (4, 1, 0),
            Self::Edr => (4, 2, 0),
            Self::Hdr => (4, 4, 0),
            Self::Ndr => (4, 8, 0),
            Self::Xdr => (4, 0, 1),
        }
    }
}

impl fmt::Display for LinkSpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of speeds, one bit for each of [`LinkSpeed::ALL`] in that order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct LinkSpeedSet(pub u16);

impl LinkSpeedSet {
    /// From the Supported (or Enabled) fields of PortInfo.
    pub const fn from_fields(base: u8, ext: u8, ext2: u8, fdr10: bool) -> Self {
        let mut bits = base as u16 & 7;
        if fdr10 {
            bits |= 1 << 3;
        }
        bits |= (ext as u16 & 0xf) << 4;
        bits |= (ext2 as u16 & 1) << 8;
        Self(bits)
    }

    /// Whether the set holds `speed`.
    pub fn contains(self, speed: LinkSpeed) -> bool {
        LinkSpeed::ALL.iter().position(|s| *s == speed).is_some_and(|bit| self.0 >> bit & 1 == 1)
    }

    /// The fastest speed in the set.
    pub fn fastest(self) -> Option<LinkSpeed> {
        LinkSpeed::ALL.into_iter().rev().find(|s| self.contains(*s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B77: extended speed wins over the QDR that stands beside it; FDR10 is not QDR and not FDR.
    #[test]
    fn b77_every_speed_survives_the_trip_through_the_port_info_fields() {
        for speed in LinkSpeed::ALL {
            let (base, ext, ext2) = speed.to_active();
            assert_eq!(LinkSpeed::from_active(base, ext, ext2, speed == LinkSpeed::Fdr10), Some(speed));
            assert_eq!(LinkSpeed::from_name(speed.name()), Some(speed));
        }
        assert_eq!(LinkSpeed::from_active(0, 0, 0, false), None);
        assert_eq!(LinkSpeedSet::from_fields(7, 0xf, 1, false).fastest(), Some(LinkSpeed::Xdr));
        assert_eq!(LinkSpeedSet::from_fields(7, 0, 0, true).fastest(), Some(LinkSpeed::Fdr10));
        assert_eq!(LinkSpeedSet::from_fields(0, 0, 0, false).fastest(), None);
    }

    #[test]
    fn widths_survive_the_wire() {
        for raw in 0..=255_u8 {
            if let Some(width) = LinkWidth::from_wire(raw) {
                assert_eq!(width.to_wire(), raw);
            }
        }
        assert_eq!(LinkWidthSet(0b1_0011).widest(), Some(LinkWidth::X4));
    }
}
