//! What each hop of a path costs in MTU and rate, in flat arrays: the part of a snapshot that makes a path a walk of a few
//! memory reads.
//!
//! Cost: linear in the ports of the fabric to make, O(hops) for a walk.

use mad::types::{Lid, LinkSpeed, LinkWidth, Mtu, Rate};
use routing::fabric::{Fabric, Port, PortRef, SwitchGraph, SwitchIndex};
use routing::routes::Routes;

use super::EndPort;

/// The largest number of switches on a path: a walk that is longer runs in a circle (B27).
const MAX_SWITCHES: usize = 64;

/// What a link, or a whole path, lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest MTU.
    pub mtu: Mtu,
    /// The largest static rate.
    pub rate: Rate,
    /// The same in tenths of a gigabit per second, by which rates compare.
    pub(super) decigbps: u32,
}

impl Limits {
    /// No limit at all.
    pub(super) const UNBOUND: Self =
        Self { mtu: Mtu::M4096, rate: Rate::of_link(LinkWidth::X12, LinkSpeed::Xdr), decigbps: u32::MAX };

    /// Limits of an MTU and a rate.
    pub fn new(mtu: Mtu, rate: Rate) -> Self {
        Self { mtu, rate, decigbps: rate.decigbps() }
    }

    /// The tighter of both, in each respect.
    #[must_use]
    pub const fn min(self, other: Self) -> Self {
        let mtu = if (other.mtu as u8) < self.mtu as u8 { other.mtu } else { self.mtu };
        if other.decigbps < self.decigbps { Self { mtu, ..other } } else { Self { mtu, ..self } }
    }

    /// What a port can do by itself; a link of one lane at 2.5 Gb/s where it doesn't say.
    pub(super) fn of_port(port: &Port) -> Self {
        let width = port.width.or_else(|| port.widths_supported.widest()).unwrap_or(LinkWidth::X1);
        let speed = port.speed.or_else(|| port.speeds_supported.fastest()).unwrap_or(LinkSpeed::Sdr);
        Self::new(port.mtu_cap, Rate::of_link(width, speed))
    }

    /// What the link of a port lets through: the MTU in force at both of its ends and its rate. `None` where no link is up.
    pub(super) fn of_link(fabric: &Fabric, end: PortRef) -> Option<Self> {
        let (near, far) = (fabric.port(end)?, fabric.port(fabric.peer(end)?)?);
        if !near.state.is_up() || !far.state.is_up() {
            return None;
        }
        let mtu = near.mtu.min(far.mtu);
        Some(Self { mtu, ..Self::of_port(near).min(Self::of_port(far)) })
    }
}

/// Where the exit port of a switch leads.
#[derive(Clone, Copy, Debug)]
struct Exit {
    /// The switch at the far end; [`Exit::END`] for an end port, [`Exit::HOLE`] for nothing.
    to: SwitchIndex,
    limits: Limits,
}

impl Exit {
    const END: SwitchIndex = SwitchIndex::MAX - 1;
    const HOLE: SwitchIndex = SwitchIndex::MAX;
}

/// The exits of all switches.
#[derive(Clone, Debug)]
pub(super) struct LinkTable {
    first: Vec<u32>,
    exits: Vec<Exit>,
}

impl LinkTable {
    pub(super) fn new(fabric: &Fabric, graph: &SwitchGraph) -> Self {
        let mut table = Self { first: vec![0], exits: Vec::new() };
        for switch in 0..graph.switch_count() as SwitchIndex {
            let node = graph.node(switch);
            for port in 0..=graph.num_ports(switch) {
                let end = PortRef { node, port: mad::types::PortNum(port) };
                table.exits.push(Self::exit(fabric, graph, end));
            }
            table.first.push(table.exits.len() as u32);
        }
        table
    }

    fn exit(fabric: &Fabric, graph: &SwitchGraph, end: PortRef) -> Exit {
        let hole = Exit {
            to: Exit::HOLE,
            limits: Limits::new(Mtu::M256, Rate::of_link(LinkWidth::X1, LinkSpeed::Sdr)),
        };
        if end.port.0 == 0 {
            return fabric
                .port(end)
                .map_or(hole, |port| Exit { to: Exit::END, limits: Limits::of_port(port) });
        }
        match (fabric.peer(end), Limits::of_link(fabric, end)) {
            (Some(peer), Some(limits)) => Exit { to: graph.index_of(peer.node).unwrap_or(Exit::END), limits },
            _ => hole,
        }
    }

    fn get(&self, switch: SwitchIndex, port: u8) -> Option<Exit> {
        let (first, end) = (self.first[switch as usize], self.first[switch as usize + 1]);
        let at = first + u32::from(port);
        (at < end).then(|| self.exits[at as usize]).filter(|exit| exit.to != Exit::HOLE)
    }

    /// Follows the tables from `source` to `target` by `dlid`, one of the target's LIDs. `None` when the packet doesn't
    /// arrive: a hole, a link that is down, a circle.
    pub(super) fn walk(
        &self,
        routes: &Routes,
        source: &EndPort,
        target: &EndPort,
        dlid: Lid,
    ) -> Option<Limits> {
        if source.end == target.end {
            return Some(source.own);
        }
        let mut limits = source.link?;
        let Some(mut at) = source.switch else {
            return (source.peer == Some(target.end)).then_some(limits);
        };
        for _ in 0..MAX_SWITCHES {
            let port = routes.lfts.port(at, dlid);
            let exit = self.get(at, port)?;
            if exit.to == Exit::END {
                let arrived = target.switch == Some(at) && target.port == port;
                let last = if port == 0 { Limits { mtu: exit.limits.mtu, ..limits } } else { exit.limits };
                return arrived.then(|| limits.min(last));
            }
            limits = limits.min(exit.limits);
            at = exit.to;
        }
        None
    }
}
