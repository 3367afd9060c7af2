//! `rsm route`: the middle of the pipeline on files, and what other offline commands share. Nothing here talks to a fabric.
//!
//! Exit codes: 0 all right, 1 faults found or an engine that does not route this fabric, 2 input that can't be used: `--data-vls`
//! that are too few for one of the engines, lists that are empty, and an `--output` that can't be written to included. It is the same whether engines are given one by one or in a list.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use mad::types::MulticastLid;
use routing::adaptive::Load;
use routing::engines::{self, RoutingEngine, RoutingError, RoutingInput};
use routing::fabric::{Fabric, Node, SwitchGraph};
use routing::formats::{self, FormatError, Loaded, counters, fdbs, flows, lfts, lst, mcfdbs, routes_json};
use routing::multicast::{self, Member, MulticastTables};
use routing::routes::Routes;
use routing::verify::lmc::{self, Disjointness};
use routing::verify::multicast::Group;
use routing::verify::{self, Options, Report, transition};
use serde::Serialize;
use simulations::generate;
use sm_core::plan::balance;

use super::tables::{self, Named};
use super::without_lid::WithoutLid;
use super::{adaptive, steering};
use crate::args::Route;
use crate::failure::{Failure, Outcome, complain};
use crate::out;
use crate::settings::check_chain;

/// What became of one engine.
#[derive(Serialize)]
struct Judgement {
    engine: String,
    /// Why it does not route this fabric.
    refused: Option<String>,
    /// Milliseconds of routing, on this machine.
    milliseconds: f64,
    /// Entries that differ from the tables in force, where these are given.
    moved: Option<usize>,
    report: Option<Report>,
    /// Ports that the report does not cover.
    without_lid: Option<WithoutLid>,
    /// How disjoint the paths of ports with several LIDs are.
    lmc: Option<Disjointness>,
}

pub(super) fn route(args: &Route) -> Outcome {
    if let Some(directory) = &args.output {
        check_output(directory)?;
    }
    let (fabric, mut graph) = with_lids(&args.topology, args.lmc)?;
    if args.steering.avoid_degraded {
        graph = SwitchGraph::avoiding_degraded(&fabric);
    }
    let dumped = |dump: &PathBuf| tables::read(dump, &Named::default(), &fabric, &graph);
    let tables = args.tables.as_ref().map(dumped).transpose()?.map(|dumped| dumped.routes);
    let load = args.load.as_ref().map(|file| load(file, &fabric, &graph)).transpose()?;
    let input =
        RoutingInput { data_vls: args.data_vls, tables, load, ..steering::input(&args.steering, &graph)? };
    let chosen = if args.chain {
        vec![chain(args, &graph, &input)?]
    } else {
        args.engine.iter().map(|name| engines::by_name(name)).collect::<Result<_, _>>().map_err(usage)?
    };
    if args.adaptive {
        if let Some(without) = WithoutLid::of(&fabric) {
            complain(&without.to_string());
        }
        return adaptive::run(&graph, &chosen, &input, args.group_cap, args.detours, args.json);
    }
    if input.tables.is_none()
        && input.load.is_none()
        && chosen.iter().any(|engine| engine.name() == balance::ENGINE)
    {
        let text =
            format!("--engine {}: give the tables in force (--tables) or a load (--load)", balance::ENGINE);
        return Err(usage(format!("{text}; without both it is minhop")));
    }
    let mut judgements = Vec::new();
    let mut first: Option<Routes> = None;
    let mut too_few = None;
    for engine in chosen {
        let began = Instant::now();
        let routed = engine.route(&graph, &input);
        too_few = too_few.or_else(|| too_few_vls(given(args), routed.as_ref().err()?));
        if let (Some(text), [_]) = (&too_few, &args.engine[..]) {
            return Err(usage(text));
        }
        let milliseconds = began.elapsed().as_secs_f64() * 1e3;
        let options = Options { data_vls: args.data_vls, ..Options::default() };
        let report = routed.as_ref().ok().map(|routes| verify::check(&graph, routes, options));
        let refused = routed.as_ref().err().map(ToString::to_string);
        let in_force = input.tables.as_ref().zip(routed.as_ref().ok());
        let moved = in_force.map(|(old, new)| transition::check(&graph, &old.lfts, &new.lfts).entries);
        let lmc = routed.as_ref().ok().and_then(|routes| lmc::disjointness(&graph, routes));
        let engine = engine.name().to_owned();
        let without_lid = WithoutLid::of(&fabric);
        judgements.push(Judgement { engine, refused, milliseconds, moved, report, without_lid, lmc });
        if first.is_none() {
            first = routed.ok();
        }
    }
    if args.json {
        out::json(&judgements)?;
    } else {
        for judgement in &judgements {
            out::line(&judgement.line())?;
        }
        if let Some(without) = WithoutLid::of(&fabric) {
            out::line(&without.to_string())?;
        }
    }
    // Last, so that a full disk takes no judgement away.
    let sound = match (&args.output, &first) {
        (Some(directory), Some(routes)) => write_tables(directory, &fabric, &graph, routes)?,
        _ => true,
    };
    let right = judgements.iter().all(|j| j.report.as_ref().is_some_and(Report::is_right));
    match too_few {
        Some(text) => Err(usage(text)),
        None if right && sound => Ok(()),
        None => Err(Failure::Reported),
    }
}

