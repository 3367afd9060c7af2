//! What programs find under `/sys/class/infiniband*` and `/dev/infiniband`: a real directory with the kernel's files and
//! formats (`Documentation/ABI/stable/sysfs-class-infiniband`), rewritten where a port has changed.
//!
//! Files are replaced, never rewritten in place: who has one open reads what was true when it was opened.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use mad::types::{Gid, Guid, LinkSpeed, LinkWidth, NodeType, PortNum, PortPhysState, PortState, Rate};
use mad::wire::smp::PortInfo;
use rsm_preload_protocol::umad::ABI_VERSION;

use super::backend::{Backend, DeviceFacts, Endpoint, NodeId, PortFacts};
use super::umad::Services;

/// The device numbers of `umadN` in the kernel; `issmN` has 64 more.
const MAJOR: u32 = 231;
const ISSM_MINOR: u32 = 64;

/// How nodes are shown as devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Presentation {
    /// Each as one device `rsm0`, `rsm1`, …
    #[default]
    One,
    /// Each as two, as adapters of XDR are: `rsm0` does general services alone, `smi0` subnet management alone, and has the
    /// issm.
    SmiApart,
}

/// A device that programs see.
#[derive(Debug)]
struct Shown {
    name: String,
    node: NodeId,
    services: Services,
}

/// What is behind a `umadN`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// The port.
    pub endpoint: Endpoint,
    /// What the device does of it.
    pub services: Services,
    /// Index in `Tree::shown`.
    shown: usize,
}

/// The tree of one set of nodes.
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
    nodes: Vec<NodeId>,
    shown: Vec<Shown>,
    /// `umadN` and `issmN` by N.
    devices: Vec<Device>,
    /// What is in the files, by path under the root.
    written: BTreeMap<String, String>,
}

impl Tree {
    /// A tree for these nodes. Nothing is written yet.
    pub fn new(root: PathBuf, nodes: Vec<NodeId>, presentation: Presentation, backend: &dyn Backend) -> Self {
        let roles: &[_] = match presentation {
            Presentation::One => &[("rsm", Services::All)],
            Presentation::SmiApart => &[("rsm", Services::General), ("smi", Services::SubnetManagement)],
        };
        let shown: Vec<Shown> = roles
            .iter()
            .flat_map(|(name, services)| {
                let nodes = nodes.iter().enumerate();
                nodes.map(move |(index, node)| Shown {
                    name: format!("{name}{index}"),
                    node: *node,
                    services: *services,
                })
            })
            .collect();
        let mut devices = Vec::new();
        for (index, one) in shown.iter().enumerate() {
            for port in backend.device(one.node).ports {
                let endpoint = Endpoint { node: one.node, port };
                devices.push(Device { endpoint, services: one.services, shown: index });
            }
        }
        Self { root, nodes, shown, devices, written: BTreeMap::new() }
    }

    /// The directory that stands for `/`.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whose tree it is.
    pub fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }

    /// What is behind `umadN` and `issmN`.
    pub fn device(&self, number: u32) -> Option<Device> {
        self.devices.get(number as usize).copied()
    }

    /// Writes what has changed since the last call.
    ///
    /// # Errors
    /// A file could not be written.
    pub fn refresh(&mut self, backend: &dyn Backend) -> io::Result<()> {
        let files = self.files(backend);
        for (path, text) in &files {
            if self.written.get(path) != Some(text) {
                replace(&self.root.join(path), text)?;
            }
        }
        for path in self.written.keys().filter(|path| !files.contains_key(*path)) {
            fs::remove_file(self.root.join(path))?;
        }
        self.written = files;
        Ok(())
    }

    fn files(&self, backend: &dyn Backend) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        for one in &self.shown {
            let facts = backend.device(one.node);
            device_files(&mut files, &format!("sys/class/infiniband/{}", one.name), &facts);
        }
        files.insert("sys/class/infiniband_mad/abi_version".into(), format!("{ABI_VERSION}\n"));
        for (number, device) in self.devices.iter().enumerate() {
            let (shown, port) = (&self.shown[device.shown], device.endpoint.port);
            let directory = format!("sys/class/infiniband/{}/ports/{port}", shown.name);
            port_files(&mut files, &directory, &backend.port(device.endpoint));
            for (name, minor) in [("umad", 0), ("issm", ISSM_MINOR)] {
                // The kernel makes an issm where there is a queue pair 0.
                if name == "issm" && device.services == Services::General {
                    continue;
                }
                let directory = format!("sys/class/infiniband_mad/{name}{number}");
                files.insert(format!("{directory}/ibdev"), format!("{}\n", shown.name));
                files.insert(format!("{directory}/port"), format!("{port}\n"));
                files.insert(format!("{directory}/dev"), format!("{MAJOR}:{}\n", minor + number as u32));
                files.insert(format!("dev/infiniband/{name}{number}"), String::new());
            }
        }
        files
    }
}

/// Writes beside, then renames: a reader finds the old text or the new one.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let beside = PathBuf::from(name);
    fs::write(&beside, text)?;
    fs::rename(&beside, path)
}

