//! Serves a simulated fabric in real time on a local socket, for unmodified programs that run under the preload library
//! (`simulations/preload`): infiniband-diags, osmtest, opensm, and `rsm` itself.
//!
//! What a program sees is the kernel's umad interface as `<rdma/ib_user_mad.h>` and the kernel's
//! `Documentation/infiniband/user_mad.rst` define it. All of its logic (agents, method masks, transaction IDs,
//! timeouts, RMPP) is here, as state machines without I/O; the preload library only carries reads and writes over.
//!
//! - [`backend`]: what is needed of a fabric;
//! - [`fabric`]: the simulated world as such a fabric;
//! - [`umad`]: the kernel's umad layer;
//! - [`console`]: faults by command, in ibsim's words;
//! - [`sysfs`]: the files that programs look for ports in;
//! - [`kernel`]: nodes that are adapters of a real kernel;
//! - [`server`]: sockets, and the thread that joins all of it;
//! - [`run`]: starting it, and programs in it.

pub mod backend;
mod commands;
pub mod console;
pub mod fabric;
pub mod kernel;
pub mod run;
pub mod server;
pub mod sysfs;
pub mod umad;