/// What the caller says of VLs: `--data-vls` and `--max-vls`.
type GivenVls = (u8, Option<u8>);

fn given(args: &Route) -> GivenVls {
    (args.data_vls, args.steering.max_vls)
}

/// What is said where an engine needs more VLs than the caller says there are.
pub(super) fn too_few_vls((data_vls, max_vls): GivenVls, refused: &RoutingError) -> Option<String> {
    let RoutingError::NotEnoughVls { available, .. } = refused else { return None };
    let flag = match max_vls {
        Some(most) if most == *available && most < data_vls => "--max-vls",
        _ => "--data-vls",
    };
    Some(format!("{flag} {available}: {refused}"))
}

/// The engine of a chain that routes, after telling why those before it don't.
fn chain(args: &Route, graph: &SwitchGraph, input: &RoutingInput) -> Outcome<&'static dyn RoutingEngine> {
    let names = &args.engine;
    check_chain(names)?;
    let told = |reasons: &[RoutingError]| reasons.iter().for_each(|reason| complain(&reason.to_string()));
    match engines::route_chain(names, graph, input) {
        Ok((routes, refused)) => {
            told(&refused);
            engines::by_name(&routes.engine).map_err(usage)
        }
        Err(refused) => {
            told(&refused);
            let lanes = refused.iter().find_map(|reason| too_few_vls(given(args), reason));
            Err(lanes.map_or(Failure::Reported, usage))
        }
    }
}

impl Judgement {
    fn line(&self) -> String {
        match (&self.refused, &self.report) {
            (None, Some(report)) => {
                let moved = self.moved.map(|moved| format!("; {moved} entries differ from those in force"));
                let lmc = self.lmc.as_ref().map(|lmc| format!("; {lmc}")).unwrap_or_default();
                format!("{:9.2} ms  {report}{lmc}{}", self.milliseconds, moved.unwrap_or_default())
            }
            (reason, _) => format!("refused       {}", reason.as_deref().unwrap_or("no reason given")),
        }
    }
}

/// A topology to route; gets LIDs when no port has one.
pub(super) fn routable(path: &Path) -> Outcome<(Fabric, SwitchGraph)> {
    with_lids(path, None)
}

/// The same, with 2^`lmc` LIDs for each port of an adapter in place of those that it has.
fn with_lids(path: &Path, lmc: Option<u8>) -> Outcome<(Fabric, SwitchGraph)> {
    let mut fabric = match lmc {
        Some(_) => loaded(path)?.fabric,
        None => topology(path)?,
    };
    let none = |(_, node): (_, &Node)| node.end_ports().all(|(_, port)| port.lid.is_none());
    if lmc.is_some() || fabric.nodes().all(none) {
        let lmc = lmc.unwrap_or(0);
        generate::assign_lids_with_lmc(&mut fabric, lmc)
            .map_err(|error| usage(format!("{} with LMC {lmc}: {error}", path.display())))?;
    }
    let graph = SwitchGraph::new(&fabric);
    if graph.switch_count() == 0 {
        return Err(usage(format!("{}: no switch, nothing to route", path.display())));
    }
    Ok((fabric, graph))
}

