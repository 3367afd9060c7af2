//! The InfiniBand devices of this host as sysfs shows them, with their umad and issm files.
//!
//! A missing or odd file leaves its field empty; only a directory that can't be listed at all is an error.
//! Values are those of the moment of the call, and under the stock simulator those of its start: ask the port
//! itself by SMP for what must be fresh.

use serde::Serialize;

use super::sys;
use crate::types::{Gid, Guid, Lid, NodeType, PortNum, PortPhysState, PortState};

/// The protocol on a port's wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub enum LinkLayer {
    /// InfiniBand; also where sysfs does not say, as with old kernels and simulators.
    InfiniBand,
    /// Ethernet (RoCE, iWARP): no subnet manager.
    Ethernet,
    /// Anything else, as sysfs names it.
    Other(String),
}

impl std::fmt::Display for LinkLayer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::InfiniBand => "InfiniBand",
            Self::Ethernet => "Ethernet",
            Self::Other(name) => name,
        })
    }
}

impl From<LinkLayer> for String {
    fn from(link_layer: LinkLayer) -> Self {
        link_layer.to_string()
    }
}

/// One device (HCA; a switch's own management port where the system is one).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Device {
    /// Its name, `mlx5_0`.
    pub name: String,
    /// What kind of node; `None` when sysfs names none that is InfiniBand's (iWARP's `RNIC`).
    pub node_type: Option<NodeType>,
    /// Firmware version.
    pub firmware: Option<String>,
    /// The vendor's model name (`MT4129`).
    pub hca_type: Option<String>,
    /// Hardware revision.
    pub hardware_revision: Option<String>,
    /// The vendor's name of the board (`MT_0000000838`).
    pub board_id: Option<String>,
    /// NodeDescription.
    pub description: Option<String>,
    /// Node GUID.
    pub node_guid: Option<Guid>,
    /// System image GUID.
    pub system_image_guid: Option<Guid>,
    /// Ports by number.
    pub ports: Vec<DevicePort>,
}

/// One port of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DevicePort {
    /// The device's name.
    pub device: String,
    /// The port's number.
    pub number: PortNum,
    /// Port GUID: the lower half of the first GID.
    pub port_guid: Option<Guid>,
    /// Upper half of the first GID.
    #[serde(serialize_with = "hexadecimal")]
    pub gid_prefix: Option<u64>,
    /// Base LID, where it has one.
    pub lid: Option<Lid>,
    /// LMC: 2 to this power LIDs from the base on.
    pub lmc: Option<u8>,
    /// LID of the master subnet manager, where there is one.
    pub sm_lid: Option<Lid>,
    /// Service level towards it.
    pub sm_sl: Option<u8>,
    /// Logical state.
    pub state: Option<PortState>,
    /// Physical state.
    pub phys_state: Option<PortPhysState>,
    /// Rate as the kernel words it (`100 Gb/sec (4X EDR)`).
    pub rate: Option<String>,
    /// What the wire speaks.
    pub link_layer: LinkLayer,
    /// CapabilityMask.
    pub capability_mask: Option<u32>,
    /// Path of the file for management datagrams; `None` when the kernel has none for this port (module `ib_umad`).
    pub umad: Option<String>,
    /// Path of the file whose holder makes the port say that a subnet manager runs there.
    pub issm: Option<String>,
}

/// As text, for readers of JSON that round integers above 2^53.
fn hexadecimal<S: serde::Serializer>(value: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    value.map(|value| format!("{value:#018x}")).serialize(serializer)
}

impl DevicePort {
    /// Whether the physical link is up. A port that does not say counts as up.
    pub const fn is_link_up(&self) -> bool {
        matches!(self.phys_state, None | Some(PortPhysState::LinkUp | PortPhysState::LinkErrorRecovery))
    }
}

impl std::fmt::Display for DevicePort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} port {}", self.device, self.number)
    }
}

/// All devices of this host, by name (`mlx5_2` before `mlx5_10`).
///
/// # Errors
/// There is no such directory in sysfs (no driver is loaded), or it can't be read.
pub fn devices() -> std::io::Result<Vec<Device>> {
    devices_under("")
}

