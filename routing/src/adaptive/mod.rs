//! Routing that follows the load: for switches that do it themselves, groups of exits to choose from; for the others,
//! tables that are moved a little at a time by what was measured.

mod engine;
pub mod groups;
mod load;
mod ports;
mod rebalance;

pub use engine::AdaptiveMinHop;
pub use load::Load;
pub use ports::PortSet;
pub use rebalance::{Damping, Settings, Step, step};
