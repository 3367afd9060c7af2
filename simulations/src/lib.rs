//! A simulated InfiniBand fabric: devices, virtual time, generators, and an emulator that stock tools attach to.
#![forbid(unsafe_code)]

pub mod emulate;
