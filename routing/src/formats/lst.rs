//! `opensm-subnet.lst`: a line for each end of each link, with all that is to say of both nodes. ibdmchk reads it.

use std::fmt::{self, Write};

use mad::types::{Guid, Lid, LinkSpeed, LinkWidth, NodeType, PortNum, PortState};
use rustc_hash::{FxHashMap, FxHashSet};

use super::assemble::{HalfLink, connect};
use super::error::{Cursor, FormatError};
use super::{Format, Loaded, lids};
use crate::fabric::{Fabric, Node, NodeId, Port, PortRef};

/// One `{ … }` of a line.
struct End<'a> {
    kind: NodeType,
    ports: u8,
    system: u64,
    guid: Guid,
    port_guid: Guid,
    vendor: u32,
    device: u16,
    revision: u32,
    description: &'a str,
    /// With its place.
    lid: Option<(Lid, Cursor<'a>)>,
    port: u8,
    at: Cursor<'a>,
}

/// Reads `text`; `file` is its name for errors.
///
/// # Errors
/// A line that is none of the format, a port beyond a node's, a LID that is none, ends or LIDs that contradict each other.
pub fn read(file: &str, text: &str) -> Result<Loaded, FormatError> {
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let mut at = Cursor::new(file, index + 1, line);
        let (near, far) = (end(&mut at)?, end(&mut at)?);
        lines.push((near, far, rate(&mut at)?));
    }
    if lines.is_empty() {
        return Err(FormatError::file(
            file,
            "no line in the file",
            "`{ CA Ports:… } { SW Ports:… } PHY=… LOG=…`",
        ));
    }
    let mut warnings = Vec::new();
    let switches = unmarked_switches(&lines);
    if !switches.is_empty() {
        warnings.push(format!(
            "{file}: {} nodes are marked CA but have one LID for several ports: taken for switches",
            switches.len()
        ));
    }
    let mut fabric = Fabric::new();
    let mut places = lids::Places::default();
    // The node of a line's first end is described in full; the far end may lack its ids.
    for near in [true, false] {
        for (a, b, _) in &lines {
            add(&mut fabric, &mut places, if near { a } else { b }, &switches)?;
        }
    }
    let mut halves = Vec::with_capacity(lines.len());
    for (a, b, _) in &lines {
        halves.push(HalfLink { from: reference(&fabric, a)?, to: reference(&fabric, b)?, at: a.at });
    }
    connect(&mut fabric, &halves)?;
    for (half, (.., rate)) in halves.iter().zip(&lines) {
        if let Some(port) = fabric.node_mut(half.from.node).port_mut(half.from.port) {
            (port.width, port.speed, port.state) = *rate;
        }
    }
    let wrong_lid = lids::wrong(file, &fabric, &places);
    Ok(Loaded { fabric, format: Format::Lst, from: None, wrong_lid, warnings })
}

type Rate = (Option<LinkWidth>, Option<LinkSpeed>, PortState);

/// Adapters have a LID for each port: a node with one port GUID behind several port numbers is a switch.
fn unmarked_switches(lines: &[(End<'_>, End<'_>, Rate)]) -> FxHashSet<Guid> {
    let mut first: FxHashMap<Guid, u8> = FxHashMap::default();
    let mut found = FxHashSet::default();
    let mut ports: FxHashSet<(Guid, Guid, u8)> = FxHashSet::default();
    for (near, ..) in lines.iter().filter(|(near, ..)| near.kind == NodeType::Ca) {
        if ports.insert((near.guid, near.port_guid, near.port)) {
            let port = first.entry(near.port_guid).or_insert(near.port);
            if *port != near.port {
                found.insert(near.guid);
            }
        }
    }
    found
}

