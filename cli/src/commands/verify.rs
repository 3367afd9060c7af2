//! `rsm verify`: tables from anywhere, unicast and multicast, judged against the topology they are for.
//!
//! Exit codes: 0 right, 1 faults found, 2 input that can't be used.

use std::path::Path;

use routing::fabric::SwitchGraph;
use routing::formats::{mcfdbs, members, path_sl, sl2vl, steering};
use routing::routes::Routes;
use routing::verify::legality::order_from_roots;
use routing::verify::lmc::{self, Disjointness};
use routing::verify::multicast::{self, MulticastReport};
use routing::verify::{self, Options, Report};
use serde::Serialize;
use sm_core::config;

use super::offline::{dumped, text, topology, usage};
use super::without_lid::WithoutLid;
use crate::args::Verify;
use crate::failure::{Failure, Outcome, complain};
use crate::out;
use crate::settings::steering_failure;

/// All that was found.
#[derive(Serialize)]
struct Verdict {
    #[serde(flatten)]
    unicast: Report,
    /// Ports that no check covers.
    without_lid: Option<WithoutLid>,
    /// How disjoint the paths of ports with several LIDs are.
    lmc: Option<Disjointness>,
    /// Of the multicast tables, where they are given.
    multicast: Option<MulticastReport>,
}

pub(super) fn run(args: &Verify) -> Outcome {
    let fabric = topology(&args.topology)?;
    let graph = SwitchGraph::new(&fabric);
    if graph.destinations().is_empty() {
        return Err(usage(format!(
            "{}: no port has a LID, so no table can be checked against it",
            args.topology.display()
        )));
    }
    let mut routes = dumped(&args.tables, &graph)?;
    if let Some(path) = &args.sl2vl {
        let read = sl2vl::read(&path.display().to_string(), &text(path)?, &graph).map_err(usage)?;
        read.warnings.iter().for_each(|warning| complain(warning));
        routes.sl_to_vl = read.sl_to_vl;
    }
    if let Some(path) = &args.path_sl {
        routes.sl =
            path_sl::read(&path.display().to_string(), &text(path)?, &fabric, &graph).map_err(usage)?;
    }
    if let Some(path) = &args.root_guids {
        routes.order = Some(order(path, args.ids.as_deref(), &graph)?);
    }
    let options = Options { management: args.management, data_vls: args.data_vls };
    let verdict = Verdict {
        unicast: verify::check(&graph, &routes, options),
        without_lid: WithoutLid::of(&fabric),
        lmc: lmc::disjointness(&graph, &routes),
        multicast: args.multicast.as_ref().map(|_| of_multicast(args, &graph, &routes)).transpose()?,
    };
    if args.json {
        out::json(&verdict)?;
    } else {
        verdict.print(args.tiers)?;
    }
    let right =
        verdict.unicast.is_right() && verdict.multicast.as_ref().is_none_or(MulticastReport::is_right);
    if right { Ok(()) } else { Err(Failure::Reported) }
}

impl Verdict {
    fn print(&self, tiers: bool) -> Outcome {
        out::line(&self.unicast.to_string())?;
        for tier in self.unicast.tiers.iter().filter(|_| tiers) {
            out::line(&tier.to_string())?;
        }
        if let Some(without) = &self.without_lid {
            out::line(&without.to_string())?;
        }
        if let Some(lmc) = &self.lmc {
            out::line(&lmc.to_string())?;
        }
        self.multicast.as_ref().map_or(Ok(()), |multicast| out::line(&multicast.to_string()))
    }
}

/// The order of switches below the roots that a file names.
fn order(roots: &Path, ids: Option<&Path>, graph: &SwitchGraph) -> Outcome<std::sync::Arc<[u32]>> {
    let named = config::read(Some(roots), steering::guids).map_err(steering_failure)?;
    let ids = config::read(ids, steering::ids).map_err(steering_failure)?;
    order_from_roots(graph, &named, &ids).ok_or_else(|| {
        usage(format!("{}: none of the {} GUIDs is a switch of this topology", roots.display(), named.len()))
    })
}

fn of_multicast(args: &Verify, graph: &SwitchGraph, routes: &Routes) -> Outcome<MulticastReport> {
    let Some(path) = &args.multicast else { return Ok(MulticastReport::default()) };
    let tables = mcfdbs::read_for(&path.display().to_string(), &text(path)?, graph).map_err(usage)?;
    let groups = match &args.members {
        Some(path) => members::read(&path.display().to_string(), &text(path)?, graph).map_err(usage)?,
        None => multicast::groups_of(graph, &tables),
    };
    Ok(multicast::check(graph, &tables, &groups, routes))
}
