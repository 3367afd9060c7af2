//! Follows every LID of a block from every switch, each stretch once, and adds up what was met.

use super::dependencies::{Dependencies, Lanes};
use super::fault::FaultKind;
use super::network::{Exit, Network};
use crate::fabric::{Destination, SwitchIndex};
use crate::routes::{LFT_BLOCK, NO_PORT, Routes, Row};

/// Hop counts at or above are codes.
const UNKNOWN: u16 = u16::MAX;
const ON_THE_WAY: u16 = u16::MAX - 1;
const FAULT: u16 = u16::MAX - 16;
/// Hops that the histogram tells apart.
pub(super) const HISTOGRAM: usize = 64;

/// What was met so far. Sums, unions and minima only, so that the order of blocks makes no difference.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    /// Walks from every switch with a path: to hosts, and to switches and their parts.
    pub walks: [u64; 2],
    /// Walks that arrived.
    pub arrived: [u64; 2],
    /// Walks by kind of fault.
    pub faults: [u64; FaultKind::ALL.len()],
    /// The first fault: LID, switch where the walk began, kind.
    pub first: Option<(u16, SwitchIndex, FaultKind)>,
    /// Pairs of switch and LID with no path at all.
    pub unconnected: u64,
    /// Entries for LIDs that nobody owns.
    pub stray: u64,
    /// Hops of walks between hosts' switches, the last counts all longer ones.
    pub histogram: [u64; HISTOGRAM],
    /// Walks that arrived, by hops.
    pub reach: Vec<u64>,
    /// Walks that take more hops than needed, and the hops too many.
    pub detours: u64,
    pub extra_hops: u64,
    /// The first of them: LID, switch where the walk begins.
    pub first_detour: Option<(u16, SwitchIndex)>,
    /// VLs on which packets go between switches, as a set.
    pub vls: u16,
    /// Routes between hosts over each arc.
    pub load: Vec<u32>,
    /// Hops with a VL that the link does not have.
    pub bad_vls: u64,
    /// Dependencies of traffic between hosts, and of all traffic.
    pub hosts: Dependencies,
    pub all: Dependencies,
}

impl Tally {
    /// The same sums with others by arc.
    pub(super) fn with_arcs(&self, load: Vec<u32>, hosts: Dependencies, all: Dependencies) -> Self {
        Self { load, hosts, all, reach: self.reach.clone(), ..*self }
    }

    pub(super) fn new(network: &Network<'_>, lanes: &Lanes<'_>) -> Self {
        let arcs = network.from.len();
        Self {
            walks: [0; 2],
            arrived: [0; 2],
            faults: [0; FaultKind::ALL.len()],
            first: None,
            unconnected: 0,
            stray: 0,
            histogram: [0; HISTOGRAM],
            reach: Vec::new(),
            detours: 0,
            extra_hops: 0,
            first_detour: None,
            vls: 0,
            load: vec![0; arcs],
            bad_vls: 0,
            hosts: Dependencies::new(arcs, lanes),
            all: Dependencies::new(arcs, lanes),
        }
    }

    pub(super) fn merge(mut self, other: Self) -> Self {
        for (mine, theirs) in [(&mut self.walks, other.walks), (&mut self.arrived, other.arrived)] {
            mine[0] += theirs[0];
            mine[1] += theirs[1];
        }
        self.faults.iter_mut().zip(other.faults).for_each(|(a, b)| *a += b);
        self.first = match (self.first, other.first) {
            (Some(a), Some(b)) => Some(if (a.0, a.1) <= (b.0, b.1) { a } else { b }),
            (a, b) => a.or(b),
        };
        self.unconnected += other.unconnected;
        self.stray += other.stray;
        self.histogram.iter_mut().zip(other.histogram).for_each(|(a, b)| *a += b);
        add(&mut self.reach, &other.reach);
        self.detours += other.detours;
        self.extra_hops += other.extra_hops;
        self.first_detour = match (self.first_detour, other.first_detour) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self.vls |= other.vls;
        self.load.iter_mut().zip(other.load).for_each(|(a, b)| *a += b);
        self.bad_vls += other.bad_vls;
        self.hosts.merge(&other.hosts);
        self.all.merge(&other.all);
        self
    }

