//! The subnet manager: `observe -> plan -> check -> apply -> serve`, pure in the middle, with I/O at the two ends only.
#![forbid(unsafe_code)]

pub mod config;
pub mod observed;
pub mod sa;
pub mod snapshot;

#[cfg(test)]
extern crate self as sm_core;
#[cfg(test)]
#[allow(unreachable_pub, missing_docs, dead_code)]
mod testing;
