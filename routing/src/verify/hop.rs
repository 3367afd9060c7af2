//! A step of a path, in words.

use std::fmt;

use mad::types::Guid;
use serde::Serialize;

use super::network::Network;
use crate::fabric::SwitchIndex;

/// A switch on a path and the port by which the packet leaves it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hop {
    /// NodeGUID.
    pub guid: Guid,
    /// NodeDescription.
    pub name: String,
    /// The exit port, 255 for none.
    pub port: u8,
}

impl fmt::Display for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" ({}) port {}", self.name, self.guid, self.port)
    }
}

/// A step from a switch of the graph.
pub(super) fn hop(network: &Network<'_>, s: SwitchIndex, port: u8) -> Hop {
    Hop { guid: network.graph.guid(s), name: network.graph.name(s).into(), port }
}
