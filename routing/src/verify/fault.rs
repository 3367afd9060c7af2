//! What can be wrong with a walk, or longer than it has to be, and the walk itself.

use std::fmt;

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

/// A walk that takes more hops than it has to. It is no fault: engines take them to be free of credit loops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Detour {
    /// The LID.
    pub lid: u16,
    /// Hops between switches that it takes.
    pub hops: u16,
    /// The fewest that there are.
    pub fewest: u16,
    /// The walk.
    pub path: Vec<Hop>,
}

impl fmt::Display for Detour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LID {}, {} hops where {} suffice:", self.lid, self.hops, self.fewest)?;
        self.path.iter().try_for_each(|hop| write!(f, " {hop}"))
    }
}

/// The walk of a LID from a switch from where it is known to arrive by a detour.
pub(super) fn detour(network: &Network<'_>, routes: &Routes, lid: u16, from: SwitchIndex) -> Detour {
    let path = walk(network, routes, lid, from);
    let owner = network.owner(usize::from(lid)).map_or(from, |owner| owner.switch);
    let fewest = network.hops_from(&[owner])[from as usize];
    Detour { lid, hops: path.len().saturating_sub(1) as u16, fewest, path }
}

/// The walk of a LID from a switch where it is known to fail.
pub(super) fn fault(
    network: &Network<'_>,
    routes: &Routes,
    lid: u16,
    from: SwitchIndex,
    kind: FaultKind,
) -> Fault {
    Fault { kind, lid, path: walk(network, routes, lid, from) }
}

/// Where a LID goes from a switch, to its end or until it comes round.
fn walk(network: &Network<'_>, routes: &Routes, lid: u16, from: SwitchIndex) -> Vec<Hop> {
    let mut path: Vec<Hop> = Vec::new();
    let mut visited = vec![false; network.graph.switch_count()];
    let mut at = from;
    loop {
        let known = (at as usize) < routes.lfts.switch_count();
        let port = if known { routes.lfts.row(at).get(usize::from(lid)) } else { None };
        let port = port.unwrap_or(crate::routes::NO_PORT);
        path.push(hop(network, at, port));
        if visited[at as usize] {
            break;
        }
        visited[at as usize] = true;
        let Exit::Arc(arc) = network.exit(at, port) else { break };
        at = network.to(arc);
    }
    path
}
