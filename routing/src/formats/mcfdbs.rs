//! `opensm.mcfdbs`, the multicast tables as opensm dumps them under `-D 0x40`; ibdmchk reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};

use mad::types::{Guid, MulticastLid, PortNum};

use super::error::{Cursor, FormatError};

/// For each switch, by NodeGUID, the ports that each multicast LID goes out of.
pub type MulticastTables = BTreeMap<Guid, BTreeMap<MulticastLid, BTreeSet<PortNum>>>;

/// Reads the dump.
///
/// # Errors
/// A line that is none of the format, an MLID outside 0xC000 to 0xFFFE, a port above 254, entries before a heading.
pub fn read(file: &str, text: &str) -> Result<MulticastTables, FormatError> {
    let mut tables = MulticastTables::new();
    let mut current: Option<&mut BTreeMap<MulticastLid, BTreeSet<PortNum>>> = None;
    for (index, line) in text.lines().enumerate() {
        let mut at = Cursor::new(file, index + 1, line);
        at.blanks();
        if at.take("Switch 0x") {
            current = Some(tables.entry(Guid(at.hex("a GUID")?)).or_default());
        } else if at.rest().starts_with("0x") {
            let start = at;
            at.take("0x");
            let raw = at.hex("a multicast LID")?;
            let mlid = u16::try_from(raw).ok().and_then(MulticastLid::new);
            let mlid = mlid.ok_or_else(|| start.error("a multicast LID, 0xC000 to 0xFFFE"))?;
            at.blanks();
            at.expect(":")?;
            let table = current.as_deref_mut().ok_or_else(|| start.error("`Switch 0x…` first"))?;
            table.entry(mlid).or_default().extend(ports(at)?);
        } else if !at.rest().is_empty() && !at.rest().starts_with(['#', 'L']) {
            return Err(at.error("`Switch 0x…` or `0xMLID : 0xPORT …`"));
        }
    }
    Ok(tables)
}

fn ports(mut at: Cursor<'_>) -> Result<BTreeSet<PortNum>, FormatError> {
    let mut ports = BTreeSet::new();
    loop {
        at.blanks();
        if at.rest().is_empty() {
            return Ok(ports);
        }
        let start = at;
        at.expect("0x")?;
        let port = u8::try_from(at.hex("a port")?).ok().filter(|p| *p < 255);
        ports.insert(PortNum(port.ok_or_else(|| start.error("a port, 0x000 to 0x0FE"))?));
    }
}

/// The dump. Switches with empty tables are left out, as opensm does.
pub fn write(tables: &MulticastTables) -> String {
    let mut out = String::new();
    let mut switches: Vec<_> = tables.iter().filter(|(_, t)| t.values().any(|p| !p.is_empty())).collect();
    // opensm's map is sorted by the GUID's bytes as they lie in memory.
    switches.sort_by_key(|(guid, _)| guid.0.swap_bytes());
    for (guid, table) in switches {
        // Writing to a string can't fail.
        let _ = print(&mut out, *guid, table);
    }
    out
}

fn print(out: &mut String, guid: Guid, table: &BTreeMap<MulticastLid, BTreeSet<PortNum>>) -> fmt::Result {
    writeln!(out, "\nSwitch {guid}\nLID    : Out Port(s)")?;
    for (mlid, ports) in table.iter().filter(|(_, ports)| !ports.is_empty()) {
        write!(out, "0x{:04X} :", mlid.get())?;
        ports.iter().try_for_each(|port| write!(out, " 0x{:03X} ", port.0))?;
        out.push('\n');
    }
    Ok(())
}
