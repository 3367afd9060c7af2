//! The preload library of `rsm emulate`: unmodified, dynamically linked programs see the ports of an emulated fabric
//! as if the kernel's `ib_umad` served them.
//!
//! Loaded with `LD_PRELOAD`, it replaces the C library's functions that name or use a umad device:
//! - paths under `/sys/class/infiniband*` and `/dev/infiniband` lead into a real directory that the emulator keeps true
//!   ([`paths`]);
//! - opening `umadN` or `issmN` connects a socket to the emulator, and that socket *is* the descriptor that the program
//!   gets, so that `poll`, `select`, `epoll`, `fcntl` and `fork` need no help ([`descriptors`]);
//! - `read`, `write` and `ioctl` on such a descriptor become messages of [`rsm_preload_protocol`] ([`device`]), in
//!   shared memory while the emulator is awake ([`rsm_preload_protocol::program`]);
//! - `poll` looks at that memory for a moment before it sleeps ([`waiting`]).
//!
//! Everything that a umad device *does* (agents, transaction IDs, timeouts, RMPP) is the emulator's business.
//! Statically linked programs, and those that make raw system calls, are out of reach. Our own system calls are raw
//! (rustix), so that they never come back here.
//!
//! `unsafe` is confined to `wrappers`, which speaks C, and to `real`, which finds the C library's own functions.

pub mod descriptors;
pub mod device;
pub mod emulator;
pub mod paths;
#[cfg(not(test))]
mod real;
pub mod waiting;
#[cfg(not(test))]
mod wrappers;
