//! Our own JSON of a fabric: everything that [`Fabric`] holds, so that reading gives back what was written.
//!
//! GUIDs are hexadecimal strings; sets and codes are the numbers of the wire.

use mad::types::{
    Guid, Lid, LinkSpeed, LinkSpeedSet, LinkWidth, LinkWidthSet, Mtu, NodeType, PortNum, PortPhysState,
    PortState,
};
use serde::{Deserialize, Serialize};

use super::error::FormatError;
use super::{Format, Loaded, lids};
use crate::fabric::{Fabric, Node, Port, PortRef, SwitchFacts};

/// Version of the layout; a reader refuses what is newer.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    nodes: Vec<JsonNode>,
    links: Vec<JsonLink>,
    /// Where the discovery began.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    from: Option<JsonEnd>,
}

#[derive(Serialize, Deserialize, Clone, Copy)]
struct JsonEnd {
    guid: Guid,
    port: u8,
}

#[derive(Serialize, Deserialize)]
struct JsonLink {
    a: JsonEnd,
    b: JsonEnd,
}

#[derive(Serialize, Deserialize)]
struct JsonNode {
    guid: Guid,
    kind: NodeType,
    description: String,
    system_image_guid: Guid,
    num_ports: u8,
    vendor_id: u32,
    device_id: u16,
    revision: u32,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    switch: Option<JsonSwitch>,
    ports: Vec<JsonPort>,
}

#[derive(Serialize, Deserialize)]
struct JsonSwitch {
    enhanced_port_0: bool,
    linear_fdb_cap: u16,
    multicast_fdb_cap: u16,
}

#[derive(Serialize, Deserialize)]
struct JsonPort {
    number: u8,
    guid: Guid,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    lid: Option<u16>,
    #[serde(default)]
    lmc: u8,
    state: PortState,
    phys_state: PortPhysState,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    width: Option<LinkWidth>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    speed: Option<LinkSpeed>,
    widths_supported: u8,
    speeds_supported: u16,
    mtu_cap: u8,
    mtu: u8,
    vl_cap: u8,
    operational_vls: u8,
    capability_mask: u32,
    capability_mask2: u16,
}

/// Writes `fabric`, nodes in their order; `from` is where a discovery began.
pub fn write(fabric: &Fabric, from: Option<PortRef>) -> String {
    let end = |end: PortRef| JsonEnd { guid: fabric.node(end.node).guid, port: end.port.0 };
    let file = File {
        version: VERSION,
        nodes: fabric.nodes().map(|(_, node)| json_node(node)).collect(),
        links: fabric.links().map(|link| JsonLink { a: end(link.a), b: end(link.b) }).collect(),
        from: from.map(end),
    };
    // Strings and numbers only: nothing in it can fail to serialise.
    let mut text = serde_json::to_string_pretty(&file).unwrap_or_default();
    text.push('\n');
    text
}

/// Reads `text`; `file` is its name for errors.
///
/// # Errors
/// JSON that does not parse (with line and column) or has another layout; a GUID twice, a port or peer that is not there.
pub fn read(file: &str, text: &str) -> Result<Loaded, FormatError> {
    let parsed: File = serde_json::from_str(text).map_err(|error| FormatError {
        file: file.into(),
        line: error.line(),
        column: error.column(),
        found: error.to_string(),
        expected: "a fabric in the layout that `rsm discover --format json` writes".into(),
    })?;
    let bad = |found: String, expected: &str| FormatError::file(file, found, expected);
    if parsed.version > VERSION {
        return Err(bad(format!("version {}", parsed.version), "version 1"));
    }
    let mut fabric = Fabric::new();
    for node in &parsed.nodes {
        let node = fabric_node(node).map_err(|(found, expected)| bad(found, expected))?;
        fabric.add_node(node).map_err(|e| bad(e.to_string(), "each GUID once"))?;
    }
    let end = |fabric: &Fabric, end: JsonEnd| {
        let node = fabric.find(end.guid);
        let node = node.ok_or_else(|| bad(format!("a link to node {}", end.guid), "a node of the file"))?;
        Ok(PortRef { node, port: PortNum(end.port) })
    };
    for link in &parsed.links {
        let (a, b) = (end(&fabric, link.a)?, end(&fabric, link.b)?);
        fabric.connect(a, b).map_err(|e| bad(e.to_string(), "each port in one link"))?;
    }
    let from = parsed.from.map(|from| end(&fabric, from)).transpose()?;
    let wrong_lid = lids::wrong(file, &fabric, &lids::Places::default());
    Ok(Loaded { fabric, format: Format::Json, from, wrong_lid, warnings: Vec::new() })
}