fn add<'a>(
    fabric: &mut Fabric,
    places: &mut lids::Places<'a>,
    end: &End<'a>,
    switches: &FxHashSet<Guid>,
) -> Result<(), FormatError> {
    let kind = if switches.contains(&end.guid) { NodeType::Switch } else { end.kind };
    let id = match fabric.find(end.guid) {
        Some(id) => id,
        None => {
            let mut node = Node::new(kind, end.guid, end.description, end.ports);
            node.system_image_guid = Guid(end.system);
            node.vendor_id = end.vendor;
            node.device_id = end.device;
            node.revision = end.revision;
            fabric.add_node(node).map_err(|e| end.at.error_with(e.to_string(), "each node once"))?
        }
    };
    let node = fabric.node_mut(id);
    if node.kind != kind || node.num_ports != end.ports {
        return Err(end.at.error_with(
            format!("node {} with another type or number of ports than before", end.guid),
            "the same in every line",
        ));
    }
    let own = if node.is_switch() { PortNum::MANAGEMENT } else { PortNum(end.port) };
    if let Some(port) = node.port_mut(own) {
        port.guid = end.port_guid;
    }
    let Some((lid, place)) = end.lid else { return Ok(()) };
    lids::same(fabric, places, PortRef { node: id, port: own }, lid, place)
}

fn reference(fabric: &Fabric, end: &End<'_>) -> Result<PortRef, FormatError> {
    let node = fabric.find(end.guid).ok_or_else(|| end.at.error("a node"))?;
    let port = super::assemble::check_port(fabric, node, u64::from(end.port), &end.at)?;
    Ok(PortRef { node, port })
}

fn end<'a>(at: &mut Cursor<'a>) -> Result<End<'a>, FormatError> {
    at.blanks();
    let start = *at;
    at.expect("{")?;
    at.blanks();
    let kind = [("CA", NodeType::Ca), ("SW", NodeType::Switch), ("Rt", NodeType::Router)];
    let kind = kind.into_iter().find(|(word, _)| at.take(word));
    let (_, kind) = kind.ok_or_else(|| at.error("CA, SW or Rt"))?;
    at.take("-SM");
    let mut field = |name: &str, most: u64| -> Result<u64, FormatError> {
        at.blanks();
        at.expect(name)?;
        let place = *at;
        let value = at.hex("a number")?;
        if value > most { Err(place.error(format!("a number up to {most:#x}"))) } else { Ok(value) }
    };
    let ports = field("Ports:", 254)? as u8;
    let system = field("SystemGUID:", u64::MAX)?;
    let guid = Guid(field("NodeGUID:", u64::MAX)?);
    let port_guid = Guid(field("PortGUID:", u64::MAX)?);
    let vendor = field("VenID:", u64::from(u32::MAX))? as u32;
    let device = field("DevID:", u64::from(u32::MAX))?;
    // The far end's id stands shifted by 16 bits.
    let device = if device > 0xffff { device >> 16 } else { device } as u16;
    let revision = field("Rev:", u64::from(u32::MAX))? as u32;
    at.blanks();
    at.expect("{")?;
    let length = at.rest().find("} LID:").ok_or_else(|| at.error("`} LID:` after the description"))?;
    let description = &at.rest()[..length];
    at.skip(length + "} LID:".len());
    let place = *at;
    let lid = lids::lid(at.hex("a LID")?, &place)?.map(|lid| (lid, place));
    at.blanks();
    at.expect("PN:")?;
    let place = *at;
    let port = at.hex("a port number")?;
    let port = u8::try_from(port).ok().filter(|p| (1..=254).contains(p));
    let port = port.ok_or_else(|| place.error("a port number, 1 to FE"))?;
    at.blanks();
    at.expect("}")?;
    let vendor = vendor & 0xff_ffff;
    Ok(End {
        kind,
        ports,
        system,
        guid,
        port_guid,
        vendor,
        device,
        revision,
        description,
        lid,
        port,
        at: start,
    })
}

const SPEEDS: [(&str, LinkSpeed); 7] = [
    ("2.5", LinkSpeed::Sdr),
    ("5", LinkSpeed::Ddr),
    ("10", LinkSpeed::Qdr),
    ("FDR10", LinkSpeed::Fdr10),
    ("14", LinkSpeed::Fdr),
    ("25", LinkSpeed::Edr),
    ("50", LinkSpeed::Hdr),
];

