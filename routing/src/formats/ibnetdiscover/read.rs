//! Reads ibnetdiscover's output.

use mad::types::{Guid, Lid, LinkSpeed, LinkWidth, NodeType, PortNum};

use crate::fabric::{Fabric, Node, NodeId, PortRef};
use crate::formats::assemble::{HalfLink, connect};
use crate::formats::error::{Cursor, FormatError};
use crate::formats::lids::{self, number_after};
use crate::formats::{Format, Loaded};

/// Reads `text`; `file` is its name for errors. Lines that are no topology are passed over with a warning.
///
/// # Errors
/// A node or port line that can't be understood or contradicts another: in what it says of the nodes, their LIDs or a link.
pub fn read(file: &str, text: &str) -> Result<Loaded, FormatError> {
    let mut reader = Reader::default();
    for (index, line) in text.lines().enumerate() {
        reader.line(Cursor::new(file, index + 1, line))?;
    }
    reader.finish(file)
}

/// What stands before a node's own line.
#[derive(Default, Clone, Copy)]
struct Ids {
    vendor: u32,
    device: u16,
    system: u64,
}

struct Remote<'a> {
    kind: NodeType,
    guid: Guid,
    port: u64,
    port_guid: Option<Guid>,
    description: &'a str,
    lid: Option<(Lid, Cursor<'a>)>,
}

/// Port of a node whose record says what lies behind it.
struct Line<'a> {
    from: PortRef,
    remote: Remote<'a>,
    at: Cursor<'a>,
}

#[derive(Default)]
struct Reader<'a> {
    fabric: Fabric,
    ids: Ids,
    current: Option<NodeId>,
    lines: Vec<Line<'a>>,
    lids: lids::Places<'a>,
    from: Option<(Guid, Guid)>,
    warnings: Vec<String>,
    noise: usize,
    first_noise: usize,
}

impl<'a> Reader<'a> {
    fn line(&mut self, mut at: Cursor<'a>) -> Result<(), FormatError> {
        let rest = at.rest();
        if rest.is_empty() {
            self.current = None;
            return Ok(());
        }
        if let Some(comment) = rest.strip_prefix('#') {
            self.comment(comment);
            return Ok(());
        }
        if rest.starts_with('[') {
            return self.port(at);
        }
        for (word, kind) in [("Switch", NodeType::Switch), ("Ca", NodeType::Ca), ("Rt", NodeType::Router)] {
            let numbered = rest.strip_prefix(word).map(str::trim_start);
            if numbered.is_some_and(|r| r.starts_with(|c: char| c.is_ascii_digit())) {
                at.skip(word.len());
                return self.node(at, kind);
            }
        }
        self.assignment(at)
    }

    fn comment(&mut self, comment: &str) {
        let Some(initiated) = comment.trim_start().strip_prefix("Initiated from node ") else { return };
        let mut words = initiated.split_whitespace();
        let node = words.next().and_then(|w| w.parse().ok());
        let port = words.nth(1).and_then(|w| w.parse().ok());
        self.from = node.map(|node| (node, port.unwrap_or(node)));
    }

    fn assignment(&mut self, mut at: Cursor<'a>) -> Result<(), FormatError> {
        let word = at.take_while(|c| c.is_ascii_lowercase());
        match word {
            "vendid" | "devid" | "sysimgguid" | "switchguid" | "caguid" | "rtguid" if at.take("=") => {}
            _ => {
                if !is_heading(at, word) {
                    self.noise += 1;
                    if self.first_noise == 0 {
                        self.first_noise = at.line();
                    }
                }
                return Ok(());
            }
        }
        let start = at;
        let value = at.c_number("a number")?;
        match word {
            "vendid" => {
                let fits = u32::try_from(value).ok().filter(|v| *v < 1 << 24);
                self.ids.vendor = fits.ok_or_else(|| start.error("a vendor id of 24 bits"))?;
            }
            "devid" => {
                self.ids.device = u16::try_from(value).map_err(|_| start.error("a device id of 16 bits"))?;
            }
            "sysimgguid" => self.ids.system = value,
            _ => {}
        }
        Ok(())
    }

