//! The next tables from those in force: only what depends on a link that was lost is computed anew.
//!
//! For engines whose entries depend on their own switch and target only (`minhop`, `updn`, `dnup`, `ftree`) the result is
//! the one that they compute from nothing, always (B24): what is taken over is proved unchanged first. Cost after one
//! lost link: a pass over the graph, a copy of the best first arcs, and the entries of the targets whose best arcs changed.
//! Hosts that are away keep their place ([`super::absent`]). Engines in whose result every LID depends on those before it have their tables repaired ([`super::base`]).

use std::sync::Arc;

use super::absent::with_absent;
use super::apart::Before;
use super::base::{Base, repairs};
use super::fill::{Basis, refill};
use super::next_hops::Earlier;
use super::{NO_FALLBACK, RoutingEngine, RoutingError, RoutingInput, by_name, ftree, minhop, updn};
use crate::fabric::{LinkChange, SwitchGraph};
use crate::routes::{LftMatrix, Routes};

/// What is kept of a run: for `minhop`, `updn`, `dnup` and `ftree` its parts, which the next tables take over as far as they would come out
/// again; for `sssp`, `dfsssp`, `lash` and `nue` the last tables from nothing, which are repaired while the fabric is theirs less some links.
#[derive(Clone, Debug)]
pub struct Standing {
    /// What it routed, hosts that were away with it.
    graph: Arc<SwitchGraph>,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// Of an engine whose entries depend on their own switch and target only.
    Dealt(Dealt),
    /// Of an engine that repairs.
    Base(Arc<Base>),
    /// Of an engine that computes all from nothing.
    Nothing,
}

#[derive(Clone, Debug)]
struct Dealt {
    engine: &'static str,
    graph: Arc<SwitchGraph>,
    basis: Arc<Basis>,
    /// The tables as they were dealt, with full links relieved, and with paths of one pair set apart.
    dealt: LftMatrix,
    relieved: LftMatrix,
    lfts: LftMatrix,
}

#[cfg(test)]
impl Standing {
    /// The base of an engine that repairs.
    pub(super) const fn base(&self) -> Option<&Arc<Base>> {
        match &self.kind {
            Kind::Base(base) => Some(base),
            Kind::Dealt(_) | Kind::Nothing => None,
        }
    }
}

/// What a chain of engines came to.
#[derive(Debug)]
pub struct Chained {
    /// The first tables.
    pub routes: Routes,
    /// Why the engines before refused.
    pub refused: Vec<RoutingError>,
    /// For the next run.
    pub standing: Standing,
}

