//! The `rsm` binary as its users meet it, on a host without InfiniBand: configuration, bad input, output.

mod bad_input;
mod config;
mod demo;
mod offline;
mod output;
mod rsm;
mod traffic;
