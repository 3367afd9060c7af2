//! Topology generators: from a few parameters to a [`Fabric`] as if it had been cabled.
//!
//! Hosts are called `H0`, `H1`, … in the order of their leaf switches, switches `S<level or group or coordinates>_<i>`.
//! Hosts come first in the fabric. Every link is up and at `Init`, no LID is assigned ([`assign_lids`] does that where a
//! file is routed without a subnet manager). The same parameters and seed give the same fabric on every machine.
//!
//! Sources of the families: Petrini and Vanneschi 1997 (k-ary n-trees), Öhring et al. 1995 (XGFT), Zahavi 2010 (PGFT:
//! parallel links), Ahn et al. 2009 (HyperX), Kim et al. 2008 (dragonfly), Shpiner et al. 2017 (dragonfly+), Kautz 1968,
//! Singla et al. 2012 (random regular graphs). Cost: linear in nodes and links.

mod dragonfly;
mod hyperx;
mod kautz;
mod plan;
mod random_regular;
mod torus;
mod xgft;

#[cfg(test)]
mod tests;

use mad::types::{Guid, Lid, LinkSpeed, LinkWidth};
use routing::fabric::{Fabric, FabricError, NodeId};

use plan::Plan;

/// A family of networks with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// Parallel-port generalised fat tree. Level 0 are the hosts; a node of level `i` has `m[i-1]` children, each node of
    /// level `i-1` has `w[i-1]` parents, joined by `p[i-1]` parallel links. `w[0]` must be 1.
    Xgft {
        /// Children of a node, by level.
        m: Vec<u16>,
        /// Parents of a node, by level.
        w: Vec<u16>,
        /// Parallel links, by level; empty for one each.
        p: Vec<u16>,
    },
    /// Switches in a row.
    Line {
        /// Number of switches.
        switches: u16,
        /// Hosts at each switch.
        hosts: u16,
    },
    /// Torus of any number of dimensions; dimension `k` leaves by ports `2k+1` (up) and `2k+2` (down), hosts follow. A
    /// dimension of 2 has one link instead of two.
    Torus {
        /// Switches in each dimension.
        dims: Vec<u16>,
        /// Hosts at each switch.
        hosts: u16,
    },
    /// Random regular graph without parallel links.
    RandomRegular {
        /// Number of switches.
        switches: u16,
        /// Links of each switch to other switches.
        degree: u16,
        /// Hosts at each switch.
        hosts: u16,
    },
    /// Canonical dragonfly: groups are complete graphs, global links are spread evenly.
    Dragonfly {
        /// Hosts at each switch.
        p: u16,
        /// Switches in a group.
        a: u16,
        /// Global links of each switch.
        h: u16,
        /// Groups, at most `a * h + 1`; 0 for that many.
        g: u16,
    },
    /// Dragonfly+: groups are complete bipartite graphs of leaves (with hosts) and spines (with global links).
    DragonflyPlus {
        /// Hosts at each leaf.
        p: u16,
        /// Leaves in a group.
        leaves: u16,
        /// Spines in a group.
        spines: u16,
        /// Global links of each spine.
        h: u16,
        /// Groups, at most `spines * h + 1`.
        g: u16,
    },
    /// HyperX: all switches that differ in one coordinate are joined directly.
    HyperX {
        /// Switches in each dimension.
        dims: Vec<u16>,
        /// Parallel links of each pair.
        width: u16,
        /// Hosts at each switch.
        hosts: u16,
    },
    /// Kautz graph K(d, n) with its arcs taken as links: `(d + 1) * d^n` switches of at most `2d` links.
    Kautz {
        /// Alphabet of `degree + 1` letters.
        degree: u16,
        /// Words of `diameter` + 1 letters; no two switches are farther apart than `diameter` + 1.
        diameter: u16,
        /// Hosts at each switch.
        hosts: u16,
    },
}

impl Topology {
    /// A fat tree without parallel links.
    pub fn fat_tree(m: &[u16], w: &[u16]) -> Self {
        Self::Xgft { m: m.to_vec(), w: w.to_vec(), p: Vec::new() }
    }

    /// Two levels: `leaves` leaf switches with `hosts` hosts each, all joined to `spines` spines.
    pub fn tree(leaves: u16, spines: u16, hosts: u16) -> Self {
        Self::fat_tree(&[hosts, leaves], &[1, spines])
    }

    /// The largest non-blocking three-level tree of switches with `radix` ports: `radix^3 / 4` hosts.
    pub fn full_tree(radix: u16) -> Self {
        let half = radix / 2;
        Self::fat_tree(&[half, half, radix], &[1, half, half])
    }

    /// `switches` switches in a row with one host on each.
    pub fn line(switches: u16) -> Self {
        Self::Line { switches, hosts: 1 }
    }
}

/// How nodes are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Names {
    /// `H0`, `S1_0`.
    #[default]
    Plain,
    /// Names that parsers trip over: blanks, quotes, ` - `, brackets, `#`, non-ASCII letters, 64 bytes with no end (B76,
    /// B78).
    Odd,
}

/// What is varied about a topology.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Speed of every link.
    pub speed: LinkSpeed,
    /// Width of every link.
    pub width: LinkWidth,
    /// Every host has two ports, the second one on the neighbouring leaf (leaves 0 and 1, 2 and 3, … are pairs).
    pub dual_port: bool,
    /// Every host is there twice: `H3` on rail 0 and its second adapter `H3_1` on the neighbouring leaf, both with one
    /// SystemImageGUID.
    pub dual_rail: bool,
    /// Share of the links between switches that are missing, 0 to 1.
    pub missing_links: f64,
    /// Share of the links between switches that run at one lane of the lowest speed, 0 to 1.
    pub degraded_links: f64,
    /// Number of switches without hosts that are missing.
    pub missing_switches: usize,
    /// Seed of everything that is random.
    pub seed: u64,
    /// How nodes are called.
    pub names: Names,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            speed: LinkSpeed::Edr,
            width: LinkWidth::X4,
            dual_port: false,
            dual_rail: false,
            missing_links: 0.0,
            degraded_links: 0.0,
            missing_switches: 0,
            seed: 1,
            names: Names::Plain,
        }
    }
}

