//! The subnet manager on simulated fabrics, in virtual time.

mod bring_up;
mod faults;
mod manager;
