//! Subnet administration (specification volume 1, chapter 15): what hosts and tools ask the subnet manager.
//!
//! [`answer`] is a pure function of a [`Snapshot`](crate::snapshot::Snapshot), of what ports registered ([`Registry`]) and
//! of a [`Request`]; [`serve`] carries out the requests that change registrations too. [`Server`] adds what has state on
//! the way: the queue, RMPP transfers, reports, counters. It neither sends nor receives itself.

mod answer;
mod complaints;
mod fair;
mod figures;
mod heavy;
mod paths;
mod records;
pub mod registry;
mod reports;
mod selector;
mod server;
mod transfers;
mod wish;

pub use answer::{Answer, Request, answer, serve};
pub use complaints::Complaint;
pub use figures::{ByAttribute, Figures};
pub use heavy::{is_light, is_registration};
pub use paths::{Path, PathQuery, Side, Wanted};
pub use registry::Registry;
pub use selector::Bound;
pub use server::{Server, ServerConfig, ServerStatistics, acknowledges};
pub use wish::Wish;

#[cfg(test)]
mod tests;