    /// The most hops of any walk that arrived.
    pub(super) fn longest(&self) -> u16 {
        self.reach.iter().rposition(|count| *count > 0).unwrap_or(0) as u16
    }

    fn arrived_after(&mut self, hops: u16, walks: u64) {
        let hops = usize::from(hops);
        if self.reach.len() <= hops {
            self.reach.resize(hops + 1, 0);
        }
        self.reach[hops] += walks;
    }
}

fn add(sums: &mut Vec<u64>, other: &[u64]) {
    sums.resize(sums.len().max(other.len()), 0);
    sums.iter_mut().zip(other).for_each(|(a, b)| *a += b);
}

/// Scratch space of one thread.
pub(super) struct Walker<'a> {
    network: &'a Network<'a>,
    routes: &'a Routes,
    lanes: &'a Lanes<'a>,
    /// The block's entries, 64 for each switch.
    entries: Vec<[u8; LFT_BLOCK]>,
    /// Arc that each switch sends the LID on, `u32::MAX` for none.
    next: Vec<u32>,
    hops: Vec<u16>,
    stack: Vec<SwitchIndex>,
    /// Switches in order of falling hops.
    order: Vec<SwitchIndex>,
    buckets: Vec<u32>,
    /// Host ports that send through each switch, its own included.
    senders: Vec<u32>,
    distance: Vec<u16>,
    distance_of: SwitchIndex,
    /// Switches in order of rising distance.
    queue: Vec<u32>,
    /// Switches by distance, and those of them with hosts.
    near: Vec<u64>,
    near_hosts: Vec<u64>,
    /// The switch behind each arc of `next`.
    to: Vec<SwitchIndex>,
    flows: Flows,
}

/// For each switch, what it sends on for the LID: traffic between hosts, and all.
enum Flows {
    /// Sets of VLs, which stay.
    Constant { hosts: Vec<u16>, all: Vec<u16> },
    /// For each SL the set of VLs on the exit.
    Changing { hosts: Vec<[u16; 16]>, all: Vec<[u16; 16]> },
}

impl<'a> Walker<'a> {
    pub(super) fn new(network: &'a Network<'a>, routes: &'a Routes, lanes: &'a Lanes<'a>) -> Self {
        let count = network.graph.switch_count();
        let flows = if lanes.constant() {
            Flows::Constant { hosts: vec![0; count], all: vec![0; count] }
        } else {
            Flows::Changing { hosts: vec![[0; 16]; count], all: vec![[0; 16]; count] }
        };
        Self {
            network,
            routes,
            lanes,
            entries: vec![[NO_PORT; LFT_BLOCK]; count],
            next: vec![u32::MAX; count],
            hops: vec![UNKNOWN; count],
            stack: Vec::new(),
            order: vec![0; count],
            buckets: Vec::new(),
            senders: vec![0; count],
            distance: Vec::new(),
            distance_of: u32::MAX,
            queue: Vec::new(),
            near: Vec::new(),
            near_hosts: Vec::new(),
            to: vec![u32::MAX; count],
            flows,
        }
    }

    /// Checks those of the 64 LIDs of a block that `wanted` names.
    pub(super) fn block(&mut self, block: usize, wanted: u64, tally: &mut Tally) {
        let first = block * LFT_BLOCK;
        for (s, entries) in self.entries.iter_mut().enumerate() {
            let known = s < self.routes.lfts.switch_count();
            let row = if known { self.routes.lfts.row(s as u32) } else { Row::EMPTY };
            match row.block(block) {
                Some(block) => *entries = *block,
                None => entries.fill(NO_PORT),
            }
        }
        for offset in (0..LFT_BLOCK).filter(|offset| wanted >> offset & 1 == 1) {
            match self.network.owner(first + offset) {
                Some(owner) => self.lid(first + offset, offset, owner, tally),
                None => {
                    let used = self.entries.iter().filter(|e| e[offset] != NO_PORT).count();
                    tally.stray += used as u64;
                }
            }
        }
    }

