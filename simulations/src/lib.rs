//! A simulated InfiniBand fabric: devices, virtual time, generators, and an emulator that stock tools attach to.
//!
//! - [`generate`]: fat trees, tori, dragonflies and their like, with faults on top.
//! - [`emulate`]: the fabric in real time on a local socket.
#![forbid(unsafe_code)]

pub mod emulate;
pub mod generate;
