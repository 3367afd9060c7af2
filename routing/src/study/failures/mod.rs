//! What the loss of links or switches costs: who is cut off, how many entries move, how the load changes, and whether the
//! way from the old tables to the new ones is safe.
//!
//! A [`Case`] is what fails at once. [`without`] gives the fabric that is left; the caller routes it (and takes the time,
//! there is no clock here), and [`compare`] lays the new tables beside the old ones. Cost of a comparison: one pass of the
//! verifier, one scan for changed entries, and one pass over all LIDs for credit loops on the way.

mod cases;
mod compare;
#[cfg(test)]
mod tests;

pub use cases::{Case, CasesError, Kind, draw, without};
pub use compare::{Cost, Standing, compare, moved};