    fn lid(&mut self, lid: usize, offset: usize, owner: &Destination, tally: &mut Tally) {
        if self.distance_of != owner.switch {
            self.measure(owner.switch);
        }
        if let Some(vl) = self.lanes.only_vl(lid)
            && self.all_shortest(offset, owner)
        {
            return self.add_shortest(vl, owner, tally);
        }
        self.hops.fill(UNKNOWN);
        for s in 0..self.hops.len() as u32 {
            if self.hops[s as usize] == UNKNOWN {
                self.walk(s, offset, owner);
            }
        }
        self.count(lid, owner, tally);
        self.sort_by_hops();
        self.add_loads(owner, tally);
        self.add_dependencies(lid, owner, tally);
    }

    fn measure(&mut self, target: SwitchIndex) {
        self.distance_of = target;
        self.network.distances(target, &mut self.distance, &mut self.queue);
        let longest = self.queue.last().map_or(0, |s| usize::from(self.distance[*s as usize]));
        for counts in [&mut self.near, &mut self.near_hosts] {
            counts.clear();
            counts.resize(longest + 1, 0);
        }
        for s in &self.queue {
            let distance = usize::from(self.distance[*s as usize]);
            self.near[distance] += 1;
            self.near_hosts[distance] += u64::from(!self.network.host_ports[*s as usize].is_empty());
        }
    }

    /// Whether every switch with a way sends the LID one hop nearer to its owner. Then all walks arrive, and in the fewest hops:
    /// no walk has to be followed.
    fn all_shortest(&mut self, offset: usize, owner: &Destination) -> bool {
        if self.entries[owner.switch as usize][offset] != owner.port {
            return false;
        }
        for s in &self.queue[1..] {
            let at = *s as usize;
            let Some(step) = self.network.step(*s, self.entries[at][offset]) else { return false };
            if self.distance[step.to as usize].wrapping_add(1) != self.distance[at] {
                return false;
            }
            self.next[at] = step.arc;
            self.to[at] = step.to;
        }
        true
    }

    /// Adds up a LID that [`Walker::all_shortest`] found right, on one VL from everywhere.
    fn add_shortest(&mut self, vl: usize, owner: &Destination, tally: &mut Tally) {
        let (reached, kind) = (self.queue.len() as u64, usize::from(!owner.host));
        tally.walks[kind] += reached;
        tally.arrived[kind] += reached;
        tally.unconnected += self.distance.len() as u64 - reached;
        add(&mut tally.reach, &self.near);
        if owner.host {
            for (hops, count) in self.near_hosts.iter().enumerate() {
                tally.histogram[hops.min(HISTOGRAM - 1)] += count;
            }
            let senders = self.near_hosts.iter().sum::<u64>();
            tally.bad_vls += if vl >= self.lanes.available { senders } else { 0 };
        }
        tally.vls |= u16::from(reached > 1) << vl;
        let of_host = |ports: &Vec<u8>| if owner.host { ports.len() as u32 } else { 0 };
        self.senders.iter_mut().zip(&self.network.host_ports).for_each(|(n, ports)| *n = of_host(ports));
        let offsets = self.network.graph.offsets();
        for s in self.queue[1..].iter().rev() {
            let (arc, to) = (self.next[*s as usize], self.to[*s as usize] as usize);
            let senders = self.senders[*s as usize];
            tally.load[arc as usize] += senders;
            self.senders[to] += senders;
            if self.to[*s as usize] != owner.switch {
                let place = (self.next[to] - offsets[to]) as usize;
                // What hosts send is added to all that is sent in the end.
                let sets = if senders > 0 { &mut tally.hosts } else { &mut tally.all };
                sets.add(vl, arc, place);
            }
        }
    }

    /// Follows the LID from `start` to a switch whose hops are known, and writes them down on the way back.
    fn walk(&mut self, start: SwitchIndex, offset: usize, owner: &Destination) {
        let mut at = start;
        let mut end = loop {
            match self.hops[at as usize] {
                UNKNOWN => {}
                ON_THE_WAY => break FAULT + FaultKind::Loop as u16,
                known => break known,
            }
            let port = self.entries[at as usize][offset];
            self.hops[at as usize] = ON_THE_WAY;
            self.next[at as usize] = u32::MAX;
            self.stack.push(at);
            if at == owner.switch && port == owner.port {
                self.stack.pop();
                self.hops[at as usize] = 0;
                break 0;
            }
            match self.network.exit(at, port) {
                Exit::Arc(arc) => {
                    self.next[at as usize] = arc;
                    at = self.network.to(arc);
                }
                Exit::End => break FAULT + FaultKind::WrongEnd as u16,
                Exit::Nothing if port == NO_PORT => break FAULT + FaultKind::Hole as u16,
                Exit::Nothing if port == 0 => break FAULT + FaultKind::WrongEnd as u16,
                Exit::Nothing => break FAULT + FaultKind::DeadPort as u16,
            }
        };
        while let Some(s) = self.stack.pop() {
            if end < FAULT {
                end += 1;
            }
            self.hops[s as usize] = end;
        }
    }

