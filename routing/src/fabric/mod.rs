//! The fabric as a graph: nodes with their ports, and the cables between them.
//!
//! [`Fabric`] is the model that files, the sweep and the simulator share; it is a petgraph [`StableUnGraph`](petgraph::stable_graph::StableUnGraph) whose edges
//! carry both port numbers, so that parallel cables and a cable back to the same switch are kept. Hot loops use the flat
//! [`SwitchGraph`] made from it.

mod degraded;
mod link_change;
mod model;
mod switch_graph;
#[cfg(test)]
pub(crate) mod testing;

pub use degraded::degraded_links;
pub use link_change::LinkChange;
pub use model::{Fabric, FabricError, Link, Node, NodeId, Port, PortRef, SwitchFacts};
pub use switch_graph::{Arc, Destination, SwitchGraph, SwitchIndex};
