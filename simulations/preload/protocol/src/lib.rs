//! What the preload library and the fabric emulator say to each other, and the layouts of the kernel's umad interface
//! (`<rdma/ib_user_mad.h>`) that both need.
//!
//! It is a crate of its own because the emulator must not link the preload library, whose `open` would replace the C
//! library's.
