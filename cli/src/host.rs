//! This host's ports: finding and choosing one.

use std::io::ErrorKind;

use anyhow::Context;
use mad::transport::umad::{self, Device, PortSelector, SelectError, Selected};
use mad::types::PortNum;
use sm_core::config::DeviceConfig;

use crate::failure::Outcome;

/// All devices; an empty list where the host has none.
///
/// # Errors
/// Sysfs can't be read.
pub(crate) fn devices() -> Outcome<Vec<Device>> {
    match umad::devices() {
        Ok(devices) => Ok(devices),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Ok(Err(error).context("/sys/class/infiniband")?),
    }
}

/// The port to use.
///
/// # Errors
/// None fits or can be used; the error says why and what to do.
pub(crate) fn select(choice: &DeviceConfig) -> Outcome<Selected> {
    let selector =
        PortSelector { device: choice.name.clone(), port: choice.port.map(PortNum), guid: choice.guid };
    let devices = devices()?;
    if devices.is_empty() {
        return Err(SelectError::NoDevice.into());
    }
    Ok(umad::select(&devices, &selector)?)
}
