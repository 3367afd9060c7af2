//! What can be wrong with a walk, and the walk itself.

use serde::Serialize;

use super::hop::{Hop, hop};
use super::network::{Exit, Network};
use crate::fabric::SwitchIndex;
use crate::routes::Routes;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The packet comes back to a switch where it was.
    Loop,
    /// A switch has no entry (255) for the LID.
    Hole,
    /// The exit port has no link that is up, or the switch has no such port.
    DeadPort,
    /// The packet is handed to an end port that does not own the LID.
    WrongEnd,
}

impl FaultKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Loop, Self::Hole, Self::DeadPort, Self::WrongEnd];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loop => "loop",
            Self::Hole => "hole",
            Self::DeadPort => "exit without a link",
            Self::WrongEnd => "delivered to the wrong port",
        }
    }
}

/// The first fault, in order of LID and of the switch where the walk begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// What went wrong.
    pub kind: FaultKind,
    /// The LID.
    pub lid: u16,
    /// The walk, up to the fault; a loop is shown until it closes.
    pub path: Vec<Hop>,
}

/// The walk of a LID from a switch where it is known to fail.
pub(super) fn fault(
    network: &Network<'_>,
    routes: &Routes,
    lid: u16,
    from: SwitchIndex,
    kind: FaultKind,
) -> Fault {
    let mut path: Vec<Hop> = Vec::new();
    let mut visited = vec![false; network.graph.switch_count()];
    let mut at = from;
    loop {
        let known = (at as usize) < routes.lfts.switch_count();
        let port = if known { routes.lfts.row(at).get(usize::from(lid)).copied() } else { None };
        let port = port.unwrap_or(crate::routes::NO_PORT);
        path.push(hop(network, at, port));
        if visited[at as usize] {
            break;
        }
        visited[at as usize] = true;
        let Exit::Arc(arc) = network.exit(at, port) else { break };
        at = network.to(arc);
    }
    Fault { kind, lid, path }
}