    fn count(&self, lid: usize, owner: &Destination, tally: &mut Tally) {
        let kind = usize::from(!owner.host);
        for (s, hops) in self.hops.iter().enumerate() {
            let fewest = self.distance[s];
            if *hops >= FAULT {
                if fewest == u16::MAX {
                    tally.unconnected += 1;
                    continue;
                }
                tally.walks[kind] += 1;
                let fault = FaultKind::ALL[usize::from(*hops - FAULT)];
                tally.faults[fault as usize] += 1;
                let key = (lid as u16, s as u32);
                if tally.first.is_none_or(|(l, f, _)| key < (l, f)) {
                    tally.first = Some((key.0, key.1, fault));
                }
                continue;
            }
            tally.walks[kind] += 1;
            tally.arrived[kind] += 1;
            tally.arrived_after(*hops, 1);
            if *hops > fewest {
                tally.detours += 1;
                tally.extra_hops += u64::from(*hops - fewest);
                let walk = (lid as u16, s as u32);
                tally.first_detour = Some(tally.first_detour.map_or(walk, |first| first.min(walk)));
            }
            if owner.host && !self.network.host_ports[s].is_empty() {
                tally.histogram[usize::from(*hops).min(HISTOGRAM - 1)] += 1;
            }
        }
    }

    /// Sorts the switches that arrive by falling hops: whoever sends through a switch comes before it.
    fn sort_by_hops(&mut self) {
        let top = self.hops.iter().copied().filter(|h| *h < FAULT).max().unwrap_or(0);
        self.buckets.clear();
        self.buckets.resize(usize::from(top) + 2, 0);
        for hops in self.hops.iter().filter(|h| **h < FAULT) {
            self.buckets[usize::from(top - hops) + 1] += 1;
        }
        for i in 1..self.buckets.len() {
            self.buckets[i] += self.buckets[i - 1];
        }
        self.order.resize(self.buckets[usize::from(top) + 1] as usize, 0);
        for (s, hops) in self.hops.iter().enumerate().filter(|(_, h)| **h < FAULT) {
            let place = &mut self.buckets[usize::from(top - hops)];
            self.order[*place as usize] = s as u32;
            *place += 1;
        }
    }

    fn add_loads(&mut self, owner: &Destination, tally: &mut Tally) {
        if !owner.host {
            return;
        }
        for (s, senders) in self.senders.iter_mut().enumerate() {
            *senders = self.network.host_ports[s].len() as u32;
        }
        for s in &self.order {
            if *s != owner.switch {
                let arc = self.next[*s as usize];
                let senders = self.senders[*s as usize];
                tally.load[arc as usize] += senders;
                self.senders[self.network.to(arc) as usize] += senders;
            }
        }
    }

    fn add_dependencies(&mut self, lid: usize, owner: &Destination, tally: &mut Tally) {
        let Self { network, lanes, next, order, flows, .. } = self;
        match flows {
            Flows::Constant { hosts, all } => {
                for s in order.iter() {
                    let sl = lanes.sl(*s, lid);
                    let vl = lanes.uniform_vl(sl).unwrap_or(15);
                    let bit = 1_u16 << vl;
                    tally.vls |= if *s == owner.switch { 0 } else { bit };
                    let sends = owner.host && !network.host_ports[*s as usize].is_empty();
                    tally.bad_vls += u64::from(vl >= lanes.available && sends);
                    hosts[*s as usize] = if sends { bit } else { 0 };
                    all[*s as usize] = bit;
                }
                constant_dependencies(network, next, order, owner, hosts, all, tally);
            }
            Flows::Changing { hosts, all } => {
                Changing { network, lanes, next, owner, lid, tally }.run(order, hosts, all);
            }
        }
    }
}

