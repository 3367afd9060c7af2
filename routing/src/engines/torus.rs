//! `torus-2qos`: tori and meshes, dimension by dimension, with datelines.
//!
//! - Input: a torus or mesh of one to three dimensions. Its coordinates come from the seeds of opensm's torus-2QoS.conf
//!   ([`config`]); without one they are found from the wiring: switches that use the same two ports for the same direction
//!   everywhere, as tori are cabled; the port pairs name the directions.
//! - Guarantees: no credit loop between hosts on two VLs; shortest paths within every ring. With a cable missing in a ring
//!   its packets go the other way round. Where a failed switch leaves a place empty, paths that would have turned there
//!   turn one switch earlier; the hop after a turn against the order of dimensions takes VLs of its own (VL bit 1). SL bit
//!   d says that the whole torus' path crosses the dateline of dimension d; switches put a packet on VL bit 0 by the SL bit
//!   of the dimension that the exit leads along. SLs depend on the places of source and destination (and the half of the LIDs) only, so none changes
//!   when something fails, as long as the coordinates stay (seeds with datelines see to that). With 8 VLs, SL bit 3
//!   is a second level of service: VL bit 2 between switches, VL 1 towards hosts.
//! - The LIDs of a port take parallel cables in turn, and between opposite places of an even ring the upper half of them goes
//!   the other way round. Elsewhere one way round is shorter, on an odd ring always, so that paths of equal length differ in the order
//!   of dimensions only, and a second order on the same VLs closes a credit loop: east, south (x before y), west (y before x), north (x
//!   before y), and east again (y before x) go round any rectangle of two hops or more each way. VL bit 1 marks the first hop after a
//!   turn alone, as a switch knows entry, exit and SL of a packet, not its VL; behind that hop the two orders meet again. An SL bit would
//!   keep them apart, but on three dimensions all mark datelines and the level of service; on two bit 2 is free, and not used so.
//! - Multicast: room for a tree of each SL (see [`comb`]); where a switch is missing on its way, for one that goes round it, if
//!   there is one.
//! - Refuses: other fabrics (says which switch does not fit), rings broken into several pieces, failed switches around which
//!   no way is left or which leave a credit loop (that is proved; opensm's rule is: one, or several adjacent in the last
//!   dimension): `nue` routes these.
//! - VLs: 2 where a ring of more than two switches is closed, else 1; 4 with a failed switch; SLs: 8, or 16.
//!   Cost: LIDs · switches; with failed switches also the hops of all pairs of switches.
//! - Source: dateline routing on tori (Dally, Seitz 1987); service levels and early turns as torus-2QoS of OpenSM uses them.

mod config;
mod coordinates;
mod directions;
mod escape;
mod seeded;

use super::targets::{Target, Targets};
use super::{RoutingEngine, RoutingError, RoutingInput};
use crate::fabric::{SwitchGraph, SwitchIndex};
use crate::routes::{LftMatrix, PathSl, Routes, SlToVl};
pub use config::{TorusConfig, TorusDimension, TorusSeed};
use coordinates::{Half, Torus};

/// The engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct TorusTwoQos;

const NAME: &str = "torus-2qos";

impl RoutingEngine for TorusTwoQos {
    fn name(&self) -> &'static str {
        NAME
    }

    fn route(&self, graph: &SwitchGraph, input: &RoutingInput) -> Result<Routes, RoutingError> {
        let unsuitable = |reason| RoutingError::Unsuitable { engine: NAME, reason };
        let torus = find(graph, input.torus.as_ref()).map_err(unsuitable)?;
        let available = input.vls();
        let needed = match (torus.missing().next(), torus.has_closed_rings()) {
            (Some(_), _) => 4,
            (None, true) => 2,
            (None, false) => 1,
        };
        if needed > available {
            return Err(RoutingError::NotEnoughVls { engine: NAME, needed, available });
        }
        let vls = VlBits::of(available, needed);
        let around = escape::check(graph, &torus, vls).map_err(unsuitable)?;
        let targets = Targets::new(graph, input);
        let order = input.torus.as_ref().map_or(&[][..], |config| &config.port_order);
        let ends: Vec<Vec<(usize, Target)>> =
            (0..graph.switch_count() as u32).map(|s| ends_in_order(&targets, s, order)).collect();
        let mut routes = Routes::empty(NAME, graph);
        let mut sl = LftMatrix::new(graph.switch_count(), graph.top_lid());
        routes.lfts.par_rows_mut_with(&mut sl, |s, lfts, sls| {
            for (target, ends) in (0..).zip(&ends) {
                fill(&torus, ends, s, target, lfts, sls);
            }
        });
        routes.vls = needed;
        let combs =
            (0..1 << torus.dimensions()).map(|sl| comb(graph, &torus, sl)).collect::<Option<Vec<_>>>();
        routes.spanning = combs.or_else(|| escape::trees(graph, &torus, vls, around?)).unwrap_or_default();
        if needed > 1 {
            routes.sl = PathSl::BySourceSwitch(sl);
            let tables = (0..graph.switch_count() as u32).map(|s| lanes(&torus, graph, s, vls)).collect();
            routes.sl_to_vl = SlToVl::PerSwitch(tables);
        }
        Ok(routes)
    }
}