type MakeBasis = fn(&SwitchGraph, &RoutingInput, Option<Earlier<'_>>) -> Result<Basis, RoutingError>;

/// What makes the basis of an engine whose entries depend on their own switch and target only.
pub(super) fn maker(engine: &str) -> Option<MakeBasis> {
    match engine {
        "minhop" => Some(minhop::basis),
        "updn" => Some(updn::basis),
        "dnup" => Some(updn::basis_from_hosts),
        "ftree" => Some(ftree::basis),
        _ => None,
    }
}

/// Tries engines in order and returns the first tables, like [`super::route_chain`], beginning from what stands.
///
/// # Errors
/// The reasons of all when none could route; an unknown name counts as a refusal.
pub fn route_chain_from<S: AsRef<str>>(
    chain: &[S],
    graph: &Arc<SwitchGraph>,
    input: &RoutingInput,
    standing: Option<&Standing>,
) -> Result<Chained, Vec<RoutingError>> {
    let fallback = !chain.iter().any(|name| name.as_ref() == NO_FALLBACK);
    let named = chain.iter().map(AsRef::as_ref).filter(|name| *name != NO_FALLBACK);
    let mut refused = Vec::new();
    let whole = standing.and_then(|standing| with_absent(graph, &standing.graph));
    for name in named.chain(fallback.then_some("minhop")) {
        if let Some(whole) = &whole
            && let Ok((mut routes, standing)) = route(name, &whole.graph, input, standing)
        {
            whole.leave_out(&mut routes);
            return Ok(Chained { routes, refused, standing });
        }
        match route(name, graph, input, standing) {
            Ok((routes, standing)) => return Ok(Chained { routes, refused, standing }),
            Err(error) => refused.push(error),
        }
    }
    Err(refused)
}

fn route(
    name: &str,
    graph: &Arc<SwitchGraph>,
    input: &RoutingInput,
    standing: Option<&Standing>,
) -> Result<(Routes, Standing), RoutingError> {
    let engine = by_name(name)?;
    let (dealt, base) = match standing.map(|standing| &standing.kind) {
        Some(Kind::Dealt(dealt)) => (Some(dealt), None),
        Some(Kind::Base(base)) => (None, Some(base)),
        Some(Kind::Nothing) | None => (None, None),
    };
    let stands = |kind| Standing { graph: Arc::clone(graph), kind };
    if let Some(make) = maker(engine.name()) {
        let (routes, dealt) = deal((engine, make), graph, input, dealt)?;
        return Ok((routes, stands(Kind::Dealt(dealt))));
    }
    if let Some(repairs) = repairs(engine.name()) {
        let (routes, base) = repairs.route(engine, (graph, input), base)?;
        return Ok((routes, stands(base.map_or(Kind::Nothing, Kind::Base))));
    }
    Ok((engine.route(graph, input)?, stands(Kind::Nothing)))
}

fn deal(
    (engine, make): (&'static dyn RoutingEngine, MakeBasis),
    graph: &Arc<SwitchGraph>,
    input: &RoutingInput,
    standing: Option<&Dealt>,
) -> Result<(Routes, Dealt), RoutingError> {
    let same = standing.filter(|standing| standing.engine == engine.name() && graph.lids_are_unique());
    let links = same.and_then(|standing| Some((standing, LinkChange::between(&standing.graph, graph)?)));
    let earlier = links.as_ref().map(|(standing, links)| Earlier { hops: &standing.basis.hops, links });
    let basis = make(graph, input, earlier)?;
    let mut routes = match &links {
        Some((standing, links)) => {
            let mut routes = Routes { order: basis.order.clone(), ..Routes::empty(engine.name(), graph) };
            routes.lfts = standing.dealt.clone();
            refill(graph, (&standing.basis, &standing.graph), &basis, links, &mut routes.lfts);
            routes
        }
        None => basis.dealt(engine.name(), graph),
    };
    let dealt = routes.lfts.clone();
    basis.relieve(graph, &mut routes.lfts);
    let relieved = routes.lfts.clone();
    if let Some((standing, links)) = &links {
        let hops = &standing.basis.hops;
        let before = Before { links, hops, dealt: &standing.relieved, apart: &standing.lfts };
        routes.lfts = basis.set_apart_again(graph, &relieved, before);
        routes.lfts.share_equal_rows(&standing.lfts);
    } else {
        basis.set_apart(graph, &mut routes.lfts);
    }
    let standing = Dealt {
        engine: engine.name(),
        graph: Arc::clone(graph),
        basis: Arc::new(basis),
        dealt,
        relieved,
        lfts: routes.lfts.clone(),
    };
    Ok((routes, standing))
}

#[cfg(test)]
mod tests {
    use rand::seq::IndexedRandom;

    use super::*;
    use crate::engines::testing::random_fabrics;
    use crate::fabric::{Fabric, testing};

    /// Fabrics whose ports have several LIDs, or with a leaf unlike the others; in the last two ports hold the same LIDs.
    fn with_several_lids() -> Vec<(String, Fabric)> {
        let tree = testing::fat_tree(&[3, 4, 3], &[1, 3, 2], 2);
        let mut twice = tree.clone();
        let hosts: Vec<_> = tree.nodes().filter(|(_, n)| !n.is_switch()).map(|(id, _)| id).collect();
        let one = mad::types::PortNum(1);
        let lid = tree.node(hosts[4]).port(one).unwrap().lid;
        twice.node_mut(hosts[20]).port_mut(one).unwrap().lid = lid;
        let named = |name: &str, fabric| (name.to_owned(), fabric);
        vec![
            named("tree of three levels, LMC 2", tree),
            named("narrow tree, LMC 2", testing::fat_tree(&[2, 6], &[1, 3], 2)),
            named("small leaf", testing::tree_with_a_small_leaf(0)),
            named("small leaf, LMC 1", testing::tree_with_a_small_leaf(1)),
            named("small leaves of three levels", testing::tall_tree_with_small_leaves(0)),
            named("small leaves of three levels, LMC 1", testing::tall_tree_with_small_leaves(1)),
            named("torus, LMC 2", testing::torus(&[4, 5], 2, 2)),
            named("LIDs twice", twice),
        ]
    }

    /// Cables go one after another and come back; the tables are those from nothing after each step.
    #[test]
    fn b24_tables_from_those_in_force_are_the_tables_from_nothing() {
        let mut random = testing::seeded(7);
        let mut kept_rows = 0;
        for (name, whole) in random_fabrics().into_iter().chain(with_several_lids()) {
            for engine in ["minhop", "updn", "dnup", "ftree"] {
                let mut fabrics: Vec<Fabric> = vec![whole.clone()];
                for _ in 0..3 {
                    let mut fabric = fabrics.last().unwrap().clone();
                    let links = testing::between_switches(&fabric);
                    fabric.disconnect(links.choose(&mut random).unwrap().a);
                    fabrics.push(fabric);
                }
                fabrics.push(whole.clone());
                let mut standing: Option<Standing> = None;
                for fabric in &fabrics {
                    let graph = Arc::new(SwitchGraph::new(fabric));
                    let input = RoutingInput::default();
                    let fresh = by_name(engine).unwrap().route(&graph, &input);
                    let next = route_chain_from(&[engine, NO_FALLBACK], &graph, &input, standing.as_ref());
                    let Ok(next) = next else {
                        assert!(fresh.is_err(), "{engine} on {name}");
                        continue;
                    };
                    assert!(Ok(&next.routes) == fresh.as_ref(), "{engine} on {name}");
                    if let Some(Standing { kind: Kind::Dealt(before), .. }) = &standing {
                        let same = |s: &u32| next.routes.lfts.shares_row(*s, &before.lfts);
                        kept_rows += (0..graph.switch_count() as u32).filter(same).count();
                    }
                    standing = Some(next.standing);
                }
            }
        }
        assert!(kept_rows > 100, "rows were taken over: {kept_rows}");
    }
}
