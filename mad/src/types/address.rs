//! Identifiers and addresses: GUID, GID, LID, P_Key, port number and their like (specification volume 1, 4.1).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// What was wrong with a value given as text or number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} `{given}`: expected {expected}")]
pub struct TypeError {
    /// What was being read (`GUID`, `LID`, …).
    pub what: &'static str,
    /// The text or number as it was given.
    pub given: String,
    /// What is allowed.
    pub expected: &'static str,
}

/// Parses `0x` hexadecimal or decimal; `None` for anything else, signs and blanks included.
fn parse_number(text: &str) -> Option<u64> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None => (text, 10),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

/// A 64-bit globally unique identifier of a node, port or system. Zero means "none".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Guid(pub u64);

impl Guid {
    /// The value that stands for "no GUID".
    pub const NONE: Self = Self(0);

    /// Whether this is a real GUID (not zero).
    pub const fn is_some(self) -> bool {
        self.0 != 0
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:016x}", self.0)
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Guid {
    type Err = TypeError;

    /// Reads hexadecimal with or without `0x`, and the form with colons or blanks that sysfs prints
    /// (`0002:c903:0012:ab01`).
    fn from_str(text: &str) -> Result<Self, TypeError> {
        let error =
            || TypeError { what: "GUID", given: text.into(), expected: "up to 16 hexadecimal digits" };
        let digits: String = text.trim().chars().filter(|c| *c != ':').collect();
        let digits = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")).unwrap_or(&digits);
        if digits.is_empty() || digits.len() > 16 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(error());
        }
        u64::from_str_radix(digits, 16).map(Self).map_err(|_| error())
    }
}

impl Serialize for Guid {
    /// As text: readers of JSON that use doubles round integers above 2^53.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Guid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

/// A 128-bit global identifier: subnet prefix (or multicast header) and interface identifier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Gid(pub u128);

impl Gid {
    /// The subnet prefix of a fabric that was given none (fe80::/64).
    pub const DEFAULT_PREFIX: u64 = 0xfe80_0000_0000_0000;

    /// Joins a subnet prefix and a port GUID.
    pub const fn new(prefix: u64, guid: Guid) -> Self {
        Self(((prefix as u128) << 64) | guid.0 as u128)
    }

    /// The upper 64 bits.
    pub const fn prefix(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// The lower 64 bits: the port GUID of a unicast GID.
    pub const fn guid(self) -> Guid {
        Guid(self.0 as u64)
    }

    /// Whether this is a multicast GID (first byte 0xff).
    pub const fn is_multicast(self) -> bool {
        (self.0 >> 120) == 0xff
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", std::net::Ipv6Addr::from(self.0))
    }
}

impl fmt::Debug for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Gid {
    type Err = TypeError;

    fn from_str(text: &str) -> Result<Self, TypeError> {
        text.parse::<std::net::Ipv6Addr>().map(|a| Self(a.into())).map_err(|_| TypeError {
            what: "GID",
            given: text.into(),
            expected: "an IPv6 address such as fe80::2:c903:12:ab01",
        })
    }
}

/// A unicast local identifier: 0x0001 to 0xBFFF.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Lid(u16);

impl Lid {
    /// The smallest unicast LID.
    pub const MIN: Self = Self(1);
    /// The largest unicast LID.
    pub const MAX: Self = Self(0xbfff);
    /// The permissive LID (0xFFFF) that directed-route SMPs carry where no LID is known.
    pub const PERMISSIVE: u16 = 0xffff;

    /// A unicast LID, or `None` outside 0x0001–0xBFFF ("none", multicast or permissive on the wire).
    pub const fn new(raw: u16) -> Option<Self> {
        if raw >= 1 && raw <= 0xbfff { Some(Self(raw)) } else { None }
    }

    /// The number itself.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// The number as an index into a table with an entry for every LID.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Lid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for Lid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lid({})", self.0)
    }
}

impl FromStr for Lid {
    type Err = TypeError;

    fn from_str(text: &str) -> Result<Self, TypeError> {
        parse_number(text).and_then(|n| u16::try_from(n).ok()).and_then(Self::new).ok_or_else(|| TypeError {
            what: "LID",
            given: text.into(),
            expected: "1 to 49151 (0x1 to 0xbfff)",
        })
    }
}

impl<'de> Deserialize<'de> for Lid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = u16::deserialize(deserializer)?;
        Self::new(raw).ok_or_else(|| de::Error::custom(format!("LID {raw}: expected 1 to 49151")))
    }
}

