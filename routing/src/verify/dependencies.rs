//! The channel dependency graph: which (link, VL) a packet may hold while it waits for which other.
//!
//! A channel is an arc and a VL. Dependencies of arc a are a set of bits over the arcs that leave the switch it leads to,
//! one set for each lane: a VL where VLs stay the same along a path, a pair of VLs where SL-to-VL tables differ from
//! switch to switch. Memory: arcs · lanes · ⌈degree / 64⌉ words.

use super::network::Network;
use crate::fabric::SwitchIndex;
use crate::routes::{PathSl, Routes, SlToVl};

/// How many VLs there are and how a path changes between them.
pub(super) struct Lanes<'a> {
    routes: &'a Routes,
    /// VLs that occur are below this.
    pub vls: usize,
    /// Data VLs that the links have.
    pub available: usize,
    /// VL by SL, where it is the same everywhere.
    uniform: Option<[u8; 16]>,
    /// Words of a set.
    pub words: usize,
}

impl<'a> Lanes<'a> {
    pub(super) fn new(network: &Network<'_>, routes: &'a Routes, data_vls: u8) -> Self {
        Self::with_sls(network, routes, data_vls, 0)
    }

    /// The same where packets of the SLs in the set `more` occur too.
    pub(super) fn with_sls(network: &Network<'_>, routes: &'a Routes, data_vls: u8, more: u16) -> Self {
        let uniform = match &routes.sl_to_vl {
            SlToVl::Identity => Some(std::array::from_fn(|sl| sl as u8)),
            SlToVl::Uniform(map) => Some(map.map(|vl| vl & 15)),
            SlToVl::PerSwitch(_) => None,
        };
        let top_vl = uniform.map_or_else(
            || all_vls(&routes.sl_to_vl).filter(|vl| *vl < 15).max().unwrap_or(0),
            |map| {
                let more = (0..16).filter(|sl| more >> sl & 1 == 1);
                used_sls(&routes.sl)
                    .chain(more)
                    .filter(|sl| *sl < 16)
                    .map(|sl| map[usize::from(sl)])
                    .max()
                    .unwrap_or(0)
            },
        );
        let graph = network.graph;
        let degree = (0..graph.switch_count() as u32).map(|s| graph.arcs(s).len()).max().unwrap_or(0);
        Self {
            routes,
            vls: usize::from(top_vl) + 1,
            available: if data_vls == 0 { 15 } else { usize::from(data_vls) },
            uniform,
            words: degree.div_ceil(64).max(1),
        }
    }

    /// Whether a packet keeps its VL from end to end.
    pub(super) fn constant(&self) -> bool {
        self.uniform.is_some()
    }

    /// Number of lanes that dependencies are kept for.
    pub(super) fn count(&self) -> usize {
        if self.constant() { self.vls } else { self.vls * self.vls }
    }

    /// The SL of packets from `source` to `lid`.
    pub(super) fn sl(&self, source: SwitchIndex, lid: usize) -> usize {
        let sl = match &self.routes.sl {
            PathSl::Default => 0,
            PathSl::ByDestination(table) => table.get(lid).copied().unwrap_or(0),
            PathSl::BySourceSwitch(table) => table.row(source).get(lid).copied().unwrap_or(0),
        };
        // 255 stands where the engine said nothing.
        if sl < 16 { usize::from(sl) } else { 0 }
    }

    /// The VL of all packets to `lid`, where it depends on nothing else.
    pub(super) fn only_vl(&self, lid: usize) -> Option<usize> {
        let by_source = matches!(self.routes.sl, PathSl::BySourceSwitch(_));
        self.uniform_vl(self.sl(0, lid)).filter(|vl| !by_source && *vl < self.vls)
    }

    /// The VL that an SL means on every link, when that is so.
    pub(super) fn uniform_vl(&self, sl: usize) -> Option<usize> {
        self.uniform.map(|map| usize::from(map[sl]))
    }

    /// The VL that switch `s` puts packets of `sl` on from port `input` to port `output`.
    pub(super) fn vl(&self, s: SwitchIndex, ports: usize, input: u8, output: u8, sl: usize) -> usize {
        match &self.routes.sl_to_vl {
            SlToVl::PerSwitch(tables) => tables
                .get(s as usize)
                .and_then(|t| t.get(usize::from(input) * (ports + 1) + usize::from(output)))
                .map_or(15, |map| usize::from(map[sl] & 15)),
            SlToVl::Identity | SlToVl::Uniform(_) => self.uniform_vl(sl).unwrap_or(15),
        }
    }
}

fn all_vls(map: &SlToVl) -> impl Iterator<Item = u8> {
    let tables = if let SlToVl::PerSwitch(tables) = map { &tables[..] } else { &[] };
    tables.iter().flatten().flatten().copied()
}

fn used_sls(sl: &PathSl) -> Box<dyn Iterator<Item = u8> + '_> {
    match sl {
        PathSl::Default => Box::new(std::iter::once(0)),
        PathSl::ByDestination(table) => Box::new(table.iter().copied()),
        PathSl::BySourceSwitch(table) => {
            Box::new((0..table.switch_count() as u32).flat_map(|s| table.row(s).iter().copied()))
        }
    }
}

/// The sets of one kind of traffic.
#[derive(Clone, Debug)]
pub(super) struct Dependencies {
    arcs: usize,
    words: usize,
    bits: Vec<u64>,
}

impl Dependencies {
    pub(super) fn new(arcs: usize, lanes: &Lanes<'_>) -> Self {
        Self { arcs, words: lanes.words, bits: vec![0; arcs * lanes.count() * lanes.words] }
    }

    /// Adds: a packet on `arc` asks for the `next`th arc of the switch it leads to.
    #[inline]
    pub(super) fn add(&mut self, lane: usize, arc: u32, next: usize) {
        self.bits[(lane * self.arcs + arc as usize) * self.words + next / 64] |= 1 << (next % 64);
    }

    /// The places of the arcs that packets on `arc` ask for.
    pub(super) fn of(&self, lane: usize, arc: u32) -> impl Iterator<Item = usize> + '_ {
        let first = (lane * self.arcs + arc as usize) * self.words;
        self.bits[first..first + self.words].iter().enumerate().flat_map(|(word, bits)| {
            let mut bits = *bits;
            std::iter::from_fn(move || {
                (bits != 0).then(|| {
                    let bit = bits.trailing_zeros() as usize;
                    bits &= bits - 1;
                    word * 64 + bit
                })
            })
        })
    }

    /// Takes the set of an arc over from that of `from_arc` in `from`, on lane 0.
    pub(super) fn copy_of(&mut self, arc: u32, from: &Self, from_arc: u32) {
        let (to, first) = (arc as usize * self.words, from_arc as usize * from.words);
        self.bits[to..to + self.words].copy_from_slice(&from.bits[first..first + from.words]);
    }

    /// Takes a dependency out.
    pub(super) fn remove(&mut self, lane: usize, arc: u32, next: usize) {
        self.bits[(lane * self.arcs + arc as usize) * self.words + next / 64] &= !(1 << (next % 64));
    }

    /// Whether a dependency is there.
    pub(super) fn contains(&self, lane: usize, arc: u32, next: usize) -> bool {
        self.bits[(lane * self.arcs + arc as usize) * self.words + next / 64] >> (next % 64) & 1 == 1
    }

    /// Number of dependencies.
    pub(super) fn len(&self) -> u64 {
        self.bits.iter().map(|w| u64::from(w.count_ones())).sum()
    }

    /// Adds those of `other`.
    pub(super) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.bits.iter_mut().zip(&other.bits) {
            *mine |= theirs;
        }
    }
}