/// The content of a file, with what is no text replaced, and without a mark before it. Not more than of any topology.
pub(super) fn text(path: &Path) -> Outcome<String> {
    let wrong = |found: String, expected: String| {
        usage(FormatError::file(&path.display().to_string(), found, expected))
    };
    let unreadable = |error: std::io::Error| wrong(error.to_string(), "a file that can be read".to_owned());
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(formats::LONGEST_FILE + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > formats::LONGEST_FILE {
        let most = format!("at most {} MiB", formats::LONGEST_FILE >> 20);
        return Err(wrong("the file is longer than any of any fabric".to_owned(), most));
    }
    Ok(formats::text_of(&bytes))
}

/// A measured load: port counters or flows, whichever the file holds.
fn load(path: &Path, fabric: &Fabric, graph: &SwitchGraph) -> Outcome<Load> {
    let name = path.display().to_string();
    let text = text(path)?;
    if counters::are_in(&text) {
        let (counters, note) = counters::read_noting(&name, &text, graph).map_err(usage)?;
        note.iter().for_each(|note| complain(note));
        Ok(Load::Counters(counters))
    } else {
        Ok(Load::Flows(flows::read(&name, &text, fabric, graph).map_err(usage)?))
    }
}

/// A topology for tables: no LID belongs to two ports, each is the base of its 2^LMC.
pub(super) fn topology(path: &Path) -> Outcome<Fabric> {
    let loaded = loaded(path)?;
    loaded.wrong_lid.map_or(Ok(loaded.fabric), |wrong| Err(usage(wrong)))
}

fn loaded(path: &Path) -> Outcome<Loaded> {
    let loaded = formats::load(path).map_err(usage)?;
    loaded.warnings.iter().for_each(|warning| complain(warning));
    Ok(loaded)
}

pub(super) fn usage(error: impl ToString) -> Failure {
    Failure::Usage(error.to_string())
}

/// The multicast tables with one group, of all hosts, as the broadcast group of IPoIB has; and whether its tree goes with
/// the unicast tables, after telling the circle that it closes.
fn all_hosts(graph: &SwitchGraph, routes: &Routes) -> (MulticastTables, bool) {
    let hosts = graph.destinations().iter().filter(|d| d.host);
    let members = hosts.map(|d| Member { switch: d.switch, port: d.port, receives: true }).collect();
    let group = Group { mlid: MulticastLid::MIN, members, sl: 0 };
    let planned = multicast::plan(graph, &[group], routes, None);
    for (mlid, found) in &planned.loops {
        let group = format!("{}: multicast group {mlid}", routes.engine);
        complain(&format!("{group}: no tree was found that closes no credit loop with unicast: {found}"));
    }
    let sound = planned.loops.is_empty();
    (planned.tables, sound)
}

/// Makes the directory of `--output` if it is missing, and tries to write there: before anything is routed.
fn check_output(directory: &Path) -> Outcome {
    std::fs::create_dir_all(directory)
        .and_then(|()| tempfile::NamedTempFile::new_in(directory).map(drop))
        .map_err(|error| {
            usage(format!("{}: {error}, expected a directory to write into", directory.display()))
        })
}

/// Writes the files of `--output`; whether their multicast group goes with unicast.
fn write_tables(directory: &Path, fabric: &Fabric, graph: &SwitchGraph, routes: &Routes) -> Outcome<bool> {
    let (group, sound) = all_hosts(graph, routes);
    let files = [
        ("opensm-subnet.lst", lst::write(fabric, None)),
        ("opensm.fdbs", fdbs::write(graph, routes)),
        ("opensm-lfts.dump", lfts::write(fabric, graph, routes)),
        ("opensm.mcfdbs", mcfdbs::write(&mcfdbs::by_guid(graph, &group))),
        ("routes.json", routes_json::write(graph, routes)),
    ];
    let files = files.map(|(name, text)| (name, Some(text)));
    for (name, text) in files.into_iter().chain(tables::levels(graph, routes)) {
        let path = directory.join(name);
        match text {
            Some(text) => std::fs::write(&path, text),
            None => tables::remove(&path),
        }
        .with_context(|| format!("{}", path.display()))?;
    }
    Ok(sound)
}
