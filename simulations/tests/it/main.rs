//! The subnet manager on simulated fabrics, in virtual time.

#![allow(clippy::unwrap_used, reason = "helpers of tests may fail as the tests do")]

mod aliases;
mod bring_up;
mod captures;
mod faults;
mod scenarios;
