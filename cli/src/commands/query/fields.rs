//! The fields of a record as values, read by the record's component table.

use std::fmt;
use std::net::Ipv6Addr;

use mad::wire::sa::Component;
use serde_json::Value as Json;

/// A field's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// A count, a LID, a port number.
    Number(u64),
    /// A mask, a key, a GUID, with its hexadecimal digits.
    Hex(u64, usize),
    /// A GID.
    Gid(u128),
    /// Text, up to the first zero byte.
    Text(String),
    /// A table, byte by byte.
    Bytes(Vec<u8>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Hex(number, digits) => write!(f, "0x{number:0digits$x}"),
            Self::Gid(gid) => write!(f, "{}", Ipv6Addr::from_bits(*gid)),
            Self::Text(text) => write!(f, "{}", text.escape_debug()),
            Self::Bytes(bytes) => bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
        }
    }
}

impl Value {
    /// Numbers as JSON numbers, everything else as text.
    pub(super) fn to_json(&self) -> Json {
        match self {
            Self::Number(number) => (*number).into(),
            Self::Text(text) => text.clone().into(),
            Self::Hex(..) | Self::Gid(_) | Self::Bytes(_) => self.to_string().into(),
        }
    }
}

/// Names of fields that read best in hexadecimal, besides GUIDs and keys.
const HEX: [&str; 10] = [
    "CapabilityMask",
    "CapabilityMask2",
    "MLID",
    "ServiceID",
    "ServiceID8MSB",
    "ServiceID56LSB",
    "DeviceID",
    "VendorID",
    "Revision",
    "GidPrefix",
];

/// The value of a component.
pub(super) fn value(record: &[u8], component: &Component) -> Value {
    let (start, width) = (usize::from(component.offset_bits), usize::from(component.width_bits));
    let name = component.name;
    let bytes = || record.get(start / 8..(start + width) / 8).unwrap_or_default().to_vec();
    if width > 64 {
        return match name {
            _ if name.ends_with("GID") => Value::Gid(number(record, start, width)),
            "NodeDescription" | "ServiceName" => {
                let bytes = bytes();
                let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
                Value::Text(String::from_utf8_lossy(text).into_owned())
            }
            _ => Value::Bytes(bytes()),
        };
    }
    let number = u64::try_from(number(record, start, width)).unwrap_or(u64::MAX);
    let is_guid = width == 64 && name.contains("GUID");
    if is_guid || name.ends_with("_Key") || name.ends_with("ID") && width == 64 || HEX.contains(&name) {
        Value::Hex(number, width.div_ceil(4))
    } else if name == "SLtoVLMappingTable" {
        Value::Bytes(bytes())
    } else {
        Value::Number(number)
    }
}

/// `width` bits from bit `start`, most significant first; at most 128.
fn number(record: &[u8], start: usize, width: usize) -> u128 {
    (start..start + width).fold(0, |number, bit| {
        let byte = record.get(bit / 8).copied().unwrap_or(0);
        number << 1 | u128::from(byte >> (7 - bit % 8) & 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_read_as_their_names_and_widths_say() {
        let record = [0xff, 0xfe, 0xa5, 0, 0, 0, 0, 0, 0, 0, 1, b'h', b'i', 0];
        let component = |name, offset_bits, width_bits| Component { name, bit: 0, offset_bits, width_bits };
        assert_eq!(value(&record, &component("P_Key", 0, 16)).to_string(), "0xfffe");
        assert_eq!(value(&record, &component("SL", 16, 4)), Value::Number(0xa));
        assert_eq!(value(&record, &component("Priority", 20, 4)), Value::Number(5));
        assert_eq!(value(&record, &component("NodeGUID", 24, 64)).to_string(), "0x0000000000000001");
        assert_eq!(value(&record, &component("Beyond", 104, 64)), Value::Number(0), "what is not there is 0");
    }
}
