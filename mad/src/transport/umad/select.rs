//! Choice of the port to manage from, and why the others were not taken (B13).

use std::fmt;

use super::devices::{Device, DevicePort, LinkLayer};
use crate::types::{Guid, PortNum, PortPhysState};

/// What the operator asked for; nothing set means the first port that can be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortSelector {
    /// Device name.
    pub device: Option<String>,
    /// Port number; without a device, of any device.
    pub port: Option<PortNum>,
    /// Port GUID.
    pub guid: Option<Guid>,
}

/// Why a port can't be managed from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Its wire speaks something else than InfiniBand.
    LinkLayer(LinkLayer),
    /// The physical link is not up.
    PhysicallyDown(PortPhysState),
    /// The kernel has no umad file for it.
    NoUmad,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LinkLayer(LinkLayer::Ethernet) => {
                f.write_str("its link layer is Ethernet (RoCE or iWARP needs no subnet manager)")
            }
            Self::LinkLayer(other) => write!(f, "its link layer is {other}, not InfiniBand"),
            Self::PhysicallyDown(state) => write!(
                f,
                "its physical link is down ({state:?}); check cable and far end, or enable the port"
            ),
            Self::NoUmad => {
                f.write_str("the kernel has no umad device for it; load the module: modprobe ib_umad")
            }
        }
    }
}

impl DevicePort {
    /// What keeps this host from managing a subnet by this port; `None` when nothing does, be the port in INIT
    /// or no matter what other state. Permission is not looked at.
    pub fn obstacle(&self) -> Option<Obstacle> {
        if self.link_layer != LinkLayer::InfiniBand {
            return Some(Obstacle::LinkLayer(self.link_layer.clone()));
        }
        if self.umad.is_none() {
            return Some(Obstacle::NoUmad);
        }
        match self.phys_state {
            Some(state) if !self.is_link_up() => Some(Obstacle::PhysicallyDown(state)),
            _ => None,
        }
    }
}

/// A port that was passed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Device name.
    pub device: String,
    /// Port number.
    pub port: PortNum,
    /// The reason.
    pub obstacle: Obstacle,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} port {}: {}", self.device, self.port, self.obstacle)
    }
}

/// The chosen port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    /// The port.
    pub port: DevicePort,
    /// Other ports with the same port GUID. An adapter may show one port as several devices, of which one takes
    /// subnet management packets and another general services (B14).
    pub siblings: Vec<DevicePort>,
    /// Those that came before it and can't be used.
    pub skipped: Vec<Skipped>,
}

/// No port could be chosen. Each reads as one line that says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// The host has no device at all.
    #[error("no InfiniBand device on this host; load the adapter's driver (for example: modprobe mlx5_ib)")]
    NoDevice,
    /// The host has no device of this name.
    #[error("no device named `{device}`; this host has: {}", list(have))]
    NoSuchDevice {
        /// The name asked for.
        device: String,
        /// The names there are.
        have: Vec<String>,
    },
    /// The device has no such port, or no device has.
    #[error("no port {port} on {device}; there are: {}", list(have))]
    NoSuchPort {
        /// The device, or `any device`.
        device: String,
        /// The number asked for.
        port: PortNum,
        /// The ports there are.
        have: Vec<String>,
    },
    /// No port has this GUID.
    #[error("no port with GUID {guid}{}; there are: {}", on_device(device), list(have))]
    NoSuchGuid {
        /// The GUID asked for.
        guid: Guid,
        /// The device, when one was named.
        device: Option<String>,
        /// The ports there are, with their GUIDs.
        have: Vec<String>,
    },
    /// The one port that was asked for can't be used.
    #[error("cannot use {0}")]
    Unusable(Skipped),
    /// None of several ports can be used.
    #[error("no usable port; skipped {}; name one with --device NAME --port N", list(.0))]
    NoUsablePort(Vec<Skipped>),
}

fn list<T: ToString>(items: &[T]) -> String {
    if items.is_empty() {
        return "none".into();
    }
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn on_device(device: &Option<String>) -> String {
    device.as_ref().map(|device| format!(" on {device}")).unwrap_or_default()
}

/// Chooses a port: the first that fits and can be used, devices by name and ports by number.
///
/// # Errors
/// None fits, or none of those that fit can be used.
pub fn select(devices: &[Device], selector: &PortSelector) -> Result<Selected, SelectError> {
    let all = || devices.iter().flat_map(|device| &device.ports);
    let candidates = candidates(devices, selector)?;
    let mut skipped = Vec::new();
    for port in &candidates {
        match port.obstacle() {
            None => {
                let same = |other: &&DevicePort| {
                    other.port_guid.is_some() && other.port_guid == port.port_guid && *other != *port
                };
                let siblings =
                    all().filter(same).filter(|other| other.obstacle().is_none()).cloned().collect();
                return Ok(Selected { port: (*port).clone(), siblings, skipped });
            }
            Some(obstacle) => {
                skipped.push(Skipped { device: port.device.clone(), port: port.number, obstacle });
            }
        }
    }
    match <[Skipped; 1]>::try_from(skipped) {
        Ok([only]) => Err(SelectError::Unusable(only)),
        Err(skipped) => Err(SelectError::NoUsablePort(skipped)),
    }
}

/// The ports that fit, at least one.
fn candidates<'a>(
    devices: &'a [Device],
    selector: &PortSelector,
) -> Result<Vec<&'a DevicePort>, SelectError> {
    if devices.is_empty() {
        return Err(SelectError::NoDevice);
    }
    let mut ports: Vec<&DevicePort> = devices
        .iter()
        .filter(|device| selector.device.as_ref().is_none_or(|name| *name == device.name))
        .flat_map(|device| &device.ports)
        .collect();
    if let Some(name) = &selector.device
        && !devices.iter().any(|device| device.name == *name)
    {
        let have = devices.iter().map(|device| device.name.clone()).collect();
        return Err(SelectError::NoSuchDevice { device: name.clone(), have });
    }
    if let Some(guid) = selector.guid {
        let have = ports.iter().filter_map(|port| Some(format!("{port} {}", port.port_guid?))).collect();
        ports.retain(|port| port.port_guid == Some(guid));
        if ports.is_empty() {
            return Err(SelectError::NoSuchGuid { guid, device: selector.device.clone(), have });
        }
    }
    let have: Vec<String> = ports.iter().map(ToString::to_string).collect();
    if let Some(number) = selector.port {
        ports.retain(|port| port.number == number);
    }
    if ports.is_empty() {
        let device = selector.device.clone().unwrap_or_else(|| "any device".into());
        return Err(SelectError::NoSuchPort { device, port: selector.port.unwrap_or(PortNum(1)), have });
    }
    Ok(ports)
}

#[cfg(test)]
mod tests;
