//! How management datagrams leave and reach this process.
//!
//! A [`Transport`] moves single 256-byte datagrams; windows, retries and matching are
//! the transaction engine's, segments are RMPP's. It is used from two threads at once: one that sends, one
//! that receives.

pub mod capture;
mod frame;
pub mod memory;
pub mod replay;
pub mod umad;

use std::time::Duration;

use crate::types::{Gid, QKey, Qpn, ServiceLevel};
use crate::wire::Mad;

/// Where a datagram goes to or came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// Destination (or source) LID; 0xFFFF for a directed-route SMP. Raw, since 0 and 0xFFFF do occur.
    pub lid: u16,
    /// Queue pair at the other end: 0 for SMPs, 1 for general services.
    pub qpn: Qpn,
    /// Q_Key to send with; [`QKey::GSI`] for general services, 0 for SMPs.
    pub qkey: QKey,
    /// Service level.
    pub sl: ServiceLevel,
    /// Low LMC bits of our own LID to send from (or that the datagram came to).
    pub path_bits: u8,
    /// Index in the local port's P_Key table by which the datagram goes or came.
    pub pkey_index: u16,
    /// Global route header, where there was or shall be one.
    pub grh: Option<GlobalRoute>,
}

/// The fields of a global route header that a sender chooses or a receiver sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GlobalRoute {
    /// The other end's GID.
    pub gid: Gid,
    /// Index in the local port's GID table.
    pub gid_index: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Traffic class.
    pub traffic_class: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
}

impl Address {
    /// By directed route: the route itself is in the SMP.
    pub const DIRECTED: Self = Self::smp(crate::types::Lid::PERMISSIVE);

    /// QP0 at a LID.
    pub const fn smp(lid: u16) -> Self {
        Self { lid, qpn: Qpn(0), qkey: QKey(0), sl: ServiceLevel(0), path_bits: 0, pkey_index: 0, grh: None }
    }

    /// QP1 at a LID with the well-known Q_Key.
    pub const fn gsi(lid: u16, sl: ServiceLevel) -> Self {
        Self { lid, qpn: Qpn(1), qkey: QKey::GSI, sl, path_bits: 0, pkey_index: 0, grh: None }
    }
}

/// A datagram with its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Where to, or where from.
    pub address: Address,
    /// The 256 bytes.
    pub mad: Mad,
}

/// What a transport hands up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// A datagram from the fabric.
    Datagram(Datagram),
    /// A request of ours came back unsent or unanswered; `errno` says why (`ETIMEDOUT` when no answer came
    /// within the time that the device was told).
    Returned {
        /// The request as it was sent.
        request: Datagram,
        /// The system's error number.
        errno: i32,
    },
}

/// Why a transport failed.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The call to the system failed; the datagram (if any) was not sent.
    #[error("{what}: {source}")]
    Io {
        /// What was tried, with the device's name.
        what: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// No agent is registered for the datagram's class.
    #[error("no agent is registered for management class 0x{0:02x}")]
    NoAgent(u8),
    /// The other side is gone for good: device removed, simulator ended.
    #[error("the transport is closed")]
    Closed,
}

impl TransportError {
    /// The system's error number, or the nearest one; what the transaction engine wants of a failed send.
    pub fn errno(&self) -> i32 {
        match self {
            Self::Io { source, .. } => source.raw_os_error().unwrap_or(libc::EIO),
            Self::NoAgent(_) => libc::EPROTONOSUPPORT,
            Self::Closed => libc::ENODEV,
        }
    }
}

/// Sends and receives single datagrams. All methods take `&self`: one thread sends while another receives.
pub trait Transport: Send + Sync {
    /// Queues one datagram for sending. `timeout` is how long the sender itself will wait for the answer,
    /// `None` for a datagram that has none; a kernel that matches answers to requests is told so and drops an
    /// answer that comes later.
    ///
    /// # Errors
    /// The datagram was not sent.
    fn send(&self, datagram: &Datagram, timeout: Option<Duration>) -> Result<(), TransportError>;

    /// Waits up to `timeout` for the next datagram; `Ok(None)` when none came, or when [`Transport::wake`] was
    /// called.
    ///
    /// # Errors
    /// The device failed; [`TransportError::Closed`] when nothing can come any more.
    fn receive(&self, timeout: Duration) -> Result<Option<Received>, TransportError>;

    /// Ends a `receive` that waits in another thread, soon.
    fn wake(&self);

    /// Whether transaction IDs' upper 32 bits belong to somebody else (the kernel), so that only the lower 32
    /// come back as sent. Matching must then ignore the upper half.
    fn owns_only_lower_tid(&self) -> bool {
        true
    }
}