    fn node(&mut self, mut at: Cursor<'a>, kind: NodeType) -> Result<(), FormatError> {
        at.blanks();
        let ports = at.number("the number of ports", 254)? as u8;
        at.blanks();
        let name = at;
        let (_, guid) = node_name(&mut at)?;
        at.blanks();
        let comment = if at.take("#") { at.rest().trim_start() } else { "" };
        let (description, tail) = description_and_tail(comment, kind);
        let mut node = Node::new(kind, guid, description, ports);
        node.vendor_id = self.ids.vendor;
        node.device_id = self.ids.device;
        node.system_image_guid = Guid(self.ids.system);
        if let Some(facts) = &mut node.switch {
            facts.enhanced_port_0 = tail.contains("enhanced port 0");
        }
        let (own, lmc) = if node.is_switch() { lids::lid_and_lmc(&at, tail)? } else { (None, 0) };
        if let Some(port) = node.port_mut(PortNum::MANAGEMENT) {
            (port.lid, port.lmc) = (own.map(|(lid, _)| lid), lmc);
        }
        self.ids = Ids::default();
        let id = self
            .fabric
            .add_node(node)
            .map_err(|error| name.error_with(error.to_string(), "each node once"))?;
        if let Some((_, place)) = own {
            self.lids.insert(PortRef { node: id, port: PortNum::MANAGEMENT }, place);
        }
        self.current = Some(id);
        Ok(())
    }

    fn port(&mut self, mut at: Cursor<'a>) -> Result<(), FormatError> {
        let start = at;
        let node = self.current.ok_or_else(|| at.error("a Switch, Ca or Rt line before the ports"))?;
        at.expect("[")?;
        let number = at.number("a port number", 254)?;
        let port = crate::formats::assemble::check_port(&self.fabric, node, number, &start)?;
        at.expect("]")?;
        external_port(&mut at);
        let guid = parenthesised(&mut at)?;
        at.blanks();
        let (kind, far_guid) = node_name(&mut at)?;
        at.expect("[")?;
        let far_port = at.number("a port number", 254)?;
        at.expect("]")?;
        external_port(&mut at);
        let port_guid = parenthesised(&mut at)?;
        at.blanks();
        let comment = if at.take("#") { at.rest().trim_start() } else { "" };
        let near = &comment[..comment.find('"').unwrap_or(0)];
        let (description, tail) = description_and_tail(&comment[near.len()..], NodeType::Ca);
        let is_switch = self.fabric.node(node).is_switch();
        let (own, lmc) = if is_switch { (None, 0) } else { lids::lid_and_lmc(&at, near)? };
        if let Some((_, place)) = own {
            self.lids.insert(PortRef { node, port }, place);
        }
        if let Some(port) = self.fabric.node_mut(node).port_mut(port) {
            if let Some(guid) = guid.filter(|_| !is_switch) {
                port.guid = guid;
            }
            if !is_switch {
                (port.lid, port.lmc) = (own.map(|(lid, _)| lid), lmc);
            }
            (port.width, port.speed) = rate(tail);
        }
        let lid = match number_after(&at, tail, "lid ") {
            Some((value, place)) => lids::lid(value, &place)?.map(|lid| (lid, place)),
            None => None,
        };
        let remote = Remote { kind, guid: far_guid, port: far_port, port_guid, description, lid };
        self.lines.push(Line { from: PortRef { node, port }, remote, at: start });
        Ok(())
    }

    fn finish(mut self, file: &str) -> Result<Loaded, FormatError> {
        if self.fabric.node_count() == 0 {
            return Err(FormatError::file(
                file,
                "no node in the whole file",
                "`Switch`, `Ca` or `Rt` lines as ibnetdiscover prints them",
            ));
        }
        self.add_nodes_without_record(file);
        let mut halves = Vec::with_capacity(self.lines.len());
        for line in &self.lines {
            let Some(node) = self.fabric.find(line.remote.guid) else { continue };
            let port = crate::formats::assemble::check_port(&self.fabric, node, line.remote.port, &line.at)?;
            if !self.fabric.node(node).is_switch()
                && let Some(far) = self.fabric.node_mut(node).port_mut(port)
            {
                far.guid = line.remote.port_guid.unwrap_or(far.guid);
            }
            if let Some((lid, place)) = line.remote.lid {
                let own = if self.fabric.node(node).is_switch() { PortNum::MANAGEMENT } else { port };
                lids::same(&mut self.fabric, &mut self.lids, PortRef { node, port: own }, lid, place)?;
            }
            halves.push(HalfLink { from: line.from, to: PortRef { node, port }, at: line.at });
        }
        connect(&mut self.fabric, &halves)?;
        if self.noise > 0 {
            let (noise, first) = (self.noise, self.first_noise);
            self.warnings.push(format!("{file}:{first}: {noise} lines are no topology, passed over"));
        }
        let from = self.from.and_then(|(node, port)| {
            let id = self.fabric.find(node)?;
            let ports = self.fabric.node(id).numbered_ports();
            let number = ports.into_iter().find(|(_, p)| p.guid == port).map(|(n, _)| n)?;
            Some(PortRef { node: id, port: number })
        });
        let wrong_lid = lids::wrong(file, &self.fabric, &self.lids);
        Ok(Loaded {
            fabric: self.fabric,
            format: Format::Ibnetdiscover,
            from,
            wrong_lid,
            warnings: self.warnings,
        })
    }

