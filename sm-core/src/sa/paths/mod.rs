//! Paths between end ports, computed at query time by walking the forwarding tables of the snapshot: no table of all
//! pairs is kept.
//!
//! Specification volume 1, 15.2.5.16. Cost: two walks of O(hops) for each pair of LIDs, nothing else depends on the size
//! of the fabric unless the query leaves an end open.

mod multi;
mod query;
mod record;
mod trace;

use std::ops::ControlFlow;

use mad::types::{Gid, Lid, Mtu, PKey, Rate};
use mad::wire::Status;

pub(super) use self::multi::answer as answer_multi;
pub use self::query::PathQuery;
pub(super) use self::record::answer;
pub(super) use self::trace::answer as answer_trace;
use super::selector::Bound;
use crate::snapshot::{EndPort, Snapshot};

/// What a query says about one end of the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Side {
    /// Its GID.
    pub gid: Option<Gid>,
    /// Its LID, raw: anything may stand there.
    pub lid: Option<u16>,
}

/// What a path must be like. `None`: anything will do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Usable in both directions.
    pub reversible: Option<bool>,
    /// By this partition.
    pub pkey: Option<PKey>,
    /// At this service level.
    pub sl: Option<u8>,
    /// Bound of the MTU.
    pub mtu: Option<Bound<Mtu>>,
    /// Bound of the rate.
    pub rate: Option<Bound<Rate>>,
    /// Bound of the packet lifetime.
    pub lifetime: Option<Bound<u8>>,
    /// For raw packets, which have no P_Key.
    pub raw_traffic: bool,
}

/// A path as it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// GID of the source, in the form that was asked for.
    pub sgid: Gid,
    /// GID of the destination, in the form that was asked for.
    pub dgid: Gid,
    /// LID of the source.
    pub slid: Lid,
    /// LID of the destination.
    pub dlid: Lid,
    /// Whether packets come back with the LIDs exchanged.
    pub reversible: bool,
    /// P_Key, 0 for raw traffic.
    pub pkey: u16,
    /// Service level.
    pub sl: u8,
    /// MTU, of both directions when reversible.
    pub mtu: Mtu,
    /// Rate, of both directions when reversible.
    pub rate: Rate,
    /// PacketLifeTime: 4.096 µs · 2^n.
    pub lifetime: u8,
    /// 0 for the paths that use the ports' LIDs one to one, 2 for the other combinations.
    pub preference: u8,
}

/// The ports, and of each the LIDs, that one end of a query may be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ends<'a> {
    /// One port, and where a LID was named that one only.
    One(&'a EndPort, Option<Lid>),
    /// Any port.
    Any,
    /// No port of this subnet.
    Nobody,
}

impl<'a> Ends<'a> {
    /// Finds the ports of a side.
    ///
    /// # Errors
    /// INVALID_GID for a GID that can't be a port's; REQ_INVALID when GID and LID belong to different ports (B43).
    pub(super) fn resolve(snapshot: &'a Snapshot, side: Side) -> Result<Self, Status> {
        let by_lid = |raw| {
            let lid = Lid::new(raw)?;
            snapshot.port_at(lid).map(|port| (port, lid))
        };
        if side.gid.is_some_and(|gid| gid.is_multicast() || gid.0 == 0) {
            return Err(Status::SA_INVALID_GID);
        }
        Ok(match (side.gid, side.lid) {
            (None, None) => Self::Any,
            (Some(gid), None) => snapshot.port_by_gid(gid).map_or(Self::Nobody, |port| Self::One(port, None)),
            (None, Some(raw)) => by_lid(raw).map_or(Self::Nobody, |(port, lid)| Self::One(port, Some(lid))),
            (Some(gid), Some(raw)) => match (snapshot.port_by_gid(gid), by_lid(raw)) {
                (Some(port), Some((other, lid))) if port.end == other.end => Self::One(port, Some(lid)),
                (Some(_), _) => return Err(Status::SA_REQ_INVALID),
                (None, _) => Self::Nobody,
            },
        })
    }