/// A multicast local identifier: 0xC000 to 0xFFFE.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MulticastLid(u16);

impl MulticastLid {
    /// The smallest multicast LID.
    pub const MIN: Self = Self(0xc000);
    /// The largest multicast LID.
    pub const MAX: Self = Self(0xfffe);

    /// A multicast LID, or `None` outside 0xC000–0xFFFE.
    pub const fn new(raw: u16) -> Option<Self> {
        if raw >= 0xc000 && raw <= 0xfffe { Some(Self(raw)) } else { None }
    }

    /// The number itself.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// Position in a multicast forwarding table: 0 for 0xC000.
    pub const fn index(self) -> usize {
        (self.0 - 0xc000) as usize
    }
}

impl fmt::Display for MulticastLid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:04x}", self.0)
    }
}

impl fmt::Debug for MulticastLid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A partition key: 15 bits of key, top bit = full membership.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PKey(pub u16);

impl PKey {
    /// Full membership in the default partition.
    pub const DEFAULT_FULL: Self = Self(0xffff);
    /// Limited membership in the default partition.
    pub const DEFAULT_LIMITED: Self = Self(0x7fff);

    /// The 15-bit key without the membership bit.
    pub const fn base(self) -> u16 {
        self.0 & 0x7fff
    }

    /// Whether the membership bit says "full".
    pub const fn is_full(self) -> bool {
        self.0 & 0x8000 != 0
    }

    /// Whether this is a key at all (base not zero).
    pub const fn is_valid(self) -> bool {
        self.base() != 0
    }

    /// Whether packets pass between holders of these keys: same base, at least one full member
    /// (specification volume 1, 10.9.3).
    pub const fn matches(self, other: Self) -> bool {
        self.is_valid() && self.base() == other.base() && (self.is_full() || other.is_full())
    }
}

impl fmt::Display for PKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:04x}", self.0)
    }
}

impl fmt::Debug for PKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A port number: 0 is a switch's management port, 1 to 254 are external ports, 255 means "none" in tables.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PortNum(pub u8);

impl PortNum {
    /// The management port of a switch.
    pub const MANAGEMENT: Self = Self(0);
    /// "No port" in forwarding tables.
    pub const NONE: Self = Self(255);

    /// The number as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for PortNum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for PortNum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PortNum({})", self.0)
    }
}

/// A queue key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct QKey(pub u32);

impl QKey {
    /// The well-known key of QP1 (general services).
    pub const GSI: Self = Self(0x8001_0000);
}

/// A queue pair number, 24 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Qpn(pub u32);

/// A service level, 0 to 15.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ServiceLevel(pub u8);

/// A virtual lane, 0 to 15; 15 is the management lane.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VirtualLane(pub u8);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guid_reads_every_form_that_tools_print_and_nothing_else() {
        for text in ["0x0002c9030012ab01", "0002c9030012ab01", "0002:c903:0012:ab01", "2c9030012ab01"] {
            assert_eq!(text.parse::<Guid>().unwrap(), Guid(0x0002_c903_0012_ab01), "{text}");
        }
        for text in ["", "0x", "0x12zz", "-1", "0x00002c9030012ab01f", "guid"] {
            assert!(text.parse::<Guid>().is_err(), "{text}");
        }
    }

    /// B16: 0, multicast LIDs and 0xFFFF are "none", never a LID.
    #[test]
    fn b16_lid_accepts_only_the_unicast_range() {
        for raw in 0..=u16::MAX {
            assert_eq!(Lid::new(raw).is_some(), (1..=0xbfff).contains(&raw));
            assert_eq!(MulticastLid::new(raw).is_some(), (0xc000..=0xfffe).contains(&raw));
        }
        for text in ["0", "49152", "0xffff", "abc", "", "-1", "0x", "65536", "18446744073709551616"] {
            assert!(text.parse::<Lid>().is_err(), "{text}");
        }
        assert_eq!("0xbfff".parse::<Lid>().unwrap(), Lid::MAX);
    }

    /// B45: the membership bit takes no part in comparing partitions.
    #[test]
    fn b45_pkeys_match_by_base_and_need_one_full_member() {
        assert!(PKey(0x0081).matches(PKey(0x8081)));
        assert!(PKey(0x8081).matches(PKey(0x8081)));
        assert!(!PKey(0x0081).matches(PKey(0x0081)));
        assert!(!PKey(0x8081).matches(PKey(0x8082)));
        assert!(!PKey(0x8000).matches(PKey(0x8000)));
    }
}
