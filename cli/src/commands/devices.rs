//! `rsm devices`: what this host has, as ibstat and ibv_devinfo say it, and which ports a subnet could be managed from.

use std::fmt::Write;
use std::io::ErrorKind;

use mad::transport::umad::{Device, DevicePort, SelectError};
use mad::types::NodeType;
use serde::Serialize;

#[cfg(feature = "verbs")]
use super::verbs::Verbs;
use crate::args::Devices;
use crate::failure::Outcome;
use crate::{host, out};

pub(super) fn run(args: &Devices) -> Outcome {
    let devices = host::devices()?;
    #[cfg(feature = "verbs")]
    let verbs = Verbs::ask();
    let shown = devices.iter().map(|device| Shown {
        device,
        manageable: device.ports.iter().map(Manageable::new).collect(),
        #[cfg(feature = "verbs")]
        verbs: verbs.of(&device.name),
    });
    let shown: Vec<Shown<'_>> = shown.collect();
    if args.json {
        return out::json(&shown);
    }
    if shown.is_empty() {
        return Err(SelectError::NoDevice.into());
    }
    let mut text = String::new();
    for device in &shown {
        device.describe(&mut text);
    }
    out::write(&text)
}

/// A device with what was found out besides.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    device: &'a Device,
    manageable: Vec<Manageable>,
    #[cfg(feature = "verbs")]
    verbs: super::verbs::Answer<'a>,
}

#[derive(Serialize)]
struct Manageable {
    port: u8,
    manageable: bool,
    reason: Option<String>,
}

impl Manageable {
    fn new(port: &DevicePort) -> Self {
        let reason = why_not(port);
        Self { port: port.number.0, manageable: reason.is_none(), reason }
    }
}

/// Why this host can't manage a subnet by this port.
fn why_not(port: &DevicePort) -> Option<String> {
    if let Some(obstacle) = port.obstacle() {
        return Some(obstacle.to_string());
    }
    let path = port.umad.as_ref()?;
    match std::fs::File::options().read(true).write(true).open(path) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Some(format!("no permission to open {path}; run as root"))
        }
        _ => None,
    }
}

impl Shown<'_> {
    /// The lines of one device. Unknown facts leave their line out.
    fn describe(&self, text: &mut String) {
        let device = self.device;
        let mut lines = Lines { text, indent: 0 };
        let kind = match device.node_type {
            Some(NodeType::Ca) => "CA",
            Some(NodeType::Switch) => "Switch",
            Some(NodeType::Router) => "Router",
            None => "Device",
        };
        lines.title(&format!("{kind} '{}'", device.name));
        lines.fact("Type", device.hca_type.as_ref());
        lines.fact("Board", device.board_id.as_ref());
        lines.fact("Description", device.description.as_ref());
        lines.fact("Firmware version", device.firmware.as_ref());
        lines.fact("Hardware version", device.hardware_revision.as_ref());
        lines.fact("Node GUID", device.node_guid.as_ref());
        lines.fact("System image GUID", device.system_image_guid.as_ref());
        lines.fact("Number of ports", Some(&device.ports.len()));
        #[cfg(feature = "verbs")]
        self.verbs.describe(&mut lines);
        for (port, manageable) in device.ports.iter().zip(&self.manageable) {
            lines.indent = 1;
            lines.title(&format!("Port {}:", port.number));
            describe_port(&mut lines, port);
            #[cfg(feature = "verbs")]
            self.verbs.describe_port(&mut lines, port.number);
            lines.fact("Management device", port.umad.as_ref());
            let verdict =
                manageable.reason.as_ref().map_or_else(|| "yes".to_owned(), |reason| format!("no: {reason}"));
            lines.fact("Manageable", Some(&verdict));
        }
    }
}

fn describe_port(lines: &mut Lines<'_>, port: &DevicePort) {
    lines.fact("State", port.state.map(|s| format!("{s:?}").to_uppercase()).as_ref());
    lines.fact("Physical state", port.phys_state.map(|s| format!("{s:?}")).as_ref());
    lines.fact("Link layer", Some(&port.link_layer));
    lines.fact("Rate", port.rate.as_ref());
    lines.fact("Base LID", Some(&port.lid.map_or(0, |lid| lid.get())));
    lines.fact("LMC", port.lmc.as_ref());
    lines.fact("SM LID", Some(&port.sm_lid.map_or(0, |lid| lid.get())));
    lines.fact("SM SL", port.sm_sl.as_ref());
    lines.fact("Capability mask", port.capability_mask.map(|mask| format!("{mask:#010x}")).as_ref());
    lines.fact("Port GUID", port.port_guid.as_ref());
    lines.fact("GID prefix", port.gid_prefix.map(|prefix| format!("{prefix:#018x}")).as_ref());
}

/// Indented lines of facts.
pub(super) struct Lines<'a> {
    text: &'a mut String,
    indent: usize,
}

impl Lines<'_> {
    fn title(&mut self, title: &str) {
        let _ = writeln!(self.text, "{:1$}{title}", "", 4 * self.indent);
        self.indent += 1;
    }

    /// `Name: value`, where the value is known.
    pub(super) fn fact(&mut self, name: &str, value: Option<&impl std::fmt::Display>) {
        if let Some(value) = value {
            let _ = writeln!(self.text, "{:1$}{name}: {value}", "", 4 * self.indent);
        }
    }
}