fn find(graph: &SwitchGraph, config: Option<&TorusConfig>) -> Result<Torus, String> {
    let Some(config) = config else {
        let (axes, places) = directions::places(graph)?;
        return Torus::lay(graph, axes, places);
    };
    let (axes, places) = seeded::places(graph, config)?;
    let torus = Torus::lay(graph, axes, places)?;
    let mut ends = vec![1_usize; graph.switch_count()];
    graph.destinations().iter().filter(|d| d.port != 0).for_each(|d| ends[d.switch as usize] += 1);
    let most = usize::from(config.max_ports);
    for s in 0..graph.switch_count() as u32 {
        let sides = (0..torus.dimensions()).flat_map(|axis| [true, false].map(|forward| (axis, forward)));
        let parallel = sides.map(|(axis, forward)| torus.cables(s, axis, forward).len()).max().unwrap_or(0);
        let name = graph.describe(s);
        for (count, what) in
            [(parallel, "parallel cables"), (ends[s as usize], "host ports, port 0 included,")]
        {
            if count > most {
                return Err(format!("switch {name} has {count} {what} and portgroup_max_ports is {most}"));
            }
        }
    }
    Ok(torus)
}

/// The end ports of a switch in the order in which they are dealt to parallel cables, each with its number.
fn ends_in_order(targets: &Targets, s: SwitchIndex, order: &[mad::types::PortNum]) -> Vec<(usize, Target)> {
    let mut ends: Vec<Target> = targets.of(s).to_vec();
    let listed = |port: u8| order.iter().position(|listed| listed.0 == port).unwrap_or(usize::MAX);
    if order.is_empty() {
        return ends.into_iter().map(|end| (end.rank as usize, end)).collect();
    }
    ends.sort_by_key(|end| (listed(end.port), end.port));
    ends.into_iter().enumerate().collect()
}

fn fill(
    torus: &Torus,
    ends: &[(usize, Target)],
    s: SwitchIndex,
    target: SwitchIndex,
    lfts: &mut [u8],
    sls: &mut [u8],
) {
    let of = |half| (torus.step(s, target, half), torus.datelines(s, target, half));
    let lower = of(Half::Lower);
    for (number, end) in ends {
        for (offset, lid) in (end.lid..end.lid + end.lids).enumerate() {
            let upper = end.lids > 1 && offset >= usize::from(end.lids / 2);
            let (step, sl) = if upper { of(Half::Upper) } else { lower };
            let port = match step {
                Some((axis, forward)) => {
                    let cables = torus.cables(s, axis, forward);
                    cables.get((number + offset) % cables.len().max(1)).copied()
                }
                None => Some(end.port),
            };
            lfts[usize::from(lid)] = port.unwrap_or(crate::routes::NO_PORT);
            sls[usize::from(lid)] = sl;
        }
    }
}

/// A tree for multicast of an SL: from everywhere to the middle place, dimension by dimension. Packets that come out again turn against
/// the order of dimensions, but only in the planes of the middle and away from these; unicast never turns so, and no packet on
/// these VLs comes back to a plane that it left, so no circle closes. The planes are the same for all SLs. In a ring whose dateline the SL
/// crosses the break is not there but just before the middle: a path over the dateline takes at most half of the links, none of them
/// that one. `None` where a switch is missing on the way.
fn comb(graph: &SwitchGraph, torus: &Torus, sl: u8) -> Option<std::sync::Arc<[u32]>> {
    let parent = |s: SwitchIndex| match torus.inward(s, sl) {
        Some((axis, forward)) => {
            let cable = *torus.cables(s, axis, forward).first()?;
            let place = graph.arcs(s).iter().position(|arc| arc.out_port == cable)?;
            Some(graph.offsets()[s as usize] + place as u32)
        }
        None => torus.is_in_the_middle(s).then_some(u32::MAX),
    };
    (0..graph.switch_count() as SwitchIndex).map(parent).collect()
}

/// What the bits of a VL mean.
#[derive(Clone, Copy, Debug)]
struct VlBits {
    /// Whether bit 1 marks the hop after a turn against the order of dimensions.
    turns: bool,
    /// Whether bit 2 is a level of service.
    levels: bool,
}

impl VlBits {
    /// All that the links have room for, whether it is needed now or not: when a switch fails, the SL-to-VL tables are right
    /// already.
    fn of(available: u8, needed: u8) -> Self {
        Self { turns: available >= 4, levels: available >= 8 && needed > 1 }
    }

    /// The VL of the exit along `axis` for what came in along `from`.
    fn vl(self, from: Option<usize>, axis: usize, sl: usize) -> u8 {
        let turned = self.turns && from.is_some_and(|from| from > axis);
        (sl >> axis & 1 | usize::from(turned) << 1 | usize::from(self.levels && sl >= 8) << 2) as u8
    }
}

/// VL by SL for every entry and exit.
fn lanes(torus: &Torus, graph: &SwitchGraph, s: SwitchIndex, vls: VlBits) -> Vec<[u8; 16]> {
    let ports = usize::from(graph.num_ports(s)) + 1;
    let mut axis_of: Vec<Option<usize>> = vec![None; ports];
    for axis in 0..torus.dimensions() {
        for port in [true, false].into_iter().flat_map(|forward| torus.cables(s, axis, forward)) {
            axis_of[usize::from(*port)] = Some(axis);
        }
    }
    let to_hosts: [u8; 16] = std::array::from_fn(|sl| u8::from(vls.levels && sl >= 8));
    let pairs = axis_of.iter().flat_map(|input| axis_of.iter().map(move |output| (*input, *output)));
    pairs
        .map(|(input, output)| match output {
            Some(axis) => std::array::from_fn(|sl| vls.vl(input, axis, sl)),
            None => to_hosts,
        })
        .collect()
}

#[cfg(test)]
mod tests;
