//! The subnet manager: `observe -> plan -> check -> apply -> serve`, pure in the middle, with I/O at the two ends only.
#![forbid(unsafe_code)]

pub mod config;
pub mod observed;
pub mod sa;
pub mod snapshot;
