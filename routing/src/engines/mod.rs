//! Routing engines, one file each, behind [`RoutingEngine`]. An attempt is a pure function: it fails without leftovers, and
//! the same graph gives the same bytes whatever the order of discovery and the number of threads (B21, B24).

use mad::types::Guid;

use crate::fabric::SwitchGraph;
use crate::routes::Routes;

/// What operators steer engines with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoutingInput {
    /// Root switches (node GUIDs) for up/down and fat-tree engines; empty: found by the engine.
    pub root_guids: Vec<Guid>,
    /// Data VLs that every link between switches has, 1 to 15.
    pub data_vls: u8,
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
