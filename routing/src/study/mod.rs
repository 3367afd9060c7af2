//! Studies of a routed fabric that no packet is sent for: what traffic meets on its routes, and what a failure costs.
//!
//! Like engines and verifier they are pure: a seed is an argument, results do not depend on the number of threads.

pub mod failures;
pub mod picture;
pub mod traffic;
