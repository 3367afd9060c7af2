//! Adapters of a real kernel on the emulated fabric. The kernel module `vib` (`simulations/kernel`) makes one for each open of
//! [`DEVICE`]; what the kernel's stack sends is read there, and what is written there arrives at its queue pairs. The emulated
//! node is the adapter's firmware: its management agents, and the wire.
//!
//! - [`message`]: the module's messages, byte by byte;
//! - [`translate`]: between those and what the fabric knows;
//! - [`Adapter`]: one open adapter.

mod adapter;
mod message;
#[cfg(test)]
mod tests;
mod translate;

pub(super) use adapter::{Adapter, Event};
pub(super) use translate::Parcel;

/// Where the module is.
pub const DEVICE: &str = "/dev/vib";

/// Why a node is not an adapter of the kernel.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The module is not there.
    #[error(
        "{DEVICE} is missing: adapters of the kernel need the module vib; simulations/kernel/README.md says how to build it, and \
         how to run this in a virtual machine that has it"
    )]
    NoModule,
    /// The module's file could not be opened, or refuses the adapter.
    #[error("{DEVICE}: {0}")]
    Device(std::io::Error),
    /// The kernel could not make the adapter.
    #[error("{node}: the kernel makes no adapter of it: {source}")]
    Refused {
        /// The node.
        node: String,
        /// The kernel's reason.
        source: std::io::Error,
    },
    /// The node does not fit the module.
    #[error(
        "{node}: adapters of the kernel have 1 to {} ports, this node is a {kind} with {ports}",
        message::PORTS_MAX
    )]
    Unfit {
        /// The node.
        node: String,
        /// What it is.
        kind: &'static str,
        /// Its ports.
        ports: usize,
    },
    /// There is no such node.
    #[error("there is no node `{0}`")]
    NoNode(String),
    /// A node is one already.
    #[error("{0} is an adapter of the kernel already")]
    Taken(String),
    /// The emulator has ended meanwhile.
    #[error("the emulator has ended")]
    Ended,
}