    /// The ports themselves, sorted by LID.
    pub(super) fn ports(self, snapshot: &'a Snapshot) -> &'a [EndPort] {
        match self {
            Self::One(port, _) => std::slice::from_ref(port),
            Self::Any => snapshot.end_ports(),
            Self::Nobody => &[],
        }
    }

    /// The LIDs of `port` that may be used: the one that was named, or all.
    fn lids(self, port: &EndPort) -> impl Iterator<Item = Lid> + Clone + use<> {
        let named = match self {
            Self::One(_, named) => named,
            Self::Any | Self::Nobody => None,
        };
        let count = if named.is_some() { 1 } else { 1 << port.lmc };
        let base = named.unwrap_or(port.lid).get();
        (0..count).filter_map(move |offset| Lid::new(base.saturating_add(offset)))
    }
}

/// A query with its two ends found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) sources: Ends<'a>,
    pub(super) targets: Ends<'a>,
    /// GIDs to answer with, where the query named them.
    pub(super) sgid: Option<Gid>,
    pub(super) dgid: Option<Gid>,
}

impl Pair<'_> {
    /// Up to `limit` paths from one port to another, best first, each handed to `emit`, until it says stop.
    pub(super) fn paths(
        &self,
        source: &EndPort,
        target: &EndPort,
        wanted: &Wanted,
        limit: usize,
        emit: &mut dyn FnMut(&Path) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some(pkey) = self.partition(source, target, wanted) else { return ControlFlow::Continue(()) };
        let mut found = 0;
        let (slids, dlids) = (self.sources.lids(source), self.targets.lids(target));
        let straight = slids.clone().zip(dlids.clone()).map(|pair| (pair, 0));
        let crossed = slids.enumerate().flat_map(|(i, slid)| {
            dlids.clone().enumerate().filter(move |(j, _)| i != *j).map(move |(_, dlid)| ((slid, dlid), 2))
        });
        for ((slid, dlid), preference) in straight.chain(crossed) {
            if found == limit {
                break;
            }
            if let Some(path) = self.path(source, target, (slid, dlid), pkey, wanted) {
                emit(&Path { preference, ..path })?;
                found += 1;
            }
        }
        ControlFlow::Continue(())
    }

    /// The P_Key of paths between the ports; `None` when they share no partition that was asked for.
    fn partition(&self, source: &EndPort, target: &EndPort, wanted: &Wanted) -> Option<u16> {
        let common = if source.end == target.end && wanted.pkey.is_none() {
            Some(source.pkeys.first().copied().unwrap_or(PKey::DEFAULT_FULL))
        } else {
            source.common_pkey(target, wanted.pkey)
        };
        let key = wanted.pkey.unwrap_or(common?);
        Some(if wanted.raw_traffic { 0 } else { key.0 })
    }

    /// The path by one pair of LIDs, if there is one and it is what is wanted.
    fn path(
        &self,
        source: &EndPort,
        target: &EndPort,
        (slid, dlid): (Lid, Lid),
        pkey: u16,
        wanted: &Wanted,
    ) -> Option<Path> {
        let snapshot = self.snapshot;
        let mut limits = snapshot.walk(source, target, dlid)?;
        let back = if wanted.reversible == Some(false) { None } else { snapshot.walk(target, source, slid) };
        if let Some(back) = back {
            limits = limits.min(back);
        } else if wanted.reversible == Some(true) {
            return None;
        }
        let sl = match (snapshot.engine_sl(source, dlid), wanted.sl) {
            (Some(sl), Some(asked)) if sl != asked => return None,
            (Some(sl), _) | (None, Some(sl)) => sl,
            (None, None) => 0,
        };
        let lifetime = if source.end == target.end { 0 } else { snapshot.sm.subnet_timeout };
        if wanted.lifetime.is_some_and(|bound| !bound.lifetime(lifetime)) {
            return None;
        }
        Some(Path {
            sgid: self.sgid.unwrap_or_else(|| snapshot.gid_of(source)),
            dgid: self.dgid.unwrap_or_else(|| snapshot.gid_of(target)),
            slid,
            dlid,
            reversible: back.is_some(),
            pkey,
            sl,
            mtu: wanted.mtu.map_or(Some(limits.mtu), |bound| bound.mtu(limits.mtu))?,
            rate: wanted.rate.map_or(Some(limits.rate), |bound| bound.rate(limits.rate))?,
            lifetime,
            preference: 0,
        })
    }
}

#[cfg(test)]
mod tests;