fn rate(at: &mut Cursor<'_>) -> Result<Rate, FormatError> {
    let mut rate = (None, None, PortState::Active);
    loop {
        at.blanks();
        if at.rest().is_empty() {
            return Ok(rate);
        }
        let start = *at;
        let word = at.take_while(|c| !c.is_whitespace());
        match word.split_once('=') {
            Some(("PHY", width)) => {
                let widths = [LinkWidth::X1, LinkWidth::X2, LinkWidth::X4, LinkWidth::X8, LinkWidth::X12];
                rate.0 = widths.into_iter().find(|w| w.to_string() == width);
            }
            Some(("LOG", state)) => {
                rate.2 = match state {
                    "ACT" => PortState::Active,
                    "ARM" => PortState::Armed,
                    "INI" => PortState::Init,
                    "DWN" => PortState::Down,
                    _ => return Err(start.error("LOG=ACT, ARM, INI or DWN")),
                };
            }
            Some(("SPD", speed)) => rate.1 = SPEEDS.iter().find(|(s, _)| *s == speed).map(|(_, s)| *s),
            _ => return Err(start.error("PHY=, LOG= or SPD=")),
        }
    }
}

/// The file as opensm writes it; nodes with LID `sm_lid` are marked `-SM`.
pub fn write(fabric: &Fabric, sm_lid: Option<Lid>) -> String {
    let mut nodes: Vec<(NodeId, &Node)> = fabric.nodes().collect();
    // opensm's map is sorted by the GUID's bytes as they lie in memory.
    nodes.sort_by_key(|(_, node)| node.guid.0.swap_bytes());
    let mut out = String::new();
    for (id, node) in nodes {
        for (number, port) in node.numbered_ports() {
            let near = PortRef { node: id, port: number };
            let Some(far) = fabric.peer(near) else { continue };
            // Writing to a string can't fail.
            let _ = print_end(&mut out, fabric, near, sm_lid, true);
            let _ = print_end(&mut out, fabric, far, sm_lid, false);
            let _ = print_rate(&mut out, port);
        }
    }
    out
}

fn print_end(
    out: &mut String,
    fabric: &Fabric,
    end: PortRef,
    sm_lid: Option<Lid>,
    near: bool,
) -> fmt::Result {
    let node = fabric.node(end.node);
    let kind = match node.kind {
        NodeType::Ca => "CA",
        NodeType::Switch => "SW",
        NodeType::Router => "Rt",
    };
    let own = if node.is_switch() { PortNum::MANAGEMENT } else { end.port };
    let lid = node.port(own).and_then(|p| p.lid);
    let mark = if lid.is_some() && lid == sm_lid { "-SM" } else { "" };
    let guid = fabric.port(end).map_or(node.guid, |p| p.guid);
    write!(
        out,
        "{{ {kind}{mark} Ports:{:02X} SystemGUID:{:016x} NodeGUID:{:016x} PortGUID:{:016x} ",
        node.num_ports, node.system_image_guid.0, node.guid.0, guid.0
    )?;
    if near {
        write!(out, "VenID:{:06X} DevID:{:04X}", node.vendor_id, node.device_id)?;
    } else {
        write!(out, "VenID:{:08X} DevID:{:04X}", node.vendor_id, u32::from(node.device_id) << 16)?;
    }
    let lid = lid.map_or(0, |lid| lid.get());
    let (revision, description, port) = (node.revision, &node.description, end.port.0);
    write!(out, " Rev:{revision:08X} {{{description}}} LID:{lid:04X} PN:{port:02X} }} ")
}

fn print_rate(out: &mut String, port: &Port) -> fmt::Result {
    let state = match port.state {
        PortState::Active => "ACT",
        PortState::Armed => "ARM",
        PortState::Init => "INI",
        PortState::Down => "DWN",
    };
    let width = port.width.map_or_else(|| "??".into(), |w| w.to_string());
    let speed = SPEEDS.iter().find(|(_, s)| Some(*s) == port.speed).map_or("??", |(text, _)| text);
    writeln!(out, "PHY={width} LOG={state} SPD={speed}")
}
