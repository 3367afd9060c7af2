//! Joins nodes by the half links that files list: each end names its peer.

use mad::types::{PortNum, PortPhysState, PortState};

use super::error::{Cursor, FormatError};
use crate::fabric::{Fabric, NodeId, PortRef};

/// One end of a cable as a line tells it, with its place.
pub(super) struct HalfLink<'a> {
    /// This end.
    pub from: PortRef,
    /// The other end.
    pub to: PortRef,
    /// Where it stands.
    pub at: Cursor<'a>,
}

/// What to do when two lines contradict each other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Conflict {
    /// It is an error.
    Refuse,
    /// The first line counts.
    KeepFirst,
}

/// Checks that a port is one of its node's.
pub(super) fn check_port(
    fabric: &Fabric,
    node: NodeId,
    port: u64,
    at: &Cursor<'_>,
) -> Result<PortNum, FormatError> {
    let owner = fabric.node(node);
    match u8::try_from(port) {
        Ok(number) if number >= 1 && number <= owner.num_ports => Ok(PortNum(number)),
        _ => Err(at.error_with(
            format!("port {port} of \"{}\"", owner.description),
            format!("a port from 1 to {}", owner.num_ports),
        )),
    }
}

/// Connects all half links and marks their ports as up. Returns what was left out under [`Conflict::KeepFirst`].
pub(super) fn connect(
    fabric: &mut Fabric,
    halves: &[HalfLink<'_>],
    conflict: Conflict,
) -> Result<Vec<String>, FormatError> {
    let mut warnings = Vec::new();
    for half in halves {
        if fabric.peer(half.from) == Some(half.to) {
            continue;
        }
        if let Err(error) = fabric.connect(half.from, half.to) {
            let refusal =
                half.at.error_with(error.to_string(), "each port in one link only, the same from both ends");
            if conflict == Conflict::Refuse {
                return Err(refusal);
            }
            warnings.push(format!("{refusal}; the first line counts"));
            continue;
        }
        for end in [half.from, half.to] {
            if let Some(port) = fabric.node_mut(end.node).port_mut(end.port) {
                port.state = PortState::Active;
                port.phys_state = PortPhysState::LinkUp;
            }
        }
    }
    Ok(warnings)
}
