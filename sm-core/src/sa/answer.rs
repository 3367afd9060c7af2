//! One request in, one answer out: the pure part of subnet administration.

use mad::transport::Address;
use mad::wire::{Mad, Status};

use crate::snapshot::Snapshot;

/// A request as it came.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The datagram.
    pub mad: Mad,
    /// Where it came from.
    pub source: Address,
}

/// What a request is answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing: the datagram is no request, or this subnet manager may not answer.
    Silence,
    /// One datagram.
    Single(Box<Mad>),
}

/// Answers a request from a picture of the fabric.
pub fn answer(_snapshot: &Snapshot, request: &Request) -> Answer {
    let header = &request.mad.header;
    if header.method().is_response() {
        return Answer::Silence;
    }
    let status =
        if header.class_version == 2 { Status::METHOD_ATTRIBUTE_NOT_SUPPORTED } else { Status::BAD_VERSION };
    refuse(&request.mad, status)
}

/// The request sent back with a status and without its data.
pub(super) fn refuse(request: &Mad, status: Status) -> Answer {
    let mut mad = Mad::zeroed();
    mad.header = request.header;
    mad.header.method = request.header.method().response().0;
    mad.header.status.set(status.0);
    Answer::Single(Box::new(mad))
}
