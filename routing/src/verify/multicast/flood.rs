//! Follows the copies of one group's packet, link by link.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Group, MulticastFault, MulticastFaultKind};
use crate::fabric::SwitchIndex;
use crate::multicast::MulticastTables;
use crate::routes::NO_PORT;
use crate::verify::dependencies::Lanes;
use crate::verify::hop::{Hop, hop};
use crate::verify::network::{Exit, Network};

/// The copy that is on a link came from no other link.
const FIRST: u32 = u32::MAX;

/// What was found of one group.
#[derive(Default)]
pub(super) struct Found {
    pub pairs: u64,
    pub arrived: u64,
    pub faults: [u64; MulticastFaultKind::ALL.len()],
    pub first: Option<MulticastFault>,
    /// Lane, arc, and place of the arc it asks for.
    pub dependencies: BTreeSet<(usize, u32, usize)>,
}

/// Follows one group.
pub(super) struct Flood<'a> {
    network: &'a Network<'a>,
    lanes: &'a Lanes<'a>,
    tables: &'a MulticastTables,
    group: &'a Group,
    receivers: BTreeSet<(SwitchIndex, u8)>,
    /// For each link with a copy, the link that it came from.
    came_from: BTreeMap<u32, u32>,
    /// For each end port with a copy, the same.
    delivered: BTreeMap<(SwitchIndex, u8), u32>,
    pub found: Found,
}

impl<'a> Flood<'a> {
    pub(super) fn new(
        network: &'a Network<'a>,
        lanes: &'a Lanes<'a>,
        tables: &'a MulticastTables,
        group: &'a Group,
    ) -> Self {
        let receivers = group.members.iter().filter(|m| m.receives).map(|m| (m.switch, m.port)).collect();
        Self {
            network,
            lanes,
            tables,
            group,
            receivers,
            came_from: BTreeMap::new(),
            delivered: BTreeMap::new(),
            found: Found::default(),
        }
    }

    /// Sends a packet from each switch with members.
    pub(super) fn send_from_all(&mut self) {
        let switches: BTreeSet<SwitchIndex> = self.group.members.iter().map(|m| m.switch).collect();
        for source in &switches {
            self.send(*source);
            self.count_missing(*source);
        }
        self.add_dependencies();
    }

    fn send(&mut self, source: SwitchIndex) {
        self.came_from.clear();
        self.delivered.clear();
        let mut queue = VecDeque::new();
        for port in self.tables.ports(source, self.group.mlid).iter() {
            self.copy(source, source, port, FIRST, &mut queue);
        }
        while let Some(arc) = queue.pop_front() {
            let ends = self.network.graph.all_arcs()[arc as usize];
            for port in self.tables.ports(ends.to, self.group.mlid).iter().filter(|p| *p != ends.in_port) {
                self.copy(source, ends.to, port, arc, &mut queue);
            }
        }
    }

    /// A copy that came by the link `by` to `at` goes out of `port`.
    fn copy(&mut self, source: SwitchIndex, at: SwitchIndex, port: u8, by: u32, queue: &mut VecDeque<u32>) {
        let exit = if port == 0 { Exit::End } else { self.network.exit(at, port) };
        let once = |flood: &Self| (flood.path(source, by, at, port), Vec::new());
        let twice = |first| {
            move |flood: &Self| (flood.path(source, by, at, port), flood.path(source, first, at, port))
        };
        match exit {
            Exit::Nothing => self.fault(MulticastFaultKind::DeadPort, once),
            Exit::End => {
                let end = (at, port);
                if !self.receivers.contains(&end) {
                    self.fault(MulticastFaultKind::Stranger, once);
                }
                match self.delivered.get(&end).copied() {
                    None => drop(self.delivered.insert(end, by)),
                    Some(first) => self.fault(MulticastFaultKind::Twice, twice(first)),
                }
            }
            Exit::Arc(arc) => match self.came_from.get(&arc).copied() {
                None => {
                    self.came_from.insert(arc, by);
                    queue.push_back(arc);
                }
                Some(_) if self.is_before(arc, by) => self.fault(MulticastFaultKind::Loop, once),
                Some(first) => self.fault(MulticastFaultKind::Twice, twice(first)),
            },
        }
    }