/// Hands the sets of VLs on towards the owner and adds what each of them asks for.
fn constant_dependencies(
    network: &Network<'_>,
    next: &[u32],
    order: &[SwitchIndex],
    owner: &Destination,
    hosts: &mut [u16],
    all: &mut [u16],
    tally: &mut Tally,
) {
    for s in order.iter().filter(|s| **s != owner.switch) {
        let arc = next[*s as usize];
        let to = network.to(arc);
        let (by_hosts, by_all) = (hosts[*s as usize], all[*s as usize]);
        hosts[to as usize] |= by_hosts;
        all[to as usize] |= by_all;
        if to == owner.switch {
            continue;
        }
        let place = (next[to as usize] - network.graph.offsets()[to as usize]) as usize;
        each_bit(by_hosts, |vl| tally.hosts.add(vl, arc, place));
        each_bit(by_all, |vl| tally.all.add(vl, arc, place));
    }
}

fn each_bit(mut bits: u16, mut visit: impl FnMut(usize)) {
    while bits != 0 {
        visit(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}

/// Dependencies where the VL changes along a path, by (input port, output port, SL).
struct Changing<'a, 't> {
    network: &'a Network<'a>,
    lanes: &'a Lanes<'a>,
    next: &'a [u32],
    owner: &'a Destination,
    lid: usize,
    tally: &'t mut Tally,
}

impl Changing<'_, '_> {
    fn run(mut self, order: &[SwitchIndex], hosts: &mut [[u16; 16]], all: &mut [[u16; 16]]) {
        for s in order {
            hosts[*s as usize] = [0; 16];
            all[*s as usize] = [0; 16];
        }
        for s in order.iter().filter(|s| **s != self.owner.switch) {
            self.enter(*s, hosts, all);
            self.tally.vls |= all[*s as usize].iter().fold(0, |set, vls| set | vls);
            let arc = self.next[*s as usize];
            let to = self.network.to(arc);
            if to == self.owner.switch {
                continue;
            }
            let input = self.network.graph.all_arcs()[arc as usize].in_port;
            for sl in 0..16 {
                let by_all = all[*s as usize][sl];
                if by_all == 0 {
                    continue;
                }
                let by_hosts = hosts[*s as usize][sl];
                let Some(out) = self.vl(to, input, sl, by_hosts != 0) else { continue };
                all[to as usize][sl] |= 1 << out;
                hosts[to as usize][sl] |= u16::from(by_hosts != 0) << out;
                let next = self.next[to as usize];
                let place = (next - self.network.graph.offsets()[to as usize]) as usize;
                let vls = self.lanes.vls;
                each_bit(by_hosts, |vl| self.tally.hosts.add(vl * vls + out, arc, place));
                each_bit(by_all, |vl| self.tally.all.add(vl * vls + out, arc, place));
            }
        }
    }

    /// What hosts at `s`, and its own port 0, send.
    fn enter(&mut self, s: SwitchIndex, hosts: &mut [[u16; 16]], all: &mut [[u16; 16]]) {
        let sl = self.lanes.sl(s, self.lid);
        let network = self.network;
        for input in std::iter::once(0).chain(network.host_ports[s as usize].iter().copied()) {
            let by_host = input != 0 && self.owner.host;
            if let Some(vl) = self.vl(s, input, sl, by_host) {
                all[s as usize][sl] |= 1 << vl;
                hosts[s as usize][sl] |= u16::from(by_host) << vl;
            }
        }
    }

    /// The VL on the exit of `s`; `None` (and counted when hosts' packets meet it) when the packet is dropped.
    fn vl(&mut self, s: SwitchIndex, input: u8, sl: usize, counts: bool) -> Option<usize> {
        let output = self.network.graph.all_arcs()[self.next[s as usize] as usize].out_port;
        let ports = usize::from(self.network.graph.num_ports(s));
        let vl = self.lanes.vl(s, ports, input, output, sl);
        self.tally.bad_vls += u64::from(counts && vl >= self.lanes.available.min(15));
        (vl < 15).then_some(vl)
    }
}
