//! The channel dependency graph: which (link, VL) a packet may hold while it waits for which other.
//!
//! A channel is an arc and a VL. Dependencies of arc a are a set of bits over the arcs that leave the switch it leads to,
//! one set for each lane: a VL where VLs stay the same along a path, a pair of VLs where SL-to-VL tables differ from
//! switch to switch. Memory: arcs · lanes · ⌈degree / 64⌉ words.

use super::network::Network;
use crate::fabric::{LinkChange, SwitchIndex};
use crate::routes::{PathSl, Routes, SlToVl};

/// How many VLs there are and how a path changes between them.
pub(super) struct Lanes<'a> {
    routes: &'a Routes,
    /// SL-to-VL tables that may hold in place of those of `routes`.
    or: Option<&'a SlToVl>,
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
        let graph = network.graph;
        let degree = (0..graph.switch_count() as u32).map(|s| graph.arcs(s).len()).max().unwrap_or(0);
        Self {
            routes,
            or: None,
            vls: usize::from(top_vl(&routes.sl_to_vl, used_sls(&routes.sl) | more)) + 1,
            available: if data_vls == 0 { 15 } else { usize::from(data_vls) },
            uniform,
            words: degree.div_ceil(64).max(1),
        }
    }

    /// The lanes while tables are being written: each switch may hold those of `new` or those of `old`, and packets may have the
    /// SLs of both.
    pub(super) fn either(network: &Network<'_>, new: &'a Routes, old: &'a Routes) -> Self {
        let sls = used_sls(&new.sl) | used_sls(&old.sl);
        let lanes = Self::with_sls(network, new, 0, sls);
        if new.sl_to_vl.agrees_on(&old.sl_to_vl, sls) {
            return lanes;
        }
        let vls = lanes.vls.max(usize::from(top_vl(&old.sl_to_vl, sls)) + 1);
        Self { or: Some(&old.sl_to_vl), uniform: None, vls, ..lanes }
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
            PathSl::BySourceSwitch(table) => table.row(source).get(lid).unwrap_or(0),
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
        match self.uniform_vl(sl) {
            Some(vl) => vl,
            None => usize::from(self.routes.sl_to_vl.vl(s, ports as u8, (input, output), sl)),
        }
    }

    /// The VLs that it may be: one, or while tables are being written two.
    pub(super) fn all_vls(
        &self,
        s: SwitchIndex,
        ports: u8,
        between: (u8, u8),
        sl: usize,
    ) -> impl Iterator<Item = usize> {
        let or = self.or.map(|or| usize::from(or.vl(s, ports, between, sl)));
        std::iter::once(self.vl(s, usize::from(ports), between.0, between.1, sl)).chain(or)
    }
}

/// The highest data VL that tables put packets of the SLs in a set on.
fn top_vl(map: &SlToVl, sls: u16) -> u8 {
    let used = (0..16).filter(|sl| sls >> sl & 1 == 1);
    let top = match map {
        SlToVl::PerSwitch(tables) => tables.iter().flatten().flatten().copied().filter(|vl| *vl < 15).max(),
        // VL 15 of a table for all links counts: it is a fault of these.
        SlToVl::Identity | SlToVl::Uniform(_) => used.map(|sl| map.vl(0, 0, (0, 0), sl)).max(),
    };
    top.unwrap_or(0)
}

/// SLs that packets have, as a set. Where an engine said nothing it is 0.
fn used_sls(sl: &PathSl) -> u16 {
    let with = |set: u16, sl: &u8| set | 1_u16 << if *sl < 16 { *sl } else { 0 };
    match sl {
        PathSl::Default => 1,
        PathSl::ByDestination(table) => table.iter().fold(0, with),
        PathSl::BySourceSwitch(table) => {
            (0..table.switch_count() as u32).fold(0, |all, s| table.row(s).iter().fold(all, with))
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

    /// The places of the arcs that packets on `arc` ask for, as bits.
    pub(super) fn set(&self, lane: usize, arc: u32) -> &[u64] {
        let first = (lane * self.arcs + arc as usize) * self.words;
        &self.bits[first..first + self.words]
    }

    /// Takes the sets of lane 0 over from `from`, whose arcs have other numbers but sets of the same size; those of arcs that
    /// came stay as they are.
    pub(super) fn copy_all(&mut self, from: &Self, links: &LinkChange) {
        let words = self.words;
        for (new, old, length) in links.runs() {
            let part = &from.bits[old * words..(old + length) * words];
            self.bits[new * words..(new + length) * words].copy_from_slice(part);
        }
    }

    /// Empties the set of an arc.
    pub(super) fn clear(&mut self, lane: usize, arc: u32) {
        let first = (lane * self.arcs + arc as usize) * self.words;
        self.bits[first..first + self.words].fill(0);
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
