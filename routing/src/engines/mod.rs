//! Routing engines, one file each, behind [`RoutingEngine`]. An attempt is a pure function: it fails without leftovers, and
//! the same graph gives the same bytes whatever the order of discovery and the number of threads (B21, B24).

mod absent;
mod acyclic;
#[cfg(test)]
mod agreement;
mod apart;
mod base;
mod below;
mod best_arcs;
mod deal;
mod dor;
mod dragonfly;
mod escape;
mod few_uplinks;
mod file;
mod fill;
mod ftree;
mod hosted_spines;
mod lash;
mod layers;
mod minhop;
mod next_hops;
mod nue;
mod orphans;
mod patterns;
mod ranks;
mod relief;
mod room;
mod slots;
mod sssp;
mod standing;
mod targets;
#[cfg(test)]
pub(crate) mod testing;
mod torus;
mod unmeant;
mod updn;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mad::types::{Guid, PortNum};

use crate::adaptive::{AdaptiveMinHop, Load};
use crate::fabric::{Destination, SwitchGraph};
use crate::routes::Routes;

pub(crate) use acyclic::{Acyclic, Insert};
pub(crate) use best_arcs::with_best_arcs;
pub use dor::Dor;
pub use dragonfly::{Dragonfly, DragonflyPlus};
pub use file::FromFile;
pub use ftree::FatTree;
pub use lash::Lash;
pub use minhop::MinHop;
pub(crate) use next_hops::{NextHops, TARGETS};
pub use nue::Nue;
pub(crate) use ranks::{joined_order, upper_arcs};
pub use sssp::{DfSssp, Sssp};
pub use standing::{Chained, Standing, route_chain_from};
pub(crate) use targets::{hosts_in_tree_order, levels_from_hosts, widen};
pub use torus::{TorusConfig, TorusDimension, TorusSeed, TorusTwoQos};
pub use updn::{DownUp, UpDown};

/// What operators steer engines with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoutingInput {
    /// Root switches (node GUIDs) for up/down and fat-tree engines; empty: found by the engine.
    pub root_guids: Vec<Guid>,
    /// Data VLs that every link between switches has, 1 to 15.
    pub data_vls: u8,
    /// Weight in place of 1 for the hop out of a switch's port, by (NodeGUID, port), 1 to 255; read by `minhop` and `dor`.
    pub hop_weights: BTreeMap<(Guid, PortNum), u8>,
    /// Ids by NodeGUID that decide between switches of one rank, in place of the GUID; read by `updn`.
    pub ids: BTreeMap<Guid, u64>,
    /// Order of a switch's ports, by NodeGUID; ports not listed follow. Read by `dor`, which takes dimensions in it, and by
    /// the engines that spread by rank (`minhop`, `updn`, `dnup`, `ftree`, `dragonfly` and `dragonfly-plus`).
    pub port_order: BTreeMap<Guid, Vec<PortNum>>,
    /// Tables for the engine `file`; tables in force for `adaptive-minhop`.
    pub tables: Option<Routes>,
    /// Load that was measured on the tables in force, for `adaptive-minhop`.
    pub load: Option<Load>,
    /// Port GUIDs of compute nodes; empty: all hosts that are no I/O nodes. Hosts of each kind are spread by themselves, and
    /// levels and roots of a tree are found by compute nodes only; `sssp`, `dfsssp` and `nue` route kind after kind.
    pub compute_guids: BTreeSet<Guid>,
    /// Port GUIDs of I/O nodes.
    pub io_guids: BTreeSet<Guid>,
    /// Deal LIDs to equal paths by chance, from this seed, in place of evenly; read by the engines that spread by rank and
    /// by `dor`.
    pub scatter: Option<u64>,
    /// The most VLs that engines may use; 0: all that the links have.
    pub max_vls: u8,
    /// The same for `nue` alone.
    pub nue_max_vls: u8,
    /// The torus as it is meant to be, for `torus-2qos`; `None`: found from the wiring.
    pub torus: Option<TorusConfig>,
}

impl RoutingInput {
    /// VLs that an engine may use, 1 to 15.
    pub(crate) fn vls(&self) -> u8 {
        match (self.data_vls.clamp(1, 15), self.max_vls) {
            (links, 0) => links,
            (links, most) => links.min(most),
        }
    }

