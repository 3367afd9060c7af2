//! A simulated InfiniBand fabric: devices, virtual time, generators, and an emulator that stock tools attach to.
//!
//! - [`generate`]: fat trees, tori, dragonflies and their like, with faults on top.
//! - [`device`]: nodes that answer subnet management packets.
//! - [`world`]: devices joined by cables, agents on their ports, one event queue in virtual time.
//! - [`client`]: agents that join, register and ask as the programs of a host do.
//! - [`memory`]: a transport onto a simulated fabric in the same process.
//! - [`scenario`]: faults by schedule or by seed, and what must hold after them.
//! - [`emulate`]: the fabric in real time on a local socket.
#![forbid(unsafe_code)]

pub mod client;
pub mod device;
pub mod emulate;
pub mod generate;
pub mod memory;
pub mod scenario;
pub mod world;
