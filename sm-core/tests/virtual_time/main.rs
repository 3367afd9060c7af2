//! The subnet manager against simulated fabrics, in virtual time: what happens, when, and how many datagrams it takes.

mod bring_up;
mod changes;
mod discovery;
mod managers;
mod ports;
mod rig;
mod tables;
mod traps;
