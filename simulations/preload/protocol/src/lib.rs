//! What the preload library and the fabric emulator say to each other, and the layouts of the kernel's umad interface
//! (`<rdma/ib_user_mad.h>`) that both need.
//!
//! It is a crate of its own because the emulator must not link the preload library, whose `open` would replace the C
//! library's.
//!
//! All talk goes over `SOCK_SEQPACKET` connections to one unix socket, [`SOCKET_NAME`] in the emulator's directory. The
//! first packet of a connection is a [`Request`]; its answer is a [`Reply`]. After [`Request::Open`] the connection is
//! the umad (or issm) descriptor itself: both sides then send [`Frame`]s. Everything else (ioctls, refreshing sysfs,
//! console commands) takes a short connection of its own, so that an answer never queues behind received MADs.
//! A program's descriptor may have [`ring`]s besides ([`Operation::Rings`]): then packets lie there, and the socket only
//! says that they do.
#![deny(unsafe_code)]

mod message;
pub mod patience;
pub mod program;
pub mod ring;
pub mod socket;
pub mod umad;

pub use message::{DeviceKind, Frame, FrameKind, MAX_PACKET, Operation, Reply, Request};

/// The emulator's socket within its directory.
pub const SOCKET_NAME: &str = "socket";

/// Environment: the emulator's directory, or its socket.
pub const ENV_EMULATE: &str = "RSM_EMULATE";

/// Environment: where on the fabric the program sits: a node's description or GUID, several separated by commas (each
/// becomes a device of its own). Unset or empty: the first channel adapter.
pub const ENV_NODE: &str = "RSM_NODE";

/// Environment: `0` lets the program's threads sleep at once, where they would look for a moment whether an answer comes
/// ([`patience`]). A program's own processor time is seen better so; answers come later.
pub const ENV_LOOK: &str = "RSM_LOOK";

/// How the client's end of an opened descriptor is named in the abstract namespace. The name is the session's key, and
/// by it a program that inherited the descriptor through `exec` knows it again.
pub const SESSION_PREFIX: &str = "rsm-emulate.";