    /// The kind of a host: 0 for compute nodes, 1 for I/O nodes, 2 for those in neither list.
    fn kind_of(&self, host: &Destination) -> u8 {
        if self.io_guids.contains(&host.guid) {
            1
        } else if self.compute_guids.is_empty() || self.compute_guids.contains(&host.guid) {
            0
        } else {
            2
        }
    }

    /// Whether an end port is one by which the levels of a tree are counted.
    fn counts_levels(&self, d: &Destination) -> bool {
        d.host && self.kind_of(d) == 0
    }

    /// [`RoutingInput::hop_weights`] by arc number of `graph`; `None` when all are 1.
    fn arc_weights(&self, graph: &SwitchGraph) -> Option<Vec<u8>> {
        if self.hop_weights.is_empty() {
            return None;
        }
        let of = |s| graph.arcs(s).iter().map(move |arc| (graph.guid(s), PortNum(arc.out_port)));
        let keys = (0..graph.switch_count() as u32).flat_map(of);
        Some(keys.map(|key| self.hop_weights.get(&key).map_or(1, |w| (*w).max(1))).collect())
    }
}

/// Why an engine refuses a fabric. The text says precisely what it met.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RoutingError {
    /// The fabric is not what the engine is for.
    #[error("{engine}: {reason}")]
    Unsuitable {
        /// The engine's name.
        engine: &'static str,
        /// What it met and what it needs.
        reason: String,
    },
    /// The engine needs more virtual lanes than the links have.
    #[error("{engine}: needs {needed} virtual lanes, the links have {available}")]
    NotEnoughVls {
        /// The engine's name.
        engine: &'static str,
        /// Lanes needed, as far as known.
        needed: u8,
        /// Lanes available.
        available: u8,
    },
    /// No engine has this name.
    #[error("no routing engine is called `{name}`; there are: {known}")]
    UnknownEngine {
        /// The name as given.
        name: String,
        /// The names that exist.
        known: String,
    },
}

/// A routing engine.
pub trait RoutingEngine: Send + Sync {
    /// The name by which operators choose it.
    fn name(&self) -> &'static str;

    /// Computes the tables.
    ///
    /// # Errors
    /// The fabric or the lanes are not enough for this engine; nothing is left behind.
    fn route(&self, graph: &SwitchGraph, input: &RoutingInput) -> Result<Routes, RoutingError>;
}

/// The engines by their names.
static ENGINES: [&dyn RoutingEngine; 14] = [
    &MinHop,
    &UpDown,
    &DownUp,
    &FatTree,
    &Dor,
    &Sssp,
    &DfSssp,
    &Lash,
    &Nue,
    &FromFile,
    &Dragonfly,
    &DragonflyPlus,
    &TorusTwoQos,
    &AdaptiveMinHop,
];

/// The word in a chain of engines that keeps [`route_chain`] from ending with `minhop`.
pub const NO_FALLBACK: &str = "no_fallback";

/// The names of all engines, the default first.
pub fn names() -> impl Iterator<Item = &'static str> {
    ENGINES.iter().map(|e| e.name())
}

/// The engine called `name`; letter case counts for nothing.
///
/// # Errors
/// [`RoutingError::UnknownEngine`] with the names that exist.
pub fn by_name(name: &str) -> Result<&'static dyn RoutingEngine, RoutingError> {
    ENGINES.iter().find(|e| e.name().eq_ignore_ascii_case(name)).copied().ok_or_else(|| {
        RoutingError::UnknownEngine { name: name.into(), known: names().collect::<Vec<_>>().join(", ") }
    })
}

/// Tries engines in order and returns the first tables, with the reasons of those that refused before. Unless the chain
/// holds [`NO_FALLBACK`], `minhop` stands at its end.
///
/// # Errors
/// The reasons of all when none could route; an unknown name counts as a refusal.
pub fn route_chain<S: AsRef<str>>(
    chain: &[S],
    graph: &SwitchGraph,
    input: &RoutingInput,
) -> Result<(Routes, Vec<RoutingError>), Vec<RoutingError>> {
    let chained = route_chain_from(chain, &Arc::new(graph.clone()), input, None)?;
    Ok((chained.routes, chained.refused))
}

#[cfg(test)]
mod tests;