    /// Whether the copy on `arc` came over `earlier`.
    fn is_before(&self, earlier: u32, arc: u32) -> bool {
        let mut at = arc;
        while at != FIRST {
            if at == earlier {
                return true;
            }
            at = self.came_from.get(&at).copied().unwrap_or(FIRST);
        }
        false
    }

    fn count_missing(&mut self, source: SwitchIndex) {
        self.found.pairs += self.receivers.len() as u64;
        let missing: Vec<(SwitchIndex, u8)> =
            self.receivers.iter().filter(|end| !self.delivered.contains_key(end)).copied().collect();
        self.found.arrived += (self.receivers.len() - missing.len()) as u64;
        for (switch, port) in missing {
            self.fault(MulticastFaultKind::Missing, |flood| {
                (flood.towards(source, switch), vec![hop(flood.network, switch, port)])
            });
        }
    }

    /// The packet's way to the switch nearest to `member` that it comes to.
    fn towards(&self, source: SwitchIndex, member: SwitchIndex) -> Vec<Hop> {
        let hops = self.network.hops_from(&[member]);
        let reached = self.came_from.keys().map(|arc| (hops[self.network.to(*arc) as usize], *arc));
        match reached.min().filter(|(least, _)| *least < hops[source as usize]) {
            Some((_, arc)) => self.path(source, arc, self.network.to(arc), NO_PORT),
            None => vec![hop(self.network, source, NO_PORT)],
        }
    }

    /// The way of the copy that came by `by` and goes out of `port` of `at`.
    fn path(&self, source: SwitchIndex, by: u32, at: SwitchIndex, port: u8) -> Vec<Hop> {
        let mut path = vec![hop(self.network, at, port)];
        let mut arc = by;
        while arc != FIRST {
            let exit = self.network.graph.all_arcs()[arc as usize].out_port;
            path.push(hop(self.network, self.network.from[arc as usize], exit));
            arc = self.came_from.get(&arc).copied().unwrap_or(FIRST);
        }
        debug_assert_eq!(path.last().map(|hop| hop.guid), Some(self.network.graph.guid(source)));
        path.reverse();
        path
    }

    /// Counts a fault; of the first the ways are kept.
    fn fault(&mut self, kind: MulticastFaultKind, ways: impl Fn(&Self) -> (Vec<Hop>, Vec<Hop>)) {
        self.found.faults[kind as usize] += 1;
        if self.found.first.is_none() {
            let (path, other) = ways(self);
            self.found.first = Some(MulticastFault { kind, mlid: self.group.mlid.get(), path, other });
        }
    }

    /// Hands the group's VLs on from link to link until nothing new comes, and adds who asks for whom.
    pub(super) fn add_dependencies(&mut self) {
        let (network, lanes) = (self.network, self.lanes);
        let sl = usize::from(self.group.sl & 15);
        let ports_of = |s: SwitchIndex| self.tables.ports(s, self.group.mlid);
        let vl = |s: SwitchIndex, input: u8, output: u8| {
            let vl = lanes.vl(s, usize::from(network.graph.num_ports(s)), input, output, sl);
            (vl < lanes.vls).then_some(vl)
        };
        let mut vls: BTreeMap<u32, u16> = BTreeMap::new();
        let mut queue: Vec<u32> = Vec::new();
        for member in &self.group.members {
            for port in ports_of(member.switch).iter() {
                let Exit::Arc(arc) = network.exit(member.switch, port) else { continue };
                let Some(vl) = vl(member.switch, member.port, port) else { continue };
                *vls.entry(arc).or_default() |= 1 << vl;
                queue.push(arc);
            }
        }
        while let Some(arc) = queue.pop() {
            let ends = network.graph.all_arcs()[arc as usize];
            let base = network.graph.offsets()[ends.to as usize];
            let held = vls.get(&arc).copied().unwrap_or(0);
            for port in ports_of(ends.to).iter().filter(|port| *port != ends.in_port) {
                let Exit::Arc(next) = network.exit(ends.to, port) else { continue };
                let Some(out) = vl(ends.to, ends.in_port, port) else { continue };
                for vl in (0..lanes.vls).filter(|vl| held >> vl & 1 == 1) {
                    let lane = if lanes.constant() { vl } else { vl * lanes.vls + out };
                    self.found.dependencies.insert((lane, arc, (next - base) as usize));
                }
                let there = vls.entry(next).or_default();
                if *there >> out & 1 == 0 {
                    *there |= 1 << out;
                    queue.push(next);
                }
            }
        }
    }
}
