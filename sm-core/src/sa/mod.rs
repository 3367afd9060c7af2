//! Subnet administration (specification volume 1, chapter 15): what hosts and tools ask the subnet manager.
//!
//! [`answer`] is a pure function of a [`Snapshot`](crate::snapshot::Snapshot) and a [`Request`]; [`Server`] adds what has
//! state: the queue, RMPP transfers, counters. It neither sends nor receives itself.

mod answer;
mod fair;
mod paths;
mod records;
mod selector;
mod server;

pub use answer::{Answer, Request, answer};
pub use paths::{Path, PathQuery, Side, Wanted};
pub use selector::Bound;
pub use server::{Server, ServerConfig, ServerStatistics};

#[cfg(test)]
mod tests;
