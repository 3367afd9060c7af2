//! What an operator says of a torus: the content of opensm's torus-2QoS.conf, read by [`crate::formats::torus`].

use mad::types::{Guid, PortNum};

/// A torus or mesh as it is meant to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TorusConfig {
    /// x, y and z.
    pub dimensions: [TorusDimension; 3],
    /// Where the coordinates begin; the first of which all switches are there is taken.
    pub seeds: Vec<TorusSeed>,
    /// The most parallel cables between two switches, and the most hosts of a switch, its own port 0 included.
    pub max_ports: u16,
    /// Switch ports in the order in which hosts are dealt to parallel cables; ports not listed follow by number.
    pub port_order: Vec<PortNum>,
    /// Changes of the torus that opensm writes to its log; of no meaning here.
    pub max_changes: u32,
}

/// One dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TorusDimension {
    /// Number of switches along it, 1 or more.
    pub radix: u16,
    /// Whether it closes to rings.
    pub closed: bool,
}

/// The neighbours of one switch by direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TorusSeed {
    /// NodeGUID of the switch.
    pub origin: Guid,
    /// NodeGUIDs of the neighbours: forward and backward along x, y and z.
    pub neighbours: [[Option<Guid>; 2]; 3],
    /// By how much the first place of each dimension lies ahead of `origin`.
    pub dateline: [i32; 3],
}
