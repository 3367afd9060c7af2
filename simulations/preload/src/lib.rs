//! The preload library of `rsm emulate`: unmodified, dynamically linked programs see the ports of an emulated fabric
//! as if the kernel's `ib_umad` served them.
//!
//! Loaded with `LD_PRELOAD`, it replaces the C library's functions that name or use a umad device:
//! - paths under `/sys/class/infiniband*` and `/dev/infiniband` lead into a real directory that the emulator keeps true;
//! - opening `umadN` or `issmN` connects a socket to the emulator, and that socket *is* the descriptor that the program
//!   gets, so that `poll`, `select`, `epoll`, `fcntl` and `fork` need no help;
//! - `read`, `write` and `ioctl` on such a descriptor become messages of [`rsm_preload_protocol`].
//!
//! Everything that a umad device *does* (agents, transaction IDs, timeouts, RMPP) is the emulator's business.
//! Statically linked programs, and those that make raw system calls, are out of reach.
