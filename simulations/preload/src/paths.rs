//! Which paths are the emulator's, and what they lead to.

use rsm_preload_protocol::DeviceKind;

/// What a path of ours means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// `/dev/infiniband/umadN` or `issmN`.
    Device {
        /// Which of the two.
        kind: DeviceKind,
        /// N.
        number: u32,
        /// The path without doubled slashes.
        path: Vec<u8>,
    },
    /// A directory or file that lies in the emulator's tree under this path.
    File(Vec<u8>),
}

impl Target {
    /// The path, as it is under the tree's root.
    pub fn path(&self) -> &[u8] {
        match self {
            Self::Device { path, .. } | Self::File(path) => path,
        }
    }
}

const SYS: &[u8] = b"/sys/class/infiniband";
const DEV: &[u8] = b"/dev/infiniband";

/// What an absolute path means; `None` when it isn't ours.
pub fn target(path: &[u8]) -> Option<Target> {
    // Nearly every path of a program ends here.
    if !path.starts_with(b"/") || !path.windows(10).any(|part| part == b"infiniband") {
        return None;
    }
    let path = plain(path);
    if let Some(rest) = path.strip_prefix(SYS) {
        let end = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
        return matches!(&rest[..end], b"" | b"_mad" | b"_verbs" | b"_cm").then_some(Target::File(path));
    }
    match path.strip_prefix(DEV)? {
        b"" => Some(Target::File(path)),
        rest => {
            let name = rest.strip_prefix(b"/")?;
            Some(match device(name) {
                Some((kind, number)) => Target::Device { kind, number, path },
                None => Target::File(path),
            })
        }
    }
}

/// `umad0`, `issm12`.
pub fn device(name: &[u8]) -> Option<(DeviceKind, u32)> {
    let (kind, digits) = match (name.strip_prefix(b"umad"), name.strip_prefix(b"issm")) {
        (Some(digits), _) => (DeviceKind::Umad, digits),
        (_, Some(digits)) => (DeviceKind::Issm, digits),
        _ => return None,
    };
    let canonical = digits == b"0" || !digits.starts_with(b"0");
    if digits.is_empty() || !canonical || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok().map(|number| (kind, number))
}

/// Without doubled slashes, `.` and a slash at the end; `..` takes a component away.
fn plain(path: &[u8]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let mut plain = Vec::with_capacity(path.len());
    for part in parts {
        plain.push(b'/');
        plain.extend_from_slice(part);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_devices_and_sysfs_are_known_in_every_spelling() {
        let file = |path: &str| Some(Target::File(path.into()));
        for (path, expected) in [
            ("/sys/class/infiniband", file("/sys/class/infiniband")),
            ("/sys//class/infiniband/", file("/sys/class/infiniband")),
            ("/sys/class/infiniband_mad//umad0/ibdev", file("/sys/class/infiniband_mad/umad0/ibdev")),
            ("/sys/class/net/../infiniband/rsm0/./fw_ver", file("/sys/class/infiniband/rsm0/fw_ver")),
            ("/dev/infiniband", file("/dev/infiniband")),
            ("/dev/infiniband/uverbs0", file("/dev/infiniband/uverbs0")),
        ] {
            assert_eq!(target(path.as_bytes()), expected, "{path}");
        }
        let named = |kind, number, path: &str| Some(Target::Device { kind, number, path: path.into() });
        assert_eq!(target(b"/dev/infiniband/umad12"), named(DeviceKind::Umad, 12, "/dev/infiniband/umad12"));
        assert_eq!(target(b"/dev/infiniband//issm0"), named(DeviceKind::Issm, 0, "/dev/infiniband/issm0"));
    }

    #[test]
    fn other_paths_are_left_alone() {
        for path in [
            "",
            "/",
            "infiniband",
            "/sys/class/net/ib0",
            "/sys/class/infiniband_srp",
            "/sys/class/infinibandx",
            "/usr/include/infiniband/umad.h",
            "/dev/infinibandx/umad0",
            "/home/sys/class/infiniband",
        ] {
            assert_eq!(target(path.as_bytes()), None, "{path}");
        }
        for name in ["umad", "umad-1", "umad00", "umad01", "umad99999999999", "issmx", "uverbs0"] {
            assert_eq!(device(name.as_bytes()), None, "{name}");
        }
    }
}
