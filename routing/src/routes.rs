//! What a routing engine computes: a linear forwarding table for every switch and, where the engine needs them, service
//! levels and SL-to-VL tables.

use std::sync::Arc;

use mad::types::{Guid, Lid};

use crate::fabric::{SwitchGraph, SwitchIndex};

mod lft_matrix;

pub use lft_matrix::{Change, LFT_BLOCK, LftMatrix, Row, RowMut};

/// "No port": the packet is dropped.
pub const NO_PORT: u8 = 255;

/// How the service level of a path is chosen.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum PathSl {
    /// Every path uses SL 0.
    #[default]
    Default,
    /// By destination LID: one byte for each LID.
    ByDestination(Vec<u8>),
    /// By (source switch, destination LID): rows like [`LftMatrix`], one byte each.
    BySourceSwitch(LftMatrix),
}

/// SL-to-VL tables where they are not the identity.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum SlToVl {
    /// VL = SL, as far as the link has VLs.
    #[default]
    Identity,
    /// Every link maps the 16 SLs by this one table.
    Uniform([u8; 16]),
    /// For each switch in turn, `(ports + 1)²` tables of 16 VLs: index `in_port * (ports + 1) + out_port`.
    PerSwitch(Vec<Vec<[u8; 16]>>),
}

impl SlToVl {
    /// For engines with room for multicast on each of `vls` lanes: SL = VL, and the SLs above take the first lane.
    pub fn below(vls: u8) -> Self {
        Self::Uniform(std::array::from_fn(|sl| if sl < usize::from(vls) && sl < 15 { sl as u8 } else { 0 }))
    }

    /// For engines with room for multicast on the first of `vls` lanes: the others have the last SLs, from 15 down ([`sl_of_lane`]), so
    /// that those between, which groups may have, are left for the first lane.
    pub fn first_for_most(vls: u8) -> Self {
        Self::Uniform(std::array::from_fn(|sl| {
            (0..vls.min(15)).find(|vl| sl_of_lane(*vl) == sl as u8).unwrap_or(0)
        }))
    }

    /// Whether packets of the SLs of a set take the same VLs by both.
    pub(crate) fn agrees_on(&self, other: &Self, sls: u16) -> bool {
        let everywhere = |map: &Self| !matches!(map, Self::PerSwitch(_));
        let same = |sl: usize| self.vl(0, 0, (0, 0), sl) == other.vl(0, 0, (0, 0), sl);
        self == other
            || everywhere(self) && everywhere(other) && (0..16).filter(|sl| sls >> sl & 1 == 1).all(same)
    }

    /// The VL of packets of `sl` (0 to 15) that come in by the first and go out by the second of two ports of a switch with
    /// `num_ports` ports; 15 where there is no table.
    pub fn vl(&self, switch: SwitchIndex, num_ports: u8, (input, output): (u8, u8), sl: usize) -> u8 {
        match self {
            Self::Identity => sl as u8,
            Self::Uniform(map) => map[sl] & 15,
            Self::PerSwitch(tables) => {
                let place = usize::from(input) * (usize::from(num_ports) + 1) + usize::from(output);
                tables.get(switch as usize).and_then(|table| table.get(place)).map_or(15, |map| map[sl] & 15)
            }
        }
    }
}

/// The SL of paths on a lane by [`SlToVl::first_for_most`].
pub fn sl_of_lane(vl: u8) -> u8 {
    (16 - vl) % 16
}

/// The lane of paths with an SL, the other way round.
pub(crate) fn lane_of_sl(sl: u8) -> u8 {
    sl_of_lane(sl)
}

/// The result of a routing engine.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Routes {
    /// The engine that made them.
    pub engine: String,
    /// NodeGUIDs of the switches, in the order of the rows.
    pub switches: Vec<Guid>,
    /// The tables.
    pub lfts: LftMatrix,
    /// Service levels.
    pub sl: PathSl,
    /// SL-to-VL tables.
    pub sl_to_vl: SlToVl,
    /// Number of data VLs that the routes need to be free of deadlock, 1 when they use VL0 only.
    pub vls: u8,
    /// For engines that claim paths which go up first and down after that: the place of each switch in the order that says
    /// which end of a link is the upper one, the uppermost 0. It is a claim for the verifier to test.
    pub order: Option<Arc<[u32]>>,
    /// Where the engine keeps room for it: a tree of all switches along which multicast of SL 0 closes no credit loop with these
    /// tables. For each switch the number of its arc to its parent, `u32::MAX` for a root. Where other SLs have others, all of them: that
    /// of SL s is number s modulo how many there are. Empty where no room is kept.
    pub spanning: Vec<Arc<[u32]>>,
}

impl Routes {
    /// Empty tables for the switches of `graph`.
    pub fn empty(engine: &str, graph: &SwitchGraph) -> Self {
        let count = graph.switch_count();
        Self {
            engine: engine.into(),
            switches: (0..count as u32).map(|s| graph.guid(s)).collect(),
            lfts: LftMatrix::new(count, graph.top_lid()),
            vls: 1,
            ..Self::default()
        }
    }

    /// The service level for packets that enter at `source` (a switch) for `lid`.
    pub fn path_sl(&self, source: SwitchIndex, lid: Lid) -> u8 {
        match &self.sl {
            PathSl::Default => 0,
            PathSl::ByDestination(table) => table.get(lid.index()).copied().unwrap_or(0),
            PathSl::BySourceSwitch(table) => table.row(source).get(lid.index()).unwrap_or(0),
        }
    }
}
