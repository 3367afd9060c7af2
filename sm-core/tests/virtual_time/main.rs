//! The subnet manager against simulated fabrics, in virtual time: what happens, when, and how many datagrams it takes.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod aliases;
mod balance;
mod bring_up;
mod changes;
mod discovery;
mod failover;
mod keys;
mod lanes;
mod managers;
mod memory;
mod order;
mod partitions;
mod ports;
mod rig;
mod tables;
mod traps;
