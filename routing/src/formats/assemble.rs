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

/// Connects all half links and marks their ports as up.
///
/// # Errors
/// Two lines that contradict each other.
pub(super) fn connect(fabric: &mut Fabric, halves: &[HalfLink<'_>]) -> Result<(), FormatError> {
    for (index, half) in halves.iter().enumerate() {
        if fabric.peer(half.from) == Some(half.to) {
            continue;
        }
        if let Err(error) = fabric.connect(half.from, half.to) {
            let used = [half.from, half.to].into_iter().find(|end| fabric.peer(*end).is_some());
            let of_port =
                |other: &&HalfLink<'_>| used.is_some_and(|end| [other.from, other.to].contains(&end));
            let line = halves[..index].iter().find(of_port).map(|first| first.at.line());
            let by = line.map(|line| format!(" by line {line}")).unwrap_or_default();
            let expected = "each port in one link only, the same from both ends";
            return Err(half.at.error_with(format!("{error}{by}"), expected));
        }
        for end in [half.from, half.to] {
            if let Some(port) = fabric.node_mut(end.node).port_mut(end.port) {
                port.state = PortState::Active;
                port.phys_state = PortPhysState::LinkUp;
            }
        }
    }
    Ok(())
}