fn device_files(files: &mut BTreeMap<String, String>, directory: &str, facts: &DeviceFacts) {
    let mut add = |name: &str, text: String| {
        files.insert(format!("{directory}/{name}"), text + "\n");
    };
    let node_type = match facts.node_type {
        NodeType::Ca => "1: CA",
        NodeType::Switch => "2: switch",
        NodeType::Router => "3: router",
    };
    add("node_type", node_type.into());
    add("node_guid", guid(facts.node_guid));
    add("sys_image_guid", guid(facts.system_image_guid));
    add("node_desc", facts.description.clone());
    add("fw_ver", "1.0.0".into());
    add("hw_rev", format!("{:x}", facts.revision));
    add("hca_type", format!("MT{}", facts.device_id));
    add("board_id", format!("RSM_{:06x}{:04x}", facts.vendor_id, facts.device_id));
}

fn port_files(files: &mut BTreeMap<String, String>, directory: &str, facts: &PortFacts) {
    let mut add = |name: &str, text: String| {
        files.insert(format!("{directory}/{name}"), text + "\n");
    };
    let info = &facts.info;
    add("state", state(info));
    add("phys_state", phys_state(info));
    add("lid", format!("0x{:x}", info.base_lid));
    add("lid_mask_count", info.lmc().to_string());
    add("sm_lid", format!("0x{:x}", info.master_sm_lid));
    add("sm_sl", info.master_sm_sl().to_string());
    add("cap_mask", format!("0x{:08x}", info.capability_mask));
    add("rate", rate(info));
    add("link_layer", "InfiniBand".into());
    for (index, value) in facts.gids.iter().enumerate() {
        add(&format!("gids/{index}"), gid(*value));
        add(&format!("gid_attrs/types/{index}"), "IB/RoCE v1".into());
    }
    for (index, key) in facts.p_keys.iter().enumerate() {
        add(&format!("pkeys/{index}"), format!("0x{:04x}", key.0));
    }
}

fn state(info: &PortInfo) -> String {
    match info.port_state() {
        None => "0: NOP",
        Some(PortState::Down) => "1: DOWN",
        Some(PortState::Init) => "2: INIT",
        Some(PortState::Armed) => "3: ARMED",
        Some(PortState::Active) => "4: ACTIVE",
    }
    .into()
}

fn phys_state(info: &PortInfo) -> String {
    match info.port_phys_state() {
        None => return format!("{}: <unknown>", info.port_phys_state_raw()),
        Some(PortPhysState::Sleep) => "1: Sleep",
        Some(PortPhysState::Polling) => "2: Polling",
        Some(PortPhysState::Disabled) => "3: Disabled",
        Some(PortPhysState::PortConfigurationTraining) => "4: PortConfigurationTraining",
        Some(PortPhysState::LinkUp) => "5: LinkUp",
        Some(PortPhysState::LinkErrorRecovery) => "6: LinkErrorRecovery",
        Some(PortPhysState::PhyTest) => "7: Phy Test",
    }
    .into()
}

/// `100 Gb/sec (4X EDR)`.
fn rate(info: &PortInfo) -> String {
    let width = info.link_width().unwrap_or(LinkWidth::X1);
    let speed = info.link_speed(false).unwrap_or(LinkSpeed::Sdr);
    let decigbps = Rate::of_link(width, speed).decigbps();
    let tenths = if decigbps.is_multiple_of(10) { String::new() } else { format!(".{}", decigbps % 10) };
    format!("{}{tenths} Gb/sec ({}X {})", decigbps / 10, width.lanes(), speed.name())
}

/// In groups of four digits.
fn groups(hex: &str) -> String {
    let mut text = String::with_capacity(hex.len() * 5 / 4);
    for (index, digit) in hex.chars().enumerate() {
        if index > 0 && index % 4 == 0 {
            text.push(':');
        }
        let _ = text.write_char(digit);
    }
    text
}

fn guid(guid: Guid) -> String {
    groups(&format!("{:016x}", guid.0))
}

fn gid(gid: Gid) -> String {
    groups(&format!("{:032x}", gid.0))
}

/// The nodes that [`rsm_preload_protocol::ENV_NODE`] names.
///
/// # Errors
/// The name that no node has.
pub fn resolve(names: &str, backend: &dyn Backend) -> Result<Vec<NodeId>, String> {
    if names.trim().is_empty() {
        return backend.default_node().map(|node| vec![node]).ok_or_else(|| "no channel adapter".into());
    }
    // A description may have commas in it: the whole goes first.
    if let Some(node) = backend.find(names) {
        return Ok(vec![node]);
    }
    let mut nodes = Vec::new();
    for name in names.split(',').map(str::trim) {
        let node = backend.find(name).ok_or_else(|| name.to_owned())?;
        if !nodes.contains(&node) {
            nodes.push(node);
        }
    }
    Ok(nodes)
}

/// Whether a program can sit at this port of this type of node.
pub fn is_attachable(node_type: NodeType, port: PortNum) -> bool {
    (node_type == NodeType::Switch) == (port == PortNum::MANAGEMENT)
}