/// As [`devices`], with the tree that is looked at below `root` (empty for the running system).
///
/// # Errors
/// As [`devices`].
pub fn devices_under(root: &str) -> std::io::Result<Vec<Device>> {
    let class = format!("{root}/sys/class/infiniband");
    let names = sys::list_directory(&class)?;
    let files = management_files(root);
    Ok(names.into_iter().map(|name| read_device(&class, name, &files)).collect())
}

/// A file in /dev for management: which device and port it is for.
struct ManagementFile {
    name: String,
    device: String,
    port: u8,
}

fn management_files(root: &str) -> Vec<ManagementFile> {
    let class = format!("{root}/sys/class/infiniband_mad");
    let names = sys::list_directory(&class).unwrap_or_default();
    names
        .into_iter()
        .filter(|name| name.starts_with("umad") || name.starts_with("issm"))
        .filter_map(|name| {
            let device = text(&format!("{class}/{name}/ibdev"))?;
            let port = number(&format!("{class}/{name}/port"))?.try_into().ok()?;
            Some(ManagementFile { name, device, port })
        })
        .collect()
}

fn read_device(class: &str, name: String, files: &[ManagementFile]) -> Device {
    let path = format!("{class}/{name}");
    let ports = sys::list_directory(&format!("{path}/ports")).unwrap_or_default();
    Device {
        node_type: coded(&format!("{path}/node_type")).and_then(NodeType::from_wire),
        firmware: text(&format!("{path}/fw_ver")),
        hca_type: text(&format!("{path}/hca_type")),
        hardware_revision: text(&format!("{path}/hw_rev")),
        board_id: text(&format!("{path}/board_id")),
        description: text(&format!("{path}/node_desc")),
        node_guid: guid(&format!("{path}/node_guid")),
        system_image_guid: guid(&format!("{path}/sys_image_guid")),
        ports: ports
            .iter()
            .filter_map(|port| port.parse().ok())
            .map(|port| read_port(&path, &name, PortNum(port), files))
            .collect(),
        name,
    }
}

fn read_port(device_path: &str, device: &str, port: PortNum, files: &[ManagementFile]) -> DevicePort {
    let path = format!("{device_path}/ports/{port}");
    let gid: Option<Gid> = text(&format!("{path}/gids/0")).and_then(|text| text.parse().ok());
    let small = |name: &str| number(&format!("{path}/{name}"));
    let lid = |name: &str| small(name).and_then(|raw| u16::try_from(raw).ok()).and_then(Lid::new);
    let file = |kind: &str| {
        let found = files
            .iter()
            .find(|file| file.name.starts_with(kind) && file.device == device && file.port == port.0)?;
        Some(format!("/dev/infiniband/{}", found.name))
    };
    DevicePort {
        device: device.into(),
        number: port,
        port_guid: gid.map(Gid::guid).filter(|guid| guid.is_some()),
        gid_prefix: gid.map(Gid::prefix),
        lid: lid("lid"),
        lmc: small("lid_mask_count").and_then(|raw| raw.try_into().ok()),
        sm_lid: lid("sm_lid"),
        sm_sl: small("sm_sl").and_then(|raw| raw.try_into().ok()),
        state: coded(&format!("{path}/state")).and_then(PortState::from_wire),
        phys_state: coded(&format!("{path}/phys_state")).and_then(PortPhysState::from_wire),
        rate: text(&format!("{path}/rate")),
        link_layer: match text(&format!("{path}/link_layer")).as_deref() {
            None | Some("InfiniBand" | "IB") => LinkLayer::InfiniBand,
            Some("Ethernet") => LinkLayer::Ethernet,
            Some(other) => LinkLayer::Other(other.into()),
        },
        capability_mask: small("cap_mask").and_then(|raw| raw.try_into().ok()),
        umad: file("umad"),
        issm: file("issm"),
    }
}

/// A file's text; `None` when it is missing, unreadable or empty.
fn text(path: &str) -> Option<String> {
    sys::read_text(path).ok().filter(|text| !text.is_empty())
}

/// A number in decimal or with `0x`.
fn number(path: &str) -> Option<u64> {
    let text = text(path)?;
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The code in front of `4: ACTIVE`.
fn coded(path: &str) -> Option<u8> {
    text(path)?.split(':').next()?.trim().parse().ok()
}

fn guid(path: &str) -> Option<Guid> {
    text(path)?.parse().ok().filter(|guid: &Guid| guid.is_some())
}

#[cfg(test)]
pub(in crate::transport::umad) mod tests;
