//! The text that ibnetdiscover (infiniband-diags) prints: written byte for byte, and read as real sites' files are, with
//! lost tabs, terminal noise, grouping by chassis, missing parts.

mod order;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use read::read;
pub use write::{WriteOptions, write};
