//! The `rsm` binary as its users meet it, on a host without InfiniBand: configuration, bad input, output.

mod bad_files;
mod bad_input;
mod config;
mod demo;
mod failures;
mod generate;
mod offline;
mod output;
mod rsm;
mod simulate;
mod steering;
mod traffic;
mod verify;