fn json_node(node: &Node) -> JsonNode {
    let port = |(number, port): (PortNum, &Port)| JsonPort {
        number: number.0,
        guid: port.guid,
        lid: port.lid.map(Lid::get),
        lmc: port.lmc,
        state: port.state,
        phys_state: port.phys_state,
        width: port.width,
        speed: port.speed,
        widths_supported: port.widths_supported.0,
        speeds_supported: port.speeds_supported.0,
        mtu_cap: port.mtu_cap.to_wire(),
        mtu: port.mtu.to_wire(),
        vl_cap: port.vl_cap,
        operational_vls: port.operational_vls,
        capability_mask: port.capability_mask,
        capability_mask2: port.capability_mask2,
    };
    JsonNode {
        guid: node.guid,
        kind: node.kind,
        description: node.description.clone(),
        system_image_guid: node.system_image_guid,
        num_ports: node.num_ports,
        vendor_id: node.vendor_id,
        device_id: node.device_id,
        revision: node.revision,
        switch: node.switch.map(|facts| JsonSwitch {
            enhanced_port_0: facts.enhanced_port_0,
            linear_fdb_cap: facts.linear_fdb_cap,
            multicast_fdb_cap: facts.multicast_fdb_cap,
        }),
        ports: node.numbered_ports().map(port).collect(),
    }
}

fn fabric_node(json: &JsonNode) -> Result<Node, (String, &'static str)> {
    if json.num_ports > 254 {
        return Err((format!("{} ports of node {}", json.num_ports, json.guid), "at most 254"));
    }
    let mut node = Node::new(json.kind, json.guid, json.description.clone(), json.num_ports);
    node.system_image_guid = json.system_image_guid;
    node.vendor_id = json.vendor_id;
    node.device_id = json.device_id;
    node.revision = json.revision;
    node.switch = json.switch.as_ref().map(|facts| SwitchFacts {
        enhanced_port_0: facts.enhanced_port_0,
        linear_fdb_cap: facts.linear_fdb_cap,
        multicast_fdb_cap: facts.multicast_fdb_cap,
    });
    if node.switch.is_some() != node.is_switch() {
        return Err((format!("node {}", json.guid), "`switch` for switches, and for these only"));
    }
    node.ports.fill(None);
    for port in &json.ports {
        let bad = |expected| (format!("port {} of node {}", port.number, json.guid), expected);
        let slot = node.ports.get_mut(usize::from(port.number)).ok_or_else(|| bad("a port of the node"))?;
        if port.number == 0 && json.kind != NodeType::Switch {
            return Err(bad("port 0 for switches only"));
        }
        let mtu = |code| Mtu::from_wire(code).ok_or_else(|| bad("an MTU code, 1 to 5"));
        let lid = port.lid.map(|lid| Lid::new(lid).ok_or_else(|| bad("a unicast LID")));
        let mut made = Port::default();
        made.guid = port.guid;
        made.lid = lid.transpose()?;
        made.lmc = port.lmc;
        made.state = port.state;
        made.phys_state = port.phys_state;
        made.width = port.width;
        made.speed = port.speed;
        made.widths_supported = LinkWidthSet(port.widths_supported);
        made.speeds_supported = LinkSpeedSet(port.speeds_supported);
        made.mtu_cap = mtu(port.mtu_cap)?;
        made.mtu = mtu(port.mtu)?;
        made.vl_cap = port.vl_cap;
        made.operational_vls = port.operational_vls;
        made.capability_mask = port.capability_mask;
        made.capability_mask2 = port.capability_mask2;
        if port.lmc > 7 {
            return Err(bad("an LMC of 0 to 7"));
        }
        *slot = Some(made);
    }
    Ok(node)
}
