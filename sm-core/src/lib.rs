//! The subnet manager: `observe -> plan -> check -> apply -> serve`, pure in the middle, with I/O at the two ends only.
#![forbid(unsafe_code)]

pub mod aliases;
pub mod apply;
pub mod config;
pub mod daemon;
pub mod keys;
pub mod merge;
pub mod metrics;
pub mod multicast;
pub mod observed;
pub mod partitions;
pub mod plan;
pub mod qos;
pub mod replication;
pub mod request;
pub mod sa;
pub mod settings;
pub mod sm;
pub mod snapshot;
pub mod store;
pub mod sweep;

#[cfg(test)]
extern crate self as sm_core;
#[cfg(test)]
#[allow(unreachable_pub, missing_docs, dead_code)]
mod testing;
