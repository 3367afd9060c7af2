//! This host's ports: finding and choosing one.

use std::fs::OpenOptions;
use std::io::{BufWriter, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use mad::transport::Transport;
use mad::transport::capture::Capture;
use mad::transport::umad::{self, Device, PortSelector, SelectError, Selected, UmadTransport};
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

/// The transport, with a pcapng file of all that passes where one was asked for.
///
/// # Errors
/// The file can't be made.
pub(crate) fn captured(transport: UmadTransport, file: Option<&Path>) -> Outcome<Arc<dyn Transport>> {
    let Some(path) = file else { return Ok(Arc::new(transport)) };
    let about = || format!("capture file {}", path.display());
    let interface = transport.smi_port().device.clone();
    // M_Keys pass with the packets.
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    let writer = BufWriter::new(file.with_context(about)?);
    let clock = Box::new(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
    Ok(Arc::new(Capture::new(transport, writer, &interface, clock).with_context(about)?))
}
