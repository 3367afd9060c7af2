//! `ports-not-kept`: PortInfo fields that a port was seen not to keep, as versions before the database wrote it.
//!
//! ```text
//! rsm-ports-not-kept 1
//! 0x0002c9030012ab01 1 SubnetTimeOut,LocalPhyErrors
//! ```
//! NodeGUID, port, fields; sorted.

use mad::types::{Guid, PortNum};

use super::lids::{Parsed, body};
use crate::apply::Quirks;
use crate::plan::fields::FieldSet;

pub(super) const FILE: &str = "ports-not-kept";
const HEAD: &str = "rsm-ports-not-kept 1";

pub(super) fn parse(bytes: &[u8]) -> Parsed<Quirks> {
    let mut parsed = Parsed::<Quirks>::default();
    for (number, line) in body(bytes, HEAD, &mut parsed.complaints) {
        match entry(&line) {
            Ok((guid, port, fields)) => {
                parsed.entries.add(guid, port, fields);
            }
            Err(reason) => parsed.complaints.push(format!("line {number}: {reason}")),
        }
    }
    parsed
}

fn entry(line: &str) -> Result<(Guid, PortNum, FieldSet), String> {
    let mut words = line.split_ascii_whitespace();
    let (Some(guid), Some(port), Some(fields), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err("expected `GUID PORT FIELD[,FIELD…]`".into());
    };
    let guid: Guid = guid.parse().map_err(|e| format!("{e}"))?;
    let port: u8 = port.parse().map_err(|_| format!("port `{port}`: expected 0 to 254"))?;
    let fields = FieldSet::from_names(fields).ok_or_else(|| format!("`{fields}`: unknown field"))?;
    Ok((guid, PortNum(port), fields))
}
