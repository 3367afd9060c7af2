//! Reads net files.

use std::collections::HashMap;
use std::path::Path;

use mad::types::{Guid, LinkSpeed, LinkWidthSet, NodeType, PortNum};

use crate::fabric::{Fabric, Node, NodeId, PortRef};
use crate::formats::assemble::{HalfLink, check_port, connect};
use crate::formats::error::{Cursor, FormatError};
use crate::formats::lids::{self, lid_and_lmc, number_after};
use crate::formats::{Format, Loaded};

/// Finds the text of an included file by its name.
pub type Includes<'f> = dyn Fn(&str) -> Result<String, String> + 'f;

/// Includes from the folder of `path`.
pub fn files_beside(path: &Path) -> impl Fn(&str) -> Result<String, String> + use<> {
    let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
    move |name| {
        let bytes = std::fs::read(folder.join(name)).map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Reads `text`, which must not include other files.
///
/// # Errors
/// As [`read_with`].
pub fn read(file: &str, text: &str) -> Result<Loaded, FormatError> {
    read_with(file, text, &|_: &str| Err("there is no folder to look in".into()))
}

/// Reads `text`; `file` is its name for errors, `includes` finds what it includes.
///
/// # Errors
/// A line that ibsim would refuse: a bad number, a port beyond the node's, an unknown peer, ends that disagree, an alias
/// twice, a LID or LMC that is none, includes deeper than nine.
pub fn read_with(file: &str, text: &str, includes: &Includes<'_>) -> Result<Loaded, FormatError> {
    let mut included = Vec::new();
    find_includes(file, text, includes, 0, &mut included)?;
    let mut reader = Reader::default();
    reader.text(file, text, &mut included.iter())?;
    reader.finish(file)
}

/// Files may be nested so deep.
const MOST_INCLUDES: usize = 9;

/// An included file: name and text.
type Included = (String, String);

/// Reads all included files, in the order in which they are included. The depth is bounded, so that a file including itself
/// ends as an error.
fn find_includes(
    file: &str,
    text: &str,
    includes: &Includes<'_>,
    depth: usize,
    out: &mut Vec<Included>,
) -> Result<(), FormatError> {
    for (index, line) in text.lines().enumerate().filter(|(_, line)| line.starts_with("include")) {
        let mut at = Cursor::new(file, index + 1, line);
        at.take("include");
        at.blanks();
        let name = at.quoted("a file name")?;
        if depth == MOST_INCLUDES {
            return Err(at.error_with("one include more", "at most nine files one inside the other"));
        }
        let inner = includes(name)
            .map_err(|error| at.error_with(format!("`{name}`: {error}"), "a file that can be read"))?;
        out.push((name.to_owned(), inner.clone()));
        find_includes(name, &inner, includes, depth + 1, out)?;
    }
    Ok(())
}

/// What a port may do, before it is linked.
#[derive(Clone, Copy)]
struct Enabled {
    widths: u8,
    speeds: u8,
    extended: u8,
    fdr10: bool,
}

impl Default for Enabled {
    fn default() -> Self {
        Self { widths: 2, speeds: 1, extended: 0, fdr10: false }
    }
}

/// A port line.
struct Line<'a> {
    from: PortRef,
    peer: String,
    peer_port: u64,
    at: Cursor<'a>,
    /// What the comment says of the peer: its LID, with its place, and width and speed of the link.
    peer_lid: Option<(u64, Cursor<'a>)>,
    rate: Option<&'a str>,
}

#[derive(Default)]
struct Reader<'a> {
    fabric: Fabric,
    by_name: HashMap<String, NodeId>,
    aliases: HashMap<String, PortRef>,
    next_guid: [Option<u64>; 3],
    base_guid: [Option<u64>; 3],
    vendor: u32,
    device: u16,
    system: u64,
    prefix: String,
    current: Option<NodeId>,
    default: Enabled,
    enabled: HashMap<PortRef, Enabled>,
    lines: Vec<Line<'a>>,
    lids: lids::Places<'a>,
    warnings: Vec<String>,
}

fn kind_index(kind: NodeType) -> usize {
    match kind {
        NodeType::Switch => 0,
        NodeType::Ca => 1,
        NodeType::Router => 2,
    }
}

impl<'a> Reader<'a> {
    /// All lines of a file, with the files that it includes in their places.
    fn text(
        &mut self,
        file: &'a str,
        text: &'a str,
        included: &mut std::slice::Iter<'a, Included>,
    ) -> Result<(), FormatError> {
        for (index, line) in text.lines().enumerate() {
            if !line.starts_with("include") {
                self.line(Cursor::new(file, index + 1, line))?;
            } else if let Some((name, inner)) = included.next() {
                self.text(name, inner, included)?;
            }
        }
        Ok(())
    }

    fn line(&mut self, mut at: Cursor<'a>) -> Result<(), FormatError> {
        let rest = at.rest();
        if rest.starts_with('#') {
            return Ok(());
        }
        if rest.starts_with(['[', '@']) {
            return self.port(at);
        }
        self.current = None;
        let nodes = [
            ("Switch", NodeType::Switch),
            ("Hca", NodeType::Ca),
            ("Ca", NodeType::Ca),
            ("Rt", NodeType::Router),
        ];
        for (word, kind) in nodes {
            if at.take(word) {
                return self.node(at, kind);
            }
        }
        let guids = [
            ("switchguid", NodeType::Switch),
            ("hcaguids", NodeType::Ca),
            ("caguid", NodeType::Ca),
            ("rtguid", NodeType::Router),
        ];
        for (word, kind) in guids {
            if at.take(word) {
                return self.guid_base(at, kind);
            }
        }
        self.setting(at)
    }

    fn setting(&mut self, mut at: Cursor<'a>) -> Result<(), FormatError> {
        const WORDS: [&str; 7] = ["vendid", "devid", "sysimgguid", "width", "speed", "extspeed", "module"];
        let Some(word) = WORDS.into_iter().find(|w| at.take(w)) else {
            if at.rest().starts_with("do") {
                self.warnings.push(at.warning("console commands are not carried out"));
            }
            return Ok(());
        };
        at.blanks();
        at.expect("=")?;
        at.blanks();
        if word == "module" {
            self.prefix = at.quoted("a prefix")?.to_owned();
            return Ok(());
        }
        let start = at;
        let value = at.c_number("a number")?;
        let limited = |most: u64, what: &str| {
            if value <= most { Ok(value) } else { Err(start.error(what)) }
        };
        match word {
            "vendid" => self.vendor = limited(0xff_ffff, "a vendor id of 24 bits")? as u32,
            "devid" => self.device = limited(0xffff, "a device id of 16 bits")? as u16,
            "sysimgguid" => self.system = value,
            "width" => self.default.widths = limited(31, "a width mask, 1 to 31")? as u8,
            "speed" => self.default.speeds = limited(7, "a speed mask, 1 to 7")? as u8,
            _ => self.default.extended = limited(15, "an extended speed mask, 0 to 15")? as u8,
        }
        Ok(())
    }

    fn guid_base(&mut self, mut at: Cursor<'a>, kind: NodeType) -> Result<(), FormatError> {
        let index = kind_index(kind);
        at.blanks();
        let relative = at.take("+");
        if !relative {
            at.expect("=")?;
        }
        at.blanks();
        let value = at.c_number("a GUID")?;
        if relative {
            let base = self.base_guid[index].unwrap_or_else(|| first_guid(kind));
            self.next_guid[index] = Some(base.wrapping_add(value));
        } else {
            self.base_guid[index] = Some(value);
            self.next_guid[index] = Some(value);
        }
        Ok(())
    }

    fn node(&mut self, mut at: Cursor<'a>, kind: NodeType) -> Result<(), FormatError> {
        at.blanks();
        let count = at;
        let ports = at.number("the number of ports", 254)? as u8;
        if ports == 0 {
            return Err(count.error("the number of ports, 1 to 254"));
        }
        at.take_while(|c| c != '"');
        let place = at;
        let base = at.quoted("the node's name")?;
        if base.contains(['#', '@']) {
            return Err(place.error("a name without `#` and `@`"));
        }
        let name = self.full_name(base);
        let (description, tail) = description(at.rest());
        let index = kind_index(kind);
        let guid = self.next_guid[index].unwrap_or_else(|| first_guid(kind));
        let step = if kind == NodeType::Switch { 1 } else { u64::from(ports) + 1 };
        self.next_guid[index] = Some(guid.wrapping_add(step));
        let description = if description.is_empty() { name.clone() } else { description.to_owned() };
        let mut node = Node::new(kind, Guid(guid), description, ports);
        node.vendor_id = std::mem::take(&mut self.vendor);
        node.device_id = self.device;
        node.revision = 0xa1;
        let system = std::mem::take(&mut self.system);
        node.system_image_guid = Guid(if system == 0 { guid } else { system });
        if let Some(facts) = &mut node.switch {
            facts.enhanced_port_0 = tail.contains("enhanced port 0");
        }
        let (own, lmc) = if node.is_switch() { lid_and_lmc(&at, tail)? } else { (None, 0) };
        if let Some(port) = node.port_mut(PortNum::MANAGEMENT) {
            (port.lid, port.lmc) = (own.map(|(lid, _)| lid), lmc);
        }
        if self.by_name.contains_key(&name) {
            return Err(place.error_with(format!("\"{name}\" a second time"), "each name once"));
        }
        let id = self.fabric.add_node(node).map_err(|e| place.error_with(e.to_string(), "each GUID once"))?;
        if let Some((_, place)) = own {
            self.lids.insert(PortRef { node: id, port: PortNum::MANAGEMENT }, place);
        }
        self.by_name.insert(name, id);
        self.current = Some(id);
        Ok(())
    }

    fn full_name(&self, base: &str) -> String {
        if self.prefix.is_empty() || base.contains('#') {
            base.to_owned()
        } else {
            format!("{}#{base}", self.prefix)
        }
    }

    fn port(&mut self, mut at: Cursor<'a>) -> Result<(), FormatError> {
        let start = at;
        let Some(node) = self.current else {
            return Err(start.error("a Switch, Hca, Ca or Rt line before the ports"));
        };
        let alias = at.take("@");
        at.expect("[")?;
        let number = at.number("a port number", 254)?;
        let from = PortRef { node, port: check_port(&self.fabric, node, number, &start)? };
        at.take_while(|c| c != '"');
        let name = at.quoted(if alias { "an alias" } else { "the peer's name" })?;
        if alias {
            let key = format!("{}@{name}", self.prefix);
            if self.aliases.insert(key, from).is_some() {
                return Err(start.error_with(format!("alias \"{name}\" a second time"), "each alias once"));
            }
        } else {
            at.blanks();
            let peer_port = if at.take("[") { at.number("a port number", 254)? } else { 1 };
            let peer = match name.strip_prefix('@') {
                Some(own) => format!("{}@{own}", self.prefix),
                None => self.full_name(name),
            };
            let comment = at.rest().split_once('#').map_or("", |(_, comment)| comment);
            let tail = comment.rsplit('"').next().unwrap_or("");
            let peer_lid = number_after(&at, tail, "lid ").filter(|_| comment.contains('"'));
            self.lines.push(Line { from, peer, peer_port, at: start, peer_lid, rate: rate_word(comment) });
        }
        self.port_options(from, at)
    }

    fn port_options(&mut self, from: PortRef, at: Cursor<'a>) -> Result<(), FormatError> {
        let mut enabled = self.default;
        let (options, comment) = at.rest().split_once('#').unwrap_or_else(|| (at.rest(), ""));
        for (place, _) in options.match_indices('=') {
            let letter = options[..place].trim_end().chars().next_back();
            let mut value = at;
            value.skip(place + 1);
            let most = match letter {
                Some('w') => 31,
                Some('s') => 7,
                Some('e') => 15,
                _ => continue,
            };
            let mask = value.number("a mask", most)? as u8;
            match letter {
                Some('w') => enabled.widths = mask,
                Some('s') => enabled.speeds = if mask == 0 { 4 } else { mask },
                _ => enabled.extended = mask,
            }
        }
        let kind = self.fabric.node(from.node).kind;
        if kind != NodeType::Router {
            rate(comment, &mut enabled);
        }
        if kind == NodeType::Ca
            && let Some(port) = self.fabric.node_mut(from.node).port_mut(from.port)
        {
            // Behind the peer's description stands the peer's LID.
            let (own, lmc) = lid_and_lmc(&at, comment.split('"').next().unwrap_or(comment))?;
            (port.lid, port.lmc) = (own.map(|(lid, _)| lid), lmc);
            if let Some((_, place)) = own {
                self.lids.insert(from, place);
            }
        }
        self.enabled.insert(from, enabled);
        Ok(())
    }

    fn finish(mut self, file: &str) -> Result<Loaded, FormatError> {
        if self.fabric.node_count() == 0 {
            return Err(FormatError::file(file, "no node in the whole file", "`Switch` and `Hca` records"));
        }
        let mut halves = Vec::with_capacity(self.lines.len());
        for line in &self.lines {
            let to = if let Some(end) = self.aliases.get(&line.peer) {
                *end
            } else {
                let node = self.by_name.get(&line.peer).copied().ok_or_else(|| {
                    line.at.error_with(format!("peer \"{}\"", line.peer), "the name of a node of this file")
                })?;
                PortRef { node, port: check_port(&self.fabric, node, line.peer_port, &line.at)? }
            };
            halves.push(HalfLink { from: line.from, to, at: line.at });
        }
        connect(&mut self.fabric, &halves)?;
        for (line, half) in self.lines.iter().zip(&halves) {
            self.agree_on_lid(line, half.to)?;
        }
        self.compare_rates(&halves);
        for half in &halves {
            self.train(half)?;
        }
        let from = self.lines.first().map(|line| line.from);
        let wrong_lid = lids::wrong(file, &self.fabric, &self.lids);
        Ok(Loaded { fabric: self.fabric, format: Format::Ibsim, from, wrong_lid, warnings: self.warnings })
    }

    /// Whether the LID that a comment gives the peer is the one that the peer's own line does.
    fn agree_on_lid(&self, line: &Line<'_>, to: PortRef) -> Result<(), FormatError> {
        let Some((lid, place)) = &line.peer_lid else { return Ok(()) };
        let node = self.fabric.node(to.node);
        let end = PortRef { port: if node.is_switch() { PortNum::MANAGEMENT } else { to.port }, ..to };
        match (lids::lid(*lid, place)?, self.fabric.port(end).and_then(|port| port.lid), self.lids.get(&end))
        {
            (Some(told), Some(own), Some(first)) if told != own => Err(place.error_with(
                format!("LID {} of \"{}\"[{}]", told.get(), node.description, end.port),
                format!("LID {}, as in line {}", own.get(), first.line()),
            )),
            _ => Ok(()),
        }
    }

    /// Tells links whose two ends name different rates; they get what both allow.
    fn compare_rates(&mut self, halves: &[HalfLink<'_>]) {
        let rates =
            self.lines.iter().zip(halves).filter_map(|(line, half)| Some((half.from, (line.rate?, line.at))));
        let rates: HashMap<PortRef, (&str, Cursor<'_>)> = rates.collect();
        for half in halves {
            let ends = rates.get(&half.from).zip(rates.get(&half.to));
            if let Some(((rate, at), (other, first))) = ends
                && rate != other
                && first.line() < at.line()
            {
                let text = format!("a link of {rate}, which is of {other} in line {}", first.line());
                self.warnings.push(at.warning(&text));
            }
        }
    }

    /// The width and speed of a link: the best that both ends allow.
    fn train(&mut self, half: &HalfLink<'_>) -> Result<(), FormatError> {
        let of = |end: &PortRef| self.enabled.get(end).copied().unwrap_or(self.default);
        let (a, b) = (of(&half.from), of(&half.to));
        let width = LinkWidthSet(a.widths & b.widths).widest();
        if width.is_none() || a.speeds & b.speeds == 0 {
            return Err(half.at.error_with(
                "two ends with no width or speed in common",
                "masks w= and s= that both ends share",
            ));
        }
        let extended = a.extended & b.extended;
        let top = |mask: u8| if mask == 0 { 0 } else { 1 << (7 - mask.leading_zeros()) };
        let speed = LinkSpeed::from_active(
            top(a.speeds & b.speeds),
            top(extended),
            0,
            a.fdr10 && b.fdr10 && extended == 0,
        );
        for end in [half.from, half.to] {
            if let Some(port) = self.fabric.node_mut(end.node).port_mut(end.port) {
                (port.width, port.speed) = (width, speed);
            }
        }
        Ok(())
    }
}

/// Where ibsim begins to count.
fn first_guid(kind: NodeType) -> u64 {
    match kind {
        NodeType::Ca => 0x10_0000,
        NodeType::Switch => 0x20_0000,
        NodeType::Router => 0,
    }
}

/// Description and what follows it, out of the comment of a node line.
fn description(rest: &str) -> (&str, &str) {
    let Some((_, comment)) = rest.split_once('#') else { return ("", rest) };
    let comment = comment.trim_start();
    if let Some(inner) = comment.strip_prefix('"') {
        return inner.split_once('"').unwrap_or((inner, ""));
    }
    let ends = [" enhanced port ", " base port ", " lid ", " lmc "];
    let end = ends.iter().filter_map(|e| comment.find(e)).min().unwrap_or(comment.len());
    comment.split_at(end)
}

/// The last word of `… lid 5 4xEDR`, the end of a comment.
fn rate_word(comment: &str) -> Option<&str> {
    let tail = comment.rsplit('"').next().unwrap_or("");
    let word = tail[tail.rfind("lid ")? + 4..].split_whitespace().nth(1)?;
    word.contains('x').then_some(word)
}

/// What such a comment says of the link.
fn rate(comment: &str, enabled: &mut Enabled) {
    let Some((width, speed)) = rate_word(comment).and_then(|word| word.split_once('x')) else { return };
    enabled.widths = match width {
        "12" => 0b1011,
        "8" => 0b100,
        "4" => 0b11,
        "2" => 0b1_0000,
        "1" => 0b1,
        _ => enabled.widths,
    };
    let (speeds, extended, fdr10) = match speed {
        "SDR" => (1, 0, false),
        "DDR" => (3, 0, false),
        "QDR" => (7, 0, false),
        "FDR10" => (7, 0, true),
        "FDR" => (7, 1, true),
        "EDR" => (7, 3, true),
        "HDR" => (7, 7, true),
        "NDR" => (7, 15, true),
        _ => return,
    };
    (enabled.speeds, enabled.extended, enabled.fdr10) = (speeds, extended, fdr10);
}
