//! The fabric graph, topology file formats, routing engines, multicast trees and the verifier: everything of a subnet
//! manager that can be done from a file. No I/O but reading and writing those files.
#![forbid(unsafe_code)]

pub mod adaptive;
pub mod engines;
pub mod fabric;

pub mod formats;
pub mod multicast;
pub mod routes;
pub mod study;
pub mod verify;