/// Why a topology can't be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GenerateError {
    /// A parameter is out of range or does not fit another.
    #[error("{0}")]
    Parameter(String),
    /// A switch would need more ports than there are numbers for.
    #[error("switch {0} would need more than 254 ports")]
    TooManyPorts(String),
    /// More end ports than unicast LIDs.
    #[error("{0} end ports are needed, but there are only 49151 unicast LIDs")]
    TooManyLids(usize),
    /// Links could not be laid without repeating a pair, in many attempts.
    #[error("no random regular graph found for {switches} switches of degree {degree}")]
    NoRegularGraph {
        /// Switches asked for.
        switches: u16,
        /// Degree asked for.
        degree: u16,
    },
    /// The fabric refused a node or link.
    #[error(transparent)]
    Fabric(#[from] FabricError),
}

/// First node GUID of hosts; each host takes its number of ports plus one.
pub const HOST_GUIDS: u64 = 0x0002_c901_0000_0000;
/// First node GUID of switches.
pub const SWITCH_GUIDS: u64 = 0x0002_c902_0000_0000;

/// Makes a fabric.
///
/// # Errors
/// Parameters that make no network, or one with too many ports or LIDs.
pub fn generate(topology: &Topology, options: &Options) -> Result<Fabric, GenerateError> {
    let mut plan = Plan::default();
    match topology {
        Topology::Xgft { m, w, p } => xgft::lay(&mut plan, m, w, p)?,
        Topology::Line { switches, hosts } => torus::line(&mut plan, *switches, *hosts)?,
        Topology::Torus { dims, hosts } => torus::lay(&mut plan, dims, *hosts)?,
        Topology::RandomRegular { switches, degree, hosts } => {
            random_regular::lay(&mut plan, *switches, *degree, *hosts, options.seed)?;
        }
        Topology::Dragonfly { p, a, h, g } => dragonfly::lay(&mut plan, *p, *a, *h, *g)?,
        Topology::DragonflyPlus { p, leaves, spines, h, g } => {
            dragonfly::lay_plus(
                &mut plan,
                dragonfly::Plus { p: *p, leaves: *leaves, spines: *spines, h: *h, g: *g },
            )?;
        }
        Topology::HyperX { dims, width, hosts } => hyperx::lay(&mut plan, dims, *width, *hosts)?,
        Topology::Kautz { degree, diameter, hosts } => kautz::lay(&mut plan, *degree, *diameter, *hosts)?,
    }
    plan.build(options)
}

/// Gives every end port a LID, counting up from 1 in the order of nodes and ports.
///
/// # Errors
/// [`GenerateError::TooManyLids`].
pub fn assign_lids(fabric: &mut Fabric) -> Result<(), GenerateError> {
    assign_lids_with_lmc(fabric, 0)
}

/// The same with 2^`lmc` LIDs (0 to 7) for each port of adapters and routers, and one for each switch.
///
/// # Errors
/// More LIDs than there are.
pub fn assign_lids_with_lmc(fabric: &mut Fabric, lmc: u8) -> Result<(), GenerateError> {
    let ids: Vec<NodeId> = fabric.node_ids().collect();
    let mut next = 1_usize;
    for node in ids {
        let lmc = if fabric.node(node).is_switch() { 0 } else { lmc.min(7) };
        let ends: Vec<mad::types::PortNum> = fabric.node(node).end_ports().map(|(port, _)| port).collect();
        for number in ends {
            let lids = 1 << lmc;
            let base = next.next_multiple_of(lids);
            next = base + lids;
            if let Some(port) = fabric.node_mut(node).port_mut(number) {
                (port.lid, port.lmc) = (u16::try_from(base).ok().and_then(Lid::new), lmc);
            }
        }
    }
    let last = u16::try_from(next - 1).ok().and_then(Lid::new);
    if last.is_some() || next == 1 { Ok(()) } else { Err(GenerateError::TooManyLids(next - 1)) }
}

/// The node GUID of host `index` in a fabric of hosts with one port.
pub const fn host_guid(index: u64) -> Guid {
    Guid(HOST_GUIDS + 2 * index)
}

/// The node GUID of switch `index`, in the order of creation.
pub const fn switch_guid(index: u64) -> Guid {
    Guid(SWITCH_GUIDS + index)
}

/// All coordinates of a grid, the last one running fastest.
fn grid(dims: &[u16]) -> impl Iterator<Item = Vec<u16>> + '_ {
    let total: usize = dims.iter().map(|d| usize::from(*d)).product();
    (0..total).map(move |mut index| {
        let mut coordinates = vec![0; dims.len()];
        for (slot, size) in coordinates.iter_mut().zip(dims).rev() {
            *slot = (index % usize::from(*size)) as u16;
            index /= usize::from(*size);
        }
        coordinates
    })
}

/// `1_0_2`.
fn joined(coordinates: &[u16]) -> String {
    coordinates.iter().map(u16::to_string).collect::<Vec<_>>().join("_")
}

/// Refuses a parameter outside a range.
fn check(
    what: &str,
    value: impl Into<u64>,
    range: std::ops::RangeInclusive<u64>,
) -> Result<(), GenerateError> {
    let value = value.into();
    if range.contains(&value) {
        return Ok(());
    }
    Err(GenerateError::Parameter(format!("{what} is {value}: expected {} to {}", range.start(), range.end())))
}
