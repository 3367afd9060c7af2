//! `rsm verify`: tables from anywhere, unicast and multicast, judged against the topology they are for.
//!
//! Exit codes: 0 right, 1 faults found, 2 input that can't be used.

use std::path::{Path, PathBuf};

use mad::types::PortNum;
use routing::fabric::{Fabric, NodeId, SwitchGraph};
use routing::formats::{self, mcfdbs, members, steering};
use routing::routes::Routes;
use routing::verify::legality::order_from_roots;
use routing::verify::lmc::{self, Disjointness};
use routing::verify::multicast::{self, MulticastReport};
use routing::verify::{self, Options, Report};
use serde::Serialize;

use super::offline::{text, topology, usage};
use super::tables::{self, Dumped, Named};
use super::without_lid::WithoutLid;
use crate::args::Verify;
use crate::failure::{Failure, Outcome};
use crate::out;

/// What is said where tables come without service levels.
const ONE_LANE: &str = "service levels: none with these tables, so all paths are judged on one lane; --path-sl and --sl2vl, \
                        path-sl.dump beside the tables, or routes.json give others";

/// All that was found.
#[derive(Serialize)]
struct Verdict {
    #[serde(flatten)]
    unicast: Report,
    /// The file that the service levels come from; none: all paths are judged on SL 0.
    service_levels: Option<PathBuf>,
    /// What is odd in the files, a line each: switches without a table, entries for LIDs that nobody has.
    notes: Vec<String>,
    /// Ports that no check covers.
    without_lid: Option<WithoutLid>,
    /// How disjoint the paths of ports with several LIDs are.
    lmc: Option<Disjointness>,
    /// Of the multicast tables, where they are given.
    multicast: Option<MulticastReport>,
}

pub(super) fn run(args: &Verify) -> Outcome {
    let mut fabric = topology(&args.topology)?;
    if args.lmc > 0 {
        add_lmc(&mut fabric, args.lmc);
        if let Some(wrong) = formats::wrong_lid(&args.topology.display().to_string(), &fabric) {
            return Err(usage(format!("--lmc {}: {wrong}", args.lmc)));
        }
    }
    let graph = SwitchGraph::new(&fabric);
    if graph.destinations().is_empty() {
        return Err(usage(format!(
            "{}: no port has a LID, so no table can be checked against it",
            args.topology.display()
        )));
    }
    let named = Named { path_sl: args.path_sl.as_deref(), sl2vl: args.sl2vl.as_deref() };
    let Dumped { mut routes, service_levels, notes } = tables::read(&args.tables, &named, &fabric, &graph)?;
    if let Some(path) = &args.root_guids {
        routes.order = Some(order(path, args.ids.as_deref(), &graph)?);
    }
    let options = Options { management: args.management, data_vls: args.data_vls };
    let verdict = Verdict {
        unicast: verify::check(&graph, &routes, options),
        service_levels,
        notes,
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

/// Gives the ports of adapters and routers an LMC that have none.
fn add_lmc(fabric: &mut Fabric, lmc: u8) {
    let ids: Vec<NodeId> = fabric.nodes().filter(|(_, node)| !node.is_switch()).map(|(id, _)| id).collect();
    for id in ids {
        let ports: Vec<PortNum> = fabric.node(id).end_ports().map(|(port, _)| port).collect();
        for number in ports {
            if let Some(port) = fabric.node_mut(id).port_mut(number).filter(|port| port.lmc == 0) {
                port.lmc = lmc;
            }
        }
    }
}

impl Verdict {
    fn print(&self, tiers: bool) -> Outcome {
        out::line(&self.unicast.to_string())?;
        for tier in self.unicast.tiers.iter().filter(|_| tiers) {
            out::line(&tier.to_string())?;
        }
        out::line(&match &self.service_levels {
            Some(file) => format!("service levels: from {}", file.display()),
            None => ONE_LANE.to_owned(),
        })?;
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
    let named = super::steering::roots(Some(roots), graph)?;
    let ids = super::steering::list(ids, steering::ids)?;
    order_from_roots(graph, &named, &ids)
        .ok_or_else(|| usage(format!("{}: no switch of this topology", roots.display())))
}

fn of_multicast(args: &Verify, graph: &SwitchGraph, routes: &Routes) -> Outcome<MulticastReport> {
    let Some(path) = &args.multicast else { return Ok(MulticastReport::default()) };
    let tables = mcfdbs::read_for(&path.display().to_string(), &text(path)?, graph).map_err(usage)?;
    let Some(path) = &args.members else { return Ok(multicast::check_unlisted(graph, &tables, routes)) };
    let groups = members::read(&path.display().to_string(), &text(path)?, graph).map_err(usage)?;
    Ok(multicast::check(graph, &tables, &groups, routes))
}
