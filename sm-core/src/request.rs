//! The requests that sweep and apply make, and how they ended, without transaction IDs and windows: those are the
//! engine's.

use std::time::Duration;

use mad::transactions::{Outcome, Request};
use mad::transport::{Address, Datagram};
use mad::types::{DirectedPath, Guid, MKey, PortNum};
use mad::wire::smp::Smp;
use mad::wire::{Attribute, Method, Status};
use routing::fabric::PortRef;

use crate::keys::KeyRing;
use crate::observed::{Observed, PortTable};

/// A subnet management packet to be sent along a directed route.
#[derive(Clone, Copy, Debug)]
pub struct SmpRequest {
    /// Where to.
    pub path: DirectedPath,
    /// Whose share of the window it takes: the node's GUID, or [`Guid::NONE`] for a node not known yet.
    pub destination: Guid,
    /// Get or Set.
    pub method: Method,
    /// Attribute ID.
    pub attribute_id: u16,
    /// Attribute modifier.
    pub modifier: u32,
    /// The M_Key of the port asked.
    pub m_key: MKey,
    /// The attribute; zeros in a Get.
    pub data: [u8; 64],
    /// Tries after the first, where they are not the configured number.
    pub retries: Option<u32>,
    /// How long the first try waits, where that is not the configured time.
    pub timeout: Option<Duration>,
}

impl SmpRequest {
    /// A Get of attribute `A`.
    pub fn get<A: Attribute>(path: DirectedPath, destination: Guid, modifier: u32) -> Self {
        Self {
            path,
            destination,
            method: Method::GET,
            attribute_id: A::ID,
            modifier,
            m_key: MKey::NONE,
            data: [0; 64],
            retries: None,
            timeout: None,
        }
    }

    /// A Set of an attribute.
    pub fn set<A: Attribute>(path: DirectedPath, destination: Guid, modifier: u32, value: &A) -> Self {
        let mut data = [0; 64];
        let whole = value.encode(&mut data);
        debug_assert!(whole, "every attribute of subnet management fits into 64 bytes");
        Self { method: Method::SET, data, ..Self::get::<A>(path, destination, modifier) }
    }

    /// A Get of a port's table, or a Set of it to `value`. `None` when there is no route to the port.
    pub fn port_table(
        observed: &Observed,
        end: PortRef,
        table: PortTable,
        value: Option<[u8; 64]>,
    ) -> Option<Self> {
        let node = observed.fabric.get(end.node)?;
        let (path, destination) = (observed.path_to(end)?, node.guid);
        let (attribute_id, modifier) =
            table.address(if node.is_switch() { end.port } else { PortNum::MANAGEMENT });
        let method = if value.is_some() { Method::SET } else { Method::GET };
        let data = value.unwrap_or([0; 64]);
        let (retries, timeout, m_key) = (None, None, MKey::NONE);
        Some(Self { path, destination, method, attribute_id, modifier, m_key, data, retries, timeout })
    }

    /// The same with the key of the port by which it enters.
    #[must_use]
    pub fn with_key(self, keys: &KeyRing, observed: &Observed) -> Self {
        Self { m_key: keys.of_request(observed, self.destination, &self.path), ..self }
    }

    /// Key of whose share of the window it takes: a node not known yet takes that of its route.
    pub fn window(&self) -> u64 {
        if self.destination.is_some() { self.destination.0 } else { route_key(&self.path) }
    }

    /// For the transaction engine.
    pub fn into_transaction(self) -> Request {
        let mut smp = Smp::directed(self.method, self.attribute_id, self.modifier, &self.path);
        smp.m_key.set(self.m_key.0);
        smp.data = self.data;
        let destination = self.window();
        let datagram = Datagram { address: Address::DIRECTED, mad: smp.into_mad() };
        Request { retries: self.retries, timeout: self.timeout, ..Request::new(datagram, destination) }
    }
}

/// FNV-1a over the route: a key for the window that differs from route to route as good as always.
fn route_key(path: &DirectedPath) -> u64 {
    path.ports()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, port| (hash ^ u64::from(*port)).wrapping_mul(0x0100_0000_01b3))
}

/// How a request ended, as far as sweep and apply care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Status 0; the attribute.
    Reply([u8; 64]),
    /// A status other than 0. What came with it is not data (B07).
    Refused(Status),
    /// No answer, or it could not be sent.
    Silent,
    /// Given up by ourselves; says nothing of the node.
    Cancelled,
}

impl Answer {
    /// From the transaction engine.
    pub fn of(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Reply(mad) => {
                let status = mad.header.status();
                if status.is_ok() { Self::Reply(Smp::from_mad(mad).data) } else { Self::Refused(status) }
            }
            Outcome::Timeout | Outcome::SendError(_) => Self::Silent,
            Outcome::Cancelled => Self::Cancelled,
        }
    }

    /// The attribute of a good reply.
    pub fn attribute<A: Attribute>(&self) -> Option<A> {
        match self {
            Self::Reply(data) => A::decode(data),
            Self::Refused(_) | Self::Silent | Self::Cancelled => None,
        }
    }

    /// In words, for findings: `no answer`, `status 0x001c`.
    pub fn in_words(&self) -> String {
        match self {
            Self::Reply(_) => "a reply that can't be".into(),
            Self::Refused(status) => format!("status {status}"),
            Self::Silent => "no answer".into(),
            Self::Cancelled => "given up".into(),
        }
    }
}