    /// A file that was cut off names nodes as peers that it does not describe.
    fn add_nodes_without_record(&mut self, file: &str) {
        let mut most: std::collections::BTreeMap<Guid, (u64, &Remote<'_>)> =
            std::collections::BTreeMap::new();
        for line in self.lines.iter().filter(|l| self.fabric.find(l.remote.guid).is_none()) {
            let entry = most.entry(line.remote.guid).or_insert((0, &line.remote));
            entry.0 = entry.0.max(line.remote.port);
        }
        let mut added = Vec::new();
        for (guid, (ports, remote)) in most {
            added.push(Node::new(remote.kind, guid, remote.description, ports.min(254) as u8));
        }
        for node in added {
            let what = format!("{} ({})", node.description, node.guid);
            if self.fabric.add_node(node).is_ok() {
                self.warnings.push(format!("{file}: {what} is named as a peer but has no record of its own"));
            }
        }
    }
}

/// `"S-0002c90200000003"`.
fn node_name(at: &mut Cursor<'_>) -> Result<(NodeType, Guid), FormatError> {
    let start = *at;
    let name = at.quoted("a node such as \"S-0002c90200000003\"")?;
    let bad = || start.error("S-, H- or R- and a GUID of 16 hexadecimal digits in quotes");
    let (kind, guid) = name.split_once('-').ok_or_else(bad)?;
    let kind = match kind {
        "S" => NodeType::Switch,
        "H" => NodeType::Ca,
        "R" => NodeType::Router,
        _ => return Err(bad()),
    };
    Ok((kind, u64::from_str_radix(guid, 16).map(Guid).map_err(|_| bad())?))
}

/// `[ext 5]`, which only `-g` prints.
fn external_port(at: &mut Cursor<'_>) {
    if at.rest().starts_with("[ext")
        && let Some(end) = at.rest().find(']')
    {
        at.skip(end + 1);
    }
}

/// `(2c90200000003)`, perhaps after a blank.
fn parenthesised(at: &mut Cursor<'_>) -> Result<Option<Guid>, FormatError> {
    let mut ahead = *at;
    ahead.blanks();
    if !ahead.take("(") {
        return Ok(None);
    }
    let guid = ahead.hex("a port GUID")?;
    ahead.expect(")")?;
    *at = ahead;
    Ok(Some(Guid(guid)))
}

/// Splits `"description" rest`. Descriptions may hold quotes: the last one that can end it does.
fn description_and_tail(comment: &str, kind: NodeType) -> (&str, &str) {
    let Some(inner) = comment.strip_prefix('"') else { return ("", comment) };
    let ends: &[&str] = match kind {
        NodeType::Switch => &["\" base port 0", "\" enhanced port 0", "\""],
        NodeType::Ca | NodeType::Router => &["\" lid ", "\""],
    };
    let end = ends.iter().find_map(|e| inner.rfind(e)).unwrap_or(inner.len());
    (&inner[..end], inner.get(end + 1..).unwrap_or(""))
}

/// Width and speed out of ` lid 5 4xEDR s=4 w=2 v=4`.
fn rate(tail: &str) -> (Option<LinkWidth>, Option<LinkSpeed>) {
    let word = tail.split_whitespace().find(|w| {
        w.split_once('x').is_some_and(|(digits, _)| digits.parse::<u8>().is_ok()) || w.starts_with("??")
    });
    let Some((width, speed)) = word.and_then(|w| w.split_once('x')) else { return (None, None) };
    let width = match width {
        "1" => Some(LinkWidth::X1),
        "2" => Some(LinkWidth::X2),
        "4" => Some(LinkWidth::X4),
        "8" => Some(LinkWidth::X8),
        "12" => Some(LinkWidth::X12),
        _ => None,
    };
    (width, LinkSpeed::from_name(speed))
}

/// Headings of `-g` and parts of node records that carry nothing.
fn is_heading(at: Cursor<'_>, word: &str) -> bool {
    let line = format!("{word}{}", at.rest());
    ["Non-Chassis Nodes", "Chassis ", "Hostname: "].iter().any(|h| line.starts_with(h))
}
